"""Floor 2: modified Bessel functions of the first kind, scaled by exp(-|x|).

One idea: scaled, they are smooth and bounded on two intervals, [0, 8] in x and [8, inf]
in 1/x, and Chebyshev's polynomials of moderate order are exact there::

    bessel_i0e(x)     # exp(-|x|) I0(x)

Source: NIST Digital Library of Mathematical Functions, section 10.29 for derivatives.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from verax.ir.avals import ShapedArray, finfo
from verax.ir.dtypes import float32
from verax.ir.jaxpr import NO_PARAMS, NoParams
from verax.ops.base import in_wide, odd
from verax.ops.elementwise.arith import (
    abs as magnitude,
    add,
    div,
    max as larger,
    mul,
    sign,
    sub,
)
from verax.ops.elementwise.bits import bitwise_and
from verax.ops.elementwise.compare import eq, gt, le, lt
from verax.ops.elementwise.convert import convert
from verax.ops.elementwise.exp_log import rsqrt
from verax.ops.elementwise.select import select
from verax.ops.reductions.reduce import reduce_or
from verax.ops.structure.create import full_like
from verax.rules.families.elementwise import elementwise
from verax.rules.programs.derived import lowered, repeat
from verax.rules.rows.emitter import Emitter, Operand
from verax.rules.rows.row import Domain, Rows, Traits
from verax.rules.values.array import Array
from verax.rules.values.constants import FLOAT
from verax.rules.values.lazy import LazyModule
from verax.rules.values.memo import pure

special = LazyModule("scipy.special")

SPLIT = 8.0
NEAR, FAR = 28, 25
"""Orders at which the coefficients fall below double precision."""
BESSEL = Domain(-20, 20, special=(0.0, np.inf, -np.inf, SPLIT))


@pure()
def coefficients(
    function: Callable[..., Any], odd: bool
) -> tuple[list[float], list[float]]:
    """Chebyshev's coefficients over x = 4 (t + 1), and over x = 16 / (t + 1).

    Near 0 those of an odd function are for f(x) / x, so that small values are exact.
    """

    def scaled(t: np.ndarray) -> np.ndarray:
        # Past 1e15 the scaled function is constant to double precision.
        x = 2 * SPLIT / np.maximum(t + 1, 1e-14)
        return np.asarray(np.sqrt(x) * function(x))

    def unscaled(t: np.ndarray) -> np.ndarray:
        x = SPLIT / 2 * (t + 1)
        return np.asarray(function(x) / x if odd else function(x))

    return interpolated(unscaled, NEAR), interpolated(scaled, FAR)


def interpolated(function: Callable[..., object], order: int) -> list[float]:
    """The coefficients of the polynomial that is the function at Chebyshev's points.

    All cosines are of the first turn: those of large multiples of an angle, as in
    NumPy's `chebinterpolate`, are some hundred units in the last place off.
    """
    count = order + 1
    turns = np.outer(np.arange(count), 2 * np.arange(count) + 1) % (4 * count)
    cosines = np.cos(np.pi / (2 * count) * np.arange(4 * count))
    out = 2 / count * (cosines[turns] @ function(cosines[turns[1]]))
    return [float(out[0]) / 2, *out[1:].tolist()]


def clenshaw(t: Array, series: Sequence[float]) -> Array:
    """The sum of Chebyshev's polynomials, by Clenshaw's recurrence."""
    double = add(t, t)
    ahead, last = full_like(t, 0), full_like(t, series[-1])
    for c in series[-2:0:-1]:
        last, ahead = add(sub(mul(double, last), ahead), full_like(t, c)), last
    return add(sub(mul(t, last), ahead), full_like(t, series[0]))


def seen(series: Sequence[float], x: Array) -> Sequence[float]:
    """The first terms of a series, after which no term changes a sum of x's dtype."""
    least = float(finfo(x.dtype).eps) / 8 * max(map(abs, series))
    count = max(i for i, c in enumerate(series) if abs(c) > least)
    return series[: count + 1]


def polynomial(function: Callable[..., object], odd: bool, x: Array) -> Array:
    """The function of |x|."""
    near, far = (seen(c, x) for c in coefficients(function, odd))
    size = magnitude(x)
    inner = clenshaw(sub(mul(size, 2 / SPLIT), 1.0), near)
    inner = mul(inner, size) if odd else inner
    away = larger(size, full_like(size, SPLIT))
    outer = mul(clenshaw(sub(div(2 * SPLIT, away), 1.0), far), rsqrt(away))
    return select(le(size, SPLIT), inner, outer)


def in_two_parts(function: Callable[..., object], odd: bool) -> Any:
    """The lowering of a scaled function; smaller floats are computed in float32."""

    def body(x: Array) -> tuple[Array]:
        full = x if finfo(x.dtype).bits >= 32 else convert(x, float32)
        array = polynomial(function, odd, full)
        return (convert(mul(array, sign(full)) if odd else array, x.dtype),)

    def lower(
        e: Emitter, p: NoParams, xs: Sequence[Operand], outs: Sequence[ShapedArray]
    ) -> Sequence[Operand]:
        return lowered(e, xs, body)

    return lower


def slope_of_i1e(x: Array, y: Array, t: Array) -> Array:
    """exp(-|x|) I0 - I1 (sign(x) + 1/x), which is 1/2 at 0."""
    none = eq(x, 0.0)
    safe = select(none, full_like(x, 1), x)
    slope = sub(bessel_i0e(safe), mul(y, add(sign(safe), div(1.0, safe))))
    return mul(t, select(none, full_like(x, 0.5), slope))


bessel_i0e_p = elementwise(
    "bessel_i0e",
    in_wide(special.i0e),
    jvp=lambda x, y, t: mul(t, sub(bessel_i1e(x), mul(sign(x), y))),
    lower=in_two_parts(special.i0e, False),
    accepts=FLOAT,
    domains=BESSEL,
    traits=Traits(keeps_zero=False),
)
bessel_i1e_p = elementwise(
    "bessel_i1e",
    in_wide(odd(special.i1e)),
    jvp=slope_of_i1e,
    lower=in_two_parts(special.i1e, True),
    accepts=FLOAT,
    domains=BESSEL,
    traits=Traits(keeps_zero=True),
)


def bessel_i0e(x: object) -> Array:
    """exp(-|x|) I0(x), with the modified Bessel function of the first kind.

    I0 itself would overflow where |x| is large. Source: DLMF, section 10.25.

    Args:
        x: a float array or scalar.

    Returns:
        An array of the shape and dtype of `x`.

    Raises:
        TypeError: `x` does not hold real floats.

    >>> import verax.numpy as vnp
    >>> from verax import lax
    >>> lax.bessel_i0e(vnp.array([0.0, 1.0, 1000.0, vnp.inf])).round(4)
    Array([1.    , 0.4658, 0.0126, 0.    ], dtype=float32)
    """
    return bessel_i0e_p.call(NO_PARAMS, x)


def bessel_i1e(x: object) -> Array:
    """exp(-|x|) I1(x), with the modified Bessel function of the first kind.

    I1 itself would overflow where |x| is large. Source: DLMF, section 10.25.

    Args:
        x: a float array or scalar.

    Returns:
        An array of the shape and dtype of `x`.

    Raises:
        TypeError: `x` does not hold real floats.

    >>> import verax.numpy as vnp
    >>> from verax import lax
    >>> lax.bessel_i1e(vnp.array([-1.0, 0.0, 1.0, 1000.0])).round(4)
    Array([-0.2079,  0.    ,  0.2079,  0.0126], dtype=float32)
    """
    return bessel_i1e_p.call(NO_PARAMS, x)


ROWS: Rows = (bessel_i0e_p, bessel_i1e_p)


# -----------------------------------------------------------------------------
# Series and continued fractions in lowerings, by loops.
#
# The loop runs until no element changes any more, and what an element has
# reached is then kept::
#
#     state = loop(e, start, step, operands)


STEPS = 10_000
"""So often a loop runs at most; it ends as soon as all elements have converged.

Incomplete functions take some nine roots of their parameters: enough for a million."""
TINY, LARGE = 1e-30, 1e30
MARGIN = 3.0
"""Factors of a fraction are one to within rounding errors, which are a few."""
type Loop = tuple[Operand, ...]


def large(change: Array, total: Array, margin: float = 1.0) -> Array:
    """Whether a change still counts; NaN does not."""
    eps = margin * float(finfo(total.dtype).eps)
    return gt(magnitude(change), mul(magnitude(total), eps))


def not_zero(x: Array) -> Array:
    return select(lt(magnitude(x), TINY), full_like(x, TINY), x)


def proceeds(*state: Array) -> Array:
    """Whether an element has not converged, and there are steps left."""
    n, going = state[0], state[-1]
    axes = tuple(range(going.ndim))
    left = lt(n, float(STEPS))
    return (
        reduce_or(bitwise_and(going, left), axes) if axes else bitwise_and(going, left)
    )


def loop(
    e: Emitter,
    start: Callable[..., Sequence[Array]],
    step: Callable[..., Sequence[Array]],
    operands: Sequence[Operand],
) -> Loop:
    """The state when all elements have converged."""
    return repeat(e, lowered(e, operands, start), proceeds, step)


def in_float32(lower: Callable[..., Sequence[Operand]]) -> Any:
    """A lowering that computes smaller floats in float32."""

    def wider(
        e: Emitter, p: NoParams, xs: Sequence[Operand], outs: Sequence[ShapedArray]
    ) -> Sequence[Operand]:
        dtype = outs[0].dtype
        if finfo(dtype).bits >= 32:
            return lower(e, xs)
        full = [lowered(e, (x,), as_float32)[0] for x in xs]
        return lowered(e, lower(e, full), lambda y: (convert(y, dtype),))

    return wider


def as_float32(x: Array) -> tuple[Array]:
    return (convert(x, float32),)
