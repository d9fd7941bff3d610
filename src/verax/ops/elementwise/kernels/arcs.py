"""Floor 2: arc sine, arc cosine and the angle of a point, from near zero.

An arc sine above 1/2 is that of half the complement, and the angle of a point is that
of the smaller coordinate over the larger one::

    asin x = π/2 - 2 asin √((1 - x) / 2)
"""

from typing import Final

import numpy as np

from verax.ir.dtypes import float32, float64
from verax.ops.elementwise.arith import (
    abs as magnitude,
    add,
    div,
    max as larger,
    min as smaller,
    mul,
    sub,
)
from verax.ops.elementwise.compare import eq, gt, lt
from verax.ops.elementwise.exp_log import sqrt
from verax.ops.elementwise.kernels.parts import (
    Coefficients,
    PerDtype,
    bits_of,
    odd,
    with_sign_of,
)
from verax.ops.elementwise.select import select
from verax.rules.values.array import Array

# π/2 in the dtype, and what is missing.
RIGHT: Final[PerDtype[tuple[float, float]]] = {
    float32: (1.5707963705062866, -4.371139000186241e-08),
    float64: (1.5707963267948966, 6.123233995736766e-17),
}
# (asin √z - √z) / z^3/2
ARC_SINE: Final[PerDtype[Coefficients]] = {
    float32: (
        0.16666753457964606,
        0.07495254190834019,
        0.04547636698848725,
        0.024147318444980078,
        0.0422252377817118,
    ),
    float64: (
        0.16666666666665372,
        0.07500000000345988,
        0.04464285682065698,
        0.030381959463180945,
        0.02237175001202829,
        0.017359828997310405,
        0.013883980663875181,
        0.012177621099893735,
        0.006490906205574798,
        0.019631533307994536,
        -0.01638904157563406,
        0.03202702986411724,
    ),
}
# (atan √z - √z) / z^3/2
ARC_TANGENT: Final[PerDtype[Coefficients]] = {
    float32: (
        -0.3333329908797972,
        0.19998548176278813,
        -0.1426424043006818,
        0.10952179587117339,
        -0.08403433788528229,
        0.05795733495070126,
        -0.031177607966772446,
        0.010914486056349216,
        -0.0017935962320414953,
    ),
    float64: (
        -0.3333333333333307,
        0.1999999999995146,
        -0.14285714282575113,
        0.11111111007026592,
        -0.09090907002998412,
        0.07692279839343732,
        -0.06666404057699045,
        0.05880527813717158,
        -0.052535185427696175,
        0.04722322165804933,
        -0.042191787884494736,
        0.036641907020995804,
        -0.029903851851404747,
        0.021984844998516755,
        -0.013900552402882784,
        0.0071964981078858495,
        -0.00288491613711741,
        0.0008313211665084157,
        -0.0001521607537323704,
        1.322506848734682e-05,
    ),
}


def from_angle(right: float, x: Array) -> Array:
    """As many right angles less x, in all digits."""
    most, rest = RIGHT[x.dtype]
    return sub(right * most, sub(x, right * rest))


def small_arc(x: Array) -> tuple[Array, Array]:
    """Whether |x| is above 1/2, and asin |x|, or asin √((1 - |x|) / 2) there."""
    size = magnitude(x)
    large = gt(size, 0.5)
    root = select(large, sqrt(mul(sub(1.0, size), 0.5)), size)
    return large, add(root, odd(root, ARC_SINE[x.dtype]))


def asin(x: Array) -> Array:
    """The arc sine; NaN outside [-1, 1]."""
    large, arc = small_arc(x)
    return with_sign_of(select(large, from_angle(1, mul(arc, 2.0)), arc), x)


def acos(x: Array) -> Array:
    """The arc cosine; NaN outside [-1, 1]."""
    large, arc = small_arc(x)
    twice = mul(arc, 2.0)
    ends = select(lt(x, 0.0), from_angle(2, twice), twice)
    return select(large, ends, from_angle(1, with_sign_of(arc, x)))


def atan2(y: Array, x: Array) -> Array:
    """The angle of the point (x, y), as the C standard has zeros and infinities."""
    high, wide = magnitude(y), magnitude(x)
    low, top = smaller(high, wide), larger(high, wide)
    ratio = div(low, select(eq(top, 0.0), 1.0, top))
    ratio = select(eq(low, np.inf), 1.0, ratio)
    angle = add(ratio, odd(ratio, ARC_TANGENT[x.dtype]))
    angle = select(gt(high, wide), from_angle(1, angle), angle)
    angle = select(lt(bits_of(x), 0), from_angle(2, angle), angle)
    return with_sign_of(angle, y)
