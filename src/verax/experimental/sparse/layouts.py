"""The same elements in another arrangement of dimensions.

What is stored stays, as far as it can: a reshape or a broadcast changes indices, and
data only in batch and dense dimensions::

    bcoo_update_layout(mat, n_batch=1)
    bcoo_concatenate([x, y], dimension=0)
"""

import math
import warnings
from collections.abc import Sequence

from verax import lax, numpy as vnp
from verax.experimental.sparse import buffers
from verax.experimental.sparse.bcoo import BCOO, bcoo_transpose
from verax.experimental.sparse.buffers import fully_batched
from verax.experimental.sparse.util import (
    Shape,
    SparseEfficiencyError,
    SparseEfficiencyWarning,
    as_shape,
    columns,
    row_of,
)
from verax.rules.values.array import Array
from verax.rules.values.sizes import ShapeError


def bcoo_update_layout(
    mat: BCOO,
    *,
    n_batch: int | None = None,
    n_dense: int | None = None,
    on_inefficient: str | None = "error",
) -> BCOO:
    """The same array with another number of batch and dense dimensions.

    More of them mean storing zeros: `on_inefficient` says whether that is an "error", a
    reason to "warn", or accepted (None).

    Raises:
        SparseEfficiencyError: there are more batch or dense dimensions than before.
        ValueError: there are more than the array has dimensions.
    """
    batch = mat.n_batch if n_batch is None else int(n_batch)
    dense = mat.n_dense if n_dense is None else int(n_dense)
    if min(batch, dense) < 0 or batch + dense > mat.ndim:
        raise ShapeError(
            f"bcoo_update_layout: n_batch={batch} and n_dense={dense} must not be "
            f"negative, nor more together than the {mat.ndim} dimensions of the array"
        )
    if on_inefficient not in ("error", "warn", None):
        raise ValueError(
            "bcoo_update_layout: on_inefficient must be 'error', 'warn' or None, not "
            f"{on_inefficient!r}"
        )
    for name, new, old in (
        ("n_batch", batch, mat.n_batch),
        ("n_dense", dense, mat.n_dense),
    ):
        if new > old and on_inefficient is not None:
            message = (
                f"bcoo_update_layout: {name} grows from {old} to {new}, which stores "
                "zeros; pass on_inefficient=None if this is what you want"
            )
            if on_inefficient == "error":
                raise SparseEfficiencyError(message)
            warnings.warn(message, SparseEfficiencyWarning, stacklevel=2)
    return relaid(mat, batch, dense)


def relaid(mat: BCOO, batch: int, dense: int) -> BCOO:
    """The array with these numbers of batch and dense dimensions, one step a time."""
    if (batch, dense) == (mat.n_batch, mat.n_dense):
        return mat
    while mat.n_dense > dense:
        mat = dense_to_sparse(mat)
    while mat.n_batch > batch:
        mat = batch_to_sparse(mat)
    while mat.n_dense < dense:
        mat = sparse_to_dense(mat)
    while mat.n_batch < batch:
        mat = sparse_to_batch(mat)
    return trimmed(mat)


def trimmed(mat: BCOO) -> BCOO:
    """The array with no more elements than fit, whatever is stored twice."""
    out = buffers.within(mat.data, mat.indices, mat.shape)
    if out[1] is mat.indices:
        return mat
    return BCOO(out, shape=mat.shape, indices_sorted=True, unique_indices=True)


def dense_to_sparse(mat: BCOO) -> BCOO:
    """The first dense dimension as the last sparse one."""
    n, nse, size = mat.n_batch, mat.nse, mat.data.shape[mat.n_batch + 1]
    data = mat.data.reshape((*mat.data.shape[:n], nse * size, *mat.data.shape[n + 2 :]))
    kept = vnp.repeat(mat.indices, size, axis=n)
    last = vnp.tile(vnp.arange(size, dtype=kept.dtype), nse)
    # Padding stays padding, by its other indices; without such there is none.
    column = vnp.broadcast_to(last[:, None], (*kept.shape[:-1], 1))
    indices = vnp.concatenate([kept, column], -1)
    return BCOO(
        (data, indices),
        shape=mat.shape,
        indices_sorted=mat.indices_sorted,
        unique_indices=mat.unique_indices,
    )


def batch_to_sparse(mat: BCOO) -> BCOO:
    """The last batch dimension as the first sparse one."""
    n, nse, size = mat.n_batch, mat.nse, mat.shape[mat.n_batch - 1]
    data, indices = (
        vnp.broadcast_to(x, (*x.shape[: n - 1], size, *x.shape[n:]))
        for x in (mat.data, mat.indices)
    )
    first = lax.broadcasted_iota(indices.dtype, (*indices.shape[:-1], 1), n - 1)
    indices = vnp.concatenate([first, indices], -1)
    data, indices = (
        x.reshape((*x.shape[: n - 1], size * nse, *x.shape[n + 1 :]))
        for x in (data, indices)
    )
    return BCOO((data, indices), shape=mat.shape, unique_indices=mat.unique_indices)


def sparse_to_dense(mat: BCOO) -> BCOO:
    """The last sparse dimension as the first dense one."""
    n, size = mat.n_batch, mat.shape[mat.n_batch + mat.n_sparse - 1]
    last = mat.indices[..., -1:]
    here = last == row_of(range(size), last)
    values = vnp.expand_dims(mat.data, n + 1)
    data = buffers.where_stored(here, values, mat.n_dense)
    return BCOO((data, mat.indices[..., :-1]), shape=mat.shape)


def sparse_to_batch(mat: BCOO) -> BCOO:
    """The first sparse dimension as the last batch one."""
    n, size = mat.n_batch, mat.shape[mat.n_batch]
    sizes = mat.shape[n + 1 : n + mat.n_sparse]
    first, rest = mat.indices[..., 0], mat.indices[..., 1:]
    here = vnp.expand_dims(first, n)
    own = lax.broadcasted_iota(here.dtype, (*[1] * n, size, 1), n)
    here = here == own
    data = buffers.where_stored(here, vnp.expand_dims(mat.data, n), mat.n_dense)
    indices = vnp.expand_dims(rest, n)
    indices = buffers.outside_unless(here, indices, sizes)
    return BCOO((data, indices), shape=mat.shape, unique_indices=mat.unique_indices)


def bcoo_broadcast_in_dim(
    mat: BCOO,
    *,
    shape: Sequence[int],
    broadcast_dimensions: Sequence[int],
    sharding: object = None,
) -> BCOO:
    """The array in a larger shape, as `lax.broadcast_in_dim`.

    New dimensions are batch dimensions before the first sparse one, sparse ones up to
    the last sparse one, and dense after that if there are dense ones.

    Raises:
        NotImplementedError: a sparse dimension would get another size than 1 or its
            own, since elements would have to be stored again.
    """
    if sharding is not None:
        raise NotImplementedError("bcoo_broadcast_in_dim: sharding")
    shape, places = as_shape(shape), as_shape(broadcast_dimensions)
    check_broadcast(mat, shape, places)
    n, last = mat.n_batch, mat.n_batch + mat.n_sparse
    n_dense = len(shape) - places[last] if mat.n_dense else 0
    n_batch = places[n] if n < mat.ndim else len(shape) - n_dense
    if mat.n_sparse == 0 and mat.n_dense:
        n_batch = len(shape) - n_dense
    kept = places[n:last]
    made = [d for d in range(n_batch, len(shape) - n_dense) if d not in kept]
    sizes = [shape[d] for d in made]
    if any([size != 1 for size in sizes]) or any(
        [shape[d] != mat.shape[n + i] for i, d in enumerate(kept)]
    ):
        raise NotImplementedError(
            f"bcoo_broadcast_in_dim from {mat.shape} to {shape}: a sparse dimension "
            "cannot grow; sizes of new ones must be 1"
        )
    batch = [1] * n_batch
    dense = [1] * n_dense
    data_batch, index_batch = list(batch), list(batch)
    for i, d in enumerate(places[:n]):
        data_batch[d], index_batch[d] = mat.data.shape[i], mat.indices.shape[i]
    for i, d in enumerate(places[last:]):
        dense[d - (len(shape) - n_dense)] = mat.shape[last + i]
    data = mat.data.reshape((*data_batch, mat.nse, *dense))
    full = shape[len(shape) - n_dense :]
    data = vnp.broadcast_to(data, (*data_batch, mat.nse, *full))
    zero = vnp.zeros_like(mat.indices[..., :1]) if made else mat.indices
    result = [
        mat.indices[..., kept.index(d)][..., None] if d in kept else zero
        for d in range(n_batch, len(shape) - n_dense)
    ]
    indices = vnp.concatenate(result, -1) if made else mat.indices
    indices = indices.reshape((*index_batch, *indices.shape[-2:]))
    return BCOO(
        (data, indices),
        shape=shape,
        indices_sorted=mat.indices_sorted,
        unique_indices=mat.unique_indices,
    )


def check_broadcast(mat: BCOO, shape: Shape, places: Shape) -> None:
    """Raise ValueError unless dimensions go to `places` of `shape`, in order."""
    fits = len(places) == mat.ndim and sorted(set(places)) == list(places)
    if not fits or any([not 0 <= d < len(shape) for d in places]):
        raise ShapeError(
            f"bcoo_broadcast_in_dim: broadcast_dimensions {places} must name "
            f"{mat.ndim} dimensions of the shape {shape}, in order"
        )
    if any([n not in (1, shape[d]) for n, d in zip(mat.shape, places, strict=True)]):
        raise ShapeError(
            f"bcoo_broadcast_in_dim: {mat.shape} does not broadcast to {shape} along "
            f"the dimensions {places}"
        )


def bcoo_concatenate(operands: Sequence[BCOO], *, dimension: int) -> BCOO:
    """Arrays one after the other along a batch or sparse dimension.

    Arrays with different layouts get the fewest batch and dense dimensions of all.

    Raises:
        TypeError: an operand is not a `BCOO` array.
        ValueError: shapes do not fit, or there are no operands.
        NotImplementedError: the dimension is a dense one.
    """
    mats = list(operands)
    if not mats:
        raise ValueError("bcoo_concatenate takes one or more arrays, but got none")
    if not all([isinstance(mat, BCOO) for mat in mats]):
        raise TypeError("bcoo_concatenate takes BCOO arrays only")
    rank = mats[0].ndim
    if not -rank <= dimension < rank:
        raise ShapeError(
            f"bcoo_concatenate: dimension {dimension} is out of range for {rank} "
            "dimensions"
        )
    dimension %= rank
    others = {without(mat.shape, dimension) for mat in mats}
    if len(others) != 1 or any([mat.ndim != rank for mat in mats]):
        raise ShapeError(
            "bcoo_concatenate: shapes must be equal except along dimension "
            f"{dimension}: {', '.join([str(mat.shape) for mat in mats])}"
        )
    n_batch = min([mat.n_batch for mat in mats])
    n_dense = min([mat.n_dense for mat in mats])
    mats = [relaid(mat, n_batch, n_dense) for mat in mats]
    dtype = vnp.result_type(*[mat.dtype for mat in mats])
    mats = [mat.astype(dtype) for mat in mats]
    total = sum([mat.shape[dimension] for mat in mats])
    shape = tuple([total if d == dimension else n for d, n in enumerate(mats[0].shape)])
    if dimension < n_batch:
        return concatenated_batch(mats, dimension, shape)
    if dimension >= rank - n_dense:
        raise NotImplementedError(
            "bcoo_concatenate along a dense dimension; see bcoo_update_layout"
        )
    return concatenated_sparse(mats, dimension, shape)


def without(shape: Shape, dimension: int) -> Shape:
    return (*shape[:dimension], *shape[dimension + 1 :])


def concatenated_batch(mats: Sequence[BCOO], dimension: int, shape: Shape) -> BCOO:
    """Arrays one after the other along a batch dimension."""
    n = mats[0].n_batch
    nse = max([mat.nse for mat in mats])
    data, indices = [], []
    for mat in mats:
        missing = nse - mat.nse
        x, index = (fully_batched(b, mat.shape[:n]) for b in (mat.data, mat.indices))
        if missing:
            sizes = mat.shape[n : n + mat.n_sparse]
            zeros = vnp.zeros((*x.shape[:n], missing, *x.shape[n + 1 :]), x.dtype)
            x = vnp.concatenate([x, zeros], n)
            padding = vnp.broadcast_to(
                row_of(sizes, index), (*index.shape[:n], missing, mat.n_sparse)
            )
            index = vnp.concatenate([index, padding], n)
        data.append(x)
        indices.append(index)
    return BCOO(
        (vnp.concatenate(data, dimension), vnp.concatenate(indices, dimension)),
        shape=shape,
        indices_sorted=all([mat.indices_sorted for mat in mats]),
        unique_indices=all([mat.unique_indices for mat in mats]),
    )


def concatenated_sparse(mats: Sequence[BCOO], dimension: int, shape: Shape) -> BCOO:
    """Arrays one after the other along a sparse dimension."""
    n = mats[0].n_batch
    place, offset = dimension - n, 0
    data, indices = [], []
    batches = [
        common_shape([b.shape[:n] for b in kind])
        for kind in ([m.data for m in mats], [m.indices for m in mats])
    ]
    sizes = shape[n : n + mats[0].n_sparse]
    dtype = vnp.result_type(*[mat.indices.dtype for mat in mats])
    for mat in mats:
        inside = buffers.in_bounds(mat.indices, mat.shape[n : n + mat.n_sparse])
        index = mat.indices.astype(dtype)
        if offset:
            index = index.at[..., place].add(offset)
        index = buffers.outside_unless(inside, index, sizes)
        data.append(fully_batched(mat.data, batches[0]))
        indices.append(fully_batched(index, batches[1]))
        offset += mat.shape[dimension]
    return BCOO(
        (vnp.concatenate(data, n), vnp.concatenate(indices, n)),
        shape=shape,
        unique_indices=all([mat.unique_indices for mat in mats]),
    )


def common_shape(shapes: Sequence[Shape]) -> Shape:
    return vnp.broadcast_shapes(*shapes)


def bcoo_reshape(
    mat: BCOO,
    *,
    new_sizes: Sequence[int],
    dimensions: Sequence[int] | None = None,
    sharding: object = None,
) -> BCOO:
    """The array in another shape, after a permutation of its dimensions.

    Batch, sparse and dense dimensions are reshaped for themselves.

    Raises:
        ValueError: the new shape mixes kinds of dimensions, or has another size.
        NotImplementedError: batch dimensions of a buffer are 1 for all elements.
    """
    if sharding is not None:
        raise NotImplementedError("bcoo_reshape: sharding")
    if dimensions is not None:
        mat = bcoo_transpose(mat, permutation=dimensions)
    sizes = as_shape(new_sizes)
    if math.prod(sizes) != mat.size:
        raise ShapeError(
            f"bcoo_reshape: an array of shape {mat.shape} cannot have the shape {sizes}"
        )
    layout = mat.layout
    old_batch, old_sparse, old_dense = layout.parts(mat.shape)
    if mat.shape == sizes:
        return mat
    for x in (mat.data, mat.indices):
        if x.shape[: layout.n_batch] != old_batch:
            raise NotImplementedError(
                "bcoo_reshape: reshape of arrays with broadcasted batch dimensions."
            )
    n_batch, n_dense = new_kinds(mat, sizes)
    end = len(sizes) - n_dense
    batch, sparse, dense = sizes[:n_batch], sizes[n_batch:end], sizes[end:]
    data = mat.data.reshape((*batch, layout.nse, *dense))
    inside = buffers.in_bounds(mat.indices, old_sparse)
    places = columns(mat.indices)
    index = unravelled(places, old_sparse, sparse, mat.indices)
    index = buffers.outside_unless(inside, index, sparse)
    if not sparse:
        data = data.reshape(mat.data.shape)
        data = buffers.where_stored(inside, data, len(old_dense))
        data = data.reshape((*batch, layout.nse, *dense))
    return BCOO(
        (data, index.reshape((*batch, layout.nse, len(sparse)))),
        shape=sizes,
        indices_sorted=mat.indices_sorted,
        unique_indices=mat.unique_indices,
    )


def unravelled(places: list[Array], old: Shape, new: Shape, like: Array) -> Array:
    """Indices in a shape as those in another of the same size."""
    if not new:
        return like[..., :0]
    flat = vnp.zeros(like.shape[:-1], like.dtype)
    for place, size in zip(places, old, strict=True):
        flat = flat * size + place
    out = []
    for size in reversed(new):
        out.append(flat % max(size, 1))
        flat = flat // max(size, 1)
    return vnp.stack(out[::-1], -1)


def new_kinds(mat: BCOO, sizes: Shape) -> tuple[int, int]:
    """The number of batch and dense dimensions a new shape has.

    Raises:
        ValueError: kinds of dimensions would mix.
    """
    batch, sparse, dense = mat.layout.parts(mat.shape)
    n_dense = len(dense)
    if n_dense and sizes[len(sizes) - n_dense :] != dense:
        raise ShapeError(
            f"bcoo_reshape from {mat.shape} to {sizes} cannot mix sparse and dense "
            f"dimensions, nor reshape the dense ones, {dense}"
        )
    rest = sizes[: len(sizes) - n_dense]
    fits = [
        k
        for k in range(len(rest) + 1)
        if math.prod(rest[:k]) == math.prod(batch)
        and math.prod(rest[k:]) == math.prod(sparse)
    ]
    if not fits:
        raise ShapeError(
            f"bcoo_reshape from {mat.shape} to {sizes} cannot mix batch and sparse "
            f"dimensions; the first {mat.n_batch} are batch dimensions"
        )
    if not batch:
        return 0, n_dense
    return (fits[0] if sparse else fits[-1]), n_dense


def bcoo_squeeze(arr: BCOO, *, dimensions: Sequence[int]) -> BCOO:
    """The array without dimensions of size 1.

    Raises:
        ValueError: a dimension has another size, or is out of range.
    """
    rank = arr.ndim
    if any([not -rank <= d < rank for d in dimensions]):
        raise ShapeError(
            f"bcoo_squeeze: dimensions {tuple(dimensions)} are out of range for shape "
            f"{arr.shape}"
        )
    gone = {d % rank for d in dimensions}
    if any([arr.shape[d] != 1 for d in gone]):
        raise ShapeError(
            f"bcoo_squeeze: dimensions {tuple(sorted(gone))} of shape {arr.shape} must "
            "have size 1"
        )
    layout = arr.layout
    batch, sparse, dense = layout.split(sorted(gone))
    n = layout.n_batch
    data, indices = arr.data, arr.indices
    if sparse:
        sizes = layout.parts(arr.shape)[1]
        data, indices = buffers.without(data, indices, sizes, sparse, layout.n_dense)
    data = lax.squeeze(data, [*batch, *[d + n + 1 for d in dense]])
    return BCOO(
        (data, lax.squeeze(indices, batch)),
        shape=[size for d, size in enumerate(arr.shape) if d not in gone],
        indices_sorted=arr.indices_sorted,
        unique_indices=arr.unique_indices,
    )
