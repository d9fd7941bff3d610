"""Floor 2: what a scatter means: its type, its value in NumPy, its StableHLO.

One idea: the six scatters differ in how an update and the element it meets become one,
so one factory makes them from that::

    scatter_max_p = scatter_family("scatter-max", np.maximum, "maximum", jvp=...)
"""

from collections.abc import Hashable, Sequence
from random import Random

import numpy as np
from attrs import evolve, frozen

from verax.ir.avals import Shape, ShapedArray
from verax.ir.dtypes import DType, float32, int64, is_float, numpy_dtype
from verax.ir.jaxpr import Params
from verax.ir.meshes import Splits, Terms
from verax.ops.indexing.gather_impl import (
    CLIP,
    FILL,
    GatherParams,
    above,
    capped,
    draw_gather,
)
from verax.ops.indexing.geometry import (
    ScatterDimensionNumbers,
    all_inside,
    as_starts,
    bounds,
    check_dimensions,
    clipped,
    index_labels,
    placed_labels,
    scattering,
    split_rows,
    taken_axis,
    window_labels,
    window_shape,
    write_windows,
)
from verax.ops.structure.shape import at_front
from verax.rules.families.elementwise import whole_bytes
from verax.rules.families.reducer import Combine, doubled
from verax.rules.rows.emitter import Emitter, Operand, constants, converted, flag, ints
from verax.rules.rows.row import (
    NO_TRAITS,
    REALS,
    Avals,
    Axis,
    JvpRule,
    Row,
    Sample,
    TermRule,
    Traits,
    TransposeRule,
    Work,
    each_update,
)
from verax.rules.rows.type_shardings import connected, linear_terms, whole_terms
from verax.rules.values.array import Array
from verax.rules.values.constants import Kind
from verax.rules.values.conversions import ShardingTypeError
from verax.rules.values.sizes import surely_less

# The updates of an element, on average, from which on they are combined in double.
MANY = 1024
ROUNDING = (np.add, np.subtract, np.multiply)


@frozen(eq=False, repr=False)
class ScatterParams(Params):
    """Dimension numbers, promises about indices, and the mode."""

    dimension_numbers: ScatterDimensionNumbers
    indices_are_sorted: bool
    unique_indices: bool
    mode: str


def slice_sizes(p: ScatterParams, operand: Shape, updates: Shape) -> Shape:
    """The sizes of the windows that a scatter writes, one per dimension."""
    dims = p.dimension_numbers
    windowed = dims.gather().windowed(len(operand))
    sizes = [1] * len(operand)
    for d, place in zip(windowed, dims.update_window_dims, strict=False):
        sizes[d] = updates[place] if 0 <= place < len(updates) else -1
    for d in dims.operand_batching_dims:
        sizes[d] = min(1, operand[d])
    return tuple(sizes)


def reading(p: ScatterParams, operand: Shape, updates: Shape) -> GatherParams:
    """The gather that reads, zero out of bounds, the windows that a scatter writes."""
    return GatherParams(
        p.dimension_numbers.gather(),
        slice_sizes(p, operand, updates),
        p.unique_indices,
        p.indices_are_sorted,
        p.mode,
        0 if p.mode == FILL else None,
    )


def writing(p: GatherParams) -> ScatterParams:
    """The scatter that writes the windows that a gather reads."""
    dims = scattering(p.dimension_numbers)
    return ScatterParams(dims, p.indices_are_sorted, p.unique_indices, p.mode)


def scatter_typing(
    name: str, accepts: Kind, p: ScatterParams, avals: Sequence[ShapedArray]
) -> Sequence[ShapedArray]:
    operand, indices, updates = avals
    if updates.dtype != operand.dtype or not accepts.holds(operand.dtype):
        raise TypeError(
            f"{name} takes {accepts} and updates of the same dtype, not {operand} and "
            f"{updates}; convert one of them (verax.lax.convert_element_type)"
        )
    dims = p.dimension_numbers.gather()
    check_dimensions("scatter", p.dimension_numbers, operand, indices)
    sizes = slice_sizes(p, operand.shape, updates.shape)
    expected = window_shape(dims, indices.shape, sizes)
    given = f"{updates} for {operand}, indices {indices} and {p.dimension_numbers}"
    if updates.ndim != len(expected):
        raise TypeError(
            f"{name}: Updates tensor must be of rank {len(expected)}; got "
            f"{updates.ndim}: {given}"
        )
    if any(sizes[d] > operand.shape[d] for d in dims.windowed(operand.ndim)):
        raise TypeError(
            f"{name}: Bounds of the window dimensions of updates must not exceed those "
            f"of the operand: {given}"
        )
    if updates.shape != expected:
        raise TypeError(
            f"{name}: Bounds of the scatter dimensions of updates must be those of the "
            f"indices: {given}"
        )
    return (operand,)


def working_dtype(
    combine: np.ufunc | None, p: ScatterParams, dtype: DType, size: int, many: int
) -> DType:
    """The dtype in which `many` updates are combined with `size` elements.

    Updates of one element are combined one after another. So small floats would be
    rounded in every step; and where an element has a thousand updates on average, long
    chains lose digits, and sums stop to grow.
    """
    if combine not in ROUNDING or p.unique_indices:
        return dtype
    if surely_less(MANY * size, many):
        return doubled(dtype)
    return float32 if is_float(dtype) and dtype.itemsize < 4 else dtype


def evaluate_working(
    combine: np.ufunc | None, p: ScatterParams, args: Sequence[np.ndarray]
) -> np.ndarray:
    """The scatter in NumPy, in the working dtype."""
    operand, indices, updates = args
    own = operand.dtype
    working = numpy_dtype(working_dtype(combine, p, own, operand.size, updates.size))
    if working == own:
        return evaluate_scatter(combine, p, args)
    given = operand.astype(working), indices, updates.astype(working)
    return evaluate_scatter(combine, p, given).astype(own)


def evaluate_scatter(
    combine: np.ufunc | None, p: ScatterParams, args: Sequence[np.ndarray]
) -> np.ndarray:
    operand, indices, updates = args
    dims = p.dimension_numbers.gather()
    sizes = slice_sizes(p, operand.shape, updates.shape)
    axis = taken_axis(dims, operand.shape, sizes, indices.ndim - 1)
    if axis == 0 and updates.size and all_inside(indices, operand.shape[0]):
        result = np.array(operand)
        rows = updates.reshape((indices.size, *operand.shape[1:]))
        store(combine, p, result, indices.ravel().astype(np.intp), rows)
        return result
    starts = as_starts(indices)
    if p.mode == CLIP:
        starts = clipped(starts, bounds(dims, operand.shape, sizes))
    places = (*dims.batch_positions(updates.ndim), *dims.offset_dims)
    return write_windows(
        operand,
        starts,
        updates.transpose(places),
        dims,
        sizes,
        lambda array, index, values: store(combine, p, array, index, values),
    )


def store(
    combine: np.ufunc | None,
    p: ScatterParams,
    array: np.ndarray,
    index: np.ndarray,
    values: np.ndarray,
) -> None:
    """Combine values into an array in place, duplicates of an index in order."""
    if combine is None:
        array[index] = values
    elif p.unique_indices:
        array[index] = combine(array[index], values)
    else:
        combine.at(array, index, values)


def batch_scatter(
    row: Row[ScatterParams],
    p: ScatterParams,
    size: int,
    args: Sequence[Array],
    axes: Sequence[Axis],
) -> tuple[Sequence[Array], Sequence[Axis]]:
    """The batch dimension goes first everywhere; batched indices pair with it."""
    operand, updates = (
        at_front(args[0], axes[0], size),
        at_front(args[2], axes[2], size),
    )
    dims, indices = p.dimension_numbers, args[1]
    inserted = above(dims.inserted_window_dims, 0)
    mapped = above(dims.scatter_dims_to_operand_dims, 0)
    batching = above(dims.operand_batching_dims, 0)
    windows = above(dims.update_window_dims, 0)
    together = dims.scatter_indices_batching_dims
    if axes[1] is None:
        windows = (0, *windows)
    else:
        indices = at_front(indices, axes[1], size)
        batching, together = (0, *batching), (0, *above(together, 0))
    result = ScatterDimensionNumbers(windows, inserted, mapped, batching, together)
    params = evolve(p, dimension_numbers=result)
    return row.bind(params, operand, indices, updates), (0,)


def lower_working(
    combine: np.ufunc | None,
    fold: Combine | None,
    e: Emitter,
    p: ScatterParams,
    operands: Sequence[Operand],
    outs: Sequence[ShapedArray],
) -> Sequence[Operand]:
    """The scatter in the working dtype."""
    (operand, indices, updates), (out,) = operands, outs
    working = working_dtype(combine, p, out.dtype, out.size, updates.aval.size)
    if working == out.dtype:
        return lower_scatter(fold, e, p, operands, outs)
    given = converted(e, operand, working), indices, converted(e, updates, working)
    (result,) = lower_scatter(fold, e, p, given, (out.with_dtype(working),))
    return (converted(e, result, out.dtype),)


def lower_scatter(
    fold: Combine | None,
    e: Emitter,
    p: ScatterParams,
    operands: Sequence[Operand],
    outs: Sequence[ShapedArray],
) -> Sequence[Operand]:
    operand, indices, updates = operands
    if not operand.aval.size or not updates.aval.size:
        return (operand,)
    dims = p.dimension_numbers
    if not dims.scatter_dims_to_operand_dims:
        return emit_with_index(fold, e, p, operands, outs)
    sizes = slice_sizes(p, operand.aval.shape, updates.aval.shape)
    upper = bounds(dims.gather(), operand.aval.shape, sizes)
    if dims.operand_batching_dims:
        indices = whole_bytes(e, indices)
    indices = reaching(e, indices, upper)
    if p.mode == CLIP:
        indices = emit_clipped(e, indices, upper)
    text = (
        f"#stablehlo.scatter<update_window_dims = {ints(dims.update_window_dims)}, "
        f"inserted_window_dims = {ints(dims.inserted_window_dims)}, "
        f"input_batching_dims = {ints(dims.operand_batching_dims)}, "
        f"scatter_indices_batching_dims = {ints(dims.scatter_indices_batching_dims)}, "
        f"scatter_dims_to_operand_dims = {ints(dims.scatter_dims_to_operand_dims)}, "
        f"index_vector_dim = {indices.aval.ndim - 1}>"
    )
    scalar = outs[0].with_shape(()).strong()

    def body(xs: Sequence[Operand]) -> Sequence[Operand]:
        return (xs[1] if fold is None else fold(e, xs[0], xs[1]),)

    return e.op(
        "stablehlo.scatter",
        (operand, indices, updates),
        outs,
        [((scalar, scalar), body)],
        scatter_dimension_numbers=text,
        indices_are_sorted=flag(p.indices_are_sorted),
        unique_indices=flag(p.unique_indices),
    )


def emit_with_index(
    fold: Combine | None,
    e: Emitter,
    p: ScatterParams,
    operands: Sequence[Operand],
    outs: Sequence[ShapedArray],
) -> Sequence[Operand]:
    """A scatter without a start, given one in a new dimension of size 1.

    XLA mistakes several updates of one place for one if index vectors are empty.
    """
    operand, indices, updates = operands
    dims = p.dimension_numbers
    params = evolve(
        p,
        dimension_numbers=ScatterDimensionNumbers(
            dims.update_window_dims,
            (0, *above(dims.inserted_window_dims, 0)),
            (0,),
            above(dims.operand_batching_dims, 0),
            dims.scatter_indices_batching_dims,
        ),
    )
    starts = indices.aval.with_shape((*indices.aval.shape[:-1], 1))
    higher = outs[0].with_shape((1, *outs[0].shape))
    (stacked,) = e.op("stablehlo.reshape", (operand,), (higher,))
    given = (stacked, e.constant(0, starts), updates)
    out = lower_scatter(fold, e, params, given, (higher,))
    return e.op("stablehlo.reshape", out, outs)


def reaching(e: Emitter, indices: Operand, upper: Shape) -> Operand:
    """Indices as int64 if the last start that fits is too large for their dtype.

    XLA compares starts with it, and up to jaxlib 0.11 did so in that dtype.
    """
    if capped(upper, indices.aval.dtype) == upper:
        return indices
    wide = indices.aval.with_dtype(int64)
    return e.op("stablehlo.convert", (indices,), (wide,))[0]


def emit_clipped(e: Emitter, indices: Operand, upper: Shape) -> Operand:
    """Starts moved into bounds; an operand without a place for them drops them."""
    aval = indices.aval
    upper = capped(upper, aval.dtype)
    low = e.constant(0, aval.with_shape(()))
    if len(set(upper)) == 1:
        high = e.constant(upper[0], aval.with_shape(()))
    else:
        high = constants(e, upper, aval.with_shape((len(upper),)))
        high = e.broadcast(high, aval.shape, (aval.ndim - 1,))
    return e.op("stablehlo.clamp", (low, indices, high), (aval,))[0]


def scatter_family(
    name: str,
    combine: np.ufunc | None,
    fold: Combine | None,
    *,
    accepts: Kind,
    jvp: JvpRule[ScatterParams],
    transpose: TransposeRule[ScatterParams] | None = None,
    counts: Sequence[int] = (1, 2, 3),
    terms: TermRule[ScatterParams] | None = None,
    traits: Traits = NO_TRAITS,
) -> Row[ScatterParams]:
    """A scatter whose update and element become one by `combine`, or by replacement.

    `counts` are the numbers of index vectors, per dimension, that tests draw from.
    """
    row: Row[ScatterParams] = Row(
        name,
        ScatterParams,
        typing=lambda p, avals: scatter_typing(name, accepts, p, avals),
        evaluate=lambda engine, p, xs: (evaluate_working(combine, p, xs),),
        jvp=jvp,
        transpose=transpose,
        batch=lambda engine, p, size, xs, axes: batch_scatter(row, p, size, xs, axes),
        lower=lambda e, p, xs, outs: lower_working(combine, fold, e, p, xs, outs),
        draw=lambda random: draw_scatter(random, accepts, counts),
        sharding=scatter_splits,
        terms=terms,
        traits=evolve(
            traits,
            work=Work.STORED,
            flops=traits.flops or each_update,
            writes_part=2,
            together=scatter_together,
        ),
    )
    return row


def scatter_terms(p: ScatterParams, avals: Sequence[ShapedArray]) -> Terms:
    """The column of those that are linear in operand and updates together."""
    operand, indices, updates = avals
    whole_terms(p, (indices,))
    return linear_terms(p, (operand, updates))


def scatter_splits(
    p: ScatterParams, avals: Sequence[ShapedArray], outs: Sequence[ShapedArray]
) -> Sequence[Splits]:
    """Dimensions that windows hold whole stay split, and those of batches.

    Raises:
        ShardingTypeError: another dimension is split.
    """
    operand, indices, updates = avals
    dims = p.dimension_numbers.gather()
    sizes = slice_sizes(p, operand.shape, updates.shape)
    places = window_labels(dims, operand.shape, sizes)
    front = index_labels(dims, indices.ndim)
    written = placed_labels(dims, places, front, updates.ndim)
    try:
        return connected(avals, [places, [*front, None], written], [places])
    except ShardingTypeError:
        raise ShardingTypeError(
            "the sharding of the operands leaves open how the result is sharded, or "
            f"needs a collective: {operand} at indices {indices}, updates {updates}. "
            "Use `.at[...].set/add/mul/...(out_sharding=)` to provide output "
            "PartitionSpec for the scatter update"
        ) from None


def scatter_together(
    p: ScatterParams, ins: Avals, outs: Avals
) -> Sequence[Sequence[Hashable | None]]:
    """Rows of indices go with those of the updates."""
    x, indices, updates = ins
    sizes = slice_sizes(p, x.shape, updates.shape)
    dims = p.dimension_numbers.gather()
    own = split_rows(dims, x.shape, sizes, indices.ndim, updates.ndim)
    return [*own, own[0]]


def draw_scatter(
    random: Random, accepts: Kind, counts: Sequence[int] = (1, 2, 3)
) -> Sample[ScatterParams]:
    """The reverse of any gather."""
    sample = draw_gather(random, accepts, counts)
    operand, indices = sample.avals
    p = sample.params
    updates = window_shape(p.dimension_numbers, indices.shape, p.slice_sizes)
    avals = (operand, indices, operand.with_shape(updates))
    return Sample(writing(p), avals, (REALS, sample.domains[1], REALS))
