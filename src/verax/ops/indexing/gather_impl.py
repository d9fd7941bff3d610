"""Floor 2: what a gather means: its type, its value in NumPy, its StableHLO.

One idea: all of it follows from the geometry of `windows`, and so does the gather of a
batch: one more dimension of windows, of indices, or of both together::

    over_operand(params, size, axis)          # the params of the batched gather
"""

from collections.abc import Mapping, Sequence
from math import prod
from random import Random
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from attrs import evolve, field, frozen

from verax.ir.avals import Shape, ShapedArray, bit_width, iinfo
from verax.ir.dtypes import (
    DType,
    int4,
    int8,
    int32,
    is_bool,
    is_extended,
    is_inexact,
    is_signed,
    stored_dtype,
    uint4,
    uint8,
)
from verax.ir.jaxpr import Params
from verax.ir.records import ReprMixin
from verax.ops.indexing.geometry import (
    GatherDimensionNumbers,
    GatherScatterMode,
    all_inside,
    as_starts,
    bounds,
    check_dimensions,
    check_slice_sizes,
    clipped,
    inside,
    read_windows,
    taken_axis,
    window_shape,
)
from verax.ops.structure.slicing import inserted
from verax.rules.families.elementwise import whole_bytes
from verax.rules.rows.emitter import (
    Emitter,
    Operand,
    compared,
    constants,
    flag,
    folded,
    i64s,
    ints,
)
from verax.rules.rows.row import REALS, Axis, Domain, Sample
from verax.rules.values.constants import Kind
from verax.rules.values.memo import pure
from verax.rules.values.sizes import draw_size, surely_less

type Scalar = bool | int | float | complex
type FillValue = Scalar | None
FILL, CLIP = GatherScatterMode.FILL_OR_DROP.value, GatherScatterMode.CLIP.value


@frozen(eq=False, repr=False)
class GatherParams(Params):
    """Dimension numbers, window sizes, promises about indices, and the mode.

    `fill_value=None` in mode "fill" is NaN, the least or (unsigned) the largest
    integer, or True. Fill values are compared as they print: NaN equals itself.
    """

    dimension_numbers: GatherDimensionNumbers
    slice_sizes: Shape
    unique_indices: bool
    indices_are_sorted: bool
    mode: str
    fill_value: FillValue = field(eq=repr)


def gather_typing(
    p: GatherParams, avals: Sequence[ShapedArray]
) -> Sequence[ShapedArray]:
    operand, indices = avals
    check_dimensions("gather", p.dimension_numbers, operand, indices)
    check_slice_sizes(p.dimension_numbers, operand, indices, p.slice_sizes)
    shape = window_shape(p.dimension_numbers, indices.shape, p.slice_sizes)
    return (operand.with_shape(shape),)


def filler(p: GatherParams, dtype: DType) -> Scalar:
    """The value of windows out of bounds."""
    if p.fill_value is not None:
        return p.fill_value
    if is_inexact(dtype):
        return float("nan")
    if is_bool(dtype):
        return True
    limits = iinfo(dtype)
    return int(limits.min if is_signed(dtype) else limits.max)


def evaluate_gather(
    p: GatherParams, operand: np.ndarray, indices: np.ndarray
) -> np.ndarray:
    dims = p.dimension_numbers
    shape, axis, single = reading(dims, p.slice_sizes, operand.shape, indices.shape)
    if not prod(shape):
        return np.empty(shape, operand.dtype)
    if axis is not None and all_inside(indices, operand.shape[axis]):
        return operand.take(indices[..., 0].astype(np.intp, copy=False), axis)
    if single is not None:
        elements = single.places(indices)
        if elements is not None:
            return operand.ravel().take(elements).reshape(shape)
    starts, upper = as_starts(indices), bounds(dims, operand.shape, p.slice_sizes)
    values = read_windows(operand, clipped(starts, upper), dims, p.slice_sizes)
    if p.mode == FILL and not (valid := inside(starts, upper)).all():
        windows = (1,) * (values.ndim - valid.ndim)
        fill = np.asarray(filler(p, operand.dtype)).astype(operand.dtype)
        values = np.where(valid.reshape((*valid.shape, *windows)), values, fill)
    places = (*dims.batch_positions(len(shape)), *dims.offset_dims)
    return values.transpose(np.argsort(places))


@frozen(eq=False, repr=False)
class SingleElements(ReprMixin):
    """The places of single elements in the memory of an operand, but for the indices.

    Each part is the number of an element of an index vector, how many there may be, and
    the step from one to the next; `offsets` are those of the batching dimensions.
    """

    parts: tuple[tuple[int, int, int], ...]
    offsets: np.ndarray | None

    def places(self, indices: np.ndarray) -> np.ndarray | None:
        """The places of the elements; None if one is outside."""
        out: np.ndarray | None = None
        for i, size, step in self.parts:
            part = indices[..., i]
            if not all_inside(part, size):
                return None
            part = part.astype(np.intp, copy=False)
            part = part if step == 1 else part * step
            out = part if out is None else out + part
        if self.offsets is None:
            return out
        return self.offsets if out is None else out + self.offsets


class Reading(NamedTuple):
    """The reading of a gather, as far as the shapes of its operands decide it.

    `axis` is for one that takes elements of a dimension, `single` for one whose windows
    are single elements.
    """

    shape: Shape
    axis: int | None
    single: SingleElements | None


@pure()
def reading(
    dims: GatherDimensionNumbers, sizes: Shape, shape: Shape, indices: Shape
) -> Reading:
    """The gather that reads windows of these sizes from an operand of that shape."""
    made = window_shape(dims, indices, sizes)
    axis = taken_axis(dims, shape, sizes, len(indices) - 1)
    single = None
    if all([size == 1 for size in sizes]) and dims.start_index_map:
        single = single_elements(dims, shape, indices)
    return Reading(made, axis, single)


def single_elements(
    dims: GatherDimensionNumbers, shape: Shape, indices: Shape
) -> SingleElements:
    """The places of single elements in the memory of an operand."""
    steps = [prod(shape[d + 1 :]) for d in range(len(shape))]
    parts = [(i, shape[d], steps[d]) for i, d in enumerate(dims.start_index_map)]
    offsets: np.ndarray | None = None
    rank = len(indices) - 1
    pairs = zip(
        dims.operand_batching_dims, dims.start_indices_batching_dims, strict=True
    )
    for d, own in pairs:
        places = np.arange(shape[d]) * steps[d]
        places = places.reshape((shape[d], *(1,) * (rank - own - 1)))
        offsets = places if offsets is None else offsets + places
    return SingleElements(tuple(parts), offsets)


def without_fill(p: GatherParams) -> GatherParams:
    """The linear part of a gather: out of bounds is zero."""
    return evolve(p, fill_value=0) if p.mode == FILL else p


def over_operand(p: GatherParams, size: int, axis: int) -> tuple[GatherParams, int]:
    """A gather whose windows run through one more dimension of the operand."""
    dims = p.dimension_numbers
    below = sum(d < axis for d in dims.windowed(len(p.slice_sizes)))
    offsets = dims.offset_dims
    place = offsets[below] if below < len(offsets) else max((-1, *offsets)) + 1
    shifted = [d + (d >= place) for d in offsets]
    return evolve(
        p,
        dimension_numbers=GatherDimensionNumbers(
            inserted(shifted, below, place),
            above(dims.collapsed_slice_dims, axis),
            above(dims.start_index_map, axis),
            above(dims.operand_batching_dims, axis),
            dims.start_indices_batching_dims,
        ),
        slice_sizes=inserted(p.slice_sizes, axis, size),
    ), place


def over_indices(
    p: GatherParams, size: int, axis: Axis, index_axis: int, batch: int
) -> tuple[GatherParams, int]:
    """A gather with one more dimension of indices, batching if the operand has it."""
    dims = p.dimension_numbers
    rank = batch + len(dims.offset_dims)
    positions = dims.batch_positions(rank)
    place = positions[index_axis - 1] + 1 if index_axis else 0
    offsets = above(dims.offset_dims, place)
    together = above(dims.start_indices_batching_dims, index_axis)
    if axis is None:
        numbers = evolve(
            dims, offset_dims=offsets, start_indices_batching_dims=together
        )
        return evolve(
            p, dimension_numbers=numbers, unique_indices=False, indices_are_sorted=False
        ), place
    below = sum(d < axis for d in dims.operand_batching_dims)
    return evolve(
        p,
        dimension_numbers=GatherDimensionNumbers(
            offsets,
            above(dims.collapsed_slice_dims, axis),
            above(dims.start_index_map, axis),
            inserted(above(dims.operand_batching_dims, axis), below, axis),
            inserted(together, below, index_axis),
        ),
        slice_sizes=inserted(p.slice_sizes, axis, min(size, 1)),
        indices_are_sorted=p.indices_are_sorted and below == index_axis == 0,
    ), place


def above(dims: Sequence[int], place: int) -> Shape:
    """Dimensions after one more came in at `place`.

    >>> above((0, 2), 1)
    (0, 3)
    """
    return tuple(d + (d >= place) for d in dims)


def lower_gather(
    e: Emitter,
    p: GatherParams,
    operands: Sequence[Operand],
    outs: Sequence[ShapedArray],
) -> Sequence[Operand]:
    """One gather; in mode "fill" then a choice by a mask of one unsigned comparison."""
    (operand, indices), (out,) = operands, outs
    dims = p.dimension_numbers
    if not out.size:
        return (e.constant(0, out),)
    upper = bounds(dims, operand.aval.shape, p.slice_sizes)
    if dims.operand_batching_dims:
        indices = whole_bytes(e, indices)
    text = (
        f"#stablehlo.gather<offset_dims = {ints(dims.offset_dims)}, "
        f"collapsed_slice_dims = {ints(dims.collapsed_slice_dims)}, "
        f"operand_batching_dims = {ints(dims.operand_batching_dims)}, "
        f"start_indices_batching_dims = {ints(dims.start_indices_batching_dims)}, "
        f"start_index_map = {ints(dims.start_index_map)}, "
        f"index_vector_dim = {indices.aval.ndim - 1}>"
    )
    result = e.op(
        "stablehlo.gather",
        (operand, indices),
        outs,
        dimension_numbers=text,
        slice_sizes=i64s(p.slice_sizes),
        indices_are_sorted=flag(p.indices_are_sorted),
    )
    if p.mode != FILL or not upper:
        return result
    mask = emit_inside(e, indices, upper)
    chosen = e.broadcast(mask, out.shape, dims.batch_positions(out.ndim))
    value: Scalar | np.ndarray = filler(p, out.dtype)
    if is_extended(out.dtype):
        value = np.asarray(value, stored_dtype(out.dtype))
    fill = e.constant(value, out)
    return e.op("stablehlo.select", (chosen, *result, fill), outs)


def capped(upper: Shape, dtype: DType) -> Shape:
    """Bounds that the dtype of the indices can hold; none of its values lies above."""
    largest = 2 ** (bit_width(dtype) - is_signed(dtype)) - 1
    return tuple(largest if surely_less(largest, n) else n for n in upper)


def emit_inside(e: Emitter, indices: Operand, upper: Shape) -> Operand:
    """Flags of starts in bounds: without its sign, a negative start is large."""
    aval = indices.aval
    upper = capped(upper, aval.dtype)
    if is_signed(aval.dtype):
        aval = aval.with_dtype(np.dtype(f"uint{bit_width(aval.dtype)}"))
        (indices,) = e.op("stablehlo.bitcast_convert", (indices,), (aval,))
    if len(set(upper)) == 1:
        limit = e.constant(upper[0], aval)
    else:
        limit = constants(e, upper, aval.with_shape((len(upper),)))
        limit = e.broadcast(limit, aval.shape, (aval.ndim - 1,))
    mask = compared(e, indices, "LE", limit)
    if len(upper) == 1:
        whole = mask.aval.with_shape(aval.shape[:-1])
        return e.op("stablehlo.reshape", (mask,), (whole,))[0]
    scalar = mask.aval.with_shape(())

    def both(xs: Sequence[Operand]) -> Sequence[Operand]:
        return e.op("stablehlo.and", xs, (scalar,))

    return folded(e, mask, e.constant(True, scalar), (aval.ndim - 1,), both)


# -----------------------------------------------------------------------------
# Calls of gather from which tests draw, for scatter reverses them.
#
# Every dimension of the operand gets a role, the sizes are mostly not empty and
# mostly not equal, and a promise about indices is made only where it is sure::
#
#     draw_gather(Random(0), ANYTHING)    # a Sample: params, types, where indices lie


INDICES: Sequence[DType] = (int32, int32, int32, uint8, int8, int4, uint4)
LONG: Mapping[DType, int] = MappingProxyType({int4: 10, uint4: 18, int8: 130})
"""Sizes that indices of few bits do not reach to the end of."""


def draw_gather(
    random: Random, accepts: Kind, counts: Sequence[int] = (1, 2, 3)
) -> Sample[GatherParams]:
    """Any roles of the operand's dimensions, any places of windows, wild indices.

    `counts` are the numbers of index vectors along dimensions that only indices have.
    A part of the calls take whole rows, as NumPy's `take` does.
    """
    taking, index = random.random() < 0.25, random.choice(INDICES)
    paired = [not taking and random.random() < 0.3 for _ in range(random.randint(0, 2))]
    batch = [draw_size(random, (1, 2, 3) if flag else counts) for flag in paired]
    together = [i for i, flag in enumerate(paired) if flag]
    random.shuffle(together)
    roles = draw_roles(random, len(together), taking)
    pairs = iter([batch[i] for i in together])
    shape, sizes = [], []
    for role in roles:
        size, window = draw_window(random, role, taking)
        size = next(pairs) if role == "batching" else size
        shape.append(size)
        sizes.append(min(window, size) if role == "batching" else window)
    likely = {"collapsed": 0.9 + taking, "window": 0.6 - taking, "batching": 0.0}
    mapped = [d for d, role in enumerate(roles) if random.random() < likely[role]]
    random.shuffle(mapped)
    if mapped and random.random() < (0.6 if index in LONG else 0.1):
        shape[mapped[0]] = LONG.get(index, 130)
    windows = roles.count("window")
    offsets = sorted(random.sample(range(len(batch) + windows), windows))
    if taking and random.random() < 0.7:
        # As `take` has it, or nearly so.
        shift = random.choice((len(batch), len(batch), max(0, len(batch) - 1)))
        before = roles.index("collapsed")
        offsets = [i + (i >= before) * shift for i in range(windows)]
    dims = GatherDimensionNumbers(
        offsets,
        [d for d, role in enumerate(roles) if role == "collapsed"],
        mapped,
        [d for d, role in enumerate(roles) if role == "batching"],
        together,
    )
    mode = random.choice(("clip", "fill", "promise_in_bounds"))
    promises = draw_promises(random, dims, batch, max(counts) == 1)
    fill = random.choice((None, 0, 1))
    params = GatherParams(dims, tuple(sizes), *promises, mode, fill)
    indices = ShapedArray((*batch, len(mapped)), index)
    operand = ShapedArray(shape, random.choice(accepts.samples()))
    filled = mode == FILL and fill is None and is_inexact(operand.dtype)
    values = Domain(smooth=False) if filled else REALS
    domain = index_domain(params, operand.shape, index)
    return Sample(params, (operand, indices), (values, domain))


def draw_roles(random: Random, batching: int, taking: bool) -> list[str]:
    """Draws the roles of an operand's dimensions."""
    if taking:
        roles = ["collapsed", *["window"] * random.randint(0, 2)]
    else:
        count = random.choice((0, 1, 2, 2, 3))
        roles = random.choices(("window", "window", "collapsed"), k=count)
        roles += ["batching"] * batching
    random.shuffle(roles)
    return roles


def draw_window(random: Random, role: str, whole: bool) -> tuple[int, int]:
    """The size of a dimension, and that of windows in it."""
    if role != "window":
        return random.choice((1, 2, 4)), 1
    size = draw_size(random, (1, 2, 3, 4, 5))
    if whole or random.random() < 0.3:
        return size, size
    return size, draw_size(random, range(1, size + 1))


def draw_promises(
    random: Random, dims: GatherDimensionNumbers, batch: Sequence[int], always: bool
) -> tuple[bool, bool]:
    """Whether indices are said to be unique, and sorted, where they are in any case.

    They are if there is one index vector, or one for each place of batching dimensions.
    """
    together = dims.start_indices_batching_dims
    alone = all(n <= 1 or i in together for i, n in enumerate(batch))
    ordered = prod(batch) <= 1 or list(together) == sorted(together)
    unique = alone and (always or random.random() < 0.5)
    return unique, alone and ordered and random.random() < 0.5


def index_domain(p: GatherParams, operand: Shape, index: DType) -> Domain:
    """Indices in bounds and around them; in bounds only where that is promised."""
    room, limits = bounds(p.dimension_numbers, operand, p.slice_sizes), iinfo(index)
    upper, bottom, top = min((5, *room)), int(limits.min), int(limits.max)
    if p.mode not in (FILL, CLIP):
        return Domain(0, upper)
    if any(bound >= top for bound in room):
        return Domain(bottom, top, tuple({bottom, 0, 1, top}))
    likely = {-1, upper, upper + 1, 127, *room}
    around = tuple(v for v in sorted(likely) if bottom <= v <= top)
    return Domain(max(bottom, -3), 5, around)
