"""Floor 6: comparisons, truth and bits.

One idea: complex numbers are ordered by real part, and by imaginary part among equals,
as NumPy does; all else is one equation on promoted operands::

    less(x, 3)
    logical_and(x, y)
"""

import numpy as np

from verax.backend.eager.composites import remembered
from verax.ir.dtypes import bool_, is_complex, is_unsigned, uint8
from verax.ir.jaxpr import NO_PARAMS, NoParams
from verax.numpy.arguments.arguments import (
    ArrayLike,
    avals_of,
    broadcast_together,
    promote_args,
    promote_numeric,
    refuse_out_and_where,
)
from verax.numpy.arguments.elementwise_call import (
    binary,
    leveled,
    logical,
    truth,
    unary,
    unified,
)
from verax.ops.elementwise.arith import abs as magnitude, imag, real
from verax.ops.elementwise.bits import (
    and_p,
    not_p,
    or_p,
    population_count,
    shift_left_p,
    shift_right_arithmetic_p,
    shift_right_logical_p,
    xor_p,
)
from verax.ops.elementwise.compare import (
    eq,
    eq_p,
    ge_p,
    gt_p,
    key_pair,
    le_p,
    lt_p,
    ne_p,
)
from verax.ops.elementwise.convert import convert
from verax.ops.elementwise.select import select
from verax.rules.rows.row import Row
from verax.rules.values.array import Array


def equal_keys(name: str, pair: tuple[Array, Array]) -> Array:
    """Where two arrays of random keys have the same words; `name` is the caller's."""
    from verax.ops.random.keys import same_keys

    return same_keys(*leveled(name, *pair))


def equal(x: ArrayLike, y: ArrayLike, /) -> Array:
    """x = y, as booleans.

    NaN equals nothing, itself included.

    Args:
        x, y: arrays or scalars that broadcast together, or two arrays of random keys.

    Returns:
        Booleans in the broadcast shape; the common dtype of x and y is what is
        compared.

    >>> import verax.numpy as vnp
    >>> vnp.equal(vnp.array([0.0, 2.0, vnp.nan]), vnp.array([-0.0, 1.0, vnp.nan]))
    Array([ True, False, False], dtype=bool)
    """
    if (pair := key_pair(x, y)) is not None:
        return equal_keys("equal", pair)
    return binary("equal", eq_p, x, y)


def not_equal(x: ArrayLike, y: ArrayLike, /) -> Array:
    """x ≠ y, as booleans.

    NaN differs from everything, itself included.

    Args:
        x, y: arrays or scalars that broadcast together, or two arrays of random keys.

    Returns:
        Booleans in the broadcast shape; the common dtype of x and y is what is
        compared.

    >>> import verax.numpy as vnp
    >>> vnp.not_equal(vnp.array([0.0, 2.0, vnp.nan]), vnp.array([-0.0, 1.0, vnp.nan]))
    Array([False,  True,  True], dtype=bool)
    """
    if (pair := key_pair(x, y)) is not None:
        return invert(equal_keys("not_equal", pair))
    return binary("not_equal", ne_p, x, y)


def less(x: ArrayLike, y: ArrayLike, /) -> Array:
    """x < y, as booleans.

    Args:
        x, y: arrays or scalars that broadcast together; complex numbers are ordered by
            real part, and by imaginary part where these are equal.

    Returns:
        Booleans in the broadcast shape, false where x or y is NaN.

    >>> import verax.numpy as vnp
    >>> vnp.less(vnp.array([1.0, 2.0, vnp.nan]), 2)
    Array([ True, False, False], dtype=bool)
    >>> vnp.less(vnp.array([1 + 2j, 3j]), 1 + 3j)
    Array([ True,  True], dtype=bool)
    """
    return ordered("less", lt_p, lt_p, x, y)


def less_equal(x: ArrayLike, y: ArrayLike, /) -> Array:
    """x ≤ y, as booleans.

    Args:
        x, y: arrays or scalars that broadcast together; complex numbers are ordered by
            real part, and by imaginary part where these are equal.

    Returns:
        Booleans in the broadcast shape, false where x or y is NaN.

    >>> import verax.numpy as vnp
    >>> vnp.less_equal(vnp.array([1.0, 2.0, vnp.nan]), 2)
    Array([ True,  True, False], dtype=bool)
    """
    return ordered("less_equal", le_p, lt_p, x, y)


def greater(x: ArrayLike, y: ArrayLike, /) -> Array:
    """x > y, as booleans.

    Args:
        x, y: arrays or scalars that broadcast together; complex numbers are ordered by
            real part, and by imaginary part where these are equal.

    Returns:
        Booleans in the broadcast shape, false where x or y is NaN.

    >>> import verax.numpy as vnp
    >>> vnp.greater(vnp.array([[1], [2]]), vnp.array([0, 1, 2]))
    Array([[ True, False, False],
           [ True,  True, False]], dtype=bool)
    """
    return ordered("greater", gt_p, gt_p, x, y)


def greater_equal(x: ArrayLike, y: ArrayLike, /) -> Array:
    """x ≥ y, as booleans.

    Args:
        x, y: arrays or scalars that broadcast together; complex numbers are ordered by
            real part, and by imaginary part where these are equal.

    Returns:
        Booleans in the broadcast shape, false where x or y is NaN.

    >>> import verax.numpy as vnp
    >>> vnp.greater_equal(vnp.array([[1], [2]]), vnp.array([0, 1, 2]))
    Array([[ True,  True, False],
           [ True,  True,  True]], dtype=bool)
    """
    return ordered("greater_equal", ge_p, gt_p, x, y)


def ordered(
    name: str, row: Row[NoParams], strict: Row[NoParams], x: ArrayLike, y: ArrayLike
) -> Array:
    """A comparison by order; `strict` compares real parts that differ."""
    alike = isinstance(x, Array) and isinstance(y, Array) and x.aval is y.aval
    if alike and not is_complex_array(x):
        return binary(name, row, x, y)
    for operand in (x, y):
        if isinstance(operand, complex) or is_complex_array(operand):
            return lexicographic(name, row, strict, x, y)
    return binary(name, row, x, y)


def is_complex_array(x: object) -> bool:
    dtype = getattr(x, "dtype", None)
    return isinstance(dtype, np.dtype) and is_complex(dtype)


def lexicographic(
    name: str, row: Row[NoParams], strict: Row[NoParams], x: ArrayLike, y: ArrayLike
) -> Array:
    """Complex numbers in order of their real, then of their imaginary parts."""
    z, w = promote_args(name, x, y)
    re_z, re_w = real(z), real(w)
    by_imaginary = row.call(NO_PARAMS, imag(z), imag(w))
    by_real = strict.call(NO_PARAMS, re_z, re_w)
    return select(eq(re_z, re_w), by_imaginary, by_real)


@remembered
def logical_and(
    x: ArrayLike, y: ArrayLike, /, *, out: object = None, where: object = None
) -> Array:
    """Whether x and y are both not zero.

    Args:
        x, y: arrays or scalars of any dtype that broadcast together; NaN is not zero.
        out: only None, since arrays are immutable.
        where: only None; apply `verax.numpy.where` to the result.

    Returns:
        Booleans in the broadcast shape.

    Raises:
        NotImplementedError: `out` or `where` is not None.

    >>> import verax.numpy as vnp
    >>> vnp.logical_and(vnp.array([0, 2, vnp.nan]), vnp.array([True, True, True]))
    Array([False,  True,  True], dtype=bool)
    """
    if out is not None or where is not None:
        refuse_out_and_where("logical_and", out, where)
    return logical("logical_and", and_p, x, y)


@remembered
def logical_or(
    x: ArrayLike, y: ArrayLike, /, *, out: object = None, where: object = None
) -> Array:
    """Whether x or y is not zero.

    Args:
        x, y: arrays or scalars of any dtype that broadcast together; NaN is not zero.
        out: only None, since arrays are immutable.
        where: only None; apply `verax.numpy.where` to the result.

    Returns:
        Booleans in the broadcast shape.

    Raises:
        NotImplementedError: `out` or `where` is not None.

    >>> import verax.numpy as vnp
    >>> vnp.logical_or(vnp.array([0, 2, 0]), vnp.array([0.0, 0.0, 0.5]))
    Array([False,  True,  True], dtype=bool)
    """
    if out is not None or where is not None:
        refuse_out_and_where("logical_or", out, where)
    return logical("logical_or", or_p, x, y)


@remembered
def logical_xor(
    x: ArrayLike, y: ArrayLike, /, *, out: object = None, where: object = None
) -> Array:
    """Whether exactly one of x and y is not zero.

    Args:
        x, y: arrays or scalars of any dtype that broadcast together; NaN is not zero.
        out: only None, since arrays are immutable.
        where: only None; apply `verax.numpy.where` to the result.

    Returns:
        Booleans in the broadcast shape.

    Raises:
        NotImplementedError: `out` or `where` is not None.

    >>> import verax.numpy as vnp
    >>> vnp.logical_xor(vnp.array([0, 2, 3]), vnp.array([1, 1, 0]))
    Array([ True, False,  True], dtype=bool)
    """
    if out is not None or where is not None:
        refuse_out_and_where("logical_xor", out, where)
    return logical("logical_xor", xor_p, x, y)


def logical_not(x: ArrayLike, /) -> Array:
    """Whether x is zero.

    Args:
        x: an array or scalar of any dtype; NaN is not zero.

    Returns:
        Booleans in the shape of x.

    >>> import verax.numpy as vnp
    >>> vnp.logical_not(vnp.array([0.0, -0.0, 2.0, vnp.nan]))
    Array([ True,  True, False, False], dtype=bool)
    """
    (aval,) = avals_of("logical_not", (x,))
    if aval.dtype is bool_:
        return not_p.call(NO_PARAMS, truth("logical_not", x))
    return equal(x, 0)


def bitwise_and(
    x: ArrayLike, y: ArrayLike, /, *, out: object = None, where: object = None
) -> Array:
    """The bits that are set in x and in y; for booleans, x and y.

    Args:
        x, y: integers or booleans, arrays or scalars that broadcast together.
        out: only None, since arrays are immutable.
        where: only None; apply `verax.numpy.where` to the result.

    Returns:
        The broadcast shape, in the common dtype of x and y.

    Raises:
        NotImplementedError: `out` or `where` is not None.

    >>> import verax.numpy as vnp
    >>> vnp.bitwise_and(vnp.array([-1, 12]), 6)
    Array([6, 4], dtype=int32)
    """
    if out is not None or where is not None:
        refuse_out_and_where("bitwise_and", out, where)
    return binary("bitwise_and", and_p, x, y)


def bitwise_or(
    x: ArrayLike, y: ArrayLike, /, *, out: object = None, where: object = None
) -> Array:
    """The bits that are set in x or in y; for booleans, x or y.

    Args:
        x, y: integers or booleans, arrays or scalars that broadcast together.
        out: only None, since arrays are immutable.
        where: only None; apply `verax.numpy.where` to the result.

    Returns:
        The broadcast shape, in the common dtype of x and y.

    Raises:
        NotImplementedError: `out` or `where` is not None.

    >>> import verax.numpy as vnp
    >>> vnp.bitwise_or(vnp.array([-1, 12]), 6)
    Array([-1, 14], dtype=int32)
    """
    if out is not None or where is not None:
        refuse_out_and_where("bitwise_or", out, where)
    return binary("bitwise_or", or_p, x, y)


def bitwise_xor(
    x: ArrayLike, y: ArrayLike, /, *, out: object = None, where: object = None
) -> Array:
    """The bits in which x and y differ; for booleans, x ≠ y.

    Args:
        x, y: integers or booleans, arrays or scalars that broadcast together.
        out: only None, since arrays are immutable.
        where: only None; apply `verax.numpy.where` to the result.

    Returns:
        The broadcast shape, in the common dtype of x and y.

    Raises:
        NotImplementedError: `out` or `where` is not None.

    >>> import verax.numpy as vnp
    >>> vnp.bitwise_xor(vnp.array([-1, 12]), 6)
    Array([-7, 10], dtype=int32)
    """
    if out is not None or where is not None:
        refuse_out_and_where("bitwise_xor", out, where)
    return binary("bitwise_xor", xor_p, x, y)


def invert(x: ArrayLike, /) -> Array:
    """Every bit of x turned over; for booleans, not x.

    Args:
        x: an array or scalar of integers or booleans.

    Returns:
        An array of the shape and dtype of x; of signed integers -x - 1.

    >>> import verax.numpy as vnp
    >>> vnp.invert(vnp.array([0, 5]))
    Array([-1, -6], dtype=int32)
    >>> vnp.invert(vnp.array([0, 5], dtype="uint8"))
    Array([255, 250], dtype=uint8)
    """
    return unary("invert", not_p, x)


@remembered
def left_shift(x: ArrayLike, y: ArrayLike, /) -> Array:
    """The bits of x moved up by y; 0 if y is the width or more.

    Args:
        x: integers, an array or scalar; booleans are read as integers.
        y: by how many bits, integers that broadcast with x; negative ones are read as
            more than the width.

    Returns:
        The broadcast shape, in the common dtype of x and y; for booleans int32, or
        int64 with x64. Bits that leave this dtype are lost.

    >>> import verax.numpy as vnp
    >>> vnp.left_shift(1, vnp.array([0, 3, 31, 32]))
    Array([          1,           8, -2147483648,           0], dtype=int32)
    """
    pair = broadcast_together("left_shift", promote_numeric("left_shift", x, y))
    return shift_left_p.call(NO_PARAMS, *pair)


@remembered
def right_shift(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The bits of x1 moved down by x2, keeping the sign of signed integers.

    Where x2 is the width or more, the result is 0, or -1 for negative x1.

    Args:
        x1: integers, an array or scalar; booleans are read as integers.
        x2: by how many bits, integers that broadcast with x1; negative ones are read as
            more than the width.

    Returns:
        The broadcast shape, in the common dtype of x1 and x2; for booleans int32, or
        int64 with x64.

    >>> import verax.numpy as vnp
    >>> vnp.right_shift(vnp.array([-8, 9, -1]), vnp.array([1, 2, 40]))
    Array([-4,  2, -1], dtype=int32)
    """
    dtype, pair = unified("right_shift", tuple(promote_numeric("right_shift", x1, x2)))
    unsigned = is_unsigned(dtype)
    row = shift_right_logical_p if unsigned else shift_right_arithmetic_p
    return row.call(NO_PARAMS, *pair)


@remembered
def bitwise_count(x: ArrayLike, /) -> Array:
    """The number of bits of |x| that are set, as uint8.

    Args:
        x: integers, an array or scalar; booleans are read as integers.

    Returns:
        An array of uint8 in the shape of x.

    >>> import verax.numpy as vnp
    >>> vnp.bitwise_count(vnp.array([0, 7, -8, 255]))
    Array([0, 3, 1, 8], dtype=uint8)
    """
    (operand,) = promote_numeric("bitwise_count", x)
    (aval,) = avals_of("bitwise_count", (operand,))
    if not is_unsigned(aval.dtype):
        operand = magnitude(operand)
    return convert(population_count(operand), uint8)


bitwise_not = invert
bitwise_invert = invert
bitwise_left_shift = left_shift
bitwise_right_shift = right_shift
