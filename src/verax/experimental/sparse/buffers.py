"""Arrays of coordinates: what the buffers of a BCOO array mean.

`data` is `(*batch, nse, *dense)` and `indices` is `(*batch, nse, n_sparse)`: element
`indices[b, n]` of batch element b is `data[b, n]`. Elements that are named twice are
added, and those outside of the shape are padding, which counts as zero. A batch
dimension of a buffer may be 1, for what is the same in all elements::

    data, indices = fromdense(mat, nse=3)
    todense(data, indices, mat.shape)
"""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from verax import lax, numpy as vnp
from verax.api.vmap import vmap
from verax.experimental.sparse.util import (
    Shape,
    batch_index,
    columns,
    compatible,
    row_of,
    stored_mask,
)
from verax.ir.dtypes import DTypeLike, as_dtype, is_integer
from verax.rules.values.array import Array
from verax.rules.values.sizes import ShapeError


class Layout(NamedTuple):
    """The number of dimensions of each kind, and of stored elements."""

    n_batch: int
    n_sparse: int
    n_dense: int
    nse: int

    def parts(self, shape: Sequence[int]) -> tuple[Shape, Shape, Shape]:
        """The batch, sparse and dense part of a shape."""
        first, last = self.n_batch, self.n_batch + self.n_sparse
        return tuple(shape[:first]), tuple(shape[first:last]), tuple(shape[last:])

    def split(self, axes: Sequence[int]) -> tuple[list[int], list[int], list[int]]:
        """Axes by kind, each counted from the first of its kind."""
        first, last = self.n_batch, self.n_batch + self.n_sparse
        return (
            [d for d in axes if d < first],
            [d - first for d in axes if first <= d < last],
            [d - last for d in axes if d >= last],
        )


def layout_of_indices(indices: Array, shape: Sequence[int]) -> Layout:
    """The layout that indices give an array of `shape`.

    Raises:
        ValueError: they do not fit it.
        TypeError: they are not integers.
    """
    if not is_integer(indices.dtype):
        raise TypeError(f"sparse indices must be integers, not {indices.dtype}")
    if indices.ndim < 2:
        raise ShapeError(
            f"sparse indices must have 2 or more dimensions, not shape {indices.shape}"
        )
    nse, n_sparse = indices.shape[-2:]
    n_batch = indices.ndim - 2
    n_dense = len(shape) - n_batch - n_sparse
    if n_dense < 0 or not compatible(indices.shape[:-2], shape[:n_batch]):
        raise ShapeError(
            f"sparse indices of shape {indices.shape} do not fit an array of shape "
            f"{tuple(shape)}"
        )
    return Layout(n_batch, n_sparse, n_dense, nse)


def layout_of(data: Array, indices: Array, shape: Sequence[int]) -> Layout:
    """The layout of an array.

    Raises:
        ValueError: buffers do not fit each other, or the shape.
        TypeError: indices are not integers.
    """
    layout = layout_of_indices(indices, shape)
    batch, _, dense = layout.parts(shape)
    due = (*batch, layout.nse, *dense)
    first = layout.n_batch
    if tuple(data.shape[first:]) != due[first:] or not compatible(data.shape, due):
        raise ShapeError(
            f"sparse data of shape {data.shape} does not fit indices of shape "
            f"{indices.shape} and an array of shape {tuple(shape)}, which take {due}"
        )
    return layout


def fully_batched(x: Array, batch: Shape) -> Array:
    """A buffer with all its batch elements."""
    return vnp.broadcast_to(x, (*batch, *x.shape[len(batch) :]))


def common_batch(*xs: Array, n_batch: int) -> Shape:
    """The batch dimensions that buffers have together."""
    return vnp.broadcast_shapes(*[x.shape[:n_batch] for x in xs])


def in_bounds(indices: Array, sizes: Sequence[int]) -> Array:
    """Flags of the stored elements inside, of the shape `(*batch, nse)`."""
    return ((indices >= 0) & (indices < row_of(sizes, indices))).all(-1)


def over_dense(mask: Array, n_dense: int) -> Array:
    """A mask of stored elements against data that has dense dimensions."""
    return mask.reshape((*mask.shape, *[1] * n_dense))


def where_stored(mask: Array, data: Array, n_dense: int) -> Array:
    """The data where a mask says so, else zeros."""
    return vnp.where(over_dense(mask, n_dense), data, vnp.zeros((), data.dtype))


def outside_unless(mask: Array, indices: Array, sizes: Sequence[int]) -> Array:
    """The indices where a mask says so, else those of padding."""
    return vnp.where(mask[..., None], indices, row_of(sizes, indices))


def without(
    data: Array, indices: Array, sizes: Sequence[int], gone: Sequence[int], n_dense: int
) -> tuple[Array, Array]:
    """The buffers without some sparse dimensions, of whose padding the data is 0."""
    inside = in_bounds(indices, sizes)
    kept = [i for i in range(len(sizes)) if i not in gone]
    indices = indices[..., np.array(kept, np.int32)]
    indices = outside_unless(inside, indices, [sizes[i] for i in kept])
    return where_stored(inside, data, n_dense), indices


def todense(data: Array, indices: Array, shape: Shape) -> Array:
    """The dense array."""
    layout = layout_of(data, indices, shape)
    batch = layout.parts(shape)[0]
    full = fully_batched(data, batch)
    if not layout.n_sparse:
        return full.sum(layout.n_batch, dtype=data.dtype)
    index = (*batch_index(batch), *columns(indices))
    made: Array = vnp.zeros(shape, data.dtype).at[index].add(full, mode="drop")
    return made


def extract(indices: Array, mat: Array, assume_unique: bool = True) -> Array:
    """The elements of a dense array at the indices, zero for padding.

    Unless indices are assumed to be unique, only the first of equal ones gets its
    element, so that the elements add up to `mat` there.
    """
    layout = layout_of_indices(indices, mat.shape)
    batch, sizes, dense = layout.parts(mat.shape)
    entry: Array
    if layout.n_sparse:
        index = (*batch_index(batch), *columns(indices))
        entry = mat.at[index].get(mode="fill", fill_value=0)
    else:
        entry = vnp.expand_dims(mat, layout.n_batch)
        entry = vnp.broadcast_to(entry, (*batch, layout.nse, *dense))
    if assume_unique:
        return entry
    order = sorted_indices(indices, sizes)
    first = vnp.zeros_like(order.first)
    first = first.at[(*batch_index(first.shape[:-1]), order.places)].set(order.first)
    return where_stored(first, entry, layout.n_dense)


def fromdense(
    mat: Array,
    *,
    nse: int,
    n_batch: int = 0,
    n_dense: int = 0,
    index_dtype: DTypeLike = np.int32,
) -> tuple[Array, Array]:
    """The data and sorted indices of the first `nse` elements that are not zero."""
    mask = stored_mask(mat, n_batch, n_dense)
    n_sparse = mask.ndim - n_batch
    dtype = as_dtype(index_dtype)
    if not n_sparse:
        indices = vnp.zeros((*mask.shape, nse, 0), dtype)
        return extract(indices, mat, assume_unique=nse <= 1), indices
    sizes = mask.shape[n_batch:]

    def places(mask: Array) -> Array:
        out = vnp.nonzero(mask, size=nse, fill_value=sizes)
        return vnp.stack(out, -1).astype(dtype)

    for _ in range(n_batch):
        places = vmap(places)
    indices = places(mask)
    return extract(indices, mat), indices


class Order(NamedTuple):
    """Sorted indices, where they were, and which differ from the one before."""

    indices: Array
    places: Array
    first: Array


def sorted_indices(indices: Array, sizes: Sequence[int]) -> Order:
    """The indices of each batch element in order, padding at the end."""
    *batch, nse, n_sparse = indices.shape
    shape = (*batch, nse)
    iota = lax.broadcasted_iota(np.int32, shape, len(batch))
    if not n_sparse:
        return Order(indices, iota, iota == 0)
    clean = outside_unless(in_bounds(indices, sizes), indices, sizes)
    *result, places = lax.sort(
        (*columns(clean), iota), dimension=-1, is_stable=True, num_keys=n_sparse
    )
    ordered = vnp.stack(result, -1)
    changed = (ordered[..., 1:, :] != ordered[..., :-1, :]).any(-1)
    start = vnp.ones((*batch, min(nse, 1)), bool)
    return Order(ordered, places, vnp.concatenate([start, changed], -1))


def sort_indices(data: Array, indices: Array, shape: Shape) -> tuple[Array, Array]:
    """The stored elements in the order of their indices."""
    layout = layout_of(data, indices, shape)
    order = sorted_indices(indices, layout.parts(shape)[1])
    return picked(data, order.places, layout.n_batch), order.indices


def picked(data: Array, places: Array, n_batch: int) -> Array:
    """The stored elements at places that each batch element has."""
    batch = common_batch(data, places, n_batch=n_batch)
    full = fully_batched(data, batch)
    return full[(*batch_index(batch), places)]


def distinct(order: Order, sizes: Sequence[int]) -> Array:
    """The number of different indices inside, per batch element."""
    return (order.first & in_bounds(order.indices, sizes)).sum(-1)


def sum_duplicates(
    data: Array, indices: Array, shape: Shape, nse: int | None = None
) -> tuple[Array, Array]:
    """Sorted, unique indices, `nse` of them, and the sums of what they name.

    Without `nse`, there are as many as a batch element has at most, which must be known
    while tracing.
    """
    layout = layout_of(data, indices, shape)
    _, sizes, dense = layout.parts(shape)
    n_batch = layout.n_batch
    order = sorted_indices(indices, sizes)
    if nse is None:
        nse = int(distinct(order, sizes).max(initial=0))
    group = vnp.cumsum(order.first, -1, dtype=np.int32) - 1
    group = vnp.where(in_bounds(order.indices, sizes), group, nse)
    index = (*batch_index(group.shape[:-1]), group)
    empty = vnp.zeros((*group.shape[:-1], nse, layout.n_sparse), indices.dtype)
    empty = empty + row_of(sizes, empty)
    unique = empty.at[index].set(order.indices, mode="drop")
    ordered = picked(data, order.places, n_batch)
    batch = ordered.shape[:n_batch]
    out = vnp.zeros((*batch, nse, *dense), data.dtype)
    index = (*batch_index(batch), group)
    return out.at[index].add(ordered, mode="drop"), unique


def check_groups(name: str, layout: Layout, permutation: Sequence[int]) -> None:
    """Raise unless a permutation keeps batch, sparse and dense dimensions together."""
    count = sum(layout[:3])
    if sorted(permutation) != list(range(count)):
        raise ShapeError(
            f"{name}: {tuple(permutation)} is not a permutation of {count} dimensions"
        )
    groups = layout.split(range(count))
    if [sorted(g) for g in groups_of(layout, permutation)] != list(groups):
        raise NotImplementedError(
            f"{name}: a permutation that mixes batch, sparse and dense dimensions, "
            f"{tuple(permutation)}; change the layout first, with bcoo_update_layout"
        )


def groups_of(layout: Layout, permutation: Sequence[int]) -> list[list[int]]:
    """The part of a permutation for each kind, counted from the first of its kind."""
    offsets = np.cumsum([0, *layout[:3]]).tolist()
    return [[d - low for d in permutation[low:high]] for low, high in pairwise(offsets)]


def transpose(
    data: Array, indices: Array, permutation: Sequence[int], shape: Shape
) -> tuple[Array, Array]:
    """The array with its dimensions permuted within each kind."""
    layout = layout_of(data, indices, shape)
    check_groups("bcoo_transpose", layout, permutation)
    batch, sparse, dense = groups_of(layout, permutation)
    n = layout.n_batch
    moved = data.transpose([*batch, n, *[d + n + 1 for d in dense]])
    if layout.n_sparse:
        indices = indices[..., np.array(sparse, np.int32)]
    return moved, indices.transpose([*batch, n, n + 1])


def within(data: Array, indices: Array, shape: Shape) -> tuple[Array, Array]:
    """The array with no more elements than fit, whatever is stored twice."""
    layout = layout_of(data, indices, shape)
    most = math.prod(layout.parts(shape)[1])
    if layout.nse <= most:
        return data, indices
    return sum_duplicates(data, indices, shape, nse=most)
