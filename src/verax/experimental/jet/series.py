"""Series in one variable, and what every primitive does to them.

In place of a value stand the coefficients of a series in t, and one rule, derived from
the derivative that each row has already, serves every primitive: if y = f(x(t)), then
y' = df(x(t); x'(t)), so the coefficients of y, from the second on, are those of the
derivative, which need one order less::

    x = (x_0, x_1, x_2)             # x_0 + x_1 t + x_2 t^2
    y_1 = df(x_0; x_1)
    y_2 = 1/2 of the coefficient of t in df(x; x')

References: Griewank and Walther, Evaluating Derivatives, chapter 13; Bettencourt,
Johnson and Duvenaud, Taylor-mode automatic differentiation for higher-order derivatives
(2019).
"""

from collections.abc import Sequence
from typing import Any

from verax import numpy as vnp
from verax.extend import CONTROL, STANDARD, Params, Parts, Propagation, Row
from verax.ir.jaxpr import Jaxpr, Primitive
from verax.ops.calls.subjaxprs import inlined
from verax.rules.values.array import Array
from verax.transforms.engine.templates import equation_jvp

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
    found: Array | None = None
    for x in terms:
        if x is not None:
            found = x if found is None else found + x
    return found


def times(factor: float, x: Array | None) -> Array | None:
    """A multiple of a coefficient."""
    return None if x is None else x if factor == 1 else x * factor


def product(x: Array | None, y: Array | None) -> Array | None:
    """The product of two coefficients."""
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
    tangent: Jaxpr, needed: Sequence[bool], values: Values, moving: Values
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
