"""Floor 6: updates of parts of arrays, out of place, and the plans of known updates.

One idea: a static index is a window, which is read, combined and put back; only an
index with arrays takes a scatter::

    update(x, slice(1, 3), 2.0, "multiply")    # slice, mul, dynamic_update_slice
    update(x, rows, 1.0, "add")                # scatter-add
"""

import warnings
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

import numpy as np
from attrs import frozen

from verax.ir.avals import Shape, SymbolicSize, iinfo
from verax.ir.dtypes import int32, is_extended, is_integer, numpy_dtype
from verax.ir.promotion import join
from verax.ir.records import ReprMixin
from verax.numpy.arguments.arguments import (
    ArrayLike,
    as_type,
    common_type,
    constant_of,
    operand_aval,
    stretched,
)
from verax.numpy.creation.creation import asarray
from verax.numpy.elementwise import arithmetic
from verax.numpy.indexing.parse import IndexArray, Kind, Picked, note_beyond, parse
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
from verax.numpy.indexing.vectors import common, index_column, joined, typed, wrapped
from verax.ops.elementwise.convert import convert
from verax.ops.elementwise.select import select
from verax.ops.indexing.dynamic_slice import (
    DynamicUpdateSliceParams,
    dynamic_update_slice_p,
)
from verax.ops.indexing.geometry import (
    GatherDimensionNumbers,
    GatherScatterMode,
    scattering,
)
from verax.ops.indexing.scatter import (
    scatter,
    scatter_add,
    scatter_max,
    scatter_min,
    scatter_mul,
    scatter_sub,
)
from verax.ops.structure.create import filling
from verax.ops.structure.reshard import call_sharded
from verax.ops.structure.shape import broadcast_in_dim, expand_dims, reshape, squeeze
from verax.ops.structure.slicing import pad, padded, slice_p
from verax.rules.values.array import Array
from verax.rules.values.memo import pure
from verax.rules.values.sizes import size_as, surely_less
from verax.rules.values.state import STATE

# -----------------------------------------------------------------------------
# What to do to write to an index: plans for windows and for scatters.
#
# An index without arrays names a window, perhaps with gaps; any other one names the
# places of a scatter, whose index vectors have one column per dimension that moves::
#
#     write_plan((1, slice(0, 2)), (3, 4), True, True)     # window (1, 2) at (1, 0)
#     scatter_plan((Picked((5,)),), (3, 4), True, True)    # rows of 4, at 5 places


@frozen(repr=False)
class WritePlan(ReprMixin):
    """The plan for writing to a static index: through a window of the operand.

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
    out = layout(kinds, shape, filling, wrap)
    parts = [part for part in out.parts if part.kind is not None]
    slices = [p.kind if isinstance(p.kind, slice) else None for p in parts]
    strides = tuple(
        1 if s is None or surely_less(length(s), 2) else abs(s.step) for s in slices
    )
    return WritePlan(
        view=view_of(out),
        outside=out.outside,
        beyond=out.beyond,
        shape=result_shape(out),
        window=tuple(1 if s is None else length(s) for s in slices),
        reverse=reversal(parts, True),
        starts=dynamic_starts(parts, True),
        strides=None if all(s == 1 for s in strides) else strides,
        read=window_steps(parts, shape),
    )


def window_steps(parts: Sequence[Part], shape: Shape) -> tuple[Step, ...]:
    """The steps that read the window of an operand, in the order of its elements."""
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
    """The plan for writing to an index with arrays.

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
    out = layout(kinds, shape, filling, wrap)
    parts = [part for part in out.parts if part.kind is not None]
    columns, mapped, index_shape = scatter_columns(out, shape)
    places = [p for p in out.dimensions() if p is None or p.kind is not None]
    windows = tuple(i for i, p in enumerate(places) if p is not None and in_window(p))
    value_shape = result_shape(out)
    kept = [p is None or p.kind is not None for p in out.dimensions()]
    return ScatterPlan(
        view=view_of(out),
        outside=out.outside,
        beyond=out.beyond,
        shape=value_shape,
        updates=tuple(n for n, keep in zip(value_shape, kept, strict=True) if keep),
        columns=columns,
        picked=tuple(p.axis for p in parts if type(p.kind) is Picked),
        batch=out.batch,
        index_shape=index_shape,
        dims=GatherDimensionNumbers(
            windows,
            tuple(p.axis for p in parts if not in_window(p)),
            mapped,
        ),
        advanced=out.advanced,
    )


def in_window(part: Part) -> bool:
    """Whether a slice is a dimension of the windows of a scatter."""
    return isinstance(part.kind, slice) and part.kind.step == 1


def scatter_columns(
    result: Layout, shape: Shape
) -> tuple[tuple[Column, ...], Shape, Shape]:
    """The columns of the index vectors, their dimensions, and the indices' shape."""
    index_shape: list[int] = []
    columns: list[tuple[int, Column]] = []
    batch_start: int | None = None
    for part in result.dimensions():
        if part is None and batch_start is None:
            batch_start = len(index_shape)
            index_shape += result.batch
        elif part and isinstance(part.kind, slice) and not in_window(part):
            places = range(part.kind.start, part.kind.stop, part.kind.step)
            columns.append((part.axis, Column(None, places, len(index_shape))))
            index_shape.append(len(places))
    start = batch_start or 0
    for part in result.parts:
        kind = part.kind
        if isinstance(kind, slice) and in_window(part):
            if length(kind) != shape[part.axis]:
                columns.append((part.axis, Column(None, kind.start, start)))
        elif isinstance(kind, int | SymbolicSize):
            columns.append((part.axis, Column(None, kind, start)))
    arrays = [part.axis for part in result.parts if type(part.kind) is Picked]
    columns += [(axis, Column(i, 0, start)) for i, axis in enumerate(arrays)]
    columns.sort(key=lambda entry: entry[0])
    return (
        tuple(column for _, column in columns),
        tuple(axis for axis, _ in columns),
        tuple(index_shape),
    )


DROP = GatherScatterMode.FILL_OR_DROP
DYNAMIC_UPDATE: Final = DynamicUpdateSliceParams()
COMBINE: Final[Mapping[str, Callable[[Array, Array], Array]]] = MappingProxyType(
    {
        "add": arithmetic.add,
        "subtract": arithmetic.subtract,
        "multiply": arithmetic.multiply,
        "min": arithmetic.minimum,
        "max": arithmetic.maximum,
    }
)
SCATTER: Final[Mapping[str, Callable[..., Array]]] = MappingProxyType(
    {
        "set": scatter,
        "add": scatter_add,
        "subtract": scatter_sub,
        "multiply": scatter_mul,
        "min": scatter_min,
        "max": scatter_max,
    }
)


@frozen(repr=False)
class Promises(ReprMixin):
    """A caller's promises about an index: sorted, unique, and of negatives."""

    sorted: bool = False
    unique: bool = False
    wrap: bool = True


def update(
    x: Array,
    index: object,
    values: Any,
    how: str,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: str | GatherScatterMode | None = None,
    wrap_negative_indices: bool = True,
    out_sharding: object = None,
) -> Array:
    """x with `values` combined into the part at `index`, in the type of x.

    Raises:
        IndexError, TypeError: the index is invalid.
        ValueError: `values` does not broadcast to the shape of the part.
    """
    if out_sharding is not None:
        return call_sharded(update, locals(), "x.at[index]")
    promises = Promises(indices_are_sorted, unique_indices, wrap_negative_indices)
    chosen = GatherScatterMode.from_any(mode)
    aval = x.aval
    if isinstance(values, list | tuple):
        values = asarray(values)
    operand, new = together(x, values)
    parsed = parse(index, aval.shape)
    if parsed.flags:
        operand = expand_dims(operand, parsed.flags)
    if parsed.arrays:
        out = update_scattered(
            operand, parsed.kinds, parsed.arrays, new, how, chosen, promises
        )
    else:
        plan = write_plan(parsed.kinds, aval.shape, chosen is DROP, promises.wrap)
        out = update_window(operand, plan, new, how)
    if parsed.flags:
        out = squeeze(out, parsed.flags)
    return convert(out, aval.dtype, aval.weak_type)


def together(x: Array, values: ArrayLike) -> tuple[Array, Any]:
    """Operand and values in one dtype, which is that of x unless that loses values."""
    aval = x.aval
    if (
        (type(values) is int or type(values) is bool)
        and is_integer(aval.dtype)
        and iinfo(aval.dtype).min <= values <= iinfo(aval.dtype).max
    ):
        return x, constant_of(values, aval.dtype)
    new = operand_aval("x.at[index]", 1, values)
    if new.dtype == aval.dtype:
        return x, as_type(values, new, aval.dtype, False)
    strict = STATE.numpy_dtype_promotion == "strict"
    own, weak = new.dtype, new.weak_type
    result, _ = join(aval.dtype, False, own, weak, STATE.enable_x64, strict)
    if result == aval.dtype:
        return x, as_type(values, new, aval.dtype, False)
    warnings.warn(
        f"scatter inputs have incompatible types: an update of type {new} is converted "
        f"to that of the array, {aval}, which may lose precision; convert it yourself: "
        f"values.astype({aval.dtype.name!r}). This will be an error in the future",
        FutureWarning,
        stacklevel=4,
    )
    dtype, _ = common_type((aval, new))
    return convert(x, dtype), as_type(values, new, dtype, False)


def broadcast_values(values: Any, shape: Shape, target: Shape) -> Array:
    """Values broadcast to `shape` and then reshaped to `target`, in one step if scalar.

    Raises:
        ValueError: they do not broadcast.
    """
    own = values.shape
    if not own:
        return broadcast_in_dim(values, target, ())
    sizes = zip(own, shape[len(shape) - len(own) :], strict=False)
    if len(own) > len(shape) or any(a not in (1, b) for a, b in sizes):
        raise ValueError(
            f"values of shape {own} do not broadcast to the shape {shape} that the "
            "index selects"
        )
    return reshape(stretched(values, shape), target)


def update_window(x: Array, plan: WritePlan, values: Any, how: str) -> Array:
    """x with the window of a static index replaced, or combined with values."""
    if plan.beyond is not None and STATE.checking:
        note_beyond("scatter", x, plan.beyond)
    if plan.outside or 0 in plan.shape:
        return x
    new = values
    if new.shape:
        new = broadcast_values(values, plan.shape, plan.window)
        for row, params in plan.reverse:
            new = row.call(params, new)
    if how != "set":
        part = x
        for row, params in plan.read:
            part = row.call(params, part)
        new = COMBINE[how](part, new)
    new = broadcast_in_dim(new, plan.window, tuple(range(new.ndim)))
    if plan.strides is not None:
        return interleaved(x, plan, new)
    if plan.window == x.shape:
        return new
    starts = [size_as(start, int32) for start in plan.starts]
    return dynamic_update_slice_p.call(DYNAMIC_UPDATE, x, new, *starts)


def interleaved(x: Array, plan: WritePlan, new: Array) -> Array:
    """x with the elements of `new` at a start and a stride in each dimension."""
    assert plan.strides is not None
    config = []
    for size, n, start, stride in zip(
        x.shape, plan.window, plan.starts, plan.strides, strict=True
    ):
        taken = padded(n, (start, 0, stride - 1))
        config.append((start, size - taken, stride - 1))
    hit = pad(broadcast_in_dim(np.True_, plan.window, ()), False, config)
    extended = is_extended(x.dtype)
    zero = (
        filling(0, x.dtype, False) if extended else np.zeros((), numpy_dtype(x.dtype))
    )
    return select(hit, pad(new, zero, config), x)


def update_scattered(
    x: Array,
    kinds: tuple[Kind, ...],
    arrays: tuple[IndexArray, ...],
    values: object,
    how: str,
    mode: GatherScatterMode,
    promises: Promises,
) -> Array:
    """x with values scattered to an index that has arrays."""
    plan = scatter_plan(kinds, x.shape, mode is DROP, promises.wrap)
    if plan.beyond is not None and STATE.checking:
        note_beyond("scatter", x, plan.beyond)
    new = broadcast_values(values, plan.shape, plan.updates)
    if plan.outside or 0 in plan.shape:
        return x
    sizes = [x.shape[axis] for axis in plan.picked]
    picks = [wrapped(a, n, promises.wrap) for a, n in zip(arrays, sizes, strict=True)]
    return SCATTER[how](
        x,
        scatter_indices(plan, picks),
        new,
        scattering(plan.dims),
        indices_are_sorted=promises.sorted or not plan.advanced,
        unique_indices=promises.unique or not plan.advanced,
        mode=mode,
    )


def scatter_indices(plan: ScatterPlan, picks: list[object]) -> object:
    """The index vectors of a scatter, from arrays, ints and the starts of slices."""
    dtype = common(picks)
    columns = []
    for column in plan.columns:
        pick, rank = column_values(column, picks, dtype, len(plan.batch))
        columns.append(index_column(pick, plan.index_shape, column.start, rank))
    return joined(columns)


def column_values(
    column: Column, picks: list[object], dtype: Any, batch_rank: int
) -> tuple[object, int]:
    """The values of a column, and the number of dimensions that they run along."""
    if column.array is not None:
        return typed(picks[column.array], dtype), batch_rank
    if isinstance(column.values, int):
        return np.asarray(column.values, dtype), 0
    return np.asarray(column.values, dtype), 1
