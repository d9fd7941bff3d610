"""`COO`: matrices stored as coordinates.

Element n of `data` is at `row[n]`, `col[n]`; those outside are padding. `BCOO` has more
operations; this is the format for products with vectors and matrices::

    mat = COO.fromdense(vnp.eye(3))
    mat @ vnp.ones(3)
"""

from collections.abc import Sequence
from typing import NamedTuple, Self, override

import numpy as np

from verax import lax, numpy as vnp
from verax.api.trees.pytrees import register_pytree_node_class
from verax.experimental.sparse import buffers
from verax.experimental.sparse.base import JAXSparse
from verax.experimental.sparse.matmul import matrix_product
from verax.experimental.sparse.util import Shape, as_shape, count_stored_elements
from verax.ir.dtypes import DTypeLike
from verax.rules.values.array import Array
from verax.rules.values.sizes import ShapeError


class COOInfo(NamedTuple):
    """The shape of a matrix, and what is promised about its indices."""

    shape: Shape
    rows_sorted: bool = False
    cols_sorted: bool = False


@register_pytree_node_class
class COO(JAXSparse):
    """A sparse matrix as coordinates.

    Args:
        args: `data`, `row` and `col`, each of the shape `(nse,)`.
        shape: the shape of the matrix.
        rows_sorted: a promise that `row` is sorted, and `col` within a row.
        cols_sorted: a promise that `col` is sorted, and `row` within a column.
    """

    __module__ = "verax.experimental.sparse"

    row: Array
    col: Array

    def __init__(
        self,
        args: tuple[object, object, object],
        *,
        shape: Sequence[int],
        rows_sorted: bool = False,
        cols_sorted: bool = False,
    ) -> None:
        self.data, self.row, self.col = map(vnp.asarray, args)
        self._info = COOInfo(as_matrix_shape("COO", shape), rows_sorted, cols_sorted)
        if (
            not self.data.shape == self.row.shape == self.col.shape
            or self.data.ndim != 1
        ):
            raise ShapeError(
                "COO data, row and col must be vectors of the same length, not of "
                f"shapes {self.data.shape}, {self.row.shape} and {self.col.shape}"
            )

    @property
    @override
    def shape(self) -> Shape:
        return self._info.shape

    @property
    def _bufs(self) -> tuple[Array, Array, Array]:
        return self.data, self.row, self.col

    @property
    def _rows_sorted(self) -> bool:
        return self._info.rows_sorted

    @property
    def _cols_sorted(self) -> bool:
        return self._info.cols_sorted

    @override
    def tree_flatten(self) -> tuple[tuple[Array, ...], COOInfo]:
        return self._bufs, self._info

    @classmethod
    @override
    def tree_unflatten(cls, aux_data: COOInfo, children: Sequence[Array]) -> Self:
        made = object.__new__(cls)
        made.data, made.row, made.col = children
        made._info = aux_data
        return made

    @classmethod
    def fromdense(
        cls, mat: object, *, nse: int | None = None, index_dtype: DTypeLike = np.int32
    ) -> "COO":
        """The elements of a dense matrix that are not zero; see `coo_fromdense`."""
        return coo_fromdense(mat, nse=nse, index_dtype=index_dtype)

    def _sort_indices(self) -> "COO":
        """The same matrix, sorted by rows."""
        if self._rows_sorted:
            return self
        row, col, places = lax.sort(
            (self.row, self.col, vnp.arange(self.nse)), num_keys=2
        )
        bufs = self.data[places], row, col
        return COO(bufs, shape=self.shape, rows_sorted=True)

    @override
    def todense(self) -> Array:
        return coo_todense(self)

    @override
    def transpose(self, axes: Sequence[int] | None = None) -> "COO":
        check_transpose("COO", axes)
        return COO(
            (self.data, self.col, self.row),
            shape=self.shape[::-1],
            rows_sorted=self._cols_sorted,
            cols_sorted=self._rows_sorted,
        )

    @override
    def __matmul__(self, other: object) -> Array:
        x = dense_operand("COO", other)
        return product(self.data, self.row, self.col, x, self.shape)


def check_transpose(name: str, axes: Sequence[int] | None) -> None:
    """Raise NotImplementedError unless axes are reversed."""
    if axes is not None and tuple(axes) != (1, 0):
        raise NotImplementedError(f"{name}.transpose with axes={tuple(axes)}")


def as_matrix_shape(name: str, shape: Sequence[int]) -> Shape:
    """The shape of a matrix.

    Raises:
        ValueError: it has another number of dimensions.
    """
    out = as_shape(shape)
    if len(out) != 2:
        raise ShapeError(f"{name} takes the shape of a matrix, not {out}")
    return out


def dense_operand(name: str, x: object) -> Array:
    """The right operand of a product.

    Raises:
        NotImplementedError: it is sparse, or not a vector or matrix.
    """
    if isinstance(x, JAXSparse):
        raise NotImplementedError(f"{name} @ {type(x).__name__}; use BCOO for that")
    out = vnp.asarray(x)
    if out.ndim not in (1, 2):
        raise NotImplementedError(f"{name} @ an array of shape {out.shape}")
    return out


def check_product(shape: Shape, x: Array) -> None:
    """Raise ValueError unless a matrix of such a shape can multiply an array."""
    if x.shape[0] != shape[1]:
        raise ShapeError(
            f"the product of a matrix of shape {shape} and an array of shape "
            f"{x.shape}: {shape[1]} columns meet {x.shape[0]} rows"
        )


def product(
    data: Array,
    row: Array,
    col: Array,
    x: Array,
    shape: Shape,
    transpose: bool = False,
) -> Array:
    """The product of a matrix, or its transpose, and a vector or matrix.

    Raises:
        ValueError: sizes do not fit.
    """
    if transpose:
        row, col, shape = col, row, shape[::-1]
    check_product(shape, x)
    dtype = vnp.result_type(data, x)
    return matrix_product(data.astype(dtype), row, col, x.astype(dtype), shape[0])


def coo_fromdense(
    mat: object, *, nse: int | None = None, index_dtype: DTypeLike = np.int32
) -> COO:
    """The elements of a dense matrix that are not zero, `nse` of them."""
    x = vnp.asarray(mat)
    shape = as_matrix_shape("coo_fromdense", x.shape)
    count = int(count_stored_elements(x)) if nse is None else int(nse)
    data, indices = buffers.fromdense(x, nse=count, index_dtype=index_dtype)
    return COO((data, indices[:, 0], indices[:, 1]), shape=shape, rows_sorted=True)


def coo_todense(mat: COO) -> Array:
    """The dense matrix."""
    return buffers.todense(mat.data, vnp.stack([mat.row, mat.col], -1), mat.shape)


def coo_matvec(mat: COO, v: object, transpose: bool = False) -> Array:
    """The product of a matrix, or its transpose, and a vector."""
    x = vnp.asarray(v)
    if x.ndim != 1:
        raise ShapeError(f"coo_matvec takes a vector, not an array of shape {x.shape}")
    return product(mat.data, mat.row, mat.col, x, mat.shape, transpose)


def coo_matmat(mat: COO, B: object, *, transpose: bool = False) -> Array:
    """The product of a matrix, or its transpose, and a dense matrix."""
    x = vnp.asarray(B)
    if x.ndim != 2:
        raise ShapeError(f"coo_matmat takes a matrix, not an array of shape {x.shape}")
    return product(mat.data, mat.row, mat.col, x, mat.shape, transpose)
