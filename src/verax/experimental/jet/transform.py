"""From the derivatives of a curve to those of a function along it.

The table of rules does the work; here terms are brought into the form of the arguments,
divided by factorials, and those of the result are put back::

    jet(f, (x,), [[dx, ddx]])       # propagate(TAYLOR, f, (x,), (dx,), (ddx / 2,))
"""

from collections.abc import Callable, Sequence
from typing import Any, Final, final

import numpy as np

from verax import lax, numpy as vnp
from verax.api.trees.pytrees import tree_flatten, tree_map, tree_unflatten
from verax.extend import (
    CONTROL,
    STANDARD,
    Params,
    Parts,
    Propagation,
    Row,
    Rule,
    propagate,
)
from verax.ir.dtypes import is_inexact
from verax.ir.jaxpr import Jaxpr, Primitive
from verax.ops.calls.call import inlined
from verax.ops.elementwise.arith import IntegerPowParams
from verax.rules.rows.row import SomeRow
from verax.rules.values.array import Array
from verax.rules.values.conversions import shown
from verax.rules.values.sizes import ShapeError
from verax.transforms.engine.templates import equation_jvp

# -----------------------------------------------------------------------------
# Series in one variable, and what every primitive does to them.
#
# In place of a value stand the coefficients of a series in t, and one rule, derived
# from the derivative that each row has already, serves every primitive: if y = f(x(t)),
# then y' = df(x(t); x'(t)), so the coefficients of y, from the second on, are those of
# the derivative, which need one order less::
#
#     x = (x_0, x_1, x_2)             # x_0 + x_1 t + x_2 t^2
#     y_1 = df(x_0; x_1)
#     y_2 = 1/2 of the coefficient of t in df(x; x')
#
# References: Griewank and Walther, Evaluating Derivatives, chapter 13; Bettencourt,
# Johnson and Duvenaud, Taylor-mode automatic differentiation for higher-order
# derivatives (2019).


type Values = Sequence[Parts]
type Terms = Sequence[Array | None]


def term(parts: Parts, k: int) -> Array | None:
    """Coefficient k: what is not there is zero."""
    return parts[k] if k < len(parts) else None


def base(parts: Parts) -> Array:
    """The value at t = 0, which is always there."""
    assert parts[0] is not None
    return parts[0]


def series(terms: Terms, width: int) -> Parts:
    """All coefficients, None for zeros; the value alone if it is constant."""
    if all(x is None for x in terms[1:]):
        return tuple(terms[:1])
    return (*terms, *(None,) * (width - len(terms)))


def total(terms: Terms) -> Array | None:
    """The sum of what is there."""
    out: Array | None = None
    for x in terms:
        if x is not None:
            out = x if out is None else out + x
    return out


def times(factor: float, x: Array | None) -> Array | None:
    """A multiple of a coefficient."""
    return None if x is None else x if factor == 1 else x * factor


def product(x: Array | None, y: Array | None) -> Array | None:
    """The product of two coefficients."""
    return None if x is None or y is None else x * y


def width_of(values: Values) -> int:
    """The number of coefficients."""
    return max(map(len, values))


def fill(parts: Parts, width: int) -> Parts:
    """All coefficients as arrays, as the carry of a loop has them."""
    zero = vnp.zeros_like(base(parts))
    return tuple(
        [zero if x is None else x for x in [term(parts, k) for k in range(width)]]
    )


def derivative(parts: Parts) -> list[Array | None]:
    """The coefficients of x'."""
    return [times(k, term(parts, k)) for k in range(1, len(parts))]


def derived(primitive: Primitive) -> Any:
    """The rule of any primitive whose row has a jvp, by the idea above."""

    def rule(walk: Propagation, params: Params, values: Values) -> list[Parts]:
        assert isinstance(primitive, Row)
        active = tuple([len(parts) > 1 for parts in values])
        avals = tuple([base(parts).aval for parts in values])
        pushed, mask = equation_jvp(STANDARD, primitive, params, avals, active)
        ys = primitive.bind(params, *map(base, values))
        if not any(mask):
            return [(y,) for y in ys]
        expected = (False,) * len(ys) + (True,) * sum(mask)
        tangent, needed = STANDARD.dce(pushed, expected)
        moving = [parts for parts in values if len(parts) > 1]
        linear = not any(
            flag and read for flag, read in zip(active, needed, strict=False)
        )
        if linear:
            result = termwise(tangent, needed, values, moving)
        else:
            result = by_derivative(walk, tangent, needed, values, moving)
        rest = iter(result)
        return [
            series([y, *next(rest)], width_of(values)) if flag else (y,)
            for y, flag in zip(ys, mask, strict=True)
        ]

    return rule


def chosen[T](needed: Sequence[bool], xs: Sequence[T]) -> list[T]:
    return [x for x, flag in zip(xs, needed, strict=True) if flag]


def termwise(
    tangent: Jaxpr, needed: Sequence[bool], values: Values, moving: Values
) -> list[Terms]:
    """Applies a linear operation to each coefficient alone."""
    fixed = list(map(base, values))
    rows: list[list[Array | None]] = []
    for k in range(1, width_of(moving)):
        terms = [term(parts, k) for parts in moving]
        if all(x is None for x in terms):
            rows.append([None] * len(tangent.outvars))
            continue
        full = [
            vnp.zeros_like(base(parts)) if x is None else x
            for x, parts in zip(terms, moving, strict=True)
        ]
        rows.append(list(inlined(tangent, chosen(needed, [*fixed, *full]))))
    return list(zip(*rows, strict=True))


def by_derivative(
    walk: Propagation,
    tangent: Jaxpr,
    needed: Sequence[bool],
    values: Values,
    moving: Values,
) -> list[Terms]:
    """The coefficients of y from those of y', of which there is one less."""
    order = width_of(moving) - 1
    slopes: list[Parts] = []
    for parts in moving:
        first, *more = derivative(parts)
        start = vnp.zeros_like(base(parts)) if first is None else first
        slopes.append(series([start, *more], order))
    lower = [series(parts[:order], order) for parts in values]
    outs = walk(tangent, chosen(needed, [*lower, *slopes]))
    return [[times(1 / (k + 1), x) for k, x in enumerate(parts)] for parts in outs]


DERIVED = Propagation("jet", CONTROL, otherwise=derived, fill=fill)
"""Everything from the derivatives of the rows."""


# -----------------------------------------------------------------------------
# Rules of series in closed form, where one is cheaper than what is derived.
#
# A function that solves a differential equation has coefficients that follow from those
# before: a series of order d takes d^2 products, and no function is called but the one
# at t = 0::
#
#     y = exp(x)        y' = y x'              k y_k = sum of j x_j y_(k - j)
#     y = tanh(x)       y' = (1 - y^2) x'
#     y = sqrt(x)       y y = x
#
# References: Griewank and Walther, Evaluating Derivatives, section 13.2.


type Slope = Callable[[Terms, int], Array | None]
type Start = Callable[[Array], Array]


def bilinear(row: SomeRow) -> Any:
    """The product of two series, for every product: the sum of x_j y_(k - j)."""

    def rule(walk: Propagation, params: Params, values: Values) -> list[Parts]:
        x, y = values
        out: list[Array | None] = []
        for k in range(width_of(values)):
            pairs = [(term(x, j), term(y, k - j)) for j in range(k + 1)]
            both = [(a, b) for a, b in pairs if a is not None and b is not None]
            out.append(total([row.call(params, a, b) for a, b in both]))
        return [series(out, len(out))]

    return rule


def convolved(x: Terms, y: Terms, k: int) -> Array | None:
    """Coefficient k of the product of two series, as far as they are known."""
    return total([product(x[j], y[k - j]) for j in range(k + 1)])


def multiplied(x: Parts, y: Parts) -> Parts:
    """The product of two series of one width."""
    width = max(len(x), len(y))
    xs, ys = ([term(parts, k) for k in range(width)] for parts in (x, y))
    return series([convolved(xs, ys, k) for k in range(width)], width)


def quotient(walk: Propagation, params: Params, values: Values) -> list[Parts]:
    """z = x / y: from z y = x, z_k = (x_k - sum of z_j y_(k - j) for j < k) / y_0."""
    return [divided(*values)]


def divided(x: Parts, y: Parts) -> Parts:
    """The quotient of two series."""
    out: list[Array | None] = []
    for k in range(max(len(x), len(y))):
        known = total([product(out[j], term(y, k - j)) for j in range(k)])
        above = total([term(x, k), times(-1, known)])
        out.append(None if above is None else above / base(y))
    return series(out, len(out))


def squared(walk: Propagation, params: Params, values: Values) -> list[Parts]:
    """The product of a series and itself."""
    (x,) = values
    return [multiplied(x, x)]


def raised(walk: Propagation, params: IntegerPowParams, values: Values) -> list[Parts]:
    """A power by products: there is nothing to divide by at x_0 = 0."""
    (x,) = values
    out: Parts = (vnp.ones_like(base(x)),)
    factor, rest = x, abs(params.y)
    while rest:
        out = multiplied(out, factor) if rest % 2 else out
        rest //= 2
        factor = multiplied(factor, factor) if rest else factor
    if params.y < 0:
        out = divided((vnp.ones_like(base(x)),), out)
    return [out]


def integrated(parts: Parts, slope: Slope, start: Array) -> Parts:
    """y with y' = g x', where `slope(ys, k)` is coefficient k of g."""
    out: list[Array | None] = [start]
    speeds = derivative(parts)
    factors: list[Array | None] = []
    for k in range(len(speeds)):
        factors.append(slope(out, k))
        terms = [product(factors[k - j], speeds[j]) for j in range(k + 1)]
        out.append(times(1 / (k + 1), total(terms)))
    return series(out, len(out))


def by_slope(start: Start, slope: Slope) -> Any:
    """The rule of a function whose derivative is a polynomial of the function."""

    def rule(walk: Propagation, params: object, values: Values) -> list[Parts]:
        (x,) = values
        return [integrated(x, slope, start(base(x)))]

    return rule


def plus_one(ys: Terms, k: int) -> Array | None:
    """y + 1."""
    y = ys[k]
    return y + 1 if y is not None and k == 0 else y


def logistic_slope(ys: Terms, k: int) -> Array | None:
    """y - y^2, at the start as the derivative of the row says it: y (1 - y)."""
    y = ys[k]
    if k == 0 and y is not None:
        return y * (1 - y)
    return total([y, times(-1, convolved(ys, ys, k))])


def with_square(sign: float) -> Slope:
    """1 + y^2, or 1 - y^2."""

    def slope(ys: Terms, k: int) -> Array | None:
        square = times(sign, convolved(ys, ys, k))
        return 1 + square if square is not None and k == 0 else square

    return slope


def logarithm(shift: float, start: Start) -> Any:
    """y' (x + shift) = x', so that of k y_k all but k y_k (x_0 + shift) is known."""

    def rule(walk: Propagation, params: object, values: Values) -> list[Parts]:
        (x,) = values
        below = base(x) + shift if shift else base(x)
        out: list[Array | None] = [start(base(x))]
        for k in range(1, len(x)):
            turns = range(1, k)
            known = total([times(j / k, product(out[j], x[k - j])) for j in turns])
            above = total([x[k], times(-1, known)])
            out.append(None if above is None else above / below)
        return [series(out, len(out))]

    return rule


def root(walk: Propagation, params: object, values: Values) -> list[Parts]:
    """y y = x, so that of the product only 2 y_0 y_k is new."""
    (x,) = values
    start = vnp.sqrt(base(x))
    out: list[Array | None] = [start]
    for k in range(1, len(x)):
        known = total([product(out[j], out[k - j]) for j in range(1, k)])
        above = total([x[k], times(-1, known)])
        out.append(None if above is None else above / (2 * start))
    return [series(out, len(out))]


def wave(which: int, first: Start, second: Start, sign: float) -> Any:
    """u' = v x' and v' = sign u x': sine and cosine, or their hyperbolic kin."""

    def rule(walk: Propagation, params: object, values: Values) -> list[Parts]:
        (x,) = values
        speeds = derivative(x)
        us: list[Array | None] = [first(base(x))]
        vs: list[Array | None] = [second(base(x))]
        for k in range(len(speeds)):
            turns = range(k + 1)
            up = total([product(vs[k - j], speeds[j]) for j in turns])
            down = total([product(us[k - j], speeds[j]) for j in turns])
            us.append(times(1 / (k + 1), up))
            vs.append(times(sign / (k + 1), down))
        return [series((us, vs)[which], len(x))]

    return rule


CLOSED: dict[Primitive, Rule[Any]] = {
    lax.mul_p: bilinear(lax.mul_p),
    lax.dot_general_p: bilinear(lax.dot_general_p),
    lax.conv_general_dilated_p: bilinear(lax.conv_general_dilated_p),
    lax.div_p: quotient,
    lax.square_p: squared,
    lax.integer_pow_p: raised,
    lax.sqrt_p: root,
    lax.exp_p: by_slope(vnp.exp, lambda ys, k: ys[k]),
    lax.expm1_p: by_slope(vnp.expm1, plus_one),
    lax.tan_p: by_slope(vnp.tan, with_square(1)),
    lax.tanh_p: by_slope(vnp.tanh, with_square(-1)),
    lax.logistic_p: by_slope(lax.logistic, logistic_slope),
    lax.log_p: logarithm(0, vnp.log),
    lax.log1p_p: logarithm(1, vnp.log1p),
    lax.sin_p: wave(0, vnp.sin, vnp.cos, -1),
    lax.cos_p: wave(1, vnp.sin, vnp.cos, -1),
    lax.sinh_p: wave(0, vnp.sinh, vnp.cosh, 1),
    lax.cosh_p: wave(1, vnp.sinh, vnp.cosh, 1),
}
TAYLOR = DERIVED | CLOSED
"""The rules of `jet`: closed forms where there are some, and the others derived."""


@final
class ZeroSeries:
    """The type of `zero_series`."""

    __module__ = "verax.experimental.jet"

    def __repr__(self) -> str:
        return "zero_series"


@final
class ZeroTerm:
    """The type of `zero_term`."""

    __module__ = "verax.experimental.jet"

    def __repr__(self) -> str:
        return "zero_term"


zero_series: Final = ZeroSeries()
"""Stands for the terms of an argument that does not depend on the variable."""
zero_term: Final = ZeroTerm()
"""Stands for a term that is zero."""


def fact(n: Array | np.ndarray | float) -> Array:
    """The factorial of a number, or of each element of an array.

    >>> fact(4)
    Array(24., dtype=float32, weak_type=True)
    """
    return lax.exp(lax.lgamma(n + 1.0))


def jet(
    fun: Callable[..., object],
    primals: Sequence[object],
    series: Sequence[object],
    factorial_scaled: bool = True,
    *,
    rules: Propagation = TAYLOR,
) -> tuple[Any, Any]:
    """The derivatives of a function along a curve, up to any order.

    The curve is x(t), and `series` has its derivatives at t = 0; those of fun(x(t))
    come back. Loops and branches are allowed, and so are derivatives, batches and
    compilation of the result.

    Args:
        fun: a function of arrays, or of trees of them.
        primals: the arguments of `fun`: the curve at t = 0.
        series: for each argument the derivatives of order 1, 2, ...: a sequence of
            values of its shape (numbers stand for arrays of them; arguments that are
            trees have trees as terms), of one length for all. `zero_term` stands for a
            term that is zero, and `zero_series` for all terms of an argument. An
            argument of integers or booleans is constant: its terms are not read.
        factorial_scaled: if False, terms are the coefficients of t, t^2, ..., that is
            the derivatives divided by the factorial of their order.
        rules: what primitives do to series; `rules | {my_p: rule}` adds to them, see
            `verax.extend.Propagation`. `DERIVED` has no closed forms.

    Returns:
        the result at t = 0, and the same tree in which a list of terms stands for each
        array.

    Raises:
        ValueError: arguments have different numbers of terms, or a term has another
            structure or shape than its argument.
        MissingRule: a primitive has no derivative.

    References: A. Griewank, A. Walther, Evaluating Derivatives, 2008, chapter 13; J.
    Bettencourt, M. Johnson, D. Duvenaud, Taylor-mode automatic differentiation for
    higher-order derivatives, 2019.

    >>> import verax.numpy as vnp
    >>> y, (first, second) = jet(vnp.exp, (0.0,), [[2.0, 0.0]])
    >>> float(y), float(first), float(second)
    (1.0, 2.0, 4.0)
    """
    primals, series = tuple(primals), tuple(series)
    order = order_of(primals, series)
    scales = [1.0] * order
    if factorial_scaled:
        scales = [float(factor) for factor in np.cumprod(np.arange(1.0, order + 1))]
    args = tree_map(as_real, primals)
    columns = [
        tuple(
            [coefficients(args, terms, i, k, scale) for i, terms in enumerate(series)]
        )
        for k, scale in enumerate(scales)
    ]
    value, *rest = propagate(rules, fun, args, *columns)
    return value, terms_of(value, rest, scales)


def order_of(primals: tuple[object, ...], series: tuple[Any, ...]) -> int:
    """The number of terms each argument has.

    Raises:
        ValueError: they differ, or there are not as many series as arguments.
    """
    if len(primals) != len(series):
        raise ValueError(
            f"jet takes a sequence of terms for each argument: {len(series)} are given "
            f"for {len(primals)} arguments"
        )
    lengths = [len(x) for x in series if not isinstance(x, ZeroSeries)]
    if len(set(lengths)) > 1:
        raise ValueError(
            "jet terms have inconsistent lengths for different arguments: "
            f"{', '.join(map(str, lengths))}"
        )
    return lengths[0] if lengths else 0


def as_real(x: object) -> Any:
    """A Python integer is a number on a curve; arrays of integers are constant."""
    return float(x) if type(x) is int else x


def coefficients(
    args: tuple[object, ...],
    terms: Any,
    place: int,
    k: int,
    scale: float,
) -> Any:
    """Term k of an argument, of its shape and dtype and divided by `scale`.

    Raises:
        ValueError: it has another structure or shape.
    """
    leaves, tree = tree_flatten(args[place])
    term = zero_term if isinstance(terms, ZeroSeries) else terms[k]
    if isinstance(term, ZeroTerm):
        return tree_unflatten(tree, [None] * len(leaves))
    name = f"term {k} for argument {place}"
    try:
        given = tree.flatten_up_to(term)
    except ValueError as error:
        raise ValueError(
            f"{name} does not have the structure of the argument, {tree}: {error}"
        ) from error
    out: list[Array | None] = []
    for y, t in zip(leaves, given, strict=True):
        dtype, shape = vnp.result_type(y), vnp.shape(y)
        if not is_inexact(dtype) or isinstance(t, ZeroTerm):
            out.append(None)
            continue
        t = as_real(t)
        if not fits(vnp.shape(t), shape):
            raise ShapeError(
                f"{name} has the shape {vnp.shape(t)}, which does not fit the "
                f"argument, {shown(y)}"
            )
        same = vnp.result_type(t) == dtype
        full = vnp.broadcast_to(vnp.asarray(t, None if same else dtype), shape)
        out.append(full if scale == 1.0 else full / scale)
    return tree_unflatten(tree, out)


def fits(shape: tuple[int, ...], expected: tuple[int, ...]) -> bool:
    """Whether an array of `shape` broadcasts to the shape `expected`."""
    pairs = zip(reversed(shape), reversed(expected), strict=False)
    return len(shape) <= len(expected) and all([n in (1, m) for n, m in pairs])


def terms_of(value: object, rest: Sequence[object], scales: Sequence[float]) -> object:
    """The tree of a result, with a list of terms for each array."""
    leaves, tree = tree_flatten(value)
    rows = [tree.flatten_up_to(part) for part in rest]
    rows += [[None] * len(leaves)] * (len(scales) - len(rows))
    outs = [
        [scaled(y, row[i], scale) for row, scale in zip(rows, scales, strict=True)]
        for i, y in enumerate(leaves)
    ]
    return tree_unflatten(tree, outs)


def scaled(y: Array, term: Array | None, scale: float) -> Array:
    """A coefficient of a result times `scale`; what is not there is zero."""
    if term is not None:
        return term if scale == 1.0 else term * scale
    if is_inexact(vnp.result_type(y)):
        return vnp.zeros_like(y)
    return vnp.zeros(vnp.shape(y))
