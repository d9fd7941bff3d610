"""Floor 6: eigenvalues and eigenvectors of Hermitian and of tridiagonal matrices.

w, v = eigh(a)
w = eigh_tridiagonal(d, e, eigvals_only=True, select="i", select_range=(0, 2))
"""

import operator

import numpy as np

from verax import numpy as vnp
from verax.ir.dtypes import is_complex
from verax.numpy.arguments.arguments import (
    ArrayLike,
    inexact_arrays,
)
from verax.numpy.linalg.decompositions import as_matrices
from verax.ops.linalg import eigen
from verax.rules.values.array import Array


def eigh(
    a: ArrayLike,
    b: None = None,
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

    Raises:
        ValueError: a generalised problem or a part of the values is requested.
    """
    if b is not None or eigvals is not None or type != 1:
        raise ValueError("eigh takes one matrix: leave out b, eigvals and type")
    (x,) = as_matrices("eigh", a)
    v, w = eigen.eigh(x, lower=lower)
    return w if eigvals_only else (w, v)


def eigh_tridiagonal(
    d: ArrayLike,
    e: ArrayLike,
    *,
    eigvals_only: bool = False,
    select: str = "a",
    select_range: tuple[float, float] | None = None,
    tol: float | None = None,
    key: Array | None = None,
) -> Array | tuple[Array, Array]:
    """Eigenvalues, ascending, and eigenvectors of Hermitian tridiagonal matrices.

    The matrix is filled in and given to `eigh`, which finds all values to full
    precision, so `tol` and `key` change nothing and a part costs as much as the whole.

    Args:
        d: the diagonal, of shape (..., n); only real parts count.
        e: the diagonal above or below, of shape (..., n - 1).
        eigvals_only: leave out the vectors.
        select: "a" for all, "i" for those with the indices of `select_range`.
        select_range: the first and last index.
        tol: not needed.
        key: not needed.

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
    filled = filled.at[..., i, i].set(middle).at[..., i[1:], i[:-1]].set(beside)
    filled = filled.at[..., i[:-1], i[1:]].set(vnp.conj(beside))
    v, w = eigen.eigh(filled, lower=True)
    part = w[..., first : last + 1]
    return part if eigvals_only else (part, v[..., first : last + 1])


def selected(
    n: int, select: str, select_range: tuple[float, float] | None
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
    first, last = (operator.index(x) for x in select_range)  # type: ignore[arg-type]
    if not 0 <= first <= last < n:
        raise ValueError(
            f"select_range must lie between 0 and {n - 1}, not {select_range}"
        )
    return first, last
