"""Rules of series in closed form, where one is cheaper than what is derived.

A function that solves a differential equation has coefficients that follow from those
before: a series of order d takes d^2 products, and no function is called but the one at
t = 0::

    y = exp(x)        y' = y x'              k y_k = sum of j x_j y_(k - j)
    y = tanh(x)       y' = (1 - y^2) x'
    y = sqrt(x)       y y = x

References: Griewank and Walther, Evaluating Derivatives, section 13.2.
"""

from collections.abc import Callable
from typing import Any

from verax import lax, numpy as vnp
from verax.experimental.jet.series import (
    DERIVED,
    Terms,
    Values,
    base,
    derivative,
    product,
    series,
    term,
    times,
    total,
    width_of,
)
from verax.extend import Params, Parts, Propagation, Row, Rule
from verax.ir.jaxpr import Primitive
from verax.rules.values.array import Array

type Slope = Callable[[Terms, int], Array | None]
type Start = Callable[[Array], Array]


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
    found: list[Array | None] = []
    for k in range(max(len(x), len(y))):
        known = total([product(found[j], term(y, k - j)) for j in range(k)])
        above = total([term(x, k), times(-1, known)])
        found.append(None if above is None else above / base(y))
    return series(found, len(found))


def squared(walk: Propagation, params: Params, values: Values) -> list[Parts]:
    """The product of a series and itself."""
    (x,) = values
    return [multiplied(x, x)]


def raised(walk: Propagation, params: Any, values: Values) -> list[Parts]:
    """A power by products: there is nothing to divide by at x_0 = 0."""
    (x,) = values
    found: Parts = (vnp.ones_like(base(x)),)
    factor, rest = x, abs(params.y)
    while rest:
        found = multiplied(found, factor) if rest % 2 else found
        rest //= 2
        factor = multiplied(factor, factor) if rest else factor
    if params.y < 0:
        found = divided((vnp.ones_like(base(x)),), found)
    return [found]


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


def by_slope(start: Start, slope: Slope) -> Any:
    """The rule of a function whose derivative is a polynomial of the function."""

    def rule(walk: Propagation, params: Any, values: Values) -> list[Parts]:
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

    def rule(walk: Propagation, params: Any, values: Values) -> list[Parts]:
        (x,) = values
        below = base(x) + shift if shift else base(x)
        found: list[Array | None] = [start(base(x))]
        for k in range(1, len(x)):
            turns = range(1, k)
            known = total([times(j / k, product(found[j], x[k - j])) for j in turns])
            above = total([x[k], times(-1, known)])
            found.append(None if above is None else above / below)
        return [series(found, len(found))]

    return rule


def root(walk: Propagation, params: Any, values: Values) -> list[Parts]:
    """y y = x, so that of the product only 2 y_0 y_k is new."""
    (x,) = values
    start = vnp.sqrt(base(x))
    found: list[Array | None] = [start]
    for k in range(1, len(x)):
        known = total([product(found[j], found[k - j]) for j in range(1, k)])
        above = total([x[k], times(-1, known)])
        found.append(None if above is None else above / (2 * start))
    return [series(found, len(found))]


def wave(which: int, first: Start, second: Start, sign: float) -> Any:
    """u' = v x' and v' = sign u x': sine and cosine, or their hyperbolic kin."""

    def rule(walk: Propagation, params: Any, values: Values) -> list[Parts]:
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
