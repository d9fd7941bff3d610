"""Floor 6: products with reflections and with themselves, and updates of factors.

One idea: k reflections together are I - V T Vᴴ with a triangular T, so that their
product with a matrix is three ordinary products, and its derivative theirs::

    ormqr(h, taus, c)              # Q c, for the Q that geqrf packs
    cholesky_update(r, w)          # the factor of rᵀ r + w wᵀ
"""

from enum import Enum

from verax.ir.dtypes import int32
from verax.lax.scanning import scan
from verax.numpy.arguments.arguments import ArrayLike, inexact_arrays, stretched
from verax.numpy.linalg.products import matmul
from verax.numpy.ranges.grids import eye, tril, triu
from verax.numpy.shaping.shapes import matrix_transpose
from verax.ops.elementwise.arith import add, div, mul, sub
from verax.ops.elementwise.exp_log import sqrt
from verax.ops.linalg.algebra import adjoint
from verax.ops.linalg.triangular import triangular_solve
from verax.ops.structure.create import iota
from verax.rules.values.array import Array


class EigImplementation(Enum):
    """A library for general eigenvalues; on CPU it is LAPACK."""

    __module__ = "verax.lax.linalg"

    CUSOLVER = "cusolver"
    MAGMA = "magma"
    LAPACK = "lapack"


class EighImplementation(Enum):
    """An algorithm for eigenvalues of Hermitian matrices; on CPU it is LAPACK's QR."""

    __module__ = "verax.lax.linalg"

    QR = "qr"
    JACOBI = "jacobi"
    QDWH = "qdwh"


class SvdAlgorithm(Enum):
    """An algorithm for singular values; on CPU it is LAPACK's."""

    __module__ = "verax.lax.linalg"

    DEFAULT = "default"
    QR = "QR"
    JACOBI = "Jacobi"
    POLAR = "polar"
    DIVIDE_AND_CONQUER = "divide_and_conquer"


def ormqr(
    a: ArrayLike,
    taus: ArrayLike,
    c: ArrayLike,
    *,
    left: bool = True,
    transpose: bool = False,
) -> Array:
    """Q c, for the square Q of reflections `a` (..., m, n) with scales `taus` (..., k).

    With `transpose` the conjugate transpose of Q, with `left` False from the right. `a`
    and `taus` are what `geqrf` gives. Schreiber and Van Loan, "A storage-efficient WY
    representation for products of Householder transformations", 1989.

    Raises:
        ValueError: shapes do not match.
    """
    h, scales, x = inexact_arrays("ormqr", a, taus, c)
    if min(h.ndim, x.ndim) < 2 or scales.ndim != h.ndim - 1:
        raise ValueError(
            "ormqr takes reflections of shape (..., m, n), scales of shape (..., k) "
            f"and a matrix, not {h.shape}, {scales.shape} and {x.shape}"
        )
    count = scales.shape[-1]
    size = x.shape[-2 if left else -1]
    if h.shape[-2] != size or count > min(h.shape[-2:]):
        raise ValueError(
            f"ormqr: reflections of shape {h.shape} with {count} scales do not match "
            f"a matrix of shape {x.shape}"
        )
    v = tril(h[..., :count], -1) + eye(size, count, dtype=h.dtype)
    inner = triu(matmul(adjoint(v), v), 1) * scales[..., None, :]
    one = inner + eye(count, dtype=h.dtype)
    # T = diag(taus) (1 + N diag(taus))⁻¹, which takes scales of zero.
    whole = stretched(eye(count, dtype=h.dtype), one.shape)
    t = scales[..., :, None] * triangular_solve(one, whole, left_side=True)
    middle = adjoint(t) if transpose else t
    if left:
        return sub(x, matmul(v, matmul(middle, matmul(adjoint(v), x))))
    return sub(x, matmul(matmul(matmul(x, v), middle), adjoint(v)))


def cholesky_update(r_matrix: ArrayLike, w_vector: ArrayLike) -> Array:
    """The upper triangular R' with R'ᵀ R' = Rᵀ R + w wᵀ, in O(n²) steps.

    Raises:
        ValueError: `r_matrix` is not (n, n), or `w_vector` not (n,).

    >>> import numpy as np
    >>> cholesky_update(np.array([[3.0]]), np.array([4.0])).round(3).tolist()
    [[5.0]]
    """
    r, w = inexact_arrays("cholesky_update", r_matrix, w_vector)
    if r.shape != (*w.shape, *w.shape) or w.ndim != 1:
        raise ValueError(
            f"cholesky_update takes arrays of shapes (n, n) and (n,), not {r.shape} "
            f"and {w.shape}"
        )

    def step(w: Array, line: tuple[Array, Array]) -> tuple[Array, Array]:
        row, i = line
        own, new = row[i], w[i]
        c, s = div(sqrt(add(mul(own, own), mul(new, new))), own), div(new, own)
        after = div(add(row, mul(s, w)), c)
        return sub(mul(c, w), mul(s, after)), after

    found: Array = scan(step, w, (r, iota(int32, w.shape[0])))[1]
    return found


def symmetric_product(
    a_matrix: ArrayLike,
    c_matrix: ArrayLike,
    *,
    alpha: object = 1.0,
    beta: object = 0.0,
    symmetrize_output: bool = False,
) -> Array:
    """alpha A Aᵀ + beta C, for A (..., m, n) and a symmetric C (..., m, m).

    With `symmetrize_output` the part above the diagonal is that below, turned.

    Raises:
        ValueError: shapes do not match.
    """
    a, c = inexact_arrays("symmetric_product", a_matrix, c_matrix)
    if min(a.ndim, c.ndim) < 2 or c.shape != (*a.shape[:-1], a.shape[-2]):
        raise ValueError(
            "symmetric_product takes arrays of shapes (..., m, n) and (..., m, m), "
            f"not {a.shape} and {c.shape}"
        )
    found: Array = alpha * matmul(a, matrix_transpose(a)) + beta * c
    if not symmetrize_output:
        return found
    return add(tril(found), matrix_transpose(tril(found, -1)))
