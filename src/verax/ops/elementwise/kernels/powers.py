"""Floor 2: powers and cube roots.

In single precision x^y is 2 to the power y log2 x in double precision, which leaves no
error to see. In double precision the logarithm is a sum of two floats, of which the
first has 26 bits, so that its products with others of that kind are exact::

    x^y = 2^k 2^f,  k + f = y log2 x,  |f| <= 1/2

A cube root is found by Newton's method for 1 / ∛x, without a division.
"""

from typing import Final

import numpy as np

from verax.ir.dtypes import float32, float64, int32, int64
from verax.ops.elementwise.arith import (
    abs as magnitude,
    add,
    div,
    max as larger,
    min as smaller,
    mul,
    neg,
    sub,
)
from verax.ops.elementwise.bits import (
    bitwise_and,
    bitwise_or,
    shift_left,
    shift_right_logical,
)
from verax.ops.elementwise.compare import eq, gt, lt, ne
from verax.ops.elementwise.convert import convert
from verax.ops.elementwise.kernels.parts import (
    Coefficients,
    PerDtype,
    bits_of,
    exponent_and_fraction,
    float_of,
    horner,
    nearest,
    power_of_two,
    times_power_of_two,
    upper_half,
    with_sign_of,
)
from verax.ops.elementwise.select import select
from verax.rules.values.array import Array

# log2((1 + √z) / (1 - √z)) / √z and 2^x, for results in single precision
LOG2: Final = (
    2.8853900817778495,
    0.9617966941142383,
    0.577077942081597,
    0.41220928312614946,
    0.319904355069975,
    0.2829204072202059,
)
EXP2: Final = (
    1.0000000005544554,
    0.6931472057360941,
    0.24022646889330748,
    0.05550328777774698,
    0.00961848909149676,
    0.0013399931175501238,
    0.00015345777870401267,
)
# (2^x - 1) / x
EXP2_LESS_ONE: Final[PerDtype[Coefficients]] = {
    float32: (
        0.6931472061523085,
        0.2402265135470159,
        0.055503279003039835,
        0.009618002188501337,
        0.0013400242999382864,
        0.00015476900049829224,
    ),
    float64: (
        0.6931471805599453,
        0.24022650695910133,
        0.05550410866482175,
        0.009618129107593373,
        0.001333355814637733,
        0.0001540353045804214,
        1.525273386942168e-05,
        1.3215434830154063e-06,
        1.0178045586297879e-07,
        7.073858647856353e-09,
        4.457531926696227e-10,
    ),
}
# What (log((1 + √z) / (1 - √z)) / √z) / 2 has beyond 1 + z/3, over z²
LOG_LATER: Final = (
    0.20000000000001134,
    0.14285714285046666,
    0.11111111260581873,
    0.09090892124583479,
    0.07693381565700914,
    0.06628337686857116,
    0.06598854518750852,
)
# 1/3 and 2 / log 2 in 26 bits, and the rest.
THIRD_PARTS: Final = (0.3333333358168602, -2.483526865641276e-09)
SCALE_PARTS: Final = (2.8853901028633118, -2.1085384952858276e-08)
THIRD_OF_ONE: Final = 1 / 3
SCALE: Final = 2.8853900817779268
ENDS: Final[PerDtype[tuple[float, float]]] = {
    float32: (-126.0, 128.0),
    float64: (-1022.0, 1024.0),
}
"""Powers of 2 below the first are flushed to 0, from the second on infinite."""
# Two thirds of the bits of 1, and a bit that makes the error of the first guess small.
THIRD: Final = 0x54A21D2A


def pow(x: Array, y: Array) -> Array:
    """x to the power y, with the special cases of C."""
    size = magnitude(x)
    z = power_of_single(size, y) if x.dtype == float32 else power_of_double(size, y)
    edge = bitwise_or(eq(size, 0.0), eq(size, np.inf))
    up = ne(lt(y, 0.0), eq(size, np.inf))
    z = select(edge, 0.0, z)
    z = select(bitwise_and(edge, up), np.inf, z)
    whole = nearest(y)
    half = mul(y, 0.5)
    uneven = bitwise_and(eq(whole, y), ne(nearest(half), half))
    z = select(bitwise_and(lt(bits_of(x), 0), uneven), neg(z), z)
    broken = bitwise_and(bitwise_and(lt(x, 0.0), gt(x, -np.inf)), ne(whole, y))
    unknown = bitwise_or(bitwise_or(ne(x, x), ne(y, y)), broken)
    z = select(unknown, np.nan, z)
    even = bitwise_and(eq(x, -1.0), eq(magnitude(y), np.inf))
    one = bitwise_or(eq(y, 0.0), bitwise_or(eq(x, 1.0), even))
    return select(one, 1.0, z)


def power_of_single(x: Array, y: Array) -> Array:
    """x^y of positive and normal x."""
    exponent, fraction = exponent_and_fraction(x)
    m = convert(fraction, float64)
    s = div(sub(m, 1.0), add(m, 1.0))
    log = add(convert(exponent, float64), mul(s, horner(mul(s, s), LOG2)))
    return rounded_exp2(mul(convert(y, float64), log))


def power_of_double(x: Array, y: Array) -> Array:
    """x^y of positive and normal x."""
    high, low = log2_in_two(x)
    about = mul(y, add(high, low))
    least, most = ENDS[float64]
    k = nearest(smaller(larger(about, least), most))
    head = upper_half(y)
    rest = add(mul(head, low), mul(sub(y, head), add(high, low)))
    f = add(sub(mul(head, high), k), rest)
    f = select(lt(magnitude(about), most + 0.5), f, 0.0)
    z = times_power_of_two(exp2_of_fraction(f), k)
    return select(lt(about, least), 0.0, z)


def log2_in_two(x: Array) -> tuple[Array, Array]:
    """log2 x as two floats, the first with 26 bits.

    With x = m 2^e and s = (m - 1) / (m + 1) it is e + 2 / log 2 times s + s q, where q
    is s²/3 + s⁴/5 + ... Only s and s²/3 need more digits than a float has.
    """
    exponent, m = exponent_and_fraction(x)
    f, upper = sub(m, 1.0), upper_half(m)
    lower, whole = sub(m, upper), add(upper, 1.0)
    inverse = div(1.0, add(whole, lower))
    s = upper_half(mul(f, inverse))
    # What is missing to s, and then the square in the same two parts.
    ds = mul(sub(sub(f, mul(s, whole)), mul(s, lower)), inverse)
    square = mul(s, s)
    dsquare = mul(ds, add(add(s, s), ds))
    head = upper_half(square)
    tail = add(sub(square, head), dsquare)
    first, second = THIRD_PARTS
    q = upper_half(mul(square, THIRD_OF_ONE))
    z = add(square, dsquare)
    more = mul(mul(z, z), horner(z, LOG_LATER))
    dq = sub(mul(head, first), q)
    dq = add(dq, add(add(mul(head, second), mul(tail, THIRD_OF_ONE)), more))
    product = mul(s, q)
    sum_ = upper_half(add(s, product))
    rest = add(add(mul(s, dq), mul(ds, add(q, dq))), ds)
    rest = add(add(sub(s, sum_), product), rest)
    # Times 2 / log 2, and the exponent.
    first, second = SCALE_PARTS
    scaled = mul(sum_, first)
    small = add(mul(sum_, second), mul(rest, SCALE))
    high = upper_half(add(exponent, scaled))
    return high, add(add(sub(exponent, high), scaled), small)


def exp2_of_fraction(f: Array) -> Array:
    """2^f for |f| <= 1/2, as 1 and a product, which is small beside it."""
    return add(mul(f, horner(f, EXP2_LESS_ONE[f.dtype])), 1.0)


def exp2(x: Array) -> Array:
    """2^x."""
    least, most = ENDS[x.dtype]
    near = smaller(larger(x, least), most)
    k = nearest(near)
    y = times_power_of_two(exp2_of_fraction(sub(near, k)), k)
    return select(ne(x, x), x, select(lt(x, least), 0.0, y))


def rounded_exp2(x: Array) -> Array:
    """2^x in single precision, of a double that may be beyond it."""
    near = smaller(larger(x, -300.0), 300.0)
    k = nearest(near)
    return convert(mul(horner(sub(near, k), EXP2), power_of_two(k)), float32)


def cbrt(x: Array) -> Array:
    """The cube root, with the sign of x."""
    dtype = x.dtype
    size = magnitude(x)
    inverse = inverse_root(size, 2 if dtype == float32 else 3)
    root = mul(size, mul(inverse, inverse))
    # A last step, in double precision.
    y, a, w = (convert(v, float64) for v in (root, size, inverse))
    error = sub(mul(y, mul(y, y)), a)
    y = sub(y, mul(mul(error, mul(w, w)), 1 / 3))
    result = with_sign_of(convert(y, dtype), x)
    return select(eq(add(x, x), x), x, result)


def inverse_root(x: Array, steps: int) -> Array:
    """1 / ∛x of positive x: a guess from a third of the exponent, and better ones."""
    if x.dtype == float32:
        third = mul(convert(bits_of(x), float32), 1 / 3)
        guess = sub(THIRD, convert(third, int32))
        y = float_of(guess, float32)
    else:
        top = convert(shift_right_logical(bits_of(x), 32), int32)
        third = mul(convert(top, float32), 1 / 3)
        guess = sub(0x553EF0FF, convert(third, int32))
        y = float_of(shift_left(convert(guess, int64), 32), float64)
    for _ in range(steps):
        e = sub(1.0, mul(mul(x, y), mul(y, y)))
        y = add(y, mul(mul(y, e), add(mul(e, 2 / 9), 1 / 3)))
    return y
