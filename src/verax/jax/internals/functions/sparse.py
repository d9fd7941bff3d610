"""`jax.experimental.sparse.{bcoo, bcsr, coo, csr, util}`: formats as their buffers.

What is a method of a sparse array, or takes one, is here a function of its parts::

    data, indices = _bcoo_fromdense(mat, nse=3)
    _bcoo_todense(data, indices, spinfo=SparseInfo(mat.shape))
"""

from collections.abc import Sequence

import numpy as np

import verax.numpy as vnp
from verax.experimental.sparse import (
    COO,
    CSR,
    bcoo_fromdense,
    bcsr_fromdense,
    buffers,
    coo_fromdense,
    coo_matmat,
    coo_matvec,
    csr_fromdense,
    csr_matmat,
    csr_matvec,
)
from verax.experimental.sparse.bcsr import compressed, coordinates
from verax.experimental.sparse.coo import COOInfo
from verax.experimental.sparse.products import (
    DimensionNumbers,
    checked_dims,
    dot_general,
)
from verax.experimental.sparse.util import (
    SparseInfo,
    count_stored_elements as _count_stored_elements,
    count_stored_elements_per_batch as _count_stored_elements_per_batch,
)
from verax.ir.dtypes import DTypeLike
from verax.rules.values.array import Array

__all__ = ["_count_stored_elements", "_count_stored_elements_per_batch"]

type Pair = tuple[Array, Array]
type Triple = tuple[Array, Array, Array]


# ------------------------------------------------------------------------------- util


def _csr_to_coo(indices: Array, indptr: Array) -> Pair:
    """Rows and columns of what is stored by rows."""
    both = coordinates(vnp.asarray(indices), vnp.asarray(indptr))
    return both[..., 0], both[..., 1]


# ------------------------------------------------------------------------------- BCOO


def _bcoo_fromdense(
    mat: object,
    *,
    nse: int,
    n_batch: int = 0,
    n_dense: int = 0,
    index_dtype: DTypeLike = np.int32,
) -> Pair:
    """Data and indices of `nse` elements that are not zero."""
    out = bcoo_fromdense(
        mat, nse=nse, n_batch=n_batch, n_dense=n_dense, index_dtype=index_dtype
    )
    return out.data, out.indices


def _bcoo_todense(data: object, indices: object, *, spinfo: SparseInfo) -> Array:
    """The dense array."""
    return buffers.todense(vnp.asarray(data), vnp.asarray(indices), spinfo.shape)


def _bcoo_extract(indices: object, arr: object, *, assume_unique: bool = True) -> Array:
    """The elements of a dense array at the indices."""
    return buffers.extract(vnp.asarray(indices), vnp.asarray(arr), assume_unique)


def _bcoo_dot_general(
    lhs_data: object,
    lhs_indices: object,
    rhs: object,
    *,
    dimension_numbers: DimensionNumbers,
    preferred_element_type: DTypeLike | None = None,
    lhs_spinfo: SparseInfo,
) -> Array:
    """The product of a sparse and a dense array, see `lax.dot_general`."""
    data, indices = vnp.asarray(lhs_data), vnp.asarray(lhs_indices)
    x, shape = vnp.asarray(rhs), lhs_spinfo.shape
    dims = checked_dims(dimension_numbers, shape, x.shape)
    out = dot_general(data, indices, shape, x, dims)
    return out if preferred_element_type is None else out.astype(preferred_element_type)


# ------------------------------------------------------------------------------- BCSR


def _bcsr_fromdense(
    mat: object,
    *,
    nse: int,
    n_batch: int = 0,
    n_dense: int = 0,
    index_dtype: DTypeLike = np.int32,
) -> Triple:
    """Data, columns and starts of rows of `nse` elements that are not zero."""
    out = bcsr_fromdense(
        mat, nse=nse, n_batch=n_batch, n_dense=n_dense, index_dtype=index_dtype
    )
    return out.data, out.indices, out.indptr


def _bcsr_to_bcoo(indices: object, indptr: object, *, shape: Sequence[int]) -> Array:
    """The coordinates of what is stored by rows."""
    return coordinates(vnp.asarray(indices), vnp.asarray(indptr))


def _bcoo_to_bcsr(
    indices: object, *, shape: Sequence[int], index_dtype: DTypeLike
) -> Pair:
    """Columns and starts of rows of sorted coordinates."""
    places = vnp.asarray(indices)
    cols, starts = compressed(places, shape[places.ndim - 2])
    return cols, starts.astype(index_dtype)


# --------------------------------------------------------------------------------- COO


def coo(data: object, row: object, col: object, spinfo: COOInfo) -> COO:
    """The matrix of such parts."""
    return COO((data, row, col), shape=spinfo.shape)


def _coo_fromdense(
    mat: object, *, nse: int, index_dtype: DTypeLike = np.int32
) -> Triple:
    """Data, rows and columns of `nse` elements that are not zero."""
    out = coo_fromdense(mat, nse=nse, index_dtype=index_dtype)
    return out.data, out.row, out.col


def _coo_todense(data: object, row: object, col: object, *, spinfo: COOInfo) -> Array:
    """The dense matrix."""
    return coo(data, row, col, spinfo).todense()


def _coo_matvec(
    data: object,
    row: object,
    col: object,
    v: object,
    *,
    spinfo: COOInfo,
    transpose: bool = False,
) -> Array:
    """The product of the matrix, or its transpose, and a vector."""
    return coo_matvec(coo(data, row, col, spinfo), v, transpose)


def _coo_matmat(
    data: object,
    row: object,
    col: object,
    B: object,
    *,
    spinfo: COOInfo,
    transpose: bool = False,
) -> Array:
    """The product of the matrix, or its transpose, and a dense matrix."""
    return coo_matmat(coo(data, row, col, spinfo), B, transpose=transpose)


# --------------------------------------------------------------------------------- CSR


def csr(data: object, indices: object, indptr: object, shape: Sequence[int]) -> CSR:
    """The matrix of such parts."""
    return CSR((data, indices, indptr), shape=shape)


def _csr_fromdense(
    mat: object, *, nse: int, index_dtype: DTypeLike = np.int32
) -> Triple:
    """Data, columns and starts of rows of `nse` elements that are not zero."""
    out = csr_fromdense(mat, nse=nse, index_dtype=index_dtype)
    return out.data, out.indices, out.indptr


def _csr_todense(
    data: object, indices: object, indptr: object, *, shape: Sequence[int]
) -> Array:
    """The dense matrix."""
    return csr(data, indices, indptr, shape).todense()


def _csr_matvec(
    data: object,
    indices: object,
    indptr: object,
    v: object,
    *,
    shape: Sequence[int],
    transpose: bool = False,
) -> Array:
    """The product of the matrix, or its transpose, and a vector."""
    return csr_matvec(csr(data, indices, indptr, shape), v, transpose)


def _csr_matmat(
    data: object,
    indices: object,
    indptr: object,
    B: object,
    *,
    shape: Sequence[int],
    transpose: bool = False,
) -> Array:
    """The product of the matrix, or its transpose, and a dense matrix."""
    return csr_matmat(csr(data, indices, indptr, shape), B, transpose=transpose)
