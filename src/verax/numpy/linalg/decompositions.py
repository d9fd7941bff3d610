"""Floor 6: decompositions of matrices with NumPy's names, arguments and results.

One idea: arguments become stacks of float or complex matrices, results tuples with
names; the rest is a row of the table::

    q, r = qr(a)
    eigh(a).eigenvalues
"""

from typing import Literal, NamedTuple, overload

from verax.backend.eager.composites import remembered
from verax.numpy.arguments.arguments import ArrayLike, inexact_arrays
from verax.numpy.shaping.shapes import matrix_transpose
from verax.ops.elementwise.arith import abs as magnitude, neg
from verax.ops.elementwise.compare import lt
from verax.ops.elementwise.select import select
from verax.ops.indexing.gather import take_along
from verax.ops.linalg import eigen, triangular
from verax.ops.linalg.qr import geqrf, qr as qr_of
from verax.ops.linalg.svd import svd as svd_of
from verax.ops.linalg.triangular import adjoint, along_rows, times_columns
from verax.ops.sorting.sort import sort
from verax.ops.structure.create import broadcasted_iota, full_like
from verax.rules.values.array import Array
from verax.rules.values.sizes import ShapeError


class QRResult(NamedTuple):
    """Q with orthonormal columns, and upper triangular R."""

    Q: Array
    R: Array


class EighResult(NamedTuple):
    """Ascending eigenvalues, and eigenvectors as columns."""

    eigenvalues: Array
    eigenvectors: Array


class EigResult(NamedTuple):
    """Complex eigenvalues, and right eigenvectors as columns."""

    eigenvalues: Array
    eigenvectors: Array


class SVDResult(NamedTuple):
    """U, descending singular values, and Vᴴ."""

    U: Array
    S: Array
    Vh: Array


def as_matrices(name: str, *args: ArrayLike) -> list[Array]:
    """Arguments as inexact arrays of the same dtype with at least two dimensions.

    Raises:
        TypeError: one is not an array.
        ValueError: the first has fewer dimensions.
    """
    out = inexact_arrays(name, *args)
    if out[0].ndim < 2:
        raise ShapeError(
            f"{name} takes a matrix or a stack of matrices (at least 2 dimensions), "
            f"not {out[0].aval}"
        )
    return out


def check_square(name: str, a: Array) -> int:
    """The size of square matrices.

    Raises:
        ValueError: they are not square.
    """
    if a.shape[-1] != a.shape[-2]:
        raise ShapeError(f"{name} takes square matrices, not {a.aval}")
    return a.shape[-1]


@remembered
def cholesky(
    a: ArrayLike, *, upper: bool = False, symmetrize_input: bool = True
) -> Array:
    """The lower triangular L with L Lᴴ = A, or with `upper` the U with Uᴴ U = A.

    NaN where a matrix is not positive definite; NumPy raises an error there.

    Args:
        a: Hermitian positive definite matrices, of shape (..., n, n).
        upper: whether U is returned instead of L.
        symmetrize_input: whether (A + Aᴴ) / 2 is decomposed; else only the lower
            triangle of A is read.

    Returns:
        an array in the shape of `a`, in its dtype, integers as floats; the other
        triangle is 0.

    Raises:
        ValueError: the matrices are not square.

    >>> import verax.numpy as vnp
    >>> vnp.linalg.cholesky(vnp.array([[4.0, 2.0], [2.0, 5.0]]))
    Array([[2., 0.],
           [1., 2.]], dtype=float32)
    """
    (x,) = as_matrices("cholesky", a)
    factor = triangular.cholesky(x, symmetrize_input=symmetrize_input)
    return adjoint(factor) if upper else factor


@overload
def qr(
    a: ArrayLike, mode: Literal["reduced", "complete", "raw", "full"] = "reduced"
) -> QRResult: ...
@overload
def qr(a: ArrayLike, mode: Literal["r"]) -> Array: ...
@overload
def qr(a: ArrayLike, mode: str) -> Array | QRResult: ...
@remembered
def qr(a: ArrayLike, mode: str = "reduced") -> Array | QRResult:
    """Q with orthonormal columns and upper triangular R, with Q R = A.

    Args:
        a: matrices of shape (..., m, n).
        mode: "reduced" for as many columns of Q as min(m, n); "complete" for a square
            Q; "r" for the R of "reduced" alone; "full", as in NumPy, is an old name of
            "reduced"; "raw" for the Householder reflections of LAPACK, transposed, and
            their scales.

    Returns:
        a tuple with the names `Q` and `R`, of shapes (..., m, k) and (..., k, n), with
        k = min(m, n), or m for "complete"; R alone for "r"; shapes (..., n, m) and
        (..., min(m, n)) for "raw". The dtype is that of `a`, integers as floats.

    Raises:
        ValueError: there is no such mode, or `a` has fewer than two dimensions.

    >>> import verax.numpy as vnp
    >>> a = vnp.array([[3.0, 1.0], [4.0, 2.0], [0.0, 2.0]])
    >>> q, r = vnp.linalg.qr(a)
    >>> q.shape, r.shape, bool(vnp.allclose(q @ r, a, atol=1e-5))
    ((3, 2), (2, 2), True)
    >>> abs(q.T @ q).round(3)
    Array([[1., 0.],
           [0., 1.]], dtype=float32)
    """
    (x,) = as_matrices("qr", a)
    if mode == "raw":
        packed, taus = geqrf(x)
        return QRResult(matrix_transpose(packed), taus)
    if mode not in ("reduced", "complete", "r", "full"):
        raise ValueError(
            f"qr: mode must be 'reduced', 'complete', 'r' or 'raw', not {mode!r}"
        )
    q, r = qr_of(x, full_matrices=mode == "complete")
    return r if mode == "r" else QRResult(q, r)


@overload
def svd(
    a: ArrayLike,
    full_matrices: bool = True,
    compute_uv: Literal[True] = True,
    hermitian: bool = False,
    subset_by_index: tuple[int, int] | None = None,
) -> SVDResult: ...
@overload
def svd(
    a: ArrayLike,
    full_matrices: bool,
    compute_uv: Literal[False],
    hermitian: bool = False,
    subset_by_index: tuple[int, int] | None = None,
) -> Array: ...
@overload
def svd(
    a: ArrayLike,
    full_matrices: bool = True,
    *,
    compute_uv: Literal[False],
    hermitian: bool = False,
    subset_by_index: tuple[int, int] | None = None,
) -> Array: ...
@overload
def svd(
    a: ArrayLike,
    full_matrices: bool = True,
    compute_uv: bool = True,
    hermitian: bool = False,
    subset_by_index: tuple[int, int] | None = None,
) -> Array | SVDResult: ...
@remembered
def svd(
    a: ArrayLike,
    full_matrices: bool = True,
    compute_uv: bool = True,
    hermitian: bool = False,
    subset_by_index: tuple[int, int] | None = None,
) -> Array | SVDResult:
    """U, S and Vh with U diag(S) Vh = A; S alone without `compute_uv`.

    Args:
        a: matrices of shape (..., m, n).
        full_matrices: whether U and Vh are square; else they have as many columns and
            rows as there are singular values.
        compute_uv: whether U and Vh are computed, too.
        hermitian: whether `a` is taken to be Hermitian; then all is made from the
            eigenvectors, which costs less.
        subset_by_index: only None or (0, min(m, n)): all singular values; the results
            can be sliced.

    Returns:
        a tuple with the names `U`, `S` and `Vh`, of shapes (..., m, m), (..., k) and
        (..., n, n), with k = min(m, n); without `full_matrices` (..., m, k), (..., k)
        and (..., k, n). S is real and descending; U and Vh have the dtype of `a`,
        integers as floats.

    Raises:
        ValueError: `hermitian`, and the matrices are not square; or a part of the
            singular values is requested.

    >>> import verax.numpy as vnp
    >>> a = vnp.array([[3.0, 0.0], [0.0, -5.0], [0.0, 0.0]])
    >>> u, s, vh = vnp.linalg.svd(a, full_matrices=False)
    >>> s.round(3), u.shape, bool(vnp.allclose(u * s @ vh, a, atol=1e-5))
    (Array([5., 3.], dtype=float32), (3, 2), True)
    """
    (x,) = as_matrices("svd", a)
    if hermitian:
        check_subset("svd", subset_by_index, min(x.shape[-2:]))
        return hermitian_svd(x, compute_uv)
    if not compute_uv:
        return values_of(x, subset_by_index)
    return SVDResult(
        *svd_of(x, full_matrices=full_matrices, subset_by_index=subset_by_index)
    )


def check_subset(name: str, subset: tuple[int, int] | None, count: int) -> None:
    """Raise a ValueError unless `subset` says that all of `count` values are wanted."""
    if subset is not None and subset != (0, count):
        raise ValueError(
            f"{name}: subset_by_index={subset} is not available on CPU and GPU; slice "
            "the results"
        )


def values_of(x: Array, subset: tuple[int, int] | None = None) -> Array:
    """Descending singular values."""
    return svd_of(x, full_matrices=False, compute_uv=False, subset_by_index=subset)


def hermitian_svd(x: Array, compute_uv: bool) -> Array | SVDResult:
    """Singular values are sizes of eigenvalues, in another order."""
    check_square("svd with hermitian=True", x)
    v, w = eigen.eigh(x)
    last = w.ndim - 1
    sizes = magnitude(w)
    places = broadcasted_iota("int32", w.shape, last)
    result, order = sort((neg(sizes), places), last)
    s = neg(result)
    if not compute_uv:
        return s
    vectors = take_along(v, along_rows(order, v), last + 1)
    # Vectors of eigenvalues that are zero stay, so that u is orthogonal.
    chosen = take_along(w, order, last)
    signs = select(lt(chosen, 0), full_like(chosen, -1), full_like(chosen, 1))
    u = times_columns(vectors, signs)
    return SVDResult(u, s, adjoint(vectors))


def svdvals(x: ArrayLike, /) -> Array:
    """Descending singular values.

    Args:
        x: matrices of shape (..., m, n).

    Returns:
        an array of shape (..., min(m, n)) in the real dtype of `x`, integers as floats.

    >>> import verax.numpy as vnp
    >>> vnp.linalg.svdvals(vnp.array([[0, 3, 0], [-4, 0, 0]])).round(3)
    Array([4., 3.], dtype=float32)
    """
    (a,) = as_matrices("svdvals", x)
    return values_of(a)


def reads_lower(name: str, uplo: str | None) -> bool:
    """Whether the lower triangle is meant.

    Raises:
        ValueError: `uplo` is neither "L" nor "U".
    """
    if uplo not in (None, "L", "U"):
        raise ValueError(f"{name}: UPLO must be 'L' or 'U', not {uplo!r}")
    return uplo != "U"


@remembered
def eigh(
    a: ArrayLike, UPLO: str | None = None, symmetrize_input: bool = True
) -> EighResult:
    """Eigenvalues, ascending, and eigenvectors of Hermitian matrices.

    NumPy reads one triangle only; here that is so without `symmetrize_input`.

    Args:
        a: Hermitian matrices of shape (..., n, n).
        UPLO: the triangle that is read without `symmetrize_input`: "L", the lower one,
            also for None, or "U".
        symmetrize_input: whether (A + Aᴴ) / 2 is decomposed.

    Returns:
        a tuple with the names `eigenvalues`, of shape (..., n) and real, and
        `eigenvectors`, of shape (..., n, n), with a vector of length 1 in each column,
        in the dtype of `a`, integers as floats.

    Raises:
        ValueError: the matrices are not square, or there is no such triangle.

    >>> import verax.numpy as vnp
    >>> a = vnp.array([[2.0, 1.0], [1.0, 2.0]])
    >>> w, v = vnp.linalg.eigh(a)
    >>> w.round(3), bool(vnp.allclose(a @ v, w * v, atol=1e-5))
    (Array([1., 3.], dtype=float32), True)
    """
    (x,) = as_matrices("eigh", a)
    lower = reads_lower("eigh", UPLO)
    v, w = eigen.eigh(x, lower=lower, symmetrize_input=symmetrize_input)
    return EighResult(w, v)


def eigvalsh(
    a: ArrayLike, UPLO: str | None = "L", *, symmetrize_input: bool = True
) -> Array:
    """Eigenvalues of Hermitian matrices, ascending.

    Args:
        a: Hermitian matrices of shape (..., n, n).
        UPLO: the triangle that is read without `symmetrize_input`: "L", the lower one,
            also for None, or "U".
        symmetrize_input: whether the eigenvalues are those of (A + Aᴴ) / 2.

    Returns:
        a real array of shape (..., n).

    Raises:
        ValueError: the matrices are not square, or there is no such triangle.

    >>> import verax.numpy as vnp
    >>> a = vnp.array([[2.0, 0.0], [1.0, 2.0]])
    >>> vnp.linalg.eigvalsh(a).round(3)
    Array([1.5, 2.5], dtype=float32)
    >>> vnp.linalg.eigvalsh(a, symmetrize_input=False).round(3)
    Array([1., 3.], dtype=float32)
    """
    return eigh(a, UPLO, symmetrize_input).eigenvalues


def eig(a: ArrayLike) -> EigResult:
    """Eigenvalues and right eigenvectors of general matrices, complex.

    The derivatives of the vectors are undefined: see `verax.lax.linalg.eig`. Unlike in
    NumPy, results of real matrices are complex even if their eigenvalues are real.

    Args:
        a: matrices of shape (..., n, n).

    Returns:
        a tuple with the names `eigenvalues`, of shape (..., n), in no particular order,
        and `eigenvectors`, of shape (..., n, n), with a vector in each column.

    Raises:
        ValueError: the matrices are not square.

    >>> import verax.numpy as vnp
    >>> a = vnp.array([[0.0, -1.0], [1.0, 0.0]])
    >>> w, v = vnp.linalg.eig(a)
    >>> vnp.sort(w).round(3), bool(vnp.allclose(a @ v, w * v, atol=1e-5))
    (Array([0.-1.j, 0.+1.j], dtype=complex64), True)
    """
    (x,) = as_matrices("eig", a)
    w, v = eigen.eig(x, compute_left_eigenvectors=False)
    return EigResult(w, v)


def eigvals(a: ArrayLike) -> Array:
    """Eigenvalues of general matrices, complex.

    Unlike in NumPy, they are complex even if they all are real numbers.

    Args:
        a: matrices of shape (..., n, n).

    Returns:
        a complex array of shape (..., n), in no particular order.

    Raises:
        ValueError: the matrices are not square.

    >>> import verax.numpy as vnp
    >>> vnp.sort(vnp.linalg.eigvals(vnp.array([[2.0, 1.0], [0.0, 3.0]]))).round(3)
    Array([2.+0.j, 3.+0.j], dtype=complex64)
    """
    (x,) = as_matrices("eigvals", a)
    return eigen.eig(
        x, compute_left_eigenvectors=False, compute_right_eigenvectors=False
    )[0]
