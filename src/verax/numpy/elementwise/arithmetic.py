"""Floor 6: arithmetic: sums, products, quotients, powers, signs.

One idea: operands are promoted and broadcast, then each function is one equation, or
the few that its mathematics asks for::

    divide(7, 2)                   # 3.5
    floor_divide(-7, 2)            # -4
"""

import operator
from collections.abc import Sequence

import numpy as np

from verax.api.custom.jvp import custom_jvp
from verax.backend.eager.composites import remembered
from verax.ir.avals import bit_width
from verax.ir.dtypes import (
    bool_,
    float32,
    is_complex,
    is_inexact,
    is_integer,
    is_unsigned,
)
from verax.ir.jaxpr import NO_PARAMS
from verax.ir.memos import memoised
from verax.numpy.arguments.arguments import (
    ArrayLike,
    as_array,
    avals_of,
    broadcast_together,
    constant_of,
    is_scalar,
    promote_args,
    promote_args_inexact,
    promote_inexact,
    promote_numeric,
    refuse_out_and_where,
    with_weak_type,
)
from verax.numpy.arguments.elementwise_call import (
    binary,
    binary_inexact,
    unary,
    unary_inexact,
)
from verax.numpy.elementwise.comparison import greater, less
from verax.ops.elementwise import arith
from verax.ops.elementwise.arith import (
    IntegerPowParams,
    abs_p,
    add_p,
    div_p,
    integer_pow,
    integer_pow_p,
    max_p,
    min_p,
    mul_p,
    neg_p,
    sign_p,
    sub_p,
)
from verax.ops.elementwise.bits import bitwise_and, bitwise_or, shift_right_logical
from verax.ops.elementwise.compare import eq, ne
from verax.ops.elementwise.convert import convert
from verax.ops.elementwise.exp_log import cbrt_p, pow_p, sqrt_p, square_p
from verax.ops.elementwise.select import select
from verax.rules.rows.builder import Tracer
from verax.rules.values.array import Array
from verax.rules.values.constants import aval_of

EXPONENT_BITS = 6
power_params = memoised(IntegerPowParams)


def add(
    x1: ArrayLike, x2: ArrayLike, /, *, out: object = None, where: object = None
) -> Array:
    """x1 + x2; for booleans, x1 or x2.

    Integers that overflow wrap around.

    Args:
        x1, x2: arrays or scalars that broadcast together.
        out: only None, since arrays are immutable.
        where: only None; apply `verax.numpy.where` to the result.

    Returns:
        The sums in the broadcast shape and the common dtype of x1 and x2.

    Raises:
        NotImplementedError: `out` or `where` is not None.

    >>> import verax.numpy as vnp
    >>> vnp.add(vnp.array([[10], [20]]), vnp.array([1, 2, 3]))
    Array([[11, 12, 13],
           [21, 22, 23]], dtype=int32)
    >>> vnp.add(vnp.array([250], dtype="uint8"), vnp.array([10], dtype="uint8"))
    Array([4], dtype=uint8)
    """
    if out is not None or where is not None:
        refuse_out_and_where("add", out, where)
    return binary("add", add_p, x1, x2)


def subtract(
    x1: ArrayLike, x2: ArrayLike, /, *, out: object = None, where: object = None
) -> Array:
    """x1 - x2.

    Integers that overflow wrap around.

    Args:
        x1, x2: arrays or scalars that broadcast together, not both boolean.
        out: only None, since arrays are immutable.
        where: only None; apply `verax.numpy.where` to the result.

    Returns:
        The differences in the broadcast shape and the common dtype of x1 and x2.

    Raises:
        TypeError: both are boolean.
        NotImplementedError: `out` or `where` is not None.

    >>> import verax.numpy as vnp
    >>> vnp.subtract(vnp.array([1, 5], dtype="uint8"), vnp.array([2, 2], dtype="uint8"))
    Array([255,   3], dtype=uint8)
    """
    if out is not None or where is not None:
        refuse_out_and_where("subtract", out, where)
    return binary("subtract", sub_p, x1, x2)


def multiply(
    x1: ArrayLike, x2: ArrayLike, /, *, out: object = None, where: object = None
) -> Array:
    """x1 times x2; for booleans, x1 and x2.

    A boolean array times floats selects: where it is false the product is 0, even of an
    infinity or NaN.

    Args:
        x1, x2: arrays or scalars that broadcast together.
        out: only None, since arrays are immutable.
        where: only None; apply `verax.numpy.where` to the result.

    Returns:
        The products in the broadcast shape and the common dtype of x1 and x2.

    Raises:
        NotImplementedError: `out` or `where` is not None.

    >>> import verax.numpy as vnp
    >>> vnp.multiply(vnp.array([[2], [3]]), vnp.array([1, 10]))
    Array([[ 2, 20],
           [ 3, 30]], dtype=int32)
    >>> vnp.multiply(vnp.array([False, True]), vnp.array([vnp.inf, 2.0]))
    Array([0., 2.], dtype=float32)
    """
    if out is not None or where is not None:
        refuse_out_and_where("multiply", out, where)
    return binary("multiply", mul_p, x1, x2)


def true_divide(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """x1 / x2 as floats, also for integers.

    Args:
        x1: the dividend, an array or scalar.
        x2: the divisor, which broadcasts with x1; 0 gives an infinity or NaN.

    Returns:
        The quotients in the broadcast shape and the common dtype of x1 and x2, which
        for integers is float32, or float64 if they have 64 bits.

    >>> import verax.numpy as vnp
    >>> vnp.true_divide(vnp.array([1, 0, -1]), 0)
    Array([ inf,  nan, -inf], dtype=float32)
    """
    return binary_inexact("true_divide", div_p, x1, x2)


def divide(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """x1 / x2 as floats, also for integers.

    Args:
        x1: the dividend, an array or scalar.
        x2: the divisor, which broadcasts with x1; 0 gives an infinity or NaN.

    Returns:
        The quotients in the broadcast shape and the common dtype of x1 and x2, which
        for integers is float32, or float64 if they have 64 bits.

    >>> import verax.numpy as vnp
    >>> vnp.divide(vnp.array([7, -7]), vnp.array([[2], [4]]))
    Array([[ 3.5 , -3.5 ],
           [ 1.75, -1.75]], dtype=float32)
    """
    return binary_inexact("divide", div_p, x1, x2)


def negative(x: ArrayLike, /, *, out: object = None, where: object = None) -> Array:
    """-x.

    Unsigned integers wrap around.

    Args:
        x: an array or scalar that is not boolean.
        out: only None, since arrays are immutable.
        where: only None; apply `verax.numpy.where` to the result.

    Returns:
        An array of the shape and dtype of x.

    Raises:
        NotImplementedError: `out` or `where` is not None.

    >>> import verax.numpy as vnp
    >>> vnp.negative(vnp.array([0.0, -2.5]))
    Array([-0. ,  2.5], dtype=float32)
    >>> vnp.negative(vnp.array([1], dtype="uint8"))
    Array([255], dtype=uint8)
    """
    if out is not None or where is not None:
        refuse_out_and_where("negative", out, where)
    return unary("negative", neg_p, x)


def positive(x: ArrayLike, /) -> Array:
    """x itself.

    Args:
        x: an array or scalar of any dtype, booleans included.

    Returns:
        The values of x as an array of its shape and dtype.

    >>> import verax.numpy as vnp
    >>> vnp.positive(vnp.array([-1.5, 2.0]))
    Array([-1.5,  2. ], dtype=float32)
    """
    return as_array("positive", x)


def absolute(x: ArrayLike, /) -> Array:
    """|x|, real for complex x.

    The smallest number of a signed integer dtype stays negative, since its absolute
    value has no place there.

    Args:
        x: an array or scalar; unsigned integers and booleans stay as they are.

    Returns:
        An array of the shape and dtype of x; for complex x, of the dtype of its parts.

    >>> import verax.numpy as vnp
    >>> vnp.absolute(vnp.array([3 + 4j, -1j]))
    Array([5., 1.], dtype=float32)
    >>> vnp.absolute(vnp.array([-128, -127], dtype="int8"))
    Array([-128,  127], dtype=int8)
    """
    (aval,) = avals_of("absolute", (x,))
    if aval.dtype is bool_ or is_unsigned(aval.dtype):
        return as_array("absolute", x)
    return unary("absolute", abs_p, x)


abs = absolute


def fabs(x: ArrayLike, /) -> Array:
    """|x| as a float.

    Args:
        x: a real array or scalar; integers and booleans are read as floats.

    Returns:
        The shape of x; its dtype if that is a float, else float32, or float64 for
        integers of 64 bits.

    Raises:
        TypeError: x is complex.

    >>> import verax.numpy as vnp
    >>> vnp.fabs(vnp.array([-2, 1]))
    Array([2., 1.], dtype=float32)
    """
    refuse_complex("fabs", x)
    return unary_inexact("fabs", abs_p, x)


def sign(x: ArrayLike, /) -> Array:
    """-1, 0 or 1; x / |x| for complex x; zeros and NaN stay as they are.

    Args:
        x: an array or scalar that is not boolean.

    Returns:
        An array of the shape and dtype of x.

    >>> import verax.numpy as vnp
    >>> vnp.sign(vnp.array([-2.5, -0.0, vnp.nan]))
    Array([-1., -0., nan], dtype=float32)
    >>> vnp.sign(vnp.array([2j, 0]))
    Array([0.+1.j, 0.+0.j], dtype=complex64)
    """
    return unary("sign", sign_p, x)


def refuse_complex(
    name: str,
    *args: ArrayLike,
    error: type[Exception] = TypeError,
    why: str | None = None,
) -> None:
    """Raise an `error` that says `why` if one of the arguments is complex."""
    for aval in avals_of(name, args):
        if is_complex(aval.dtype):
            raise error(
                f"{why or f'{name} takes real arguments'}, not {aval}; take .real or "
                "abs(x) first"
            )


def maximum(
    x1: ArrayLike, x2: ArrayLike, /, *, out: object = None, where: object = None
) -> Array:
    """The larger of x1 and x2, NaN if one of them is.

    Args:
        x1, x2: arrays or scalars that broadcast together; complex numbers are ordered
            by real part, and by imaginary part where these are equal.
        out: only None, since arrays are immutable.
        where: only None; apply `verax.numpy.where` to the result.

    Returns:
        The broadcast shape, in the common dtype of x1 and x2.

    Raises:
        NotImplementedError: `out` or `where` is not None.

    >>> import verax.numpy as vnp
    >>> vnp.maximum(vnp.array([1.0, 3.0, vnp.nan]), 2.0)
    Array([ 2.,  3., nan], dtype=float32)
    """
    if out is not None or where is not None:
        refuse_out_and_where("maximum", out, where)
    return binary("maximum", max_p, x1, x2)


def minimum(
    x1: ArrayLike, x2: ArrayLike, /, *, out: object = None, where: object = None
) -> Array:
    """The smaller of x1 and x2, NaN if one of them is.

    Args:
        x1, x2: arrays or scalars that broadcast together; complex numbers are ordered
            by real part, and by imaginary part where these are equal.
        out: only None, since arrays are immutable.
        where: only None; apply `verax.numpy.where` to the result.

    Returns:
        The broadcast shape, in the common dtype of x1 and x2.

    Raises:
        NotImplementedError: `out` or `where` is not None.

    >>> import verax.numpy as vnp
    >>> vnp.minimum(vnp.array([1.0, 3.0, vnp.nan]), 2.0)
    Array([ 1.,  2., nan], dtype=float32)
    """
    if out is not None or where is not None:
        refuse_out_and_where("minimum", out, where)
    return binary("minimum", min_p, x1, x2)


@remembered
def fmax(x1: ArrayLike, x2: ArrayLike) -> Array:
    """The larger of x1 and x2; a number wins over NaN.

    Args:
        x1, x2: arrays or scalars that broadcast together.

    Returns:
        The broadcast shape, in the common dtype of x1 and x2; NaN only where both are.

    >>> import verax.numpy as vnp
    >>> vnp.fmax(vnp.array([1.0, vnp.nan, vnp.nan]), vnp.array([3.0, 2.0, vnp.nan]))
    Array([ 3.,  2., nan], dtype=float32)
    """
    x, y = promote_args("fmax", x1, x2)
    return select(bitwise_or(greater(x, y), ne(y, y)), x, y)


@remembered
def fmin(x1: ArrayLike, x2: ArrayLike) -> Array:
    """The smaller of x1 and x2; a number wins over NaN.

    Args:
        x1, x2: arrays or scalars that broadcast together.

    Returns:
        The broadcast shape, in the common dtype of x1 and x2; NaN only where both are.

    >>> import verax.numpy as vnp
    >>> vnp.fmin(vnp.array([1.0, vnp.nan, vnp.nan]), vnp.array([3.0, 2.0, vnp.nan]))
    Array([ 1.,  2., nan], dtype=float32)
    """
    x, y = promote_args("fmin", x1, x2)
    return select(bitwise_or(less(x, y), ne(y, y)), x, y)


def square(x: ArrayLike, /) -> Array:
    """x squared.

    Integers that overflow wrap around.

    Args:
        x: an array or scalar; booleans are read as integers.

    Returns:
        An array of the shape and dtype of x; for booleans int32, or int64 with x64.

    >>> import verax.numpy as vnp
    >>> vnp.square(vnp.array([1 + 2j, 3j]))
    Array([-3.+4.j, -9.+0.j], dtype=complex64)
    >>> vnp.square(vnp.array([100], dtype="int8"))
    Array([16], dtype=int8)
    """
    (operand,) = promote_numeric("square", x)
    return unary("square", square_p, operand)


def sqrt(x: ArrayLike, /) -> Array:
    """The square root; NaN for negative numbers.

    Args:
        x: an array or scalar; integers and booleans are read as floats. To take roots
            of negative numbers, make it complex.

    Returns:
        The shape of x; its dtype if that is inexact, else float32, or float64 for
        integers of 64 bits. Complex roots have a real part that is not negative.

    >>> import verax.numpy as vnp
    >>> vnp.sqrt(vnp.array([9, 0, -4]))
    Array([ 3.,  0., nan], dtype=float32)
    >>> vnp.sqrt(vnp.array([-4 + 0j]))
    Array([0.+2.j], dtype=complex64)
    """
    return unary_inexact("sqrt", sqrt_p, x)


def cbrt(x: ArrayLike, /) -> Array:
    """The cube root, negative for negative numbers.

    Args:
        x: a real array or scalar; integers and booleans are read as floats.

    Returns:
        The shape of x; its dtype if that is a float, else float32, or float64 for
        integers of 64 bits.

    >>> import verax.numpy as vnp
    >>> vnp.cbrt(vnp.array([-8.0, 0.0, 64.0])).round(3)
    Array([-2.,  0.,  4.], dtype=float32)
    """
    return unary_inexact("cbrt", cbrt_p, x)


@remembered
def reciprocal(x: ArrayLike, /) -> Array:
    """1 / x as a float.

    Unlike in NumPy, the reciprocals of integers are not rounded to integers.

    Args:
        x: an array or scalar; integers and booleans are read as floats.

    Returns:
        The shape of x; its dtype if that is inexact, else float32, or float64 for
        integers of 64 bits. Zeros give infinities of their sign.

    >>> import verax.numpy as vnp
    >>> vnp.reciprocal(vnp.array([2, -4]))
    Array([ 0.5 , -0.25], dtype=float32)
    >>> vnp.reciprocal(vnp.array([0.0, -0.0]))
    Array([ inf, -inf], dtype=float32)
    """
    (operand,) = promote_inexact("reciprocal", x)
    return integer_pow(operand, -1)


def power(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """x1 to the power x2; a concrete integer exponent multiplies repeatedly.

    Integers that overflow wrap around. Among several integer exponents for integers, or
    in a traced one, negative ones are no error, but the result is meaningless there,
    except for bases 1 and -1; convert x1 to floats first.

    Args:
        x1: the base, an array or scalar.
        x2: the exponent, which broadcasts with x1.

    Returns:
        The broadcast shape, in the common dtype of x1 and x2, which for booleans is
        int32, or int64 with x64. A negative float to a power that is no integer is NaN.

    Raises:
        TypeError: x1 holds integers, and x2 is a negative integer with a known value.

    >>> import verax.numpy as vnp
    >>> vnp.power(vnp.array([2, -3]), 3)
    Array([  8, -27], dtype=int32)
    >>> vnp.power(vnp.array([-8.0, 0.0, 4.0]), vnp.array([0.5, 0.0, -0.5]))
    Array([nan, 1. , 0.5], dtype=float32)
    """
    if isinstance(x2, Array) and not x2.aval.shape and is_integer(x2.aval.dtype):
        return power_by_scalar(x1, x2)
    return power_of(x1, x2)


def power_by_scalar(x1: ArrayLike, x2: Array) -> Array:
    """`power` by an integer, whose value matters if it is known.

    Types alone do not tell it, by which what `power_of` does is remembered.

    Raises:
        TypeError: x1 holds integers, and the exponent is negative.
    """
    (base,) = avals_of("power", (x1,))
    exponent = concrete_integer(x2)
    if exponent is None:
        return power_of(x1, x2)
    if is_inexact(base.dtype):  # as weak as by a Python integer
        return with_weak_type(power_of(x1, x2), base.weak_type)
    if exponent < 0:
        raise TypeError(
            f"power: integers cannot be raised to the negative power {exponent}; "
            "convert them to floats first"
        )
    return power_of(x1, x2)


@remembered
def power_of(x1: ArrayLike, x2: ArrayLike) -> Array:
    """Computes `power`."""
    exponent = concrete_integer(x2)
    if exponent is not None:
        if isinstance(x1, Array) and x1.aval.dtype is not bool_:
            return integer_pow_p.call(power_params(exponent), x1)
        if is_scalar(x1) and not is_scalar(x2):  # which has the only dtype
            (aval,) = avals_of("power", (x2,))
            base, _ = promote_args("power", *promote_numeric("power", x1, x2))
            return with_weak_type(integer_pow(base, exponent), aval.weak_type)
        (base,) = promote_numeric("power", x1)
        return integer_pow(base, exponent)
    base_aval, exponent_aval = avals_of("power", (x1, x2))
    weak = base_aval.weak_type and exponent_aval.weak_type
    if is_inexact(base_aval.dtype) and is_integer(exponent_aval.dtype):
        pair = [as_array("power", x1), as_array("power", x2, 1)]
        x, y = broadcast_together("power", pair)
        return with_weak_type(pow_p.call(NO_PARAMS, x, y), weak)
    x, y = promote_args("power", *promote_numeric("power", x1, x2))
    if is_inexact(aval_of(x).dtype):
        return pow_p.call(NO_PARAMS, x, y)
    return with_weak_type(integer_power(x, y), weak)


pow = power


def concrete_integer(x: object) -> int | None:
    """The value of an integer scalar that is known now, or None."""
    if type(x) is int:
        return x
    if isinstance(x, Tracer | float | complex) or not hasattr(x, "__index__"):
        return None
    try:
        return operator.index(x)
    except TypeError:
        return None


def integer_power(x: Array, y: Array) -> Array:
    """x to the power y among integers, by squaring.

    Six bits of the exponent are read: with any more, all but 0, 1 and -1 overflow.
    """
    one = constant_of(1, aval_of(x).dtype)
    result = select(bitwise_and(eq(x, 0), ne(y, 0)), np.zeros_like(one), one)
    for _ in range(EXPONENT_BITS):
        odd = ne(bitwise_and(y, one), 0)
        result = select(odd, arith.mul(result, x), result)
        x = arith.mul(x, x)
        y = shift_right_logical(y, one)
    return result


@remembered
def float_power(x: ArrayLike, y: ArrayLike, /) -> Array:
    """x to the power y as floats.

    Unlike in NumPy, the result is not always in double precision.

    Args:
        x: the base, an array or scalar; integers and booleans are read as floats.
        y: the exponent, which broadcasts with x; negative ones are allowed.

    Returns:
        The broadcast shape, in the common dtype of x and y, which for integers is
        float32, or float64 if they have 64 bits.

    >>> import verax.numpy as vnp
    >>> vnp.float_power(vnp.array([2, 4]), vnp.array([-1, 2]))
    Array([ 0.5, 16. ], dtype=float32)
    """
    return binary_inexact("float_power", pow_p, x, y)


@remembered
def hypot(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The hypotenuse of a right triangle, sqrt(x1² + x2²), without overflow.

    It is infinite where a side is, even if the other is NaN.

    Args:
        x1, x2: the other sides, real arrays or scalars that broadcast together; signs
            do not matter, and integers and booleans are read as floats.

    Returns:
        The broadcast shape, in the common dtype of x1 and x2, which for integers is
        float32, or float64 if they have 64 bits.

    Raises:
        ValueError: an argument is complex.

    >>> import verax.numpy as vnp
    >>> vnp.hypot(vnp.array([3.0, -vnp.inf]), vnp.array([-4.0, vnp.nan]))
    Array([ 5., inf], dtype=float32)
    >>> vnp.hypot(vnp.array([3e30]), 4e30)
    Array([5.e+30], dtype=float32)
    """
    why = "jnp.hypot is not well defined for complex-valued inputs"
    refuse_complex("hypot", x1, x2, error=ValueError, why=why)
    pair = promote_args_inexact("hypot", x1, x2)
    aval = aval_of(pair[0])
    dtype, weak = aval.dtype, aval.weak_type
    if bit_width(dtype) < bit_width(float32):
        pair = [convert(x, float32, weak) for x in pair]
    return convert(length_of(*pair), dtype, weak)


@custom_jvp
def length_of(x: Array, y: Array) -> Array:
    """`hypot` of floats of one shape: the longer side times a root from 1 to √2."""
    sizes = [abs_p.call(NO_PARAMS, side) for side in (x, y)]
    longer, shorter = arith.max(*sizes), arith.min(*sizes)
    infinite = bitwise_or(*[eq(size, np.inf) for size in sizes])
    # No infinity is divided by another, and no zero by zero.
    scale = select(bitwise_or(eq(longer, 0), infinite), 1.0, longer)
    root = sqrt_p.call(NO_PARAMS, arith.add(square(arith.div(shorter, scale)), 1.0))
    return select(infinite, np.inf, arith.mul(longer, root))


@length_of.defjvp
def length_tangent(
    primals: Sequence[Array], tangents: Sequence[Array]
) -> tuple[Array, Array]:
    """The sides by the length, none of which exceeds 1; 0 where both sides are."""
    length = length_of(*primals)
    divisor = select(eq(length, 0), 1.0, length)
    slopes = [arith.div(x, divisor) for x in primals]
    parts = [arith.mul(t, slope) for t, slope in zip(tangents, slopes, strict=True)]
    return length, arith.add(*parts)


@remembered
def clip(
    arr: ArrayLike | None = None,
    /,
    min: ArrayLike | None = None,
    max: ArrayLike | None = None,
) -> Array:
    """`arr`, but at least `min` and at most `max`; None leaves a side open.

    Where `min` is larger than `max`, the result is `max`; NaN stays.

    Args:
        arr: a real array or scalar; it has to be given.
        min: the lower bound, which broadcasts with `arr`; by default none.
        max: the upper bound, which broadcasts with `arr`; by default none.

    Returns:
        The broadcast shape, in the common dtype of `arr` and the bounds.

    Raises:
        ValueError: an argument is complex, or there is no array.

    >>> import verax.numpy as vnp
    >>> vnp.clip(vnp.arange(6), 1, 4)
    Array([1, 1, 2, 3, 4, 4], dtype=int32)
    >>> vnp.clip(vnp.array([-2.0, vnp.nan, 3.0]), min=0.0)
    Array([ 0., nan,  3.], dtype=float32)
    """
    if arr is None:
        raise ValueError("No input was provided to the clip function: pass an array")
    given = [x for x in (arr, min, max) if x is not None]
    why = (
        "Complex values have no ordering and cannot be clipped: clip takes real numbers"
    )
    refuse_complex("clip", *given, error=ValueError, why=why)
    values = arr
    if min is not None:
        values = maximum(min, values)
    if max is not None:
        values = minimum(max, values)
    return as_array("clip", values)
