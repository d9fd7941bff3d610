"""Floor 6: matrices by the place of their elements: triangles, diagonals, grids.

One idea: a mask is a comparison of two counters, and a diagonal is every (n + 1)th
element of the flat matrix, so neither is ever gathered or scattered::

    eye(3), tril(x), diag(x, k=1), meshgrid(x, y)
"""

from collections.abc import Callable, Sequence
from operator import index
from typing import Any

import numpy as np

from verax.api.vmap import vmap
from verax.backend.eager.composites import remembered
from verax.ir.avals import larger_size, smaller_size
from verax.ir.dtypes import DTypeLike, bool_, int32, is_integer
from verax.ir.promotion import result_type
from verax.numpy.arguments.arguments import (
    ArrayLike,
    ShapeLike,
    as_array,
    as_shape,
    chosen_dtype,
    default_float,
    default_integer,
)
from verax.numpy.creation.creation import Placement, filled, made, typed_fill
from verax.numpy.elementwise.arithmetic import power
from verax.numpy.ranges.ranges import arange, linspace
from verax.ops.elementwise.arith import add
from verax.ops.elementwise.compare import eq, ge
from verax.ops.elementwise.convert import convert
from verax.ops.elementwise.select import select
from verax.ops.structure.create import broadcasted_iota
from verax.ops.structure.joining import concatenate
from verax.ops.structure.shape import broadcast_in_dim, expand_dims, reshape
from verax.ops.structure.slicing import pad, slice as cut
from verax.rules.values.array import Array
from verax.rules.values.constants import scalar_of
from verax.rules.values.sizes import as_sizes
from verax.rules.values.state import STATE


def float_dtype(name: str, dtype: DTypeLike | None) -> Any:
    return chosen_dtype(name, dtype) or default_float()


def rows_and_columns(rows: int, columns: int, k: Any) -> tuple[Array, Array]:
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

    >>> import verax.numpy as jnp
    >>> jnp.eye(2).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    kind = float_dtype("eye", dtype)
    (rows, columns) = as_shape("eye", (N, N if M is None else M))
    return made("eye", convert(eq(*rows_and_columns(rows, columns, k)), kind), device)


def identity(n: int, dtype: DTypeLike | None = None) -> Array:
    """The n x n identity matrix."""
    return eye(n, dtype=dtype)


def tri(
    N: int, M: int | None = None, k: int = 0, dtype: DTypeLike | None = None
) -> Array:
    """Ones on and below the `k`-th diagonal of an N x M matrix, zeros elsewhere."""
    kind = float_dtype("tri", dtype)
    (rows, columns) = as_shape("tri", (N, N if M is None else M))
    return made("tri", convert(ge(*rows_and_columns(rows, columns, k)), kind), None)


@remembered
def tril(m: ArrayLike, k: int = 0) -> Array:
    """`m` with zeros above the `k`-th diagonal of its last two dimensions.

    Raises:
        ValueError: `m` has less than two dimensions.
    """
    x = matrix("tril", m)
    return select(lower_mask(x, k), x, scalar_zero(x))


@remembered
def triu(m: ArrayLike, k: int = 0) -> Array:
    """`m` with zeros below the `k`-th diagonal of its last two dimensions.

    Raises:
        ValueError: `m` has less than two dimensions.
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

    Raises:
        ValueError: `v` has neither one nor two dimensions.
    """
    x = as_array("diag", v)
    if x.ndim == 1:
        return diagonal_matrix(x, index(k))
    if x.ndim == 2:
        return main_diagonal(x, index(k))
    raise ValueError(f"diag takes an array with one or two dimensions, not {x.aval}")


def diagflat(v: ArrayLike, k: int = 0) -> Array:
    """A matrix with the elements of `v` on its `k`-th diagonal."""
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

    Raises:
        ValueError: `x` has not one dimension, or N is negative.
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

    With `indexing="xy"` the first two dimensions are swapped, as for images.

    Raises:
        ValueError: `indexing` is neither, or an argument has two dimensions or more.
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


def indices(
    dimensions: Sequence[int], dtype: DTypeLike | None = None, sparse: bool = False
) -> Array | tuple[Array, ...]:
    """The index of each element of an array of shape `dimensions`, per dimension."""
    sizes = as_shape("indices", dimensions)
    kind = chosen_dtype("indices", dtype) or default_integer()
    axes = [arange(size, dtype=kind) for size in sizes]
    grid = tuple(spread(x, i, sizes, sparse) for i, x in enumerate(axes))
    if sparse:
        return grid
    if not grid:
        return filled((0,), 0, kind)
    return concatenate([expand_dims(x, (0,)) for x in grid], 0)


def fromfunction(
    function: Callable[..., Any],
    shape: ShapeLike,
    *,
    dtype: DTypeLike = float,
    **kwargs: Any,
) -> Any:
    """`function` of the index of each element; it sees scalars and is vectorised."""
    sizes = as_shape("fromfunction", shape)
    for i in range(len(sizes)):
        axes = tuple(0 if j == i else None for j in range(len(sizes)))
        function = vmap(function, in_axes=axes[::-1])
    return function(*[arange(size, dtype=dtype) for size in sizes], **kwargs)


def diag_indices(n: int, ndim: int = 2) -> tuple[Array, ...]:
    """The indices of the main diagonal of an array of `ndim` dimensions of size n."""
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
        line = linspace(start, key.stop, int(abs(step)))
        assert isinstance(line, Array)
        return line
    return arange(start, key.stop, step)


mgrid = Grid(sparse=False)
ogrid = Grid(sparse=True)
