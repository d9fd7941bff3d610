"""Floor 6: numbers in steps, and grids of them.

Count with `iota`, scale and shift; how many there are is worked out in Python, so that
shapes never depend on values that are traced::

    arange(5)                      # [0 1 2 3 4]
    linspace(0, 1, 5)              # [0. 0.25 0.5 0.75 1.]
"""

import math
from typing import Any, Literal, overload

import numpy as np

from verax.backend.arrays.concrete import fresh
from verax.backend.eager.composites import OneGo, in_numpy
from verax.ir.avals import ShapedArray, SymbolicSize, finfo
from verax.ir.dtypes import (
    DType,
    DTypeLike,
    bool_,
    float32,
    float64,
    inexact_dtype,
    is_complex,
    is_integer,
    numpy_dtype,
)
from verax.numpy.arguments.arguments import (
    ArrayLike,
    as_array,
    avals_of,
    broadcast_shapes_of,
    canonical_axis,
    chosen_dtype,
    common_type,
    constant_of,
    default_integer,
    operand_aval,
    stretched,
)
from verax.numpy.creation.creation import Placement, made, place_of
from verax.numpy.creation.filling import filled
from verax.numpy.elementwise.arithmetic import power
from verax.numpy.elementwise.transcendental import log10
from verax.ops.base import round_away
from verax.ops.elementwise.arith import (
    abs as magnitude,
    add,
    complex as complex_of,
    div,
    imag,
    mul,
    real,
    sign,
    sub,
)
from verax.ops.elementwise.bits import bitwise_and
from verax.ops.elementwise.compare import eq, le
from verax.ops.elementwise.convert import convert
from verax.ops.elementwise.rounding import floor, round
from verax.ops.elementwise.select import select, stop_gradient
from verax.ops.structure.create import full_like, iota
from verax.ops.structure.joining import concatenate
from verax.ops.structure.shape import broadcast_in_dim, move_axis, reshape
from verax.rules.rows.builder import Tracer
from verax.rules.values.array import Array
from verax.rules.values.sizes import as_size, slice_count
from verax.rules.values.state import STATE


def arange(
    start: ArrayLike,
    stop: ArrayLike | None = None,
    step: ArrayLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    device: Placement = None,
    out_sharding: object = None,
) -> Array:
    """The numbers start, start + step, ... up to but excluding `stop`.

    With one argument it is `stop`, and `start` is 0.

    Args:
        start: the first number; with no `stop`, where to stop.
        stop: where to stop; it is not among the numbers.
        step: the distance of two numbers, which may be negative; 1 by default.
        dtype: the dtype of the result; by default that of the arguments together, so
            int32 of Python integers and float32 of floats (64 bits with x64).
        device: a device or sharding to put the result on; None for the default one.
        out_sharding: how the result is split over an explicit mesh; None leaves it to
            the compiler.

    Returns:
        a vector of ceil((stop - start) / step) numbers, without elements if that is
        negative.

    Raises:
        TypeError: an argument is traced, since the shape depends on it.
        ValueError: an argument is complex or has dimensions.
        ZeroDivisionError: `step` is 0.

    >>> import verax.numpy as jnp
    >>> jnp.arange(1, 7, 2).tolist()
    [1, 3, 5]
    >>> jnp.arange(1, 0, -0.25)
    Array([1.  , 0.75, 0.5 , 0.25], dtype=float32)
    """
    if out_sharding is not None:
        device = place_of("arange", device, out_sharding, 1)
    if type(start) is int and stop is None and step is None and dtype is None:
        # What loops ask for; the dtype is that of Python's integers.
        size = max(0, start)
        if size < MANY and STATE.interpreter.immediate:
            dtype = default_integer()
            values = np.arange(size, dtype=dtype)
            return made("arange", fresh(values, ShapedArray((size,), dtype)), device)
        return made("arange", ramp(0, 1, size, int), device)
    given = [x for x in (start, stop, step) if x is not None]
    if not given:
        raise TypeError("arange takes a number to stop at, not None")
    avals = avals_of("arange", given)
    if any(is_complex(aval.dtype) for aval in avals):
        raise ValueError(
            "Passing complex start/stop/step to jnp.arange is no longer supported: "
            "complex numbers have no order"
        )
    out = chosen_dtype("arange", dtype) or common_type(avals)[0]
    first = known("arange", "start", 0 if stop is None else start)
    last = known("arange", "stop", start if stop is None else stop)
    stride = known("arange", "step", 1 if step is None else step)
    if stride == 0:
        raise ZeroDivisionError("arange: step must not be 0")
    size = steps_between(first, last, stride)
    if out == bool_:
        return made("arange", convert(ramp(first, stride, size, INTS), bool_), device)
    return made("arange", ramp(first, stride, size, out), device)


def steps_between(first: Any, last: Any, stride: Any) -> int:
    """The number of numbers `first + i * stride` before `last`."""
    if any(isinstance(x, SymbolicSize) for x in (first, last, stride)):
        return slice_count(first, last, stride)
    return int(max(0, math.ceil((last - first) / stride)))


INTS = np.dtype(np.int32)
# Numbers that 32 bits do not count.
MANY = 1 << 31


def ramp(first: object, stride: object, size: int, dtype: Any) -> Array:
    """first + stride i for i from 0 to size - 1."""
    counted = iota(dtype, size)
    if stride != 1:
        counted = mul(counted, constant_of(stride, dtype))
    return add(counted, constant_of(first, dtype)) if first != 0 else counted


def known(name: str, argument: str, x: object) -> Any:
    """A Python scalar from an argument on which a shape depends.

    Raises:
        TypeError: it is traced, or has dimensions.
    """
    if isinstance(x, Tracer):
        x.concrete(
            f"It arose in the jnp.{name} argument '{argument}': the shape of the result"
        )
    if isinstance(x, SymbolicSize):
        return x
    value = np.asarray(x)
    if value.ndim:
        raise ValueError(
            f"{name}: {argument} must be a scalar, not an array of shape {value.shape}"
        )
    return value.item()


@overload
def linspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int = 50,
    endpoint: bool = True,
    retstep: Literal[False] = False,
    dtype: DTypeLike | None = None,
    axis: int = 0,
    *,
    device: Placement = None,
) -> Array: ...
@overload
def linspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int,
    endpoint: bool,
    retstep: Literal[True],
    dtype: DTypeLike | None = None,
    axis: int = 0,
    *,
    device: Placement = None,
) -> tuple[Array, Array]: ...
@overload
def linspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int = 50,
    endpoint: bool = True,
    *,
    retstep: Literal[True],
    dtype: DTypeLike | None = None,
    axis: int = 0,
    device: Placement = None,
) -> tuple[Array, Array]: ...
@overload
def linspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: DTypeLike | None = None,
    axis: int = 0,
    *,
    device: Placement = None,
) -> Array | tuple[Array, Array]: ...
def linspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: DTypeLike | None = None,
    axis: int = 0,
    *,
    device: Placement = None,
) -> Array | tuple[Array, Array]:
    """`num` numbers from `start` to `stop`, along a new dimension `axis`.

    Args:
        start: the first number: an array or scalar.
        stop: the last number, which broadcasts with `start`.
        num: how many numbers there are, known while tracing.
        endpoint: whether `stop` is the last number; else it would be the next one.
        retstep: whether the distance of two numbers is returned, too.
        dtype: the dtype of the result; by default that of the ends together, integers
            as floats. With integers, numbers are rounded down.
        axis: the place of the new dimension in the result; the first by default.
        device: a device or sharding to put the result on; None for the default one.

    Returns:
        an array in the shape of both ends with a dimension of size `num`; with
        `retstep` a tuple of it and the step, which is NaN if there is none.

    Raises:
        ValueError: `num` is negative.

    >>> import verax.numpy as vnp
    >>> vnp.linspace(0, 1, 4, endpoint=False)
    Array([0.  , 0.25, 0.5 , 0.75], dtype=float32)
    >>> vnp.linspace(vnp.array([0, 10]), 20, 3, axis=-1)
    Array([[ 0., 10., 20.],
           [10., 15., 20.]], dtype=float32)
    """
    num = counted("linspace", num)
    x, y, own = ends("linspace", dtype, start, stop)
    line = spaced(x, y, num, endpoint)
    target = chosen_dtype("linspace", dtype) or own
    if is_integer(target):
        line = floor(line)
    line = made("linspace", laid("linspace", line, axis, target), device)
    if not retstep:
        return line
    parts = num - 1 if endpoint else num
    kind = inexact_dtype(target)
    step = div(sub(y, x), parts) if parts > 0 else filled((), np.nan, kind)
    return line, convert(step, kind)


def counted(name: str, num: object) -> int:
    """The number of numbers.

    Raises:
        ValueError: a negative number.
    """
    out = as_size(known(name, "num", num))
    if out < 0:
        raise ValueError(f"{name}: num must not be negative, but is {out}")
    return out


def ends(
    name: str, dtype: DTypeLike | None, start: ArrayLike, stop: ArrayLike
) -> tuple[Array, Array, DType]:
    """Both ends as one computes with them, in one shape, and the dtype they have.

    That is at least float32: half precision has neither the digits to count with nor
    the range for the products.
    """
    avals = avals_of(name, (start, stop))
    own = inexact_dtype(common_type(avals)[0])
    expected = inexact_dtype(chosen_dtype(name, dtype) or own)
    kind = expected if numpy_dtype(expected).itemsize >= 4 else float32
    shape = broadcast_shapes_of(name, [aval.shape for aval in avals])
    pair = [as_array(name, x, i) for i, x in enumerate((start, stop))]
    if not is_complex(kind):
        pair = [real(x) if is_complex(x.dtype) else x for x in pair]
    x, y = (stretched(convert(x, kind), shape) for x in pair)
    return x, y, own


def spaced_at_once(x: object, y: object, num: int, endpoint: bool) -> OneGo | None:
    """Computes what `between` does, of two numbers that are not too large."""
    parts = num - 1 if endpoint else num
    if not (type(x) is type(y) is ShapedArray) or x.shape or y.shape or parts < 1:
        return None
    if x.dtype not in (float32, float64) or y.dtype is not x.dtype:
        return None
    kind = numpy_dtype(x.dtype)
    count, eighth, zero = kind.type(parts), kind.type(0.125), kind.type(0)
    steps, bound = np.arange(parts, dtype=kind), float(finfo(kind).max) / (4 * parts)

    def line(start: np.ndarray, stop: np.ndarray) -> Any:
        first, last = start[()], stop[()]
        if not (-bound <= first <= bound and -bound <= last <= bound):
            return None
        way = steps * (last - first)
        result = way / count
        near = round_away(result / eighth) * eighth  # as in `quotient`
        result += np.where(near * count == way, near - result, zero)
        points = np.empty(num, kind)
        np.add(first, result, points[:parts])
        if endpoint:
            points[parts] = last
        return points

    return line


@in_numpy(spaced_at_once)
def spaced(x: Array, y: Array, num: int, endpoint: bool) -> Array:
    """`num` points from `x` to `y` along a new first dimension; the ends are exact."""
    parts = num - 1 if endpoint else num
    if num == 0:
        return filled((0, *x.shape), 0, x.dtype)
    if parts == 0:
        return reshape(x, (1, *x.shape))
    line = between(x, y, parts)
    if not endpoint:
        return line
    return concatenate([line, reshape(y, (1, *x.shape))], 0)


def laid(name: str, line: Array, axis: int, dtype: DType) -> Array:
    """The points along `axis`, in their dtype."""
    place = canonical_axis(name, axis, line.ndim)
    return convert(move_axis(line, 0, place) if place else line, dtype)


def between(x: Array, y: Array, parts: int) -> Array:
    """The points that divide the way from x to y into `parts`; x first, y left out.

    They are x + i (y - x) / parts with the division last, so that a point which is an
    integer comes out as one. Ends so large that the product might overflow are
    weighed instead.
    """
    if is_complex(x.dtype):
        return complex_of(
            between(real(x), real(y), parts), between(imag(x), imag(y), parts)
        )
    shape, inner = (parts, *x.shape), tuple(range(1, x.ndim + 1))
    kind = numpy_dtype(x.dtype)
    steps = broadcast_in_dim(iota(kind, parts), shape, (0,))
    count = constant_of(parts, kind)
    first, last, way = (
        broadcast_in_dim(end, shape, inner) for end in (x, y, sub(y, x))
    )
    line = add(first, quotient(mul(steps, way), count))
    if isinstance(parts, SymbolicSize):
        bound = div(constant_of(float(finfo(kind).max) / 4, kind), count)
    else:
        bound = constant_of(float(finfo(kind).max) / (4 * parts), kind)
    small = bitwise_and(le(magnitude(x), bound), le(magnitude(y), bound))
    weight = div(steps, count)
    weighed = add(
        mul(first, sub(constant_of(1, kind), weight)), mul(div(last, count), steps)
    )
    return select(broadcast_in_dim(small, shape, inner), line, weighed)


def quotient(x: Array, count: np.ndarray) -> Array:
    """x / count, which is exact where it is a multiple of 1/8.

    A compiled division by a constant is a product with its reciprocal, which is not.
    """
    eighth = constant_of(0.125, count.dtype)
    array = div(x, count)
    near = mul(round(div(array, eighth)), eighth)
    error = select(eq(mul(near, count), x), sub(near, array), full_like(array, 0))
    return add(array, stop_gradient(error))


def logspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int = 50,
    endpoint: bool = True,
    base: ArrayLike = 10.0,
    dtype: DTypeLike | None = None,
    axis: int = 0,
) -> Array:
    """`base` to the powers of `linspace`.

    Args:
        start: the first power: an array or scalar.
        stop: the last power, which broadcasts with `start`.
        num: how many numbers there are, known while tracing.
        endpoint: whether `stop` is the last power; else it would be the next one.
        base: an array or scalar that broadcasts with both; 10 by default.
        dtype: the dtype of the result; by default that of the ends and the base
            together, integers as floats.
        axis: the place of the new dimension in the result; the first by default.

    Returns:
        an array in the shape of both ends and the base with a dimension of size `num`.

    Raises:
        ValueError: `num` is negative.

    >>> import verax.numpy as vnp
    >>> vnp.logspace(-1, 2, 4, base=2)
    Array([0.5, 1. , 2. , 4. ], dtype=float32)
    >>> vnp.logspace(0, 2, 3, base=vnp.array([2.0, 3.0]), axis=-1)
    Array([[1., 2., 4.],
           [1., 3., 9.]], dtype=float32)
    """
    x, y, own = ends("logspace", dtype, start, stop)
    weight = operand_aval("logspace", 4, base)
    shape = broadcast_shapes_of("logspace", [x.shape, weight.shape])
    x, y = stretched(x, shape), stretched(y, shape)
    line = spaced(x, y, counted("logspace", num), endpoint)
    target = chosen_dtype("logspace", dtype)
    if target is None:
        target = common_type([weight, ShapedArray((), own)])[0]
    return made("logspace", laid("logspace", power(base, line), axis, target), None)


def geomspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int = 50,
    endpoint: bool = True,
    dtype: DTypeLike | None = None,
    axis: int = 0,
) -> Array:
    """`num` numbers from `start` to `stop`, of one sign, with a constant ratio.

    The ends are exact. Numbers between ends of different signs, or from 0, are NaN.

    Args:
        start: the first number: an array or scalar, not 0.
        stop: the last number, which broadcasts with `start`.
        num: how many numbers there are, known while tracing.
        endpoint: whether `stop` is the last number; else it would be the next one.
        dtype: the dtype of the result; by default that of the ends together, integers
            as floats.
        axis: the place of the new dimension in the result; the first by default.

    Returns:
        an array in the shape of both ends with a dimension of size `num`.

    Raises:
        ValueError: `num` is negative.

    >>> import verax.numpy as vnp
    >>> vnp.geomspace(-1, -1000, 4).round(3)
    Array([   -1.,   -10.,  -100., -1000.], dtype=float32)
    >>> vnp.geomspace(1, 16, 4, endpoint=False).round(3)
    Array([1., 2., 4., 8.], dtype=float32)
    """
    num = counted("geomspace", num)
    x, y, own = ends("geomspace", dtype, start, stop)
    factor = sign(x)
    low, high = log10(div(x, factor)), log10(div(y, factor))
    line = power(constant_of(10, x.dtype), spaced(low, high, num, endpoint))
    line = mul(line, broadcast_in_dim(factor, line.shape, tuple(range(1, line.ndim))))
    first = eq(iota(INTS, num), 0)
    line = replaced(line, x, first) if num else line
    if endpoint and num > 1:
        line = replaced(line, y, eq(iota(INTS, num), num - 1))
    target = chosen_dtype("geomspace", dtype) or own
    return made("geomspace", laid("geomspace", line, axis, target), None)


def replaced(line: Array, value: object, where: Array) -> Array:
    """`line` with `value` where the mask of its first dimension says so."""
    mask = broadcast_in_dim(where, line.shape, (0,))
    inner = tuple(range(1, line.ndim))
    return select(mask, broadcast_in_dim(value, line.shape, inner), line)
