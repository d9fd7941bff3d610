"""`BCOO`: arrays stored as coordinates, with batch and dense dimensions.

An array is a pytree of `data` and `indices`, see `buffers` for what they mean; the
functions `bcoo_*` take such arrays and make new ones::

    mat = BCOO.fromdense(vnp.eye(3))
    mat @ vnp.ones(3)
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Protocol, Self, override

import numpy as np

from verax import numpy as vnp
from verax.api.trees.pytrees import register_pytree_node_class
from verax.experimental.sparse import buffers
from verax.experimental.sparse.base import Batched, Operators, Static
from verax.experimental.sparse.buffers import Layout, fully_batched, layout_of
from verax.experimental.sparse.util import (
    Shape,
    as_shape,
    count_stored_elements,
)
from verax.ir.dtypes import DTypeLike
from verax.rules.values.array import Array
from verax.rules.values.sizes import ShapeError


class Coordinates(Protocol):
    """A matrix of SciPy as coordinates."""

    row: np.ndarray
    col: np.ndarray
    data: np.ndarray


class HasCoordinates(Protocol):
    """A sparse matrix of SciPy, as far as its coordinates are asked for."""

    shape: Shape

    def tocoo(self) -> Coordinates: ...


@register_pytree_node_class
class BCOO(Batched, Operators):
    """A sparse array of batch, sparse and dense dimensions, in this order.

    Args:
        args: `data`, of the shape `(*batch, nse, *dense)`, and `indices`, of the shape
            `(*batch, nse, n_sparse)`. Elements with equal indices are added; indices
            outside of the shape are padding. Batch dimensions may be 1 in either.
        shape: the shape of the array.
        indices_sorted: a promise that indices are sorted in each batch element.
        unique_indices: a promise that none, except padding, is there twice.

    >>> import verax.numpy as vnp
    >>> from verax.experimental import sparse
    >>> mat = sparse.BCOO.fromdense(vnp.array([[0.0, 2.0], [3.0, 0.0]]))
    >>> mat
    BCOO(float32[2, 2], nse=2)
    >>> (mat.T @ vnp.array([1.0, 10.0])).tolist()
    [30.0, 2.0]
    """

    __module__ = "verax.experimental.sparse"

    def __init__(
        self,
        args: tuple[object, object],
        *,
        shape: Sequence[int],
        indices_sorted: bool = False,
        unique_indices: bool = False,
    ) -> None:
        self.data, self.indices = map(vnp.asarray, args)
        self.indices_sorted = indices_sorted
        self.unique_indices = unique_indices
        whole = as_shape(shape)
        n = layout_of(self.data, self.indices, whole).n_batch
        self.element = whole[n:]
        if self.shape != whole:  # the buffers must tell the batch dimensions
            self.data = fully_batched(self.data, whole[:n])

    @property
    @override
    def layout(self) -> Layout:
        return layout_of(self.data, self.indices, self.shape)

    @property
    @override
    def nse(self) -> int:
        return self.indices.shape[-2]

    @property
    @override
    def n_batch(self) -> int:
        return self.indices.ndim - 2

    @property
    def n_sparse(self) -> int:
        return self.indices.shape[-1]

    @property
    @override
    def _bufs(self) -> tuple[Array, Array]:
        return self.data, self.indices

    @classmethod
    @override
    def tree_unflatten(cls, aux_data: Static, children: Sequence[Array]) -> Self:
        made = object.__new__(cls)
        made.data, made.indices = children
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
    ) -> "BCOO":
        """The elements of a dense array that are not zero; see `bcoo_fromdense`."""
        return bcoo_fromdense(
            mat, nse=nse, index_dtype=index_dtype, n_dense=n_dense, n_batch=n_batch
        )

    @classmethod
    def from_scipy_sparse(
        cls,
        mat: HasCoordinates,
        *,
        index_dtype: DTypeLike | None = None,
        n_dense: int = 0,
        n_batch: int = 0,
    ) -> "BCOO":
        """A sparse matrix of SciPy, in any of its formats.

        Raises:
            NotImplementedError: batch or dense dimensions are asked for.
        """
        if n_dense or n_batch:
            raise NotImplementedError(
                "from_scipy_sparse makes arrays without batch and dense dimensions; "
                "use update_layout afterwards"
            )
        coo = mat.tocoo()
        places = np.column_stack((coo.row, coo.col))
        indices = vnp.asarray(places, dtype=index_dtype or np.int32)
        return cls((vnp.asarray(coo.data), indices), shape=mat.shape)

    def sum_duplicates(
        self, nse: int | None = None, remove_zeros: bool = True
    ) -> "BCOO":
        """The same array with unique, sorted indices, `nse` of them.

        Without `nse` there are as many as needed, which must be known while tracing.
        """
        if remove_zeros:
            return bcoo_eliminate_zeros(self, nse=nse)
        return bcoo_sum_duplicates(self, nse=nse)

    def sort_indices(self) -> "BCOO":
        """The same array with sorted indices."""
        return bcoo_sort_indices(self)

    @override
    def todense(self) -> Array:
        return bcoo_todense(self)

    @override
    def transpose(self, axes: Sequence[int] | None = None) -> "BCOO":
        """The array with its dimensions permuted within each kind; by default,
        reversed.
        """
        order = list(range(self.ndim))[::-1] if axes is None else axes
        return bcoo_transpose(self, permutation=order)

    def update_layout(
        self,
        *,
        n_batch: int | None = None,
        n_dense: int | None = None,
        on_inefficient: str | None = "error",
    ) -> "BCOO":
        """The same array in another layout; see `bcoo_update_layout`."""
        made: BCOO = self.namespace.bcoo_update_layout(
            self, n_batch=n_batch, n_dense=n_dense, on_inefficient=on_inefficient
        )
        return made

    def reshape(self, *args: object, **kwargs: object) -> "BCOO":
        """The array in another shape; kinds of dimensions do not mix."""
        made: BCOO = self.namespace.reshape(self, *args, **kwargs)
        return made

    def astype(self, dtype: object) -> "BCOO":
        """The array with elements of another type."""
        return self.with_data(self.data.astype(dtype))

    @override
    def sum(self, *args: object, **kwargs: object) -> Any:
        """The sum over some or all axes; dense if no dimension is left."""
        return self.namespace.total(self, *args, **kwargs)

    def __iter__(self) -> Iterator["BCOO | Array"]:
        return iter(self.namespace.rows(self))


class BCOOProperties(NamedTuple):
    """The properties of a layout, as JAX calls them."""

    n_batch: int
    n_sparse: int
    n_dense: int
    nse: int


def made(
    like: BCOO,
    buffers: tuple[Array, Array],
    shape: Sequence[int] | None = None,
    *,
    indices_sorted: bool = False,
    unique_indices: bool = False,
) -> BCOO:
    """An array of these buffers, in the shape of another unless one is given."""
    return BCOO(
        buffers,
        shape=like.shape if shape is None else shape,
        indices_sorted=indices_sorted,
        unique_indices=unique_indices,
    )


def bcoo_fromdense(
    mat: object,
    *,
    nse: int | None = None,
    n_batch: int = 0,
    n_dense: int = 0,
    index_dtype: DTypeLike = np.int32,
) -> BCOO:
    """The elements of a dense array that are not zero, `nse` of them.

    The first `n_batch` dimensions and the last `n_dense` ones are stored densely. Under
    a trace, give `nse`: elements beyond are cut off, and missing ones are padding.
    """
    x = vnp.asarray(mat)
    if nse is None:
        nse = int(count_stored_elements(x, n_batch, n_dense))
    out = buffers.fromdense(
        x, nse=int(nse), n_batch=n_batch, n_dense=n_dense, index_dtype=index_dtype
    )
    return BCOO(out, shape=x.shape, indices_sorted=True, unique_indices=True)


def bcoo_todense(mat: BCOO) -> Array:
    """The dense array."""
    return buffers.todense(mat.data, mat.indices, mat.shape)


def bcoo_extract(
    sparr: BCOO, arr: object, *, assume_unique: bool | None = None
) -> BCOO:
    """The elements of a dense array where a sparse one stores any.

    Of equal indices only the first gets its element, unless they are assumed to be
    unique, as they are if the sparse array promises it.

    Raises:
        ValueError: the shapes differ.
    """
    x = vnp.asarray(arr)
    if x.shape != sparr.shape:
        raise ShapeError(
            f"bcoo_extract: the sparse array has shape {sparr.shape}, and the dense "
            f"one {x.shape}"
        )
    if assume_unique is None:
        assume_unique = sparr.unique_indices
    return sparr.with_data(buffers.extract(sparr.indices, x, assume_unique))


def bcoo_transpose(mat: BCOO, *, permutation: Sequence[int]) -> BCOO:
    """The array with its dimensions permuted, each kind for itself.

    Raises:
        NotImplementedError: the permutation mixes batch, sparse and dense dimensions.
    """
    order = as_shape([d + mat.ndim if d < 0 else d for d in permutation])
    out = buffers.transpose(mat.data, mat.indices, order, mat.shape)
    sparse = buffers.groups_of(mat.layout, order)[1]
    return made(
        mat,
        out,
        [mat.shape[d] for d in order],
        indices_sorted=mat.indices_sorted and sparse == sorted(sparse),
        unique_indices=mat.unique_indices,
    )


def bcoo_sort_indices(mat: BCOO) -> BCOO:
    """The same array with the indices of each batch element in order."""
    out = buffers.sort_indices(mat.data, mat.indices, mat.shape)
    return made(mat, out, indices_sorted=True, unique_indices=mat.unique_indices)


def bcoo_sum_duplicates(mat: BCOO, nse: int | None = None) -> BCOO:
    """The same array with unique, sorted indices, `nse` of them.

    Without `nse` there are as many as needed, which must be known while tracing.
    """
    out = buffers.sum_duplicates(mat.data, mat.indices, mat.shape, nse)
    return made(mat, out, indices_sorted=True, unique_indices=True)


def bcoo_eliminate_zeros(mat: BCOO, nse: int | None = None) -> BCOO:
    """The same array with unique, sorted indices and no zeros among `nse` elements."""
    layout = mat.layout
    sizes = layout.parts(mat.shape)[1]
    if not layout.n_sparse:
        return bcoo_sum_duplicates(mat, nse=nse)
    some = mat.data != 0
    dense = tuple(range(layout.n_batch + 1, some.ndim))
    indices = buffers.outside_unless(some.any(dense), mat.indices, sizes)
    return bcoo_sum_duplicates(made(mat, (mat.data, indices)), nse=nse)
