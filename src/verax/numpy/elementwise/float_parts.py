"""Floor 6: the parts of numbers: sign, exponent, neighbours, infinities; complex parts.

One idea: a float is its bits, so signs and exponents are read from them, while what has
a derivative is multiplied::

    signbit(-0.0), frexp(6.0), ldexp(0.75, 3), isnan(x), angle(1j)
"""

from typing import Any

import numpy as np

from verax.backend.eager.composites import in_numpy, remembered
from verax.ir.avals import bit_width, finfo
from verax.ir.dtypes import DType, bool_, float16, is_complex, is_float, is_inexact
from verax.ir.jaxpr import NO_PARAMS
from verax.numpy.arguments.arguments import (
    ArrayLike,
    as_array,
    broadcast_together,
    constant_of,
    default_float,
    number_beside,
    promote_args_inexact,
    promote_inexact,
    stretched,
    stretched_together,
)
from verax.numpy.arguments.elementwise_call import Exactly, WhereFinite, binary_inexact
from verax.numpy.creation.creation import asarray, filled, typed_fill
from verax.numpy.elementwise.arithmetic import refuse_complex
from verax.numpy.elementwise.transcendental import atan2, rad2deg
from verax.ops.elementwise import arith as parts
from verax.ops.elementwise.arith import (
    abs as magnitude,
    add,
    mul,
    neg,
    nextafter_p,
    sub,
)
from verax.ops.elementwise.bits import (
    bitwise_and,
    bitwise_or,
    shift_left,
    shift_right_arithmetic,
    shift_right_logical,
)
from verax.ops.elementwise.compare import eq, gt, lt, ne
from verax.ops.elementwise.convert import bitcast_convert_type, convert
from verax.ops.elementwise.rounding import is_finite
from verax.ops.elementwise.select import clamp, select, stop_gradient
from verax.rules.values.array import Array

# Three factors reach from the largest number to the smallest subnormal one.
FACTORS = 3


def isnan(x: ArrayLike, /) -> Array:
    """Whether x is not a number."""
    given = as_array("isnan", x)
    return ne(given, given)


@remembered
def isinf(x: ArrayLike, /) -> Array:
    """Whether x, or a part of it, is infinite."""
    given = as_array("isinf", x)
    if is_complex(given.dtype):
        return bitwise_or(isinf(parts.real(given)), isinf(parts.imag(given)))
    if not is_float(given.dtype):
        return filled(given.shape, False, bool_)
    return eq(magnitude(given), constant_of(np.inf, given.dtype))


def isfinite(x: ArrayLike, /) -> Array:
    """Whether x, or each part of it, is neither infinite nor NaN."""
    given = as_array("isfinite", x)
    if is_complex(given.dtype):
        re, im = parts.real(given), parts.imag(given)
        return bitwise_and(is_finite(re), is_finite(im))
    if not is_float(given.dtype):
        return filled(given.shape, True, bool_)
    return is_finite(given)


@remembered
def isposinf(x: ArrayLike, /, out: None = None) -> Array:
    """Whether x is plus infinity.

    Raises:
        TypeError: x is complex.
    """
    return is_value("isposinf", x, np.inf)


@remembered
def isneginf(x: ArrayLike, /, out: None = None) -> Array:
    """Whether x is minus infinity.

    Raises:
        TypeError: x is complex.
    """
    return is_value("isneginf", x, -np.inf)


def is_value(name: str, x: ArrayLike, value: float) -> Array:
    refuse_complex(name, x, error=ValueError)
    given = as_array(name, x)
    if not is_float(given.dtype):
        return filled(given.shape, False, bool_)
    return eq(given, constant_of(value, given.dtype))


@in_numpy(Exactly(np.signbit))
def signbit(x: ArrayLike, /) -> Array:
    """Whether the sign bit of x is set, also for zeros and NaN.

    Raises:
        TypeError: x is complex.
    """
    refuse_complex("signbit", x, error=ValueError)
    given = as_array("signbit", x)
    if given.dtype == bool_:
        return filled(given.shape, False, bool_)
    if is_float(given.dtype):
        given = bitcast_convert_type(given, bits_of(given.dtype))
    return lt(given, constant_of(0, given.dtype))


def bits_of(dtype: DType) -> np.dtype[Any]:
    """The signed integer as wide as a float."""
    return np.dtype(f"int{bit_width(dtype)}")


@in_numpy(Exactly(np.copysign))
def copysign(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """|x1| with the sign of x2.

    Raises:
        TypeError: an argument is complex.
    """
    refuse_complex("copysign", x1, x2)
    x, y = promote_args_inexact("copysign", x1, x2)
    size = magnitude(x)
    return select(signbit(y), neg(size), size)


@in_numpy(WhereFinite(np.heaviside))
def heaviside(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """0 for negative x1, 1 for positive x1, and x2 where x1 is 0; NaN stays.

    Raises:
        TypeError: an argument is complex.
    """
    refuse_complex("heaviside", x1, x2)
    x, y = stretched_together("heaviside", promote_inexact("heaviside", x1, x2))
    x, y = as_array("heaviside", x), as_array("heaviside", y, 1)
    low, high = number_beside(x, 0.0), number_beside(x, 1.0)
    step = select(lt(x, 0), low, select(gt(x, 0), high, y))
    return select(ne(x, x), x, step)


def nextafter(x: ArrayLike, y: ArrayLike, /) -> Array:
    """The float next to x on the side of y."""
    return binary_inexact("nextafter", nextafter_p, x, y)


@remembered
def spacing(x: ArrayLike, /) -> Array:
    """The distance from x to the next float away from zero.

    Raises:
        TypeError: x is complex.
    """
    refuse_complex("spacing", x, error=ValueError)
    (given,) = promote_inexact("spacing", as_array("spacing", x))
    infinity = constant_of(np.inf, given.dtype)
    if given.dtype == float16:
        above = sub(nextafter_p.call(NO_PARAMS, given, infinity), given)
        return select(
            eq(magnitude(given), infinity), constant_of(np.nan, given.dtype), above
        )
    target = copysign(infinity, given)
    distance = sub(nextafter_p.call(NO_PARAMS, given, target), given)
    tiny = constant_of(float(finfo(given.dtype).smallest_subnormal), given.dtype)
    return select(eq(distance, 0), copysign(tiny, given), distance)


def power_of_two(n: Array, dtype: DType) -> Array:
    """2 to the power n as a float made of its exponent bits."""
    limits = finfo(dtype)
    biased = add(n, 1 - int(limits.minexp))
    return bitcast_convert_type(shift_left(biased, int(limits.nmant)), dtype)


@remembered
def ldexp(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """x1 times 2 to the power of the integer x2.

    Raises:
        TypeError: x1 is complex, or x2 holds no integers.
    """
    refuse_complex("ldexp", x1)
    exponent = as_array("ldexp", x2, 1)
    if is_inexact(exponent.dtype):
        raise ValueError(f"ldexp: the exponent must hold integers, not {exponent.aval}")
    x: Array
    (x,) = promote_inexact("ldexp", as_array("ldexp", x1))
    limits, width = finfo(x.dtype), bits_of(x.dtype)
    x, exponent = broadcast_together("ldexp", [convert(x, x.dtype), exponent])
    # What leaves the range of subnormals and of finite numbers, from either end.
    bound = 2 * -int(limits.minexp) + int(limits.nmant) + 3
    bound = min(bound, 127) if bit_width(exponent.dtype) == 8 else bound
    rest = convert(clamp(-bound, convert(exponent, np.dtype(np.int32)), bound), width)
    for count in range(FACTORS, 0, -1):
        step = rest if count == 1 else div_towards_minus(rest, count)
        x = mul(x, power_of_two(step, x.dtype))
        rest = sub(rest, step)
    return x


def div_towards_minus(n: Array, count: int) -> Array:
    """About n / count: the half by a shift, the third by two shifts."""
    if count == 2:
        return shift_right_arithmetic(n, 1)
    return add(shift_right_arithmetic(n, 2), shift_right_arithmetic(n, 4))


@in_numpy(WhereFinite(np.frexp))
def frexp(x: ArrayLike, /) -> tuple[Array, Array]:
    """m and n with x = m 2**n and 0.5 <= |m| < 1; zeros, infinities and NaN have n = 0.

    Raises:
        TypeError: x is complex.
    """
    refuse_complex("frexp", x)
    (given,) = promote_inexact("frexp", as_array("frexp", x))
    given = convert(given, given.dtype)
    exponent = exponent_of(stop_gradient(given))
    return ldexp(given, neg(exponent)), exponent


def exponent_of(x: Array) -> Array:
    """The exponent of `frexp`, as int32; subnormal numbers are scaled up first."""
    limits, width = finfo(x.dtype), bits_of(x.dtype)
    tiny = constant_of(float(limits.smallest_normal), x.dtype)
    shift = int(limits.nmant) + 1
    scale = constant_of(float(2**shift), x.dtype)
    small = lt(magnitude(x), tiny)
    scaled = select(small, mul(x, scale), x)
    bits = bitcast_convert_type(scaled, width)
    field = shift_right_logical(shift_left(bits, 1), int(limits.nmant) + 1)
    plain = sub(convert(field, np.dtype(np.int32)), -int(limits.minexp))
    array = select(small, sub(plain, shift), plain)
    special = bitwise_or(eq(scaled, 0), ne(sub(scaled, scaled), 0))
    return select(special, constant_of(0, array.dtype), array)


@remembered
def nan_to_num(
    x: ArrayLike,
    copy: bool = True,
    nan: ArrayLike = 0.0,
    posinf: ArrayLike | None = None,
    neginf: ArrayLike | None = None,
) -> Array:
    """x with numbers instead of NaN (0) and infinities (the largest numbers)."""
    given = as_array("nan_to_num", x)
    if is_complex(given.dtype):
        pair = (parts.real(given), parts.imag(given))
        re, im = (nan_to_num(z, copy, nan, posinf, neginf) for z in pair)
        return parts.complex(re, im)
    if not is_inexact(given.dtype):
        return given
    limits = finfo(given.dtype)
    high = float(limits.max) if posinf is None else posinf
    low = float(limits.min) if neginf is None else neginf
    array = select(ne(given, given), in_dtype(nan, given), given)
    array = select(eq(array, np.inf), in_dtype(high, given), array)
    return select(eq(array, -np.inf), in_dtype(low, given), array)


def in_dtype(value: ArrayLike, x: Array) -> Any:
    """A replacement in the dtype of `x`, and in its shape if it has dimensions."""
    if isinstance(value, Array | np.ndarray):
        array = convert(as_array("nan_to_num", value), x.dtype)
        return stretched(array, x.shape)
    return constant_of(value, x.dtype)


def real(val: ArrayLike, /) -> Array:
    """The real part."""
    x = as_array("real", val)
    return parts.real(x) if is_complex(x.dtype) else x


def imag(val: ArrayLike, /) -> Array:
    """The imaginary part; zeros for real numbers."""
    x = as_array("imag", val)
    return (
        parts.imag(x)
        if is_complex(x.dtype)
        else typed_fill(x.shape, 0, x.dtype, x.weak_type)
    )


def conjugate(x: ArrayLike, /) -> Array:
    """The complex conjugate; real numbers as they are."""
    given = as_array("conjugate", x)
    return parts.conj(given) if is_complex(given.dtype) else given


conj = conjugate


@remembered
def angle(z: ArrayLike, deg: bool = False) -> Array:
    """The angle of complex numbers, in radians or degrees; 0 or π for real ones."""
    x = as_array("angle", z)
    if is_complex(x.dtype):
        out = atan2(parts.imag(x), parts.real(x))
    else:
        real_part = x if is_inexact(x.dtype) else convert(x, default_float())
        out = atan2(filled((), 0, real_part.dtype), real_part)
    return rad2deg(out) if deg else out


def isreal(x: ArrayLike) -> Array:
    """Whether the imaginary part is zero."""
    given = as_array("isreal", x)
    if not is_complex(given.dtype):
        return filled(given.shape, True, bool_)
    return eq(parts.imag(given), 0)


def iscomplex(x: ArrayLike) -> Array:
    """Whether the imaginary part is not zero."""
    given = as_array("iscomplex", x)
    if not is_complex(given.dtype):
        return filled(given.shape, False, bool_)
    return ne(parts.imag(given), 0)


def iscomplexobj(x: Any) -> bool:
    """Whether the dtype of `x` is complex, whatever its values."""
    if isinstance(x, list | tuple) or hasattr(x, "__jax_array__"):
        return is_complex(asarray(x).dtype)
    return is_complex(x.dtype) if hasattr(x, "dtype") else bool(np.iscomplexobj(x))


def isrealobj(x: Any) -> bool:
    """Whether the dtype of `x` is not complex."""
    return not iscomplexobj(x)
