"""Floor 2: the geometry that gather and scatter share, and its NumPy meaning.

One idea: a scatter is the reverse of the gather that would read its windows, so both
are checked, and run in NumPy, as one family of windows at given starts::

    GatherDimensionNumbers((1,), (0,), (0,))      # rows of a matrix, one per index
"""

from collections.abc import Callable, Hashable, Sequence
from enum import Enum
from math import prod

import numpy as np
from attrs import field, frozen

from verax.ir.avals import Shape
from verax.ir.records import ReprMixin
from verax.rules.values.memo import pure

UNSIGNED = {np.dtype(f"i{n}"): np.dtype(f"u{n}") for n in (1, 2, 4, 8)} | {
    np.dtype(f"u{n}"): np.dtype(f"u{n}") for n in (1, 2, 4, 8)
}


def plain_dimensions(values: Sequence[int]) -> Shape:
    return tuple(int(value) for value in values)


class GatherScatterMode(Enum):
    """What happens to a window that is not wholly inside the operand.

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
    """Where the dimensions of a gather come from.

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
    """Where the dimensions of a scatter go: those of the gather that reads them back.

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
    """Which index vectors are the start of a window inside the operand."""
    found: np.ndarray = ((starts >= 0) & (starts <= np.array(upper, np.int64))).all(-1)
    return found


def clipped(starts: np.ndarray, upper: Shape) -> np.ndarray:
    """Starts moved so that windows lie inside the operand."""
    found: np.ndarray = np.clip(starts, 0, np.array(upper, np.int64))
    return found


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
        found = covered.take(*places.values(), axis=0)
    elif places:
        found = covered[tuple(places.values())]
    else:
        found = np.broadcast_to(covered, (*batch, *covered.shape))
    after = [*moving, *still]
    count = len(batch)
    return np.transpose(
        found, (*range(count), *(count + after.index(d) for d in windowed))
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
