"""Parts and sums of sparse arrays.

A part keeps the stored elements and makes padding of those that are not in it, unless
fewer fit; a sum drops the indices that it sums over::

    bcoo_slice(mat, start_indices=(0, 1), limit_indices=(2, 3))
    bcoo_reduce_sum(mat, axes=(0,))
"""

from collections.abc import Sequence

import numpy as np

from verax import lax, numpy as vnp
from verax.api.vmap import vmap
from verax.experimental.sparse import buffers
from verax.experimental.sparse.base import JAXSparse
from verax.experimental.sparse.bcoo import BCOO, bcoo_fromdense, bcoo_transpose
from verax.experimental.sparse.buffers import fully_batched
from verax.experimental.sparse.layouts import bcoo_squeeze, relaid, trimmed
from verax.experimental.sparse.util import as_shape, row_of
from verax.ir.dtypes import DTypeLike, as_dtype, stored_dtype
from verax.ops.indexing.geometry import GatherDimensionNumbers, GatherScatterMode
from verax.rules.values.array import Array
from verax.rules.values.sizes import ShapeError


def bcoo_slice(
    mat: BCOO,
    *,
    start_indices: Sequence[int],
    limit_indices: Sequence[int],
    strides: Sequence[int] | None = None,
) -> BCOO:
    """A part of the array, as `lax.slice`.

    Raises:
        ValueError: there is not an index for each dimension, or one is out of range.
    """
    starts, limits = as_shape(start_indices), as_shape(limit_indices)
    steps = (1,) * mat.ndim if strides is None else as_shape(strides)
    if not len(starts) == len(limits) == len(steps) == mat.ndim:
        raise ShapeError(
            f"bcoo_slice: {len(starts)} starts, {len(limits)} limits and {len(steps)} "
            f"strides are given for an array of {mat.ndim} dimensions"
        )
    ranges = list(zip(starts, limits, mat.shape, steps, strict=True))
    if any([not 0 <= a <= b <= n or s < 1 for a, b, n, s in ranges]):
        raise ShapeError(
            f"bcoo_slice: starts {starts}, limits {limits} and strides {steps} do not "
            f"fit the shape {mat.shape}"
        )
    shape = tuple([-(-(b - a) // s) for a, b, _, s in ranges])
    layout = mat.layout
    n, last = layout.n_batch, layout.n_batch + layout.n_sparse
    cuts = [slice(a, b, s) for a, b, _, s in ranges]
    data = mat.data[(*batch_cuts(mat.data, mat, cuts), slice(None), *cuts[last:])]
    indices = mat.indices[tuple(batch_cuts(mat.indices, mat, cuts))]
    if all(
        [
            cut == (0, size, size, 1)
            for cut, size in zip(ranges[n:last], mat.shape[n:last], strict=True)
        ]
    ):
        return BCOO(
            (data, indices),
            shape=shape,
            indices_sorted=mat.indices_sorted,
            unique_indices=mat.unique_indices,
        )
    a, b, s = (row_of([cut[i] for cut in ranges[n:last]], indices) for i in (0, 1, 3))
    inside = (indices >= a) & (indices < b)
    moved = indices - a
    if (s != 1).any():
        inside, moved = inside & (moved % s == 0), moved // s
    return part(mat, data, moved, inside.all(-1), shape)


def batch_cuts(x: Array, mat: BCOO, cuts: Sequence[slice]) -> list[slice]:
    """Cuts for the batch dimensions of a buffer, of which 1 stands for any size."""
    return [
        cut if n == size else slice(0, min(1, len(range(*cut.indices(size)))))
        for cut, n, size in zip(cuts, x.shape[: mat.n_batch], mat.shape, strict=False)
    ]


def part(
    mat: BCOO, data: Array, indices: Array, inside: Array, shape: Sequence[int]
) -> BCOO:
    """An array of the stored elements that are inside; others become padding."""
    n = mat.n_batch
    sizes = shape[n : n + mat.n_sparse]
    made = BCOO(
        (
            buffers.where_stored(inside, data, mat.n_dense),
            buffers.outside_unless(inside, indices, sizes),
        ),
        shape=shape,
        unique_indices=mat.unique_indices,
    )
    return trimmed(made)


def bcoo_dynamic_slice(
    mat: BCOO, start_indices: Sequence[object], slice_sizes: Sequence[int]
) -> BCOO:
    """A part of the array that starts where values say, as `lax.dynamic_slice`.

    Starts are moved so that the part fits into the array.

    Raises:
        ValueError: sizes do not fit the array, or there is not one for each dimension.
    """
    sizes = as_shape(slice_sizes)
    if not len(start_indices) == len(sizes) == mat.ndim:
        raise ShapeError(
            f"bcoo_dynamic_slice: {len(start_indices)} starts and {len(sizes)} sizes "
            f"are given for an array of {mat.ndim} dimensions"
        )
    if any([not 0 <= k <= n for k, n in zip(sizes, mat.shape, strict=True)]):
        raise ShapeError(
            f"bcoo_dynamic_slice: sizes {sizes} do not fit the shape {mat.shape}"
        )
    starts = [
        clamped(start, n, k)
        for start, n, k in zip(start_indices, mat.shape, sizes, strict=True)
    ]
    layout = mat.layout
    n, last = layout.n_batch, layout.n_batch + layout.n_sparse
    zero = vnp.zeros((), np.int32)
    data = cut_at(mat.data, n, starts, sizes, mat.shape)
    if layout.n_dense:
        data = lax.dynamic_slice(
            data,
            [*[zero] * (n + 1), *starts[last:]],
            (*data.shape[: n + 1], *sizes[last:]),
        )
    indices = cut_at(mat.indices, n, starts, sizes, mat.shape)
    if sizes[n:last] == mat.shape[n:last]:
        return BCOO(
            (data, indices),
            shape=sizes,
            indices_sorted=mat.indices_sorted,
            unique_indices=mat.unique_indices,
        )
    a = vnp.stack(starts[n:last]).astype(indices.dtype)
    a = a.reshape((*[1] * (indices.ndim - 1), last - n))
    widths = row_of(sizes[n:last], indices)
    inside = ((indices >= a) & (indices < a + widths)).all(-1)
    return part(mat, data, indices - a, inside, sizes)


def clamped(start: object, size: int, width: int) -> Array:
    """A start moved so that `width` elements fit; negative ones count from the end."""
    x = vnp.asarray(start)
    x = vnp.where(x < 0, x + np.array(size, stored_dtype(x.dtype)), x)
    return vnp.clip(x, 0, size - width).astype(np.int32)


def cut_at(
    x: Array,
    n: int,
    starts: Sequence[Array],
    sizes: Sequence[int],
    shape: Sequence[int],
) -> Array:
    """The batch dimensions of a buffer cut, of which 1 stands for any size."""
    zero = vnp.zeros((), np.int32)
    at = [starts[d] if x.shape[d] == shape[d] else zero for d in range(n)]
    widths = [
        sizes[d] if x.shape[d] == shape[d] else min(1, sizes[d]) for d in range(n)
    ]
    if tuple(widths) == x.shape[:n]:
        return x
    rest = x.shape[n:]
    return lax.dynamic_slice(x, [*at, *[zero] * len(rest)], (*widths, *rest))


def bcoo_gather(
    operand: BCOO,
    start_indices: object,
    dimension_numbers: GatherDimensionNumbers,
    slice_sizes: Sequence[int],
    *,
    unique_indices: bool = False,
    indices_are_sorted: bool = False,
    mode: str | GatherScatterMode | None = None,
    fill_value: object = None,
) -> BCOO:
    """Several parts of the array, as `lax.gather`, in batch dimensions of the result.

    Raises:
        NotImplementedError: parts may be outside of the array and filled, dimensions
            are batched, or batch dimensions of the result would not come first.
    """
    mode = lax.GatherScatterMode.from_any(mode)
    inside = (lax.GatherScatterMode.PROMISE_IN_BOUNDS, lax.GatherScatterMode.CLIP)
    if mode not in inside and mode != lax.GatherScatterMode.FILL_OR_DROP:
        raise NotImplementedError(f"bcoo_gather: mode={mode}")
    starts = vnp.asarray(start_indices)
    numbers = dimension_numbers
    if getattr(numbers, "operand_batching_dims", ()):
        raise NotImplementedError("bcoo_gather: operand_batching_dims")
    n_parts = starts.ndim - 1
    axes = np.array(numbers.start_index_map, np.int32)
    full = vnp.zeros((*starts.shape[:-1], operand.ndim), np.int32)
    full = full.at[..., axes].set(starts.astype(np.int32))
    collapsed = tuple(numbers.collapsed_slice_dims)
    kept = [n for d, n in enumerate(slice_sizes) if d not in collapsed]
    limits = [n - k for n, k in zip(operand.shape, slice_sizes, strict=True)]
    outside = ((full < 0) | (full > row_of(limits, full))).any(-1)
    fills = mode == lax.GatherScatterMode.FILL_OR_DROP

    def cut(start: Array, gone: Array) -> tuple[Array, Array]:
        start = vnp.clip(start, 0, np.array(limits, np.int32))
        piece = bcoo_dynamic_slice(operand, list(start), slice_sizes)
        piece = bcoo_squeeze(piece, dimensions=collapsed)
        data = piece.data
        if fills:
            data = vnp.where(gone, vnp.zeros((), data.dtype), data)
        return data, piece.indices

    cuts = cut
    for _ in range(n_parts):
        cuts = vmap(cuts)
    shape = (*starts.shape[:-1], *kept)
    piece = BCOO(cuts(full, outside), shape=shape)
    order = gathered_order(tuple(numbers.offset_dims), n_parts, len(shape))
    if order == list(range(len(shape))):
        return piece
    n = piece.n_batch
    if any([d >= n for d in order[:n]]):  # batch dimensions would not come first
        piece = relaid(piece, 0, piece.n_dense)
    return bcoo_transpose(piece, permutation=order)


def gathered_order(offset: Sequence[int], n_parts: int, rank: int) -> list[int]:
    """The order of the result's dimensions, if parts come first in a stack."""
    parts = iter(range(n_parts))
    rest = iter(range(n_parts, rank))
    return [next(rest) if d in offset else next(parts) for d in range(rank)]


def bcoo_rev(operand: BCOO, dimensions: Sequence[int]) -> BCOO:
    """The array with the order of elements reversed along dimensions.

    Raises:
        ValueError: a dimension is out of range, or is there twice.
    """
    rank = operand.ndim
    axes = as_shape(dimensions)
    if any([not -rank <= d < rank for d in axes]):
        raise ShapeError(
            f"bcoo_rev: dimensions {axes} are out of range for shape {operand.shape}"
        )
    axes = tuple(sorted([d % rank for d in axes]))
    if len(set(axes)) != len(axes):
        raise ShapeError(f"bcoo_rev: dimensions {axes} must be different")
    layout = operand.layout
    batch, sparse, dense = layout.split(axes)
    n = layout.n_batch
    data = lax.rev(operand.data, [*batch, *[d + n + 1 for d in dense]])
    indices = lax.rev(operand.indices, batch)
    if sparse:
        sizes = layout.parts(operand.shape)[1]
        inside = buffers.in_bounds(indices, sizes)
        turned = row_of([d in sparse for d in range(len(sizes))], indices) != 0
        last = row_of(sizes, indices) - 1
        indices = vnp.where(turned, last - indices, indices)
        indices = buffers.outside_unless(inside, indices, sizes)
    return BCOO(
        (data, indices),
        shape=operand.shape,
        indices_sorted=operand.indices_sorted and not sparse,
        unique_indices=operand.unique_indices,
    )


def bcoo_reduce_sum(mat: BCOO, *, axes: Sequence[int]) -> BCOO:
    """The sum over axes, of which indices are dropped.

    Raises:
        ValueError: an axis is out of range, or is there twice.
    """
    rank = mat.ndim
    result = as_shape(axes)
    if any([not -rank <= d < rank for d in result]):
        raise ShapeError(
            f"bcoo_reduce_sum: axes {result} are out of range for shape {mat.shape}"
        )
    gone = sorted({d % rank for d in result})
    if len(gone) != len(result):
        raise ShapeError(f"bcoo_reduce_sum: axes {result} must be different")
    layout = mat.layout
    batch, sparse, dense = layout.split(gone)
    n = layout.n_batch
    data, indices = mat.data, mat.indices
    if dense:
        data = data.sum(tuple([d + n + 1 for d in dense]), dtype=data.dtype)
    n_dense = layout.n_dense - len(dense)
    if sparse:
        sizes = layout.parts(mat.shape)[1]
        data, indices = buffers.without(data, indices, sizes, sparse, n_dense)
    if batch:
        data, indices = summed_batch(data, indices, batch, mat.shape[:n])
    shape = [size for d, size in enumerate(mat.shape) if d not in gone]
    return BCOO(
        (data, indices),
        shape=shape,
        indices_sorted=mat.indices_sorted and not sparse and not batch,
        unique_indices=mat.unique_indices and not sparse and not batch,
    )


def summed_batch(
    data: Array, indices: Array, batch: Sequence[int], shape: Sequence[int]
) -> tuple[Array, Array]:
    """The elements of all parts along batch dimensions as those of one."""
    n = len(shape)
    kept = [d for d in range(n) if d not in batch]

    def joined(x: Array) -> Array:
        full = [shape[d] if d in batch else x.shape[d] for d in range(n)]
        x = fully_batched(x, tuple(full))
        x = x.transpose([*kept, *batch, *range(n, x.ndim)])
        count = int(np.prod([shape[d] for d in batch], dtype=np.int64))
        lead = x.shape[: len(kept)]
        return x.reshape((*lead, count * x.shape[n], *x.shape[n + 1 :]))

    return joined(data), joined(indices)


def bcoo_conv_general_dilated(
    lhs: object,
    rhs: object,
    *,
    window_strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: object = None,
    feature_group_count: int = 1,
    batch_group_count: int = 1,
    precision: object = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: object = None,
) -> BCOO:
    """The convolution of two arrays in one dimension, one or both of them sparse.

    Arrays have the shape (1, 1, n): one batch element, one feature.

    Raises:
        NotImplementedError: for other shapes, and for strides, dilations, groups and
            orders of dimensions that are not the default.
    """
    operands = [x if isinstance(x, BCOO) else vnp.asarray(x) for x in (lhs, rhs)]
    check_conv(
        operands,
        [[*window_strides], *[[*d] for d in (lhs_dilation, rhs_dilation) if d]],
        dimension_numbers,
        (feature_group_count, batch_group_count),
        out_sharding,
    )
    dtype = vnp.result_type(*[x.dtype for x in operands])
    if preferred_element_type is not None:
        dtype = as_dtype(preferred_element_type)
    sizes = [x.shape[2] for x in operands]
    if isinstance(padding, str):
        padding = lax.padtype_to_pads(sizes[:1], sizes[1:], [1], padding)
    [(before, after)] = padding
    x, y = (as_line(x.astype(dtype)) for x in operands)
    # Output o is the sum of x[i] y[j] with i = o + j - before.
    count = sizes[0] + before + after - sizes[1] + 1
    place = x.indices + before - y.indices.T
    inside = buffers.in_bounds(x.indices, sizes[:1])[:, None]
    inside = inside & buffers.in_bounds(y.indices, sizes[1:])[None, :]
    inside = inside & (place >= 0) & (place < count)
    products = x.data[:, None] * y.data[None, :]
    data = vnp.where(inside, products, vnp.zeros((), dtype)).reshape(-1)
    indices = vnp.where(inside, place, max(count, 0)).reshape((-1, 1))
    out = trimmed(BCOO((data, indices), shape=(max(count, 0),)))
    return BCOO(
        (out.data[None, None], out.indices[None, None]),
        shape=(1, 1, max(count, 0)),
        indices_sorted=out.indices_sorted,
        unique_indices=out.unique_indices,
    )


def check_conv(
    operands: Sequence[Array | JAXSparse],
    steps: Sequence[Sequence[int]],
    dimension_numbers: object,
    groups: tuple[int, int],
    sharding: object,
) -> None:
    """Raise NotImplementedError unless this is a convolution of two lines."""
    if any([x.ndim != 3 or tuple(x.shape[:2]) != (1, 1) for x in operands]):
        raise NotImplementedError(
            "bcoo_conv_general_dilated takes arrays of shape (1, 1, n), not "
            f"{tuple(operands[0].shape)} and {tuple(operands[1].shape)}"
        )
    plain = lax.conv_dimension_numbers((1, 1, 1), (1, 1, 1), None)
    numbers = lax.conv_dimension_numbers((1, 1, 1), (1, 1, 1), dimension_numbers)
    usual = groups == (1, 1) and numbers == plain and sharding is None
    if not usual or any([list(step) != [1] for step in steps]):
        raise NotImplementedError(
            "bcoo_conv_general_dilated: strides, dilations, groups and orders of "
            "dimensions other than the default"
        )


def as_line(x: Array | BCOO) -> BCOO:
    """An array of shape (1, 1, n) as a sparse one of shape (n,)."""
    if isinstance(x, BCOO):
        return bcoo_squeeze(relaid(x, 0, 0), dimensions=(0, 1))
    return bcoo_fromdense(x[0, 0], nse=x.shape[2])
