"""Products with sparse arrays.

A product with a dense array reads, for each stored element, the part of the dense array
that it meets, and adds the product to the part of the result that it reaches::

    bcoo_dot_general(mat, x, dimension_numbers=(((1,), (0,)), ((), ())))

Products of two sparse arrays compare all pairs of stored elements. The product of one
matrix is a primitive, see `matmul`.
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from verax import lax, numpy as vnp
from verax.experimental.sparse import buffers
from verax.experimental.sparse.bcoo import BCOO
from verax.experimental.sparse.buffers import Layout, fully_batched, layout_of
from verax.experimental.sparse.layouts import relaid, trimmed
from verax.experimental.sparse.matmul import matrix_product, read_rows
from verax.experimental.sparse.util import Shape, batch_index
from verax.rules.values.array import Array
from verax.rules.values.sizes import ShapeError

type DimensionNumbers = tuple[
    tuple[Sequence[int], Sequence[int]], tuple[Sequence[int], Sequence[int]]
]


class Dims(NamedTuple):
    """The dimensions of a product: contracted and batch ones, and those left."""

    lhs_contract: Shape
    rhs_contract: Shape
    lhs_batch: Shape
    rhs_batch: Shape

    def free(self, lhs: int, rhs: int) -> tuple[list[int], list[int]]:
        """The dimensions of each operand that the result has."""
        left = {*self.lhs_contract, *self.lhs_batch}
        right = {*self.rhs_contract, *self.rhs_batch}
        return (
            [d for d in range(lhs) if d not in left],
            [d for d in range(rhs) if d not in right],
        )

    @property
    def swapped(self) -> "Dims":
        """The dimensions of the product with its operands swapped."""
        return Dims(
            self.rhs_contract, self.lhs_contract, self.rhs_batch, self.lhs_batch
        )


def checked_dims(numbers: DimensionNumbers, lhs: Shape, rhs: Shape) -> Dims:
    """The dimensions of a product.

    Raises:
        TypeError, ValueError: those of `lax.dot_general`.
    """
    (lhs_contract, rhs_contract), (lhs_batch, rhs_batch) = numbers
    out = Dims(
        as_axes(lhs_contract, len(lhs)),
        as_axes(rhs_contract, len(rhs)),
        as_axes(lhs_batch, len(lhs)),
        as_axes(rhs_batch, len(rhs)),
    )
    for name, ours, theirs in (
        ("contracting", out.lhs_contract, out.rhs_contract),
        ("batch", out.lhs_batch, out.rhs_batch),
    ):
        sizes = [lhs[d] for d in ours], [rhs[d] for d in theirs]
        if sizes[0] != sizes[1]:
            raise ShapeError(
                f"dot_general requires equal sizes of {name} dimensions: {sizes[0]} "
                f"of {lhs}, {sizes[1]} of {rhs}"
            )
    return out


def as_axes(axes: Sequence[int], rank: int) -> Shape:
    """Axes counted from the front.

    Raises:
        ValueError: one is out of range.
    """
    if any([not -rank <= d < rank for d in axes]):
        raise ShapeError(
            f"dot_general: axes {tuple(axes)} are out of range for {rank} dimensions"
        )
    return tuple([int(d) % rank for d in axes])


def is_matrix_product(layout: Layout, dims: Dims) -> bool:
    """Whether a product is that of one matrix, over one of its dimensions."""
    kinds = (layout.n_batch, layout.n_sparse, layout.n_dense)
    return kinds == (0, 2, 0) and len(dims.lhs_contract) == 1


def matrix_dot(
    data: Array, indices: Array, shape: Shape, rhs: Array, dims: Dims
) -> Array:
    """The product of one matrix by coordinates and a dense array."""
    [over], [axis] = dims.lhs_contract, dims.rhs_contract
    x = vnp.moveaxis(rhs, axis, 0)
    flat = x.reshape((x.shape[0], math.prod(x.shape[1:]))) if x.ndim > 2 else x
    row, col = indices[:, 1 - over], indices[:, over]
    out = matrix_product(data, row, col, flat, shape[1 - over])
    return out.reshape((out.shape[0], *x.shape[1:]))


def dot_general(
    data: Array, indices: Array, shape: Shape, rhs: Array, dims: Dims
) -> Array:
    """The product of a sparse array, as its buffers, and a dense one.

    Raises:
        NotImplementedError: a batch dimension of the product is not one of the array.
    """
    layout = layout_of(data, indices, shape)
    if any([d >= layout.n_batch for d in dims.lhs_batch]):
        raise NotImplementedError(
            "bcoo_dot_general: the batch dimensions of the product must be batch "
            f"dimensions of the sparse array, which has {layout.n_batch}, but they are "
            f"{dims.lhs_batch}; change its layout first, with bcoo_update_layout"
        )
    if is_matrix_product(layout, dims) and data.dtype == rhs.dtype:
        return matrix_dot(data, indices, shape, rhs, dims)
    terms, lhs_dense, rhs_free = met(data, indices, layout, shape, rhs, dims)
    return reached(terms, indices, layout, shape, dims, lhs_dense, rhs_free)


def met(
    data: Array, indices: Array, layout: Layout, shape: Shape, rhs: Array, dims: Dims
) -> tuple[Array, Shape, Shape]:
    """The product of each stored element and what it meets in the dense array.

    Returns:
        products of the shape `(*batch, nse, *lhs dense, *rhs free)`, and these shapes.
    """
    n_batch, last = layout.n_batch, layout.n_batch + layout.n_sparse
    batch = layout.parts(shape)[0]
    left, right = dims.lhs_batch + dims.lhs_contract, dims.rhs_batch + dims.rhs_contract
    pairs = [*zip(left, right, strict=True)]
    by_index = [(d, e) for d, e in pairs if d < last]
    by_sum = [(d, e) for d, e in pairs if d >= last]
    rest = dims.free(len(shape), rhs.ndim)[1]
    ordered = rhs.transpose([*[e for _, e in by_index], *[e for _, e in by_sum], *rest])
    iotas = batch_index(batch)
    index = [
        iotas[d] if d < n_batch else indices[..., d - n_batch] for d, _ in by_index
    ]
    if index:
        full = vnp.broadcast_shapes(*[i.shape for i in index])
        read = ordered.at[tuple([vnp.broadcast_to(i, full) for i in index])]
        part = read.get(mode="fill", fill_value=0)
    else:
        part = ordered.reshape((*[1] * (n_batch + 1), *ordered.shape))
    # part: (*batch, nse, *by_sum, *rest); data: (*batch, nse, *dense)
    dense = [d for d in range(last, len(shape)) if d not in [p for p, _ in by_sum]]
    lead = list(range(n_batch + 1))
    summed = list(range(n_batch + 1, n_batch + 1 + len(by_sum)))
    at = n_batch + 1 - last
    values = data.transpose(
        [*lead, *[d + at for d, _ in by_sum], *[d + at for d in dense]]
    )
    lhs_dense, rhs_free = as_sizes(shape, dense), as_sizes(rhs.shape, rest)
    values = values.reshape((*values.shape, *[1] * len(rest)))
    cut = n_batch + 1 + len(by_sum)
    part = part.reshape((*part.shape[:cut], *[1] * len(dense), *part.shape[cut:]))
    terms = values * part
    return (terms.sum(tuple(summed)) if summed else terms), lhs_dense, rhs_free


def as_sizes(shape: Sequence[int], axes: Sequence[int]) -> Shape:
    return tuple([shape[d] for d in axes])


def reached(
    terms: Array,
    indices: Array,
    layout: Layout,
    shape: Shape,
    dims: Dims,
    lhs_dense: Shape,
    rhs_free: Shape,
) -> Array:
    """The sums of the products that reach each element of the result."""
    n_batch, last = layout.n_batch, layout.n_batch + layout.n_sparse
    batch, sizes, _ = layout.parts(shape)
    free = [d for d in dims.free(len(shape), 0)[0] if d < last]
    kept = [*dims.lhs_batch, *free]
    out = (*as_sizes(shape, kept), *lhs_dense, *rhs_free)
    width = len(lhs_dense) + len(rhs_free)
    if layout.n_sparse:
        inside = buffers.in_bounds(indices, sizes)
        if any([d < n_batch for d in kept]) or not any([d >= n_batch for d in kept]):
            terms = buffers.where_stored(inside, terms, width)
    if all([d < n_batch for d in kept]):
        full = fully_batched(terms, batch)
        gone = [d for d in range(n_batch) if d not in kept]
        total: Array = full.sum((*gone, n_batch), dtype=terms.dtype)
        left = [d for d in range(n_batch) if d in kept]
        order = [left.index(d) for d in kept]
        return total.transpose([*order, *range(len(order), total.ndim)])
    full = fully_batched(terms, batch)
    iotas = batch_index(batch)
    index = tuple(
        [
            vnp.broadcast_to(
                iotas[d] if d < n_batch else indices[..., d - n_batch],
                full.shape[: n_batch + 1],
            )
            for d in kept
        ]
    )
    total = vnp.zeros(out, terms.dtype).at[index].add(full, mode="drop")
    return total


def promoted(lhs: object, rhs: object, preferred: Any) -> Any:
    """The dtype in which a product is computed."""
    return vnp.result_type(lhs, rhs) if preferred is None else vnp.dtype(preferred)


def bcoo_dot_general(
    lhs: Any,
    rhs: Any,
    *,
    dimension_numbers: DimensionNumbers,
    precision: object = None,
    preferred_element_type: Any = None,
    out_sharding: object = None,
) -> Any:
    """The product of two arrays, of which one or both are sparse: `lax.dot_general`.

    The result is dense, except for that of two sparse arrays.

    Args:
        lhs, rhs: arrays or `BCOO` arrays. Batch dimensions of the product must be batch
            dimensions of a sparse operand.
        dimension_numbers: as `lax.dot_general` takes them.
        precision: taken and ignored: products of elements are exact to rounding.
        preferred_element_type: the dtype of the result.
        out_sharding: must be None.
    """
    if out_sharding is not None:
        raise NotImplementedError("bcoo_dot_general: out_sharding")
    dims = checked_dims(dimension_numbers, tuple(lhs.shape), tuple(rhs.shape))
    dtype = promoted(lhs.dtype, rhs.dtype, preferred_element_type)
    if isinstance(lhs, BCOO) and isinstance(rhs, BCOO):
        return spdot_general(lhs.astype(dtype), rhs.astype(dtype), dims)
    if isinstance(lhs, BCOO):
        return sparse_dense(lhs, vnp.asarray(rhs), dims, dtype)
    if not isinstance(rhs, BCOO):
        return lax.dot_general(
            lhs,
            rhs,
            dimension_numbers,
            precision,
            preferred_element_type=preferred_element_type,
        )
    left = vnp.asarray(lhs)
    product = sparse_dense(rhs, left, dims.swapped, dtype)
    n_batch = len(dims.lhs_batch)
    n_left, n_right = map(len, dims.free(left.ndim, rhs.ndim))
    return product.transpose(
        [
            *range(n_batch),
            *range(n_batch + n_right, n_batch + n_right + n_left),
            *range(n_batch, n_batch + n_right),
        ]
    )


def sparse_dense(mat: BCOO, rhs: Array, dims: Dims, dtype: object) -> Array:
    """The product of a sparse array and a dense one, computed in a dtype."""
    data, right = mat.data.astype(dtype), rhs.astype(dtype)
    return dot_general(data, mat.indices, mat.shape, right, dims)


def bcoo_dot_general_sampled(
    A: object, B: object, indices: object, *, dimension_numbers: DimensionNumbers
) -> Array:
    """The elements of a product of dense arrays at the indices of a sparse one.

    Args:
        A, B: dense arrays.
        indices: the indices of a `BCOO` array of the product's shape.
        dimension_numbers: as `lax.dot_general` takes them.

    Returns:
        the data that belongs to the indices.
    """
    lhs, rhs, index = vnp.asarray(A), vnp.asarray(B), vnp.asarray(indices)
    dims = checked_dims(dimension_numbers, lhs.shape, rhs.shape)
    left, right = dims.free(lhs.ndim, rhs.ndim)
    simple = len(left) == len(right) == 1 and not dims.lhs_batch
    if not (simple and index.shape[-1] == 2 and index.ndim == 2):
        product = lax.dot_general(lhs, rhs, dimension_numbers)
        return buffers.extract(index, product)
    rows = lhs.transpose([*left, *dims.lhs_contract])
    cols = rhs.transpose([*right, *dims.rhs_contract])
    x, y = read_rows(rows, index[:, 0]), read_rows(cols, index[:, 1])
    out: Array = (x * y).sum(tuple(range(1, x.ndim)))
    return out


def spdot_general(lhs: BCOO, rhs: BCOO, dims: Dims) -> BCOO:
    """The product of two sparse arrays, from all pairs of stored elements.

    Raises:
        NotImplementedError: an operand has dense dimensions, or dimensions that meet
            are stored in different ways.
        ValueError: the result has no layout in which batch dimensions come first.
    """
    check_spdot(lhs, rhs, dims)
    left, right = dims.free(lhs.ndim, rhs.ndim)
    x, y = batch_first(lhs, dims.lhs_batch), batch_first(rhs, dims.rhs_batch)
    shared = len(dims.lhs_batch)
    # To (*shared, *lhs batch, *rhs batch, nse, ...): the other's dimensions are 1.
    extra = (lhs.n_batch - shared, rhs.n_batch - shared)
    at = shared + extra[0]
    x_data, x_index = [with_ones(b, at, extra[1]) for b in x]
    y_data, y_index = [with_ones(b, shared, extra[0]) for b in y]
    count = shared + sum(extra)
    meet = [
        (d - lhs.n_batch, e - rhs.n_batch)
        for d, e in zip(dims.lhs_contract, dims.rhs_contract, strict=True)
    ]
    kept = [d - lhs.n_batch for d in left if d >= lhs.n_batch]
    also = [d - rhs.n_batch for d in right if d >= rhs.n_batch]
    sizes = [lhs.shape[lhs.n_batch + d] for d in kept]
    sizes += [rhs.shape[rhs.n_batch + d] for d in also]
    x_in = buffers.in_bounds(x_index, lhs.shape[lhs.n_batch :])[..., :, None]
    y_in = buffers.in_bounds(y_index, rhs.shape[rhs.n_batch :])[..., None, :]
    hit = x_in & y_in
    for d, e in meet:
        hit = hit & (x_index[..., :, None, d] == y_index[..., None, :, e])
    dtype = vnp.result_type(x_index, y_index)
    free = [x_index[..., :, None, d].astype(dtype) for d in kept]
    free += [y_index[..., None, :, e].astype(dtype) for e in also]
    products = x_data[..., :, None] * y_data[..., None, :]
    data = vnp.where(hit, products, vnp.zeros((), products.dtype))
    flat = (*hit.shape[:count], math.prod(hit.shape[count:]))
    index = (
        vnp.stack([vnp.broadcast_to(f, hit.shape).reshape(flat) for f in free], -1)
        if free
        else vnp.zeros((*flat, 0), dtype)
    )
    index = buffers.outside_unless(hit.reshape(flat), index, sizes)
    shape = (
        *as_sizes(lhs.shape, dims.lhs_batch),
        *as_sizes(lhs.shape, left),
        *as_sizes(rhs.shape, right),
    )
    values = data.reshape((*data.shape[:count], flat[-1]))
    out = buffers.within(values, index, shape)
    trimmed = out[1] is not index
    return BCOO(out, shape=shape, indices_sorted=trimmed, unique_indices=trimmed)


def check_spdot(lhs: BCOO, rhs: BCOO, dims: Dims) -> None:
    """Raise for products of sparse arrays that have no layout."""
    if lhs.n_dense or rhs.n_dense:
        raise NotImplementedError(
            "bcoo_dot_general of two arrays with dense dimensions"
        )
    meets = (
        (lhs, dims.lhs_batch, dims.lhs_contract),
        (rhs, dims.rhs_batch, dims.rhs_contract),
    )
    for mat, batch, contract in meets:
        if any([d >= mat.n_batch for d in batch]):
            raise NotImplementedError(
                "bcoo_dot_general of two sparse arrays: batch dimensions of the "
                "product must be batch dimensions of both; see bcoo_update_layout"
            )
        if any([d < mat.n_batch for d in contract]):
            raise NotImplementedError(
                "bcoo_dot_general of two sparse arrays cannot contract batch "
                "dimensions; see bcoo_update_layout"
            )
    left = lhs.ndim - lhs.n_batch - len(dims.lhs_contract)
    if rhs.n_batch > len(dims.rhs_batch) and left:
        raise ValueError(
            "bcoo_dot_general: cannot have unused batch dims on rhs with unused sparse "
            "dims on lhs."
        )


def batch_first(mat: BCOO, axes: Shape) -> tuple[Array, Array]:
    """The buffers with these batch dimensions in front of the others."""
    order = [*axes, *[d for d in range(mat.n_batch) if d not in axes]]
    n = mat.n_batch
    return mat.data.transpose([*order, n]), mat.indices.transpose([*order, n, n + 1])


def with_ones(x: Array, axis: int, count: int) -> Array:
    """An array with more dimensions of size 1."""
    return vnp.expand_dims(x, tuple(range(axis, axis + count)))


def bcoo_multiply_dense(sp_mat: BCOO, v: object) -> Array:
    """The data of a sparse array times a dense one, which broadcasts to its shape.

    Raises:
        ValueError: it does not broadcast.
    """
    x = vnp.asarray(v)
    return sp_mat.data * met_elements(sp_mat, x)


def met_elements(mat: BCOO, x: Array, fill: int = 0) -> Array:
    """The elements of a dense array where a sparse one stores some.

    The dense array broadcasts to the shape of the sparse one, and the result to that of
    its data; padding meets the number `fill`.

    Raises:
        ValueError: the array does not broadcast.
    """
    shape = mat.shape
    sizes = (*[1] * (mat.ndim - x.ndim), *x.shape)
    if x.ndim > mat.ndim or any(
        [k not in (1, n) for k, n in zip(sizes, shape, strict=False)]
    ):
        raise ShapeError(
            f"the dense array, of shape {x.shape}, does not broadcast to the shape of "
            f"the sparse one, {shape}"
        )
    layout = mat.layout
    batch, sparse, dense = layout.parts(sizes)
    read = [i for i, size in enumerate(sparse) if size != 1]
    if not read:
        return x.reshape((*batch, 1, *dense)) if x.ndim else x
    flat = x.reshape((*batch, *[sparse[i] for i in read], *dense))
    index = (*batch_index(batch), *[mat.indices[..., i] for i in read])
    entry: Array = flat.at[index].get(mode="fill", fill_value=fill)
    return entry


def bcoo_multiply_sparse(lhs: BCOO, rhs: BCOO) -> BCOO:
    """The product of two sparse arrays, element by element.

    Sizes of 1 broadcast. The result stores what the operand stores that has its shape;
    where neither has, all pairs of stored elements.

    Raises:
        ValueError: shapes do not broadcast, or have different numbers of dimensions.
    """
    if lhs.ndim != rhs.ndim:
        raise ShapeError(
            "bcoo_multiply_sparse takes arrays with the same number of dimensions, not "
            f"{lhs.shape} and {rhs.shape}"
        )
    shape = vnp.broadcast_shapes(lhs.shape, rhs.shape)
    dtype = vnp.result_type(lhs.data, rhs.data)
    lhs, rhs = lhs.astype(dtype), rhs.astype(dtype)
    alike = lhs.indices is rhs.indices and lhs.shape == rhs.shape
    if alike and (lhs.unique_indices or rhs.unique_indices):
        return lhs.with_data(lhs.data * rhs.data)
    n_batch = min(lhs.n_batch, rhs.n_batch)
    n_dense = min(lhs.n_dense, rhs.n_dense)
    lhs, rhs = relaid(lhs, n_batch, n_dense), relaid(rhs, n_batch, n_dense)
    own = slice(n_batch, n_batch + lhs.n_sparse)
    if lhs.shape[own] == shape[own]:
        data, indices = looked_up(lhs, rhs)
        flags = lhs
    elif rhs.shape[own] == shape[own]:
        data, indices = looked_up(rhs, lhs)
        flags = rhs
    else:
        return crossed(lhs, rhs, shape)
    return BCOO(
        (data, indices),
        shape=shape,
        indices_sorted=flags.indices_sorted,
        unique_indices=flags.unique_indices,
    )


def looked_up(x: BCOO, y: BCOO) -> tuple[Array, Array]:
    """The elements that `x` stores, times those of `y` at the same indices.

    Indices of both are sorted together, so that those of one element are neighbours.
    """
    n, sizes = x.n_batch, x.layout.parts(x.shape)[1]
    used = [i for i, size in enumerate(y.shape[n : n + y.n_sparse]) if size == sizes[i]]
    pick = np.array(used, np.int32)
    limits = [sizes[i] for i in used]
    batch = buffers.common_batch(x.indices, y.indices, n_batch=n)
    dtype = vnp.result_type(x.indices, y.indices)
    both, marks = [], []
    for mat in (x, y):
        inside = buffers.in_bounds(mat.indices, mat.shape[n : n + mat.n_sparse])
        index = buffers.outside_unless(
            inside, mat.indices[..., pick].astype(dtype), limits
        )
        both.append(fully_batched(index, batch))
        marks.append(inside)
    order = buffers.sorted_indices(vnp.concatenate(both, n), limits)
    group = vnp.cumsum(order.first, -1, dtype=np.int32) - 1
    iotas = batch_index(group.shape[:-1])
    places = vnp.zeros_like(group).at[(*iotas, order.places)].set(group)
    values = buffers.where_stored(marks[1], y.data, y.n_dense)
    whole = vnp.broadcast_shapes(batch, values.shape[:n])
    values = fully_batched(values, whole)
    count = group.shape[-1]
    sums = vnp.zeros((*whole, count, *values.shape[n + 1 :]), values.dtype)
    iotas = batch_index(whole)
    sums = sums.at[(*iotas, places[..., x.nse :])].add(values)
    result = sums[(*iotas, places[..., : x.nse])]
    data = buffers.where_stored(marks[0], x.data * result, max(x.n_dense, y.n_dense))
    return data, x.indices


def crossed(lhs: BCOO, rhs: BCOO, shape: Shape) -> BCOO:
    """The products of all pairs of stored elements that meet."""
    n, count = lhs.n_batch, lhs.n_sparse
    x, y = lhs.indices[..., :, None, :], rhs.indices[..., None, :, :]
    hit = buffers.in_bounds(lhs.indices, lhs.shape[n : n + count])[..., :, None]
    hit = hit & buffers.in_bounds(rhs.indices, rhs.shape[n : n + count])[..., None, :]
    free = []
    for i in range(count):
        ours, theirs = lhs.shape[n + i], rhs.shape[n + i]
        if ours == theirs:
            hit = hit & (x[..., i] == y[..., i])
        free.append(x[..., i] if theirs in (1, ours) else y[..., i])
    full = hit.shape
    flat = (*full[:n], full[n] * full[n + 1])
    index = vnp.stack([vnp.broadcast_to(f, full).reshape(flat) for f in free], -1)
    index = buffers.outside_unless(hit.reshape(flat), index, shape[n : n + count])
    values = vnp.expand_dims(lhs.data, n + 1) * vnp.expand_dims(rhs.data, n)
    values = buffers.where_stored(hit, values, lhs.n_dense)
    values = values.reshape((*values.shape[:n], flat[-1], *values.shape[n + 2 :]))
    return trimmed(BCOO((values, index), shape=shape))
