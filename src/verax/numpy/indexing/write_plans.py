"""Floor 6: what to do to write to an index: plans for windows and for scatters.

One idea: an index without arrays names a window, perhaps with gaps; any other one names
the places of a scatter, whose index vectors have one column per dimension that moves::

    write_plan((1, slice(0, 2)), (3, 4), True, True)     # window (1, 2) at (1, 0)
    scatter_plan((Picked((5,)),), (3, 4), True, True)    # rows of 4, at 5 places
"""

from collections.abc import Sequence

from attrs import frozen

from verax.ir.avals import Shape, SymbolicSize
from verax.ir.records import ReprMixin
from verax.numpy.indexing.parse import Kind, Picked
from verax.numpy.indexing.read_plans import (
    Layout,
    Part,
    Step,
    View,
    dynamic_starts,
    layout,
    length,
    result_shape,
    reversal,
    reversed_first,
    static_steps,
    view_of,
)
from verax.ops.indexing.geometry import GatherDimensionNumbers
from verax.ops.structure.slicing import slice_p
from verax.rules.values.memo import pure
from verax.rules.values.sizes import surely_less


@frozen(repr=False)
class WritePlan(ReprMixin):
    """How to write to a static index: through a window of the operand.

    Values of `shape` are reshaped to the `window`, which has a size for every
    dimension of the operand, reversed by `reverse`, and put at `starts`; with
    `strides`, the elements between stay. `read` are the steps that read the window.
    """

    view: View
    outside: bool
    beyond: Shape | None
    shape: Shape
    window: Shape
    reverse: tuple[Step, ...]
    starts: Shape
    strides: Shape | None
    read: tuple[Step, ...]


@pure(1 << 12)
def write_plan(
    kinds: tuple[Kind, ...], shape: Shape, filling: bool, wrap: bool
) -> WritePlan:
    """The plan for writing to `kinds`, ints and slices only, of an array of `shape`."""
    found = layout(kinds, shape, filling, wrap)
    parts = [part for part in found.parts if part.kind is not None]
    slices = [p.kind if isinstance(p.kind, slice) else None for p in parts]
    strides = tuple(
        1 if s is None or surely_less(length(s), 2) else abs(s.step) for s in slices
    )
    return WritePlan(
        view=view_of(found),
        outside=found.outside,
        beyond=found.beyond,
        shape=result_shape(found),
        window=tuple(1 if s is None else length(s) for s in slices),
        reverse=reversal(parts, True),
        starts=dynamic_starts(parts, True),
        strides=None if all(s == 1 for s in strides) else strides,
        read=window_steps(parts, shape),
    )


def window_steps(parts: Sequence[Part], shape: Shape) -> tuple[Step, ...]:
    """What reads the window of an operand, in the order of its elements there."""
    steps = static_steps(parts, shape)
    if any(map(reversed_first, parts)):
        return (*steps, *reversal(parts, True))
    return steps[:1] if steps and steps[0][0] is slice_p else ()


@frozen(repr=False)
class Column(ReprMixin):
    """One element of the index vectors of a scatter.

    It is array number `array` of the index, or the places `values`, which run along
    dimension `start` of the indices, or, if they have no dimension, along none.
    """

    array: int | None
    values: range | int
    start: int


@frozen(repr=False)
class ScatterPlan(ReprMixin):
    """How to write to an index with arrays.

    Values of `shape` lose their dimensions of size 1 for None, which makes `updates`.
    """

    view: View
    outside: bool
    beyond: Shape | None
    shape: Shape
    updates: Shape
    columns: tuple[Column, ...]
    picked: Shape
    batch: Shape
    index_shape: Shape
    dims: GatherDimensionNumbers
    advanced: bool


@pure(1 << 12)
def scatter_plan(
    kinds: tuple[Kind, ...], shape: Shape, filling: bool, wrap: bool
) -> ScatterPlan:
    """The plan for writing to any index of an array of `shape`."""
    found = layout(kinds, shape, filling, wrap)
    parts = [part for part in found.parts if part.kind is not None]
    columns, mapped, index_shape = scatter_columns(found, shape)
    places = [p for p in found.dimensions() if p is None or p.kind is not None]
    windows = tuple(i for i, p in enumerate(places) if p is not None and in_window(p))
    value_shape = result_shape(found)
    kept = [p is None or p.kind is not None for p in found.dimensions()]
    return ScatterPlan(
        view=view_of(found),
        outside=found.outside,
        beyond=found.beyond,
        shape=value_shape,
        updates=tuple(n for n, keep in zip(value_shape, kept, strict=True) if keep),
        columns=columns,
        picked=tuple(p.axis for p in parts if type(p.kind) is Picked),
        batch=found.batch,
        index_shape=index_shape,
        dims=GatherDimensionNumbers(
            windows,
            tuple(p.axis for p in parts if not in_window(p)),
            mapped,
        ),
        advanced=found.advanced,
    )


def in_window(part: Part) -> bool:
    """Whether a slice is a dimension of the windows of a scatter."""
    return isinstance(part.kind, slice) and part.kind.step == 1


def scatter_columns(
    found: Layout, shape: Shape
) -> tuple[tuple[Column, ...], Shape, Shape]:
    """The columns of the index vectors, their dimensions, and the indices' shape."""
    index_shape: list[int] = []
    columns: list[tuple[int, Column]] = []
    batch_start: int | None = None
    for part in found.dimensions():
        if part is None and batch_start is None:
            batch_start = len(index_shape)
            index_shape += found.batch
        elif part and isinstance(part.kind, slice) and not in_window(part):
            places = range(part.kind.start, part.kind.stop, part.kind.step)
            columns.append((part.axis, Column(None, places, len(index_shape))))
            index_shape.append(len(places))
    start = batch_start or 0
    for part in found.parts:
        kind = part.kind
        if isinstance(kind, slice) and in_window(part):
            if length(kind) != shape[part.axis]:
                columns.append((part.axis, Column(None, kind.start, start)))
        elif isinstance(kind, int | SymbolicSize):
            columns.append((part.axis, Column(None, kind, start)))
    arrays = [part.axis for part in found.parts if type(part.kind) is Picked]
    columns += [(axis, Column(i, 0, start)) for i, axis in enumerate(arrays)]
    columns.sort(key=lambda entry: entry[0])
    return (
        tuple(column for _, column in columns),
        tuple(axis for axis, _ in columns),
        tuple(index_shape),
    )
