"""Floor 2: collectives of a stack, whose rows the devices of a mesh have.

`shard_map` maps a function over the axes of a mesh, and what its collectives do to the
stack of all parts is a rearrangement. Of a gather of rows a compiler makes what it can,
often more than is needed. These rows say what the devices do::

    b:f32[4,8] = permute_parts[inner=... mesh=... axes=(x,)] a     # one row each, sent

One idea: the program is that of each device, with the collective in it; what it means
is the rearrangement, for programs that have one device.
"""

from collections.abc import Callable, Sequence

import numpy as np
from attrs import evolve, frozen

from verax.ir.avals import Shape, ShapedArray
from verax.ir.jaxpr import Params
from verax.ir.meshes import Axes, Layout, MeshAxes, layouts_text, manual_text
from verax.ops.indexing.gather import gather
from verax.ops.indexing.geometry import GatherDimensionNumbers
from verax.ops.parallel.meeting import (
    CollectiveParams,
    GatherAxisParams,
    LowerAmong,
    PermuteParams,
    all_gather,
    meeting,
    permuted,
    reduce_scatter,
    reshaped,
)
from verax.ops.reductions.reduce import reduce_sum
from verax.ops.structure.casts import retyped_along, state_along
from verax.ops.structure.shape import at_front, broadcast_in_dim, move_axis, reshape
from verax.ops.structure.slicing import pad
from verax.rules.families.linear import linear, one_linear
from verax.rules.programs.derived import program_of
from verax.rules.rows.emitter import Emitter, Operand
from verax.rules.rows.row import (
    Axis,
    Engine,
    Narrow,
    Row,
    Rows,
    Traits,
    TypeRule,
    as_typed,
    each_operand,
    no_flops,
)
from verax.rules.values.array import Array


@frozen(cache_hash=True, repr=False)
class PartsParams[P: CollectiveParams](Params):
    """The collective of an element, and the mesh axes of the stack's first dimensions.

    All axes of the mesh are mapped; along those that are not in `axes` the stack is the
    same everywhere, or not stacked yet.
    """

    inner: P
    mesh: MeshAxes
    axes: tuple[str, ...]

    @property
    def at(self) -> int:
        """The dimension along which the elements meet."""
        return self.axes.index(self.inner.axes[0])

    @property
    def named_axes(self) -> frozenset[str]:
        """The axis along which the elements meet, until the stack runs along it."""
        return frozenset(self.inner.axes).difference(self.axes)

    def with_inner[Q: CollectiveParams](self, inner: Q) -> "PartsParams[Q]":
        """Another collective of the same parts."""
        return PartsParams(inner, self.mesh, self.axes)


def gathered_shape(p: GatherAxisParams, shape: Shape) -> Shape:
    """The shape of what an element has after an all_gather."""
    if p.tiled:
        n = shape[p.dimension] * p.sizes[0]
        return (*shape[: p.dimension], n, *shape[p.dimension + 1 :])
    return (*shape[: p.dimension], p.sizes[0], *shape[p.dimension :])


def scattered_shape(p: GatherAxisParams, shape: Shape) -> Shape:
    """The shape of what an element has after a reduce_scatter."""
    d = p.dimension
    part = (shape[d] // p.sizes[0],) if p.tiled else ()
    return (*shape[:d], *part, *shape[d + 1 :])


def same_type(
    p: CollectiveParams, avals: Sequence[ShapedArray]
) -> Sequence[ShapedArray]:
    return tuple(avals)


def in_state(aval: ShapedArray, axes: Axes, state: str) -> Axes:
    """The axes along which the type says that values are in a state."""
    return tuple([axis for axis in axes if state_along(aval, axis) == state])


def gather_axis_typing(
    p: GatherAxisParams, avals: Sequence[ShapedArray]
) -> Sequence[ShapedArray]:
    (x,) = avals
    if p.tiled:
        full = x.with_shape(gathered_shape(p, x.shape)).with_explicit(x.explicit)
    else:
        full = x.stacked(p.sizes[0], p.dimension)
    known = in_state(x, p.axes, "varying")
    return (retyped_along(full, known, p.to) if p.to != "varying" and known else full,)


def reduce_scatter_typing(
    p: GatherAxisParams, avals: Sequence[ShapedArray]
) -> Sequence[ShapedArray]:
    (x,) = avals
    if p.tiled:
        part = x.with_shape(scattered_shape(p, x.shape)).with_explicit(x.explicit)
    else:
        part = x.element(p.dimension)
    terms = in_state(x, p.axes, "unreduced")
    return (retyped_along(part, terms, "varying") if terms else part,)


def rows_at(x: Array, places: Array | np.ndarray) -> Array:
    """The rows of `x` at `places`, integers of any shape; zeros where there is none."""
    numbers = GatherDimensionNumbers(
        offset_dims=tuple(range(places.ndim, places.ndim + x.ndim - 1)),
        collapsed_slice_dims=(0,),
        start_index_map=(0,),
    )
    vectors = reshape(places, (*places.shape, 1))
    window = (1, *x.shape[1:])
    return gather(x, vectors, numbers, window, mode="fill", fill_value=0)


def merged(x: Array, dimension: int) -> Array:
    """Dimension `dimension` and the next as one."""
    n = x.shape[dimension] * x.shape[dimension + 1]
    return reshape(x, (*x.shape[:dimension], n, *x.shape[dimension + 2 :]))


def parted(x: Array, dimension: int, count: int) -> Array:
    """A dimension as two, the first of length `count`."""
    n = x.shape[dimension] // count
    return reshape(x, (*x.shape[:dimension], count, n, *x.shape[dimension + 1 :]))


# What collectives do to a stack along its first dimension.


def shift_of(p: PermuteParams, size: int) -> int | None:
    """By how many places all rows move that have where to go; None if they do not."""
    shifts = {target - source for source, target in p.pairs}
    if len(shifts) != 1:
        return None
    (shift,) = shifts
    return shift if len(p.pairs) == size - abs(shift) else None


def permuted_rows(p: PermuteParams, x: Array) -> Array:
    """Row i is the one where its pair says, or zeros."""
    size = len(x)
    shift = shift_of(p, size)
    if shift is not None and isinstance(x.dtype, np.dtype):
        # A compiler knows which device has the row that is so many places away.
        edges = [(shift, -shift, 0), *[(0, 0, 0)] * (x.ndim - 1)]
        return pad(x, np.zeros((), x.dtype), edges)
    sources = np.full(size, size, np.int32)
    for source, target in p.pairs:
        sources[target] = source
    return rows_at(x, sources)


def gathered_rows(p: GatherAxisParams, x: Array) -> Array:
    """All rows together, which each element has."""
    y = move_axis(x, 0, p.dimension)
    return merged(y, p.dimension) if p.tiled else y


def scattered_rows(p: GatherAxisParams, x: Array) -> Array:
    """The sum of the rows, with the elements' parts along a dimension of their own."""
    total = reduce_sum(x, (0,))
    return parted(total, p.dimension, len(x)) if p.tiled else total


# -----------------------------------------------------------------------------
# The rows.


def lower_parts[P: CollectiveParams](
    row: Row[PartsParams[P]],
    local: LowerAmong[P],
    e: Emitter,
    p: PartsParams[P],
    x: Operand,
    out: ShapedArray,
) -> Sequence[Operand]:
    """A program for each device; in programs of one device, what the row means."""
    layout = Layout(p.mesh, tuple([(axis,) for axis in p.axes]))
    texts = [e.layout(layout, aval) for aval in (x.aval, out)]
    if texts[0] is None:
        return e.inline(program_of(row, p, (x.aval,)), [x])
    count = len(p.axes)
    before, after = (
        aval.whole().with_shape((*[1] * count, *aval.shape[count:]))
        for aval in (x.aval, out)
    )

    def body(xs: Sequence[Operand]) -> Sequence[Operand]:
        element = reshaped(e, xs[0], before.shape[count:])
        groups = meeting(e, p.inner.axes, p.inner.groups, p.mesh)
        own = after.with_shape(after.shape[count:])
        (y,) = local(e, p.inner, element, groups, own)
        return [reshaped(e, y, after.shape)]

    return e.op(
        "sdy.manual_computation",
        (x,),
        (out,),
        [((before,), body)],
        in_shardings=layouts_text(texts[:1]),
        out_shardings=layouts_text(texts[1:]),
        manual_axes=manual_text(p.mesh.names),
    )


def batch_parts[P: CollectiveParams](
    row: Row[PartsParams[P]],
    engine: Engine,
    p: PartsParams[P],
    size: int,
    x: Array,
    axis: Axis,
) -> tuple[Array, int]:
    """The stack along one more axis of the mesh, or with a dimension of elements."""
    own = engine.axis
    if own is not None and own.parts == p.mesh and own.name in p.mesh.names:
        rows = at_front(x, axis, size)
        return row.call(evolve(p, axes=(own.name, *p.axes)), rows), 0
    assert axis is not None, "only along its own axis is it asked of one value for all"
    count = len(p.axes)
    inner = p.inner
    if isinstance(inner, GatherAxisParams):
        inner = evolve(inner, dimension=inner.dimension + 1)
    return row.call(p.with_inner(inner), move_axis(x, axis, count)), count


type Meaning[P] = Callable[[P, Array], Array]
type TransposeParts[P: CollectiveParams] = Callable[
    [PartsParams[P], Array, ShapedArray], Array
]


def parts_row[P: CollectiveParams](
    name: str,
    of_element: TypeRule[P],
    meaning: Meaning[P],
    transpose: TransposeParts[P],
    local: LowerAmong[P],
    traits: Traits,
) -> Row[PartsParams[P]]:
    """The row of a collective of parts, which is linear."""

    def typing(
        p: PartsParams[P], avals: Sequence[ShapedArray]
    ) -> Sequence[ShapedArray]:
        (x,) = avals
        element = x
        for _ in p.axes:
            element = element.element()
        (out,) = of_element(p.inner, (element,))
        for size in reversed(x.shape[: len(p.axes)]):
            out = out.stacked(size)
        return (out,)

    def batch(
        engine: Engine,
        p: PartsParams[P],
        size: int,
        args: Sequence[Array],
        axes: Sequence[Axis],
    ) -> tuple[Sequence[Array], Sequence[Axis]]:
        (x,), (axis,) = args, axes
        y, at = batch_parts(row, engine, p, size, x, axis)
        return (y,), (at,)

    row: Row[PartsParams[P]] = linear(
        name,
        PartsParams,
        typing=typing,
        evaluate=None,
        composition=lambda p, x: move_axis(
            meaning(p.inner, move_axis(x, p.at, 0)), 0, p.at
        ),
        transpose=one_linear(transpose),
        batch=batch,
        lower=lambda e, p, xs, outs: lower_parts(row, local, e, p, xs[0], outs[0]),
        draw=None,
        compiled=True,
        sharding=as_typed,
        traits=traits,
    )
    return row


def backwards(p: PermuteParams) -> PermuteParams:
    """The same pairs, the other way."""
    return evolve(p, pairs=tuple([(b, a) for a, b in p.pairs]))


permute_parts_p: Row[PartsParams[PermuteParams]] = parts_row(
    "permute_parts",
    same_type,
    permuted_rows,
    lambda p, ct, x: permute_parts_p.call(p.with_inner(backwards(p.inner)), ct),
    lambda e, p, x, groups, out: permuted(e, x, groups, p.pairs),
    Traits(flops=no_flops, makes_nans=False),
)
scatter_parts_p: Row[PartsParams[GatherAxisParams]] = parts_row(
    "scatter_parts",
    reduce_scatter_typing,
    lambda p, x: move_axis(scattered_rows(p, x), p.dimension, 0),
    lambda p, ct, x: gather_parts_p.call(p, ct),
    lambda e, p, x, groups, out: reduce_scatter(e, x, groups, p.dimension, out),
    Traits(flops=each_operand, narrow=Narrow.SUM),
)
gather_parts_p: Row[PartsParams[GatherAxisParams]] = parts_row(
    "gather_parts",
    gather_axis_typing,
    lambda p, x: alike(gathered_rows(p, x), len(x)),
    lambda p, ct, x: scatter_parts_p.call(p, ct),
    lambda e, p, x, groups, out: all_gather(e, x, groups, p.dimension, out),
    Traits(flops=no_flops, makes_nans=False),
)

ROWS: Rows = (permute_parts_p, scatter_parts_p, gather_parts_p)


def alike(x: Array, size: int) -> Array:
    """A stack of equal rows."""
    return broadcast_in_dim(x, (size, *x.shape), tuple(range(1, x.ndim + 1)))
