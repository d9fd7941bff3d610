"""Floor 6: what to do for an index: plans, made once per description and shape.

One idea: reading is a static part (slice, reverse), then one dynamic slice or gather
for what is known at run time, then a change of shape; each step is a primitive with
its parameters, ready to be bound::

    read_plan((0, slice(None)), ShapedArray((3, 4), float32), False, True)
    # before: slice; after: squeeze; view: (0, slice(0, 4, 1)) for NumPy
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from attrs import frozen

from verax.ir.avals import Shape, ShapedArray, SymbolicSize, larger_size, smaller_size
from verax.ir.jaxpr import Params
from verax.ir.records import ReprMixin
from verax.numpy.arguments.arguments import joined_shape
from verax.numpy.indexing.parse import Kind, Picked
from verax.ops.indexing.geometry import GatherDimensionNumbers
from verax.ops.structure.joining import RevParams, rev_p
from verax.ops.structure.shape import (
    BroadcastInDimParams,
    SqueezeParams,
    broadcast_in_dim_p,
    squeeze_p,
)
from verax.ops.structure.slicing import SliceParams, slice_p
from verax.rules.rows.row import SomeRow
from verax.rules.values.memo import pure
from verax.rules.values.sizes import slice_count, slice_places, surely_less

type Step = tuple[SomeRow, Params]
type View = tuple[Any, ...]


class Part(NamedTuple):
    """One element of an index: what it is, and its dimension of the operand."""

    kind: int | slice | Picked | None
    axis: int


@frozen(repr=False)
class Layout(ReprMixin):
    """The origins of the dimensions of a result.

    `parts` has one for each dimension of the operand and for each None, in the order
    of the index. `batch` is the shape of the arrays together and `front` whether they
    lead the result although the index does not begin with them. `outside` says that
    an int lies out of bounds where nothing may be read or written; `beyond` is the
    first int out of bounds anywhere, with its dimension and its size.
    """

    parts: tuple[Part, ...]
    batch: Shape
    front: bool
    outside: bool
    beyond: Shape | None

    @property
    def advanced(self) -> bool:
        """Whether arrays have dimensions, beside which ints are arrays too."""
        return any(type(p.kind) is Picked and p.kind.shape for p in self.parts)

    def dimensions(self) -> "list[Part | None]":
        """The dimensions of the result by what they come from; None for the arrays."""
        out: list[Part | None] = [None] * len(self.batch) if self.front else []
        placed = self.front
        for part in self.parts:
            if isinstance(part.kind, slice) or part.kind is None:
                out.append(part)
            elif self.advanced and not placed:
                out += [None] * len(self.batch)
                placed = True
        return out


def expanded(kinds: Sequence[Kind], shape: Shape) -> list[Kind]:
    """The index with a slice for each dimension that it leaves out.

    Raises:
        IndexError: there are too many indices, or two ellipses.
    """
    taken = sum(kind is not None and kind is not Ellipsis for kind in kinds)
    ellipses = [i for i, kind in enumerate(kinds) if kind is Ellipsis]
    if len(ellipses) > 1:
        raise IndexError("an index can have only one ellipsis (...)")
    if taken > len(shape):
        raise IndexError(
            f"Too many indices: array is {len(shape)}-dimensional, but {taken} were "
            f"indexed, for shape {shape}"
        )
    place = ellipses[0] if ellipses else len(kinds)
    filling: list[Kind] = [slice(None)] * (len(shape) - taken)
    return [*kinds[:place], *filling, *kinds[place + 1 :]]


def separated(kinds: Sequence[Kind]) -> bool:
    """Whether arrays and ints of an index stand apart from each other."""
    places = [
        i
        for i, kind in enumerate(kinds)
        if isinstance(kind, int | SymbolicSize | Picked)
    ]
    return bool(places) and places[-1] - places[0] + 1 != len(places)


def canonical_int(i: int, size: int, axis: int, wrap: bool) -> int:
    """An int counted from the front; it may lie outside.

    Raises:
        IndexError: the dimension has no elements.
    """
    if not size:
        raise IndexError(f"index {i} is out of bounds for axis {axis} with size 0")
    return i + size if i < 0 and wrap else i


def canonical_slice(part: slice, size: int) -> slice:
    """A slice of ints, `0 <= start`, whose range has the elements it picks."""
    start, stop, step = slice_places(part, size)
    count = slice_count(start, stop, step)
    if isinstance(count, SymbolicSize):  # inside, as is easily seen
        clamp = larger_size if step > 0 else smaller_size
        return slice(start, clamp(start, stop), step)
    return slice(start, start + count * step, step) if count else slice(0, 0, 1)


@pure(1 << 12)
def layout(kinds: tuple[Kind, ...], shape: Shape, filling: bool, wrap: bool) -> Layout:
    """The canonical parts of an index; `filling`: ints outside are not clamped."""
    parts: list[Part] = []
    axis, outside, beyond = 0, False, None
    for kind in expanded(kinds, shape):
        if kind is None:
            parts.append(Part(None, axis))
            continue
        size = shape[axis]
        if isinstance(kind, slice):
            kind = canonical_slice(kind, size)
        elif isinstance(kind, int | SymbolicSize):
            asked, kind = kind, canonical_int(kind, size, axis, wrap)
            inside = not surely_less(kind, 0) and not surely_less(size - 1, kind)
            if beyond is None and not inside:
                beyond = (asked, axis, size)
            outside |= filling and not inside
            kind = smaller_size(larger_size(kind, 0), size - 1)
        assert isinstance(kind, int | SymbolicSize | slice | Picked)
        parts.append(Part(kind, axis))
        axis += 1
    shapes = tuple(k.shape for k in kinds if isinstance(k, Picked))
    batch = joined_shape("indexing", shapes) if shapes else ()
    front = bool(batch or any(shapes)) and separated(kinds)
    return Layout(tuple(parts), batch, front, outside, beyond)


def numpy_slice(part: slice) -> slice:
    """A canonical slice as NumPy reads it: a stop before the start of the array."""
    before = surely_less(part.stop, 0)
    return slice(part.start, None if before else part.stop, part.step)


def length(part: slice) -> int:
    """The number of elements a canonical slice picks."""
    return slice_count(part.start, part.stop, part.step)


def result_shape(result: Layout) -> Shape:
    """The shape of what the index reads."""
    batch = iter(result.batch)
    return tuple(
        next(batch)
        if part is None
        else length(part.kind)
        if isinstance(part.kind, slice)
        else 1
        for part in result.dimensions()
    )


@frozen(repr=False)
class ReadPlan(ReprMixin):
    """The plan for reading an index.

    `view` is an index for NumPy that ends in an ellipsis, with `Picked` where arrays
    go, valid while those are in bounds. `starts` is set for a dynamic slice and
    `dims` for a gather, both with windows of `sizes`; `picked` are the dimensions of
    the arrays of the index.
    """

    aval: ShapedArray
    view: View
    outside: bool
    beyond: Shape | None
    before: tuple[Step, ...]
    picked: Shape
    batch: Shape
    starts: Shape
    dims: GatherDimensionNumbers | None
    sizes: Shape
    after: tuple[Step, ...]


@pure(1 << 12)
def read_plan(
    kinds: tuple[Kind, ...], aval: ShapedArray, filling: bool, wrap: bool
) -> ReadPlan:
    """The plan for reading `kinds` of an array of type `aval`.

    Raises:
        IndexError: too many indices, two ellipses, or an index into no elements.
        ValueError: the shapes of the arrays do not match.
    """
    out = layout(kinds, aval.shape, filling, wrap)
    parts = [part for part in out.parts if part.kind is not None]
    picked = tuple(p.axis for p in parts if type(p.kind) is Picked)
    result = aval.with_shape(result_shape(out))
    empty = [axis for axis in picked if not aval.shape[axis]]
    if empty and 0 not in result.shape:
        raise IndexError(
            f"index is out of bounds for axis {empty[0]} with size 0, of an array of "
            f"shape {aval.shape}"
        )
    gathers = bool(picked) and (out.advanced or filling)
    sizes = tuple(length(p.kind) if isinstance(p.kind, slice) else 1 for p in parts)
    merged = bool(picked) and not gathers and unit_steps(parts)
    return ReadPlan(
        aval=result,
        view=view_of(out),
        outside=out.outside,
        beyond=out.beyond,
        before=() if merged else static_steps(parts, aval.shape),
        picked=picked,
        batch=out.batch,
        starts=dynamic_starts(parts, merged) if picked and not gathers else (),
        dims=gather_dims(out, parts) if gathers else None,
        sizes=sizes,
        after=(*reversal(parts, merged), *shape_steps(out, parts, sizes, gathers)),
    )


def view_of(result: Layout) -> View:
    """The index for NumPy, every dimension named; none where NumPy's order differs.

    That is so if nothing but an ellipsis of no dimensions stood between arrays.
    """
    if result.front and not separated([part.kind for part in result.parts]):
        return ()
    return (
        *(
            numpy_slice(p.kind) if isinstance(p.kind, slice) else p.kind
            for p in result.parts
        ),
        ...,
    )


def unit_steps(parts: Sequence[Part]) -> bool:
    """Whether the slices of an index pick neighbours, in either order."""
    return all(abs(p.kind.step) == 1 for p in parts if isinstance(p.kind, slice))


def lowest(part: slice) -> int:
    """The least place that a slice picks."""
    count = length(part)
    if not count:
        return 0
    first: int = part.start
    return first if part.step > 0 else first + (count - 1) * part.step


def dynamic_starts(parts: Sequence[Part], merged: bool) -> Shape:
    """The start of a dynamic slice in the dimensions whose start is static."""
    if not merged:
        return (0,) * len(parts)
    return tuple(
        lowest(p.kind)
        if isinstance(p.kind, slice)
        else p.kind
        if isinstance(p.kind, int | SymbolicSize)
        else 0
        for p in parts
    )


def static_steps(parts: Sequence[Part], shape: Shape) -> tuple[Step, ...]:
    """The slice and the reversal that ints and slices ask for."""
    starts, limits, strides = [], [], []
    for part, size in zip(parts, shape, strict=True):
        kind = part.kind
        if isinstance(kind, slice):
            count = length(kind)
            start, stride = lowest(kind), abs(kind.step)
            limit = start + (count - 1) * stride + 1 if count else start
            whole = stride == 1 or (type(count) is int and count < 2)
            if isinstance(count, SymbolicSize):
                start, limit = kind.start, kind.stop
                if kind.step < 0:  # of the reversed dimension
                    start, limit = size - 1 - start, size - 1 - limit
            elif not whole:
                limit = min(size, start + count * stride)
            starts.append(start)
            limits.append(limit)
            strides.append(1 if whole else stride)
        else:
            start, limit = (
                (kind, kind + 1) if isinstance(kind, int | SymbolicSize) else (0, size)
            )
            starts.append(start)
            limits.append(limit)
            strides.append(1)
    early = tuple(p.axis for p in parts if reversed_first(p))
    steps: list[Step] = [(rev_p, RevParams(early))] if early else []
    unit = all(stride == 1 for stride in strides)
    if not unit or any(starts) or tuple(limits) != shape:
        params = SliceParams(
            tuple(starts), tuple(limits), None if unit else tuple(strides)
        )
        steps.append((slice_p, params))
    return (*steps, *reversal([p for p in parts if not reversed_first(p)], True))


def reversed_first(part: Part) -> bool:
    """Whether a dimension is reversed and then sliced.

    That is so where a symbol says how many elements are picked, so there may be none,
    and no lowest.
    """
    kind = part.kind
    return (
        isinstance(kind, slice)
        and kind.step < 0
        and isinstance(length(kind), SymbolicSize)
    )


def reversal(parts: Sequence[Part], expected: bool) -> tuple[Step, ...]:
    """The reversal that negative steps ask for."""
    axes = tuple(
        p.axis
        for p in parts
        if isinstance(p.kind, slice)
        and p.kind.step < 0
        and not surely_less(length(p.kind), 2)
    )
    return ((rev_p, RevParams(axes)),) if axes and expected else ()


def gather_dims(result: Layout, parts: Sequence[Part]) -> GatherDimensionNumbers:
    """The dimensions of a gather from what is left by the static steps."""
    places = [p for p in result.dimensions() if p is None or p.kind is not None]
    return GatherDimensionNumbers(
        offset_dims=tuple(i for i, p in enumerate(places) if p is not None),
        collapsed_slice_dims=tuple(
            p.axis for p in parts if not isinstance(p.kind, slice)
        ),
        start_index_map=tuple(p.axis for p in parts if type(p.kind) is Picked),
    )


def shape_steps(
    result: Layout, parts: Sequence[Part], sizes: Shape, gathers: bool
) -> tuple[Step, ...]:
    """Dimensions out for ints, and in for None."""
    steps: list[Step] = []
    gone = tuple(p.axis for p in parts if not isinstance(p.kind, slice))
    if gone and not gathers:
        steps.append((squeeze_p, SqueezeParams(gone)))
    places = result.dimensions()
    kept = tuple(i for i, p in enumerate(places) if p is None or p.kind is not None)
    if len(kept) < len(places):
        params = BroadcastInDimParams(result_shape(result), kept)
        steps.append((broadcast_in_dim_p, params))
    return tuple(steps)
