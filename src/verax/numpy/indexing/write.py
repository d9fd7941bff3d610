"""Floor 6: updates of parts of arrays, out of place.

One idea: a static index is a window, which is read, combined and put back; only an
index with arrays takes a scatter::

    update(x, slice(1, 3), 2.0, "multiply")    # slice, mul, dynamic_update_slice
    update(x, rows, 1.0, "add")                # scatter-add
"""

import warnings
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

import numpy as np
from attrs import frozen

from verax.ir.avals import Shape
from verax.ir.dtypes import int32, is_extended, is_integer, numpy_dtype
from verax.ir.limits import iinfo
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
from verax.numpy.indexing.parse import IndexArray, note_beyond, parse
from verax.numpy.indexing.vectors import common, index_column, joined, typed, wrapped
from verax.numpy.indexing.write_plans import (
    Column,
    ScatterPlan,
    WritePlan,
    scatter_plan,
    write_plan,
)
from verax.ops.elementwise.convert import convert
from verax.ops.elementwise.select import select
from verax.ops.indexing.dynamic_slice import (
    DynamicUpdateSliceParams,
    dynamic_update_slice_p,
)
from verax.ops.indexing.geometry import GatherScatterMode, scattering
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
from verax.ops.structure.slicing import pad, padded
from verax.rules.values.array import Array
from verax.rules.values.sizes import size_as
from verax.rules.values.state import STATE

DROP = GatherScatterMode.FILL_OR_DROP
DYNAMIC_UPDATE: Final = DynamicUpdateSliceParams()
COMBINE: Final[Mapping[str, Callable[[Any, Any], Array]]] = MappingProxyType(
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
    """What a caller says of an index: sorted, without duplicates, and of negatives."""

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
        type(values) is int
        and is_integer(aval.dtype)
        and iinfo(aval.dtype).min <= values <= iinfo(aval.dtype).max
    ):
        return x, constant_of(values, aval.dtype)
    new = operand_aval("x.at[index]", 1, values)
    if new.dtype == aval.dtype:
        return x, as_type(values, new, aval.dtype, False)
    strict = STATE.numpy_dtype_promotion == "strict"
    own, weak = new.dtype, new.weak_type
    found, _ = join(aval.dtype, False, own, weak, STATE.enable_x64, strict)
    if found == aval.dtype:
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
    kinds: tuple[Any, ...],
    arrays: tuple[IndexArray, ...],
    values: Any,
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


def scatter_indices(plan: ScatterPlan, picks: list[Any]) -> Any:
    """The index vectors of a scatter, from arrays, ints and the starts of slices."""
    dtype = common(picks)
    columns = []
    for column in plan.columns:
        pick, rank = column_values(column, picks, dtype, len(plan.batch))
        columns.append(index_column(pick, plan.index_shape, column.start, rank))
    return joined(columns)


def column_values(
    column: Column, picks: list[Any], dtype: Any, batch_rank: int
) -> tuple[Any, int]:
    """The values of a column, and the number of dimensions that they run along."""
    if column.array is not None:
        return typed(picks[column.array], dtype), batch_rank
    if isinstance(column.values, int):
        return np.asarray(column.values, dtype), 0
    return np.asarray(column.values, dtype), 1
