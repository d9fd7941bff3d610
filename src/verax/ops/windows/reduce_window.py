"""Floor 2: sums, extremes and any computation over windows that move over an array.

One idea: a window reduction is a reduction of all windows side by side, and what the
windows hold is a gather. The sum is linear; the derivative of an extreme is read where
the extreme is; any other computation has the derivative of its reduction::

    reduce_window_max(x)      dy = dx[place of the largest in each window]
"""

from collections.abc import Callable, Sequence
from functools import partial
from math import prod
from random import Random
from typing import Final

import numpy as np
from attrs import evolve, frozen

from verax.ir.avals import ShapedArray
from verax.ir.dtypes import DType, int32
from verax.ir.jaxpr import Jaxpr
from verax.ir.meshes import Splits
from verax.ops.elementwise.bits import bitwise_and, bitwise_or
from verax.ops.elementwise.compare import ge, le, lt, ne
from verax.ops.elementwise.select import select, stop_gradient
from verax.ops.indexing.gather import gather
from verax.ops.indexing.geometry import GatherDimensionNumbers
from verax.ops.structure.create import iota, zeros
from verax.ops.structure.shape import at_front, broadcast_in_dim, reshape, transpose
from verax.ops.windows.general_reduce import (
    Arrays,
    check_fold,
    computation,
    draw_monoid,
    fold_region,
    fold_rows,
    fold_tree,
    jvp_by_rows,
)
from verax.ops.windows.params import (
    WindowParams,
    adjoint_padding,
    check_windows,
    draw_window_params,
    lower_windows,
    window_counts,
    window_rows,
    windows_of,
)
from verax.rules.families.linear import Pushed, jvp_of_linear, one_linear, one_pushed
from verax.rules.families.reducer import Scalar, highest, lowest, wide
from verax.rules.rows.eager_costs import SMALL, reading
from verax.rules.rows.emitter import Emitter, Operand
from verax.rules.rows.row import (
    Axis,
    Engine,
    JvpRule,
    NDArray,
    Row,
    Rows,
    Sample,
    Tangent,
    TransposeRule,
)
from verax.rules.rows.traits import NO_TRAITS, Avals, Traits, Work
from verax.rules.values.array import Array
from verax.rules.values.constants import typed_scalar
from verax.rules.values.kinds import ANYTHING, NUMBER, ORDERED, Kind
from verax.rules.values.lazy import LazyModule

# Few programs have meshes with explicit axes.
SPLITS: Final = LazyModule("verax.rules.rows.type_shardings")


@frozen(eq=False, repr=False)
class FoldWindowParams(WindowParams):
    """Windows, and what becomes of two elements, as a jaxpr of scalars."""

    jaxpr: Jaxpr


def window_typing(
    name: str, accepts: Kind, p: WindowParams, avals: Sequence[ShapedArray]
) -> Sequence[ShapedArray]:
    (x,) = avals
    accepts.check(name, x.dtype)
    return (x.with_shape(check_windows(name, p, x)),)


def window_flops(p: WindowParams, ins: Avals, outs: Avals) -> float:
    """One operation for each element of each window."""
    return float(outs[0].size * prod(p.window_dimensions))


def monoid_row(
    name: str,
    ufunc: np.ufunc,
    operation: str,
    identity: Callable[[DType], Scalar],
    *,
    accepts: Kind,
    jvp: JvpRule[WindowParams],
    transpose: TransposeRule[WindowParams] | None = None,
    traits: Traits = NO_TRAITS,
) -> Row[WindowParams]:
    """A row that folds each window by `ufunc`; padding is its identity."""

    def evaluate(x: NDArray, p: WindowParams) -> NDArray:
        geometry, y = p.geometry(x.shape), wide(x)
        fill = np.asarray(identity(x.dtype)).astype(y.dtype)
        windows = windows_of(y, geometry, fill)
        own = tuple(range(x.ndim, 2 * x.ndim))
        return np.asarray(ufunc.reduce(windows, axis=own, dtype=y.dtype))

    def lower(
        e: Emitter,
        p: WindowParams,
        xs: Sequence[Operand],
        outs: Sequence[ShapedArray],
    ) -> Sequence[Operand]:
        scalar = outs[0].with_shape(()).strong()
        start = e.constant(identity(scalar.dtype), scalar)
        region = ((scalar, scalar), lambda ys: e.op(operation, ys, (scalar,)))
        return lower_windows(e, p, xs, (start,), outs, region)

    row: Row[WindowParams] = Row(
        name,
        WindowParams,
        typing=lambda p, avals: window_typing(name, accepts, p, avals),
        evaluate=lambda engine, p, xs: (evaluate(xs[0], p),),
        jvp=jvp,
        transpose=transpose,
        batch=lambda engine, p, size, xs, axes: (
            row.bind(WindowParams(*p.batched(axes[0] or 0)), *xs),
            axes,
        ),
        lower=lower,
        draw=lambda random: draw_windows(random, accepts),
        costly=reading(ANYTHING, SMALL),
        traits=evolve(traits, work=Work.STORED, flops=window_flops),
        sharding=lambda p, avals, outs: outside_windows(p, avals, outs, folded=False),
    )
    return row


def outside_windows(
    p: WindowParams,
    avals: Sequence[ShapedArray],
    outs: Sequence[ShapedArray],
    folded: bool = True,
) -> Sequence[Splits]:
    """Dimensions along which windows are single elements stay split.

    With `folded` False also others, where nothing is cut off and there are no holes.
    """
    labels = []
    for i, n in enumerate(p.window_dimensions):
        pads, step = p.padding[i], p.window_strides[i]
        plain = p.base_dilation[i] == p.window_dilation[i] == 1 and min(pads) >= 0
        alone = (n, step, pads) == (1, 1, (0, 0))
        labels.append(i if plain and (alone or not folded) else None)
    dims = [labels[: x.ndim] for x in (*avals, *outs)]
    count = len(avals)
    found: Sequence[Splits] = SPLITS.connected(avals, dims[:count], dims[count:])
    return found


def transpose_window_sum(p: WindowParams, ct: Array, x: ShapedArray) -> Array:
    """Cotangents over the windows that an element lies in."""
    back = WindowParams(
        p.window_dimensions,
        p.base_dilation,
        adjoint_padding(p.geometry(x.shape)),
        p.window_strides,
        p.window_dilation,
    )
    return reduce_window_sum_p.call(back, ct)


def choose_first(largest: bool) -> Callable[..., Sequence[Array]]:
    """The extreme of two elements and its place; no place (-1) never wins."""

    def body(x: Array, i: Array, y: Array, j: Array) -> Sequence[Array]:
        better = bitwise_or(ge(x, y) if largest else le(x, y), ne(x, x))
        chosen = bitwise_or(lt(j, 0), bitwise_and(ge(i, 0), better))
        return select(chosen, x, y), select(chosen, i, j)

    return body


def winners(p: WindowParams, x: Array, largest: bool) -> Array:
    """The place, in the flat array, of the first extreme of each window, or -1."""
    scalar, index = x.aval.with_shape(()).strong(), ShapedArray((), int32)
    jaxpr = computation(choose_first(largest), (scalar, index))
    start = lowest(x.dtype) if largest else highest(x.dtype)
    params = FoldWindowParams(
        p.window_dimensions,
        p.window_strides,
        p.padding,
        p.base_dilation,
        p.window_dilation,
        jaxpr,
    )
    places = reshape(iota(int32, prod(x.shape)), x.shape)
    inits = typed_scalar(start, scalar), typed_scalar(-1, index)
    return reduce_window_p.bind(params, stop_gradient(x), places, *inits)[1]


def read_flat(x: Array, places: Array) -> Array:
    """Elements of the flat array at `places`, and zero at -1."""
    if not x.size:
        return zeros(x.aval.with_shape(places.shape))
    return gather(
        reshape(x, (prod(x.shape),)),
        reshape(places, (*places.shape, 1)),
        GatherDimensionNumbers((), (0,), (0,)),
        (1,),
        mode="fill",
        fill_value=0,
    )


def jvp_window_extreme(
    row_of: Callable[[], Row[WindowParams]], largest: bool
) -> JvpRule[WindowParams]:
    """The jvp column of an extreme: the tangent where the first extreme is."""

    def jvp(p: WindowParams, x: Array, t: Array) -> Pushed:
        y = row_of().call(p, x)
        return (y,), (read_flat(t, winners(p, x, largest)),)

    return one_pushed(jvp)


reduce_window_sum_p: Row[WindowParams] = monoid_row(
    "reduce_window_sum",
    np.add,
    "stablehlo.add",
    lambda dtype: 0,
    accepts=NUMBER,
    jvp=jvp_of_linear(lambda: reduce_window_sum_p),
    transpose=one_linear(transpose_window_sum),
)
reduce_window_max_p: Row[WindowParams] = monoid_row(
    "reduce_window_max",
    np.maximum,
    "stablehlo.maximum",
    lowest,
    accepts=ORDERED,
    jvp=jvp_window_extreme(lambda: reduce_window_max_p, True),
    traits=Traits(makes_nans=False),
)
reduce_window_min_p: Row[WindowParams] = monoid_row(
    "reduce_window_min",
    np.minimum,
    "stablehlo.minimum",
    highest,
    accepts=ORDERED,
    jvp=jvp_window_extreme(lambda: reduce_window_min_p, False),
    traits=Traits(makes_nans=False),
)


def fold_window_typing(
    p: FoldWindowParams, avals: Sequence[ShapedArray]
) -> Sequence[ShapedArray]:
    count = check_fold("reduce_window", p.jaxpr, avals)
    shape = check_windows("reduce_window", p, avals[0])
    return [x.with_shape(shape).strong() for x in avals[:count]]


def evaluate_fold_window(
    engine: Engine, p: FoldWindowParams, args: Sequence[NDArray]
) -> Sequence[NDArray]:
    count, rank = len(args) // 2, args[0].ndim
    geometry = p.geometry(args[0].shape)
    shape, n = window_counts(geometry), prod(p.window_dimensions)
    order = (*range(rank, 2 * rank), *range(rank))
    rows = [
        windows_of(x, geometry, init).transpose(order).reshape((n, prod(shape)))
        for x, init in zip(args[:count], args[count:], strict=True)
    ]
    return [y.reshape(shape) for y in fold_rows(engine, p.jaxpr, rows, args[count:])]


def jvp_fold_window(
    engine: Engine, p: FoldWindowParams, primals: Arrays, tangents: Sequence[Tangent]
) -> tuple[Arrays, Sequence[Tangent]]:
    """The derivative of the reduction of all windows side by side."""
    ys = reduce_window_p.bind(p, *primals)
    rows = partial(window_rows, p)
    return jvp_by_rows(engine, p.jaxpr, ys, primals, tangents, rows)


def batch_fold_window(
    engine: Engine,
    p: FoldWindowParams,
    size: int,
    args: Arrays,
    axes: Sequence[Axis],
) -> tuple[Arrays, Sequence[Axis]]:
    """Windows of one element along the batch; a tree if initial values are batched."""
    count = len(args) // 2
    if all(axis is None for axis in axes[count:]):
        fronts = [
            at_front(x, axis, size)
            for x, axis in zip(args[:count], axes[:count], strict=True)
        ]
        params = FoldWindowParams(*p.batched(0), p.jaxpr)
        return reduce_window_p.bind(params, *fronts, *args[count:]), (0,) * count
    fronts = [at_front(x, axis, size) for x, axis in zip(args, axes, strict=True)]
    xs, inits = fronts[:count], fronts[count:]
    shape = window_counts(p.geometry(xs[0].shape[1:]))
    n, m = prod(p.window_dimensions), prod(shape)
    rows = [
        reshape(transpose(window_rows(p, x, init, 1), (1, 0, 2)), (n, size * m))
        for x, init in zip(xs, inits, strict=True)
    ]
    starts = [reshape(broadcast_in_dim(x, (size, m), (0,)), (size * m,)) for x in inits]
    outs = fold_tree(engine, p.jaxpr, rows, starts)
    # Initial values may be weak, and so may be what the computation gives.
    strong = [engine.core.convert(y, y.aval.dtype) for y in outs]
    return [reshape(y, (size, *shape)) for y in strong], (0,) * count


def lower_fold_window(
    e: Emitter,
    p: FoldWindowParams,
    operands: Sequence[Operand],
    outs: Sequence[ShapedArray],
) -> Sequence[Operand]:
    """One `stablehlo.reduce_window` of several operands, in the order of elements."""
    count = len(outs)
    xs, inits = operands[:count], operands[count:]
    region = fold_region(e, p.jaxpr)
    return lower_windows(e, p, xs, inits, outs, region, ordered=True)


def draw_windows(random: Random, accepts: Kind) -> Sample[WindowParams]:
    windows, shape = draw_window_params(random)
    return Sample(windows, (ShapedArray(shape, random.choice(accepts.samples())),))


def draw_fold_window(random: Random) -> Sample[FoldWindowParams]:
    windows, shape = draw_window_params(random)
    monoid = draw_monoid(random)
    params = FoldWindowParams(*windows.geometry(shape)[1:], monoid.jaxpr)
    return Sample(params, monoid.avals_of(shape), monoid.domains())


reduce_window_p: Row[FoldWindowParams] = Row(
    "reduce_window",
    FoldWindowParams,
    typing=fold_window_typing,
    evaluate=evaluate_fold_window,
    jvp=jvp_fold_window,
    batch=batch_fold_window,
    lower=lower_fold_window,
    draw=draw_fold_window,
    sharding=outside_windows,
    multiple_results=True,
    traits=Traits(Work.STORED, window_flops),
)

ROWS: Rows = (
    reduce_window_sum_p,
    reduce_window_max_p,
    reduce_window_min_p,
    reduce_window_p,
)
