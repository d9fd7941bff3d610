"""Floor 2: arithmetic: sums, products, quotients, extremes, integer powers.

Each row is its mathematics; `x` and `y` are operands, `z` the result, `t` a tangent and
`ct` a cotangent::

    mul_p: z = x y,  dz = t_x y + x t_y
"""

import builtins
from collections.abc import Sequence
from random import Random

import numpy as np
from attrs import frozen

from verax.ir.avals import ShapedArray
from verax.ir.dtypes import (
    DType,
    DTypeLike,
    complex_dtype,
    float32,
    float64,
    is_complex,
    is_integer,
    is_unsigned,
    real_dtype,
)
from verax.ir.jaxpr import NO_PARAMS, Params
from verax.ops import base
from verax.ops.elementwise import lengths
from verax.ops.elementwise.compare import eq, gt
from verax.ops.elementwise.convert import convert, convert_element_type
from verax.ops.elementwise.select import select
from verax.rules.families.elementwise import chlo, elementwise, parametric, stablehlo
from verax.rules.families.reducer import clamped, folding_two, larger_or_smaller
from verax.rules.rows.eager_costs import HUGE, huge, of
from verax.rules.rows.emitter import Emitter, Operand
from verax.rules.rows.kernels import Kernel
from verax.rules.rows.row import (
    Domain,
    Narrow,
    Rows,
    Tangent,
    Traits,
    Work,
    Zero,
    no_flops,
)
from verax.rules.rows.type_shardings import linear_terms, product_terms, quotient_terms
from verax.rules.values.array import Array
from verax.rules.values.constants import (
    ANYTHING,
    COMPLEX,
    FLOAT,
    INTEGER,
    NUMBER,
    SIGNED,
    Kind,
    aval_of,
)
from verax.rules.values.conversions import shown
from verax.rules.values.operands import alike

# -----------------------------------------------------------------------------
# Complex numbers and their parts.
#
# Transposes are linear over the complex numbers and never conjugate; what pairs
# with the imaginary part of z is therefore -i ct::
#
#     imag_p: y = Im z,  transpose: conj(complex(0, ct))


class ComplexParts(Kind):
    """The floats of which complex numbers are made."""

    def holds(self, dtype: DType) -> bool:
        return dtype in (float32, float64)

    def __str__(self) -> str:
        return "float32 or float64 arrays"


real_p = elementwise(
    "real",
    np.real,
    jvp=lambda z, y, t: real(t),
    transpose=lambda ct, z: complex(ct, 0.0),
    lower=stablehlo("real"),
    accepts=COMPLEX,
    result=real_dtype,
    traits=Traits(flops=no_flops, makes_nans=False, additive=True),
)
imag_p = elementwise(
    "imag",
    np.imag,
    jvp=lambda z, y, t: imag(t),
    transpose=lambda ct, z: conj(complex(0.0, ct)),
    lower=stablehlo("imag"),
    accepts=COMPLEX,
    result=real_dtype,
    traits=Traits(flops=no_flops, makes_nans=False, additive=True),
)
complex_p = elementwise(
    "complex",
    base.join_parts,
    operands=2,
    jvp=(lambda x, y, z, t: complex(t, 0.0), lambda x, y, z, t: complex(0.0, t)),
    transpose=(lambda ct, x, y: real(ct), lambda ct, x, y: imag(conj(ct))),
    lower=stablehlo("complex"),
    accepts=ComplexParts(FLOAT.names),
    result=complex_dtype,
    traits=Traits(makes_nans=False),
)
conj_p = elementwise(
    "conj",
    np.conj,
    jvp=lambda z, y, t: conj(t),
    transpose=lambda ct, z: conj(ct),
    lower=chlo("conj"),
    accepts=COMPLEX,
    traits=Traits(makes_nans=False, keeps_zero=True),
)


def real(x: object) -> Array:
    """The real part of a complex array.

    Args:
        x: a complex array or scalar.

    Returns:
        Floats of the shape of `x`, float32 for complex64 and float64 for complex128.

    Raises:
        TypeError: `x` is real.

    >>> import verax.numpy as vnp
    >>> from verax import lax
    >>> lax.real(vnp.array([3 + 4j, 1j]))
    Array([3., 0.], dtype=float32)
    """
    return real_p.call(NO_PARAMS, x)


def imag(x: object) -> Array:
    """The imaginary part of a complex array.

    Args:
        x: a complex array or scalar.

    Returns:
        Floats of the shape of `x`, float32 for complex64 and float64 for complex128.

    Raises:
        TypeError: `x` is real.

    >>> import verax.numpy as vnp
    >>> from verax import lax
    >>> lax.imag(vnp.array([3 + 4j, 2.0]))
    Array([4., 0.], dtype=float32)
    """
    return imag_p.call(NO_PARAMS, x)


def complex(x: object, y: object) -> Array:
    """x + iy, for real x and y.

    Args:
        x, y: float32 or float64 numbers of the same dtype: arrays of the same shape,
            where a size of 1 goes with any other, or scalars. A Python scalar takes the
            dtype of the array beside it.

    Returns:
        complex64 for float32, complex128 for float64, in the shape to which sizes of 1
        grow.

    Raises:
        TypeError: dtypes differ or are of other kinds, or the shapes do not fit.

    >>> import verax.numpy as vnp
    >>> from verax import lax
    >>> lax.complex(vnp.array([1.0, 2.0]), -1.0)
    Array([1.-1.j, 2.-1.j], dtype=complex64)
    """
    return complex_p.call(NO_PARAMS, *alike(x, y))


def conj(x: object) -> Array:
    """The complex conjugate; a real array becomes complex.

    Args:
        x: a complex, float32 or float64 array or scalar.

    Returns:
        Complex numbers of the shape of `x`, of its dtype or, if it is real, of the
        complex dtype made of such floats.

    Raises:
        TypeError: `x` holds integers, booleans or floats of another dtype.

    >>> import verax.numpy as vnp
    >>> from verax import lax
    >>> lax.conj(vnp.array([1 + 2j]))
    Array([1.-2.j], dtype=complex64)
    >>> lax.conj(vnp.array([1.0]))
    Array([1.+0.j], dtype=complex64)
    """
    dtype = aval_of(x).dtype
    if is_complex(dtype):
        return conj_p.call(NO_PARAMS, x)
    if dtype not in (float32, float64):
        raise TypeError(
            f"conj does not accept dtype {dtype}: it takes float32, float64 or complex "
            "numbers; convert them first"
        )
    return complex(x, 0.0)


# -----------------------------------------------------------------------------
# Arithmetic: sums, products, quotients, extremes, integer powers.


DIVISORS = (Domain(), Domain(special=(0.0, -1.0, 1.0)))

neg_p = elementwise(
    "neg",
    np.negative,
    jvp=lambda x, y, t: neg(t),
    transpose=lambda ct, x: neg(ct),
    lower=stablehlo("negate"),
    accepts=NUMBER,
    terms=linear_terms,
    traits=Traits(
        Work.CHEAP,
        fma=True,
        makes_nans=False,
        additive=True,
        summed=True,
        narrow=Narrow.MOVES,
    ),
)
add_p = elementwise(
    "add",
    np.add,
    operands=2,
    jvp=lambda x, y, z, t: t,
    transpose=lambda ct, x, y: ct,
    lower=stablehlo("add"),
    accepts=NUMBER,
    terms=linear_terms,
    traits=Traits(Work.CHEAP, commutative=True, summed=True),
)
sub_p = elementwise(
    "sub",
    np.subtract,
    operands=2,
    jvp=(lambda x, y, z, t: t, lambda x, y, z, t: neg(t)),
    transpose=(lambda ct, x, y: ct, lambda ct, x, y: neg(ct)),
    lower=stablehlo("subtract"),
    accepts=NUMBER,
    terms=linear_terms,
    traits=Traits(Work.CHEAP, summed=True),
)
mul_p = elementwise(
    "mul",
    np.multiply,
    operands=2,
    jvp=(lambda x, y, z, t: mul(t, y), lambda x, y, z, t: mul(x, t)),
    transpose=(lambda ct, x, y: mul(ct, y), lambda ct, x, y: mul(x, ct)),
    lower=stablehlo("multiply"),
    accepts=NUMBER,
    terms=product_terms,
    traits=Traits(Work.CHEAP, commutative=True, fma=True, summed=True),
)
div_p = elementwise(
    "div",
    base.divide,
    operands=2,
    jvp=(lambda x, y, z, t: div(t, y), lambda x, y, z, t: div(mul(t, neg(z)), y)),
    transpose=(lambda ct, x, y: div(ct, y), None),
    lower=stablehlo("divide"),
    accepts=NUMBER,
    terms=quotient_terms,
    domains=DIVISORS,
    costly=of(INTEGER, HUGE),
    traits=Traits(Work.ROOT, summed=True),
)


def above(x: Array, y: Array) -> Array:
    """Whether x > y; complex numbers by real, then by imaginary part."""
    if not is_complex(x.dtype):
        return gt(x, y)
    return select(eq(real(x), real(y)), gt(imag(x), imag(y)), gt(real(x), real(y)))


def larger(x: Array, y: Array, t: Array) -> Array:
    """t where x > y, half of it where they are equal, and otherwise zero."""
    return select(above(x, y), t, select(eq(x, y), mul(t, 0.5), 0.0))


max_p = elementwise(
    "max",
    base.maximum,
    operands=2,
    jvp=(lambda x, y, z, t: larger(x, y, t), lambda x, y, z, t: larger(y, x, t)),
    lower=folding_two(larger_or_smaller("maximum")),
    lower_on={"cpu": folding_two(clamped("maximum"))},
    accepts=ANYTHING,
    traits=Traits(Work.CHEAP, commutative=True, makes_nans=False, narrow=Narrow.MOVES),
)
min_p = elementwise(
    "min",
    base.minimum,
    operands=2,
    jvp=(lambda x, y, z, t: larger(y, x, t), lambda x, y, z, t: larger(x, y, t)),
    lower=folding_two(larger_or_smaller("minimum")),
    lower_on={"cpu": folding_two(clamped("minimum"))},
    accepts=ANYTHING,
    traits=Traits(Work.CHEAP, commutative=True, makes_nans=False, narrow=Narrow.MOVES),
)


def abs_jvp(x: Array, y: Array, t: Array) -> Array:
    """Re(t conj(x)) / |x|, which is t sign(x) for real x; zero where x is."""
    if not is_complex(x.dtype):
        return mul(t, sign(x))
    length = convert(select(eq(y, 0.0), 1.0, y), x.dtype, x.aval.weak_type)
    return real(mul(t, div(conj(x), length)))


def sign_jvp(x: Array, y: Array, t: Array) -> Tangent:
    """Zero for real x; for complex x the part of t across x, at distance one.

    With x = |x| exp(ia): d sign(x) = i sign(x) da, da = Im(conj(sign x) t) / |x|.
    """
    if not is_complex(x.dtype):
        return Zero(t.aval)
    length = abs(x)
    turn = div(imag(mul(conj(y), t)), select(eq(length, 0.0), 1.0, length))
    return mul(y, complex(0.0, turn))


def lower_sign(
    e: Emitter, p: Params, xs: Sequence[Operand], outs: Sequence[ShapedArray]
) -> Sequence[Operand]:
    if is_unsigned(outs[0].dtype):
        return e.op("stablehlo.minimum", (*xs, e.constant(1, outs[0])), outs)
    return e.op("stablehlo.sign", xs, outs)


abs_p = elementwise(
    "abs",
    np.abs,
    jvp=abs_jvp,
    lower=stablehlo("abs"),
    kernel=Kernel(
        dict.fromkeys((float32, float64), lengths.lower_length),
        suits=lengths.suits,
        least=1,
        lowers=True,
    ),
    accepts=SIGNED | FLOAT | COMPLEX,
    result=real_dtype,
    domains=Domain(special=(0.0,), kinks=(0.0,)),
    traits=Traits(
        Work.CHEAP, makes_nans=False, keeps_zero=True, summed=True, narrow=Narrow.MOVES
    ),
)
sign_p = elementwise(
    "sign",
    base.sign,
    jvp=sign_jvp,
    lower=lower_sign,
    accepts=NUMBER,
    domains=Domain(special=(0.0, -0.0), kinks=(0.0,)),
    costly=huge,
    traits=Traits(Work.CHEAP, makes_nans=False, keeps_zero=True),
)
nextafter_p = elementwise(
    "nextafter",
    base.nextafter,
    operands=2,
    jvp=(lambda x, y, z, t: t, None),
    lower=chlo("next_after"),
    accepts=FLOAT,
    domains=Domain(smooth=False),
    costly=huge,
    traits=Traits(makes_nans=False),
)


@frozen(eq=False, repr=False)
class IntegerPowParams(Params):
    """The exponent, by the name that it has in jaxprs of this primitive."""

    y: int


def integer_pow_typing(
    p: IntegerPowParams, avals: Sequence[ShapedArray]
) -> Sequence[ShapedArray]:
    (x,) = avals
    NUMBER.check("integer_pow", x.dtype)
    if p.y < 0 and is_integer(x.dtype):
        raise TypeError(
            f"Integers cannot be raised to negative powers: integer_pow has {p.y}; "
            "convert them to floats first (verax.lax.convert_element_type)"
        )
    return (x,)


def lower_integer_pow(
    e: Emitter,
    p: IntegerPowParams,
    xs: Sequence[Operand],
    outs: Sequence[ShapedArray],
) -> Sequence[Operand]:
    """Squares of x, and the product of those that the exponent's bits name."""
    (square,) = xs
    if p.y == 0:
        return (e.constant(1, outs[0]),)
    power: Operand | None = None
    left = builtins.abs(p.y)
    while left:
        if left & 1:
            power = (
                square
                if power is None
                else e.op("stablehlo.multiply", (power, square), outs)[0]
            )
        left >>= 1
        if left:
            (square,) = e.op("stablehlo.multiply", (square, square), outs)
    assert power is not None
    if p.y < 0:
        return e.op("stablehlo.divide", (e.constant(1, outs[0]), power), outs)
    return (power,)


def integer_pow_jvp(p: IntegerPowParams, x: Array, z: Array, t: Array) -> Tangent:
    """y x^(y - 1) t, without a power of x where it is constant."""
    if p.y == 0:
        return Zero(t.aval)
    if p.y == 1:
        return t
    return mul(t, mul(x if p.y == 2 else integer_pow(x, p.y - 1), p.y))


def draw_exponent(random: Random, dtype: DType) -> IntegerPowParams:
    low = 0 if is_integer(dtype) else -4
    return IntegerPowParams(random.choice((2, 3, 1, 0, random.randint(low, 9))))


integer_pow_p = parametric(
    "integer_pow",
    IntegerPowParams,
    lambda p, x: base.integer_power(x, p.y),
    typing=integer_pow_typing,
    jvp=integer_pow_jvp,
    lower=lower_integer_pow,
    accepts=NUMBER,
    params_of=draw_exponent,
    domains=Domain(-3, 3, special=(0.0, 1.0, -1.0)),
    costly=huge,
    traits=Traits(Work.CHEAP, fma=True, summed=True),
)


def neg(x: object) -> Array:
    """-x.

    Args:
        x: an array or scalar of numbers, not of booleans.

    Returns:
        An array of the shape and dtype of `x`; integers wrap round.

    Raises:
        TypeError: `x` holds booleans.

    >>> import numpy as np
    >>> from verax import lax
    >>> lax.neg(np.array([1, -2], np.int8))
    Array([-1,  2], dtype=int8)
    >>> lax.neg(np.array([1, 0], np.uint8))
    Array([255,   0], dtype=uint8)
    """
    return neg_p.call(NO_PARAMS, x)


def add(x: object, y: object) -> Array:
    """x + y.

    Args:
        x, y: numbers of the same dtype: arrays of the same shape, where a size of 1
            goes with any other, or scalars. A Python scalar takes the dtype of the
            array beside it.

    Returns:
        An array of the operands' dtype, in the shape to which their sizes of 1 grow;
        integers wrap round.

    Raises:
        TypeError: dtypes differ or are of booleans, or the shapes do not fit.

    >>> import verax.numpy as vnp
    >>> from verax import lax
    >>> lax.add(vnp.array([[1], [2]]), vnp.array([[10, 20]]))
    Array([[11, 21],
           [12, 22]], dtype=int32)
    """
    return add_p.call(NO_PARAMS, *alike(x, y))


def sub(x: object, y: object) -> Array:
    """x - y.

    Args:
        x, y: numbers of the same dtype: arrays of the same shape, where a size of 1
            goes with any other, or scalars. A Python scalar takes the dtype of the
            array beside it.

    Returns:
        An array of the operands' dtype, in the shape to which their sizes of 1 grow;
        integers wrap round.

    Raises:
        TypeError: dtypes differ or are of booleans, or the shapes do not fit.

    >>> import numpy as np
    >>> from verax import lax
    >>> lax.sub(np.array([3, 1], np.uint8), np.uint8(2))
    Array([  1, 255], dtype=uint8)
    """
    return sub_p.call(NO_PARAMS, *alike(x, y))


def mul(x: object, y: object, *, out_dtype: DTypeLike | None = None) -> Array:
    """x y.

    Args:
        x, y: numbers of the same dtype: arrays of the same shape, where a size of 1
            goes with any other, or scalars. A Python scalar takes the dtype of the
            array beside it.
        out_dtype: the dtype to which both operands are converted first, so that theirs
            may differ; by default they are not converted.

    Returns:
        An array of `out_dtype` or else of the operands' dtype, in the shape to which
        sizes of 1 grow; integers wrap round.

    Raises:
        TypeError: dtypes differ or are of booleans, or the shapes do not fit.

    >>> import numpy as np
    >>> from verax import lax
    >>> x = np.array([100, -3], np.int8)
    >>> lax.mul(x, 2)
    Array([-56,  -6], dtype=int8)
    >>> lax.mul(x, 2, out_dtype=np.int16)
    Array([200,  -6], dtype=int16)
    """
    if out_dtype is not None:
        x, y = (convert_element_type(operand, out_dtype) for operand in (x, y))
    return mul_p.call(NO_PARAMS, *alike(x, y))


def div(x: object, y: object) -> Array:
    """x / y; for integers towards zero, and -1 (all bits set) where y is zero.

    Args:
        x, y: numbers of the same dtype: arrays of the same shape, where a size of 1
            goes with any other, or scalars. A Python scalar takes the dtype of the
            array beside it.

    Returns:
        An array of the operands' dtype, for integers too, in the shape to which sizes
        of 1 grow.

    Raises:
        TypeError: dtypes differ or are of booleans, or the shapes do not fit.

    >>> import verax.numpy as vnp
    >>> from verax import lax
    >>> lax.div(vnp.array([7, -7, 7]), vnp.array([2, 2, 0]))
    Array([ 3, -3, -1], dtype=int32)
    >>> lax.div(vnp.array([7.0, -7.0, 0.0]), vnp.array([2.0, 0.0, 0.0]))
    Array([ 3.5, -inf,  nan], dtype=float32)
    """
    return div_p.call(NO_PARAMS, *alike(x, y))


def max(x: object, y: object) -> Array:
    """The larger of x and y, NaN if one of them is.

    Complex numbers are ordered by real, then by imaginary part. At a tie each operand
    has half of the derivative.

    Args:
        x, y: numbers or booleans of the same dtype: arrays of the same shape, where a
            size of 1 goes with any other, or scalars. A Python scalar takes the dtype
            of the array beside it.

    Returns:
        An array of the operands' dtype, in the shape to which their sizes of 1 grow.

    Raises:
        TypeError: dtypes differ, or the shapes do not fit.

    >>> import verax.numpy as vnp
    >>> from verax import lax
    >>> lax.max(vnp.array([1.0, vnp.nan, 3.0]), 2.0)
    Array([ 2., nan,  3.], dtype=float32)
    >>> lax.max(vnp.array([1 + 2j, 5j]), 1 + 1j)
    Array([1.+2.j, 1.+1.j], dtype=complex64)
    """
    return max_p.call(NO_PARAMS, *alike(x, y))


def min(x: object, y: object) -> Array:
    """The smaller of x and y, NaN if one of them is.

    Complex numbers are ordered by real, then by imaginary part. At a tie each operand
    has half of the derivative.

    Args:
        x, y: numbers or booleans of the same dtype: arrays of the same shape, where a
            size of 1 goes with any other, or scalars. A Python scalar takes the dtype
            of the array beside it.

    Returns:
        An array of the operands' dtype, in the shape to which their sizes of 1 grow.

    Raises:
        TypeError: dtypes differ, or the shapes do not fit.

    >>> import verax.numpy as vnp
    >>> from verax import lax
    >>> lax.min(vnp.array([1.0, vnp.nan, 3.0]), 2.0)
    Array([ 1., nan,  2.], dtype=float32)
    """
    return min_p.call(NO_PARAMS, *alike(x, y))


def abs(x: object) -> Array:
    """|x|, real for complex x; the derivative at zero is zero.

    Args:
        x: an array or scalar of signed integers, floats or complex numbers.

    Returns:
        An array of the shape of `x` and its dtype, or for complex `x` that of its
        parts. The least integer has no counterpart and stays.

    Raises:
        TypeError: `x` holds unsigned integers or booleans.

    >>> import verax.numpy as vnp
    >>> from verax import lax
    >>> lax.abs(vnp.array([3 - 4j, -1]))
    Array([5., 1.], dtype=float32)
    >>> lax.abs(vnp.array([-128, 5], dtype='int8'))
    Array([-128,    5], dtype=int8)
    """
    return abs_p.call(NO_PARAMS, x)


def sign(x: object) -> Array:
    """-1, 0 or 1; x / |x| for complex x; zeros and NaN stay as they are.

    Args:
        x: an array or scalar of numbers, not of booleans.

    Returns:
        An array of the shape and dtype of `x`.

    Raises:
        TypeError: `x` holds booleans.

    >>> import verax.numpy as vnp
    >>> from verax import lax
    >>> lax.sign(vnp.array([-2.0, -0.0, vnp.nan]))
    Array([-1., -0., nan], dtype=float32)
    >>> lax.sign(vnp.array([2 + 0j, 3j]))
    Array([1.+0.j, 0.+1.j], dtype=complex64)
    """
    return sign_p.call(NO_PARAMS, x)


def integer_pow(x: object, y: int) -> Array:
    """x to the power of a Python integer, by repeated multiplication.

    Args:
        x: an array or scalar of numbers, not of booleans.
        y: the exponent, a Python or NumPy integer; for integers `x` at least 0.

    Returns:
        An array of the shape and dtype of `x`; integers wrap round.

    Raises:
        TypeError: y is not an integer, or is negative while x holds integers.

    >>> import verax.numpy as vnp
    >>> from verax import lax
    >>> lax.integer_pow(vnp.array([2, -3]), 3)
    Array([  8, -27], dtype=int32)
    >>> lax.integer_pow(vnp.array([2.0, 0.0]), -2)
    Array([0.25,  inf], dtype=float32)
    """
    if not isinstance(y, int | np.integer):
        raise TypeError(
            f"integer_pow takes a Python integer as exponent, not {shown(y)} of type "
            f"{type(y).__name__}; use verax.lax.pow"
        )
    return integer_pow_p.call(IntegerPowParams(int(y)), x)


def reciprocal(x: object) -> Array:
    """1 / x.

    Args:
        x: a float or complex array or scalar.

    Returns:
        An array of the shape and dtype of `x`.

    Raises:
        TypeError: `x` holds integers or booleans.

    >>> import verax.numpy as vnp
    >>> from verax import lax
    >>> lax.reciprocal(vnp.array([4.0, 0.0, -0.0]))
    Array([0.25,  inf, -inf], dtype=float32)
    """
    return integer_pow(x, -1)


def nextafter(x1: object, x2: object) -> Array:
    """The float next to x1 on the side of x2; with the derivative of x1.

    Args:
        x1, x2: floats of the same dtype: arrays of the same shape, where a size of 1
            goes with any other, or scalars. A Python scalar takes the dtype of the
            array beside it.

    Returns:
        An array of the operands' dtype, in the shape to which sizes of 1 grow; `x1`
        where both are equal.

    Raises:
        TypeError: dtypes differ or are of other numbers, or the shapes do not fit.

    >>> import numpy as np
    >>> from verax import lax
    >>> lax.nextafter(np.float32(1), np.float32(2)) - 1 == np.finfo(np.float32).eps
    Array(True, dtype=bool)
    >>> lax.nextafter(np.float32(1), np.float32(1))
    Array(1., dtype=float32)
    """
    return nextafter_p.call(NO_PARAMS, *alike(x1, x2))


ROWS: Rows = (
    neg_p,
    add_p,
    sub_p,
    mul_p,
    div_p,
    max_p,
    min_p,
    abs_p,
    sign_p,
    nextafter_p,
    integer_pow_p,
    real_p,
    imag_p,
    complex_p,
    conj_p,
)
