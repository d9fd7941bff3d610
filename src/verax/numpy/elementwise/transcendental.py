"""Floor 6: exponentials, logarithms, trigonometric and hyperbolic functions.

One idea: a function of mathematics reads integers as floats and is one equation; the
few others are written so that they neither overflow nor cancel::

    exp(1)                          # 2.7182817
    logaddexp(1000., 1000.)         # 1000.6931
"""

import math

from verax.backend.eager.composites import remembered
from verax.ir.dtypes import float32, float64, is_complex, is_float, real_dtype
from verax.ir.jaxpr import NO_PARAMS
from verax.numpy.arguments.arguments import (
    ArrayLike,
    constant_of,
    inexact_array,
    number_beside,
    promote_args_inexact,
    promote_inexact,
    refuse_out_and_where,
    with_weak_type,
)
from verax.numpy.arguments.elementwise_call import binary_inexact, unary_inexact
from verax.ops.elementwise.arith import (
    abs as magnitude,
    add,
    complex as make_complex,
    div,
    imag,
    integer_pow,
    max_p,
    mul,
    neg,
    real,
    sub,
)
from verax.ops.elementwise.bits import bitwise_and
from verax.ops.elementwise.compare import eq, lt, ne
from verax.ops.elementwise.convert import convert
from verax.ops.elementwise.exp_log import (
    exp2_p,
    exp_p,
    expm1_p,
    log1p_p,
    log2_p,
    log_p,
    logaddexp_p,
)
from verax.ops.elementwise.remainder import rem
from verax.ops.elementwise.rounding import RoundingMethod, floor, round
from verax.ops.elementwise.select import select
from verax.ops.elementwise.trig import (
    acos_p,
    acosh_p,
    asin_p,
    asinh_p,
    atan2_p,
    atan_p,
    atanh_p,
    cos_p,
    cosh_p,
    sin_p,
    sinh_p,
    tan_p,
    tanh_p,
)
from verax.ops.special.bessel import bessel_i0e
from verax.ops.structure.create import full_like
from verax.rules.values.array import Array
from verax.rules.values.constants import aval_of

LN2 = math.log(2.0)


def exp(x: ArrayLike, /) -> Array:
    """e to the power x.

    In float32 it overflows to infinity above about 88.72.

    Args:
        x: an array or scalar; integers and booleans are read as floats.

    Returns:
        The shape of x; its dtype if that is inexact, else float32, or float64 for
        integers of 64 bits.

    >>> import verax.numpy as vnp
    >>> vnp.exp(vnp.array([0.0, 1.0, 89.0, -vnp.inf])).round(3)
    Array([1.   , 2.718,   inf, 0.   ], dtype=float32)
    """
    return unary_inexact("exp", exp_p, x)


def exp2(x: ArrayLike, /) -> Array:
    """2 to the power x.

    Args:
        x: an array or scalar; integers and booleans are read as floats.

    Returns:
        The shape of x; its dtype if that is inexact, else float32, or float64 for
        integers of 64 bits.

    >>> import verax.numpy as vnp
    >>> vnp.exp2(vnp.array([-1, 3, 128]))
    Array([0.5, 8. , inf], dtype=float32)
    """
    return unary_inexact("exp2", exp2_p, x)


def expm1(x: ArrayLike, /) -> Array:
    """exp(x) - 1, accurate near zero.

    Args:
        x: an array or scalar; integers and booleans are read as floats.

    Returns:
        The shape of x; its dtype if that is inexact, else float32, or float64 for
        integers of 64 bits.

    >>> import verax.numpy as vnp
    >>> x = vnp.array([1e-8])
    >>> vnp.expm1(x), vnp.exp(x) - 1
    (Array([1.e-08], dtype=float32), Array([0.], dtype=float32))
    """
    return unary_inexact("expm1", expm1_p, x)


def log(x: ArrayLike, /) -> Array:
    """The natural logarithm; -inf at 0, NaN below.

    Args:
        x: an array or scalar; integers and booleans are read as floats. Make it complex
            for the logarithms of negative numbers.

    Returns:
        The shape of x; its dtype if that is inexact, else float32, or float64 for
        integers of 64 bits. Imaginary parts lie between -π and π.

    >>> import verax.numpy as vnp
    >>> vnp.log(vnp.array([1.0, 0.0, -1.0]))
    Array([  0., -inf,  nan], dtype=float32)
    >>> vnp.log(vnp.array([-1 + 0j])).round(3)
    Array([0.+3.142j], dtype=complex64)
    """
    return unary_inexact("log", log_p, x)


def log2(x: ArrayLike, /) -> Array:
    """The logarithm to the base 2; -inf at 0, NaN below.

    Args:
        x: an array or scalar; integers and booleans are read as floats.

    Returns:
        The shape of x; its dtype if that is inexact, else float32, or float64 for
        integers of 64 bits.

    >>> import verax.numpy as vnp
    >>> vnp.log2(vnp.array([8.0, 0.25, 0.0])).round(3)
    Array([  3.,  -2., -inf], dtype=float32)
    """
    return unary_inexact("log2", log2_p, x)


@remembered
def log10(x: ArrayLike, /) -> Array:
    """The logarithm to the base 10; never weak, as in JAX.

    It is -inf at 0, and NaN for negative numbers.

    Args:
        x: an array or scalar; integers and booleans are read as floats.

    Returns:
        The shape of x; its dtype if that is inexact, else float32, or float64 for
        integers of 64 bits.

    >>> import verax.numpy as vnp
    >>> vnp.log10(vnp.array([1000.0, 0.01, 0.0])).round(3)
    Array([  3.,  -2., -inf], dtype=float32)
    """
    y, factor = unary_inexact("log10", log_p, x), 1 / math.log(10.0)
    if is_complex(y.dtype):
        # Part by part: infinities stay what they are.
        scaled = make_complex(mul(real(y), factor), mul(imag(y), factor))
    else:
        scaled = mul(y, factor)
    return with_weak_type(scaled, False)


def log1p(x: ArrayLike, /) -> Array:
    """log(1 + x), accurate near zero.

    It is -inf at -1, and NaN below.

    Args:
        x: an array or scalar; integers and booleans are read as floats.

    Returns:
        The shape of x; its dtype if that is inexact, else float32, or float64 for
        integers of 64 bits.

    >>> import verax.numpy as vnp
    >>> x = vnp.array([1e-8, -1.0])
    >>> vnp.log1p(x), vnp.log(1 + x)
    (Array([1.e-08,   -inf], dtype=float32), Array([  0., -inf], dtype=float32))
    """
    return unary_inexact("log1p", log1p_p, x)


def logaddexp(
    x1: ArrayLike, x2: ArrayLike, /, *, out: object = None, where: object = None
) -> Array:
    """log(exp(x1) + exp(x2)) without overflow; for complex numbers by real part.

    It adds numbers of which only logarithms are given, as probabilities often are.

    Args:
        x1, x2: arrays or scalars that broadcast together; -inf stands for 0.
        out: only None, since arrays are immutable.
        where: only None; apply `verax.numpy.where` to the result.

    Returns:
        The broadcast shape, in the common dtype of x1 and x2, which for integers is
        float32, or float64 if they have 64 bits.

    Raises:
        NotImplementedError: `out` or `where` is not None.

    >>> import verax.numpy as vnp
    >>> vnp.logaddexp(vnp.array([1000.0, -vnp.inf]), vnp.array([1000.0, 2.0])).round(3)
    Array([1000.693,    2.   ], dtype=float32)
    """
    if out is not None or where is not None:
        refuse_out_and_where("logaddexp", out, where)
    x, y = promote_args_inexact("logaddexp", x1, x2)
    if is_complex(aval_of(x).dtype):
        return complex_logaddexp(x, y)
    return logaddexp_p.call(NO_PARAMS, x, y)


@remembered
def complex_logaddexp(x: Array, y: Array) -> Array:
    """larger + log1p(exp(smaller - larger)); equal infinities have no difference.

    Selections, unlike a maximum, have the right derivatives of every order where the
    operands are equal.
    """
    difference = sub(x, y)
    first = eq(max_p.call(NO_PARAMS, x, y), x)
    distance = select(first, neg(difference), difference)
    tail = log1p_p.call(NO_PARAMS, exp_p.call(NO_PARAMS, distance))
    array = add(select(first, x, y), tail)
    return principal(select(ne(difference, difference), add(x, y), array))


def principal(z: Array) -> Array:
    """`z` with its imaginary part between -π and π."""
    angle = rem(imag(z), 2 * math.pi)
    below = lt(angle, -math.pi)
    angle = select(below, add(angle, 2 * math.pi), angle)
    above = lt(constant_of(math.pi, angle.dtype), angle)
    return make_complex(real(z), select(above, sub(angle, 2 * math.pi), angle))


@remembered
def logaddexp2(
    x1: ArrayLike, x2: ArrayLike, /, *, out: object = None, where: object = None
) -> Array:
    """log2(2**x1 + 2**x2) without overflow.

    Args:
        x1, x2: arrays or scalars that broadcast together; -inf stands for 0.
        out: only None, since arrays are immutable.
        where: only None; apply `verax.numpy.where` to the result.

    Returns:
        The broadcast shape, in the common dtype of x1 and x2, which for integers is
        float32, or float64 if they have 64 bits.

    Raises:
        NotImplementedError: `out` or `where` is not None.

    >>> import verax.numpy as vnp
    >>> vnp.logaddexp2(vnp.array([3.0, -vnp.inf]), vnp.array([3.0, 2.0])).round(3)
    Array([4., 2.], dtype=float32)
    """
    if out is not None or where is not None:
        refuse_out_and_where("logaddexp2", out, where)
    x, y = promote_args_inexact("logaddexp2", x1, x2)
    array = logaddexp(mul(x, number_beside(x, LN2)), mul(y, number_beside(y, LN2)))
    return div(array, number_beside(array, LN2))


def sin(x: ArrayLike, /) -> Array:
    """The sine of x in radians.

    It is NaN at infinities. That pi is rounded in float32 shows in its zeros.

    Args:
        x: an array or scalar; integers and booleans are read as floats.

    Returns:
        The shape of x; its dtype if that is inexact, else float32, or float64 for
        integers of 64 bits.

    >>> import verax.numpy as vnp
    >>> vnp.sin(vnp.array([0.0, vnp.pi / 6, -vnp.pi / 2])).round(3)
    Array([ 0. ,  0.5, -1. ], dtype=float32)
    >>> bool(vnp.sin(vnp.pi) == 0)
    False
    """
    return unary_inexact("sin", sin_p, x)


def cos(x: ArrayLike, /) -> Array:
    """The cosine of x in radians.

    It is NaN at infinities.

    Args:
        x: an array or scalar; integers and booleans are read as floats.

    Returns:
        The shape of x; its dtype if that is inexact, else float32, or float64 for
        integers of 64 bits.

    >>> import verax.numpy as vnp
    >>> vnp.cos(vnp.array([0.0, vnp.pi / 3, vnp.pi, vnp.inf])).round(3)
    Array([ 1. ,  0.5, -1. ,  nan], dtype=float32)
    """
    return unary_inexact("cos", cos_p, x)


def tan(x: ArrayLike, /) -> Array:
    """The tangent of x in radians.

    No float is exactly a pole, so the tangent of π/2 is large but finite.

    Args:
        x: an array or scalar; integers and booleans are read as floats.

    Returns:
        The shape of x; its dtype if that is inexact, else float32, or float64 for
        integers of 64 bits.

    >>> import verax.numpy as vnp
    >>> vnp.tan(vnp.array([0.0, vnp.pi / 4, -vnp.pi / 4])).round(3)
    Array([ 0.,  1., -1.], dtype=float32)
    """
    return unary_inexact("tan", tan_p, x)


def asin(x: ArrayLike, /) -> Array:
    """The angle in [-π/2, π/2] whose sine is x.

    Args:
        x: an array or scalar; integers and booleans are read as floats.

    Returns:
        The shape of x; its dtype if that is inexact, else float32, or float64 for
        integers of 64 bits. It is NaN for real numbers outside [-1, 1].

    >>> import verax.numpy as vnp
    >>> vnp.asin(vnp.array([0.5, -1.0, 2.0])).round(3)
    Array([ 0.524, -1.571,    nan], dtype=float32)
    """
    return unary_inexact("asin", asin_p, x)


def acos(x: ArrayLike, /) -> Array:
    """The angle in [0, π] whose cosine is x.

    Args:
        x: an array or scalar; integers and booleans are read as floats.

    Returns:
        The shape of x; its dtype if that is inexact, else float32, or float64 for
        integers of 64 bits. It is NaN for real numbers outside [-1, 1].

    >>> import verax.numpy as vnp
    >>> vnp.acos(vnp.array([1.0, 0.0, -1.0, 2.0])).round(3)
    Array([0.   , 1.571, 3.142,   nan], dtype=float32)
    """
    return unary_inexact("acos", acos_p, x)


def atan(x: ArrayLike, /) -> Array:
    """The angle in [-π/2, π/2] whose tangent is x.

    Args:
        x: an array or scalar; integers and booleans are read as floats.

    Returns:
        The shape of x; its dtype if that is inexact, else float32, or float64 for
        integers of 64 bits.

    >>> import verax.numpy as vnp
    >>> vnp.degrees(vnp.atan(vnp.array([1.0, -vnp.inf]))).round(3)
    Array([ 45., -90.], dtype=float32)
    """
    return unary_inexact("atan", atan_p, x)


def atan2(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The angle in [-π, π] of the point (x2, x1).

    Both signs count, so that all four quadrants are told apart, and so are zeros of
    either sign.

    Args:
        x1: the second coordinate of the point, an array or scalar.
        x2: the first coordinate, which broadcasts with x1.

    Returns:
        The broadcast shape, in the common dtype of x1 and x2, which for integers is
        float32, or float64 if they have 64 bits.

    >>> import verax.numpy as vnp
    >>> y, x = vnp.array([1.0, -1.0, 0.0, -0.0]), vnp.array([-1.0, -1.0, -1.0, -1.0])
    >>> vnp.degrees(vnp.atan2(y, x)).round(3)
    Array([ 135., -135.,  180., -180.], dtype=float32)
    """
    return binary_inexact("atan2", atan2_p, x1, x2)


def sinh(x: ArrayLike, /) -> Array:
    """The hyperbolic sine of x.

    Args:
        x: an array or scalar; integers and booleans are read as floats.

    Returns:
        The shape of x; its dtype if that is inexact, else float32, or float64 for
        integers of 64 bits.

    >>> import verax.numpy as vnp
    >>> vnp.sinh(vnp.array([0.0, 1.0, -1.0])).round(3)
    Array([ 0.   ,  1.175, -1.175], dtype=float32)
    """
    return unary_inexact("sinh", sinh_p, x)


def cosh(x: ArrayLike, /) -> Array:
    """The hyperbolic cosine of x.

    Args:
        x: an array or scalar; integers and booleans are read as floats.

    Returns:
        The shape of x; its dtype if that is inexact, else float32, or float64 for
        integers of 64 bits.

    >>> import verax.numpy as vnp
    >>> vnp.cosh(vnp.array([0.0, 1.0, -1.0])).round(3)
    Array([1.   , 1.543, 1.543], dtype=float32)
    """
    return unary_inexact("cosh", cosh_p, x)


def tanh(x: ArrayLike, /) -> Array:
    """The hyperbolic tangent of x.

    Args:
        x: an array or scalar; integers and booleans are read as floats.

    Returns:
        The shape of x; its dtype if that is inexact, else float32, or float64 for
        integers of 64 bits.

    >>> import verax.numpy as vnp
    >>> vnp.tanh(vnp.array([0.0, 1.0, -vnp.inf])).round(3)
    Array([ 0.   ,  0.762, -1.   ], dtype=float32)
    """
    return unary_inexact("tanh", tanh_p, x)


def asinh(x: ArrayLike, /) -> Array:
    """The number whose hyperbolic sine is x.

    Args:
        x: an array or scalar; integers and booleans are read as floats.

    Returns:
        The shape of x; its dtype if that is inexact, else float32, or float64 for
        integers of 64 bits.

    >>> import verax.numpy as vnp
    >>> vnp.asinh(vnp.array([0.0, 1.0, -1.0])).round(3)
    Array([ 0.   ,  0.881, -0.881], dtype=float32)
    """
    return unary_inexact("asinh", asinh_p, x)


def acosh(x: ArrayLike, /) -> Array:
    """The number ≥ 0 whose hyperbolic cosine is x; for complex x, of real part ≥ 0.

    Args:
        x: an array or scalar; integers and booleans are read as floats.

    Returns:
        The shape of x; its dtype if that is inexact, else float32, or float64 for
        integers of 64 bits. It is NaN for real numbers below 1.

    >>> import verax.numpy as vnp
    >>> vnp.acosh(vnp.array([1.0, 2.0, 0.5])).round(3)
    Array([0.   , 1.317,   nan], dtype=float32)
    """
    out = unary_inexact("acosh", acosh_p, x)
    if not is_complex(out.dtype):
        return out
    return select(lt(real(out), 0), neg(out), out)


def atanh(x: ArrayLike, /) -> Array:
    """The number whose hyperbolic tangent is x.

    Args:
        x: an array or scalar; integers and booleans are read as floats.

    Returns:
        The shape of x; its dtype if that is inexact, else float32, or float64 for
        integers of 64 bits. It is infinite at ±1, and NaN for real numbers beyond.

    >>> import verax.numpy as vnp
    >>> vnp.atanh(vnp.array([0.5, 1.0, -1.0, 2.0])).round(3)
    Array([0.549,   inf,  -inf,   nan], dtype=float32)
    """
    return unary_inexact("atanh", atanh_p, x)


@remembered
def sinc(x: ArrayLike, /) -> Array:
    """sin(πx) / (πx), 1 at 0, and 0 at infinity.

    Of a real x, the distance to the nearest integer has the sine, but for its sign: πx
    would be rounded too early.

    Args:
        x: an array or scalar; integers and booleans are read as floats.

    Returns:
        The shape of x; its dtype if that is inexact, else float32, or float64 for
        integers of 64 bits.

    >>> import verax.numpy as vnp
    >>> vnp.sinc(vnp.array([0.0, 0.5, -1.5, vnp.inf])).round(3)
    Array([ 1.   ,  0.637, -0.212,  0.   ], dtype=float32)
    """
    operand = inexact_array("sinc", x)
    dtype, weak = operand.dtype, operand.weak_type and not operand.ndim
    if is_float(dtype) and dtype.itemsize < 4:
        operand = convert(operand, float32)
    array = complex_sinc(operand) if is_complex(dtype) else real_sinc(operand)
    return convert(array, dtype, weak)


TAYLOR = [
    (-1.0) ** k * math.pi ** (2 * k) / math.factorial(2 * k + 1) for k in range(13)
]
"""sin(πx) / (πx) in powers of x²; |x| is at most 1/2, where the last is 2e-21."""
FEW = 8
"""Terms in single precision, the last of which is 4e-10."""


def sinc_near_zero(x: Array) -> Array:
    """The Taylor series of sinc, whose derivatives are right at zero too."""
    terms = TAYLOR if real_dtype(x.dtype) == float64 else TAYLOR[:FEW]
    squared = integer_pow(x, 2)
    total = mul(squared, terms[-1])
    for coefficient in terms[-2:0:-1]:
        total = mul(add(total, coefficient), squared)
    return add(total, terms[0])


def real_sinc(x: Array) -> Array:
    """With n the nearest integer of x: (-1)ⁿ (x - n) sinc(x - n) / x."""
    whole = round(x, RoundingMethod.TO_NEAREST_EVEN)
    small = eq(whole, 0)
    rest = select(eq(magnitude(x), math.inf), full_like(x, 0), sub(x, whole))
    series = sinc_near_zero(rest)
    sine = mul(rest, series)
    even = eq(mul(floor(mul(whole, 0.5)), 2.0), whole)
    ratio = div(select(even, sine, neg(sine)), select(small, full_like(x, 1), x))
    return select(small, series, ratio)


def complex_sinc(x: Array) -> Array:
    small = lt(magnitude(x), 0.5 / math.pi)
    scaled = mul(x, number_beside(x, math.pi))
    safe = select(small, number_beside(scaled, 1.0), scaled)
    ratio = div(sin_p.call(NO_PARAMS, safe), safe)
    # Where the series is not used, what its derivative overflows to would not be 0.
    near = select(small, x, number_beside(x, 0.0))
    out = select(small, sinc_near_zero(near), ratio)
    # Along the real line the sine is bounded; elsewhere at infinity it grows.
    ends = bitwise_and(
        eq(magnitude(real(x)), math.inf), lt(magnitude(imag(x)), math.inf)
    )
    return select(ends, full_like(x, 0), out)


@remembered
def deg2rad(x: ArrayLike, /) -> Array:
    """Degrees as radians.

    Args:
        x: an array or scalar; integers and booleans are read as floats.

    Returns:
        The shape of x; its dtype if that is inexact, else float32, or float64 for
        integers of 64 bits.

    >>> import verax.numpy as vnp
    >>> vnp.deg2rad(vnp.array([180, -90])).round(3)
    Array([ 3.142, -1.571], dtype=float32)
    """
    operand = inexact_array("deg2rad", x)
    return mul(operand, number_beside(operand, math.pi / 180))


@remembered
def rad2deg(x: ArrayLike, /) -> Array:
    """Radians as degrees.

    Args:
        x: an array or scalar; integers and booleans are read as floats.

    Returns:
        The shape of x; its dtype if that is inexact, else float32, or float64 for
        integers of 64 bits.

    >>> import verax.numpy as vnp
    >>> vnp.rad2deg(vnp.array([vnp.pi, -vnp.pi / 2])).round(3)
    Array([180., -90.], dtype=float32)
    """
    operand = inexact_array("rad2deg", x)
    return mul(operand, number_beside(operand, 180 / math.pi))


arccos = acos
arccosh = acosh
arcsin = asin
arcsinh = asinh
arctan = atan
arctan2 = atan2
arctanh = atanh
degrees = rad2deg
radians = deg2rad


@remembered
def i0(x: ArrayLike) -> Array:
    """The modified Bessel function of the first kind and order 0.

    It is even, and in float32 overflows to infinity where exp(|x|) does.

    Args:
        x: a real array or scalar; integers and booleans are read as floats.

    Returns:
        The shape of x; its dtype if that is a float, else float32, or float64 for
        integers of 64 bits.

    Raises:
        ValueError: `x` is complex.

    >>> import verax.numpy as vnp
    >>> vnp.i0(vnp.array([0.0, 1.0, -1.0])).round(3)
    Array([1.   , 1.266, 1.266], dtype=float32)
    """
    (z,) = promote_inexact("i0", x)
    if is_complex(aval_of(z).dtype):
        raise ValueError(f"i0 takes real numbers, not {aval_of(z).dtype}")
    return mul(exp(magnitude(z)), bessel_i0e(z))
