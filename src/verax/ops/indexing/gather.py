"""Floor 2: gather and scatter-add: windows of an array, read, and added to.

One idea: the adjoint of reading windows is adding to them, in the same mode, so that
what lies out of bounds has no part in either::

    gather(x, indices, dims, (1, n))          adjoint: scatter_add(zeros, indices, ct)
    scatter_add(x, indices, updates, dims)    adjoint: gather(ct, indices)
"""

from collections.abc import Hashable, Sequence
from operator import index

import numpy as np

from verax.ir.avals import ShapedArray
from verax.ir.dtypes import KeyDType, is_complex, is_inexact
from verax.ir.meshes import Splits, Terms
from verax.ops.indexing.gather_impl import (
    FILL,
    FillValue,
    GatherParams,
    draw_gather,
    evaluate_gather,
    gather_typing,
    lower_gather,
    over_indices,
    over_operand,
    without_fill,
)
from verax.ops.indexing.geometry import (
    GatherDimensionNumbers,
    GatherScatterMode,
    index_labels,
    placed_labels,
    split_rows,
    window_labels,
)
from verax.ops.indexing.scatter_impl import (
    ScatterParams,
    reading,
    scatter_family,
    scatter_terms,
    writing,
)
from verax.ops.structure.create import broadcasted_iota, zeros
from verax.ops.structure.shape import expand_dims, move_axis, reshape
from verax.rules.families.reducer import named
from verax.rules.rows.eager_costs import huge
from verax.rules.rows.infer import dense
from verax.rules.rows.row import (
    Avals,
    Axis,
    Engine,
    Known,
    Linear,
    Narrow,
    Row,
    Rows,
    Tangent,
    Traits,
    Zero,
    no_flops,
)
from verax.rules.rows.type_shardings import connected, linear_terms, whole_terms
from verax.rules.values.array import Array
from verax.rules.values.constants import ANYTHING, NUMBER, aval_of
from verax.rules.values.conversions import ShardingTypeError, shown
from verax.rules.values.sizes import as_sizes, kept

type Mode = str | GatherScatterMode | None


def jvp_gather(
    engine: Engine,
    p: GatherParams,
    primals: Sequence[Array],
    tangents: Sequence[Tangent],
) -> tuple[Sequence[Array], Sequence[Tangent]]:
    (operand, indices), t = primals, tangents[0]
    y = gather_p.call(p, operand, indices)
    if isinstance(t, Zero):
        return (y,), (Zero(y.aval.tangent()),)
    return (y,), (gather_p.call(without_fill(p), t, indices),)


def transpose_gather(
    engine: Engine, p: GatherParams, cts: Sequence[Tangent], args: Sequence[Known]
) -> Sequence[Tangent | None]:
    ct, (operand, indices) = cts[0], args
    assert isinstance(ct, Array)
    return scatter_add_p.call(writing(p), zeros(operand.aval), indices, ct), None


def batch_gather(
    engine: Engine,
    p: GatherParams,
    size: int,
    args: Sequence[Array],
    axes: Sequence[Axis],
) -> tuple[Sequence[Array], Sequence[Axis]]:
    """Nothing moves, but index vectors stay last."""
    (operand, indices), (axis, index_axis) = args, axes
    if index_axis == indices.ndim - 1:
        indices, index_axis = move_axis(indices, indices.ndim - 1, 0), 0
    if index_axis is None:
        assert axis is not None
        out, place = over_operand(p, size, axis)
    else:
        out, place = over_indices(p, size, axis, index_axis, indices.ndim - 2)
    return gather_p.bind(out, operand, indices), (place,)


def gather_splits(
    p: GatherParams, avals: Sequence[ShapedArray], outs: Sequence[ShapedArray]
) -> Sequence[Splits]:
    """Dimensions that windows hold whole stay split, and those of batches.

    Raises:
        ShardingTypeError: another dimension is split.
    """
    (operand, indices), (out,) = avals, outs
    dims = p.dimension_numbers
    places = window_labels(dims, operand.shape, p.slice_sizes)
    front = index_labels(dims, indices.ndim)
    result = placed_labels(dims, places, front, out.ndim)
    try:
        return connected(avals, [places, [*front, None]], [result])
    except ShardingTypeError:
        raise ShardingTypeError(
            "the sharding of the operands leaves open how the result is sharded, or "
            f"needs a collective: {operand} at indices {indices}. Use "
            "`.at[...].get(out_sharding=)` to provide output PartitionSpec for the "
            "gather indexing"
        ) from None


def gather_together(
    p: GatherParams, ins: Avals, outs: Avals
) -> Sequence[Sequence[Hashable | None]]:
    """Rows of indices go with those of the result."""
    (x, indices), (out,) = ins, outs
    dims = p.dimension_numbers
    return split_rows(dims, x.shape, p.slice_sizes, indices.ndim, out.ndim)


def gather_terms(p: GatherParams, avals: Sequence[ShapedArray]) -> Terms:
    """Terms can be read each, unless numbers stand for what is out of bounds."""
    fills = p.mode == "fill" and not is_inexact(avals[0].dtype)
    if p.fill_value is not None or fills:
        return whole_terms(p, avals)
    return linear_terms(p, avals, count=1)


gather_p: Row[GatherParams] = Row(
    "gather",
    GatherParams,
    typing=gather_typing,
    evaluate=lambda engine, p, xs: (evaluate_gather(p, *xs),),
    jvp=jvp_gather,
    transpose=transpose_gather,
    batch=batch_gather,
    lower=lower_gather,
    draw=lambda random: draw_gather(random, ANYTHING),
    costly=huge,
    sharding=gather_splits,
    terms=gather_terms,
    traits=Traits(
        flops=no_flops,
        reads_part=True,
        narrow=Narrow.MOVES,
        together=gather_together,
    ),
)


def read_back(p: ScatterParams, x: Array, indices: Array, updates: Known) -> Array:
    """The elements of `x` that a scatter of such updates writes; zero out of bounds."""
    if not x.size:
        return zeros(updates.aval.with_dtype(x.dtype))
    return gather_p.call(reading(p, x.shape, updates.aval.shape), x, indices)


def jvp_add(
    engine: Engine,
    p: ScatterParams,
    primals: Sequence[Array],
    tangents: Sequence[Tangent],
) -> tuple[Sequence[Array], Sequence[Tangent]]:
    y = scatter_add_p.call(p, *primals)
    t, update = tangents[0], tangents[2]
    if isinstance(update, Zero):
        return (y,), (t,)
    total = scatter_add_p.call(p, dense(engine, t), primals[1], update)
    return (y,), (total,)


def transpose_add(
    engine: Engine, p: ScatterParams, cts: Sequence[Tangent], args: Sequence[Known]
) -> Sequence[Tangent | None]:
    ct, (operand, indices, updates) = cts[0], args
    assert isinstance(ct, Array)
    assert isinstance(indices, Array)
    part = read_back(p, ct, indices, updates) if isinstance(updates, Linear) else None
    return ct if isinstance(operand, Linear) else None, None, part


scatter_add_p = scatter_family(
    "scatter-add",
    np.add,
    named("add"),
    accepts=NUMBER,
    jvp=jvp_add,
    transpose=transpose_add,
    terms=scatter_terms,
)


def plain_fill(fill_value: object, operand: object) -> FillValue:
    """A fill value as a Python scalar; NaN for floats is the default, None.

    A key has words of this value, by default with all bits set.
    """
    dtype = aval_of(operand).dtype
    if isinstance(dtype, KeyDType) and not dtype.element_shape:
        word = -1 if fill_value is None else index(np.asarray(fill_value))
        element: FillValue = dtype.element(word).item()
        return element
    if fill_value is None or isinstance(fill_value, bool):
        return fill_value
    value = np.asarray(fill_value)
    if value.shape:
        raise TypeError(
            f"gather: the fill value must be a scalar, not {shown(fill_value)}"
        )
    if is_complex(value.dtype):
        return complex(value)
    number = float(value) if is_inexact(value.dtype) else int(value)
    return None if number != number and is_inexact(dtype) else number


def gather(
    operand: object,
    start_indices: object,
    dimension_numbers: GatherDimensionNumbers,
    slice_sizes: Sequence[int],
    *,
    unique_indices: bool = False,
    indices_are_sorted: bool = False,
    mode: Mode = None,
    fill_value: object = None,
) -> Array:
    """Windows of `operand` of sizes `slice_sizes`, one at each index vector.

    Semantics: StableHLO's gather.

    Args:
        operand: an array.
        start_indices: integers, whose last dimension holds the index vectors: where the
            windows begin. Negative ones are out of bounds.
        dimension_numbers: a `lax.GatherDimensionNumbers`, which says what the
            dimensions of operand, indices and result are.
        slice_sizes: the size of the window in each dimension of `operand`.
        unique_indices: a promise that no two index vectors are equal.
        indices_are_sorted: a promise that the index vectors are in order.
        mode: what happens to a window that is not wholly inside: "clip" moves it
            inside, "fill" (or "drop") gives `fill_value`; "promise_in_bounds", the
            default, says that there is none. Or a `lax.GatherScatterMode`.
        fill_value: a scalar for mode "fill"; by default NaN, the least or (unsigned)
            largest integer, or True.

    Returns:
        The windows, with the dimensions of `start_indices` but the last, and those of
        the windows at `offset_dims`; of the dtype of `operand`.

    Raises:
        TypeError: the dimension numbers do not fit.
        ValueError: there is no such mode.

    Rows of a matrix, of which one does not exist:

    >>> import verax.numpy as vnp
    >>> from verax import lax
    >>> x, rows = vnp.arange(6.0).reshape(3, 2), vnp.array([[2], [5]])
    >>> numbers = lax.GatherDimensionNumbers((1,), (0,), (0,))
    >>> lax.gather(x, rows, numbers, (1, 2), mode="fill")
    Array([[ 4.,  5.],
           [nan, nan]], dtype=float32)
    >>> lax.gather(x, rows, numbers, (1, 2), mode="clip").tolist()
    [[4.0, 5.0], [4.0, 5.0]]
    """
    chosen = GatherScatterMode.from_any("promise_in_bounds" if mode is None else mode)
    params = GatherParams(
        dimension_numbers,
        as_sizes("gather", "slice_sizes", slice_sizes),
        bool(unique_indices),
        bool(indices_are_sorted),
        chosen.value,
        plain_fill(fill_value, operand) if chosen.value == FILL else None,
    )
    return gather_p.call(params, operand, start_indices)


ROWS: Rows = (gather_p, scatter_add_p)


# -----------------------------------------------------------------------------
# Picking elements along one dimension by an array of places, or on a diagonal.
#
# Every other dimension is a batch dimension of one gather, so nothing is spread
# out and the adjoint is one scatter-add::
#
#     take_along(x, places, 1)    # z[i, j] = x[i, places[i, j]]


def take_along(x: Array, places: Array, axis: int) -> Array:
    """The elements of `x` at `places` along `axis`; all places are in bounds.

    `places` has the shape of `x` except for the size of dimension `axis`.
    """
    others = kept(x.ndim, (axis,))
    dims = GatherDimensionNumbers((), (axis,), (axis,), others, others)
    starts = expand_dims(places, (x.ndim,))
    return gather(x, starts, dims, (1,) * x.ndim)


def take_rows(x: Array, places: object) -> Array:
    """The rows of a matrix at a vector of `places`, which are in bounds."""
    dims = GatherDimensionNumbers((1,), (0,), (0,))
    return gather(x, expand_dims(places, (1,)), dims, (1, x.shape[1]))


def diagonal_of(x: Array, axis1: int, axis2: int) -> Array:
    """The elements whose indices along two dimensions are equal, as last dimension.

    Its adjoint writes as many elements; that of a slice with strides would look at all.
    """
    n, dims = min(x.shape[axis1], x.shape[axis2]), tuple(sorted((axis1, axis2)))
    if not n:
        return reshape(x, (*(x.shape[i] for i in kept(x.ndim, dims)), 0))
    return gather(
        x,
        broadcasted_iota(np.int32, (n, 2), 0),
        GatherDimensionNumbers(tuple(range(x.ndim - 2)), dims, dims),
        [1 if i in dims else size for i, size in enumerate(x.shape)],
        unique_indices=True,
        indices_are_sorted=True,
    )
