"""`CSR` and `CSC`: matrices stored by compressed rows or columns.

The elements of row i are those from `indptr[i]` to `indptr[i + 1]`, and `indices` are
their columns; CSC is the same of the transpose::

    mat = CSR.fromdense(vnp.eye(3))
    mat @ vnp.ones(3)
"""

from collections.abc import Sequence
from typing import Self, override

import numpy as np

from verax import numpy as vnp
from verax.api.trees.pytrees import register_pytree_node_class
from verax.experimental.sparse import buffers
from verax.experimental.sparse.base import JAXSparse
from verax.experimental.sparse.bcsr import coordinates, row_starts
from verax.experimental.sparse.coo import (
    as_matrix_shape,
    check_product,
    check_transpose,
    dense_operand,
    product,
)
from verax.experimental.sparse.matmul import compressed_product
from verax.experimental.sparse.util import Shape, count_stored_elements
from verax.ir.dtypes import DTypeLike
from verax.rules.values.array import Array
from verax.rules.values.sizes import ShapeError


class Compressed(JAXSparse):
    """The base of both formats: buffers and a shape."""

    __module__ = "verax.experimental.sparse"

    indices: Array
    indptr: Array
    whole: Shape

    def __init__(
        self, args: tuple[object, object, object], *, shape: Sequence[int]
    ) -> None:
        self.data, self.indices, self.indptr = map(vnp.asarray, args)
        name = type(self).__name__
        self.whole = as_matrix_shape(name, shape)
        lines = self.rows_first(self.whole)[0]
        vector = self.data.shape == self.indices.shape and self.data.ndim == 1
        if not vector or self.indptr.shape != (lines + 1,):
            raise ShapeError(
                f"{name} of shape {self.whole} takes data and indices of the same "
                f"length and an indptr of {lines + 1}, not shapes {self.data.shape}, "
                f"{self.indices.shape} and {self.indptr.shape}"
            )

    @staticmethod
    def rows_first[T](pair: tuple[T, ...]) -> tuple[T, ...]:
        """The compressed one first, of a pair for rows and columns."""
        return pair

    @property
    @override
    def shape(self) -> Shape:
        return self.whole

    @property
    def _bufs(self) -> tuple[Array, Array, Array]:
        return self.data, self.indices, self.indptr

    @override
    def tree_flatten(self) -> tuple[tuple[Array, ...], Shape]:
        return self._bufs, self.whole

    @classmethod
    @override
    def tree_unflatten(cls, aux_data: Shape, children: Sequence[Array]) -> Self:
        made = object.__new__(cls)
        made.data, made.indices, made.indptr = children
        made.whole = aux_data
        return made

    def places(self) -> tuple[Array, Array]:
        """The row and the column of each stored element."""
        array = coordinates(self.indices, self.indptr)
        first, second = self.rows_first((array[..., 0], array[..., 1]))
        return first, second

    @override
    def todense(self) -> Array:
        return buffers.todense(self.data, vnp.stack(self.places(), -1), self.shape)

    @override
    def __matmul__(self, other: object) -> Array:
        return self.times(dense_operand(type(self).__name__, other), False)

    def times(self, x: Array, transpose: bool) -> Array:
        """The product of the matrix, or its transpose, and an array.

        Raises:
            ValueError: sizes do not fit.
        """
        shape = self.shape[::-1] if transpose else self.shape
        by_lines = self.rows_first((0, 1))[0] == 0
        if by_lines == transpose:
            return product(self.data, *self.places(), x, self.shape, transpose)
        check_product(shape, x)
        dtype = vnp.result_type(self.data, x)
        data, x = self.data.astype(dtype), x.astype(dtype)
        return compressed_product(data, self.indptr, self.indices, x)


@register_pytree_node_class
class CSR(Compressed):
    """A sparse matrix by compressed rows: `data`, `indices` (columns) and `indptr`."""

    __module__ = "verax.experimental.sparse"

    @classmethod
    def fromdense(
        cls, mat: object, *, nse: int | None = None, index_dtype: DTypeLike = np.int32
    ) -> "CSR":
        """The elements of a dense matrix that are not zero; see `csr_fromdense`."""
        return csr_fromdense(mat, nse=nse, index_dtype=index_dtype)

    @override
    def transpose(self, axes: Sequence[int] | None = None) -> "CSC":
        check_transpose("CSR", axes)
        return CSC(self._bufs, shape=self.shape[::-1])


@register_pytree_node_class
class CSC(Compressed):
    """A sparse matrix by compressed columns: `data`, `indices` (rows) and `indptr`."""

    __module__ = "verax.experimental.sparse"

    @staticmethod
    @override
    def rows_first[T](pair: tuple[T, ...]) -> tuple[T, ...]:
        return pair[::-1]

    @classmethod
    def fromdense(
        cls, mat: object, *, nse: int | None = None, index_dtype: DTypeLike = np.int32
    ) -> "CSC":
        """The elements of a dense matrix that are not zero, `nse` of them."""
        x = vnp.asarray(mat)
        as_matrix_shape("CSC.fromdense", x.shape)
        return csr_fromdense(x.T, nse=nse, index_dtype=index_dtype).transpose()

    @override
    def transpose(self, axes: Sequence[int] | None = None) -> CSR:
        check_transpose("CSC", axes)
        return CSR(self._bufs, shape=self.shape[::-1])


def csr_fromdense(
    mat: object, *, nse: int | None = None, index_dtype: DTypeLike = np.int32
) -> CSR:
    """The elements of a dense matrix that are not zero, `nse` of them."""
    x = vnp.asarray(mat)
    shape = as_matrix_shape("csr_fromdense", x.shape)
    count = int(count_stored_elements(x)) if nse is None else int(nse)
    data, indices = buffers.fromdense(x, nse=count, index_dtype=index_dtype)
    indptr = row_starts(indices[:, 0], shape[0])
    return CSR((data, indices[:, 1], indptr), shape=shape)


def csr_todense(mat: CSR) -> Array:
    """The dense matrix."""
    return mat.todense()


def csr_matvec(mat: CSR, v: object, transpose: bool = False) -> Array:
    """The product of a matrix, or its transpose, and a vector."""
    x = vnp.asarray(v)
    if x.ndim != 1:
        raise ShapeError(f"csr_matvec takes a vector, not an array of shape {x.shape}")
    return mat.times(x, transpose)


def csr_matmat(mat: CSR, B: object, *, transpose: bool = False) -> Array:
    """The product of a matrix, or its transpose, and a dense matrix."""
    x = vnp.asarray(B)
    if x.ndim != 2:
        raise ShapeError(f"csr_matmat takes a matrix, not an array of shape {x.shape}")
    return mat.times(x, transpose)
