"""Floor 6: the same elements in another shape or order of dimensions.

One idea: what NumPy writes as views is one equation here, whose parameters are made
once per shape and remembered::

    reshape(x, (2, -1)), transpose(x), expand_dims(x, -1), broadcast_to(x, (4, 3))
"""

import warnings
from collections.abc import Iterable, Sequence
from math import prod
from typing import Protocol, overload, runtime_checkable

import numpy as np

from verax.backend.eager.composites import remembered
from verax.ir.avals import Shape
from verax.ir.dtypes import numpy_dtype
from verax.ir.memos import memoised
from verax.numpy.arguments.arguments import (
    ArrayLike,
    ShapeLike,
    as_array,
    as_shape,
    broadcast_shapes_of,
    canonical_axes,
    canonical_axis,
    check_arraylike,
    operand_aval,
    stretched,
)
from verax.numpy.creation.creation import asarray
from verax.ops.structure.reshard import call_sharded
from verax.ops.structure.shape import (
    BroadcastInDimParams,
    ReshapeParams,
    TransposeParams,
    broadcast_in_dim,
    broadcast_in_dim_p,
    reshape_p,
    squeeze as without_axes,
    transpose_p,
)
from verax.rules.values.array import Array
from verax.rules.values.conversions import (
    AbstractValueError,
    NotAnArray,
    integer_of,
    shown,
)
from verax.rules.values.memo import pure
from verax.rules.values.sizes import (
    AxisError,
    InconclusiveDimensionOperation,
    ShapeError,
    as_size,
    is_index,
    kept,
    one_or_more,
)

type AxisLike = int | Sequence[int]

reshape_params = memoised(ReshapeParams)
transpose_params = memoised(TransposeParams)


# ----------------------------------------------------------------- what is there


def measured(name: str, a: object) -> Shape:
    """The shape of an array; of what NumPy makes an array, too, with JAX's warning."""
    if isinstance(a, np.ndarray):  # of any dtype: strings have a shape, too
        own: Shape = a.shape
        return own
    if not isinstance(a, list | tuple):
        try:
            return operand_aval(name, 0, a).shape
        except NotAnArray:
            said = getattr(a, "shape", None)
            # Of anything: NumPy says () of None.
            out = said if isinstance(said, tuple) else np.asarray(a, object).shape
    else:
        out = asarray(a).shape
    warnings.warn(
        f"{name} requires ndarray or scalar arguments, got {type(a)} at position 0; "
        "this will be an error, so convert it with verax.numpy.asarray",
        DeprecationWarning,
        stacklevel=3,
    )
    return out


def shape(a: ArrayLike) -> Shape:
    """The sizes of the dimensions.

    Args:
        a: an array or scalar; a list or tuple is read as an array, with a
            DeprecationWarning.

    Returns:
        A tuple of integers, which is empty for a scalar; known under a trace, too.

    >>> import verax.numpy as vnp
    >>> vnp.shape(vnp.zeros((2, 0))), vnp.shape(3.0)
    ((2, 0), ())
    """
    return measured("shape", a)


def ndim(a: ArrayLike) -> int:
    """The number of dimensions.

    Args:
        a: an array or scalar; a list or tuple is read as an array, with a
            DeprecationWarning.

    Returns:
        An integer, which is 0 for a scalar; known under a trace, too.

    >>> import verax.numpy as vnp
    >>> vnp.ndim(vnp.zeros((2, 0))), vnp.ndim(3.0)
    (2, 0)
    """
    return len(measured("ndim", a))


def size(a: ArrayLike, axis: AxisLike | None = None) -> int:
    """The number of elements, or the product of the sizes of some dimensions.

    Args:
        a: an array or scalar; a list or tuple is read as an array, with a
            DeprecationWarning.
        axis: the dimension or dimensions whose sizes are multiplied; None for all of
            them.

    Returns:
        An integer, which is 1 for a scalar; known under a trace, too.

    >>> import verax.numpy as vnp
    >>> x = vnp.zeros((2, 3, 4))
    >>> vnp.size(x), vnp.size(x, axis=(0, -1))
    (24, 8)
    """
    out = measured("size", a)
    if axis is None:
        return prod(out)
    return prod(out[i] for i in canonical_axes("size", axis, len(out)))


# ---------------------------------------------------------------------- reshaping


@pure(1 << 12)
def completed(own: Shape, target: Shape) -> Shape:
    """`target` with the size that its -1 stands for.

    Raises:
        TypeError: the number of elements would change.
        InconclusiveDimensionOperation: it would for some sizes of a symbolic shape.
        ValueError: there are two -1, or another negative size.
    """
    unknown = [i for i, n in enumerate(target) if n == -1]
    if len(unknown) > 1 or any(n < -1 for n in target):
        raise ShapeError(f"reshape: {target} has more than one unknown size (-1)")
    count = prod(own)
    if not unknown:
        if prod(target) != count:
            raise ShapeError(
                f"cannot reshape array of shape {own} (size {count}) into shape "
                f"{target} (size {prod(target)})"
            )
        return target
    rest = prod(n for n in target if n != -1)
    left = count % rest if rest else 1
    what = f"cannot reshape array of shape {own} (size {count}) into shape {target}"
    if type(left) is not int:
        raise InconclusiveDimensionOperation(
            f"{what}: {count} is not a multiple of {rest} for all sizes. If it is for "
            "those that you mean, say so: symbolic_shape(..., "
            f"constraints=['{left} == 0'])"
        )
    if left:
        raise TypeError(f"{what}: {count} is not a multiple of {rest}")
    place = unknown[0]
    return (*target[:place], count // rest, *target[place + 1 :])


@runtime_checkable
class Indexed(Protocol):
    """A sequence that Python goes through by asking for one item after the other."""

    def __getitem__(self, i: int, /) -> object: ...


def target_shape(target: object) -> Shape:
    """A shape in which -1 may stand, from one size or a sequence of sizes."""
    if type(target) is tuple and all([type(n) is int for n in target]):
        return target
    sizes = (target,) if is_index(target) else target
    cause: TypeError | None = None
    try:
        if type(sizes) is list or isinstance(sizes, (tuple, Iterable)):  # quick ones
            return tuple([size_of(n) for n in sizes])
        if isinstance(sizes, Indexed):
            return tuple([size_of(n) for n in iter(sizes)])
    except AbstractValueError:
        raise
    except TypeError as error:
        cause = error
    raise TypeError(
        f"reshape: the shape must be integers known while tracing, not {shown(sizes)}"
    ) from cause


def size_of(n: object) -> int:
    return integer_of(n, "reshape: a size") if isinstance(n, Array) else as_size(n)


def reshape(
    a: ArrayLike,
    shape: object,
    order: str = "C",
    *,
    copy: bool | None = None,
    out_sharding: object = None,
) -> Array:
    """The elements of `a` in another shape, read in row (C) or column (F) order.

    Args:
        a: an array or scalar.
        shape: the new shape, an integer or a sequence of them, with as many elements as
            `a` has. One size may be -1: it follows from the others.
        order: "C" by default, where the last index runs fastest, or "F", where the
            first one does, both in `a` and in the result.
        copy: without effect, since arrays are immutable.
        out_sharding: how the result is split over an explicit mesh; None leaves it to
            the compiler.

    Returns:
        An array of that shape, in the dtype of `a`.

    Raises:
        TypeError: the number of elements would change.
        ValueError: the order is neither C nor F.

    >>> import verax.numpy as vnp
    >>> vnp.reshape(vnp.arange(6), (2, -1))
    Array([[0, 1, 2],
           [3, 4, 5]], dtype=int32)
    >>> vnp.reshape(vnp.arange(6), (2, -1), order="F").tolist()
    [[0, 2, 4], [1, 3, 5]]
    """
    if out_sharding is not None:
        return call_sharded(reshape, locals())
    x = a if isinstance(a, Array) else as_array("reshape", a)
    own = x.aval.shape
    sizes = completed(own, target_shape(shape))
    if order == "F":
        dims = tuple(range(len(own) - 1, -1, -1))
        back = tuple(range(len(sizes) - 1, -1, -1))
        return transpose(reshape(transpose(x, dims), sizes[::-1]), back)
    if order != "C":
        raise ValueError(f"reshape: order must be 'C' or 'F', not {shown(order)}")
    return x if own == sizes else reshape_p.call(reshape_params(sizes), x)


def ravel(a: ArrayLike, order: str = "C", *, out_sharding: object = None) -> Array:
    """All elements in one dimension.

    Args:
        a: an array or scalar.
        order: "C" by default, where the last index runs fastest, or "F", where the
            first one does; "K" means "C".
        out_sharding: how the result is split over an explicit mesh; None leaves it to
            the compiler.

    Returns:
        A vector of as many elements, in the dtype of `a`.

    Raises:
        ValueError: there is no such order.

    >>> import verax.numpy as vnp
    >>> x = vnp.array([[1, 2], [3, 4]])
    >>> vnp.ravel(x).tolist(), vnp.ravel(x, order="F").tolist()
    ([1, 2, 3, 4], [1, 3, 2, 4])
    """
    whole = (-1,) if size(a) else (0,)
    kept = "C" if order == "K" else order
    return reshape(a, whole, kept, out_sharding=out_sharding)


@remembered
def resize(a: ArrayLike, new_shape: ShapeLike) -> Array:
    """The elements of `a`, repeated or cut off, in a new shape.

    Args:
        a: an array or scalar, read in row order.
        new_shape: an integer or a sequence of them; the number of elements may differ
            from that of `a`.

    Returns:
        An array of that shape, in the dtype of `a`; zeros if `a` is empty.

    Raises:
        ValueError: a size is negative.

    >>> import verax.numpy as vnp
    >>> vnp.resize(vnp.arange(3), (2, 4))
    Array([[0, 1, 2, 0],
           [1, 2, 0, 1]], dtype=int32)
    """
    sizes = as_shape("resize", new_shape)
    flat, count = ravel(a), prod(sizes)
    if not flat.size or not count:
        return broadcast_in_dim(np.zeros((), numpy_dtype(flat.dtype)), sizes, ())
    times = -(-count // flat.size)
    if times > 1:
        flat = reshape(broadcast_to(flat, (times, flat.size)), (-1,))
    return reshape(flat[:count], sizes)


# ---------------------------------------------------------- order of the dimensions


def transpose(a: ArrayLike, axes: Sequence[int] | None = None) -> Array:
    """The dimensions in another order.

    Args:
        a: an array or scalar.
        axes: the order, a permutation of the dimensions of `a`: dimension i of the
            result is dimension `axes[i]` of `a`. None for the reverse order.

    Returns:
        An array of the same elements and dtype.

    Raises:
        ValueError: `axes` is not a permutation of the dimensions.

    >>> import verax.numpy as vnp
    >>> x = vnp.zeros((2, 3, 4))
    >>> vnp.transpose(x).shape, vnp.transpose(x, (0, -1, 1)).shape
    ((4, 3, 2), (2, 4, 3))
    """
    x = a if isinstance(a, Array) else as_array("transpose", a)
    rank = len(x.aval.shape)
    if axes is None:
        if rank < 2:
            return x
        return transpose_p.call(reversing(rank), x)
    order = canonical_axes("transpose", axes, rank)
    if len(order) != rank:
        raise AxisError(
            f"transpose: axes={axes} is not a permutation of {rank} dimensions"
        )
    if rank < 2 or order == tuple(range(rank)):
        return x
    return transpose_p.call(transpose_params(order), x)


@pure(64)
def reversing(rank: int) -> TransposeParams:
    """The params that reverse the order of the dimensions."""
    return TransposeParams(tuple(range(rank - 1, -1, -1)))


def permute_dims(a: ArrayLike, /, axes: tuple[int, ...]) -> Array:
    """The dimensions in the order `axes`; as `transpose`, by its name in the array API.

    Args:
        a: an array or scalar.
        axes: a permutation of the dimensions: dimension i of the result is dimension
            `axes[i]` of `a`.

    Returns:
        An array of the same elements and dtype.

    Raises:
        ValueError: `axes` is not a permutation of the dimensions.

    >>> import verax.numpy as vnp
    >>> vnp.permute_dims(vnp.zeros((2, 3, 4)), (2, 0, 1)).shape
    (4, 2, 3)
    """
    return transpose(a, axes)


def matrix_transpose(x: ArrayLike, /) -> Array:
    """The last two dimensions swapped.

    Args:
        x: an array with at least two dimensions; those before the last two count
            matrices.

    Returns:
        An array of the same elements and dtype; complex ones are not conjugated.

    Raises:
        ValueError: there are fewer than two.

    >>> import verax.numpy as vnp
    >>> vnp.matrix_transpose(vnp.array([[[1, 2], [3, 4]]]))
    Array([[[1, 3],
            [2, 4]]], dtype=int32)
    """
    rank = operand_aval("matrix_transpose", 0, x).ndim
    if rank < 2:
        raise ValueError(f"matrix_transpose: the operand has {rank} dimensions, not 2")
    return transpose(x, (*range(rank - 2), rank - 1, rank - 2))


def swapaxes(a: ArrayLike, axis1: int, axis2: int) -> Array:
    """Two dimensions swapped.

    Args:
        a: an array.
        axis1, axis2: the dimensions that change places; negative ones count from the
            end.

    Returns:
        An array of the same elements and dtype.

    Raises:
        ValueError: a dimension does not exist.

    >>> import verax.numpy as vnp
    >>> vnp.swapaxes(vnp.zeros((2, 3, 4)), 0, -1).shape
    (4, 3, 2)
    """
    order = list(range(operand_aval("swapaxes", 0, a).ndim))
    i = canonical_axis("swapaxes", axis1, len(order))
    j = canonical_axis("swapaxes", axis2, len(order))
    order[i], order[j] = j, i
    return transpose(a, order)


def moveaxis(a: ArrayLike, source: AxisLike, destination: AxisLike) -> Array:
    """The dimensions `source` at the places `destination`, the others in order.

    Args:
        a: an array.
        source: the dimension or dimensions of `a` that move.
        destination: their places in the result, as many.

    Returns:
        An array of the same elements and dtype.

    Raises:
        ValueError: the numbers of sources and destinations differ, or a dimension does
            not exist or stands twice.

    >>> import verax.numpy as vnp
    >>> x = vnp.zeros((2, 3, 4))
    >>> vnp.moveaxis(x, 0, -1).shape, vnp.moveaxis(x, (0, 1), (-1, 0)).shape
    ((3, 4, 2), (3, 4, 2))
    """
    rank = operand_aval("moveaxis", 0, a).ndim
    sources = canonical_axes("moveaxis", source, rank)
    targets = canonical_axes("moveaxis", destination, rank)
    if len(sources) != len(targets):
        raise ValueError(
            f"moveaxis: {source} and {destination} have different numbers of dimensions"
        )
    order = [i for i in range(rank) if i not in sources]
    for target, origin in sorted(zip(targets, sources, strict=True)):
        order.insert(target, origin)
    return transpose(a, order)


def rollaxis(a: ArrayLike, axis: int, start: int = 0) -> Array:
    """Dimension `axis` before the dimension that is now at `start`.

    `moveaxis`, which takes the place in the result, is easier to read.

    Args:
        a: an array.
        axis: the dimension that moves.
        start: the dimension of `a` before which it goes, between minus and plus the
            number of dimensions; 0, the front, by default.

    Returns:
        An array of the same elements and dtype.

    Raises:
        ValueError: a place does not exist.

    >>> import verax.numpy as vnp
    >>> x = vnp.zeros((2, 3, 4))
    >>> vnp.rollaxis(x, 2).shape, vnp.rollaxis(x, 0, 2).shape
    ((4, 2, 3), (3, 2, 4))
    """
    rank = operand_aval("rollaxis", 0, a).ndim
    source = canonical_axis("rollaxis", axis, rank)
    if not -rank <= start <= rank:
        raise ValueError(f"rollaxis: start={start} must lie in [{-rank}, {rank}]")
    target = start + rank if start < 0 else start
    return moveaxis(a, source, target - (source < target))


# ------------------------------------------------------------- dimensions of size 1


def squeeze(a: ArrayLike, axis: AxisLike | None = None) -> Array:
    """`a` without its dimensions of size 1, or without those of `axis`.

    Args:
        a: an array or scalar.
        axis: the dimension or dimensions to leave out, all of size 1; None for every
            dimension of size 1.

    Returns:
        An array of the same elements and dtype.

    Raises:
        ValueError: a dimension does not exist or has another size.

    >>> import verax.numpy as vnp
    >>> x = vnp.zeros((1, 2, 1))
    >>> vnp.squeeze(x).shape, vnp.squeeze(x, axis=0).shape
    ((2,), (2, 1))
    """
    x = as_array("squeeze", a)
    if axis is None:
        axes = tuple([i for i, n in enumerate(x.shape) if n == 1])
    else:
        axes = canonical_axes("squeeze", axis, x.ndim)
        if any(x.shape[i] != 1 for i in axes):
            raise ValueError(
                f"squeeze: axis={axis} selects a dimension of shape {x.shape} whose "
                "size is not 1"
            )
    return without_axes(x, axes)


@pure(1 << 12)
def expand_params(own: Shape, axis: int | Shape) -> BroadcastInDimParams:
    """The equation that gives an array of shape `own` dimensions of size 1."""
    count = 1 if isinstance(axis, int) else len(axis)
    rank = len(own) + count
    places = canonical_axes("expand_dims", axis, rank)
    dims = kept(rank, places)
    sizes = [1] * rank
    for place, n in zip(dims, own, strict=True):
        sizes[place] = n
    return BroadcastInDimParams(tuple(sizes), dims)


def expand_dims(a: ArrayLike, axis: AxisLike) -> Array:
    """`a` with new dimensions of size 1.

    Args:
        a: an array or scalar.
        axis: the place or places of the new dimensions in the result; negative ones
            count from its end.

    Returns:
        An array of the same elements and dtype.

    Raises:
        ValueError: a place does not exist in the result or stands twice.

    >>> import verax.numpy as vnp
    >>> vnp.expand_dims(vnp.arange(3), (0, -1)).shape
    (1, 3, 1)
    """
    x = a if isinstance(a, Array) else as_array("expand_dims", a)
    places = one_or_more(axis)
    return broadcast_in_dim_p.call(expand_params(x.aval.shape, places), x)


def at_least(a: ArrayLike, rank: int, name: str) -> Array:
    """`a` as an array with NumPy's places for the dimensions that it lacks."""
    x = as_array(name, a)
    if x.ndim >= rank:
        return x
    if rank == 3 and x.ndim == 2:
        return reshape(x, (*x.shape, 1))
    if rank == 3 and x.ndim == 1:
        return reshape(x, (1, x.shape[0], 1))
    return reshape(x, (1,) * (rank - x.ndim) + x.shape)


@overload
def atleast_1d(x: ArrayLike, /) -> Array: ...
@overload
def atleast_1d() -> tuple[()]: ...
@overload
def atleast_1d(
    x: ArrayLike, y: ArrayLike, /, *arys: ArrayLike
) -> tuple[Array, ...]: ...
@overload
def atleast_1d(*arys: ArrayLike) -> Array | tuple[Array, ...]: ...
def atleast_1d(*arys: ArrayLike) -> Array | tuple[Array, ...]:
    """Each argument with at least one dimension.

    Args:
        *arys: arrays or scalars.

    Returns:
        The array for one argument, otherwise a tuple of arrays; a scalar becomes a
        vector of one element.

    >>> import verax.numpy as vnp
    >>> [x.shape for x in vnp.atleast_1d(3.0, vnp.zeros((2, 2)))]
    [(1,), (2, 2)]
    """
    out = tuple(at_least(a, 1, "atleast_1d") for a in arys)
    return out[0] if len(out) == 1 else out


@overload
def atleast_2d(x: ArrayLike, /) -> Array: ...
@overload
def atleast_2d() -> tuple[()]: ...
@overload
def atleast_2d(
    x: ArrayLike, y: ArrayLike, /, *arys: ArrayLike
) -> tuple[Array, ...]: ...
@overload
def atleast_2d(*arys: ArrayLike) -> Array | tuple[Array, ...]: ...
def atleast_2d(*arys: ArrayLike) -> Array | tuple[Array, ...]:
    """Each argument with at least two dimensions, new ones in front.

    Args:
        *arys: arrays or scalars.

    Returns:
        The array for one argument, otherwise a tuple of arrays; a vector becomes a
        matrix of one row.

    >>> import verax.numpy as vnp
    >>> vnp.atleast_2d(vnp.arange(3))
    Array([[0, 1, 2]], dtype=int32)
    """
    out = tuple(at_least(a, 2, "atleast_2d") for a in arys)
    return out[0] if len(out) == 1 else out


@overload
def atleast_3d(x: ArrayLike, /) -> Array: ...
@overload
def atleast_3d() -> tuple[()]: ...
@overload
def atleast_3d(
    x: ArrayLike, y: ArrayLike, /, *arys: ArrayLike
) -> tuple[Array, ...]: ...
@overload
def atleast_3d(*arys: ArrayLike) -> Array | tuple[Array, ...]: ...
def atleast_3d(*arys: ArrayLike) -> Array | tuple[Array, ...]:
    """Each argument with at least three dimensions, on both sides of a vector.

    Args:
        *arys: arrays or scalars.

    Returns:
        The array for one argument, otherwise a tuple of arrays: vectors of shape (n,)
        get the shape (1, n, 1), and matrices (m, n) get (m, n, 1).

    >>> import verax.numpy as vnp
    >>> [x.shape for x in vnp.atleast_3d(vnp.zeros(4), vnp.zeros((2, 3)))]
    [(1, 4, 1), (2, 3, 1)]
    """
    out = tuple(at_least(a, 3, "atleast_3d") for a in arys)
    return out[0] if len(out) == 1 else out


# ------------------------------------------------------------------- broadcasting


def broadcast_shapes(*shapes: ShapeLike) -> Shape:
    """The common shape to which arrays of the given shapes broadcast.

    Args:
        *shapes: tuples of integers, or single integers for vectors. Shapes are lined up
            at the end; sizes of one dimension are equal or 1.

    Returns:
        A tuple of integers, which is empty if no shape is given.

    Raises:
        ValueError: there is none, or a size is negative.

    >>> import verax.numpy as vnp
    >>> vnp.broadcast_shapes((2, 1), 3, (4, 1, 1))
    (4, 2, 3)
    """
    out = [as_shape("broadcast_shapes", shape) for shape in shapes]
    return broadcast_shapes_of("broadcast_shapes", out) if out else ()


def broadcast_to(
    array: ArrayLike, shape: ShapeLike, *, out_sharding: object = None
) -> Array:
    """`array` repeated to `shape` by NumPy's rules.

    Args:
        array: an array or scalar.
        shape: an integer or a sequence of them, at least as many as `array` has
            dimensions. The last ones are the sizes of `array`, or replace its 1.
        out_sharding: how the result is split over an explicit mesh; None leaves it to
            the compiler.

    Returns:
        An array of that shape, in the dtype of `array`.

    Raises:
        ValueError: it does not broadcast to that shape.

    >>> import verax.numpy as vnp
    >>> vnp.broadcast_to(vnp.array([[1], [2]]), (2, 3))
    Array([[1, 1, 1],
           [2, 2, 2]], dtype=int32)
    """
    if out_sharding is not None:
        return call_sharded(broadcast_to, locals())
    x = as_array("broadcast_to", array)
    sizes = as_shape("broadcast_to", shape)
    own = x.shape
    pairs = zip(own, sizes[len(sizes) - len(own) :], strict=False)
    if len(own) > len(sizes):
        raise ValueError(
            "broadcast_to: Cannot broadcast to shape with fewer dimensions: "
            f"{own} to {sizes}"
        )
    if any(a not in (1, b) for a, b in pairs):
        raise ValueError(
            "broadcast_to: Incompatible shapes for broadcasting: "
            f"shape {own} does not broadcast to {sizes}"
        )
    out: Array = stretched(x, sizes)
    return out


def broadcast_arrays(*args: ArrayLike) -> tuple[Array, ...]:
    """The arguments in their common shape.

    Args:
        *args: arrays or scalars whose shapes broadcast; dtypes may differ.

    Returns:
        A tuple of arrays of one shape, each in its own dtype.

    Raises:
        ValueError: the shapes do not broadcast.

    >>> import verax.numpy as vnp
    >>> x, y = vnp.broadcast_arrays(vnp.arange(2), vnp.array([[0.5], [1.5]]))
    >>> x.tolist(), y.tolist()
    ([[0, 1], [0, 1]], [[0.5, 0.5], [1.5, 1.5]])
    """
    check_arraylike("broadcast_arrays", *args)
    if not args:
        return ()
    arrays = [as_array("broadcast_arrays", a, i) for i, a in enumerate(args)]
    target = broadcast_shapes_of("broadcast_arrays", [x.shape for x in arrays])
    return tuple(stretched(x, target) for x in arrays)
