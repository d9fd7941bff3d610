"""The product of one sparse matrix and a dense array, as a primitive.

It means a gather, a product and sums, and lowers to these, but on CPU, where XLA adds
one element after another, SciPy computes large products by compressed rows and those
with a matrix. Its transpose is a product of this kind::

    matrix_product(data, row, col, x, rows=3)
"""

from collections.abc import Sequence
from functools import reduce
from operator import and_
from random import Random

import numpy as np
from attrs import frozen

from verax import numpy as vnp
from verax.experimental.sparse import buffers
from verax.ir.avals import ShapedArray
from verax.ir.dtypes import complex64, float16, float32, int32, uint8
from verax.ir.jaxpr import Params
from verax.rules.programs.derived import OnHost, by_composition, composite
from verax.rules.rows.emitter import Emitter, Operand
from verax.rules.rows.row import (
    REALS,
    Axis,
    Domain,
    Engine,
    Known,
    Linear,
    NDArray,
    Row,
    Sample,
    Tangent,
    Zero,
)
from verax.rules.values.array import Array
from verax.rules.values.conversions import NotLinear
from verax.rules.values.sizes import draw_sizes

LARGE = 1 << 16
"""From so many products of elements on, a call of the host is faster."""


@frozen(cache_hash=True, repr=False)
class ProductParams(Params):
    """The rows of the matrix; whether it is stored by rows, not by coordinates."""

    rows: int
    compressed: bool


def rows_of(indptr: Array, nse: int) -> Array:
    """The row of each stored element; that of padding, at either end, is outside."""
    dtype = vnp.promote_types(indptr.dtype, np.int32)
    steps = vnp.zeros(nse, dtype).at[indptr].add(1, mode="drop")
    row = vnp.cumsum(steps, dtype=dtype) - 1
    return vnp.where(row < 0, indptr.shape[0] - 1, row)


def row_indices(p: ProductParams, first: Array, nse: int) -> Array:
    """The row of each stored element, from the second operand."""
    return rows_of(first, nse) if p.compressed else first


def read_rows(x: Array, index: Array) -> Array:
    """The rows at these indices; zeros outside, as everywhere in an empty array."""
    if not x.shape[0]:
        return vnp.zeros((*index.shape, *x.shape[1:]), x.dtype)
    entry: Array = x.at[index].get(mode="fill", fill_value=0)
    return entry


def stored(terms: Array, *places: tuple[Array, int]) -> Array:
    """The terms of what is stored: those of padding are zeros, even of NaNs."""
    kept = reduce(and_, [within(place, size) for place, size in places])
    return buffers.where_stored(kept, terms, terms.ndim - 1)


def within(place: Array, size: int) -> Array:
    """Whether indices lie within a dimension of this size."""
    index = place.astype(vnp.promote_types(place.dtype, np.int32))
    return (index >= -size) & (index < size)


def product_by_sums(
    p: ProductParams, data: Array, first: Array, col: Array, x: Array
) -> Array:
    """The product by sums, which is the primitive's meaning."""
    row = row_indices(p, first, col.shape[0])
    terms = data.reshape((*data.shape, *[1] * (x.ndim - 1))) * read_rows(x, col)
    out = vnp.zeros((p.rows, *x.shape[1:]), terms.dtype)
    total: Array = out.at[row].add(stored(terms, (col, x.shape[0])), mode="drop")
    return total


def inside(index: NDArray, size: int) -> bool:
    """Whether all indices are inside, in one pass: negative ones are large."""
    unsigned = index.view(f"u{index.dtype.itemsize}")
    return not index.size or int(unsigned.max()) < size


def product_on_host(
    engine: Engine, p: ProductParams, xs: Sequence[NDArray]
) -> tuple[NDArray]:
    """The product by SciPy's kernels, which trust the indices that they get."""
    data, first, col, x = xs
    kind = np.promote_types(first.dtype, col.dtype)
    if data.dtype.char not in "fdFDilILqQ" or kind.char not in "ilq":
        return (product_by_numpy(p, data, first, col, x),)
    first, col = (np.ascontiguousarray(i, kind) for i in (first, col))
    out = np.zeros((p.rows, *x.shape[1:]), data.dtype)
    if p.compressed:
        falls = (first[1:] < first[:-1]).any()
        whole = first[0] == 0 and first[-1] <= col.size and not falls
    else:
        whole = inside(first, p.rows)
    if not (whole and inside(col, x.shape[0])):
        return (product_by_numpy(p, data, first, col, x),)
    flat = (np.ascontiguousarray(data), np.ascontiguousarray(x).reshape(-1))
    shape = (p.rows, x.shape[0])
    from scipy.sparse._sparsetools import coo_matvec, coo_tocsr, csr_matvec, csr_matvecs

    if p.compressed and x.ndim == 1:
        csr_matvec(*shape, first, col, *flat, out)
    elif p.compressed:
        csr_matvecs(*shape, x.shape[1], first, col, *flat, out.reshape(-1))
    elif x.ndim == 1:
        coo_matvec(col.size, first, col, *flat, out)
    else:
        by_rows = (np.empty(p.rows + 1, kind), np.empty_like(col), np.empty_like(data))
        coo_tocsr(*shape, col.size, first, col, flat[0], *by_rows)
        csr_matvecs(*shape, x.shape[1], *by_rows, flat[1], out.reshape(-1))
    return (out,)


def product_by_numpy(
    p: ProductParams, data: NDArray, first: NDArray, col: NDArray, x: NDArray
) -> NDArray:
    """The product, whatever the dtypes and the indices are."""
    row = first
    if p.compressed:
        steps = np.zeros(col.size, np.int64)
        starts = np.where(first < 0, first + col.size, first)
        np.add.at(steps, starts[(starts >= 0) & (starts < col.size)], 1)
        row = np.cumsum(steps) - 1
        row[row < 0] = p.rows
    row, col = (
        np.where(i < 0, i.astype(np.int64) + size, i)
        for i, size in ((row, p.rows), (col, x.shape[0]))
    )
    kept = (row >= 0) & (row < p.rows) & (col >= 0) & (col < x.shape[0])
    values = data[kept].reshape((-1, *[1] * (x.ndim - 1)))
    out = np.zeros((p.rows, *x.shape[1:]), data.dtype)
    np.add.at(out, row[kept], values * x[col[kept]])
    return out


def jvp_product(
    engine: Engine, p: ProductParams, xs: Sequence[Array], ts: Sequence[Tangent]
) -> tuple[Sequence[Array], Sequence[Tangent]]:
    """dy = dA x + A dx."""
    data, first, col, x = xs
    y = sparse_matmul_p.call(p, data, first, col, x)
    parts = []
    if not isinstance(ts[0], Zero):
        parts.append(sparse_matmul_p.call(p, ts[0], first, col, x))
    if not isinstance(ts[3], Zero):
        parts.append(sparse_matmul_p.call(p, data, first, col, ts[3]))
    if not parts:
        return (y,), (Zero(y.aval.tangent()),)
    return (y,), (parts[0] if len(parts) == 1 else parts[0] + parts[1],)


def transpose_product(
    engine: Engine, p: ProductParams, cts: Sequence[Tangent], xs: Sequence[Known]
) -> Sequence[Tangent | None]:
    """The cotangent of the elements is sampled from an outer product."""
    data, first, col, x = xs
    [ct] = cts
    assert isinstance(first, Array)
    assert isinstance(col, Array)
    row = row_indices(p, first, col.shape[0])
    if isinstance(data, Linear):
        if isinstance(x, Linear):
            raise NotLinear("a product is linear in each operand alone, not in both")
        assert isinstance(x, Array)
        if isinstance(ct, Zero):
            return Zero(data.aval), None, None, None
        array = read_rows(ct, row) * read_rows(x, col)
        array = stored(array, (row, p.rows), (col, x.shape[0]))
        return (array.sum(1) if x.ndim == 2 else array), None, None, None
    assert isinstance(x, Linear)
    assert isinstance(data, Array)
    if isinstance(ct, Zero):
        return None, None, None, Zero(x.aval)
    turned = ProductParams(x.aval.shape[0], compressed=False)
    return None, None, None, sparse_matmul_p.call(turned, data, col, row, ct)


def batch_product(
    engine: Engine,
    p: ProductParams,
    size: int,
    xs: Sequence[Array],
    axes: Sequence[Axis],
) -> tuple[Sequence[Array], Sequence[Axis]]:
    """A batch of right operands is a matrix of more columns."""
    *fixed, x = xs
    if axes[:3] != (None,) * 3 and any([axis is not None for axis in axes[:3]]):
        batched = by_composition(sparse_matmul_p)["batch"]
        result: tuple[Sequence[Array], Sequence[Axis]] = batched(
            engine, p, size, xs, axes
        )
        return result
    assert axes[3] is not None
    moved = vnp.moveaxis(x, axes[3], 1)
    wide = moved.reshape((moved.shape[0], size * (moved.shape[2] if x.ndim > 2 else 1)))
    out = sparse_matmul_p.call(p, *fixed, wide)
    return (out.reshape((p.rows, *moved.shape[1:])),), (1,)


def lower_on_cpu(
    e: Emitter, p: ProductParams, xs: Sequence[Operand], outs: Sequence[ShapedArray]
) -> Sequence[Operand]:
    """A call of SciPy where XLA's serial sums take longer, else what it means."""
    width = xs[3].aval.size // max(xs[3].aval.shape[0], 1)
    large = xs[0].aval.size * width >= LARGE
    if large and (p.compressed or width > 1):
        on_host = OnHost(sparse_matmul_p, p, tuple(outs))
        return e.callback(on_host, xs, outs, effect=False, ordered=False)
    lowered: Sequence[Operand] = by_composition(sparse_matmul_p)["lower"](
        e, p, xs, outs
    )
    return lowered


def draw_product(random: Random) -> Sample[ProductParams]:
    """Matrices of either form: indices twice, of padding, negative and in any order."""
    rows, cols, width, nse = draw_sizes(random, 4, (1, 2, 3, 4, 5))
    compressed = random.random() < 0.5
    dtype = random.choice((float32, float32, complex64, int32, float16))
    index = random.choice((int32, int32, uint8))
    first = ShapedArray((rows + 1 if compressed else nse,), index)
    x = ShapedArray((cols, width) if random.random() < 0.5 else (cols,), dtype)
    avals = (ShapedArray((nse,), dtype), first, ShapedArray((nse,), index), x)
    low = 0 if index is uint8 else -2
    places = [
        Domain(low, size, (0, size, size + 1))
        for size in (nse if compressed else rows, cols)
    ]
    domains = (REALS, *places, REALS)
    return Sample(ProductParams(rows, compressed), avals, domains)


sparse_matmul_p: Row[ProductParams] = composite(
    "sparse_matmul",
    ProductParams,
    product_by_sums,
    evaluate=product_on_host,
    jvp=jvp_product,
    transpose=transpose_product,
    batch=batch_product,
    lower_on={"cpu": lower_on_cpu},
    draw=draw_product,
)


def matrix_product(data: Array, row: Array, col: Array, x: Array, rows: int) -> Array:
    """The product of a matrix of so many rows, by coordinates, and an array.

    Args:
        data, row, col: the elements and where they are, `(nse,)`.
        x: a vector or matrix of the same dtype.
    """
    return sparse_matmul_p.call(ProductParams(rows, False), data, row, col, x)


def compressed_product(data: Array, indptr: Array, col: Array, x: Array) -> Array:
    """The product of a matrix by compressed rows and a vector or matrix."""
    params = ProductParams(indptr.shape[0] - 1, True)
    return sparse_matmul_p.call(params, data, indptr, col, x)
