"""Algebraic identities: exact ones, and with `fast=True` those of the real numbers.

One idea: IEEE 754 keeps more identities than its reputation says, and fewer than a
textbook. The exact rules give the same bits for every operand, -0.0, infinities and
NaN included (any NaN is as good as another), in every dtype they apply to::

    x - (-y) = x + y        always
    x + 0.0 = x             not for -0.0: `fast` only
"""

import verax.lax as lax
import verax.numpy as vnp
from verax.rewrites.applying import floats, integers, reals
from verax.rules.values.array import Array
from verax.transforms.patterns.rewrite_rules import Rewrite, rewrite

SAME: tuple[Rewrite, ...] = tuple(
    [
        rewrite(pattern, where=where, types=types, name=name)(lambda x, **_: x)
        for name, pattern, where, types in (
            ("double_negation", lambda x: lax.neg(lax.neg(x)), None, ()),
            ("times_one", lambda x: x * 1, reals, ()),
            ("over_one", lambda x: x / 1, floats, ()),
            ("minus_zero", lambda x: x - 0, reals, ()),
            ("plus_negative_zero", lambda x: x + -0.0, floats, ()),
            ("plus_zero", lambda x: x + 0, integers, ()),
            ("max_of_same", lambda x: lax.max(x, x), reals, ()),
            ("min_of_same", lambda x: lax.min(x, x), reals, ()),
            ("double_not", lambda x: ~(~x), None, (("i32[2,3]",),)),
            ("and_of_same", lambda x: x & x, None, (("i32[2,3]",),)),
            ("or_of_same", lambda x: x | x, None, (("i32[2,3]",),)),
            ("or_zero", lambda x: x | 0, None, (("i32[2,3]",),)),
            ("xor_zero", lambda x: x ^ 0, None, (("i32[2,3]",),)),
            (
                "reversed_twice",
                lambda x, d=(0,): lax.rev(lax.rev(x, d), d),
                None,
                (("f32[2,3]",),),
            ),
        )
    ]
)


@rewrite(lambda x: lax.abs(lax.abs(x)), where=reals)
def abs_of_abs(x: Array) -> Array:
    return lax.abs(x)


@rewrite(lambda x: lax.abs(-x))
def abs_of_negated(x: Array) -> Array:
    return lax.abs(x)


@rewrite(lambda x: lax.floor(lax.floor(x)))
def floor_of_floor(x: Array) -> Array:
    return lax.floor(x)


@rewrite(lambda x: lax.ceil(lax.ceil(x)))
def ceil_of_ceil(x: Array) -> Array:
    return lax.ceil(x)


@rewrite(lambda x: x * -1, where=reals)
def times_minus_one(x: Array) -> Array:
    return -x


@rewrite(lambda x: -0.0 - x, where=floats)
def negative_zero_minus(x: Array) -> Array:
    return -x


@rewrite(lambda x, y: x - (-y))
def minus_negated(x: Array, y: Array) -> Array:
    return x + y


@rewrite(lambda x, y: x + (-y))
def plus_negated(x: Array, y: Array) -> Array:
    return x - y


@rewrite(lambda x, y: (-x) * (-y), where=reals)
def product_of_negated(x: Array, y: Array) -> Array:
    return x * y


@rewrite(lambda x, y: (-x) / (-y), where=floats)
def quotient_of_negated(x: Array, y: Array) -> Array:
    return x / y


@rewrite(lambda x: x - x, where=integers, types=[["i32[2,3]"]])
def minus_itself(x: Array) -> Array:
    return vnp.zeros_like(x)


@rewrite(lambda x: x ^ x, types=[["i32[2,3]"]])
def xor_itself(x: Array) -> Array:
    return vnp.zeros_like(x)


@rewrite(lambda x: x * 0, where=integers, types=[["i32[2,3]"]])
def times_zero(x: Array) -> Array:
    return vnp.zeros_like(x)


@rewrite(lambda c, x: lax.select(c, x, x), types=[("bool[2,3]", "f32[2,3]")])
def choice_of_same(c: Array, x: Array) -> Array:
    return x


@rewrite(
    lambda x, p=(1, 2, 0), q=(2, 1, 0): lax.transpose(lax.transpose(x, p), q),
    types=[["f32[2,3,4]"]],
)
def transposed_twice(x: Array, p: tuple[int, ...], q: tuple[int, ...]) -> Array:
    return lax.transpose(x, tuple([p[i] for i in q]))


@rewrite(
    lambda x, s=(6,), t=(3, 2): lax.reshape(lax.reshape(x, s), t),
    types=[["f32[2,3]"]],
)
def reshaped_twice(x: Array, s: tuple[int, ...], t: tuple[int, ...]) -> Array:
    return lax.reshape(x, t)


EXACT: tuple[Rewrite, ...] = (
    *SAME,
    abs_of_abs,
    abs_of_negated,
    floor_of_floor,
    ceil_of_ceil,
    times_minus_one,
    negative_zero_minus,
    minus_negated,
    plus_negated,
    product_of_negated,
    quotient_of_negated,
    minus_itself,
    xor_itself,
    times_zero,
    choice_of_same,
    transposed_twice,
    reshaped_twice,
)


@rewrite(lambda x: x + 0.0, where=floats, name="plus_zero_fast", domain=(1e-6, 1e6))
def plus_zero_fast(x: Array) -> Array:
    return x


@rewrite(lambda x: x * 0, where=floats, domain=(0.0, 1e6))
def times_zero_fast(x: Array) -> Array:
    return vnp.zeros_like(x)


@rewrite(lambda x: x - x, where=floats, domain=(-1e6, 1e6))
def minus_itself_fast(x: Array) -> Array:
    return vnp.zeros_like(x)


@rewrite(lambda x: x / x, where=floats, domain=(1e-6, 1e6))
def over_itself_fast(x: Array) -> Array:
    return vnp.ones_like(x)


@rewrite(lambda x: vnp.log(vnp.exp(x)), where=floats, ulps=1, domain=(-8, 8))
def log_of_exp_fast(x: Array) -> Array:
    return x


@rewrite(lambda x: vnp.exp(vnp.log(x)), where=floats, ulps=1, domain=(1e-6, 1e6))
def exp_of_log_fast(x: Array) -> Array:
    return x


@rewrite(lambda x: vnp.sqrt(x) * vnp.sqrt(x), where=floats, ulps=1, domain=(1e-6, 1e6))
def square_of_sqrt_fast(x: Array) -> Array:
    return x


@rewrite(lambda x, y, z: x * y + x * z, where=floats, ulps=4, domain=(1e-2, 1e2))
def common_factor_fast(x: Array, y: Array, z: Array) -> Array:
    return x * (y + z)


@rewrite(lambda x, y: x * y / y, where=floats, ulps=2, domain=(1e-6, 1e6))
def product_over_factor_fast(x: Array, y: Array) -> Array:
    return x


FAST: tuple[Rewrite, ...] = (
    plus_zero_fast,
    times_zero_fast,
    minus_itself_fast,
    over_itself_fast,
    log_of_exp_fast,
    exp_of_log_fast,
    square_of_sqrt_fast,
    common_factor_fast,
    product_over_factor_fast,
)


def algebra(*, fast: bool = False) -> tuple[Rewrite, ...]:
    """Algebraic identities, which make programs shorter.

    Without `fast`, results keep every bit. With it, rules of the real numbers are
    added: they ignore NaN, infinities, signs of zero and rounding, as their domains
    and `ulps` say.

    >>> import verax
    >>> from verax.rewrites import algebra, apply
    >>> print(verax.make_jaxpr(apply(algebra())(lambda x, y: (x * 1 - -y) / 1))(2., 3.))
    { lambda ; a:~f32[] b:~f32[]. let c:~f32[] = add a b in (c,) }
    """
    return (*EXACT, *FAST) if fast else EXACT
