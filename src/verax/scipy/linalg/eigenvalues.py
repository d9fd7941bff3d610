"""Floor 6: eigenvalues and eigenvectors of Hermitian and of tridiagonal matrices.

w, v = eigh(a)
w = eigh_tridiagonal(d, e, eigvals_only=True, select="i", select_range=(0, 2))
"""

import operator
from typing import Literal, SupportsIndex, overload

import numpy as np

from verax import numpy as vnp
from verax.ir.dtypes import is_complex
from verax.numpy.arguments.arguments import ArrayLike, inexact_arrays
from verax.numpy.linalg.decompositions import as_matrices, check_square
from verax.numpy.linalg.products import matmul
from verax.ops.linalg import eigen
from verax.ops.linalg.triangular import adjoint, cholesky, symmetrized, triangular_solve
from verax.rules.values.array import Array


@overload
def eigh(
    a: ArrayLike,
    b: ArrayLike | None = None,
    lower: bool = True,
    eigvals_only: Literal[False] = False,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    turbo: bool = True,
    eigvals: None = None,
    type: int = 1,
    check_finite: bool = True,
) -> tuple[Array, Array]: ...
@overload
def eigh(
    a: ArrayLike,
    b: ArrayLike | None,
    lower: bool,
    eigvals_only: Literal[True],
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    turbo: bool = True,
    eigvals: None = None,
    type: int = 1,
    check_finite: bool = True,
) -> Array: ...
@overload
def eigh(
    a: ArrayLike,
    b: ArrayLike | None = None,
    lower: bool = True,
    *,
    eigvals_only: Literal[True],
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    turbo: bool = True,
    eigvals: None = None,
    type: int = 1,
    check_finite: bool = True,
) -> Array: ...
@overload
def eigh(
    a: ArrayLike,
    b: ArrayLike | None = None,
    lower: bool = True,
    eigvals_only: bool = False,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    turbo: bool = True,
    eigvals: None = None,
    type: int = 1,
    check_finite: bool = True,
) -> Array | tuple[Array, Array]: ...
def eigh(
    a: ArrayLike,
    b: ArrayLike | None = None,
    lower: bool = True,
    eigvals_only: bool = False,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    turbo: bool = True,
    eigvals: None = None,
    type: int = 1,
    check_finite: bool = True,
) -> Array | tuple[Array, Array]:
    """Eigenvalues, ascending, and eigenvectors of Hermitian matrices.

    With a Hermitian positive definite `b` they solve A v = w B v (`type` 1),
    A B v = w v (2) or B A v = w v (3), and Vᴴ B V is the identity (for type 3,
    Vᴴ B⁻¹ V).

    Args:
        a: square matrices of shape (..., n, n), of which (A + Aᴴ) / 2 is taken, where
            SciPy reads one triangle; integers become floats.
        b: positive definite matrices of shape (..., n, n), taken likewise; None for the
            identity. Leading dimensions broadcast with those of `a`.
        lower: changes nothing, since both triangles are read.
        eigvals_only: whether the vectors are left out.
        overwrite_a: changes nothing, since arrays are immutable.
        overwrite_b: changes nothing, since arrays are immutable.
        turbo: changes nothing.
        eigvals: only None; slice the results for a part of them.
        type: the problem with `b`: 1, 2 or 3. Without `b` it changes nothing.
        check_finite: changes nothing; NaN and infinities are not looked for.

    Returns:
        The real eigenvalues, of shape (..., n), and unless `eigvals_only` the
        eigenvectors, as columns of matrices of shape (..., n, n).

    Raises:
        ValueError: the matrices are not square or of different sizes, there is no such
            `type`, or a part of the values is requested.

    >>> import numpy as np
    >>> w, v = eigh(np.diag([2.0, 3.0]), np.diag([1.0, 4.0]))
    >>> w.tolist()
    [0.75, 2.0]
    """
    if type not in (1, 2, 3):
        raise ValueError(f"eigh: type must be 1, 2 or 3, not {type!r}")
    if eigvals is not None:
        raise ValueError("eigh: eigvals is not available; slice the results")
    if b is not None:
        return generalised(a, b, lower, eigvals_only, type)
    (x,) = as_matrices("eigh", a)
    v, w = eigen.eigh(x, lower=lower)
    return w if eigvals_only else (w, v)


def generalised(
    a: ArrayLike, b: ArrayLike, lower: bool, eigvals_only: bool, type: int
) -> Array | tuple[Array, Array]:
    """The problem of two matrices as that of one, with the factor L of B = L Lᴴ."""
    x, metric = as_matrices("eigh", a, b)
    if check_square("eigh", x) != check_square("eigh", metric):
        raise ValueError(
            f"eigh takes matrices of the same size, not {x.aval} and {metric.aval}"
        )
    stack = vnp.broadcast_shapes(x.shape[:-2], metric.shape[:-2])
    x, metric = (vnp.broadcast_to(m, (*stack, *m.shape[-2:])) for m in (x, metric))
    factor = cholesky(metric)
    middle = symmetrized(x)
    if type == 1:
        middle = triangular_solve(factor, middle, left_side=True, lower=True)
        middle = triangular_solve(
            factor, middle, lower=True, transpose_a=True, conjugate_a=True
        )
    else:
        middle = matmul(matmul(adjoint(factor), middle), factor)
    v, w = eigen.eigh(middle, lower=lower)
    if eigvals_only:
        return w
    if type == 3:
        return w, matmul(factor, v)
    turned = triangular_solve(
        factor, v, left_side=True, lower=True, transpose_a=True, conjugate_a=True
    )
    return w, turned


@overload
def eigh_tridiagonal(
    d: ArrayLike,
    e: ArrayLike,
    *,
    eigvals_only: Literal[False] = False,
    select: str = "a",
    select_range: tuple[SupportsIndex, SupportsIndex] | None = None,
    tol: float | None = None,
    key: Array | None = None,
) -> tuple[Array, Array]: ...
@overload
def eigh_tridiagonal(
    d: ArrayLike,
    e: ArrayLike,
    *,
    eigvals_only: Literal[True],
    select: str = "a",
    select_range: tuple[SupportsIndex, SupportsIndex] | None = None,
    tol: float | None = None,
    key: Array | None = None,
) -> Array: ...
@overload
def eigh_tridiagonal(
    d: ArrayLike,
    e: ArrayLike,
    *,
    eigvals_only: bool = False,
    select: str = "a",
    select_range: tuple[SupportsIndex, SupportsIndex] | None = None,
    tol: float | None = None,
    key: Array | None = None,
) -> Array | tuple[Array, Array]: ...
def eigh_tridiagonal(
    d: ArrayLike,
    e: ArrayLike,
    *,
    eigvals_only: bool = False,
    select: str = "a",
    select_range: tuple[SupportsIndex, SupportsIndex] | None = None,
    tol: float | None = None,
    key: Array | None = None,
) -> Array | tuple[Array, Array]:
    """Eigenvalues, ascending, and eigenvectors of Hermitian tridiagonal matrices.

    The matrix is filled in and given to `eigh`, which finds all values to full
    precision, so `tol` and `key` change nothing and a part costs as much as the whole.

    Args:
        d: the diagonal, of shape (..., n); only real parts count.
        e: the diagonal above, of shape (..., n - 1); below are its conjugates.
        eigvals_only: whether the vectors are left out.
        select: "a" for all, "i" for those with the indices of `select_range`.
        select_range: the first and last index, from 0 to n - 1; needed for "i".
        tol: not needed.
        key: not needed.

    Returns:
        The real eigenvalues, of shape (..., k) with k of them selected, and unless
        `eigvals_only` the eigenvectors, as columns of matrices of shape (..., n, k).

    Raises:
        ValueError: the shapes do not fit, or there is no such selection.

    >>> w = eigh_tridiagonal(np.float32([2, 2]), np.float32([1]), eigvals_only=True)
    >>> np.round(np.asarray(w)).tolist()
    [1.0, 3.0]
    """
    middle, beside = inexact_arrays("eigh_tridiagonal", d, e)
    if not middle.ndim or (*middle.shape[:-1], middle.shape[-1] - 1) != beside.shape:
        raise ValueError(
            "eigh_tridiagonal takes n diagonal and n - 1 off-diagonal elements, not "
            f"{middle.aval} and {beside.aval}"
        )
    n = middle.shape[-1]
    first, last = selected(n, select, select_range)
    if is_complex(middle.dtype):
        middle = middle.real.astype(beside.dtype)
    filled = vnp.zeros((*middle.shape, n), middle.dtype)
    i = np.arange(n)
    filled = filled.at[..., i, i].set(middle).at[..., i[:-1], i[1:]].set(beside)
    filled = filled.at[..., i[1:], i[:-1]].set(vnp.conj(beside))
    v, w = eigen.eigh(filled, lower=True)
    part = w[..., first : last + 1]
    return part if eigvals_only else (part, v[..., first : last + 1])


def selected(
    n: int, select: str, select_range: tuple[SupportsIndex, SupportsIndex] | None
) -> tuple[int, int]:
    """The first and last index of the eigenvalues asked for.

    Raises:
        ValueError: there are no such indices, or a selection other than by index is
            requested.
    """
    if select == "a":
        return 0, n - 1
    if select != "i":
        raise ValueError(
            "eigh_tridiagonal: select must be 'a' (all) or 'i' (by index), not "
            f"{select!r}: how many values lie in an interval is not known while "
            "tracing"
        )
    if select_range is None:
        raise ValueError("eigh_tridiagonal: select='i' needs a select_range")
    first, last = (operator.index(x) for x in select_range)
    if not 0 <= first <= last < n:
        raise ValueError(
            f"select_range must lie between 0 and {n - 1}, not {select_range}"
        )
    return first, last
