"""Floor 6: division with rest, as Python rounds it: towards minus infinity.

One idea: machines divide towards zero; where the rest has not the sign of the divisor,
the quotient goes down by one and the rest up by the divisor. For a Python scalar as
divisor that sign is known, and half of the equations go::

    floor_divide(-7, 2), remainder(-7, 2)      # -4, 1
"""

from math import inf
from typing import Any

import numpy as np

from verax.backend.eager.composites import in_numpy, remembered
from verax.ir.dtypes import DType, is_complex, is_inexact, is_unsigned
from verax.numpy.arguments.arguments import (
    ArrayLike,
    constant_of,
    is_scalar,
    promote_numeric,
)
from verax.numpy.arguments.elementwise_call import Exactly, WhereFinite, unified
from verax.ops.elementwise.arith import abs, add, div, neg, sign, sub
from verax.ops.elementwise.bits import bitwise_and
from verax.ops.elementwise.compare import eq, gt, lt, ne
from verax.ops.elementwise.remainder import rem
from verax.ops.elementwise.rounding import floor, round
from verax.ops.elementwise.select import select
from verax.rules.values.array import Array


def operands(name: str, x1: ArrayLike, x2: ArrayLike) -> tuple[DType, Any, Any]:
    """Both operands in their common dtype and shape, booleans as integers.

    Raises:
        TypeError: an operand is complex.
    """
    dtype, (x, y) = unified(name, tuple(promote_numeric(name, x1, x2)))
    if is_complex(dtype):
        raise TypeError(f"{name} takes real arguments, not {dtype}")
    return dtype, x, y


def known_sign(x: object) -> int:
    """The sign of a Python scalar, and 0 for what is known only when it runs."""
    if not is_scalar(x) or isinstance(x, complex) or x != x or not x:
        return 0
    return 1 if x > 0 else -1


def off(rest: Array, y: object, divisor: object) -> Array:
    """The places where the rest is not zero and has not the sign of the divisor."""
    known = known_sign(divisor)
    if known:
        return lt(rest, 0) if known > 0 else gt(rest, 0)
    return bitwise_and(ne(lt(rest, 0), lt(y, 0)), ne(rest, 0))


def nonzero_divisor(y: object, divisor: object, dtype: DType) -> object:
    """The divisor with 1 for the integer 0, by which nothing is left."""
    if is_inexact(dtype) or known_sign(divisor):
        return y
    if type(y) is int:  # selected from, it would not stay weak
        return y or 1
    # A number of Python takes the weak type of an array beside it.
    one = 1 if isinstance(y, Array) else constant_of(1, dtype)
    return select(eq(y, 0), one, y)


@remembered
def floor_divide(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The largest integer that is at most x1 / x2; of floats infinite where x1 / x2 is.

    A finite number divided by an infinity gives a zero of either sign. An integer
    divided by 0 is no error, but the result has no meaning.

    Args:
        x1: the dividend, a real array or scalar; booleans are read as integers.
        x2: the divisor, which broadcasts with x1.

    Returns:
        The quotients in the broadcast shape and the common dtype of x1 and x2, which
        for booleans is int32, or int64 with x64.

    Raises:
        TypeError: an operand is complex.

    >>> import verax.numpy as vnp
    >>> vnp.floor_divide(vnp.array([7, -7]), 2)
    Array([ 3, -4], dtype=int32)
    >>> vnp.floor_divide(vnp.array([7.0, -7.0, 0.0]), 0.0)
    Array([ inf, -inf,  nan], dtype=float32)
    """
    dtype, x, y = operands("floor_divide", x1, x2)
    if is_inexact(dtype):
        x, y, _ = upright(x, y, x2)
        return float_quotient(x, y, rem(x, y), x2)
    quotient = div(x, y)
    if is_unsigned(dtype):
        return quotient
    rest = rem(x, y)
    if known_sign(x2):
        return select(off(rest, y, x2), sub(quotient, 1), quotient)
    down = bitwise_and(ne(sign(x), sign(y)), ne(rest, 0))
    return select(down, sub(quotient, 1), quotient)


@in_numpy(WhereFinite(np.remainder))
def remainder(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The remainder after `floor_divide`, with the sign of x2; integer x % 0 is 0.

    Args:
        x1: the dividend, a real array or scalar; booleans are read as integers.
        x2: the divisor, which broadcasts with x1; of floats, 0 leaves NaN.

    Returns:
        The remainders in the broadcast shape and the common dtype of x1 and x2, which
        for booleans is int32, or int64 with x64.

    Raises:
        TypeError: an operand is complex.

    >>> import verax.numpy as vnp
    >>> vnp.remainder(vnp.array([7, -7, 7]), vnp.array([3, 3, -3]))
    Array([ 1,  2, -2], dtype=int32)
    >>> vnp.remainder(vnp.array([7]), 0), vnp.remainder(vnp.array([7.0]), 0)
    (Array([0], dtype=int32), Array([nan], dtype=float32))
    """
    dtype, x, y = operands("remainder", x1, x2)
    if is_inexact(dtype):
        x, y, below = upright(x, y, x2)
        return float_rest(rem(x, y), y, below)
    y = nonzero_divisor(y, x2, dtype)
    rest = rem(x, y)
    if is_unsigned(dtype):
        return rest
    return select(off(rest, y, x2), add(rest, y), rest)


mod = remainder


@in_numpy(Exactly(np.fmod))
def fmod(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The remainder of x1 after division towards zero, with the sign of x1.

    Args:
        x1: the dividend, a real array or scalar; booleans are read as integers.
        x2: the divisor, which broadcasts with x1; 0 leaves 0 of integers and NaN of
            floats.

    Returns:
        The remainders in the broadcast shape and the common dtype of x1 and x2, which
        for booleans is int32, or int64 with x64.

    Raises:
        TypeError: an operand is complex.

    >>> import verax.numpy as vnp
    >>> vnp.fmod(vnp.array([7, -7, 7]), vnp.array([3, 3, -3]))
    Array([ 1, -1,  1], dtype=int32)
    """
    dtype, x, y = operands("fmod", x1, x2)
    return rem(x, nonzero_divisor(y, x2, dtype))


@remembered
def divmod(x1: ArrayLike, x2: ArrayLike, /) -> tuple[Array, Array]:
    """`floor_divide` and `remainder`.

    Args:
        x1: the dividend, a real array or scalar; booleans are read as integers.
        x2: the divisor, which broadcasts with x1.

    Returns:
        The quotients, rounded down, and the remainders, which have the sign of x2; each
        in the broadcast shape and the common dtype of x1 and x2.

    Raises:
        TypeError: an operand is complex.

    >>> import verax.numpy as vnp
    >>> quotient, rest = vnp.divmod(vnp.array([7, -7]), 3)
    >>> quotient.tolist(), rest.tolist()
    ([2, -3], [1, 2])
    """
    dtype, x, y = operands("divmod", x1, x2)
    if is_inexact(dtype):
        x, y, below = upright(x, y, x2)
        rest = rem(x, y)
        return float_quotient(x, y, rest, x2), float_rest(rest, y, below)
    return floor_divide(x1, x2), remainder(x1, x2)


def negative(x: Any) -> Any:
    """-x, of an array or of a constant, which stays one."""
    return neg(x) if isinstance(x, Array) else -x


def upright(
    x: object, y: object, divisor: object
) -> tuple[object, object, Array | bool]:
    """Floats of the same quotient whose divisor is not negative, and where it was.

    A positive divisor leaves two questions fewer: the sign of the rest alone says
    whether it must go up, and adding 0 to a rest of -0 makes it the 0 it must be.
    """
    if known := known_sign(divisor):
        return (x, y, False) if known > 0 else (negative(x), negative(y), True)
    below = lt(y, 0.0)
    return select(below, negative(x), x), select(below, negative(y), y), below


def float_rest(rest: Array, y: object, below: Array | bool) -> Array:
    """The remainder of floats from that of `rem`, with the sign of the divisor."""
    rest = add(rest, select(lt(rest, 0.0), y, 0.0))
    if isinstance(below, bool):
        return neg(rest) if below else rest
    return select(below, neg(rest), rest)


def float_quotient(x: object, y: object, rest: Array, divisor: object) -> Array:
    """The quotient of floats, exact below the precision: x - rest divides evenly.

    Where that is 0 or NaN, x / y says which zero or infinity it is.
    """
    down = lt(rest, 0.0)
    if not known_sign(divisor) or divisor in (inf, -inf):
        down = bitwise_and(down, lt(y, inf))
    quotient = round(div(sub(x, rest), y))
    quotient = select(down, sub(quotient, 1.0), quotient)
    return select(gt(abs(quotient), 0.0), quotient, floor(div(x, y)))
