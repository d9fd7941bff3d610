"""Floor 6: numbers in steps, and grids of them.

Count with `iota`, scale and shift; how many there are is worked out in Python, so that
shapes never depend on values that are traced::

    arange(5)                      # [0 1 2 3 4]
    linspace(0, 1, 5)              # [0. 0.25 0.5 0.75 1.]
"""

import math
from collections.abc import Callable, Sequence
from operator import index
from typing import Any, Literal, overload

import numpy as np

from verax.api.vmap import vmap
from verax.backend.arrays.concrete import fresh
from verax.backend.eager.composites import OneGo, in_numpy, remembered
from verax.ir.avals import ShapedArray, SymbolicSize, finfo, larger_size, smaller_size
from verax.ir.dtypes import (
    DType,
    DTypeLike,
    bool_,
    float32,
    float64,
    inexact_dtype,
    int32,
    is_complex,
    is_integer,
    numpy_dtype,
)
from verax.ir.promotion import result_type
from verax.numpy.arguments.arguments import (
    ArrayLike,
    ShapeLike,
    as_array,
    as_shape,
    avals_of,
    broadcast_shapes_of,
    canonical_axis,
    chosen_dtype,
    common_type,
    constant_of,
    default_float,
    default_integer,
    operand_aval,
    stretched,
)
from verax.numpy.creation.creation import Placement, filled, made, place_of, typed_fill
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
from verax.ops.elementwise.compare import eq, ge, le
from verax.ops.elementwise.convert import convert
from verax.ops.elementwise.rounding import floor, round
from verax.ops.elementwise.select import select, stop_gradient
from verax.ops.structure.create import broadcasted_iota, full_like, iota
from verax.ops.structure.joining import concatenate
from verax.ops.structure.shape import broadcast_in_dim, expand_dims, move_axis, reshape
from verax.ops.structure.slicing import pad, slice as cut
from verax.rules.rows.builder import Tracer
from verax.rules.values.array import Array
from verax.rules.values.constants import scalar_of
from verax.rules.values.sizes import as_size, as_sizes, slice_count
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
        raise ValueError("arange takes real numbers; complex ones have no order")
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


def ramp(first: Any, stride: Any, size: int, dtype: Any) -> Array:
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
        x.concrete(f"{name}: the shape of the result, which depends on {argument},")
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


# -----------------------------------------------------------------------------
# Matrices by the place of their elements: triangles, diagonals, grids.
#
# A mask is a comparison of two counters, and a diagonal is every (n + 1)th
# element of the flat matrix, so neither is ever gathered or scattered::
#
#     eye(3), tril(x), diag(x, k=1), meshgrid(x, y)


def float_dtype(name: str, dtype: DTypeLike | None) -> Any:
    return chosen_dtype(name, dtype) or default_float()


def rows_and_columns(rows: int, columns: int, k: object) -> tuple[Array, Array]:
    """For each element of a matrix, its row plus `k`, and its column."""
    row = broadcasted_iota(int32, (rows, columns), 0)
    if isinstance(k, int):
        k = clipped(k, -rows, columns)
    if not (isinstance(k, int) and k == 0):
        row = add(row, k if isinstance(k, int) else convert(k, np.dtype(np.int32)))
    return row, broadcasted_iota(int32, (rows, columns), 1)


def clipped(k: int, low: int, high: int) -> int:
    """The diagonal k, or the first one outside the matrix on its side."""
    return smaller_size(larger_size(k, low), high)


def eye(
    N: int,
    M: int | None = None,
    k: int | ArrayLike = 0,
    dtype: DTypeLike | None = None,
    *,
    device: Placement = None,
) -> Array:
    """Ones on the `k`-th diagonal of an N x M matrix, zeros elsewhere.

    Args:
        N: the number of rows.
        M: the number of columns; by default as many as rows.
        k: the diagonal: 0 for the main one, positive above it, negative below. It may
            be traced.
        dtype: the dtype of the result; by default float32, or float64 with x64.
        device: a device or sharding to put the result on; None for the default one.

    Returns:
        an array of shape (N, M).

    Raises:
        TypeError: a size is not an integer known while tracing.
        ValueError: a size is negative.

    >>> import verax.numpy as jnp
    >>> jnp.eye(2).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    >>> jnp.eye(2, 3, k=1, dtype=int).tolist()
    [[0, 1, 0], [0, 0, 1]]
    """
    kind = float_dtype("eye", dtype)
    (rows, columns) = as_shape("eye", (N, N if M is None else M))
    return made("eye", convert(eq(*rows_and_columns(rows, columns, k)), kind), device)


def identity(n: int, dtype: DTypeLike | None = None) -> Array:
    """The n x n identity matrix.

    Args:
        n: the number of rows and columns.
        dtype: the dtype of the result; by default float32, or float64 with x64.

    Returns:
        an array of shape (n, n).

    >>> import verax.numpy as vnp
    >>> vnp.identity(2, dtype=bool)
    Array([[ True, False],
           [False,  True]], dtype=bool)
    """
    return eye(n, dtype=dtype)


def tri(
    N: int, M: int | None = None, k: int = 0, dtype: DTypeLike | None = None
) -> Array:
    """Ones on and below the `k`-th diagonal of an N x M matrix, zeros elsewhere.

    Args:
        N: the number of rows.
        M: the number of columns; by default as many as rows.
        k: the diagonal: 0 for the main one, positive above it, negative below.
        dtype: the dtype of the result; by default float32, or float64 with x64.

    Returns:
        an array of shape (N, M).

    >>> import verax.numpy as vnp
    >>> vnp.tri(3, k=-1, dtype=int)
    Array([[0, 0, 0],
           [1, 0, 0],
           [1, 1, 0]], dtype=int32)
    """
    kind = float_dtype("tri", dtype)
    (rows, columns) = as_shape("tri", (N, N if M is None else M))
    return made("tri", convert(ge(*rows_and_columns(rows, columns, k)), kind), None)


@remembered
def tril(m: ArrayLike, k: int = 0) -> Array:
    """`m` with zeros above the `k`-th diagonal of its last two dimensions.

    Args:
        m: an array of shape (..., rows, columns).
        k: the diagonal: 0 for the main one, positive above it, negative below.

    Returns:
        an array in the shape and dtype of `m`.

    Raises:
        ValueError: `m` has less than two dimensions.

    >>> import verax.numpy as vnp
    >>> vnp.tril(vnp.arange(1, 7).reshape(2, 3), k=1)
    Array([[1, 2, 0],
           [4, 5, 6]], dtype=int32)
    """
    x = matrix("tril", m)
    return select(lower_mask(x, k), x, scalar_zero(x))


@remembered
def triu(m: ArrayLike, k: int = 0) -> Array:
    """`m` with zeros below the `k`-th diagonal of its last two dimensions.

    Args:
        m: an array of shape (..., rows, columns).
        k: the diagonal: 0 for the main one, positive above it, negative below.

    Returns:
        an array in the shape and dtype of `m`.

    Raises:
        ValueError: `m` has less than two dimensions.

    >>> import verax.numpy as vnp
    >>> vnp.triu(vnp.arange(1, 10).reshape(3, 3), k=1)
    Array([[0, 2, 3],
           [0, 0, 6],
           [0, 0, 0]], dtype=int32)
    """
    x = matrix("triu", m)
    return select(lower_mask(x, k - 1), scalar_zero(x), x)


def matrix(name: str, m: ArrayLike) -> Array:
    x = as_array(name, m)
    if x.ndim < 2:
        raise ValueError(
            f"{name} takes an array with at least two dimensions, not {x.aval}"
        )
    return x


def scalar_zero(x: Array) -> Any:
    """A zero of the type of `x`, weak where that is."""
    if x.weak_type:
        return typed_fill((), 0, x.dtype, True)
    return scalar_of(0, x.aval.with_shape(()))


def lower_mask(x: Array, k: int) -> Array:
    """Whether an element of the last two dimensions is on or below diagonal `k`."""
    mask = ge(*rows_and_columns(x.shape[-2], x.shape[-1], k))
    return broadcast_in_dim(mask, x.shape, (x.ndim - 2, x.ndim - 1))


@remembered
def diag(v: ArrayLike, k: int = 0) -> Array:
    """A matrix with `v` on its `k`-th diagonal, or that diagonal of the matrix `v`.

    Args:
        v: a vector, or a matrix.
        k: the diagonal: 0 for the main one, positive above it, negative below.

    Returns:
        for a vector of n elements a square matrix with n + abs(k) rows; for a matrix a
        vector, without elements if there is no such diagonal. The dtype is that of `v`.

    Raises:
        ValueError: `v` has neither one nor two dimensions.

    >>> import verax.numpy as vnp
    >>> vnp.diag(vnp.array([1, 2]), k=1)
    Array([[0, 1, 0],
           [0, 0, 2],
           [0, 0, 0]], dtype=int32)
    >>> vnp.diag(vnp.arange(6).reshape(2, 3), k=1)
    Array([1, 5], dtype=int32)
    """
    x = as_array("diag", v)
    if x.ndim == 1:
        return diagonal_matrix(x, index(k))
    if x.ndim == 2:
        return main_diagonal(x, index(k))
    raise ValueError(f"diag takes an array with one or two dimensions, not {x.aval}")


def diagflat(v: ArrayLike, k: int = 0) -> Array:
    """A matrix with the elements of `v` on its `k`-th diagonal.

    Args:
        v: an array or scalar, whose elements are taken row by row.
        k: the diagonal: 0 for the main one, positive above it, negative below.

    Returns:
        a square matrix with `v.size` + abs(k) rows in the dtype of `v`.

    >>> import verax.numpy as vnp
    >>> vnp.diagflat(vnp.array([[1], [2]]), k=-1)
    Array([[0, 0, 0],
           [1, 0, 0],
           [0, 2, 0]], dtype=int32)
    """
    x = as_array("diagflat", v)
    return diagonal_matrix(reshape(x, (x.size,)), index(k))


def diagonal_matrix(x: Array, k: int) -> Array:
    """Zeros between the elements of `x`, as many as make rows of a square matrix."""
    size = x.shape[0] + abs(k)
    if not x.shape[0]:
        return filled((size, size), 0, x.dtype)
    first = max(-k, 0) * size + max(k, 0)
    last = first + (x.shape[0] - 1) * (size + 1)
    flat = pad(x, scalar_zero(x), [(first, size * size - 1 - last, size)])
    return reshape(flat, (size, size))


def main_diagonal(x: Array, k: int) -> Array:
    """Every (columns + 1)th element of the flat matrix, where diagonal k begins."""
    rows, columns = x.shape
    first = -k * columns if k < 0 else k
    length = min(rows + k, columns) if k < 0 else min(rows, columns - k)
    if length <= 0:
        return filled((0,), 0, x.dtype)
    last = first + (length - 1) * (columns + 1)
    return cut(reshape(x, (x.size,)), (first,), (last + 1,), (columns + 1,))


@remembered
def vander(x: ArrayLike, N: int | None = None, increasing: bool = False) -> Array:
    """The matrix of the powers of `x`: N columns, the highest power first.

    Args:
        x: a vector.
        N: the number of columns; by default as many as `x` has elements.
        increasing: whether the power 0 comes first instead.

    Returns:
        an array of shape (`x.size`, N) in the dtype of `x`, booleans as integers.

    Raises:
        ValueError: `x` has not one dimension, or N is negative.

    >>> import verax.numpy as vnp
    >>> vnp.vander(vnp.array([2, 3]), 3)
    Array([[4, 2, 1],
           [9, 3, 1]], dtype=int32)
    >>> vnp.vander(vnp.array([0.0, 3.0]), 3, increasing=True)
    Array([[1., 0., 0.],
           [1., 3., 9.]], dtype=float32)
    """
    base = as_array("vander", x)
    if base.ndim != 1:
        raise ValueError(f"vander takes a one-dimensional array, not {base.aval}")
    (columns,) = as_shape("vander", base.shape[0] if N is None else N)
    if not columns:
        return filled((base.shape[0], 0), 0, base.dtype)
    powers = arange(columns) if increasing else arange(columns - 1, -1, -1)
    if base.dtype == bool_:
        base = convert(base, default_integer())
    if is_integer(base.dtype):
        powers = convert(powers, base.dtype)
    return power(expand_dims(base, (1,)), expand_dims(powers, (0,)))


def meshgrid(
    *xi: ArrayLike, copy: bool = True, sparse: bool = False, indexing: str = "xy"
) -> tuple[Array, ...]:
    """Coordinate arrays of the grid that the vectors `xi` span.

    Args:
        *xi: vectors or scalars, the coordinates along each dimension of the grid.
        copy: without effect, since arrays are immutable.
        sparse: whether each result has its own dimension only, and size 1 along the
            others, to which it broadcasts.
        indexing: "ij" for dimensions in the order of the vectors; with "xy", the
            default, the first two are swapped, as for images.

    Returns:
        a tuple of as many arrays as vectors, each in the shape of the grid and the
        dtype of its vector.

    Raises:
        ValueError: `indexing` is neither, or an argument has two dimensions or more.

    >>> import verax.numpy as vnp
    >>> x, y = vnp.meshgrid(vnp.array([1, 2, 3]), vnp.array([10, 20]))
    >>> x + y
    Array([[11, 12, 13],
           [21, 22, 23]], dtype=int32)
    >>> [grid.shape for grid in vnp.meshgrid(vnp.ones(3), vnp.ones(2), indexing="ij")]
    [(3, 2), (3, 2)]
    """
    if indexing not in ("xy", "ij"):
        raise ValueError(f"meshgrid: indexing must be 'xy' or 'ij', not {indexing!r}")
    axes = [as_array("meshgrid", x, i) for i, x in enumerate(xi)]
    for i, x in enumerate(axes):
        if x.ndim > 1:
            raise ValueError(
                f"meshgrid takes vectors, but argument {i} is {x.aval}; ravel it first"
            )
    order = list(range(len(axes)))
    if indexing == "xy" and len(axes) >= 2:
        order[0], order[1] = 1, 0
    full = [1] * len(axes)
    for place, x in zip(order, axes, strict=True):
        full[place] = x.size
    return tuple(
        spread(x, place, full, sparse) for place, x in zip(order, axes, strict=True)
    )


def spread(x: Array, place: int, sizes: Sequence[int], sparse: bool) -> Array:
    """A vector along dimension `place` of a grid."""
    shape = [1] * len(sizes) if sparse else list(sizes)
    shape[place] = x.size
    return broadcast_in_dim(reshape(x, (x.size,)), shape, (place,))


@overload
def indices(
    dimensions: Sequence[int],
    dtype: DTypeLike | None = None,
    sparse: Literal[False] = False,
) -> Array: ...
@overload
def indices(
    dimensions: Sequence[int], dtype: DTypeLike | None, sparse: Literal[True]
) -> tuple[Array, ...]: ...
@overload
def indices(
    dimensions: Sequence[int], dtype: DTypeLike | None = None, *, sparse: Literal[True]
) -> tuple[Array, ...]: ...
@overload
def indices(
    dimensions: Sequence[int], dtype: DTypeLike | None = None, sparse: bool = False
) -> Array | tuple[Array, ...]: ...
def indices(
    dimensions: Sequence[int], dtype: DTypeLike | None = None, sparse: bool = False
) -> Array | tuple[Array, ...]:
    """The index of each element of an array of shape `dimensions`, per dimension.

    Args:
        dimensions: the sizes, known while tracing.
        dtype: the dtype of the result; by default int32, or int64 with x64.
        sparse: whether the result is a tuple of arrays that have size 1 along all
            dimensions but their own.

    Returns:
        an array of shape (`len(dimensions)`, *dimensions): first the row of each
        element, then the column, and so on; or the tuple of `sparse`.

    >>> import verax.numpy as vnp
    >>> rows, columns = vnp.indices((2, 3))
    >>> 10 * rows + columns
    Array([[ 0,  1,  2],
           [10, 11, 12]], dtype=int32)
    >>> [x.shape for x in vnp.indices((2, 3), sparse=True)]
    [(2, 1), (1, 3)]
    """
    sizes = as_shape("indices", dimensions)
    kind = chosen_dtype("indices", dtype) or default_integer()
    axes = [arange(size, dtype=kind) for size in sizes]
    grid = tuple(spread(x, i, sizes, sparse) for i, x in enumerate(axes))
    if sparse:
        return grid
    if not grid:
        return filled((0,), 0, kind)
    return concatenate([expand_dims(x, (0,)) for x in grid], 0)


@overload
def fromfunction(
    function: Callable[..., ArrayLike],
    shape: ShapeLike,
    *,
    dtype: DTypeLike = float,
    **kwargs: object,
) -> Array: ...
@overload
def fromfunction[T](
    function: Callable[..., T],
    shape: ShapeLike,
    *,
    dtype: DTypeLike = float,
    **kwargs: object,
) -> T: ...
def fromfunction(
    function: Callable[..., object],
    shape: ShapeLike,
    *,
    dtype: DTypeLike = float,
    **kwargs: object,
) -> Any:
    """`function` of the index of each element; it sees scalars and is vectorised.

    NumPy calls the function once with arrays of indices; here it is mapped by `vmap`,
    so that it may be written for one element.

    Args:
        function: a function of as many scalars as `shape` has dimensions.
        shape: a size, or a sequence of them, known while tracing.
        dtype: the dtype of the indices; float by default.
        **kwargs: further arguments of `function`, which are mapped too: arrays whose
            first dimensions are `shape`.

    Returns:
        what `function` returns, with the dimensions `shape` before its own.

    >>> import verax.numpy as vnp
    >>> vnp.fromfunction(lambda i, j: 10 * i + j, (2, 3), dtype=int)
    Array([[ 0,  1,  2],
           [10, 11, 12]], dtype=int32)
    >>> vnp.fromfunction(lambda i: i * vnp.arange(3), 2)
    Array([[0., 0., 0.],
           [0., 1., 2.]], dtype=float32)
    """
    sizes = as_shape("fromfunction", shape)
    for i in range(len(sizes)):
        axes = tuple(0 if j == i else None for j in range(len(sizes)))
        function = vmap(function, in_axes=axes[::-1])
    return function(*[arange(size, dtype=dtype) for size in sizes], **kwargs)


def diag_indices(n: int, ndim: int = 2) -> tuple[Array, ...]:
    """The indices of the main diagonal of an array of `ndim` dimensions of size n.

    Args:
        n: the size of each dimension, known while tracing.
        ndim: the number of dimensions.

    Returns:
        a tuple of `ndim` vectors of the numbers from 0 to n - 1, by which an array is
        indexed.

    Raises:
        ValueError: n is negative.

    >>> import verax.numpy as vnp
    >>> vnp.ones((2, 2)).at[vnp.diag_indices(2)].set(5)
    Array([[5., 1.],
           [1., 5.]], dtype=float32)
    """
    (size,) = as_sizes("diag_indices", "n", n)
    return (arange(size),) * ndim


class Grid:
    """`mgrid` and `ogrid`: slices, between brackets, become coordinate arrays.

    A complex step says how many points there are, the end included.
    """

    def __init__(self, sparse: bool) -> None:
        self.sparse = sparse

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, slice):
            return axis_of(key)
        axes = in_one_dtype([axis_of(one) for one in key])
        sizes = [x.size for x in axes]
        grid = [spread(x, i, sizes, self.sparse) for i, x in enumerate(axes)]
        if self.sparse:
            return grid
        if not grid:
            return filled((0,), 0, default_integer())
        return concatenate([expand_dims(x, (0,)) for x in grid], 0)


def in_one_dtype(axes: list[Array]) -> list[Array]:
    """Axes in their common dtype, whatever `numpy_dtype_promotion` says of operands.

    A slice of integers beside one of floats is not a mixture that the user wrote.
    """
    if not axes:
        return []
    dtype, weak = result_type(*[x.aval for x in axes], x64=STATE.enable_x64)
    return [convert(x, dtype, weak) for x in axes]


def axis_of(key: slice) -> Array:
    """The points of one slice."""
    start = 0 if key.start is None else key.start
    step = 1 if key.step is None else key.step
    if isinstance(step, complex):
        return linspace(start, key.stop, int(abs(step)))
    return arange(start, key.stop, step)


mgrid = Grid(sparse=False)
ogrid = Grid(sparse=True)
