"""Floor 6: matrices by the place of their elements: triangles and diagonals.

One idea: a mask is a comparison of two counters, and a diagonal is every (n + 1)th
element of the flat matrix, so neither is ever gathered or scattered::

    eye(3), tril(x), diag(x, k=1), vander(x)
"""

from operator import index
from typing import Any

import numpy as np

from verax.backend.eager.composites import remembered
from verax.ir.avals import larger_size, smaller_size
from verax.ir.dtypes import (
    DTypeLike,
    bool_,
    int32,
    is_integer,
)
from verax.numpy.arguments.arguments import (
    ArrayLike,
    as_array,
    as_shape,
    chosen_dtype,
    default_float,
    default_integer,
    with_weak_type,
)
from verax.numpy.creation.creation import Placement, made
from verax.numpy.creation.filling import filled, typed_fill
from verax.numpy.elementwise.arithmetic import power
from verax.numpy.ranges import arange
from verax.ops.elementwise.arith import (
    add,
)
from verax.ops.elementwise.compare import eq, ge
from verax.ops.elementwise.convert import convert
from verax.ops.elementwise.select import select
from verax.ops.structure.create import broadcasted_iota
from verax.ops.structure.shape import broadcast_in_dim, expand_dims, reshape
from verax.ops.structure.slicing import pad, slice as cut
from verax.rules.values.array import Array
from verax.rules.values.constants import scalar_of


def float_dtype(name: str, dtype: DTypeLike | None) -> Any:
    return chosen_dtype(name, dtype) or default_float()


def rows_and_columns(rows: int, columns: int, k: object) -> tuple[Array, Array]:
    """For each element of a matrix, its row plus `k`, and its column."""
    row = broadcasted_iota(int32, (rows, columns), 0)
    if isinstance(k, int):
        k = clipped(k, -rows, columns)
    if not (isinstance(k, int) and k == 0):
        row = add(row, k if isinstance(k, int) else convert(k, np.dtype(np.int32)))
    return row, broadcasted_iota(int32, (rows, columns), 1)


def clipped(k: int, low: int, high: int) -> int:
    """The diagonal k, or the first one outside the matrix on its side."""
    return smaller_size(larger_size(k, low), high)


def eye(
    N: int,
    M: int | None = None,
    k: int | ArrayLike = 0,
    dtype: DTypeLike | None = None,
    *,
    device: Placement = None,
) -> Array:
    """Ones on the `k`-th diagonal of an N x M matrix, zeros elsewhere.

    Args:
        N: the number of rows.
        M: the number of columns; by default as many as rows.
        k: the diagonal: 0 for the main one, positive above it, negative below. It may
            be traced.
        dtype: the dtype of the result; by default float32, or float64 with x64.
        device: a device or sharding to put the result on; None for the default one.

    Returns:
        an array of shape (N, M).

    Raises:
        TypeError: a size is not an integer known while tracing.
        ValueError: a size is negative.

    >>> import verax.numpy as jnp
    >>> jnp.eye(2).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    >>> jnp.eye(2, 3, k=1, dtype=int).tolist()
    [[0, 1, 0], [0, 0, 1]]
    """
    kind = float_dtype("eye", dtype)
    (rows, columns) = as_shape("eye", (N, N if M is None else M))
    return made("eye", convert(eq(*rows_and_columns(rows, columns, k)), kind), device)


def identity(n: int, dtype: DTypeLike | None = None) -> Array:
    """The n x n identity matrix.

    Args:
        n: the number of rows and columns.
        dtype: the dtype of the result; by default float32, or float64 with x64.

    Returns:
        an array of shape (n, n).

    >>> import verax.numpy as vnp
    >>> vnp.identity(2, dtype=bool)
    Array([[ True, False],
           [False,  True]], dtype=bool)
    """
    return eye(n, dtype=dtype)


def tri(
    N: int, M: int | None = None, k: int = 0, dtype: DTypeLike | None = None
) -> Array:
    """Ones on and below the `k`-th diagonal of an N x M matrix, zeros elsewhere.

    Args:
        N: the number of rows.
        M: the number of columns; by default as many as rows.
        k: the diagonal: 0 for the main one, positive above it, negative below.
        dtype: the dtype of the result; by default float32, or float64 with x64.

    Returns:
        an array of shape (N, M).

    >>> import verax.numpy as vnp
    >>> vnp.tri(3, k=-1, dtype=int)
    Array([[0, 0, 0],
           [1, 0, 0],
           [1, 1, 0]], dtype=int32)
    """
    kind = float_dtype("tri", dtype)
    (rows, columns) = as_shape("tri", (N, N if M is None else M))
    return made("tri", convert(ge(*rows_and_columns(rows, columns, k)), kind), None)


@remembered
def tril(m: ArrayLike, k: int = 0) -> Array:
    """`m` with zeros above the `k`-th diagonal of its last two dimensions.

    Args:
        m: an array of shape (..., rows, columns).
        k: the diagonal: 0 for the main one, positive above it, negative below.

    Returns:
        an array in the shape and dtype of `m`.

    Raises:
        ValueError: `m` has less than two dimensions.

    >>> import verax.numpy as vnp
    >>> vnp.tril(vnp.arange(1, 7).reshape(2, 3), k=1)
    Array([[1, 2, 0],
           [4, 5, 6]], dtype=int32)
    """
    x = matrix("tril", m)
    return select(lower_mask(x, k), x, scalar_zero(x))


@remembered
def triu(m: ArrayLike, k: int = 0) -> Array:
    """`m` with zeros below the `k`-th diagonal of its last two dimensions.

    Args:
        m: an array of shape (..., rows, columns).
        k: the diagonal: 0 for the main one, positive above it, negative below.

    Returns:
        an array in the shape and dtype of `m`.

    Raises:
        ValueError: `m` has less than two dimensions.

    >>> import verax.numpy as vnp
    >>> vnp.triu(vnp.arange(1, 10).reshape(3, 3), k=1)
    Array([[0, 2, 3],
           [0, 0, 6],
           [0, 0, 0]], dtype=int32)
    """
    x = matrix("triu", m)
    return select(lower_mask(x, k - 1), scalar_zero(x), x)


def matrix(name: str, m: ArrayLike) -> Array:
    x = as_array(name, m)
    if x.ndim < 2:
        raise ValueError(
            f"{name} takes an array with at least two dimensions, not {x.aval}"
        )
    return x


def scalar_zero(x: Array) -> object:
    """A zero of the type of `x`, weak where that is."""
    if x.weak_type:
        return typed_fill((), 0, x.dtype, True)
    return scalar_of(0, x.aval.with_shape(()))


def lower_mask(x: Array, k: int) -> Array:
    """Whether an element of the last two dimensions is on or below diagonal `k`."""
    mask = ge(*rows_and_columns(x.shape[-2], x.shape[-1], k))
    return broadcast_in_dim(mask, x.shape, (x.ndim - 2, x.ndim - 1))


@remembered
def diag(v: ArrayLike, k: int = 0) -> Array:
    """A matrix with `v` on its `k`-th diagonal, or that diagonal of the matrix `v`.

    Args:
        v: a vector, or a matrix.
        k: the diagonal: 0 for the main one, positive above it, negative below.

    Returns:
        for a vector of n elements a square matrix with n + abs(k) rows; for a matrix a
        vector, without elements if there is no such diagonal. The dtype is that of `v`.

    Raises:
        ValueError: `v` has neither one nor two dimensions.

    >>> import verax.numpy as vnp
    >>> vnp.diag(vnp.array([1, 2]), k=1)
    Array([[0, 1, 0],
           [0, 0, 2],
           [0, 0, 0]], dtype=int32)
    >>> vnp.diag(vnp.arange(6).reshape(2, 3), k=1)
    Array([1, 5], dtype=int32)
    """
    x = as_array("diag", v)
    if x.ndim == 1:
        return diagonal_matrix(x, index(k))
    if x.ndim == 2:
        return main_diagonal(x, index(k))
    raise ValueError(f"diag takes an array with one or two dimensions, not {x.aval}")


def diagflat(v: ArrayLike, k: int = 0) -> Array:
    """A matrix with the elements of `v` on its `k`-th diagonal.

    Args:
        v: an array or scalar, whose elements are taken row by row.
        k: the diagonal: 0 for the main one, positive above it, negative below.

    Returns:
        a square matrix with `v.size` + abs(k) rows in the dtype of `v`.

    >>> import verax.numpy as vnp
    >>> vnp.diagflat(vnp.array([[1], [2]]), k=-1)
    Array([[0, 0, 0],
           [1, 0, 0],
           [0, 2, 0]], dtype=int32)
    """
    x = with_weak_type(as_array("diagflat", v), False)
    return diagonal_matrix(reshape(x, (x.size,)), index(k))


def diagonal_matrix(x: Array, k: int) -> Array:
    """Zeros between the elements of `x`, as many as make rows of a square matrix."""
    size = x.shape[0] + abs(k)
    if not x.shape[0]:
        return filled((size, size), 0, x.dtype)
    first = max(-k, 0) * size + max(k, 0)
    last = first + (x.shape[0] - 1) * (size + 1)
    flat = pad(x, scalar_zero(x), [(first, size * size - 1 - last, size)])
    return reshape(flat, (size, size))


def main_diagonal(x: Array, k: int) -> Array:
    """Every (columns + 1)th element of the flat matrix, where diagonal k begins."""
    rows, columns = x.shape
    first = -k * columns if k < 0 else k
    length = min(rows + k, columns) if k < 0 else min(rows, columns - k)
    if length <= 0:
        return filled((0,), 0, x.dtype)
    last = first + (length - 1) * (columns + 1)
    return cut(reshape(x, (x.size,)), (first,), (last + 1,), (columns + 1,))


@remembered
def vander(x: ArrayLike, N: int | None = None, increasing: bool = False) -> Array:
    """The matrix of the powers of `x`: N columns, the highest power first.

    Args:
        x: a vector.
        N: the number of columns; by default as many as `x` has elements.
        increasing: whether the power 0 comes first instead.

    Returns:
        an array of shape (`x.size`, N) in the dtype of `x`, booleans as integers.

    Raises:
        ValueError: `x` has not one dimension, or N is negative.

    >>> import verax.numpy as vnp
    >>> vnp.vander(vnp.array([2, 3]), 3)
    Array([[4, 2, 1],
           [9, 3, 1]], dtype=int32)
    >>> vnp.vander(vnp.array([0.0, 3.0]), 3, increasing=True)
    Array([[1., 0., 0.],
           [1., 3., 9.]], dtype=float32)
    """
    base = as_array("vander", x)
    if base.ndim != 1:
        raise ValueError(f"vander takes a one-dimensional array, not {base.aval}")
    (columns,) = as_shape("vander", base.shape[0] if N is None else N)
    if not columns:
        return filled((base.shape[0], 0), 0, base.dtype)
    powers = arange(columns) if increasing else arange(columns - 1, -1, -1)
    if base.dtype == bool_:
        base = convert(base, default_integer())
    if is_integer(base.dtype):
        powers = convert(powers, base.dtype)
    return power(expand_dims(base, (1,)), expand_dims(powers, (0,)))
