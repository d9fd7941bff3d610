"""Floor 6: arithmetic: sums, products, quotients, powers, signs.

One idea: operands are promoted and broadcast, then each function is one equation, or
the few that its mathematics asks for::

    divide(7, 2)                   # 3.5
    floor_divide(-7, 2)            # -4
"""

import operator

import numpy as np

from verax.backend.eager.composites import remembered
from verax.ir.dtypes import bool_, is_complex, is_inexact, is_integer, is_unsigned
from verax.ir.jaxpr import NO_PARAMS
from verax.ir.memos import memoised
from verax.numpy.arguments.arguments import (
    ArrayLike,
    as_array,
    avals_of,
    broadcast_together,
    constant_of,
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
from verax.ops.elementwise.exp_log import cbrt_p, pow_p, sqrt_p, square_p
from verax.ops.elementwise.select import select, stop_gradient
from verax.rules.rows.builder import Tracer
from verax.rules.values.array import Array
from verax.rules.values.constants import aval_of

EXPONENT_BITS = 6
power_params = memoised(IntegerPowParams)


def add(
    x1: ArrayLike, x2: ArrayLike, /, *, out: object = None, where: object = None
) -> Array:
    """x1 + x2; for booleans, x1 or x2."""
    if out is not None or where is not None:
        refuse_out_and_where("add", out, where)
    return binary("add", add_p, x1, x2)


def subtract(
    x1: ArrayLike, x2: ArrayLike, /, *, out: object = None, where: object = None
) -> Array:
    """x1 - x2.

    Raises:
        TypeError: both are boolean.
    """
    if out is not None or where is not None:
        refuse_out_and_where("subtract", out, where)
    return binary("subtract", sub_p, x1, x2)


def multiply(
    x1: ArrayLike, x2: ArrayLike, /, *, out: object = None, where: object = None
) -> Array:
    """x1 x2; for booleans, x1 and x2."""
    if out is not None or where is not None:
        refuse_out_and_where("multiply", out, where)
    return binary("multiply", mul_p, x1, x2)


def true_divide(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """x1 / x2 as floats, also for integers."""
    return binary_inexact("true_divide", div_p, x1, x2)


def divide(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """x1 / x2 as floats, also for integers."""
    return binary_inexact("divide", div_p, x1, x2)


def negative(x: ArrayLike, /, *, out: object = None, where: object = None) -> Array:
    """-x."""
    if out is not None or where is not None:
        refuse_out_and_where("negative", out, where)
    return unary("negative", neg_p, x)


def positive(x: ArrayLike, /) -> Array:
    """x itself."""
    return as_array("positive", x)


def absolute(x: ArrayLike, /) -> Array:
    """|x|, real for complex x."""
    (aval,) = avals_of("absolute", (x,))
    if aval.dtype is bool_ or is_unsigned(aval.dtype):
        return as_array("absolute", x)
    return unary("absolute", abs_p, x)


abs = absolute


def fabs(x: ArrayLike, /) -> Array:
    """|x| as a float.

    Raises:
        TypeError: x is complex.
    """
    refuse_complex("fabs", x)
    return unary_inexact("fabs", abs_p, x)


def sign(x: ArrayLike, /) -> Array:
    """-1, 0 or 1; x / |x| for complex x; zeros and NaN stay as they are."""
    return unary("sign", sign_p, x)


def refuse_complex(
    name: str, *args: ArrayLike, error: type[Exception] = TypeError
) -> None:
    """Raise an `error` if one of the arguments is complex."""
    for aval in avals_of(name, args):
        if is_complex(aval.dtype):
            raise error(
                f"{name} takes real arguments, not {aval}; take .real or abs(x) first"
            )


def maximum(
    x1: ArrayLike, x2: ArrayLike, /, *, out: object = None, where: object = None
) -> Array:
    """The larger of x1 and x2, NaN if one of them is."""
    if out is not None or where is not None:
        refuse_out_and_where("maximum", out, where)
    return binary("maximum", max_p, x1, x2)


def minimum(
    x1: ArrayLike, x2: ArrayLike, /, *, out: object = None, where: object = None
) -> Array:
    """The smaller of x1 and x2, NaN if one of them is."""
    if out is not None or where is not None:
        refuse_out_and_where("minimum", out, where)
    return binary("minimum", min_p, x1, x2)


@remembered
def fmax(x1: ArrayLike, x2: ArrayLike) -> Array:
    """The larger of x1 and x2; a number wins over NaN."""
    x, y = promote_args("fmax", x1, x2)
    return select(bitwise_or(greater(x, y), ne(y, y)), x, y)


@remembered
def fmin(x1: ArrayLike, x2: ArrayLike) -> Array:
    """The smaller of x1 and x2; a number wins over NaN."""
    x, y = promote_args("fmin", x1, x2)
    return select(bitwise_or(less(x, y), ne(y, y)), x, y)


def square(x: ArrayLike, /) -> Array:
    """x squared."""
    (operand,) = promote_numeric("square", x)
    return unary("square", square_p, operand)


def sqrt(x: ArrayLike, /) -> Array:
    """The square root; NaN for negative numbers."""
    return unary_inexact("sqrt", sqrt_p, x)


def cbrt(x: ArrayLike, /) -> Array:
    """The cube root, negative for negative numbers."""
    return unary_inexact("cbrt", cbrt_p, x)


@remembered
def reciprocal(x: ArrayLike, /) -> Array:
    """1 / x as a float."""
    (operand,) = promote_inexact("reciprocal", x)
    return integer_pow(operand, -1)


@remembered
def power(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """x1 to the power x2; a concrete integer exponent multiplies repeatedly.

    Raises:
        TypeError: x1 holds integers and x2 is a negative concrete integer.
    """
    exponent = concrete_integer(x2)
    if exponent is not None:
        if isinstance(x1, Array) and x1.aval.dtype is not bool_:
            return integer_pow_p.call(power_params(exponent), x1)
        (base,) = promote_numeric("power", x1)
        return integer_pow(base, exponent)
    base_aval, exponent_aval = avals_of("power", (x1, x2))
    if is_inexact(base_aval.dtype) and is_integer(exponent_aval.dtype):
        pair = [as_array("power", x1), as_array("power", x2, 1)]
        x, y = broadcast_together("power", pair)
        array = pow_p.call(NO_PARAMS, x, y)
        return with_weak_type(array, base_aval.weak_type)
    x, y = promote_args("power", *promote_numeric("power", x1, x2))
    if is_inexact(aval_of(x).dtype):
        return pow_p.call(NO_PARAMS, x, y)
    weak = base_aval.weak_type and exponent_aval.weak_type
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
    """x to the power y as floats."""
    return binary_inexact("float_power", pow_p, x, y)


@remembered
def hypot(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The hypotenuse of a right triangle, sqrt(x1² + x2²), without overflow.

    Raises:
        TypeError: an argument is complex.
    """
    refuse_complex("hypot", x1, x2, error=ValueError)
    pair = promote_args_inexact("hypot", x1, x2)
    sizes = [abs_p.call(NO_PARAMS, stop_gradient(x)) for x in pair]
    longer = arith.max(*sizes)
    infinite = bitwise_or(*[eq(x, np.inf) for x in sizes])
    zero = eq(longer, 0)
    # The scale cancels, so that it is a constant for differentiation.
    scale = select(bitwise_or(zero, infinite), 1.0, longer)
    total = arith.add(*[square(arith.div(x, scale)) for x in pair])
    root = sqrt_p.call(NO_PARAMS, select(zero, 1.0, total))
    length = select(zero, 0.0, arith.mul(scale, root))
    return select(infinite, np.inf, length)


@remembered
def clip(
    arr: ArrayLike | None = None,
    /,
    min: ArrayLike | None = None,
    max: ArrayLike | None = None,
) -> Array:
    """arr, but at least `min` and at most `max`; None leaves a side open.

    Raises:
        ValueError: an argument is complex, or there is no array.
    """
    if arr is None:
        raise ValueError("No input was provided to the clip function: pass an array")
    given = [x for x in (arr, min, max) if x is not None]
    refuse_complex("clip", *given, error=ValueError)
    values = arr
    if min is not None:
        values = maximum(min, values)
    if max is not None:
        values = minimum(max, values)
    return as_array("clip", values)
