"""Helpers of all sparse formats: errors, and the static part of an array.

`SparseInfo` is the metadata of an array as a pytree; the functions here count what a
format would store::

    SparseInfo((3, 4), indices_sorted=True)
"""

from collections.abc import Sequence
from typing import NamedTuple, SupportsIndex

import numpy as np

from verax import numpy as vnp
from verax.ir.dtypes import stored_dtype
from verax.rules.values.array import Array

__all__ = [
    "CuSparseEfficiencyWarning",
    "SparseEfficiencyError",
    "SparseEfficiencyWarning",
    "SparseInfo",
]

type Shape = tuple[int, ...]


class SparseEfficiencyError(ValueError):
    """A result would store far more elements than its operands."""

    __module__ = "verax.experimental.sparse"


class SparseEfficiencyWarning(UserWarning):
    """An operation on sparse arrays is slower than one might expect."""

    __module__ = "verax.experimental.sparse"


class CuSparseEfficiencyWarning(SparseEfficiencyWarning):
    """An operation does without a kernel of the GPU's sparse library."""

    __module__ = "verax.experimental.sparse"


class SparseInfo(NamedTuple):
    """The shape of a sparse array, and what is promised about its indices."""

    shape: Shape
    indices_sorted: bool = False
    unique_indices: bool = False


def as_shape(shape: Sequence[SupportsIndex]) -> Shape:
    """A shape as a tuple of Python integers."""
    return tuple([int(size) for size in shape])


def stored_mask(mat: Array, n_batch: int, n_dense: int) -> Array:
    """Flags of the stored elements: those of which any dense part is not zero.

    Raises:
        ValueError: there are fewer dimensions than batch and dense ones.
    """
    if min(n_batch, n_dense) < 0 or n_batch + n_dense > mat.ndim:
        raise ValueError(
            f"n_batch={n_batch} and n_dense={n_dense} must not be negative, nor more "
            f"together than the {mat.ndim} dimensions of the array"
        )
    mask = mat != 0
    if n_dense:
        mask = mask.any(tuple(range(mat.ndim - n_dense, mat.ndim)))
    return mask


def count_stored_elements_per_batch(
    mat: object, n_batch: int = 0, n_dense: int = 0
) -> Array:
    """The number of elements each batch element stores."""
    mask = stored_mask(vnp.asarray(mat), n_batch, n_dense)
    return mask.sum(tuple(range(n_batch, mask.ndim)))


def count_stored_elements(mat: object, n_batch: int = 0, n_dense: int = 0) -> Array:
    """The most elements that a batch element stores."""
    counts = count_stored_elements_per_batch(mat, n_batch, n_dense)
    return counts.max(initial=0)


def compatible(part: Sequence[int], whole: Sequence[int]) -> bool:
    """Whether a shape is another, up to sizes of 1 that stand for any size."""
    return len(part) == len(whole) and all(
        [n in (1, m) for n, m in zip(part, whole, strict=True)]
    )


def batch_index(batch: Shape) -> list[Array]:
    """Indices that name each batch element, of the shape `(*batch, 1)`."""
    rank = len(batch) + 1
    return [
        vnp.arange(size, dtype=np.int32).reshape(
            (*[1] * axis, size, *[1] * (rank - axis - 1))
        )
        for axis, size in enumerate(batch)
    ]


def row_of(values: Sequence[int], like: Array) -> np.ndarray:
    """Numbers, one for each sparse dimension, as an array of the rank of indices."""
    out = np.array(values, stored_dtype(like.dtype))
    return out.reshape((*[1] * (like.ndim - 1), len(values)))


def columns(indices: Array) -> list[Array]:
    """The index of each sparse dimension, of the shape `(*batch, nse)`."""
    return [indices[..., i] for i in range(indices.shape[-1])]
