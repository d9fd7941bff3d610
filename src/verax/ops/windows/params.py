"""Floor 2: the params of window reductions, and what the windows hold.

One idea: what all windows hold is a gather for each dimension, with initial values in
place of padding and of the holes of a dilated array::

    window_rows(params, x, init)    # (elements of a window, windows)
"""

from collections.abc import Sequence
from math import prod
from random import Random
from typing import Any

from attrs import evolve, frozen

from verax.ir.avals import Shape, ShapedArray
from verax.ir.dtypes import int32
from verax.ir.jaxpr import Params
from verax.ops.elementwise.arith import add, div, mul, rem, sub
from verax.ops.elementwise.bits import bitwise_and
from verax.ops.elementwise.compare import eq, ge, lt
from verax.ops.elementwise.select import select
from verax.ops.indexing.gather import gather
from verax.ops.indexing.geometry import GatherDimensionNumbers
from verax.ops.structure.create import broadcasted_iota
from verax.ops.structure.shape import broadcast_in_dim, reshape, transpose
from verax.ops.structure.slicing import inserted
from verax.ops.windows.geometry import (
    Geometry,
    Pads,
    dilated,
    padded,
    pads_text,
    window_counts,
)
from verax.rules.rows.emitter import Emitter, Operand, i64s
from verax.rules.values.array import Array
from verax.rules.values.shape_samples import draw_sizes


@frozen(eq=False, repr=False)
class WindowParams(Params):
    """Sizes, steps, padding and dilations of the windows, for every dimension."""

    window_dimensions: Shape
    window_strides: Shape
    padding: Pads
    base_dilation: Shape
    window_dilation: Shape

    def geometry(self, shape: Shape) -> Geometry:
        """What the windows do on an array of that shape."""
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
    """Which element of a dimension each element (place, window) of a window is.

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
    region: Any,
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
    found = [
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
    return evolve(p, padding=((0, 0),) * rank, base_dilation=(1,) * rank), found


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
