"""Floor 2: joining arrays end to end, splitting them, and reversing them.

One idea: a concatenation is linear in all its operands together, a split in its one::

    concatenate((x, y), 0)                    adjoint: a slice for each operand
    split(z, (2, 3))                          adjoint: a concatenation
    rev(x, (0,))                              adjoint: rev again
"""

from collections.abc import Iterable, Sequence
from itertools import accumulate, pairwise
from random import Random

import numpy as np
from attrs import frozen

from verax.ir.avals import Shape, ShapedArray
from verax.ir.jaxpr import Params
from verax.ops.structure.shape import (
    batched_alike,
    draw_aval,
)
from verax.ops.structure.slicing import pad, slice_in_dim
from verax.rules.families.elementwise import in_bytes
from verax.rules.families.linear import linear, one_batched, one_linear, one_pushed
from verax.rules.rows.emitter import Emitter, Operand, i64, i64s
from verax.rules.rows.infer import dense, nonzeros
from verax.rules.rows.row import (
    Axis,
    Engine,
    Known,
    Linear,
    NDArray,
    Row,
    Rows,
    Sample,
    Tangent,
    Traits,
    Work,
    Zero,
    no_flops,
)
from verax.rules.rows.type_shardings import in_place, linear_terms
from verax.rules.values.array import Array
from verax.rules.values.constants import ANYTHING, aval_of
from verax.rules.values.memo import pure
from verax.rules.values.sizes import (
    ShapeError,
    as_axes,
    as_axis,
    as_integers,
    draw_shape,
    draw_size,
)


@frozen(eq=False, repr=False)
class ConcatenateParams(Params):
    """The dimension along which the operands follow each other."""

    dimension: int


def concatenate_typing(
    p: ConcatenateParams, avals: Sequence[ShapedArray]
) -> Sequence[ShapedArray]:
    if not avals:
        raise TypeError("concatenate takes at least one operand")
    x, d = avals[0], p.dimension
    if not 0 <= d < x.ndim:
        raise ValueError(f"concatenate: {x} has no dimension {d}")
    rests = {
        (a.dtype, a.shape[:d], a.shape[d + 1 :]) for a in avals if a.ndim == x.ndim
    }
    if len(rests) != 1 or any(a.ndim != x.ndim for a in avals):
        raise TypeError(
            "concatenate takes operands of the same dtype, and of the same shape "
            f"except along dimension {d}, not {', '.join(map(str, avals))}"
        )
    total = sum(a.shape[d] for a in avals)
    shape = (*x.shape[:d], total, *x.shape[d + 1 :])
    return (ShapedArray(shape, x.dtype, all(a.weak_type for a in avals)),)


def transpose_concatenate(
    engine: Engine, p: ConcatenateParams, cts: Sequence[Tangent], args: Sequence[Known]
) -> Sequence[Tangent | None]:
    ct, start = cts[0], 0
    assert isinstance(ct, Array)
    results: list[Tangent | None] = []
    for arg in args:
        limit = start + arg.aval.shape[p.dimension]
        if not isinstance(arg, Linear):
            results.append(None)
        else:
            results.append(slice_in_dim(ct, start, limit, axis=p.dimension))
        start = limit
    return results


def batch_concatenate(
    engine: Engine,
    p: ConcatenateParams,
    size: int,
    args: Sequence[Array],
    axes: Sequence[Axis],
) -> tuple[Sequence[Array], Sequence[Axis]]:
    """The place of the first batched operand serves all."""
    moved, place = batched_alike(args, axes, size)
    dimension = p.dimension + (place <= p.dimension)
    return concatenate_p.bind(ConcatenateParams(dimension), *moved), (place,)


def draw_concatenate(random: Random) -> Sample[ConcatenateParams]:
    shape, dtype = list(draw_shape(random, 1, 3)), random.choice(ANYTHING.samples())
    dimension = random.randrange(len(shape))
    avals = []
    for _ in range(random.randint(1, 4)):
        shape[dimension] = draw_size(random)
        avals.append(ShapedArray(tuple(shape), dtype))
    return Sample(ConcatenateParams(dimension), tuple(avals))


concatenate_p = linear(
    "concatenate",
    ConcatenateParams,
    typing=concatenate_typing,
    evaluate=lambda p, *xs: np.concatenate(xs, axis=p.dimension),
    transpose=transpose_concatenate,
    batch=batch_concatenate,
    lower=lambda e, p, xs, outs: in_bytes(
        e, "stablehlo.concatenate", xs, outs, dimension=i64(p.dimension)
    ),
    draw=draw_concatenate,
    sharding=in_place,
    traits=Traits(flops=no_flops, makes_nans=False),
)


@frozen(eq=False, repr=False)
class SplitParams(Params):
    """The dimension that is split, and the sizes of the parts in their order."""

    sizes: Shape
    axis: int


def split_typing(p: SplitParams, avals: Sequence[ShapedArray]) -> Sequence[ShapedArray]:
    (x,) = avals
    if not 0 <= p.axis < x.ndim:
        raise ValueError(f"split: {x} has no dimension {p.axis}")
    if sum(p.sizes) != x.shape[p.axis]:
        raise ValueError(
            f"Sum of sizes {sum(p.sizes)} must be equal to dimension {p.axis} of the "
            f"operand, {x}: split got the sizes {p.sizes}"
        )
    before, after = x.shape[: p.axis], x.shape[p.axis + 1 :]
    return [x.with_shape((*before, size, *after)) for size in p.sizes]


def part_bounds(sizes: Shape) -> list[tuple[int, int]]:
    """Where each part starts and ends.

    >>> part_bounds((2, 0, 3))
    [(0, 2), (2, 2), (2, 5)]
    """
    return list(pairwise(accumulate(sizes, initial=0)))


def evaluate_split(
    engine: Engine, p: SplitParams, xs: Sequence[NDArray]
) -> Sequence[NDArray]:
    before = (slice(None),) * p.axis
    return [xs[0][(*before, slice(*bound))] for bound in part_bounds(p.sizes)]


def transpose_split(
    engine: Engine, p: SplitParams, cts: Sequence[Tangent], args: Sequence[Known]
) -> Sequence[Tangent | None]:
    """One cotangent is padded; several follow each other, with zeros between."""
    given = nonzeros(cts)
    if not any(given):
        return (Zero(args[0].aval),)
    if sum(given) > 1:
        return (concatenate([dense(engine, ct) for ct in cts], p.axis),)
    place = given.index(True)
    start, stop = part_bounds(p.sizes)[place]
    ct = dense(engine, cts[place])
    edges = [(0, 0, 0)] * ct.ndim
    edges[p.axis] = (start, args[0].aval.shape[p.axis] - stop, 0)
    return (pad(ct, 0.0, edges),)


def batch_split(
    engine: Engine,
    p: SplitParams,
    size: int,
    args: Sequence[Array],
    axes: Sequence[Axis],
) -> tuple[Sequence[Array], Sequence[Axis]]:
    (x,), (place,) = args, axes
    assert place is not None, "a rule is asked where an operand is batched"
    parts = split_p.bind(SplitParams(p.sizes, p.axis + (place <= p.axis)), x)
    return parts, (place,) * len(parts)


def lower_split(
    e: Emitter, p: SplitParams, xs: Sequence[Operand], outs: Sequence[ShapedArray]
) -> Sequence[Operand]:
    """A slice for each part."""
    parts: list[Operand] = []
    for (start, _), out in zip(part_bounds(p.sizes), outs, strict=True):
        starts = [start if i == p.axis else 0 for i in range(out.ndim)]
        parts += e.op(
            "stablehlo.slice",
            xs,
            [out],
            start_indices=i64s(starts),
            limit_indices=i64s([i + n for i, n in zip(starts, out.shape, strict=True)]),
            strides=i64s([1] * out.ndim),
        )
    return parts


def draw_split(random: Random) -> Sample[SplitParams]:
    shape, dtype = list(draw_shape(random, 1, 3)), random.choice(ANYTHING.samples())
    axis = random.randrange(len(shape))
    sizes = tuple(draw_size(random) for _ in range(random.randint(1, 4)))
    shape[axis] = sum(sizes)
    return Sample(SplitParams(sizes, axis), (ShapedArray(tuple(shape), dtype),))


split_p: Row[SplitParams] = Row(
    "split",
    SplitParams,
    typing=split_typing,
    evaluate=evaluate_split,
    jvp=one_pushed(lambda p, x, t: (split_p.bind(p, x), split_p.bind(p, t))),
    transpose=transpose_split,
    batch=batch_split,
    lower=lower_split,
    draw=draw_split,
    sharding=in_place,
    terms=linear_terms,
    traits=Traits(Work.LIGHT, no_flops, makes_nans=False),
    multiple_results=True,
)


@frozen(eq=False, repr=False)
class RevParams(Params):
    """The dimensions whose order is reversed."""

    dimensions: Shape


def rev_typing(p: RevParams, avals: Sequence[ShapedArray]) -> Sequence[ShapedArray]:
    (x,) = avals
    known = set(p.dimensions) & set(range(x.ndim))
    if len(known) != len(p.dimensions):
        raise TypeError(f"rev takes distinct dimensions of {x}, not {p.dimensions}")
    return (x,)


def batch_rev(p: RevParams, size: int, x: Array, axis: int) -> tuple[Array, int]:
    return rev(x, [d + (d >= axis) for d in p.dimensions]), axis


def draw_rev(random: Random) -> Sample[RevParams]:
    aval = draw_aval(random)
    dims = tuple(i for i in range(aval.ndim) if random.random() < 0.5)
    return Sample(RevParams(dims), (aval,))


@pure(1 << 10)
def backwards(rank: int, dimensions: Shape) -> tuple[slice, ...]:
    """Reads these dimensions from their ends."""
    return tuple([slice(None, None, -1 if i in dimensions else 1) for i in range(rank)])


rev_p = linear(
    "rev",
    RevParams,
    typing=rev_typing,
    evaluate=lambda p, x: x[backwards(x.ndim, p.dimensions)],
    transpose=one_linear(lambda p, ct, x: rev(ct, p.dimensions)),
    batch=one_batched(batch_rev),
    lower=lambda e, p, xs, outs: e.op(
        "stablehlo.reverse", xs, outs, dimensions=i64s(p.dimensions)
    ),
    draw=draw_rev,
    sharding=in_place,
    traits=Traits(flops=no_flops, makes_nans=False),
)


def concatenate(operands: object, dimension: int) -> Array:
    """The operands one after the other along `dimension`; an array is split first.

    Args:
        operands: arrays of the same dtype and, but for `dimension`, of the same shape;
            or one array, whose parts along its first dimension they are.
        dimension: the dimension to work along.

    Returns:
        An array whose size along `dimension` is the sum of theirs.

    Raises:
        TypeError: dtypes differ, or shapes do in another dimension.
        ValueError: there is no such dimension, or no operand.

    >>> import verax.numpy as vnp
    >>> from verax import lax
    >>> x = vnp.arange(4).reshape(2, 2)
    >>> lax.concatenate([x, -x[:, :1]], 1)
    Array([[ 0,  1,  0],
           [ 2,  3, -2]], dtype=int32)
    """
    if not isinstance(operands, Iterable):
        raise TypeError(
            f"concatenate: operands must be a sequence of arrays, not {operands}"
        )
    parts = tuple(operands)
    if not parts:
        raise ValueError("concatenate: operands must not be empty")
    place = as_axis("concatenate", dimension, aval_of(parts[0]).ndim)
    if len(parts) == 1 and isinstance(parts[0], Array):
        return parts[0]
    return concatenate_p.call(ConcatenateParams(place), *parts)


def split(operand: object, sizes: Sequence[int], axis: int = 0) -> list[Array]:
    """The parts of the given sizes along a dimension.

    Args:
        operand: an array.
        sizes: the sizes of the parts, which add up to that of the dimension; they are
            no places to cut at, unlike in `verax.numpy.split`.
        axis: the dimension to work along; 0 by default.

    Returns:
        A list of as many arrays.

    Raises:
        ValueError: there is no such dimension, or the sizes do not add up to its size.

    >>> import verax.numpy as vnp
    >>> from verax import lax
    >>> [part.tolist() for part in lax.split(vnp.arange(5), (2, 0, 3))]
    [[0, 1], [], [2, 3, 4]]
    """
    aval = aval_of(operand)
    place = as_axis("split", axis, aval.ndim)
    parts = as_integers("split", "sizes", sizes)
    if any(size < 0 for size in parts):
        raise ShapeError(f"Sizes passed to split must be nonnegative, not {parts}")
    if parts == aval.shape[place : place + 1] and isinstance(operand, Array):
        return [operand]
    return list(split_p.bind(SplitParams(parts, place), operand))


def rev(operand: object, dimensions: Sequence[int]) -> Array:
    """`operand` with the order of elements reversed along `dimensions`.

    Args:
        operand: an array.
        dimensions: the dimensions to reverse; negative ones count from the last.

    Returns:
        An array of the shape and dtype of `operand`.

    Raises:
        ValueError: a dimension does not exist or is named twice.

    >>> import verax.numpy as vnp
    >>> from verax import lax
    >>> x = vnp.arange(6).reshape(2, 3)
    >>> lax.rev(x, (1,))
    Array([[2, 1, 0],
           [5, 4, 3]], dtype=int32)
    >>> lax.rev(x, (0, 1)).tolist()
    [[5, 4, 3], [2, 1, 0]]
    """
    dims = as_axes("rev", dimensions, aval_of(operand).ndim)
    if not dims and isinstance(operand, Array):
        return operand
    return rev_p.call(RevParams(dims), operand)


ROWS: Rows = (concatenate_p, split_p, rev_p)
