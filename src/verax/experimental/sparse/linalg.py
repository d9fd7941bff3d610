"""Linear algebra with sparse matrices: systems of equations and eigenvalues.

On every platform, systems are solved by SciPy on the host, in the middle of the program
that needs it; derivatives are solutions of systems with the same matrix::

    x = spsolve(mat.data, mat.indices, mat.indptr, b)
    values, vectors, steps = lobpcg_standard(lambda x: mat @ x, start)
"""

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from verax import lax, numpy as vnp
from verax.api.host.callbacks import pure_callback
from verax.api.tracing.structs import ShapeDtypeStruct
from verax.experimental.sparse.matmul import compressed_product
from verax.ir.dtypes import is_inexact
from verax.numpy import linalg
from verax.numpy.arguments.arguments import ArrayLike
from verax.rules.values.array import Array
from verax.rules.values.sizes import ShapeError

__all__ = ["lobpcg_standard", "spsolve"]

ORDERS = (0, 1, 2, 3)


def spsolve(
    data: object,
    indices: object,
    indptr: object,
    b: object,
    tol: float = 1e-6,
    reorder: int = 1,
) -> Array:
    """The solution of A x = b, for a square matrix A by compressed rows.

    Args:
        data, indices, indptr: the buffers of A, as those of a `CSR` array.
        b: a vector of the dtype of `data`.
        tol: below which size a pivot counts as zero, where the solver asks.
        reorder: 0 to 3, in which order elements are eliminated, where the solver asks.

    Returns:
        x, of NaN if the matrix is singular.

    Raises:
        ValueError: shapes or dtypes do not fit, or there is no such `reorder`.

    >>> import verax.numpy as vnp
    >>> from verax.experimental import sparse
    >>> mat = sparse.CSR.fromdense(vnp.array([[2.0, 0.0], [1.0, 4.0]]))
    >>> spsolve(mat.data, mat.indices, mat.indptr, vnp.array([2.0, 9.0])).tolist()
    [1.0, 2.0]
    """
    x, cols, starts, right = map(vnp.asarray, (data, indices, indptr, b))
    check_system(x, cols, starts, right, reorder)

    def multiply(v: Array) -> Array:
        return compressed_product(x, starts, cols, v)

    # The solver takes what is stored as it is: no derivative goes through it.
    fixed = [lax.stop_gradient(part) for part in (x, cols, starts)]

    def solve(transposed: bool, _: object, v: Array) -> Array:
        out: Array = pure_callback(
            partial(solved, transposed),
            ShapeDtypeStruct(v.shape, v.dtype),
            *fixed,
            v,
            vmap_method="sequential",
        )
        return out

    out: Array = lax.custom_linear_solve(
        multiply, right, partial(solve, False), partial(solve, True)
    )
    return out


def check_system(
    data: Array, indices: Array, indptr: Array, b: Array, reorder: int
) -> None:
    """Raise ValueError unless these are a square matrix and a vector of one dtype."""
    if data.dtype != b.dtype or not is_inexact(b.dtype):
        raise ValueError(
            "spsolve takes data and b of the same floating-point or complex dtype, not "
            f"{data.dtype} and {b.dtype}"
        )
    if reorder not in ORDERS:
        raise ValueError(f"spsolve: reorder must be one of 0, 1, 2, 3, not {reorder}")
    vectors = b.ndim == data.ndim == 1 and data.shape == indices.shape
    if not vectors or indptr.shape != (b.shape[0] + 1,):
        raise ShapeError(
            "spsolve takes a square matrix by rows and a vector, not data of shape "
            f"{data.shape}, indices {indices.shape}, indptr {indptr.shape} and b "
            f"{b.shape}"
        )


def solved(
    transposed: bool, data: object, indices: object, indptr: object, b: object
) -> np.ndarray:
    """The solution by SciPy."""
    parts = [np.asarray(x) for x in (data, indices, indptr)]
    right = np.asarray(b)
    shape = (right.shape[0], right.shape[0])
    wide = np.promote_types(right.dtype, np.float32)
    from scipy.sparse import csr_matrix

    mat = csr_matrix((parts[0].astype(wide), *parts[1:]), shape=shape)
    mat = mat.T.tocsc() if transposed else mat.tocsc()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a singular matrix gives NaN
        from scipy.sparse import linalg

        return np.asarray(linalg.spsolve(mat, right.astype(wide)), right.dtype)


type Matrix = ArrayLike | Callable[[Array], Array]


class Search(NamedTuple):
    """The state of `lobpcg_standard`."""

    step: Array
    vectors: Array
    directions: Array
    residual: Array
    values: Array
    converged: Array


def lobpcg_standard(
    A: Matrix, X: object, m: int = 100, tol: float | Array | None = None
) -> tuple[Array, Array, Array]:
    """The largest eigenvalues of a symmetric matrix, and their eigenvectors.

    Args:
        A: the matrix, of n rows, or a function that multiplies (n, k) by it.
        X: where to start, (n, k), with 5 k < n.
        m: the most steps.
        tol: how small a residual is, relative to n times the size of the matrix, that
            counts as zero; the precision of the dtype by default.

    Returns:
        k eigenvalues, in descending order, their eigenvectors as columns, and the
        number of steps.

    Raises:
        ValueError: the start is not (n, k), has too many columns, or the matrix has
            another shape or dtype.

    Reference: A. Knyazev, Toward the optimal preconditioned eigensolver: locally
    optimal block preconditioned conjugate gradient method, 2001.
    """
    start = vnp.asarray(X)
    check_start(A, start)
    k = start.shape[1]
    multiply: Callable[[Array], Array] = A if callable(A) else partial(vnp.matmul, A)
    product = multiply(start)
    if product.dtype != start.dtype:
        raise ValueError(
            f"lobpcg_standard: A, X must have same dtypes, but X is {start.dtype} and "
            f"A X is {product.dtype}"
        )
    if product.shape != start.shape:
        raise ShapeError(
            f"lobpcg_standard: A X must be {start.dtype}{list(start.shape)}, as X, not "
            f"{product.dtype}{list(product.shape)}"
        )
    limit = float(vnp.finfo(start.dtype).eps) if tol is None else tol
    first = ritz(multiply, linalg.qr(start)[0], k)
    state = searched(multiply, 0, first, vnp.zeros_like(start), limit)

    def again(state: Search) -> Any:
        return (state.step < m) & ~state.converged

    def step(state: Search) -> Search:
        x = state.vectors
        spaces = [x, outside(x, state.residual), outside(x, state.directions)]
        basis = linalg.qr(vnp.concatenate(spaces, 1))[0]
        vectors = ritz(multiply, basis, k)
        return searched(multiply, state.step + 1, vectors, outside(x, vectors), limit)

    end = lax.while_loop(again, step, state)
    order = vnp.argsort(-end.values)  # equal ones differ by rounding
    return end.values[order], end.vectors[:, order], end.step


def check_start(A: Matrix, start: Array) -> None:
    """Raise ValueError unless a search can start with these columns."""
    if start.ndim != 2:
        raise ShapeError(f"lobpcg_standard: X must be (n, k), not {start.shape}")
    n, k = start.shape
    if not k:
        raise ShapeError("lobpcg_standard: expected search dim > 0, but X is (n, 0)")
    if not callable(A) and vnp.shape(A) != (n, n):
        raise ShapeError(
            f"lobpcg_standard: A must be {(n, n)}, as X has {n} rows, not "
            f"{vnp.shape(A)}"
        )
    if 5 * k >= n:
        raise ValueError(
            f"lobpcg_standard: expected search dim * 5 < matrix dim (got {5 * k}, {n})"
        )


def outside(x: Array, y: Array) -> Array:
    """The part of columns that is orthogonal to those of `x`, of length 1 or zero."""
    for _ in range(2):  # once is not enough in floating point
        y = y - x @ (x.T @ y)
    length = linalg.norm(y, axis=0, keepdims=True)
    out: Array = vnp.where(length > 0, y / vnp.where(length > 0, length, 1), 0)
    return out


def ritz(multiply: Callable[[Array], Array], basis: Array, k: int) -> Array:
    """The k best eigenvectors in the space of an orthonormal basis."""
    small = basis.T @ multiply(basis)
    vectors = linalg.eigh((small + small.T) / 2)[1]
    return basis @ vectors[:, ::-1][:, :k]


def searched(
    multiply: Callable[[Array], Array],
    step: object,
    vectors: Array,
    directions: Array,
    limit: float | Array,
) -> Search:
    """The state with these vectors."""
    product = multiply(vectors)
    values = (vectors * product).sum(0)
    residual = product - vectors * values[None, :]
    size = linalg.norm(product, axis=0) + abs(values)
    error = linalg.norm(residual, axis=0)
    done = (error <= 10 * vectors.shape[0] * limit * size).all()
    return Search(vnp.asarray(step), vectors, directions, residual, values, done)
