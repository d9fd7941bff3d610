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

from verax.ir.avals import Shape, ShapedArray
from verax.ir.dtypes import (
    DType,
    bfloat16,
    float16,
    float32,
    float64,
    int32,
    int64,
)
from verax.ir.jaxpr import Jaxpr
from verax.ir.meshes import Splits
from verax.ops.elementwise.arith import (
    above,
    add,
    div,
    max as larger,
    min as smaller,
    mul,
    sub,
)
from verax.ops.elementwise.bits import bitwise_and, bitwise_or
from verax.ops.elementwise.compare import eq, ge, lt, ne
from verax.ops.elementwise.remainder import rem
from verax.ops.elementwise.select import select, stop_gradient
from verax.ops.indexing.gather import gather
from verax.ops.indexing.geometry import GatherDimensionNumbers
from verax.ops.structure.create import broadcasted_iota, iota, zeros
from verax.ops.structure.shape import at_front, broadcast_in_dim, reshape, transpose
from verax.ops.windows import kernels
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
from verax.ops.windows.geometry import (
    WindowParams,
    adjoint_padding,
    check_windows,
    dilated,
    padded,
    window_counts,
    windows_of,
)
from verax.rules.families.linear import Pushed, jvp_of_linear, one_linear, one_pushed
from verax.rules.families.reducer import (
    Combine,
    Scalar,
    highest,
    larger_or_smaller,
    lowest,
    named,
    wide,
)
from verax.rules.rows.eager_costs import SMALL, reading
from verax.rules.rows.emitter import Emitter, Operand, Region, i64s
from verax.rules.rows.kernels import Kernel
from verax.rules.rows.row import (
    NO_TRAITS,
    Avals,
    Axis,
    Engine,
    JvpRule,
    Narrow,
    NDArray,
    Row,
    Rows,
    Sample,
    Tangent,
    Traits,
    TransposeRule,
    Work,
)
from verax.rules.rows.type_shardings import connected
from verax.rules.values.array import Array
from verax.rules.values.constants import ANYTHING, NUMBER, Kind, typed_scalar
from verax.rules.values.sizes import draw_sizes

# -----------------------------------------------------------------------------
# The params of window reductions, and what the windows hold.
#
# What all windows hold is a gather for each dimension, with initial values in
# place of padding and of the holes of a dilated array::
#
#     window_rows(params, x, init)    # (elements of a window, windows)


def window_rows(p: WindowParams, x: Array, init: Array, batch: int = 0) -> Array:
    """All windows: (*batch, elements, windows), with `init` where there is padding.

    The first `batch` dimensions belong to `x` and `init` alike.
    """
    shape, lead = x.shape[batch:], x.shape[:batch]
    counts, n = window_counts(p.geometry(shape)), prod(p.window_dimensions)
    rank = len(shape)
    full = (*lead, n, prod(counts))
    stretched = broadcast_in_dim(init, full, tuple(range(batch)))
    if not x.size:
        return stretched
    mixed = tuple(
        size for pair in zip(counts, p.window_dimensions, strict=True) for size in pair
    )
    mask: Array | None = None
    for i, one in enumerate(zip(*p.geometry(shape), strict=True)):
        axis = batch + 2 * i
        at, held = elements(counts[i], *one)
        offsets = tuple(d for d in range(x.ndim + 1) if d not in (axis, axis + 1))
        sizes = tuple(1 if d == axis else x.shape[d] for d in range(x.ndim))
        dims = GatherDimensionNumbers(offsets, (axis,), (axis,))
        starts = reshape(at, (*at.shape, 1))
        x = gather(x, starts, dims, sizes, mode="clip")
        if held is not None:
            held = broadcast_in_dim(held, mixed, (2 * i, 2 * i + 1))
            mask = held if mask is None else bitwise_and(mask, held)
    own = (*range(1, 2 * rank, 2), *range(0, 2 * rank, 2))
    rows = reshape(transpose(x, (*range(batch), *(batch + i for i in own))), full)
    if mask is None:
        return rows
    flat = reshape(transpose(mask, own), full[batch:])
    return select(broadcast_in_dim(flat, full, (batch, batch + 1)), rows, stretched)


def elements(
    count: int,
    size: int,
    window: int,
    stride: int,
    pad: tuple[int, int],
    base: int,
    spread: int,
) -> tuple[Array, Array | None]:
    """The element of a dimension that each element (place, window) of a window is.

    The mask says where it is one, and no hole and no padding; None if everywhere.
    """
    shape = (count, window)
    starts = mul(broadcasted_iota(int32, shape, 0), stride)
    at = add(starts, mul(broadcasted_iota(int32, shape, 1), spread))
    at = sub(at, pad[0]) if pad[0] else at
    held = None
    if max(pad) > 0:
        held = bitwise_and(ge(at, 0), lt(at, dilated(size, base)))
    if base > 1:
        real = eq(rem(at, base), 0)
        held = real if held is None else bitwise_and(held, real)
        at = div(at, base)
    return at, held


def lower_windows(
    e: Emitter,
    p: WindowParams,
    xs: Sequence[Operand],
    inits: Sequence[Operand],
    outs: Sequence[ShapedArray],
    region: tuple[Sequence[ShapedArray], Region],
    *,
    ordered: bool = False,
) -> Sequence[Operand]:
    """One `stablehlo.reduce_window`.

    XLA aborts on windows of one element over a cropped array. On CPU it goes through
    padded windows of several dimensions by columns, which shows if the computation is
    `ordered`, that is, not commutative. Such are padded, or cropped, ahead.
    """
    long = sum(size > 1 for size in p.window_dimensions)
    if long == 0 or (ordered and long > 1):
        p, xs = padded_ahead(e, p, xs, inits)
    operands = (*xs, *inits)
    return e.op("stablehlo.reduce_window", operands, outs, (region,), **p.attributes())


def padded_ahead(
    e: Emitter, p: WindowParams, xs: Sequence[Operand], inits: Sequence[Operand]
) -> tuple[WindowParams, list[Operand]]:
    """Windows that need no padding, and what they move over, padded."""
    counts = zip(xs[0].aval.shape, p.base_dilation, p.padding, strict=True)
    shape = tuple(padded(dilated(n, base), pad) for n, base, pad in counts)
    out = [
        e.op(
            "stablehlo.pad",
            (x, init),
            (x.aval.with_shape(shape),),
            edge_padding_low=i64s([low for low, _ in p.padding]),
            edge_padding_high=i64s([high for _, high in p.padding]),
            interior_padding=i64s([base - 1 for base in p.base_dilation]),
        )[0]
        for x, init in zip(xs, inits, strict=True)
    ]
    rank = len(shape)
    return evolve(p, padding=((0, 0),) * rank, base_dilation=(1,) * rank), out


def draw_window_params(random: Random) -> tuple[WindowParams, Shape]:
    """Any windows, and the shape of an array for them."""
    rank = random.choice((0, 1, 1, 2, 2))

    def some(*choices: int) -> Shape:
        return tuple(random.choice(choices) for _ in range(rank))

    pads = tuple((random.randint(-1, 2), random.randint(0, 2)) for _ in range(rank))
    windows = WindowParams(
        some(1, 2, 2, 3), some(1, 1, 2, 3), pads, some(1, 1, 2), some(1, 1, 2)
    )
    return windows, tuple(draw_sizes(random, rank, (1, 2, 3, 4, 5, 6)))


# -----------------------------------------------------------------------------
# Sums, extremes and any computation over windows that move over an array.


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
    return outs[0].size * prod(p.window_dimensions)


def monoid_row(
    name: str,
    ufunc: np.ufunc,
    combine: Combine,
    identity: Callable[[DType], Scalar],
    *,
    accepts: Kind,
    jvp: JvpRule[WindowParams],
    pairs: kernels.Combine,
    written: Sequence[DType],
    transpose: TransposeRule[WindowParams] | None = None,
    traits: Traits = NO_TRAITS,
) -> Row[WindowParams]:
    """A row that folds each window by `ufunc`; padding is its identity.

    `pairs` is the same on arrays, for a kernel of the dtypes that are `written` so.
    """

    def along_each(p: WindowParams, x: Array) -> Array:
        return kernels.along_each(pairs, identity(x.dtype), p, x)

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
        region = (scalar, scalar), lambda ys: (combine(e, ys[0], ys[1]),)
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
        kernel=Kernel(dict.fromkeys(written, along_each), suits=kernels.suits, least=1),
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
    return connected(avals, dims[:count], dims[count:])


def transpose_window_sum(p: WindowParams, ct: Array, x: ShapedArray) -> Array:
    """Cotangents over the windows that an element lies in."""
    if kernels.is_plain(p, x) and kernels.is_tiling(p):
        return kernels.spread_over_tiles(p, ct, x)
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
        ahead = above(x, y) if largest else above(y, x)
        better = bitwise_or(bitwise_or(ahead, eq(x, y)), ne(x, x))
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
        if not kernels.is_plain(p, x.aval):
            return (y,), (read_flat(t, winners(p, x, largest)),)
        known = stop_gradient(x), stop_gradient(y)
        if kernels.is_tiling(p):
            return (y,), (kernels.tangents_of_tiles(p, *known, t),)
        return (y,), (read_flat(t, kernels.flat_places(p, *known)),)

    return one_pushed(jvp)


EXTREMES: Final = (bfloat16, float16, float32, float64, int32, int64)

reduce_window_sum_p: Row[WindowParams] = monoid_row(
    "reduce_window_sum",
    np.add,
    named("add"),
    lambda dtype: 0,
    accepts=NUMBER,
    jvp=jvp_of_linear(lambda: reduce_window_sum_p),
    pairs=add,
    written=(float32, float64),
    transpose=one_linear(transpose_window_sum),
)
reduce_window_max_p: Row[WindowParams] = monoid_row(
    "reduce_window_max",
    np.maximum,
    larger_or_smaller("maximum"),
    lowest,
    accepts=ANYTHING,
    jvp=jvp_window_extreme(lambda: reduce_window_max_p, True),
    pairs=larger,
    written=EXTREMES,
    traits=Traits(makes_nans=False, narrow=Narrow.MOVES),
)
reduce_window_min_p: Row[WindowParams] = monoid_row(
    "reduce_window_min",
    np.minimum,
    larger_or_smaller("minimum"),
    highest,
    accepts=ANYTHING,
    jvp=jvp_window_extreme(lambda: reduce_window_min_p, False),
    pairs=smaller,
    written=EXTREMES,
    traits=Traits(makes_nans=False, narrow=Narrow.MOVES),
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
