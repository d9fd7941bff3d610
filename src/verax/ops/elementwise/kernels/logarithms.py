"""Floor 2: logarithms in double precision, and log(1 + x) in both.

x is m 2^e with m near 1, and a polynomial of s = (m - 1) / (m + 1) gives log m::

    log m = log((1 + s) / (1 - s)) = 2 s + 2 s³ / 3 + ...

In single precision the polynomial is one of f = m - 1, without a division.
"""

from typing import Final

import numpy as np

from verax.ir.dtypes import float32, float64
from verax.ops.elementwise.arith import abs as magnitude, add, div, mul, sub
from verax.ops.elementwise.compare import eq, gt, lt
from verax.ops.elementwise.kernels.parts import (
    Coefficients,
    PerDtype,
    bits_of,
    exponent_and_fraction,
    float_of,
    horner,
    power_of_two,
    with_sign_of,
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
# (log(1 + f) - f + f²/2) / f³ for 1 + f from √1/2 to √2, and log 2 as above, for single
# precision.
BEND: Final = (
    0.33333311908414526,
    -0.24999986581730343,
    0.2000214790631471,
    -0.16669207601199243,
    0.1421997519185701,
    -0.12385692179547075,
    0.11865646071762757,
    -0.11780012426370319,
    0.06918952617887567,
)
ONE: Final = 0x3F800000
"""Its bits in single precision."""
LN2_SHORT: Final = (0.693359375, -0.00021219444005469057)
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


def log_plus_one_short(x: Array) -> Array:
    """log(1 + x) in single precision: 1 + x is 2^k (1 + f), where f has all digits.

    It is the sum of 2^-k x, which is exact, and 2^-k - 1.
    """
    u = add(x, 1.0)
    k, fraction = exponent_and_fraction(u)
    scale = float_of(add(sub(bits_of(fraction), bits_of(u)), ONE), float32)
    f = add(mul(x, scale), sub(scale, 1.0))
    f = select(lt(u, WHOLE), f, sub(fraction, 1.0))
    square = mul(f, f)
    high, low = LN2_SHORT
    small = add(mul(mul(square, f), horner(f, BEND)), mul(k, low))
    y = add(add(f, sub(small, mul(square, 0.5))), mul(k, high))
    y = select(gt(u, 0.0), y, select(eq(u, 0.0), -np.inf, np.nan))
    return with_sign_of(select(lt(u, np.inf), y, u), x)


def log_of_more(x: Array) -> Array:
    """log(1 + x) for 0 <= x <= 1, in either precision, without an exponent to split."""
    s = div(x, add(x, 2.0))
    z = mul(s, s)
    return add(mul(s, 2.0), mul(mul(s, z), horner(z, LOG_OF_MORE[x.dtype])))
