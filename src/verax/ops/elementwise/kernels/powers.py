"""Floor 2: powers and cube roots.

In single precision x^y is 2 to the power y log2 x in double precision, which leaves no
error to see; a cube root is found by Newton's method for 1 / ∛x, without a division.
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
    bits_of,
    exponent_and_fraction,
    float_of,
    horner,
    nearest,
    power_of_two,
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
# Two thirds of the bits of 1, and a bit that makes the error of the first guess small.
THIRD: Final = 0x54A21D2A


def pow(x: Array, y: Array) -> Array:
    """x to the power y in single precision, with the special cases of C."""
    size = magnitude(x)
    exponent, fraction = exponent_and_fraction(size)
    m = convert(fraction, float64)
    s = div(sub(m, 1.0), add(m, 1.0))
    log = add(convert(exponent, float64), mul(s, horner(mul(s, s), LOG2)))
    z = rounded_exp2(mul(convert(y, float64), log))
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
