"""Rules applied to functions and to jaxprs.

One idea: a function is traced, rewritten, and written or computed in place, so that
`apply(rules)` composes with `jit`, `grad` and `vmap` on both sides::

    verax.grad(apply(stable())(f))(x)
"""

import math
from collections.abc import Callable, Iterable
from typing import Any, cast, overload

import numpy as np
from attrs import frozen

import verax.lax as lax
from verax.api.jit import own_statics
from verax.api.tracing.apply import ENGINE, apply as apply_jaxpr, observed
from verax.api.tracing.trace import leaf_avals, trace
from verax.api.tracing.wrapping import describe_arguments, wraps
from verax.backend import pytrees
from verax.ir.avals import finfo
from verax.ir.dtypes import is_bool, is_complex, is_float, is_integer, numpy_dtype
from verax.ir.jaxpr import ClosedJaxpr, Jaxpr
from verax.ir.records import ReprMixin
from verax.rules.rows.row import no_flops, traits_of
from verax.rules.values.array import Array
from verax.rules.values.conversions import shown
from verax.rules.values.memo import kept_with, memo
from verax.rules.values.state import Context, current_context
from verax.transforms.patterns.matching import PASSES, Use, rewritten
from verax.transforms.patterns.rewrite_rules import Operand, Rewrite, rewrite
from verax.transforms.public import hoist, opened

PROGRAMS = 1 << 10


def apply(rules: Rewrite | Iterable[Rewrite], *, passes: int = PASSES) -> "Applied":
    """The transformation that applies `rules` wherever they hold, until none does.

    Args:
        rules: the rules; where several hold at one place, the first is taken.
        passes: the largest number of passes over the whole program.

    Returns:
        a function of functions, or of jaxprs. What it makes of a function has the same
        arguments and results; a jaxpr becomes a `ClosedJaxpr` of the same types.

    Raises:
        RewriteLoop: when it is used, if the rules never come to an end.
        TypeError: one of them is not a rule.

    >>> import verax, verax.numpy as vnp
    >>> from verax.rewrites import apply, stable
    >>> def f(x): return vnp.log(vnp.sum(vnp.exp(x)))
    >>> x = vnp.array([1000.0, 1000.0])
    >>> float(f(x)), float(apply(stable())(f)(x))
    (inf, 1000.6931762695312)
    """
    given: object = rules
    chosen = tuple(given) if isinstance(given, Iterable) else (given,)
    out: list[Rewrite] = []
    for rule in chosen:
        if not isinstance(rule, Rewrite):
            raise TypeError(
                f"{rule!r} is not a rewrite rule; make one with "
                "verax.rewrites.rewrite, and call a function that returns rules: "
                "apply(stable())"
            )
        out.append(rule)
    return Applied(tuple(out), passes)


@frozen(eq=False, repr=False)
class Applied(ReprMixin):
    """Rules, ready to be applied to functions and jaxprs; with `uses`, only there."""

    rules: tuple[Rewrite, ...]
    passes: int = PASSES
    uses: frozenset[Use] | None = None

    @overload
    def __call__(self, program: Jaxpr | ClosedJaxpr) -> ClosedJaxpr: ...
    @overload
    def __call__[**P, R](self, program: Callable[P, R]) -> Callable[P, R]: ...
    def __call__(self, program: object) -> Any:
        if isinstance(program, Jaxpr | ClosedJaxpr):
            return hoist(self.rewritten(opened(program)))
        if not callable(program):
            raise TypeError(
                f"rewrite rules apply to functions and jaxprs, not {shown(program)}"
            )
        return self.function(program)

    def rewritten(self, jaxpr: Jaxpr) -> Jaxpr:
        """The program after the rules."""
        return kept_with(
            jaxpr,
            remembered,
            current_context(),
            jaxpr,
            self.rules,
            self.passes,
            self.uses,
        )

    def function[**P, R](self, fun: Callable[P, R]) -> Callable[P, R]:
        """The function whose program is rewritten on every call."""

        statics = own_statics(fun, None, None)

        @wraps(fun)
        def applied(*args: P.args, **kwargs: P.kwargs) -> R:
            call_args = statics.bind(args, kwargs)
            leaves, tree = pytrees.flatten(call_args.dynamic)
            describe = describe_arguments(fun, tree, call_args.positions)
            avals = leaf_avals(leaves, describe)
            inner = call_args.with_statics(fun)
            traced = trace(
                inner, tree, avals, "rewrites.apply", describe=describe, values=leaves
            )
            jaxpr, _ = observed(
                "rewrite", traced.jaxpr, lambda p: (self.rewritten(p), None)
            )
            outs = apply_jaxpr(jaxpr, [*traced.captured, *leaves])
            return cast(R, traced.out_tree.unflatten(outs))

        return applied


@memo(PROGRAMS)
def remembered(
    context: Context,
    jaxpr: Jaxpr,
    rules: tuple[Rewrite, ...],
    passes: int,
    uses: frozenset[Use] | None,
) -> Jaxpr:
    """`rewritten` by the standard engine, once per program and rules."""
    return rewritten(ENGINE, jaxpr, rules, passes, uses)


# -----------------------------------------------------------------------------
# What guards of the shipped rules ask of operands.
#
# A guard looks at types, at literal values, and at the equations that make an
# operand, never at values that are known only later::
#
#     @rewrite(lambda x: x + 0, where=integers)


def reals(*xs: Operand) -> bool:
    """Whether no operand is complex."""
    return not any(is_complex(x.dtype) for x in xs)


def floats(*xs: Operand) -> bool:
    """Whether all operands are real floating numbers."""
    return all(is_float(x.dtype) for x in xs)


def integers(*xs: Operand) -> bool:
    """Whether all operands are integers or booleans."""
    return all(is_integer(x.dtype) or is_bool(x.dtype) for x in xs)


def unsigned(x: Operand) -> bool:
    return is_integer(x.dtype) and x.dtype.name.startswith("uint")


def exponent(x: Operand) -> int | None:
    """k, if the operand is the literal 2**k; else None."""
    if x.literal is None or not reals(x):
        return None
    value = float(x.literal)
    if not (math.isfinite(value) and value > 0):
        return None
    mantissa, power = math.frexp(value)
    return power - 1 if mantissa == 0.5 else None


def shifted(x: Operand) -> bool:
    """Whether a maximum has been subtracted already, as stable programs do."""
    return x.primitive == "sub" and has_maximum(x.operands[1])


def has_maximum(x: Operand) -> bool:
    """Whether an operand is a maximum over axes, in another shape or made finite."""
    through = ("broadcast_in_dim", "reshape", "squeeze", "select_n", "stop_gradient")
    if x.primitive == "reduce_max":
        return True
    return x.primitive in through and any(has_maximum(y) for y in x.operands)


def bounded(x: Operand) -> bool:
    """Whether a program keeps its exponential from overflowing: -|x| or a choice."""
    if x.primitive in ("select_n", "min", "clamp"):
        return True
    return x.primitive == "neg" and x.operands[0].primitive == "abs"


def chosen(x: Operand) -> bool:
    """Whether a choice makes an operand, as where a branch is kept from bad values."""
    return x.primitive == "select_n"


def scaled(x: Operand) -> bool:
    """Whether an operand has been divided by what was chosen, as safe norms do."""
    return x.primitive == "div" and has_choice(x.operands[1])


def has_choice(x: Operand) -> bool:
    """Whether an operand has been chosen, in whatever shape."""
    if chosen(x) or x.made_by is None:
        return chosen(x)
    moves = traits_of(x.made_by.primitive).flops is no_flops
    return moves and any(has_choice(y) for y in x.operands)


def alike(*xs: Operand) -> bool:
    """Whether all operands are real floating numbers of one type."""
    return floats(*xs) and all(x.aval.strong() is xs[0].aval.strong() for x in xs)


# -----------------------------------------------------------------------------
# Strength reduction: the same results from cheaper operations.
#
# Powers of two are exact, so dividing by one is multiplying by its inverse,
# and on integers it is a shift; small powers are products::
#
#     x / 8        ->  x * 0.125          every bit kept
#     n * 8        ->  n << 3             integers
#     x ** 2.0     ->  x * x              within one unit in the last place


PAIR = [("f32[2,3]", "f32[]")]
INTEGER_PAIR = [("i32[2,3]", "i32[]")]


def inverse_is_normal(x: Operand, c: Operand) -> bool:
    """Whether c is a power of two whose inverse is one, without loss of bits."""
    power = exponent(c)
    if power is None or not floats(x):
        return False
    tiny, largest = finfo(x.dtype).tiny, finfo(x.dtype).max
    return float(tiny) <= math.ldexp(1.0, -power) <= float(largest)


@rewrite(lambda x, c: x / c, where=inverse_is_normal, types=PAIR)
def over_power_of_two(x: Array, c: Array) -> Array:
    return x * (1 / float(c))


def integer_power(x: Operand, c: Operand) -> bool:
    power = exponent(c)
    return power is not None and power > 0 and integers(x)


def unsigned_power(x: Operand, c: Operand) -> bool:
    return unsigned(x) and integer_power(x, c)


def log2(c: Array, like: Array) -> np.generic:
    """The exponent of a power of two, as a scalar of another operand's dtype."""
    return numpy_dtype(like.dtype).type(int(c).bit_length() - 1)


@rewrite(lambda x, c: x * c, where=integer_power, types=INTEGER_PAIR)
def times_power_of_two(x: Array, c: Array) -> Array:
    return lax.shift_left(x, log2(c, x))


@rewrite(lambda x, c: lax.div(x, c), where=unsigned_power, types=INTEGER_PAIR)
def unsigned_over_power_of_two(x: Array, c: Array) -> Array:
    return lax.shift_right_logical(x, log2(c, x))


@rewrite(lambda x, c: lax.rem(x, c), where=unsigned_power, types=INTEGER_PAIR)
def unsigned_rest_of_power_of_two(x: Array, c: Array) -> Array:
    return x & numpy_dtype(x.dtype).type(int(c) - 1)


@rewrite(lambda x: lax.integer_pow(x, 1), where=reals)
def first_power(x: Array) -> Array:
    return x


@rewrite(lambda x: lax.integer_pow(x, 2), where=reals)
def second_power(x: Array) -> Array:
    return x * x


@rewrite(lambda x: x**1.0, where=floats)
def power_one(x: Array) -> Array:
    return x


@rewrite(lambda x: x**2.0, where=floats, ulps=1)
def power_two(x: Array) -> Array:
    return x * x


@rewrite(lambda x: x**-1.0, where=floats, ulps=1)
def power_minus_one(x: Array) -> Array:
    return 1 / x


EXACT: tuple[Rewrite, ...] = (
    over_power_of_two,
    times_power_of_two,
    unsigned_over_power_of_two,
    unsigned_rest_of_power_of_two,
    first_power,
    second_power,
    power_one,
    power_two,
    power_minus_one,
)


# x**0.5 of -0.0 is 0.0 and of -inf is inf; a square root gives -0.0 and NaN.
@rewrite(lambda x: x**0.5, where=floats, ulps=1, domain=(0.0, float("inf")))
def power_half_fast(x: Array) -> Array:
    return lax.sqrt(x)


@rewrite(lambda x, y: x / lax.sqrt(y), where=floats, ulps=4, domain=(1e-6, 1e6))
def over_sqrt_fast(x: Array, y: Array) -> Array:
    return x * lax.rsqrt(y)


FAST: tuple[Rewrite, ...] = (power_half_fast, over_sqrt_fast)


def cheaper(*, fast: bool = False) -> tuple[Rewrite, ...]:
    """Cheaper operations instead of expensive ones.

    Without `fast`, results keep every bit, except for powers written with a float,
    which keep all but the last. With it, square roots stand for powers of a half and
    inverse square roots for quotients.

    >>> import verax
    >>> from verax.rewrites import apply, cheaper
    >>> print(verax.make_jaxpr(apply(cheaper())(lambda x: x / 8))(3.0))
    { lambda ; a:~f32[]. let b:~f32[] = mul a 0.125:~f32[] in (b,) }
    """
    return (*EXACT, *FAST) if fast else EXACT
