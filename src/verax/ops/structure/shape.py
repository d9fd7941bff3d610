"""Floor 2: changes of shape that keep every element: broadcast, reshape, transpose.

One idea: each is linear, and stands beside its adjoint where that is a row too::

    broadcast_in_dim(x, (2, 3), (1,))     adjoint: reduce_sum over dimension 0
"""

from collections.abc import Sequence
from math import prod
from random import Random

import numpy as np
from attrs import frozen

from verax.ir.avals import Shape, ShapedArray
from verax.ir.jaxpr import Params
from verax.ir.memos import memoised
from verax.ir.meshes import Splits
from verax.rules.families.elementwise import moving
from verax.rules.families.linear import linear, one_batched, one_linear
from verax.rules.rows.emitter import Emitter, Operand, i64s
from verax.rules.rows.row import (
    Axis,
    Engine,
    Known,
    Rows,
    Sample,
    Tangent,
    Traits,
    Work,
    no_flops,
)
from verax.rules.rows.type_shardings import connected, reshaped
from verax.rules.values.array import Array
from verax.rules.values.constants import ANYTHING, aval_of
from verax.rules.values.memo import pure
from verax.rules.values.sizes import (
    SIZES,
    ShapeError,
    as_axes,
    as_integers,
    as_sizes,
    draw_shape,
)


@frozen(eq=False, repr=False)
class TransposeParams(Params):
    """The order of the dimensions: dimension i of the result is `permutation[i]`."""

    permutation: Shape


transpose_params = memoised(TransposeParams)


def transpose_typing(
    p: TransposeParams, avals: Sequence[ShapedArray]
) -> Sequence[ShapedArray]:
    (x,) = avals
    if sorted(p.permutation) != list(range(x.ndim)):
        raise TypeError(
            f"transpose takes a permutation of the {x.ndim} dimensions of {x}, not "
            f"{p.permutation}"
        )
    return (x.with_shape(x.shape[i] for i in p.permutation),)


def batch_transpose(
    p: TransposeParams, size: int, x: Array, axis: int
) -> tuple[Array, int]:
    order = (axis, *(i + (i >= axis) for i in p.permutation))
    return transpose(x, order), 0


def inverse(permutation: Shape) -> Shape:
    """The permutation that undoes another.

    >>> inverse((2, 0, 1))
    (1, 2, 0)
    """
    return tuple(permutation.index(i) for i in range(len(permutation)))


def draw_aval(random: Random, sizes: Sequence[int] = SIZES) -> ShapedArray:
    """A random type of up to three dimensions, for the samples of structural rows."""
    shape = draw_shape(random, 0, 3, sizes)
    return ShapedArray(shape, random.choice(ANYTHING.samples()))


def draw_transpose(random: Random) -> Sample[TransposeParams]:
    aval = draw_aval(random)
    order = list(range(aval.ndim))
    random.shuffle(order)
    return Sample(TransposeParams(tuple(order)), (aval,))


transpose_p = linear(
    "transpose",
    TransposeParams,
    typing=transpose_typing,
    evaluate=lambda p, x: x.transpose(p.permutation),
    transpose=one_linear(lambda p, ct, x: transpose(ct, inverse(p.permutation))),
    batch=one_batched(batch_transpose),
    lower=lambda e, p, xs, outs: e.op(
        "stablehlo.transpose", xs, outs, permutation=i64s(p.permutation)
    ),
    draw=draw_transpose,
    sharding=lambda p, avals, outs: connected(
        avals, [range(avals[0].ndim)], [p.permutation]
    ),
    traits=Traits(Work.CHEAP, no_flops, makes_nans=False),
)


@frozen(eq=False, repr=False)
class BroadcastInDimParams(Params):
    """Dimension i of the operand is dimension `broadcast_dimensions[i]` of `shape`."""

    shape: Shape
    broadcast_dimensions: Shape


broadcast_in_dim_params = memoised(BroadcastInDimParams)


def broadcast_in_dim_typing(
    p: BroadcastInDimParams, avals: Sequence[ShapedArray]
) -> Sequence[ShapedArray]:
    (x,) = avals
    dims, rank = p.broadcast_dimensions, len(p.shape)
    given = f"{dims} for {x} and shape {p.shape}"
    if len(dims) != x.ndim:
        raise TypeError(
            "broadcast_in_dim: broadcast_dimensions must have length equal to operand "
            f"ndim; got {given}"
        )
    if rank < x.ndim:
        raise TypeError(
            "broadcast_in_dim: target broadcast shape must have equal or higher rank "
            f"to the operand shape; got {given}"
        )
    if not all(0 <= d < rank for d in dims):
        raise TypeError(
            "broadcast_in_dim broadcast_dimensions must be a subset of output "
            f"dimensions; got {given}"
        )
    if list(dims) != sorted(set(dims)):
        what = "contain duplicates" if len(set(dims)) < len(dims) else "decrease"
        raise TypeError(
            f"broadcast_in_dim broadcast_dimensions must not {what}; got {given}"
        )
    if any(n not in (1, p.shape[d]) for n, d in zip(x.shape, dims, strict=True)):
        raise TypeError(
            "broadcast_in_dim: operand dimension sizes must either be 1, or be equal "
            "to their corresponding dimensions in the target broadcast shape; got "
            f"{given}"
        )
    return (x.with_shape(p.shape),)


def evaluate_broadcast_in_dim(p: BroadcastInDimParams, x: np.ndarray) -> np.ndarray:
    """A view: a dimension is repeated by a stride of 0.

    NumPy takes twenty times as long for that. Only its own dtypes in one piece can be
    looked at in this way.
    """
    shape, dims = p.shape, p.broadcast_dimensions
    if x.size == prod(shape):
        return x.reshape(shape)
    if x.dtype.kind not in "biufc" or not x.flags.c_contiguous:
        column = [1] * len(shape)
        for size, place in zip(x.shape, dims, strict=True):
            column[place] = size
        return np.broadcast_to(x.reshape(column), shape)
    strides = stretching(shape, dims, x.shape, x.strides)
    out: np.ndarray = np.ndarray(shape, x.dtype, x, 0, strides)
    out.setflags(write=False)
    return out


@pure()
def stretching(shape: Shape, dims: Shape, own: Shape, strides: Shape) -> Shape:
    """The strides of an array of shape `own` that is spread out to `shape`."""
    out = [0] * len(shape)
    for size, stride, place in zip(own, strides, dims, strict=True):
        if size == shape[place]:
            out[place] = stride
    return tuple(out)


def transpose_broadcast_in_dim(
    engine: Engine,
    p: BroadcastInDimParams,
    cts: Sequence[Tangent],
    args: Sequence[Known],
) -> Sequence[Tangent]:
    ct, x = cts[0], args[0].aval
    assert isinstance(ct, Array)
    kept = {
        d
        for n, d in zip(x.shape, p.broadcast_dimensions, strict=True)
        if n == p.shape[d]
    }
    axes = tuple(d for d in range(len(p.shape)) if d not in kept)
    summed = engine.core.reduce_sum(ct, axes) if axes else ct
    return (reshape(summed, x.shape),)


def batch_broadcast_in_dim(
    p: BroadcastInDimParams, size: int, x: Array, axis: int
) -> tuple[Array, int]:
    """The batch dimension stays between its neighbours, so nothing moves."""
    dims = p.broadcast_dimensions
    place = 0 if axis == 0 else dims[axis - 1] + 1
    shifted = [d + (d >= place) for d in dims]
    shifted.insert(axis, place)
    shape = (*p.shape[:place], size, *p.shape[place:])
    return broadcast_in_dim(x, shape, shifted), place


def draw_broadcast_in_dim(random: Random) -> Sample[BroadcastInDimParams]:
    aval = draw_aval(random)
    dims = tuple(i for i in range(aval.ndim) if random.random() < 0.6)
    shape = tuple(1 if random.random() < 0.3 else aval.shape[d] for d in dims)
    return Sample(BroadcastInDimParams(aval.shape, dims), (aval.with_shape(shape),))


def broadcast_splits(
    p: BroadcastInDimParams, avals: Sequence[ShapedArray], outs: Sequence[ShapedArray]
) -> Sequence[Splits]:
    """The splits of a broadcast: what is stretched or new is whole."""
    (x,) = avals
    pairs = zip(x.shape, p.broadcast_dimensions, strict=True)
    labels = [d if n == p.shape[d] else ("stretched", d) for n, d in pairs]
    return connected(avals, [labels], [range(len(p.shape))])


def lower_broadcast_in_dim(
    e: Emitter,
    p: BroadcastInDimParams,
    xs: Sequence[Operand],
    outs: Sequence[ShapedArray],
) -> Sequence[Operand]:
    """One operation, also of a scalar constant: modules hold no large ones."""
    if xs[0].aval.shape:
        return (e.broadcast(xs[0], p.shape, p.broadcast_dimensions),)
    return e.op("stablehlo.broadcast_in_dim", xs, outs, broadcast_dimensions=i64s(()))


broadcast_in_dim_p = linear(
    "broadcast_in_dim",
    BroadcastInDimParams,
    typing=broadcast_in_dim_typing,
    evaluate=evaluate_broadcast_in_dim,
    transpose=transpose_broadcast_in_dim,
    batch=one_batched(batch_broadcast_in_dim),
    lower=lower_broadcast_in_dim,
    draw=draw_broadcast_in_dim,
    sharding=broadcast_splits,
    traits=Traits(Work.CHEAP, no_flops, makes_nans=False),
)


@frozen(eq=False, repr=False)
class ReshapeParams(Params):
    """The shape of the result, which has as many elements as the operand."""

    new_sizes: Shape


reshape_params = memoised(ReshapeParams)


def reshape_typing(
    p: ReshapeParams, avals: Sequence[ShapedArray]
) -> Sequence[ShapedArray]:
    (x,) = avals
    if prod(p.new_sizes) != x.size:
        raise ShapeError(
            f"reshape cannot make {p.new_sizes} of {x}: the number of elements must "
            f"stay {x.size}"
        )
    return (x.with_shape(p.new_sizes),)


def batch_reshape(
    p: ReshapeParams, size: int, x: Array, axis: int
) -> tuple[Array, int]:
    return reshape(move_axis(x, axis, 0), (size, *p.new_sizes)), 0


def draw_reshape(random: Random) -> Sample[ReshapeParams]:
    aval = draw_aval(random)
    sizes = list(aval.shape)
    if len(sizes) > 1 and random.random() < 0.5:
        sizes[:2] = [sizes[0] * sizes[1]]
    else:
        sizes.insert(random.randint(0, len(sizes)), 1)
    random.shuffle(sizes)
    return Sample(ReshapeParams(tuple(sizes)), (aval,))


reshape_p = linear(
    "reshape",
    ReshapeParams,
    typing=reshape_typing,
    evaluate=lambda p, x: x.reshape(p.new_sizes),
    transpose=one_linear(lambda p, ct, x: reshape(ct, x.shape)),
    batch=one_batched(batch_reshape),
    lower=lambda e, p, xs, outs: e.op("stablehlo.reshape", xs, outs),
    draw=draw_reshape,
    sharding=reshaped,
    traits=Traits(Work.CHEAP, no_flops, makes_nans=False, view=True, summed=True),
)


@frozen(eq=False, repr=False)
class SqueezeParams(Params):
    """The dimensions of size 1 that the result does not have, in increasing order."""

    dimensions: Shape


squeeze_params = memoised(SqueezeParams)


def squeeze_typing(
    p: SqueezeParams, avals: Sequence[ShapedArray]
) -> Sequence[ShapedArray]:
    (x,) = avals
    if any(not 0 <= d < x.ndim or x.shape[d] != 1 for d in p.dimensions):
        raise ValueError(
            "squeeze: cannot select an axis to squeeze out which has size not equal to "
            f"one, as in dimensions {p.dimensions} of {x}"
        )
    return (x.with_shape(n for i, n in enumerate(x.shape) if i not in p.dimensions),)


def batch_squeeze(
    p: SqueezeParams, size: int, x: Array, axis: int
) -> tuple[Array, int]:
    dims = tuple(d + (d >= axis) for d in p.dimensions)
    return squeeze(x, dims), axis - sum(d < axis for d in dims)


def draw_squeeze(random: Random) -> Sample[SqueezeParams]:
    aval = draw_aval(random, (1, 1, 2, 0))
    ones = [i for i, n in enumerate(aval.shape) if n == 1]
    dims = tuple(i for i in ones if random.random() < 0.6)
    return Sample(SqueezeParams(dims), (aval,))


squeeze_p = linear(
    "squeeze",
    SqueezeParams,
    typing=squeeze_typing,
    evaluate=lambda p, x: x.squeeze(p.dimensions),
    transpose=one_linear(lambda p, ct, x: reshape(ct, x.shape)),
    batch=one_batched(batch_squeeze),
    lower=lambda e, p, xs, outs: e.op("stablehlo.reshape", xs, outs),
    draw=draw_squeeze,
    sharding=lambda p, avals, outs: connected(
        avals,
        [range(avals[0].ndim)],
        [[i for i in range(avals[0].ndim) if i not in p.dimensions]],
    ),
    traits=Traits(Work.CHEAP, no_flops, makes_nans=False, view=True),
)


def transpose(operand: object, permutation: Sequence[int]) -> Array:
    """The dimensions of `operand` in the order `permutation`.

    Args:
        operand: an array.
        permutation: each dimension of `operand` once: dimension i of the result is
            dimension `permutation[i]` of `operand`.

    Returns:
        An array with these dimensions, of the dtype of `operand`.

    Raises:
        TypeError: `permutation` is not a permutation of its dimensions.

    >>> import verax.numpy as vnp
    >>> from verax import lax
    >>> lax.transpose(vnp.ones((2, 3, 4)), (2, 0, 1)).shape
    (4, 2, 3)
    """
    order = as_integers("transpose", "permutation", permutation)
    if isinstance(operand, Array) and order == tuple(range(operand.ndim)):
        return operand
    return transpose_p.call(transpose_params(order), operand)


def broadcast_in_dim(
    operand: object, shape: Sequence[int], broadcast_dimensions: Sequence[int]
) -> Array:
    """`operand` stretched to `shape`, its dimension i at `broadcast_dimensions[i]`.

    Raises:
        TypeError: a dimension occurs twice, or a size is neither 1 nor kept.
    """
    sizes = as_sizes("broadcast_in_dim", "shape", shape)
    dims = as_integers("broadcast_in_dim", "broadcast_dimensions", broadcast_dimensions)
    order = sorted(range(len(dims)), key=dims.__getitem__)
    if order != list(range(len(dims))) and len(dims) == aval_of(operand).ndim:
        operand, dims = transpose(operand, order), tuple(sorted(dims))
    if (
        isinstance(operand, Array)
        and operand.shape == sizes
        and len(dims) == len(sizes)
    ):
        return operand
    return broadcast_in_dim_p.call(broadcast_in_dim_params(sizes, dims), operand)


def broadcast(operand: object, sizes: Sequence[int]) -> Array:
    """`operand` repeated over new leading dimensions of the given sizes."""
    leading = as_sizes("broadcast", "sizes", sizes)
    shape = aval_of(operand).shape
    dims = range(len(leading), len(leading) + len(shape))
    return broadcast_in_dim(operand, (*leading, *shape), tuple(dims))


def broadcast_to_rank(x: object, rank: int) -> Array:
    """`x` with leading dimensions of size 1, `rank` dimensions in all.

    Args:
        x: an array or scalar of at most `rank` dimensions.
        rank: the number of dimensions of the result.

    Returns:
        An array of shape (1, ..., 1, *x.shape), of the dtype of `x`.

    Raises:
        ValueError: `x` has more dimensions than that.

    >>> import verax.numpy as vnp
    >>> from verax import lax
    >>> lax.broadcast_to_rank(vnp.ones((2, 3)), 4).shape
    (1, 1, 2, 3)
    """
    missing = rank - aval_of(x).ndim
    if missing < 0:
        raise ValueError(
            f"broadcast_to_rank: {aval_of(x)} has more than {rank} dimensions"
        )
    return broadcast(x, (1,) * missing)


def reshape(
    operand: object,
    new_sizes: int | Sequence[int],
    dimensions: Sequence[int] | None = None,
) -> Array:
    """The elements of `operand`, read in the order `dimensions`, in another shape.

    Raises:
        TypeError: the number of elements would change.
    """
    sizes = as_sizes("reshape", "new_sizes", new_sizes)
    if dimensions is not None:
        operand = transpose(operand, dimensions)
    if isinstance(operand, Array) and operand.shape == sizes:
        return operand
    return reshape_p.call(reshape_params(sizes), operand)


def squeeze(array: object, dimensions: Sequence[int]) -> Array:
    """`array` without the given dimensions, which have size 1.

    Args:
        array: an array.
        dimensions: the dimensions to leave out; negative ones count from the last.
            Others stay, even if their size is 1.

    Returns:
        An array with the elements and the dtype of `array`.

    Raises:
        ValueError: a dimension does not exist, is named twice or has another size.

    >>> import verax.numpy as vnp
    >>> from verax import lax
    >>> lax.squeeze(vnp.ones((1, 2, 1)), (-1,)).shape
    (1, 2)
    """
    dims = tuple(sorted(as_axes("squeeze", dimensions, aval_of(array).ndim)))
    if not dims and isinstance(array, Array):
        return array
    return squeeze_p.call(squeeze_params(dims), array)


def expand_dims(array: object, dimensions: Sequence[int]) -> Array:
    """`array` with dimensions of size 1 at the places `dimensions` of the result.

    Args:
        array: an array or scalar.
        dimensions: the places of the new dimensions in the result; negative ones count
            from its last.

    Returns:
        An array with the elements and the dtype of `array`.

    Raises:
        ValueError: a place does not exist or is named twice.

    >>> import verax.numpy as vnp
    >>> from verax import lax
    >>> lax.expand_dims(vnp.ones((2, 3)), (0, -1)).shape
    (1, 2, 3, 1)
    """
    given = as_integers("expand_dims", "dimensions", dimensions)
    shape = aval_of(array).shape
    rank = len(shape) + len(given)
    places = set(as_axes("expand_dims", given, rank))
    kept = tuple(i for i in range(rank) if i not in places)
    sizes = [1] * rank
    for place, size in zip(kept, shape, strict=True):
        sizes[place] = size
    return broadcast_in_dim(array, tuple(sizes), kept)


def collapse(
    operand: object, start_dimension: int, stop_dimension: int | None = None
) -> Array:
    """`operand` with the dimensions from start up to stop made into one.

    Args:
        operand: an array.
        start_dimension: the first of the dimensions; a negative one counts from the
            last.
        stop_dimension: the first that is not one of them; a negative one counts from
            the last. None for all that follow.

    Returns:
        An array with one dimension of the product of their sizes in their place, in
        row-major order. If there are none, a dimension of size 1 is put in.

    Raises:
        ValueError: start lies after stop.

    >>> import verax.numpy as vnp
    >>> from verax import lax
    >>> x = vnp.zeros((2, 3, 4, 5))
    >>> lax.collapse(x, 1, 3).shape, lax.collapse(x, -2).shape
    ((2, 12, 5), (2, 3, 20))
    """
    shape = aval_of(operand).shape
    start, stop, _ = slice(start_dimension, stop_dimension).indices(len(shape))
    if start > stop:
        raise ValueError(
            f"collapse: shape {shape} has no dimensions {start_dimension} to "
            f"{stop_dimension}"
        )
    return reshape(operand, (*shape[:start], prod(shape[start:stop]), *shape[stop:]))


def move_axis(x: Array, source: int, target: int) -> Array:
    """`x` with dimension `source` at place `target`, the others in their order."""
    return transpose(x, moving(x.ndim, source, target))


def batched_at(x: Array, axis: Axis, place: int, size: int) -> Array:
    """An operand of a batch rule, batched at `place`; repeated if it is not batched."""
    if axis is not None:
        return move_axis(x, axis, place)
    shape = (*x.shape[:place], size, *x.shape[place:])
    return broadcast_in_dim(x, shape, [i for i in range(len(shape)) if i != place])


def at_front(x: Array, axis: Axis, size: int) -> Array:
    """An operand of a batch rule with its batch dimension first, repeated if needed."""
    return batched_at(x, axis, 0, size)


def batched_alike(
    args: Sequence[Array], axes: Sequence[Axis], size: int
) -> tuple[list[Array], int]:
    """Operands with the batch dimension where the first batched one has it."""
    place = next(axis for axis in axes if axis is not None)
    pairs = zip(args, axes, strict=True)
    return [batched_at(x, axis, place, size) for x, axis in pairs], place


ROWS: Rows = (transpose_p, broadcast_in_dim_p, reshape_p, squeeze_p)
