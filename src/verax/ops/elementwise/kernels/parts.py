"""Floor 2: what kernels are made of: polynomials, signs, exponents.

The bits of a float are sign, exponent and fraction from the highest to the lowest, and
as an integer they are in the order of the magnitudes::

    exponent_and_fraction(x)      # e, m with x = m 2^e and √1/2 <= m < √2
"""

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from verax.ir.dtypes import DType, float32, float64, int32, int64
from verax.ops.elementwise.arith import add, mul, sub
from verax.ops.elementwise.bits import (
    bitwise_and,
    bitwise_or,
    bitwise_xor,
    shift_left,
    shift_right_logical,
)
from verax.ops.elementwise.compare import ge, ne
from verax.ops.elementwise.convert import BitcastParams, bitcast_convert_type_p, convert
from verax.ops.elementwise.rounding import RoundingMethod, round
from verax.ops.elementwise.select import select
from verax.rules.values.array import Array

type Coefficients = Sequence[float]
type PerDtype[T] = Mapping[DType, T]

INTEGERS: Final[PerDtype[DType]] = {float32: int32, float64: int64}
SIGN: Final[PerDtype[int]] = {float32: -(2**31), float64: -(2**63)}
# The bits of √1/2, the width of a fraction, and the exponent of 1.
ROOT: Final[PerDtype[int]] = {float32: 0x3F3504F3, float64: 0x3FE6A09E667F3BCD}
WIDTH: Final[PerDtype[int]] = {float32: 23, float64: 52}
BIAS: Final[PerDtype[int]] = {float32: 127, float64: 1023}
# 3/2 times the power of 2 whose last place is 1: a small integer added to it stands in
# the lowest bits.
WHOLE: Final[PerDtype[float]] = {float32: 1.5 * 2.0**23, float64: 1.5 * 2.0**52}

UPPER: Final = -(1 << 27)
"""The bits of a double but the last 27 of its fraction."""


def horner(x: Array, coefficients: Coefficients) -> Array:
    """The polynomial with these coefficients, the constant one first."""
    total = mul(x, coefficients[-1])
    for c in coefficients[-2:0:-1]:
        total = mul(add(total, c), x)
    return add(total, coefficients[0])


def odd(x: Array, coefficients: Coefficients) -> Array:
    """x³ times a polynomial of x²: what a function like the sine has beside x."""
    square = mul(x, x)
    return mul(mul(x, square), horner(square, coefficients))


def nearest(x: Array) -> Array:
    """The nearest integer."""
    return round(x, RoundingMethod.TO_NEAREST_EVEN)


def bits_as(x: Array, dtype: DType) -> Array:
    """The bits read as another dtype, whether or not 64 bits are enabled."""
    return bitcast_convert_type_p.call(BitcastParams(dtype), x)


def bits_of(x: Array) -> Array:
    """The bits of a float as an integer."""
    return bits_as(x, INTEGERS[x.dtype])


def float_of(bits: Array, dtype: DType) -> Array:
    """The float with these bits."""
    return bits_as(bits, dtype)


def integer_of(x: Array) -> Array:
    """An integer whose lowest bits are those of x, a small whole number."""
    return bits_of(add(x, WHOLE[x.dtype]))


def has_bit(x: Array, bit: int) -> Array:
    """Whether an integer has a bit."""
    return ne(bitwise_and(x, bit), 0)


def with_sign_of(y: Array, x: Array) -> Array:
    """y, which has no sign, with that of x."""
    sign = bitwise_and(bits_of(x), SIGN[x.dtype])
    return float_of(bitwise_or(bits_of(y), sign), y.dtype)


def negative_where(y: Array, bits: Array, bit: int) -> Array:
    """y, or -y where an integer has a bit, the 2 to the power `bit`."""
    width = WIDTH[y.dtype]
    top = 31 if width == WIDTH[float32] else 63
    moved = shift_left(bitwise_and(bits, 1 << bit), top - bit)
    return float_of(bitwise_xor(bits_of(y), moved), y.dtype)


def exponent_and_fraction(x: Array) -> tuple[Array, Array]:
    """e and m with x = m 2^e, √1/2 <= m < √2, for positive and normal x."""
    dtype = x.dtype
    width, bias = WIDTH[dtype], BIAS[dtype]
    bits = bits_of(x)
    # The exponent, and 1 more where the fraction is at least that of √1/2.
    above = add(bits, (bias << width) - ROOT[dtype])
    exponent = shift_right_logical(above, width)
    fraction = sub(bits, shift_left(sub(exponent, bias), width))
    return whole_number(exponent, dtype, bias), float_of(fraction, dtype)


def whole_number(bits: Array, dtype: DType, less: int) -> Array:
    """An integer from 0 on, less another, as a float.

    Processors convert vectors of 64-bit integers slowly.
    """
    if dtype == float32:
        return convert(sub(bits, less), float32)
    power = 2.0**52
    placed = float_of(bitwise_or(bits, (BIAS[float64] + 52) << 52), float64)
    return sub(placed, power + less)


def power_of_two(k: Array) -> Array:
    """2^k for a float k that is whole and no exponent of a subnormal or an infinity."""
    dtype = k.dtype
    bits = integer_of(add(k, float(BIAS[dtype])))
    return float_of(shift_left(bits, WIDTH[dtype]), dtype)


def upper_half(x: Array) -> Array:
    """A double rounded to its upper 26 bits: products of two of these are exact."""
    return float_of(bitwise_and(bits_of(x), UPPER), float64)


def times_power_of_two(x: Array, k: Array) -> Array:
    """x 2^k for x near 1 and a whole k, infinite beyond the largest float.

    The result is normal, k at most one more than the exponent of any float.
    """
    width = WIDTH[x.dtype]
    bits = add(bits_of(x), shift_left(integer_of(k), width))
    ends = ge(bits, (2 * BIAS[x.dtype] + 1) << width)
    return select(ends, np.inf, float_of(bits, x.dtype))
