"""Floor 6: grids: the coordinates of the elements of an array.

One idea: the coordinate along a dimension is a vector that is spread along all others::

    meshgrid(x, y), indices((2, 3)), mgrid[0:2, 0:3], fromfunction(vnp.add, (2, 3))
"""

from collections.abc import Callable, Sequence
from typing import Any, Literal, overload

from verax.api.vmap import vmap
from verax.ir.dtypes import (
    DTypeLike,
)
from verax.ir.promotion import result_type
from verax.numpy.arguments.arguments import (
    ArrayLike,
    ShapeLike,
    as_array,
    as_shape,
    chosen_dtype,
    default_integer,
)
from verax.numpy.creation.filling import filled
from verax.numpy.ranges import arange, linspace
from verax.ops.elementwise.convert import convert
from verax.ops.structure.joining import concatenate
from verax.ops.structure.shape import broadcast_in_dim, expand_dims, reshape
from verax.rules.rows.builder import Tracer
from verax.rules.values.array import Array
from verax.rules.values.sizes import as_sizes
from verax.rules.values.state import STATE


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
        self.name = "ogrid" if sparse else "mgrid"

    def __getitem__(self, key: slice | Sequence[slice]) -> Any:
        if isinstance(key, slice):
            return axis_of(key, self.name)
        axes = in_one_dtype([axis_of(one, self.name) for one in key])
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


def axis_of(key: slice, name: str) -> Array:
    """The points of one slice between the brackets of `name`.

    Raises:
        ConcretizationTypeError: a part of it is traced.
    """
    for part in ("start", "stop", "step"):
        value = getattr(key, part)
        if isinstance(value, Tracer):
            value.concrete(
                f"It arose in the slice {part} of jnp.{name}: the shape of the result"
            )
    start = 0 if key.start is None else key.start
    step = 1 if key.step is None else key.step
    if isinstance(step, complex):
        return linspace(start, key.stop, int(abs(step)))
    return arange(start, key.stop, step)


mgrid = Grid(sparse=False)
ogrid = Grid(sparse=True)
