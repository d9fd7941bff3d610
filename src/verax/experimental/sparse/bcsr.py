"""`BCSR`: matrices stored by compressed rows, with batch and dense dimensions.

`data` is `(*batch, nse, *dense)`, `indices` are the columns, `(*batch, nse)`, and the
elements of row i are those from `indptr[i]` to `indptr[i + 1]`; what comes after the
last row is padding::

    mat = BCSR.fromdense(vnp.eye(3))
    mat @ vnp.ones(3)
"""

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol, Self, TypeGuard, override

import numpy as np

from verax import numpy as vnp
from verax.api.trees.pytrees import register_pytree_node_class
from verax.experimental.sparse import buffers
from verax.experimental.sparse.base import Batched, Static
from verax.experimental.sparse.bcoo import BCOO, bcoo_fromdense
from verax.experimental.sparse.layouts import bcoo_broadcast_in_dim, bcoo_concatenate
from verax.experimental.sparse.matmul import compressed_product
from verax.experimental.sparse.products import (
    DimensionNumbers,
    bcoo_dot_general,
    checked_dims,
    promoted,
)
from verax.experimental.sparse.util import (
    Shape,
    as_shape,
    batch_index,
    compatible,
)
from verax.ir.dtypes import DTypeLike, is_integer
from verax.rules.values.array import Array
from verax.rules.values.sizes import ShapeError


class BCSRProperties(NamedTuple):
    """The number of dimensions of each kind, and of stored elements."""

    n_batch: int
    n_dense: int
    nse: int


def validated(
    data: Array, indices: Array, indptr: Array, shape: Sequence[int]
) -> BCSRProperties:
    """The layout of buffers.

    Raises:
        ValueError: they do not fit each other, or the shape.
        TypeError: indices are not integers.
    """
    for name, x in (("indices", indices), ("indptr", indptr)):
        if not is_integer(x.dtype):
            raise TypeError(f"BCSR {name} must be integers, not {x.dtype}")
    n_batch = indices.ndim - 1
    n_dense = len(shape) - n_batch - 2
    nse = indices.shape[-1] if indices.ndim else 0
    rows = shape[n_batch] if 0 <= n_batch < len(shape) else 0
    batch, dense = tuple(shape[:n_batch]), tuple(shape[n_batch + 2 :])
    due = (*batch, nse, *dense)
    if (
        min(n_batch, n_dense) < 0
        or not compatible(indices.shape[:-1], batch)
        or indptr.ndim != n_batch + 1
        or not compatible(indptr.shape[:-1], batch)
        or indptr.shape[-1] != rows + 1
        or not compatible(data.shape, due)
        or data.shape[n_batch:] != due[n_batch:]
    ):
        raise ShapeError(
            f"BCSR buffers do not fit an array of shape {tuple(shape)}: data has shape "
            f"{data.shape}, indices {indices.shape} and indptr {indptr.shape}"
        )
    return BCSRProperties(n_batch, n_dense, nse)


class Rows(Protocol):
    """A matrix of SciPy as compressed rows."""

    data: np.ndarray
    indices: np.ndarray
    indptr: np.ndarray


class HasRows(Protocol):
    """A sparse matrix of SciPy, as far as its rows are asked for."""

    shape: Shape

    def tocsr(self) -> Rows: ...


@register_pytree_node_class
class BCSR(Batched):
    """A sparse matrix by compressed rows, or a batch of such.

    Args:
        args: `data`, `(*batch, nse, *dense)`; `indices`, the columns, `(*batch, nse)`;
            and `indptr`, where rows start, `(*batch, rows + 1)`.
        shape: the shape of the array, `(*batch, rows, columns, *dense)`.
        indices_sorted: a promise that columns are sorted in each row.
        unique_indices: a promise that none is there twice in a row.

    >>> import verax.numpy as vnp
    >>> from verax.experimental import sparse
    >>> mat = sparse.BCSR.fromdense(vnp.array([[0.0, 2.0], [3.0, 0.0]]))
    >>> mat.indptr.tolist(), (mat @ vnp.array([1.0, 10.0])).tolist()
    ([0, 1, 2], [20.0, 3.0])
    """

    __module__ = "verax.experimental.sparse"

    indptr: Array

    def __init__(
        self,
        args: tuple[object, object, object],
        *,
        shape: Sequence[int],
        indices_sorted: bool = False,
        unique_indices: bool = False,
    ) -> None:
        self.data, self.indices, self.indptr = map(vnp.asarray, args)
        self.indices_sorted = indices_sorted
        self.unique_indices = unique_indices
        whole = as_shape(shape)
        n = validated(self.data, self.indices, self.indptr, whole).n_batch
        self.element = whole[n:]
        if self.shape != whole:  # the buffers must tell the batch dimensions
            self.data = buffers.fully_batched(self.data, whole[:n])

    @property
    @override
    def nse(self) -> int:
        return self.indices.shape[-1]

    @property
    @override
    def layout(self) -> BCSRProperties:
        return validated(*self._bufs, self.shape)

    @property
    @override
    def n_batch(self) -> int:
        return self.indices.ndim - 1

    @property
    def n_sparse(self) -> int:
        return 2

    @property
    @override
    def _bufs(self) -> tuple[Array, Array, Array]:
        return self.data, self.indices, self.indptr

    @classmethod
    @override
    def tree_unflatten(cls, aux_data: Static, children: Sequence[Array]) -> Self:
        made = object.__new__(cls)
        made.data, made.indices, made.indptr = children
        made.element, made.indices_sorted, made.unique_indices = aux_data
        return made

    @classmethod
    def fromdense(
        cls,
        mat: object,
        *,
        nse: int | None = None,
        index_dtype: DTypeLike = np.int32,
        n_dense: int = 0,
        n_batch: int = 0,
    ) -> "BCSR":
        """The elements of a dense array that are not zero; see `bcsr_fromdense`."""
        return bcsr_fromdense(
            mat, nse=nse, index_dtype=index_dtype, n_dense=n_dense, n_batch=n_batch
        )

    @override
    def todense(self) -> Array:
        return bcsr_todense(self)

    def to_bcoo(self) -> BCOO:
        """The same array by coordinates."""
        return BCOO(
            (self.data, coordinates(self.indices, self.indptr)),
            shape=self.shape,
            indices_sorted=self.indices_sorted,
            unique_indices=self.unique_indices,
        )

    @classmethod
    def from_bcoo(cls, arr: BCOO) -> "BCSR":
        """The same array by rows.

        Raises:
            NotImplementedError: it does not have two sparse dimensions.
        """
        if arr.n_sparse != 2:
            raise NotImplementedError(
                f"BCSR arrays have 2 sparse dimensions, but this has {arr.n_sparse}"
            )
        mat = arr if arr.indices_sorted else arr.sort_indices()
        rows = mat.shape[mat.n_batch]
        indices, indptr = compressed(mat.indices, rows)
        return cls(
            (mat.data, indices, indptr),
            shape=mat.shape,
            indices_sorted=True,
            unique_indices=mat.unique_indices,
        )

    @classmethod
    def from_scipy_sparse(
        cls,
        mat: HasRows,
        *,
        index_dtype: DTypeLike | None = None,
        n_dense: int = 0,
        n_batch: int = 0,
    ) -> "BCSR":
        """A sparse matrix of SciPy, in any of its formats.

        Raises:
            NotImplementedError: batch or dense dimensions are asked for.
        """
        if n_dense or n_batch:
            raise NotImplementedError(
                "from_scipy_sparse makes arrays without batch and dense dimensions"
            )
        csr = mat.tocsr()
        dtype = index_dtype or np.int32
        indices, indptr = (
            vnp.asarray(x, dtype=dtype) for x in (csr.indices, csr.indptr)
        )
        return cls((vnp.asarray(csr.data), indices, indptr), shape=mat.shape)

    def sum_duplicates(
        self, nse: int | None = None, remove_zeros: bool = True
    ) -> "BCSR":
        """The same array with unique, sorted indices, `nse` of them."""
        if remove_zeros:
            return bcsr_eliminate_zeros(self, nse=nse)
        return bcsr_sum_duplicates(self, nse=nse)

    @override
    def transpose(self, axes: Sequence[int] | None = None) -> Any:
        raise NotImplementedError("BCSR.transpose; use to_bcoo() for that")

    def __getitem__(self, index: object) -> Any:
        return self.namespace.item(self, index)


def coordinates(indices: Array, indptr: Array) -> Array:
    """Rows and columns of the stored elements; those of padding are outside."""
    nse = indices.shape[-1]
    batch = vnp.broadcast_shapes(indices.shape[:-1], indptr.shape[:-1])
    starts = vnp.broadcast_to(indptr, (*batch, indptr.shape[-1]))
    steps = vnp.zeros((*batch, nse), indptr.dtype)
    steps = steps.at[(*batch_index(batch), starts)].add(1, mode="drop")
    rows = vnp.cumsum(steps, -1, dtype=indptr.dtype) - 1
    cols = vnp.broadcast_to(indices, (*batch, nse))
    return vnp.stack([rows.astype(indices.dtype), cols], -1)


def compressed(indices: Array, rows: int) -> tuple[Array, Array]:
    """Columns, and where rows start, of sorted coordinates."""
    row, cols = indices[..., 0], indices[..., 1]
    return cols, row_starts(row, rows)


def row_starts(row: Array, rows: int) -> Array:
    """The start of each of so many rows, if elements are sorted by rows."""
    batch = row.shape[:-1]
    counts = vnp.zeros((*batch, rows + 1), row.dtype)
    index = (*batch_index(batch), row + 1)
    counts = counts.at[index].add(1, mode="drop")
    return vnp.cumsum(counts, -1, dtype=row.dtype)


def bcsr_fromdense(
    mat: object,
    *,
    nse: int | None = None,
    n_batch: int = 0,
    n_dense: int = 0,
    index_dtype: DTypeLike = np.int32,
) -> BCSR:
    """The elements of a dense array that are not zero, `nse` of them, by rows.

    Raises:
        ValueError: there are not exactly two dimensions that are neither batch nor
            dense.
    """
    x = vnp.asarray(mat)
    if x.ndim - n_batch - n_dense != 2:
        raise ShapeError(
            f"bcsr_fromdense: an array of {x.ndim} dimensions with n_batch={n_batch} "
            f"and n_dense={n_dense} must leave 2 sparse dimensions"
        )
    out = bcoo_fromdense(
        x, nse=nse, n_batch=n_batch, n_dense=n_dense, index_dtype=index_dtype
    )
    return BCSR.from_bcoo(out)


def bcsr_todense(mat: BCSR) -> Array:
    """The dense array."""
    return mat.to_bcoo().todense()


def bcsr_extract(indices: object, indptr: object, mat: object) -> Array:
    """The elements of a dense array at the places of a `BCSR` array."""
    places = coordinates(vnp.asarray(indices), vnp.asarray(indptr))
    return buffers.extract(places, vnp.asarray(mat))


def bcsr_sum_duplicates(mat: BCSR, nse: int | None = None) -> BCSR:
    """The same array with unique, sorted indices, `nse` of them."""
    return BCSR.from_bcoo(mat.to_bcoo().sum_duplicates(nse=nse, remove_zeros=False))


def bcsr_eliminate_zeros(mat: BCSR, nse: int | None = None) -> BCSR:
    """The same array with unique, sorted indices and no zeros among `nse` elements."""
    return BCSR.from_bcoo(mat.to_bcoo().sum_duplicates(nse=nse, remove_zeros=True))


def bcsr_broadcast_in_dim(
    mat: BCSR,
    *,
    shape: Sequence[int],
    broadcast_dimensions: Sequence[int],
    sharding: object = None,
) -> BCSR:
    """The array in a larger shape; see `bcoo_broadcast_in_dim`."""
    out = bcoo_broadcast_in_dim(
        mat.to_bcoo(),
        shape=shape,
        broadcast_dimensions=broadcast_dimensions,
        sharding=sharding,
    )
    return BCSR.from_bcoo(out)


def bcsr_concatenate(operands: Sequence[BCSR], *, dimension: int) -> BCSR:
    """Arrays one after the other; see `bcoo_concatenate`."""
    out = bcoo_concatenate([mat.to_bcoo() for mat in operands], dimension=dimension)
    return BCSR.from_bcoo(out)


def is_dense(x: object) -> TypeGuard[Array | np.ndarray]:
    """Whether `x` is a dense vector or matrix."""
    return isinstance(x, Array | np.ndarray) and x.ndim in (1, 2)


def bcsr_dot_general(
    lhs: object,
    rhs: object,
    *,
    dimension_numbers: DimensionNumbers,
    precision: object = None,
    preferred_element_type: object = None,
    out_sharding: object = None,
) -> Array:
    """The product of a `BCSR` array and a dense one; see `bcoo_dot_general`."""
    if isinstance(lhs, BCSR) and lhs.ndim == 2 and is_dense(rhs):
        (over, axes), (batch, _) = dimension_numbers
        if [*over] == [1] and len(axes) == 1 and not len(batch):
            checked_dims(dimension_numbers, lhs.shape, tuple(rhs.shape))
            dtype = promoted(lhs.dtype, rhs.dtype, preferred_element_type)
            x = vnp.moveaxis(vnp.asarray(rhs), axes[0], 0).astype(dtype)
            data = lhs.data.astype(dtype)
            return compressed_product(data, lhs.indptr, lhs.indices, x)
    left, right = (x.to_bcoo() if isinstance(x, BCSR) else x for x in (lhs, rhs))
    out: Array = bcoo_dot_general(
        left,
        right,
        dimension_numbers=dimension_numbers,
        precision=precision,
        preferred_element_type=preferred_element_type,
        out_sharding=out_sharding,
    )
    return out
