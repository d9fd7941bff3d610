"""Floor 6: matrices of structure, from blocks and from vectors.

One idea: each element of a Toeplitz matrix or one of its relatives is an element of a
vector, so the matrix is the vector taken at places that NumPy works out once; leading
dimensions are batches::

    toeplitz(c, r), hankel(c, r), circulant(c), companion(a)
"""

import math
import operator
from collections.abc import Callable

import numpy as np

from verax import numpy as vnp
from verax.ir.dtypes import DTypeLike, is_complex
from verax.numpy.applying.padding import pad
from verax.numpy.arguments.arguments import (
    ArrayLike,
    as_array,
    chosen_dtype,
    promote,
    promote_inexact,
)
from verax.numpy.shaping.joining import concatenate
from verax.numpy.shaping.shapes import atleast_2d
from verax.rules.values.array import Array


def block_diag(*arrs: ArrayLike) -> Array:
    """Matrices in the corners of each other, zeros elsewhere.

    Args:
        *arrs: matrices of any sizes; a vector is one row, a scalar one element.

    Returns:
        A matrix of the common dtype, with all rows and all columns; of shape (1, 0)
        without `arrs`.

    Raises:
        ValueError: one has more than two dimensions.

    >>> import verax.numpy as vnp
    >>> from verax.scipy import linalg
    >>> linalg.block_diag(vnp.array([[1, 2]]), 3, vnp.array([4, 5]))
    Array([[1, 2, 0, 0, 0],
           [0, 0, 3, 0, 0],
           [0, 0, 0, 4, 5]], dtype=int32)
    """
    given = as_blocks(arrs or (np.zeros((1, 0), np.float32),))
    width = sum(x.shape[1] for x in given)
    rows, start = [], 0
    for x in given:
        end = width - start - x.shape[1]
        rows.append(pad(x, ((0, 0), (start, end))))
        start += x.shape[1]
    return concatenate(rows, 0)


def as_blocks(arrs: tuple[ArrayLike, ...]) -> list[Array]:
    """Matrices from scalars, vectors and matrices.

    Raises:
        ValueError: one has more dimensions.
    """
    out = []
    for x in promote("block_diag", *arrs):
        matrix = atleast_2d(x)
        if matrix.ndim > 2:
            raise ValueError(f"block_diag takes matrices, not {matrix.aval}")
        out.append(matrix)
    return out


def vector(name: str, x: ArrayLike, least: int = 0, argument: str = "`a`") -> Array:
    """A vector, or a stack of them; a scalar is one of length 1.

    Raises:
        ValueError: it is too short.
    """
    out = vnp.atleast_1d(as_array(name, x))
    if out.shape[-1] < least:
        raise ValueError(
            f"{name}: the length of {argument} along the last axis must be "
            f"{'nonzero' if least == 1 else f'at least {least}'}, not {out.aval}"
        )
    return out


def joined(*parts: Array) -> Array:
    """Vectors of the same dtype joined, their leading dimensions broadcast."""
    batch = vnp.broadcast_shapes(*(x.shape[:-1] for x in parts))
    wide = [vnp.broadcast_to(x, (*batch, x.shape[-1])) for x in parts]
    return concatenate(wide, -1)


def rows_and_columns(m: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    """The indices of an m by n matrix."""
    return np.arange(m)[:, None], np.arange(n)[None, :]


def edges(
    name: str, c: ArrayLike, r: ArrayLike | None, default: Callable[[Array], Array]
) -> tuple[Array, Array]:
    """A column and a row of the same dtype; without `r` the column makes the row."""
    if r is None:
        column = vector(name, c)
        return column, default(column)
    first, second = promote(name, c, r)
    return vector(name, first), vector(name, second)


def laid_out(values: Array, places: np.ndarray) -> Array:
    """The matrix of the values at `places`; there may be none of both."""
    if not places.size:
        return vnp.zeros((*values.shape[:-1], *places.shape), values.dtype)
    return values[..., places]


def toeplitz(c: ArrayLike, r: ArrayLike | None = None) -> Array:
    """The matrix with constant diagonals, first column `c` and first row `r`.

    Args:
        c: the first column, of shape (..., m); leading dimensions are batches.
        r: the first row, of shape (..., n), whose first element is ignored; None for
            the conjugate of `c`.

    Returns:
        An array of shape (..., m, n), in the common dtype.

    >>> toeplitz(np.array([1, 2]), np.array([1, 5, 6])).tolist()
    [[1, 5, 6], [2, 1, 5]]
    """
    column, row = edges("toeplitz", c, r, vnp.conj)
    i, j = rows_and_columns(column.shape[-1], row.shape[-1])
    values = joined(column[..., ::-1], row[..., 1:])
    return laid_out(values, j - i + i.size - 1)


def hankel(c: ArrayLike, r: ArrayLike | None = None) -> Array:
    """The matrix with constant anti-diagonals, first column `c` and last row `r`.

    Args:
        c: the first column, of shape (..., m); leading dimensions are batches.
        r: the last row, of shape (..., n), whose first element is ignored; None for m
            zeros, so that there are zeros below the anti-diagonal.

    Returns:
        An array of shape (..., m, n), in the common dtype.

    >>> hankel(np.array([1, 2, 3])).tolist()
    [[1, 2, 3], [2, 3, 0], [3, 0, 0]]
    """
    column, row = edges("hankel", c, r, vnp.zeros_like)
    i, j = rows_and_columns(column.shape[-1], row.shape[-1])
    values = joined(column, row[..., 1:])
    return laid_out(values, i + j)


def circulant(c: ArrayLike) -> Array:
    """The square matrix whose columns are `c`, turned by one place each.

    Args:
        c: the first column, of shape (..., n); leading dimensions are batches.

    Returns:
        An array of shape (..., n, n), in the dtype of `c`.

    >>> circulant(np.array([1, 2, 3])).tolist()
    [[1, 3, 2], [2, 1, 3], [3, 2, 1]]
    """
    column = vector("circulant", c)
    n = column.shape[-1]
    i, j = rows_and_columns(n, n)
    return column[..., (i - j) % max(n, 1)]


def convolution_matrix(a: ArrayLike, n: int, mode: str = "full") -> Array:
    """The matrix that convolves a vector of length n with `a`.

    Args:
        a: what is convolved with, of shape (..., m) with m at least 1; leading
            dimensions are batches.
        n: the length of the vectors, an integer of 1 or more.
        mode: which part of the convolution: "full", "same" for the middle, or "valid"
            for what does not reach over an end; as in `verax.numpy.convolve`.

    Returns:
        An array of shape (..., k, n), in the dtype of `a`, with k = m + n - 1 for
        "full", max(m, n) for "same" and max(m, n) - min(m, n) + 1 for "valid".

    Raises:
        ValueError: `a` is a scalar or empty, n is not positive, or there is no such
            mode.

    >>> convolution_matrix(np.array([1, 2]), 2).tolist()
    [[1, 0], [2, 1], [0, 2]]
    """
    size = operator.index(n)
    x = as_array("convolution_matrix", a)
    if size <= 0:
        raise ValueError(f"convolution_matrix: n must be a positive integer, not {n}")
    if not x.ndim:
        raise ValueError("convolution_matrix: a must be at least 1-dimensional")
    if not x.shape[-1]:
        raise ValueError(f"convolution_matrix: len(a) must be at least 1, not {x.aval}")
    if mode not in ("full", "valid", "same"):
        raise ValueError(
            "convolution_matrix: mode must be one of 'full', 'valid' and 'same', not "
            f"{mode!r}"
        )
    m = x.shape[-1]
    total, less = m + size - 1, min(m, size) - 1
    start = {"full": 0, "same": less // 2, "valid": less}[mode]
    count = {"full": total, "same": max(m, size), "valid": total - 2 * less}[mode]
    i, j = rows_and_columns(count, size)
    place = i + start - j
    padded = joined(x, vnp.zeros_like(x[..., :1]))
    return padded[..., np.where((place >= 0) & (place < m), place, m)]


def companion(a: ArrayLike) -> Array:
    """The matrix whose characteristic polynomial has the coefficients `a` / a[0].

    Where a[0] is zero, the result is not finite; SciPy raises an error.

    Args:
        a: the coefficients, highest first, of shape (..., n + 1) with n at least 1;
            leading dimensions are batches, and integers become floats.

    Returns:
        An array of shape (..., n, n), in the inexact dtype of `a`.

    Raises:
        ValueError: there are fewer than two coefficients.

    >>> companion(np.array([1.0, -3.0, 2.0])).tolist()
    [[3.0, -2.0], [1.0, 0.0]]
    """
    (given,) = promote_inexact("companion", a)
    x = vector("companion", given, 2)
    n = x.shape[-1] - 1
    i, j = rows_and_columns(n, n)
    return coefficients(x)[..., np.where(i == 0, j + 2, np.where(i == j + 1, 1, 0))]


def coefficients(a: Array) -> Array:
    """0, 1, and the coefficients below the highest, over it, with the other sign."""
    zero = vnp.zeros_like(a[..., :1])
    return joined(zero, zero + 1, -a[..., 1:] / a[..., :1])


def fiedler_companion(a: ArrayLike) -> Array:
    """A companion matrix with five diagonals, of the same eigenvalues.

    M. Fiedler, "A note on companion matrices", 2003.

    Args:
        a: the coefficients, highest first, of shape (..., n + 1); leading dimensions
            are batches, and integers become floats.

    Returns:
        An array of shape (..., n, n), in the inexact dtype of `a`.

    Raises:
        ValueError: there is no coefficient.

    >>> fiedler_companion(np.array([1.0, -16.0, 86.0, -176.0, 105.0])).shape
    (4, 4)
    """
    (given,) = promote_inexact("fiedler_companion", a)
    x = vector("fiedler_companion", given, 1)
    n = x.shape[-1] - 1
    places = np.zeros((n, n), np.int64)
    places[range(3, n, 2), range(1, n - 2, 2)] = 1
    places[range(2, n, 2), range(1, n - 1, 2)] = np.arange(3, n + 1, 2) + 1
    places[range(0, n - 2, 2), range(2, n, 2)] = 1
    places[range(0, n - 1, 2), range(1, n, 2)] = np.arange(2, n + 1, 2) + 1
    if n:
        places[0, 0] = 2
    if n > 1:
        places[1, 0] = 1
    return coefficients(x)[..., places]


def leslie(f: ArrayLike, s: ArrayLike) -> Array:
    """The matrix of a population: births `f` in the first row, survival `s` below.

    Args:
        f: the births in each class of age, of shape (..., n) with n at least 2; leading
            dimensions are batches.
        s: the parts that survive into the next class, of shape (..., n - 1).

    Returns:
        An array of shape (..., n, n), in the common dtype.

    Raises:
        ValueError: `f` has fewer than two numbers, or `s` not one less.

    >>> leslie(np.array([0.5, 2.0]), np.array([0.75])).tolist()
    [[0.5, 2.0], [0.75, 0.0]]
    """
    births, survival = promote("leslie", f, s)
    first, below = vector("leslie", births, 2, "f"), vector("leslie", survival)
    n = first.shape[-1]
    if below.shape[-1] != n - 1:
        raise ValueError(
            "leslie: Incorrect lengths for f and s: s must be one element shorter, not "
            f"{below.shape} for {first.shape}"
        )
    values = joined(first, below, vnp.zeros_like(first[..., :1]))
    i, j = rows_and_columns(n, n)
    return values[..., np.where(i == 0, j, np.where(i == j + 1, n + j, 2 * n - 1))]


def fiedler(a: ArrayLike) -> Array:
    """The matrix of all distances |a[i] - a[j]|.

    Args:
        a: numbers, of shape (..., n); leading dimensions are batches.

    Returns:
        An array of shape (..., n, n), in the dtype of `a`, or that of the parts of
        complex numbers.

    >>> fiedler(np.array([1, 4])).tolist()
    [[0, 3], [3, 0]]
    """
    x = vector("fiedler", a)
    return abs(x[..., :, None] - x[..., None, :])


# -----------------------------------------------------------------------------
# Matrices that are known once their size is: Hilbert's, Pascal's, ...
#
# A matrix without array arguments is a constant, so NumPy computes it in
# double precision, once, and only the result is rounded::
#
#     hilbert(3), pascal(4, "lower"), hadamard(8), dft(16)


KINDS = ("symmetric", "lower", "upper")


def order(name: str, n: int, least: int = 0) -> int:
    """A size.

    Raises:
        TypeError: it is not an integer known while tracing.
        ValueError: it is too small.
    """
    out = operator.index(n)
    if out < least:
        kind = "positive" if least else "nonnegative"
        raise ValueError(f"{name}: n must be a {kind} integer, not {out}")
    return out


def as_floats(x: np.ndarray) -> Array:
    """A matrix in the default float dtype."""
    return vnp.array(x, dtype=float)


def binomials(n: int) -> np.ndarray:
    """Pascal's triangle: i over j."""
    rows = [[math.comb(i, j) for j in range(n)] for i in range(n)]
    return np.array(rows, np.float64).reshape(n, n)


def hilbert(n: int) -> Array:
    """The matrix of 1 / (i + j + 1).

    Args:
        n: the size, an integer of 0 or more.

    Returns:
        An array of shape (n, n), float32 or, with x64, float64.

    Raises:
        TypeError: n is not an integer.
        ValueError: n is negative.

    >>> hilbert(2).round(3).tolist()
    [[1.0, 0.5], [0.5, 0.333...]]
    """
    i = np.arange(order("hilbert", n))
    return as_floats(1 / (i[:, None] + i[None, :] + 1.0))


def invhilbert(n: int) -> Array:
    """The inverse of Hilbert's matrix, whose elements are integers.

    As floats, elements beyond 2²⁴ (with x64, 2⁵³) are rounded.

    Args:
        n: the size, an integer of 0 or more.

    Returns:
        An array of shape (n, n), float32 or, with x64, float64.

    Raises:
        TypeError: n is not an integer.
        ValueError: n is negative.

    >>> invhilbert(2).tolist()
    [[4.0, -6.0], [-6.0, 12.0]]
    """
    size = order("invhilbert", n)

    def element(i: int, j: int) -> float:
        sign = (-1) ** (i + j)
        ways = math.comb(size + i, size - j - 1) * math.comb(size + j, size - i - 1)
        return float(sign * (i + j + 1) * ways * math.comb(i + j, i) ** 2)

    rows = [[element(i, j) for j in range(size)] for i in range(size)]
    return as_floats(np.array(rows, np.float64).reshape(size, size))


def check_kind(name: str, kind: str | None) -> str:
    """Raise ValueError unless a kind is known; None is the symmetric one."""
    if kind is not None and kind not in KINDS:
        raise ValueError(f"{name}: Expected kind to be one of {KINDS}, got {kind!r}")
    return kind or "symmetric"


def pascal(n: int, kind: str | None = None) -> Array:
    """Pascal's triangle as a lower, an upper, or (their product) a symmetric matrix.

    Args:
        n: the size, an integer of 0 or more.
        kind: "symmetric", "lower" or "upper"; None for the first.

    Returns:
        An array of shape (n, n), float32 or, with x64, float64. SciPy's has integers.

    Raises:
        TypeError: n is not an integer.
        ValueError: n is negative, or there is no such kind.

    >>> pascal(3).tolist()
    [[1.0, 1.0, 1.0], [1.0, 2.0, 3.0], [1.0, 3.0, 6.0]]
    """
    chosen = check_kind("pascal", kind)
    lower = binomials(order("pascal", n))
    whole = {"lower": lower, "upper": lower.T, "symmetric": lower @ lower.T}
    return as_floats(whole[chosen])


def invpascal(n: int, kind: str | None = None) -> Array:
    """The inverse of `pascal`.

    Args:
        n: the size, an integer of 0 or more.
        kind: "symmetric", "lower" or "upper"; None for the first.

    Returns:
        An array of shape (n, n), float32 or, with x64, float64. SciPy's has integers.

    Raises:
        TypeError: n is not an integer.
        ValueError: n is negative, or there is no such kind.

    >>> invpascal(2).tolist()
    [[2.0, -1.0], [-1.0, 1.0]]
    """
    chosen = check_kind("invpascal", kind)
    i = np.arange(order("invpascal", n))
    lower = binomials(i.size) * (-1.0) ** (i[:, None] - i[None, :])
    whole = {"lower": lower, "upper": lower.T, "symmetric": lower.T @ lower}
    return as_floats(whole[chosen])


def helmert(n: int, full: bool = False) -> Array:
    """Helmert's contrasts, n - 1 orthonormal rows; with `full` the mean before them.

    Args:
        n: the number of columns, an integer of 1 or more.
        full: whether a first row of 1 / √n is there as well, which makes the matrix
            orthogonal.

    Returns:
        An array of shape (n - 1, n) or (n, n), float32 or, with x64, float64.

    Raises:
        TypeError: n is not an integer.
        ValueError: n is not positive.

    >>> helmert(2).round(4).tolist()
    [[0.707..., -0.707...]]
    """
    size = order("helmert", n, 1)
    k = np.arange(1.0, size)[:, None]
    j = np.arange(size)[None, :]
    rows = np.where(j < k, 1.0, np.where(j == k, -k, 0.0)) / np.sqrt(k * (k + 1))
    first = np.full((1, size), 1 / np.sqrt(size))
    return as_floats(np.concatenate([first, rows]) if full else rows)


def hadamard(n: int, dtype: DTypeLike = int) -> Array:
    """Hadamard's matrix of ones and minus ones with orthogonal rows.

    Args:
        n: the size, a power of 2.
        dtype: the dtype of the result; by default int32 or, with x64, int64.

    Returns:
        An array of shape (n, n).

    Raises:
        TypeError: n is not an integer.
        ValueError: n is not a power of two.

    >>> hadamard(2).tolist()
    [[1, 1], [1, -1]]
    """
    size = operator.index(n)
    if size < 1 or size & (size - 1):
        raise ValueError(f"hadamard: n must be a positive power of 2, not {size}")
    values = np.ones((1, 1), np.int64)
    while values.shape[0] < size:
        values = np.block([[values, values], [values, -values]])
    return vnp.array(values, dtype=dtype)


def dft(n: int, scale: str | None = None, *, dtype: DTypeLike | None = None) -> Array:
    """The matrix of the discrete Fourier transform, over n or √n with a scale.

    Args:
        n: the size, an integer of 0 or more.
        scale: what the matrix is divided by: None for nothing, "sqrtn" for √n, which
            makes it unitary, or "n".
        dtype: the dtype of the result, a complex one; by default complex64 or, with
            x64, complex128.

    Returns:
        An array of shape (n, n).

    Raises:
        TypeError: n is not an integer.
        ValueError: n is negative, the scale is not None, "sqrtn" or "n", or the dtype
            not complex.

    >>> dft(2).real.tolist()
    [[1.0, 1.0], [1.0, -1.0]]
    """
    if scale not in (None, "sqrtn", "n"):
        raise ValueError(f"dft: scale must be None, 'sqrtn' or 'n', not {scale!r}")
    kind = chosen_dtype("dft", complex if dtype is None else dtype)
    if kind is None or not is_complex(kind):
        raise ValueError(f"dft: dtype must be complex, not {kind}")
    i = np.arange(order("dft", n))
    # Whole turns are taken off before the angle is rounded.
    turns = (i[:, None] * i[None, :]) % max(i.size, 1)
    values = np.exp(-2j * np.pi * turns / max(i.size, 1))
    by = {None: 1.0, "sqrtn": np.sqrt(i.size), "n": i.size}[scale]
    return vnp.array(values / by if i.size else values, dtype=kind)
