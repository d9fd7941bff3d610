"""Floor 6: the parts of numbers: sign, exponent, neighbours, infinities; complex parts.

One idea: a float is its bits, so signs and exponents are read from them, while what has
a derivative is multiplied::

    signbit(-0.0), frexp(6.0), ldexp(0.75, 3), isnan(x), angle(1j)
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from verax.api.custom.jvp import custom_jvp
from verax.backend.eager.composites import in_numpy, remembered
from verax.ir.avals import Shape, bit_width, finfo
from verax.ir.dtypes import DType, bool_, float16, is_complex, is_float, is_inexact
from verax.ir.jaxpr import NO_PARAMS
from verax.numpy.arguments.arguments import (
    ArrayLike,
    as_array,
    broadcast_shapes_of,
    broadcast_together,
    constant_of,
    default_float,
    no_out,
    number_beside,
    promote_args_inexact,
    promote_inexact,
    stretched,
    stretched_together,
)
from verax.numpy.arguments.elementwise_call import Exactly, WhereFinite, binary_inexact
from verax.numpy.creation.creation import as_values, asarray
from verax.numpy.creation.filling import filled, typed_fill
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
    """Whether x is not a number.

    Args:
        x: an array or scalar of any dtype; of complex numbers, one NaN part is enough.

    Returns:
        Booleans in the shape of x; all false for integers.

    >>> import verax.numpy as vnp
    >>> vnp.isnan(vnp.array([1.0, vnp.nan, vnp.inf]))
    Array([False,  True, False], dtype=bool)
    """
    given = as_array("isnan", x)
    return ne(given, given)


@remembered
def isinf(x: ArrayLike, /) -> Array:
    """Whether x, or a part of it, is infinite.

    Args:
        x: an array or scalar of any dtype.

    Returns:
        Booleans in the shape of x; all false for integers.

    >>> import verax.numpy as vnp
    >>> vnp.isinf(vnp.array([1.0, vnp.nan, -vnp.inf]))
    Array([False, False,  True], dtype=bool)
    """
    given = as_array("isinf", x)
    if is_complex(given.dtype):
        return bitwise_or(isinf(parts.real(given)), isinf(parts.imag(given)))
    if not is_float(given.dtype):
        return filled(given.shape, False, bool_)
    return eq(magnitude(given), constant_of(np.inf, given.dtype))


def isfinite(x: ArrayLike, /) -> Array:
    """Whether x, or each part of it, is neither infinite nor NaN.

    Args:
        x: an array or scalar of any dtype.

    Returns:
        Booleans in the shape of x; all true for integers.

    >>> import verax.numpy as vnp
    >>> vnp.isfinite(vnp.array([1.0, vnp.nan, -vnp.inf]))
    Array([ True, False, False], dtype=bool)
    """
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

    Args:
        x: a real array or scalar.
        out: only None, since arrays are immutable.

    Returns:
        Booleans in the shape of x; all false for integers.

    Raises:
        ValueError: x is complex.
        NotImplementedError: `out` is given.

    >>> import verax.numpy as vnp
    >>> vnp.isposinf(vnp.array([vnp.inf, -vnp.inf, vnp.nan]))
    Array([ True, False, False], dtype=bool)
    """
    no_out("isposinf", out)
    return is_value("isposinf", x, np.inf)


@remembered
def isneginf(x: ArrayLike, /, out: None = None) -> Array:
    """Whether x is minus infinity.

    Args:
        x: a real array or scalar.
        out: only None, since arrays are immutable.

    Returns:
        Booleans in the shape of x; all false for integers.

    Raises:
        ValueError: x is complex.
        NotImplementedError: `out` is given.

    >>> import verax.numpy as vnp
    >>> vnp.isneginf(vnp.array([vnp.inf, -vnp.inf, vnp.nan]))
    Array([False,  True, False], dtype=bool)
    """
    no_out("isneginf", out)
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

    Args:
        x: a real array or scalar.

    Returns:
        Booleans in the shape of x; all false for unsigned integers and booleans.

    Raises:
        ValueError: x is complex.

    >>> import verax.numpy as vnp
    >>> vnp.signbit(vnp.array([-3.0, -0.0, 0.0, -vnp.nan]))
    Array([ True,  True, False,  True], dtype=bool)
    """
    refuse_complex("signbit", x, error=ValueError)
    given = as_array("signbit", x)
    if given.dtype == bool_:
        return filled(given.shape, False, bool_)
    if is_float(given.dtype):
        given = bitcast_convert_type(given, bits_of(given.dtype))
    return lt(given, constant_of(0, given.dtype))


def bits_of(dtype: DType) -> np.dtype[np.generic]:
    """The signed integer as wide as a float."""
    return np.dtype(f"int{bit_width(dtype)}")


@in_numpy(Exactly(np.copysign))
def copysign(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """|x1| with the sign of x2.

    Args:
        x1: the magnitudes, a real array or scalar.
        x2: real numbers that broadcast with x1; only their sign bits count, so that
            -0.0 is negative.

    Returns:
        The broadcast shape, in the common dtype of x1 and x2, which for integers is
        float32, or float64 if they have 64 bits.

    Raises:
        TypeError: an argument is complex.

    >>> import verax.numpy as vnp
    >>> vnp.copysign(vnp.array([1.0, -2.0]), vnp.array([-0.0, 5.0]))
    Array([-1.,  2.], dtype=float32)
    """
    refuse_complex("copysign", x1, x2)
    x, y = promote_args_inexact("copysign", x1, x2)
    size = magnitude(x)
    return select(signbit(y), neg(size), size)


@in_numpy(WhereFinite(np.heaviside))
def heaviside(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """0 for negative x1, 1 for positive x1, and x2 where x1 is 0; NaN stays.

    Args:
        x1: where to evaluate the step, a real array or scalar.
        x2: the value at 0, which broadcasts with x1; often 0, 0.5 or 1.

    Returns:
        The broadcast shape, in the common dtype of x1 and x2, which for integers is
        float32, or float64 if they have 64 bits.

    Raises:
        TypeError: an argument is complex.

    >>> import verax.numpy as vnp
    >>> vnp.heaviside(vnp.array([-1.5, 0.0, 2.0, vnp.nan]), 0.5)
    Array([0. , 0.5, 1. , nan], dtype=float32)
    """
    refuse_complex("heaviside", x1, x2)
    x, y = stretched_together("heaviside", promote_inexact("heaviside", x1, x2))
    x, y = as_array("heaviside", x), as_array("heaviside", y, 1)
    low, high = number_beside(x, 0.0), number_beside(x, 1.0)
    step = select(lt(x, 0), low, select(gt(x, 0), high, y))
    return select(ne(x, x), x, step)


def nextafter(x: ArrayLike, y: ArrayLike, /) -> Array:
    """The float next to x on the side of y.

    Args:
        x: where to start, a real array or scalar; integers are read as floats.
        y: where to go, real numbers that broadcast with x.

    Returns:
        The broadcast shape, in the common dtype of x and y, which for integers is
        float32, or float64 if they have 64 bits; x where x and y are equal.

    >>> import verax.numpy as vnp
    >>> step = vnp.nextafter(vnp.array([1.0, 1.0, 1.0]), vnp.array([2.0, 1.0, 0.0])) - 1
    >>> step * 2**24
    Array([ 2.,  0., -1.], dtype=float32)
    """
    return binary_inexact("nextafter", nextafter_p, x, y)


@remembered
def spacing(x: ArrayLike, /) -> Array:
    """The distance from x to the next float away from zero.

    It has the sign of x, except in float16, where it is the distance to the next larger
    float. For infinities and NaN it is NaN.

    Args:
        x: a real array or scalar; integers and booleans are read as floats.

    Returns:
        The shape of x; its dtype if that is a float, else float32, or float64 for
        integers of 64 bits.

    Raises:
        ValueError: x is complex.

    >>> import verax.numpy as vnp
    >>> vnp.spacing(vnp.array([1.0, -8.0, vnp.inf])) * 2**23
    Array([ 1., -8., nan], dtype=float32)
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

    What is too large becomes infinite, and what is too small 0.

    Args:
        x1: a real array or scalar; integers and booleans are read as floats.
        x2: the exponent, integers that broadcast with x1.

    Returns:
        The broadcast shape; the dtype of x1 if that is a float, else float32, or
        float64 for integers of 64 bits.

    Raises:
        TypeError: x1 is complex.
        ValueError: x2 holds no integers.

    >>> import verax.numpy as vnp
    >>> vnp.ldexp(vnp.array([0.75, 5.0, 1.0]), vnp.array([3, -1, 128]))
    Array([6. , 2.5, inf], dtype=float32)
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

    Args:
        x: a real array or scalar; integers and booleans are read as floats.

    Returns:
        m, in the shape of x and in its dtype if that is a float, else in float32, or
        float64 for integers of 64 bits; and n, of int32, in the same shape.

    Raises:
        TypeError: x is complex.

    >>> import verax.numpy as vnp
    >>> vnp.frexp(vnp.array([6.0, -0.125, 0.0]))
    (Array([ 0.75, -0.5 ,  0.  ], dtype=float32), Array([ 3, -2,  0], dtype=int32))
    """
    refuse_complex("frexp", x)
    (given,) = promote_inexact("frexp", as_array("frexp", x))
    given = convert(given, given.dtype)
    return mantissa_of(given), exponent_of(given)


def without_subnormals(x: Array) -> tuple[Array, Array, Array, Array]:
    """The bits of x, multiplied where it is subnormal, and the exponent among them.

    Then where it was multiplied, and where it is zero, an infinity or NaN.
    """
    limits, x = finfo(x.dtype), stop_gradient(x)
    small = lt(magnitude(x), constant_of(float(limits.smallest_normal), x.dtype))
    scale = constant_of(float(2 ** (int(limits.nmant) + 1)), x.dtype)
    bits = bitcast_convert_type(select(small, mul(x, scale), x), bits_of(x.dtype))
    field = shift_right_logical(shift_left(bits, 1), int(limits.nmant) + 1)
    last = 2 * int(limits.maxexp) - 1
    return bits, field, small, bitwise_or(eq(field, 0), eq(field, last))


@custom_jvp
def mantissa_of(x: Array) -> Array:
    """The mantissa of `frexp`: its exponent bits are those of 1/2."""
    limits = finfo(x.dtype)
    bits, _, _, special = without_subnormals(x)
    exponents = ((1 << bit_width(x.dtype) - 1) - 1) - ((1 << int(limits.nmant)) - 1)
    half = (-int(limits.minexp)) << int(limits.nmant)
    mantissa = bitwise_or(bitwise_and(bits, ~exponents), half)
    return bitcast_convert_type(select(special, bits, mantissa), x.dtype)


@mantissa_of.defjvp
def mantissa_tangent(
    primals: Sequence[Array], tangents: Sequence[Array]
) -> tuple[Array, Array]:
    """It is x by a power of two."""
    (x,) = primals
    return mantissa_of(x), ldexp(tangents[0], neg(exponent_of(x)))


def exponent_of(x: Array) -> Array:
    """The exponent of `frexp`, as int32."""
    limits = finfo(x.dtype)
    _, field, small, special = without_subnormals(x)
    more = int(limits.nmant) + 1
    less = select(
        small,
        constant_of(more - int(limits.minexp), field.dtype),
        constant_of(-int(limits.minexp), field.dtype),
    )
    exponent = select(special, constant_of(0, field.dtype), sub(field, less))
    return convert(exponent, np.dtype(np.int32))


@remembered
def nan_to_num(
    x: ArrayLike,
    copy: bool = True,
    nan: ArrayLike = 0.0,
    posinf: ArrayLike | None = None,
    neginf: ArrayLike | None = None,
) -> Array:
    """x with numbers instead of NaN and infinities.

    Args:
        x: an array or scalar; integers and booleans stay as they are, and of complex
            numbers each part is replaced on its own.
        copy: changes nothing: x is never written to.
        nan: what replaces NaN, 0 by default; a scalar, or an array that broadcasts with
            x.
        posinf: what replaces plus infinity; None for the largest number of the dtype.
        neginf: what replaces minus infinity; None for the lowest number of the dtype.

    Returns:
        An array of the dtype of x, into which replacements are converted, and of the
        shape of x and of replacements together.

    Raises:
        ValueError: a replacement does not broadcast with x, or is None for NaN.

    >>> import verax.numpy as vnp
    >>> x = vnp.array([1.0, vnp.nan, vnp.inf, -vnp.inf])
    >>> vnp.nan_to_num(x, nan=-1.0, posinf=99.0, neginf=-99.0)
    Array([  1.,  -1.,  99., -99.], dtype=float32)
    >>> vnp.nan_to_num(x)[2] == vnp.finfo(vnp.float32).max
    Array(True, dtype=bool)
    """
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
    values = [in_dtype(value, given.dtype) for value in (nan, high, low)]
    shapes = [given.shape, *(value.shape for value in values)]
    array: Array = stretched(given, broadcast_shapes_of("nan_to_num", shapes))
    for special, value in zip((None, np.inf, -np.inf), values, strict=True):
        mask = ne(array, array) if special is None else eq(array, special)
        array = select(mask, spread_out(value, array.shape), array)
    return array


def spread_out(value: Array | np.ndarray | np.generic, shape: Shape) -> object:
    """A replacement in `shape`, unless it is one for all."""
    return stretched(value, shape) if value.shape else value


def in_dtype(value: object, dtype: DType) -> Any:
    """A replacement in a dtype."""
    if isinstance(value, bool | int | float):
        return constant_of(value, dtype)
    if isinstance(value, np.ndarray):
        return convert(as_array("nan_to_num", value), dtype)
    return as_values("nan_to_num", value, dtype)


def real(val: ArrayLike, /) -> Array:
    """The real part.

    Args:
        val: an array or scalar of any dtype.

    Returns:
        An array of the shape of `val`, float32 for complex64 and float64 for
        complex128; what is not complex stays as it is. It is a copy, not a view to be
        written to.

    >>> import verax.numpy as vnp
    >>> vnp.real(vnp.array([1 + 2j, -3j])), vnp.real(vnp.array([5]))
    (Array([ 1., -0.], dtype=float32), Array([5], dtype=int32))
    """
    x = as_array("real", val)
    return parts.real(x) if is_complex(x.dtype) else x


def imag(val: ArrayLike, /) -> Array:
    """The imaginary part; zeros for real numbers.

    Args:
        val: an array or scalar of any dtype.

    Returns:
        An array of the shape of `val`, float32 for complex64 and float64 for
        complex128, and of the dtype of `val` if that is not complex.

    >>> import verax.numpy as vnp
    >>> vnp.imag(vnp.array([1 + 2j, -3j])), vnp.imag(vnp.array([5]))
    (Array([ 2., -3.], dtype=float32), Array([0], dtype=int32))
    """
    x = as_array("imag", val)
    return (
        parts.imag(x)
        if is_complex(x.dtype)
        else typed_fill(x.shape, 0, x.dtype, x.weak_type)
    )


def conjugate(x: ArrayLike, /) -> Array:
    """The complex conjugate; real numbers as they are.

    Args:
        x: an array or scalar of any dtype.

    Returns:
        An array of the shape and dtype of x.

    >>> import verax.numpy as vnp
    >>> vnp.conjugate(vnp.array([1 + 2j, -3j]))
    Array([ 1.-2.j, -0.+3.j], dtype=complex64)
    """
    given = as_array("conjugate", x)
    return parts.conj(given) if is_complex(given.dtype) else given


conj = conjugate


@remembered
def angle(z: ArrayLike, deg: bool = False) -> Array:
    """The angle of complex numbers, in radians or degrees; 0 or π for real ones.

    It lies between -π and π, and is NaN for NaN.

    Args:
        z: an array or scalar; integers and booleans are read as floats.
        deg: whether the angle is in degrees; by default it is in radians.

    Returns:
        Floats in the shape of z: float32 for complex64, the dtype of z if that is a
        float, and for integers float32, or float64 with x64.

    >>> import verax.numpy as vnp
    >>> vnp.angle(vnp.array([1 + 1j, -1, -2j]), deg=True)
    Array([ 45., 180., -90.], dtype=float32)
    >>> vnp.angle(vnp.array([3, -3])).round(3)
    Array([0.   , 3.142], dtype=float32)
    """
    x = as_array("angle", z)
    if is_complex(x.dtype):
        out = atan2(parts.imag(x), parts.real(x))
    else:
        real_part = x if is_inexact(x.dtype) else convert(x, default_float())
        out = atan2(filled((), 0, real_part.dtype), real_part)
    return rad2deg(out) if deg else out


def isreal(x: ArrayLike) -> Array:
    """Whether the imaginary part is zero.

    Args:
        x: an array or scalar of any dtype.

    Returns:
        Booleans in the shape of x; all true if its dtype is not complex.

    >>> import verax.numpy as vnp
    >>> vnp.isreal(vnp.array([1 + 0j, 1j]))
    Array([ True, False], dtype=bool)
    """
    given = as_array("isreal", x)
    if not is_complex(given.dtype):
        return filled(given.shape, True, bool_)
    return eq(parts.imag(given), 0)


def iscomplex(x: ArrayLike) -> Array:
    """Whether the imaginary part is not zero.

    Args:
        x: an array or scalar of any dtype.

    Returns:
        Booleans in the shape of x; all false if its dtype is not complex.

    >>> import verax.numpy as vnp
    >>> vnp.iscomplex(vnp.array([1 + 0j, 1j]))
    Array([False,  True], dtype=bool)
    """
    given = as_array("iscomplex", x)
    if not is_complex(given.dtype):
        return filled(given.shape, False, bool_)
    return ne(parts.imag(given), 0)


def iscomplexobj(x: object) -> bool:
    """Whether the dtype of `x` is complex, whatever its values.

    Args:
        x: an array, a scalar, or a list or tuple of numbers.

    Returns:
        A Python bool.

    >>> import verax.numpy as vnp
    >>> vnp.iscomplexobj(vnp.array([1 + 0j])), vnp.iscomplexobj([1, 2j])
    (True, True)
    """
    if isinstance(x, list | tuple) or hasattr(x, "__jax_array__"):
        return is_complex(asarray(x).dtype)
    return is_complex(x.dtype if hasattr(x, "dtype") else np.asarray(x).dtype)


def isrealobj(x: object) -> bool:
    """Whether the dtype of `x` is not complex.

    Args:
        x: an array, a scalar, or a list or tuple of numbers.

    Returns:
        A Python bool.

    >>> import verax.numpy as vnp
    >>> vnp.isrealobj(vnp.array([1 + 0j])), vnp.isrealobj([1, 2])
    (False, True)
    """
    return not iscomplexobj(x)
