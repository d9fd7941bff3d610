"""Floor 2: a few words of matrix algebra, for the rules of decompositions.

One idea: rules read as in the books, on the last two dimensions, whatever stands in
front of them::

    matmul(adjoint(q), a)        # Qᴴ A
    below(x), above(x)           # strict triangles
"""

import numpy as np

from verax.ir.avals import ShapedArray
from verax.ir.dtypes import is_complex, real_dtype
from verax.ops.contraction.dot import batch_matmul
from verax.ops.contraction.precision import Precision
from verax.ops.elementwise.arith import add, mul
from verax.ops.elementwise.compare import eq, ge, gt, le, lt
from verax.ops.elementwise.complex import conj, real
from verax.ops.elementwise.convert import convert
from verax.ops.elementwise.select import select
from verax.ops.reductions.reduce import reduce_sum
from verax.ops.structure.create import broadcasted_iota, full_like
from verax.ops.structure.shape import broadcast_in_dim, transpose
from verax.ops.structure.slicing import slice_in_dim
from verax.rules.values.array import Array
from verax.rules.values.constants import aval_of


def as_operand(x: object) -> Array:
    """An array, or what can be one, as an array."""
    return x if isinstance(x, Array) else convert(x, aval_of(x).dtype)


def matmul(x: Array, y: Array) -> Array:
    """The products of two stacks of matrices, in all their digits.

    Derivatives of factorisations lose more than products do, so what is configured for
    products has no say.
    """
    return batch_matmul(x, y, Precision.HIGHEST)


def transposed(x: Array) -> Array:
    """Each matrix with rows and columns exchanged."""
    order = (*range(x.ndim - 2), x.ndim - 1, x.ndim - 2)
    return transpose(x, order)


def conjugate(x: Array) -> Array:
    """The complex conjugate; real arrays as they are."""
    return conj(x) if is_complex(x.dtype) else x


def adjoint(x: Array) -> Array:
    """Each matrix transposed and conjugated."""
    return conjugate(transposed(x))


def real_part(x: Array) -> Array:
    """The real part; real arrays as they are."""
    return real(x) if is_complex(x.dtype) else x


def like(x: Array, y: Array) -> Array:
    """`x` in the dtype of `y`."""
    return convert(x, y.dtype)


def rows_and_columns(x: Array) -> tuple[Array, Array]:
    """Index arrays of the shape of one matrix."""
    shape = x.shape[-2:]
    return broadcasted_iota(np.int32, shape, 0), broadcasted_iota(np.int32, shape, 1)


def masked(x: Array, mask: Array) -> Array:
    """Each matrix where `mask` holds, zero elsewhere."""
    where = broadcast_in_dim(mask, x.shape, (x.ndim - 2, x.ndim - 1))
    return select(where, x, zeros_like(x))


def zeros_like(x: Array) -> Array:
    """Zeros of the type of `x`."""
    return full_like(x, 0)


def below(x: Array) -> Array:
    """The part under the diagonal."""
    i, j = rows_and_columns(x)
    return masked(x, gt(i, j))


def lower_part(x: Array) -> Array:
    """The diagonal and what is under it."""
    i, j = rows_and_columns(x)
    return masked(x, ge(i, j))


def above(x: Array) -> Array:
    """The part over the diagonal."""
    i, j = rows_and_columns(x)
    return masked(x, lt(i, j))


def upper_part(x: Array) -> Array:
    """The diagonal and what is over it."""
    i, j = rows_and_columns(x)
    return masked(x, le(i, j))


def on_diagonal(x: Array) -> Array:
    """The diagonal, as a matrix."""
    i, j = rows_and_columns(x)
    return masked(x, eq(i, j))


def diagonal(x: Array) -> Array:
    """The diagonals of square matrices, as vectors."""
    return reduce_sum(on_diagonal(x), (x.ndim - 2,))


def from_lower(x: Array) -> Array:
    """The Hermitian matrix of a lower triangle; the diagonal's imaginary part is 0."""
    strict = below(x)
    centre = like(real_part(on_diagonal(x)), x)
    return add(add(strict, adjoint(strict)), centre)


def from_triangle(x: Array, lower: bool) -> Array:
    """The Hermitian matrix of one triangle of `x`."""
    return from_lower(x if lower else adjoint(x))


def times_columns(x: Array, scale: Array) -> Array:
    """x diag(scale)."""
    return mul(x, along_rows(like(scale, x), x))


def times_rows(scale: Array, x: Array) -> Array:
    """diag(scale) x."""
    return mul(along_columns(like(scale, x), x), x)


def along_rows(v: Array, x: Array) -> Array:
    """Matrices of the shape of `x`, each row of which is the vector."""
    return broadcast_in_dim(v, x.shape, (*range(x.ndim - 2), x.ndim - 1))


def along_columns(v: Array, x: Array) -> Array:
    """Matrices of the shape of `x`, each column of which is the vector."""
    return broadcast_in_dim(v, x.shape, tuple(range(x.ndim - 1)))


def eye_like(x: Array) -> Array:
    """The identity in the shape and dtype of `x`, ones on the diagonal."""
    i, j = rows_and_columns(x)
    where = broadcast_in_dim(eq(i, j), x.shape, (x.ndim - 2, x.ndim - 1))
    return select(where, full_like(x, 1), zeros_like(x))


def columns(x: Array, start: int, stop: int) -> Array:
    """Some columns of each matrix."""
    return slice_in_dim(x, start, stop, axis=x.ndim - 1)


def rows(x: Array, start: int, stop: int) -> Array:
    """Some rows of each matrix."""
    return slice_in_dim(x, start, stop, axis=x.ndim - 2)


def real_type(aval: ShapedArray) -> ShapedArray:
    """The type with the dtype of real"""
    return aval.with_dtype(real_dtype(aval.dtype))
