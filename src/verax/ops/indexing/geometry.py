"""Floor 2: the geometry that gather and scatter share, and its NumPy meaning.

One idea: a scatter is the reverse of the gather that would read its windows, so both
are checked, and run in NumPy, as one family of windows at given starts::

    GatherDimensionNumbers((1,), (0,), (0,))      # rows of a matrix, one per index
"""

from collections.abc import Callable, Hashable, Iterator, Sequence
from enum import Enum
from math import prod

import numpy as np
from attrs import astuple, field, frozen

from verax.ir.avals import Shape, ShapedArray
from verax.ir.dtypes import is_integer
from verax.ir.records import ReprMixin
from verax.rules.values.memo import pure

UNSIGNED = {np.dtype(f"i{n}"): np.dtype(f"u{n}") for n in (1, 2, 4, 8)} | {
    np.dtype(f"u{n}"): np.dtype(f"u{n}") for n in (1, 2, 4, 8)
}


def plain_dimensions(values: Sequence[int]) -> Shape:
    return tuple(int(value) for value in values)


class GatherScatterMode(Enum):
    """The treatment of a window that is not wholly inside the operand.

    `CLIP` moves it inside. `FILL_OR_DROP` reads the fill value, and writes nothing.
    `PROMISE_IN_BOUNDS` says that there is none; should there be one, a gather clips,
    a scatter drops, and derivatives need not agree with that.
    """

    __module__ = "verax.lax"

    CLIP = "clip"
    FILL_OR_DROP = "fill"
    PROMISE_IN_BOUNDS = "promise_in_bounds"

    @staticmethod
    def from_any(s: "str | GatherScatterMode | None") -> "GatherScatterMode":
        """The mode by its name; `None`, "fill" and "drop" mean `FILL_OR_DROP`.

        Raises:
            ValueError: there is no such mode.
        """
        if isinstance(s, GatherScatterMode):
            return s
        name = "fill" if s in (None, "drop") else s
        for mode in GatherScatterMode:
            if mode.value == name:
                return mode
        raise ValueError(
            f"unknown gather or scatter mode {s!r}; use 'clip', 'fill', 'drop' or "
            "'promise_in_bounds'"
        )


@frozen(cache_hash=True, repr=False)
class GatherDimensionNumbers(ReprMixin):
    """The roles of the dimensions of a gather.

    `offset_dims` are the dimensions of the result that run inside a window;
    `collapsed_slice_dims` those of the operand that windows of size 1 leave out;
    `start_index_map[i]` is the dimension of the operand where element i of an index
    vector starts; `operand_batching_dims` and `start_indices_batching_dims` are
    dimensions that operand and indices run through together. The last dimension of
    the indices holds the index vectors.
    """

    __module__ = "verax.lax"

    offset_dims: Shape = field(converter=plain_dimensions)
    collapsed_slice_dims: Shape = field(converter=plain_dimensions)
    start_index_map: Shape = field(converter=plain_dimensions)
    operand_batching_dims: Shape = field(default=(), converter=plain_dimensions)
    start_indices_batching_dims: Shape = field(default=(), converter=plain_dimensions)

    def windowed(self, rank: int) -> Shape:
        """The dimensions of the operand that the result has as offset dimensions."""
        left_out = {*self.collapsed_slice_dims, *self.operand_batching_dims}
        return tuple(d for d in range(rank) if d not in left_out)

    def batch_positions(self, rank: int) -> Shape:
        """The dimensions of a result of that rank which run over the indices."""
        return tuple(d for d in range(rank) if d not in self.offset_dims)


@frozen(cache_hash=True, repr=False)
class ScatterDimensionNumbers(ReprMixin):
    """The roles of a scatter's dimensions: those of the gather that reads them back.

    `update_window_dims` answer to `offset_dims`, `inserted_window_dims` to
    `collapsed_slice_dims`, `scatter_dims_to_operand_dims` to `start_index_map`,
    `scatter_indices_batching_dims` to `start_indices_batching_dims`.
    """

    __module__ = "verax.lax"

    update_window_dims: Shape = field(converter=plain_dimensions)
    inserted_window_dims: Shape = field(converter=plain_dimensions)
    scatter_dims_to_operand_dims: Shape = field(converter=plain_dimensions)
    operand_batching_dims: Shape = field(default=(), converter=plain_dimensions)
    scatter_indices_batching_dims: Shape = field(default=(), converter=plain_dimensions)

    def gather(self) -> GatherDimensionNumbers:
        """The dimension numbers of the gather that reads what this writes."""
        return gathering(self)


def window_labels(
    dims: GatherDimensionNumbers, shape: Shape, sizes: Shape
) -> list[Hashable]:
    """Labels of the dimensions of an operand: None for those that are indexed."""
    labels: list[Hashable] = [
        ("operand", d) if size == n else None
        for d, (n, size) in enumerate(zip(shape, sizes, strict=True))
    ]
    for d in (*dims.collapsed_slice_dims, *dims.operand_batching_dims):
        labels[d] = None
    for number, d in enumerate(dims.operand_batching_dims):
        labels[d] = ("batch", number)
    return labels


def index_labels(dims: GatherDimensionNumbers, rank: int) -> list[Hashable]:
    """Labels of all dimensions of indices but the last; None for those of one side."""
    labels: list[Hashable] = [None] * (rank - 1)
    for number, d in enumerate(dims.start_indices_batching_dims):
        labels[d] = ("batch", number)
    return labels


def placed_labels(
    dims: GatherDimensionNumbers,
    windows: Sequence[Hashable],
    rows: Sequence[Hashable],
    rank: int,
) -> list[Hashable]:
    """Labels of what a gather reads or a scatter writes: those of windows and rows."""
    labels: list[Hashable] = [None] * rank
    windowed = [windows[d] for d in dims.windowed(len(windows))]
    for place, label in zip(dims.offset_dims, windowed, strict=True):
        labels[place] = label
    for place, label in zip(dims.batch_positions(rank), rows, strict=True):
        labels[place] = label
    return labels


def split_rows(
    dims: GatherDimensionNumbers, shape: Shape, sizes: Shape, rank: int, read: int
) -> tuple[list[Hashable], list[Hashable], list[Hashable]]:
    """What a partitioner splits together: dimensions of operand, indices and parts.

    Each index reads or writes its own part, so rows of indices may be anywhere.
    """
    windows = window_labels(dims, shape, sizes)
    known = index_labels(dims, rank)
    rows = [("row", i) if x is None else x for i, x in enumerate(known)]
    return windows, [*rows, None], placed_labels(dims, windows, rows, read)


@pure(1 << 12)
def gathering(dims: ScatterDimensionNumbers) -> GatherDimensionNumbers:
    """The dimension numbers of the gather that reads what the scatter writes."""
    return GatherDimensionNumbers(
        dims.update_window_dims,
        dims.inserted_window_dims,
        dims.scatter_dims_to_operand_dims,
        dims.operand_batching_dims,
        dims.scatter_indices_batching_dims,
    )


def scattering(dims: GatherDimensionNumbers) -> ScatterDimensionNumbers:
    """The dimension numbers of the scatter that writes what the gather reads."""
    return ScatterDimensionNumbers(
        dims.offset_dims,
        dims.collapsed_slice_dims,
        dims.start_index_map,
        dims.operand_batching_dims,
        dims.start_indices_batching_dims,
    )


def window_shape(
    dims: GatherDimensionNumbers, indices: Shape, slice_sizes: Shape
) -> Shape:
    """The shape of what a gather reads: index dimensions, windows at the offsets."""
    offsets = set(dims.offset_dims)
    windows = iter([slice_sizes[d] for d in dims.windowed(len(slice_sizes))])
    batch = iter(indices[:-1])
    rank = len(indices) - 1 + len(offsets)
    return tuple(next(windows if d in offsets else batch) for d in range(rank))


def bounds(dims: GatherDimensionNumbers, shape: Shape, slice_sizes: Shape) -> Shape:
    """The largest start of a window inside the operand, per element of an index."""
    return tuple(shape[d] - slice_sizes[d] for d in dims.start_index_map)


def as_starts(indices: np.ndarray) -> np.ndarray:
    """Indices in 64 bits with sign; the largest without sign stay out of bounds."""
    if indices.dtype == np.uint64:
        indices = np.minimum(indices, np.uint64(np.iinfo(np.int64).max))
    return indices.astype(np.int64)


def inside(starts: np.ndarray, upper: Shape) -> np.ndarray:
    """Flags of the index vectors that start a window inside the operand."""
    out: np.ndarray = ((starts >= 0) & (starts <= np.array(upper, np.int64))).all(-1)
    return out


def clipped(starts: np.ndarray, upper: Shape) -> np.ndarray:
    """Starts moved so that windows lie inside the operand."""
    out: np.ndarray = np.clip(starts, 0, np.array(upper, np.int64))
    return out


def along(values: np.ndarray, place: int, rank: int) -> np.ndarray:
    """A vector as an array of `rank` dimensions that runs along one of them."""
    shape = [1] * rank
    shape[place] = values.size
    return values.reshape(shape)


@pure(1 << 12)
def taken_axis(
    dims: GatherDimensionNumbers, shape: Shape, slice_sizes: Shape, batch: int
) -> int | None:
    """The dimension that a gather takes elements of, if it is as simple as that.

    >>> taken_axis(GatherDimensionNumbers((1,), (0,), (0,)), (5, 3), (1, 3), 1)
    0
    """
    if len(dims.start_index_map) != 1 or dims.operand_batching_dims:
        return None
    (axis,) = dims.start_index_map
    whole = (*shape[:axis], 1, *shape[axis + 1 :])
    after = range(axis + batch, len(shape) - 1 + batch)
    simple = (
        dims.collapsed_slice_dims == (axis,)
        and slice_sizes == whole
        and dims.offset_dims == (*range(axis), *after)
    )
    return axis if simple else None


def all_inside(elements: np.ndarray, size: int) -> bool:
    """Whether all elements, one at least, are indices of a dimension of that size.

    Without their sign, negative integers are larger than those without: one pass.
    """
    unsigned = UNSIGNED.get(elements.dtype)
    if unsigned is None or size > np.iinfo(unsigned).max >> 1:
        return bool(elements.min() >= 0 and elements.max() < size)
    return bool(np.maximum.reduce(elements.view(unsigned), None) < size)


def read_windows(
    operand: np.ndarray,
    starts: np.ndarray,
    dims: GatherDimensionNumbers,
    slice_sizes: Shape,
) -> np.ndarray:
    """The windows at starts inside the operand, of `(*index dims, *window dims)`.

    A dimension that every window covers is sliced; the others are indexed together.
    """
    batch, shape = starts.shape[:-1], operand.shape
    element = {
        d: i for i, d in enumerate(dims.start_index_map) if slice_sizes[d] < shape[d]
    }
    windowed = dims.windowed(operand.ndim)
    moving = [d for d in windowed if d in element]
    rank, ones = len(batch) + len(moving), (1,) * len(moving)
    pairs = zip(
        dims.operand_batching_dims, dims.start_indices_batching_dims, strict=True
    )
    places = {
        d: np.broadcast_to(along(np.arange(batch[i]), i, rank), (*batch, *ones))
        for d, i in pairs
    }
    for d, i in element.items():
        places[d] = starts[..., i].reshape((*batch, *ones))
        if d in moving:
            inner = np.arange(slice_sizes[d])
            places[d] = places[d] + along(inner, len(batch) + moving.index(d), rank)
    still = [d for d in windowed if d not in element]
    fixed = [d for d in dims.collapsed_slice_dims if d not in element]
    order = [*fixed, *places, *still]
    covered = operand.transpose(order)[(0,) * len(fixed)]
    covered = covered[(..., *(slice(0, slice_sizes[d]) for d in still))]
    if len(places) == 1:
        out = covered.take(*places.values(), axis=0)
    elif places:
        out = covered[tuple(places.values())]
    else:
        out = np.broadcast_to(covered, (*batch, *covered.shape))
    after = [*moving, *still]
    count = len(batch)
    return np.transpose(
        out, (*range(count), *(count + after.index(d) for d in windowed))
    )


def write_windows(
    operand: np.ndarray,
    starts: np.ndarray,
    updates: np.ndarray,
    dims: GatherDimensionNumbers,
    slice_sizes: Shape,
    combine: Callable[[np.ndarray, np.ndarray, np.ndarray], None],
) -> np.ndarray:
    """A copy of the operand with windows combined into it, one index after the other.

    `updates` has the index dimensions first. Windows not inside the operand are left
    out. `combine(array, places, values)` writes in place, duplicates in order; what
    all windows cover at the end of a row is written as one element.
    """
    shape, batch = operand.shape, starts.shape[:-1]
    result = np.array(operand, order="C")
    if not result.size or not updates.size:
        return result
    windowed = dims.windowed(operand.ndim)
    tail = operand.ndim
    while tail - 1 in windowed and slice_sizes[tail - 1] == shape[tail - 1]:
        tail -= 1
    strides = [prod(shape[d + 1 : tail]) for d in range(tail)]
    valid = inside(starts, bounds(dims, shape, slice_sizes))
    base = np.zeros(batch, np.int64)
    for i, d in enumerate(dims.start_index_map):
        base += starts[..., i] * (strides[d] if d < tail else 0)
    pairs = zip(
        dims.operand_batching_dims, dims.start_indices_batching_dims, strict=True
    )
    for d, i in pairs:
        base += along(np.arange(batch[i]) * strides[d], i, len(batch))
    leading = [d for d in windowed if d < tail]
    inner = np.zeros(1, np.int64)
    for i, d in enumerate(leading):
        inner = inner + along(np.arange(slice_sizes[d]) * strides[d], i, len(leading))
    places = base[valid][:, None] + inner.ravel()
    row = shape[tail:] if prod(shape[tail:]) > 1 else ()
    values = updates.reshape((*batch, inner.size, *row))[valid]
    flat = result.reshape((prod(shape[:tail]), *row))
    combine(flat, places.ravel(), values.reshape((places.size, *row)))
    return result


# -----------------------------------------------------------------------------
# What is wrong with the dimension numbers of a gather or scatter.
#
# Both have the same five fields under different names, so the names in messages are
# read from the class that the user wrote::
#
#     lax.gather(x, indices, GatherDimensionNumbers((1, 0), ...), sizes)
#     # TypeError: offset_dims in gather op must be sorted; got (1, 0)


type DimensionNumbers = GatherDimensionNumbers | ScatterDimensionNumbers


def check_dimensions(
    op: str, dims: DimensionNumbers, operand: ShapedArray, indices: ShapedArray
) -> None:
    """Raise TypeError unless the dimension numbers fit the operand and the indices."""
    for fault in faults(op, dims, operand, indices):
        raise TypeError(
            f"{fault}, for {dims} with operand {operand} and indices {indices}"
        )


def faults(
    op: str, dims: DimensionNumbers, operand: ShapedArray, indices: ShapedArray
) -> Iterator[str]:
    """The faults, the first of which is worth saying."""
    names = [a.name for a in dims.__attrs_attrs__]
    offsets, collapsed, mapped, batching, together = astuple(dims, recurse=False)
    batch, rank, title = indices.ndim - 1, operand.ndim, f"{op.capitalize()} op"
    if batch < 0:
        yield f"{title} takes indices of at least one dimension"
    if not is_integer(indices.dtype):
        yield f"{title} takes integer indices"
    yield from misplaced(op, names[0], offsets, batch + len(offsets))
    yield from misplaced(op, names[1], collapsed, rank)
    yield from misplaced(op, names[3], batching, rank)
    yield from misplaced(op, names[2], mapped, rank, ordered=False)
    yield from misplaced(op, names[4], together, batch + 1, ordered=False)
    if batch in together:
        yield f"{title} cannot have the index vector dimension as a batching dimension"
    for k, others in ((1, collapsed), (2, mapped)):
        if not set(others).isdisjoint(batching):
            yield f"{names[k]} and {names[3]} in {op} op must be disjoint"
    if indices.shape[-1] != len(mapped):
        yield (
            f"{title} has {len(mapped)} elements in {names[2]} and the bound of "
            f"dimension index_vector_dim={batch} of indices is {indices.shape[-1]}. "
            "These two numbers must be equal"
        )
    if len(batching) != len(together):
        yield f"{title} requires equal numbers of {names[3]} and {names[4]}"
    sizes = [operand.shape[d] for d in batching], [indices.shape[d] for d in together]
    if sizes[0] != sizes[1]:
        yield (
            f"{title} requires operand batching dimensions and indices batching "
            f"dimensions to have the same shape, not {sizes[0]} and {sizes[1]}"
        )
    window = len(offsets) + len(collapsed) + len(batching)
    if op != "gather" and window != rank:
        yield (
            f"{title} has window of size {window}; doesn't match operand of rank "
            f"{rank}. Every dimension of the operand must be in {names[0]}, {names[1]} "
            f"or {names[3]}"
        )


def misplaced(
    op: str, name: str, dims: Shape, rank: int, ordered: bool = True
) -> Iterator[str]:
    """The faults of dimensions that must be distinct ones of `rank`."""
    if len(set(dims)) < len(dims):
        yield f"{name} in {op} op must not repeat; got {dims}"
    if ordered and list(dims) != sorted(dims):
        yield f"{name} in {op} op must be sorted; got {dims}"
    what = "set" if ordered or "batching" in name else "mapping"
    for i, d in enumerate(dims):
        if 0 <= d < rank:
            continue
        if name == "offset_dims":
            yield (
                f"Offset dimension {i} in {op} op is out of bounds; got {d}, but "
                f"should have been in [0, {rank})"
            )
        yield f"Invalid {name} {what} in {op} op; valid range is [0, {rank}), got {d}"


def check_slice_sizes(
    dims: GatherDimensionNumbers,
    operand: ShapedArray,
    indices: ShapedArray,
    slice_sizes: Shape,
) -> None:
    """Raise TypeError unless these are sizes of windows that a gather can read."""
    if len(slice_sizes) != operand.ndim:
        raise TypeError(
            "Gather op must have one slice size for every input dimension, but got "
            f"{slice_sizes} for {operand}"
        )
    whole = len(dims.offset_dims) + len(dims.collapsed_slice_dims)
    if whole + len(dims.operand_batching_dims) != operand.ndim:
        raise TypeError(
            "All components of the offset index in a gather op must either be a offset "
            f"dimension or explicitly collapsed/batching, but {operand} has another "
            f"number of dimensions than {dims} names"
        )
    pairs = zip(slice_sizes, operand.shape, strict=True)
    for d, (window, size) in enumerate(pairs):
        if indices.size and not 0 <= window <= size:
            raise TypeError(
                f"Slice size at index {d} in gather op is out of range: it must be in "
                f"[0, {size}] for {operand}, but is {window}"
            )
    for i, d in enumerate(dims.collapsed_slice_dims):
        if slice_sizes[d] != 1:
            raise TypeError(
                "Gather op can only collapse slice dims with bound 1, but bound is "
                f"{slice_sizes[d]} for index {d} at position {i}."
            )
    for i, d in enumerate(dims.operand_batching_dims):
        if slice_sizes[d] > 1:
            raise TypeError(
                "Gather op can only have operand batching dims with bound 0/1, but "
                f"bound is {slice_sizes[d]} for index {d} at position {i}."
            )
