"""Floor 6: the same elements in another shape or order of dimensions.

One idea: what NumPy writes as views is one equation here, whose parameters are made
once per shape and remembered::

    reshape(x, (2, -1)), transpose(x), expand_dims(x, -1), broadcast_to(x, (4, 3))
"""

import warnings
from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from verax.backend.eager.composites import remembered
from verax.ir.avals import Shape
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
    """The sizes of the dimensions."""
    return measured("shape", a)


def ndim(a: ArrayLike) -> int:
    """The number of dimensions."""
    return len(measured("ndim", a))


def size(a: ArrayLike, axis: AxisLike | None = None) -> int:
    """The number of elements, or the product of the sizes of some dimensions."""
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


def target_shape(target: Any) -> Shape:
    """A shape in which -1 may stand, from one size or a sequence of sizes."""
    if type(target) is tuple and all([type(n) is int for n in target]):
        return target
    if is_index(target):
        target = (target,)
    try:
        return tuple([size_of(n) for n in target])
    except AbstractValueError:
        raise
    except TypeError as error:
        raise TypeError(
            "reshape: the shape must be integers known while tracing, not "
            f"{shown(target)}"
        ) from error


def size_of(n: object) -> int:
    return integer_of(n, "reshape: a size") if isinstance(n, Array) else as_size(n)


def reshape(
    a: ArrayLike,
    shape: Any,
    order: str = "C",
    *,
    copy: bool | None = None,
    out_sharding: object = None,
) -> Array:
    """The elements of `a` in another shape, read in row (C) or column (F) order.

    One size may be -1: it follows from the others.

    Raises:
        TypeError: the number of elements would change.
        ValueError: the order is neither C nor F.
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
    """All elements in one dimension; order "K" means "C"."""
    whole = (-1,) if size(a) else (0,)
    kept = "C" if order == "K" else order
    return reshape(a, whole, kept, out_sharding=out_sharding)


@remembered
def resize(a: ArrayLike, new_shape: ShapeLike) -> Array:
    """The elements of `a`, repeated or cut off, in a new shape."""
    sizes = as_shape("resize", new_shape)
    flat, count = ravel(a), prod(sizes)
    if not flat.size or not count:
        return broadcast_in_dim(np.zeros((), flat.dtype), sizes, ())  # type: ignore[arg-type]  # no keys in NumPy
    times = -(-count // flat.size)
    if times > 1:
        flat = reshape(broadcast_to(flat, (times, flat.size)), (-1,))
    return reshape(flat[:count], sizes)


# ---------------------------------------------------------- order of the dimensions


def transpose(a: ArrayLike, axes: Sequence[int] | None = None) -> Array:
    """The dimensions in the order `axes`, or reversed.

    Raises:
        ValueError: `axes` is not a permutation of the dimensions.
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
    """The dimensions in the order `axes`."""
    return transpose(a, axes)


def matrix_transpose(x: ArrayLike, /) -> Array:
    """The last two dimensions swapped.

    Raises:
        ValueError: there are fewer than two.
    """
    rank = operand_aval("matrix_transpose", 0, x).ndim
    if rank < 2:
        raise ValueError(f"matrix_transpose: the operand has {rank} dimensions, not 2")
    return transpose(x, (*range(rank - 2), rank - 1, rank - 2))


def swapaxes(a: ArrayLike, axis1: int, axis2: int) -> Array:
    """Two dimensions swapped."""
    order = list(range(operand_aval("swapaxes", 0, a).ndim))
    i = canonical_axis("swapaxes", axis1, len(order))
    j = canonical_axis("swapaxes", axis2, len(order))
    order[i], order[j] = j, i
    return transpose(a, order)


def moveaxis(a: ArrayLike, source: AxisLike, destination: AxisLike) -> Array:
    """The dimensions `source` at the places `destination`, the others in order.

    Raises:
        ValueError: the numbers of sources and destinations differ.
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

    Raises:
        ValueError: a place does not exist.
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

    Raises:
        ValueError: a dimension does not exist or has another size.
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
    """`a` with dimensions of size 1 at the places `axis` of the result."""
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


def atleast_1d(*arys: ArrayLike) -> Array | tuple[Array, ...]:
    """Each argument with at least one dimension."""
    out = tuple(at_least(a, 1, "atleast_1d") for a in arys)
    return out[0] if len(out) == 1 else out


def atleast_2d(*arys: ArrayLike) -> Array | tuple[Array, ...]:
    """Each argument with at least two dimensions, new ones in front."""
    out = tuple(at_least(a, 2, "atleast_2d") for a in arys)
    return out[0] if len(out) == 1 else out


def atleast_3d(*arys: ArrayLike) -> Array | tuple[Array, ...]:
    """Each argument with at least three dimensions, on both sides of a vector."""
    out = tuple(at_least(a, 3, "atleast_3d") for a in arys)
    return out[0] if len(out) == 1 else out


# ------------------------------------------------------------------- broadcasting


def broadcast_shapes(*shapes: ShapeLike) -> Shape:
    """The common shape to which arrays of the given shapes broadcast.

    Raises:
        ValueError: there is none.
    """
    out = [as_shape("broadcast_shapes", shape) for shape in shapes]
    return broadcast_shapes_of("broadcast_shapes", out) if out else ()


def broadcast_to(
    array: ArrayLike, shape: ShapeLike, *, out_sharding: object = None
) -> Array:
    """`array` repeated to `shape` by NumPy's rules.

    Raises:
        ValueError: it does not broadcast to that shape.
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
    """The arguments in their common shape."""
    check_arraylike("broadcast_arrays", *args)
    if not args:
        return ()
    arrays = [as_array("broadcast_arrays", a, i) for i, a in enumerate(args)]
    target = broadcast_shapes_of("broadcast_arrays", [x.shape for x in arrays])
    return tuple(stretched(x, target) for x in arrays)
