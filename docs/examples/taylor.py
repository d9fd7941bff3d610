"""Taylor series through any program: a transformation that verax does not have.

One idea: in place of a value stand the coefficients of a series in one variable t, and
one rule, derived from the derivative that each row has already, serves every primitive:
if y = f(x(t)) then y' = df(x(t); x'(t)), so the coefficients of y, from the second on,
are those of the derivative, which need one order less::

    y, (y1, y2) = taylor(f, (x,), [(1.0,), (0.0,)])     # f(x + t) = y + y1 t + y2 t^2

The closed forms of TABLE are there for speed: a product needs no recursion.
References: Griewank and Walther, Evaluating Derivatives, chapter 13; Bettencourt,
Johnson and Duvenaud, Taylor-mode automatic differentiation for higher-order derivatives
(2019).
"""

from collections.abc import Callable, Sequence
from typing import Any

import verax
import verax.numpy as vnp
from verax import Array, lax
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
from verax.ir.jaxpr import Primitive
from verax.ops.calls.subjaxprs import inlined
from verax.transforms.engine.templates import equation_jvp

type Values = Sequence[Parts]
type Terms = Sequence[Array | None]
type Slope = Callable[[Terms, int], Array | None]


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
    found: Array | None = None
    for x in terms:
        if x is not None:
            found = x if found is None else found + x
    return found


def times(factor: float, x: Array | None) -> Array | None:
    return None if x is None else x if factor == 1 else x * factor


def product(x: Array | None, y: Array | None) -> Array | None:
    return None if x is None or y is None else x * y


def width_of(values: Values) -> int:
    """How many coefficients there are."""
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
        wanted = (False,) * len(ys) + (True,) * sum(mask)
        tangent, needed = STANDARD.dce(pushed, wanted)
        moving = [parts for parts in values if len(parts) > 1]
        linear = not any(
            flag and read for flag, read in zip(active, needed, strict=False)
        )
        if linear:
            found = termwise(tangent, needed, values, moving)
        else:
            found = by_derivative(walk, tangent, needed, values, moving)
        rest = iter(found)
        return [
            series([y, *next(rest)], width_of(values)) if flag else (y,)
            for y, flag in zip(ys, mask, strict=True)
        ]

    return rule


def chosen[T](needed: Sequence[bool], xs: Sequence[T]) -> list[T]:
    return [x for x, flag in zip(xs, needed, strict=True) if flag]


def termwise(
    tangent: Any, needed: Sequence[bool], values: Values, moving: Values
) -> list[Terms]:
    """What is linear acts on each coefficient alone."""
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
    tangent: Any,
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


def bilinear(row: Row[Any]) -> Any:
    """The product of two series, for every product: the sum of x_j y_(k - j)."""

    def rule(walk: Propagation, params: Params, values: Values) -> list[Parts]:
        x, y = values
        found: list[Array | None] = []
        for k in range(width_of(values)):
            pairs = [(term(x, j), term(y, k - j)) for j in range(k + 1)]
            both = [(a, b) for a, b in pairs if a is not None and b is not None]
            found.append(total([row.call(params, a, b) for a, b in both]))
        return [series(found, len(found))]

    return rule


def quotient(walk: Propagation, params: Params, values: Values) -> list[Parts]:
    """z = x / y: from z y = x, z_k = (x_k - sum of z_j y_(k - j) for j < k) / y_0."""
    x, y = values
    found: list[Array | None] = []
    for k in range(width_of(values)):
        known = total([product(found[j], term(y, k - j)) for j in range(k)])
        above = total([term(x, k), times(-1, known)])
        found.append(None if above is None else above / base(y))
    return [series(found, len(found))]


def integrated(parts: Parts, slope: Slope, start: Array) -> Parts:
    """y with y' = g x', where `slope(ys, k)` is coefficient k of g."""
    found: list[Array | None] = [start]
    speeds = derivative(parts)
    factors: list[Array | None] = []
    for k in range(len(speeds)):
        factors.append(slope(found, k))
        terms = [product(factors[k - j], speeds[j]) for j in range(k + 1)]
        found.append(times(1 / (k + 1), total(terms)))
    return series(found, len(found))


def exponential(walk: Propagation, params: Params, values: Values) -> list[Parts]:
    (x,) = values
    return [integrated(x, lambda ys, k: ys[k], vnp.exp(base(x)))]


def logarithm(walk: Propagation, params: Params, values: Values) -> list[Parts]:
    """y' x = x', so k y_k x_0 = k x_k - the sum of j y_j x_(k - j)."""
    (x,) = values
    found: list[Array | None] = [vnp.log(base(x))]
    for k in range(1, len(x)):
        known = total([times(j / k, product(found[j], x[k - j])) for j in range(1, k)])
        above = total([x[k], times(-1, known)])
        found.append(None if above is None else above / base(x))
    return [series(found, len(found))]


def wave(which: int) -> Any:
    """u' = v x' and v' = -u x', for the sine u and the cosine v."""

    def rule(walk: Propagation, params: Params, values: Values) -> list[Parts]:
        (x,) = values
        speeds = derivative(x)
        us: list[Array | None] = [vnp.sin(base(x))]
        vs: list[Array | None] = [vnp.cos(base(x))]
        for k in range(len(speeds)):
            turns = range(k + 1)
            up = total([product(vs[k - j], speeds[j]) for j in turns])
            down = total([product(us[k - j], speeds[j]) for j in turns])
            us.append(times(1 / (k + 1), up))
            vs.append(times(-1 / (k + 1), down))
        return [series((us, vs)[which], len(x))]

    return rule


TABLE: dict[Primitive, Rule[Any]] = {
    lax.mul_p: bilinear(lax.mul_p),
    lax.dot_general_p: bilinear(lax.dot_general_p),
    lax.div_p: quotient,
    lax.exp_p: exponential,
    lax.log_p: logarithm,
    lax.sin_p: wave(0),
    lax.cos_p: wave(1),
}
DERIVED = Propagation("taylor", CONTROL, otherwise=derived, fill=fill)
"""Everything from the derivatives of the rows."""
TAYLOR = DERIVED | TABLE
"""And closed forms where there are some."""


def taylor(
    fun: Callable[..., Any],
    primals: tuple[Any, ...],
    coefficients: Sequence[tuple[Any, ...]],
    table: Propagation = TAYLOR,
) -> tuple[Any, list[Any]]:
    """The Taylor coefficients of `fun` along a curve.

    Args:
        primals: the arguments of `fun`, the curve at t = 0.
        coefficients: those of t, t^2, ... of the curve, each as `primals`, in which
            None in place of an array stands for zero.
        table: the rules.

    Returns:
        the result at t = 0, and its coefficients of t, t^2, ..., as many as were given.

    >>> y, (first, second) = taylor(vnp.exp, (0.0,), [(1.0,), (0.0,)])
    >>> float(y), float(first), float(second)
    (1.0, 1.0, 0.5)
    """
    verax.tree.map(check, (primals,) * len(coefficients), tuple(coefficients))
    value, *found = propagate(table, fun, primals, *coefficients)
    zeros = verax.tree.map(vnp.zeros_like, value)
    full = [*found, *[zeros] * (len(coefficients) - len(found))]
    return value, [
        verax.tree.map(present, tree, zeros, is_leaf=lambda x: x is None)
        for tree in full
    ]


def present(x: Any, zero: Array) -> Any:
    return zero if x is None else x


def check(x: Any, coefficient: Any) -> None:
    """Raise TypeError unless a coefficient fits what it belongs to."""
    if coefficient is None:
        return
    shape, dtype, given = vnp.shape(x), vnp.result_type(x), vnp.shape(coefficient)
    if shape != given or not vnp.issubdtype(dtype, vnp.inexact):
        raise TypeError(
            "taylor takes coefficients of float or complex arguments, of their shape; "
            f"one of shape {given} is given for an argument of {dtype}{list(shape)}"
        )
