"""Sparse arrays of any format: empty ones, unit matrices, random ones, dense ones.

>>> from verax.experimental import sparse
>>> sparse.eye(2, sparse_format="csr").indptr.tolist()
[0, 1, 2]
"""

import math
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from verax import numpy as vnp, random
from verax.api.tracing.apply import is_tracing
from verax.api.vmap import vmap
from verax.experimental.sparse.base import JAXSparse
from verax.experimental.sparse.bcoo import BCOO
from verax.experimental.sparse.bcsr import BCSR
from verax.experimental.sparse.coo import COO
from verax.experimental.sparse.csr import CSR
from verax.experimental.sparse.rules import todense_p
from verax.experimental.sparse.util import as_shape, row_of
from verax.ir.dtypes import DTypeLike
from verax.ir.jaxpr import NO_PARAMS
from verax.numpy.arguments.arguments import ArrayLike
from verax.rules.values.array import Array
from verax.rules.values.sizes import ShapeError


def todense(arr: object) -> Array:
    """A sparse array as a dense one; a dense array as it is.

    Under `sparsify`, the value that a function sees as dense becomes so.
    """
    if isinstance(arr, JAXSparse):
        return arr.todense()
    return todense_p.call(NO_PARAMS, arr) if is_tracing() else vnp.asarray(arr)


def from_coordinates(mat: BCOO) -> Mapping[str, Callable[[], JAXSparse]]:
    """A matrix whose indices are sorted, in each format."""
    row, col = (mat.indices[..., i] for i in range(2)) if mat.n_sparse == 2 else (0, 0)
    bufs = (mat.data, row, col)
    return MappingProxyType(
        {
            "bcoo": lambda: mat,
            "bcsr": lambda: BCSR.from_bcoo(mat),
            "coo": lambda: COO(bufs, shape=mat.shape, rows_sorted=True),
            "csr": lambda: by_rows(mat),
            "csc": lambda: by_rows(mat.T.sort_indices()).T,
        }
    )


FORMATS: Final = ("bcoo", "bcsr", "coo", "csc", "csr")


def by_rows(mat: BCOO) -> CSR:
    """A matrix whose indices are sorted as a `CSR` one."""
    out = BCSR.from_bcoo(mat)
    return CSR((out.data, out.indices, out.indptr), shape=out.shape)


def in_format(name: str, mat: BCOO) -> JAXSparse:
    """A matrix whose indices are sorted, in a format.

    Raises:
        ValueError: it is a batch, or has dense dimensions, which the format lacks.
    """
    if name in ("coo", "csc", "csr") and (mat.n_batch, mat.n_sparse) != (0, 2):
        raise ShapeError(
            f"sparse_format={name!r} is for matrices without batch and dense "
            f"dimensions, not {mat}"
        )
    return from_coordinates(mat)[name]()


def check_format(name: str) -> None:
    """Raise ValueError unless there is such a format."""
    if name not in FORMATS:
        raise ValueError(
            f"sparse_format must be one of {', '.join(FORMATS)}, not {name!r}"
        )


def empty(
    shape: Sequence[int],
    dtype: DTypeLike | None = None,
    index_dtype: DTypeLike = "int32",
    sparse_format: str = "bcoo",
    *,
    n_batch: int = 0,
    n_dense: int = 0,
    nse: int = 0,
) -> Any:
    """A sparse array of zeros, which stores none of them, or `nse` as padding."""
    check_format(sparse_format)
    sizes = as_shape(shape)
    n_sparse = len(sizes) - n_batch - n_dense
    if min(n_batch, n_dense, n_sparse, nse) < 0:
        raise ShapeError(
            f"empty: n_batch={n_batch}, n_dense={n_dense} and nse={nse} do not fit the "
            f"shape {sizes}"
        )
    batch, dense = sizes[:n_batch], sizes[len(sizes) - n_dense :]
    data = vnp.zeros((*batch, nse, *dense), dtype)
    outside = sizes[n_batch : n_batch + n_sparse]
    indices = vnp.zeros((*batch, nse, n_sparse), index_dtype)
    indices = indices + row_of(outside, indices)
    mat = BCOO((data, indices), shape=sizes, indices_sorted=True, unique_indices=True)
    return in_format(sparse_format, mat)


def eye(
    N: int,
    M: int | None = None,
    k: int = 0,
    dtype: DTypeLike | None = None,
    index_dtype: DTypeLike = "int32",
    sparse_format: str = "bcoo",
    *,
    n_batch: int = 0,
    n_dense: int = 0,
) -> Any:
    """The matrix of N rows and M columns (N) with ones on diagonal k."""
    check_format(sparse_format)
    rows = int(N)
    cols = rows if M is None else int(M)
    offset = int(k)
    first = max(0, -offset)
    count = max(0, min(rows - first, cols - max(0, offset)))
    if n_batch or n_dense:
        dense = np.eye(rows, cols, offset)
        nse = stored(dense, n_batch, n_dense)
        mat = BCOO.fromdense(
            vnp.asarray(dense, dtype or vnp.zeros(()).dtype),
            nse=nse,
            n_batch=n_batch,
            n_dense=n_dense,
            index_dtype=index_dtype,
        )
        return in_format(sparse_format, mat)
    row = np.arange(first, first + count)
    indices = vnp.asarray(np.stack([row, row + offset], -1), index_dtype)
    mat = BCOO(
        (vnp.ones(count, dtype), indices),
        shape=(rows, cols),
        indices_sorted=True,
        unique_indices=True,
    )
    return in_format(sparse_format, mat)


def stored(mat: np.ndarray, n_batch: int, n_dense: int) -> int:
    """The most elements that a batch element of an array of NumPy stores."""
    if n_batch + n_dense > mat.ndim or min(n_batch, n_dense) < 0:
        raise ShapeError(f"eye: n_batch={n_batch} and n_dense={n_dense} do not fit")
    mask = (mat != 0).any(tuple(range(mat.ndim - n_dense, mat.ndim)))
    counts = mask.sum(tuple(range(n_batch, mask.ndim)))
    return int(np.max(counts, initial=0))


def random_bcoo(
    key: ArrayLike,
    shape: Sequence[int],
    *,
    dtype: object = np.float64,
    indices_dtype: object = None,
    nse: float = 0.2,
    n_batch: int = 0,
    n_dense: int = 0,
    unique_indices: bool = True,
    sorted_indices: bool = False,
    generator: Callable[..., Array] = random.uniform,
    **kwds: object,
) -> BCOO:
    """A sparse array of random elements at random places.

    Args:
        key: a random key.
        nse: how many elements each batch element stores; below 1, which part of them.
        unique_indices: whether places are drawn without replacement.
        sorted_indices: whether indices are sorted.
        generator: draws the elements: `generator(key, shape=..., dtype=..., **kwds)`.

    Raises:
        ValueError: numbers of dimensions or elements do not fit the shape.
    """
    sizes = as_shape(shape)
    n_sparse = len(sizes) - n_batch - n_dense
    if min(n_sparse, n_batch, n_dense) < 0:
        raise ShapeError(
            f"random_bcoo: n_batch={n_batch} and n_dense={n_dense} do not fit the "
            f"shape {sizes}"
        )
    batch, dense = sizes[:n_batch], sizes[len(sizes) - n_dense :]
    sparse = sizes[n_batch : n_batch + n_sparse]
    total = math.prod(sparse)
    count = math.ceil(nse * total) if 0 <= nse < 1 else int(nse)
    if count < 0 or (unique_indices and count > total):
        raise ValueError(
            f"random_bcoo: nse={nse} must be between 0 and {total}, the size of the "
            "sparse dimensions, if indices are unique"
        )
    place_key, data_key = random.split(key)
    data = generator(data_key, shape=(*batch, count, *dense), dtype=dtype, **kwds)

    def places(key: Array) -> Array:
        if not sparse:
            return vnp.zeros((count, 0), np.int32)
        flat = random.choice(key, total, (count,), replace=not unique_indices)
        return vnp.stack(vnp.unravel_index(flat, sparse), -1)

    draw = places
    keys = random.split(place_key, batch) if batch else place_key
    for _ in batch:
        draw = vmap(draw)
    indices = draw(keys).astype(indices_dtype or np.int32)
    mat = BCOO((data, indices), shape=sizes, unique_indices=unique_indices)
    return mat.sort_indices() if sorted_indices else mat
