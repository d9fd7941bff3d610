"""Floor 2: logarithms in double precision.

x is m 2^e with m near 1, and a polynomial of s = (m - 1) / (m + 1) gives log m::

    log m = log((1 + s) / (1 - s)) = 2 s + 2 s³ / 3 + ...
"""

from typing import Final

import numpy as np

from verax.ir.dtypes import float32, float64
from verax.ops.elementwise.arith import abs as magnitude, add, div, mul, sub
from verax.ops.elementwise.compare import eq, gt, lt
from verax.ops.elementwise.kernels.parts import (
    Coefficients,
    PerDtype,
    exponent_and_fraction,
    horner,
    power_of_two,
)
from verax.ops.elementwise.select import select
from verax.rules.values.array import Array

LN2: Final = 0.6931471805599453
# log 2 in a piece that has an exact product with every exponent, and the rest.
LN2_PARTS: Final = (0.6931471805598903, 5.497923018708371e-14)
# (log((1 + √z) / (1 - √z)) / √z - 2) / z
LOG: Final = (
    0.6666666666666735,
    0.3999999999941112,
    0.2857142874325491,
    0.22222198477003505,
    0.18183569675585984,
    0.15313905171534642,
    0.14797485739775412,
)


def log_of_positive(x: Array, more: Array | None = None) -> Array:
    """log x of positive and normal x, or log(1 + more) where x is that, rounded."""
    exponent, fraction = exponent_and_fraction(x)
    f = sub(fraction, 1.0)
    s = div(f, add(f, 2.0))
    z = mul(s, s)
    half = mul(mul(f, f), 0.5)
    high, low = LN2_PARTS
    small = mul(exponent, low)
    if more is not None:
        # Not x itself less 1, which some compilers take for what it was made of.
        whole = mul(fraction, power_of_two(exponent))
        lost = select(lt(x, WHOLE), sub(more, sub(whole, 1.0)), 0.0)
        small = add(small, div(lost, x))
    bend = add(mul(s, add(half, mul(z, horner(z, LOG)))), small)
    return add(mul(exponent, high), sub(f, sub(half, bend)))


def log(x: Array) -> Array:
    """The natural logarithm."""
    y = log_of_positive(x)
    y = select(eq(x, np.inf), x, y)
    return outside(x, y)


def outside(x: Array, y: Array) -> Array:
    """y = log x where x is positive: -inf of zeros, NaN of negative numbers and NaN."""
    y = select(gt(x, 0.0), y, np.nan)
    return select(lt(magnitude(x), TINY), -np.inf, y)


# The same further out, where z is at most 1/9
LOG_OF_MORE: Final[PerDtype[Coefficients]] = {
    float32: (
        0.6666667561499785,
        0.3999887806564729,
        0.28616882974985786,
        0.21427618473745413,
        0.2430125052567635,
    ),
    float64: (
        0.6666666666666666,
        0.3999999999999999,
        0.28571428571430624,
        0.2222222222196758,
        0.18181818200446728,
        0.15384614510161218,
        0.133333610022335,
        0.11764099557113811,
        0.10535612357826296,
        0.09424673680534085,
        0.09411610107333726,
        0.047067579330719554,
        0.1575531720747812,
    ),
}
WHOLE: Final = 2.0**60
"""Nothing is lost by adding 1 to larger numbers."""
TINY: Final = float(np.finfo(np.float64).tiny)


def log2(x: Array) -> Array:
    """The logarithm to base 2."""
    return div(log(x), LN2)


def log_plus_one(x: Array) -> Array:
    """log(1 + x), where what is lost by adding 1 is added again."""
    u = add(x, 1.0)
    y = log_of_positive(u, x)
    y = select(eq(u, np.inf), u, y)
    y = outside(u, y)
    return select(lt(magnitude(x), 1e-16), x, y)


def log_of_more(x: Array) -> Array:
    """log(1 + x) for 0 <= x <= 1, in either precision, without an exponent to split."""
    s = div(x, add(x, 2.0))
    z = mul(s, s)
    return add(mul(s, 2.0), mul(mul(s, z), horner(z, LOG_OF_MORE[x.dtype])))
