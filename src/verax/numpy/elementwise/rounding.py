"""Floor 6: rounding.

Integers are round already; floats go through one row each::

    floor(-1.5), trunc(-1.5), round(2.5), round(1234, -2)    # -2 -1 2 1200
"""

from operator import index

import numpy as np

from verax.backend.eager.composites import in_numpy, remembered
from verax.ir.dtypes import (
    DType,
    bool_,
    float32,
    is_complex,
    is_float,
    is_inexact,
    is_integer,
    numpy_dtype,
)
from verax.ir.jaxpr import NO_PARAMS, NoParams
from verax.numpy.arguments.arguments import (
    ArrayLike,
    as_array,
    constant_of,
    default_float,
    no_out,
    promote_inexact,
)
from verax.numpy.arguments.elementwise_call import Exactly
from verax.numpy.elementwise.arithmetic import refuse_complex
from verax.numpy.elementwise.division import floor_divide
from verax.ops.elementwise.arith import (
    abs_p,
    add,
    complex as make_complex,
    div,
    imag,
    mul,
    real,
    sub,
)
from verax.ops.elementwise.bits import bitwise_and, bitwise_or
from verax.ops.elementwise.compare import eq, ge, gt, lt, ne
from verax.ops.elementwise.convert import convert
from verax.ops.elementwise.rounding import (
    RoundingMethod,
    ceil_p,
    floor_p,
    round as round_half,
)
from verax.ops.elementwise.select import select
from verax.ops.structure.create import full_like
from verax.rules.rows.row import Row
from verax.rules.values.array import Array

EVEN = RoundingMethod.TO_NEAREST_EVEN


def whole(name: str, row: Row[NoParams], x: ArrayLike) -> Array:
    """`row` on floats; integers and booleans as they are."""
    given = as_array(name, x)
    if is_integer(given.dtype) or given.dtype == bool_:
        return given
    refuse_complex(name, given)
    return row.call(NO_PARAMS, given)


def floor(x: ArrayLike, /) -> Array:
    """The largest integer that is at most x.

    Args:
        x: a real array or scalar; integers and booleans stay as they are.

    Returns:
        An array of the shape and dtype of x: floats stay floats.

    Raises:
        TypeError: x is complex.

    >>> import verax.numpy as vnp
    >>> vnp.floor(vnp.array([-1.5, -0.2, 2.5]))
    Array([-2., -1.,  2.], dtype=float32)
    """
    return whole("floor", floor_p, x)


def ceil(x: ArrayLike, /) -> Array:
    """The smallest integer that is at least x.

    Args:
        x: a real array or scalar; integers and booleans stay as they are.

    Returns:
        An array of the shape and dtype of x: floats stay floats.

    Raises:
        TypeError: x is complex.

    >>> import verax.numpy as vnp
    >>> vnp.ceil(vnp.array([-1.5, -0.2, 2.5]))
    Array([-1., -0.,  3.], dtype=float32)
    """
    return whole("ceil", ceil_p, x)


@in_numpy(Exactly(np.trunc))
def trunc(x: ArrayLike) -> Array:
    """The integer next to x on the side of zero.

    Args:
        x: a real array or scalar; integers and booleans stay as they are.

    Returns:
        An array of the shape and dtype of x: floats stay floats.

    Raises:
        TypeError: x is complex.

    >>> import verax.numpy as vnp
    >>> vnp.trunc(vnp.array([-1.5, -0.2, 2.5, vnp.inf]))
    Array([-1., -0.,  2., inf], dtype=float32)
    """
    given = as_array("trunc", x)
    if is_integer(given.dtype) or given.dtype == bool_:
        return given
    refuse_complex("trunc", given)
    return towards_zero(given)


def towards_zero(x: Array) -> Array:
    down, up = floor_p.call(NO_PARAMS, x), ceil_p.call(NO_PARAMS, x)
    return select(lt(x, 0), up, down)


fix = trunc


def rint(x: ArrayLike, /) -> Array:
    """The integer nearest to x as a float; halves go to the even one.

    Args:
        x: an array or scalar; of complex numbers, each part is rounded.

    Returns:
        The shape of x; its dtype if that is inexact, else float32, or float64 with x64.

    >>> import verax.numpy as vnp
    >>> vnp.rint(vnp.array([0.5, 1.5, 2.5, -0.5]))
    Array([ 0.,  2.,  2., -0.], dtype=float32)
    """
    given = as_array("rint", x)
    return round(given if is_inexact(given.dtype) else convert(given, default_float()))


@remembered
def round(a: ArrayLike, decimals: int = 0, out: None = None) -> Array:
    """`a` rounded to `decimals` decimals, halves to even; each part if complex.

    Args:
        a: an array or scalar of numbers.
        decimals: how many digits to keep after the point, 0 by default; if negative,
            digits before the point become zeros, of integers too.
        out: only None, since arrays are immutable.

    Returns:
        An array of the shape and dtype of `a`.

    Raises:
        TypeError: `a` is boolean, or `decimals` is not an integer.
        NotImplementedError: `out` is not None.

    >>> import verax.numpy as vnp
    >>> vnp.round(vnp.array([0.5, 1.5, 2.5]))
    Array([0., 2., 2.], dtype=float32)
    >>> vnp.round(vnp.array([1250, 1350, -1249]), decimals=-2)
    Array([ 1200,  1400, -1200], dtype=int32)
    """
    no_out("round", out)
    x = as_array("round", a)
    decimals = index(decimals)
    if is_complex(x.dtype):
        return make_complex(round(real(x), decimals), round(imag(x), decimals))
    if is_integer(x.dtype):
        return x if decimals >= 0 else round_integer(x, 10 ** (-decimals))
    if not is_float(x.dtype):
        raise TypeError(f"round takes numbers, not {x.aval}")
    if decimals == 0:
        return round_half(x, EVEN)
    return round_scaled(x, decimals)


around = round


def round_scaled(x: Array, decimals: int) -> Array:
    """Rounded between two scalings, in float32 at least."""
    small = numpy_dtype(x.dtype).itemsize < 4
    working: DType = float32 if small else x.dtype
    y = convert(x, working, x.weak_type) if small else x
    factor = float(10 ** abs(decimals))
    if decimals > 0:
        y = div(round_half(mul(y, factor), EVEN), factor)
    else:
        y = mul(round_half(div(y, factor), EVEN), factor)
    return convert(y, x.dtype, x.weak_type) if small else y


def round_integer(x: Array, unit: int) -> Array:
    """The multiple of `unit` nearest to x, the even one of two."""
    quotient = floor_divide(x, unit)
    below = mul(quotient, unit)
    rest = sub(x, below)
    other = sub(constant_of(unit, x.dtype), rest)
    odd = ne(bitwise_and(quotient, constant_of(1, x.dtype)), 0)
    up = bitwise_or(gt(rest, other), bitwise_and(eq(rest, other), odd))
    return select(up, add(below, unit), below)


@remembered
def modf(x: ArrayLike, /, out: None = None) -> tuple[Array, Array]:
    """The fractional and the integer part of x, both with its sign.

    A fractional part of 0 is never -0, unlike in NumPy.

    Args:
        x: a real array or scalar; integers and booleans are read as floats.
        out: only None, since arrays are immutable.

    Returns:
        Two arrays of the shape of x and of its dtype if that is a float, else of
        float32, or float64 for integers of 64 bits. The fractional part of an infinity
        is 0.

    Raises:
        TypeError: x is complex.
        NotImplementedError: `out` is not None.

    >>> import verax.numpy as vnp
    >>> vnp.modf(vnp.array([1.5, -2.25, vnp.inf]))
    (Array([ 0.5 , -0.25,  0.  ], dtype=float32), Array([ 1., -2., inf], dtype=float32))
    """
    no_out("modf", out)
    refuse_complex("modf", x)
    (given,) = promote_inexact("modf", as_array("modf", x))
    down, up = floor_p.call(NO_PARAMS, given), ceil_p.call(NO_PARAMS, given)
    part = select(ge(given, 0), down, up)
    # Infinities are whole, where a difference would be NaN.
    endless = eq(abs_p.call(NO_PARAMS, given), constant_of(np.inf, given.dtype))
    return select(endless, full_like(given, 0), sub(given, part)), part
