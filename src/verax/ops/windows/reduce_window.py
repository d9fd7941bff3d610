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

import numpy as np
from attrs import evolve, frozen

from verax.ir.avals import Shape, ShapedArray, larger_size
from verax.ir.dtypes import DType, int32
from verax.ir.jaxpr import Jaxpr, Params
from verax.ir.meshes import Splits
from verax.ops.elementwise.arith import add, div, mul, sub
from verax.ops.elementwise.bits import bitwise_and, bitwise_or
from verax.ops.elementwise.compare import eq, ge, le, lt, ne
from verax.ops.elementwise.remainder import rem
from verax.ops.elementwise.select import select, stop_gradient
from verax.ops.indexing.gather import gather
from verax.ops.indexing.geometry import GatherDimensionNumbers
from verax.ops.structure.create import broadcasted_iota, iota, zeros
from verax.ops.structure.shape import at_front, broadcast_in_dim, reshape, transpose
from verax.ops.structure.slicing import inserted
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
from verax.rules.families.linear import Pushed, jvp_of_linear, one_linear, one_pushed
from verax.rules.families.reducer import Scalar, highest, lowest, wide
from verax.rules.rows.eager_costs import SMALL, reading
from verax.rules.rows.emitter import Emitter, Operand, Region, i64s, ints
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
from verax.rules.values.constants import ANYTHING, NUMBER, ORDERED, Kind, typed_scalar
from verax.rules.values.conversions import shown
from verax.rules.values.sizes import ShapeError, as_integers, draw_sizes

# -----------------------------------------------------------------------------
# The params of window reductions, and what the windows hold.
#
# What all windows hold is a gather for each dimension, with initial values in
# place of padding and of the holes of a dilated array::
#
#     window_rows(params, x, init)    # (elements of a window, windows)


# -----------------------------------------------------------------------------
# Windows that move over an array, in convolutions and in window reductions.
#
# A size is dilated, then padded, then covered by a dilated window in strides;
# these functions count, and the adjoints of both count in the same way::
#
#     strided(padded(dilated(5, 2), (1, 1)), dilated(3, 1), 2)    # 5


type Pads = tuple[tuple[int, int], ...]
type Geometry = tuple[Shape, Shape, Shape, Pads, Shape, Shape]
"""Sizes, windows, strides, padding, dilation of sizes, dilation of windows."""


def dilated(size: int, dilation: int) -> int:
    """A size with `dilation - 1` holes between elements.

    >>> dilated(3, 2)
    5
    """
    return larger_size(1 + dilation * (size - 1), 0)


def padded(size: int, pad: tuple[int, int]) -> int:
    """A size with padding at both ends, which may be negative."""
    return larger_size(0, size + sum(pad))


def strided(size: int, window: int, stride: int) -> int:
    """At how many places a window stands when it moves in strides."""
    return larger_size((size - window) // stride + 1, 0)


def window_counts(geometry: Geometry) -> Shape:
    """The number of windows, per dimension."""
    return tuple(
        strided(padded(dilated(n, base), pad), dilated(k, spread), stride)
        for n, k, stride, pad, base, spread in zip(*geometry, strict=True)
    )


def adjoint_padding(geometry: Geometry) -> Pads:
    """The padding of cotangents, dilated by the strides, that the windows go back over.

    Undoing needs each window reversed, moving in steps of the dilation of sizes.
    """
    pads = []
    for places, (n, k, stride, pad, base, spread) in zip(
        window_counts(geometry), zip(*geometry, strict=True), strict=True
    ):
        before = dilated(k, spread) - 1 - pad[0]
        whole = dilated(n, base) + dilated(k, spread) - 1
        pads.append((before, whole - dilated(places, stride) - before))
    return tuple(pads)


def as_pads(
    name: str, padding: object, sizes: Shape, windows: Shape, strides: Shape
) -> Pads:
    """Padding as pairs: "SAME" gives ceil(size / stride) places, "VALID" pads nothing.

    "SAME" puts an odd element at the end, "SAME_LOWER" at the start. `windows` are
    dilated already.

    Raises:
        ValueError: it is no such string, or the number of pairs is wrong.
        TypeError: it holds something else than pairs of integers.
    """
    if isinstance(padding, str):
        return named_pads(name, padding, sizes, windows, strides)
    if not isinstance(padding, Sequence):
        raise ShapeError(
            f"{name}: padding must be a string or pairs of integers, not {padding}"
        )
    pairs = [as_integers(name, "padding", pair) for pair in padding]
    if len(pairs) != len(sizes) or any(len(pair) != 2 for pair in pairs):
        raise ShapeError(
            f"{name}: padding must have a pair (low, high) for each of the "
            f"{len(sizes)} dimensions, not {padding}"
        )
    return tuple((low, high) for low, high in pairs)


def named_pads(
    name: str, padding: str, sizes: Shape, windows: Shape, strides: Shape
) -> Pads:
    """`as_pads` of a string."""
    kind = padding.upper()
    if kind == "VALID":
        return ((0, 0),) * len(sizes)
    if kind not in ("SAME", "SAME_LOWER"):
        raise ValueError(
            f"{name}: padding must be 'SAME', 'SAME_LOWER', 'VALID' or pairs (low, "
            f"high), not {shown(padding)}"
        )
    pads = []
    for size, window, stride in zip(sizes, windows, strides, strict=True):
        last = (-(-size // stride) - 1) * stride
        extra = larger_size(0, last + window - size)
        small, large = extra // 2, extra - extra // 2
        pads.append((small, large) if kind == "SAME" else (large, small))
    return tuple(pads)


def padtype_to_pads(
    in_shape: Sequence[int],
    window_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: object,
) -> list[tuple[int, int]]:
    """Padding by name, or as pairs, as a pair (low, high) for each dimension.

    Args:
        in_shape: the shape of the array over which windows go.
        window_shape: the shape of the window, with its dilation.
        window_strides: the step of the window in each dimension.
        padding: "VALID" for none; "SAME" for ceil(size / stride) places, with an odd
            element at the end, or "SAME_LOWER" with it at the start; or the pairs
            themselves.

    Returns:
        A list of pairs of integers.

    Raises:
        ValueError: the lengths differ, or there is no such padding.

    >>> padtype_to_pads((5,), (3,), (2,), "SAME")
    [(1, 1)]
    >>> padtype_to_pads((5,), (4,), (1,), "SAME_LOWER")
    [(2, 1)]
    """
    shapes = [
        as_integers("padtype_to_pads", argument, values)
        for argument, values in (
            ("in_shape", in_shape),
            ("window_shape", window_shape),
            ("window_strides", window_strides),
        )
    ]
    if len({len(shape) for shape in shapes}) != 1:
        raise ValueError(f"padtype_to_pads: {shapes} must have the same length")
    sizes, windows, strides = shapes
    return list(as_pads("padtype_to_pads", padding, sizes, windows, strides))


def window_places(geometry: Geometry) -> tuple[list[NDArray], NDArray]:
    """The element that each element of each window is, dimension by dimension.

    Gives an array (places, window) of indices in bounds for each dimension, and which
    elements are none of the array's but holes or padding, as (place, window, ...).
    """
    counts = window_counts(geometry)
    places, masks = [], []
    for i, (size, window, stride, pad, base, spread) in enumerate(
        zip(*geometry, strict=True)
    ):
        at = np.arange(counts[i])[:, None] * stride - pad[0]
        at = at + np.arange(window)[None, :] * spread
        held = (at >= 0) & (at < dilated(size, base)) & (at % base == 0)
        places.append(np.where(held, at // base, 0))
        masks.append(held)
    mask: NDArray = np.array(True)
    for held in masks:
        mask = mask[..., None, None] & held
    return places, mask


def windows_of(x: NDArray, geometry: Geometry, fill: object) -> NDArray:
    """All windows over the last dimensions of `x`: (..., *places, *windows).

    Holes and padding are `fill`.
    """
    places, held = window_places(geometry)
    count = len(places)
    lead = x.shape[: x.ndim - count]
    if x.size:
        for i, at in enumerate(places):
            x = np.take(x, at, len(lead) + 2 * i)
        x = np.where(held, x, np.asarray(fill, x.dtype))
    else:
        x = np.full((*lead, *held.shape), fill, x.dtype)
    pairs = range(len(lead), len(lead) + 2 * count, 2)
    return x.transpose((*range(len(lead)), *pairs, *(i + 1 for i in pairs)))


def pads_text(padding: Pads) -> str:
    """Padding as a dense attribute."""
    rows = ", ".join(ints(pair) for pair in padding)
    values = f"[{rows}]" if padding else ""
    return f"dense<{values}> : tensor<{len(padding)}x2xi64>"


@frozen(eq=False, repr=False)
class WindowParams(Params):
    """Sizes, steps, padding and dilations of the windows, for every dimension."""

    window_dimensions: Shape
    window_strides: Shape
    padding: Pads
    base_dilation: Shape
    window_dilation: Shape

    def geometry(self, shape: Shape) -> Geometry:
        """The windows on an array of that shape."""
        return (
            shape,
            self.window_dimensions,
            self.window_strides,
            self.padding,
            self.base_dilation,
            self.window_dilation,
        )

    def batched(self, axis: int) -> tuple[Shape, Shape, Pads, Shape, Shape]:
        """The same with windows of one element in a new dimension."""
        return (
            inserted(self.window_dimensions, axis, 1),
            inserted(self.window_strides, axis, 1),
            inserted(self.padding, axis, (0, 0)),
            inserted(self.base_dilation, axis, 1),
            inserted(self.window_dilation, axis, 1),
        )

    def attributes(self) -> dict[str, str]:
        """The attributes of `stablehlo.reduce_window`."""
        return {
            "window_dimensions": i64s(self.window_dimensions),
            "window_strides": i64s(self.window_strides),
            "base_dilations": i64s(self.base_dilation),
            "window_dilations": i64s(self.window_dilation),
            "padding": pads_text(self.padding),
        }


def check_windows(name: str, p: WindowParams, x: ShapedArray) -> Shape:
    """The shape of the result; raise unless the params fit the array."""
    for argument in (
        "window_dimensions",
        "window_strides",
        "base_dilation",
        "window_dilation",
    ):
        values = getattr(p, argument)
        if len(values) != x.ndim or any(value < 1 for value in values):
            raise ValueError(
                f"{name}: {argument} must have every element be positive, one for "
                f"each dimension of {x}, not {values}"
            )
    if len(p.padding) != x.ndim:
        raise ValueError(
            f"{name}: padding must have a pair for each dimension of {x}, not "
            f"{p.padding}"
        )
    return window_counts(p.geometry(x.shape))


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
    return connected(avals, dims[:count], dims[count:])


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
    traits=Traits(makes_nans=False, narrow=Narrow.MOVES),
)
reduce_window_min_p: Row[WindowParams] = monoid_row(
    "reduce_window_min",
    np.minimum,
    "stablehlo.minimum",
    highest,
    accepts=ORDERED,
    jvp=jvp_window_extreme(lambda: reduce_window_min_p, False),
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
