"""Floor 6: matrices that are known once their size is: Hilbert's, Pascal's, ...

One idea: a matrix without array arguments is a constant, so NumPy computes it in
double precision, once, and only the result is rounded::

    hilbert(3), pascal(4, "lower"), hadamard(8), dft(16)
"""

import math
import operator

import numpy as np

from verax import numpy as vnp
from verax.ir.dtypes import DTypeLike, is_complex
from verax.numpy.arguments.arguments import chosen_dtype
from verax.rules.values.array import Array

KINDS = ("symmetric", "lower", "upper")


def order(name: str, n: int, least: int = 0) -> int:
    """A size.

    Raises:
        TypeError: it is not an integer known while tracing.
        ValueError: it is too small.
    """
    found = operator.index(n)
    if found < least:
        kind = "positive" if least else "nonnegative"
        raise ValueError(f"{name}: n must be a {kind} integer, not {found}")
    return found


def as_floats(x: np.ndarray) -> Array:
    """A matrix in the default float dtype."""
    return vnp.array(x, dtype=float)


def binomials(n: int) -> np.ndarray:
    """Pascal's triangle: i over j."""
    rows = [[math.comb(i, j) for j in range(n)] for i in range(n)]
    return np.array(rows, np.float64).reshape(n, n)


def hilbert(n: int) -> Array:
    """The matrix of 1 / (i + j + 1).

    >>> hilbert(2).round(3).tolist()
    [[1.0, 0.5], [0.5, 0.333...]]
    """
    i = np.arange(order("hilbert", n))
    return as_floats(1 / (i[:, None] + i[None, :] + 1.0))


def invhilbert(n: int) -> Array:
    """The inverse of Hilbert's matrix, whose elements are integers.

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

    Raises:
        ValueError: there is no such kind.

    >>> pascal(3).tolist()
    [[1.0, 1.0, 1.0], [1.0, 2.0, 3.0], [1.0, 3.0, 6.0]]
    """
    chosen = check_kind("pascal", kind)
    lower = binomials(order("pascal", n))
    whole = {"lower": lower, "upper": lower.T, "symmetric": lower @ lower.T}
    return as_floats(whole[chosen])


def invpascal(n: int, kind: str | None = None) -> Array:
    """The inverse of `pascal`.

    Raises:
        ValueError: there is no such kind.

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

    Raises:
        ValueError: n is not a power of two.

    >>> hadamard(2).tolist()
    [[1, 1], [1, -1]]
    """
    size = operator.index(n)
    if size < 1 or size & (size - 1):
        raise ValueError(f"hadamard: n must be a positive power of 2, not {size}")
    found = np.ones((1, 1), np.int64)
    while found.shape[0] < size:
        found = np.block([[found, found], [found, -found]])
    return vnp.array(found, dtype=dtype)


def dft(n: int, scale: str | None = None, *, dtype: DTypeLike | None = None) -> Array:
    """The matrix of the discrete Fourier transform, over n or √n with a scale.

    Raises:
        ValueError: the scale is not None, "sqrtn" or "n", or the dtype not complex.

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
    found = np.exp(-2j * np.pi * turns / max(i.size, 1))
    by = {None: 1.0, "sqrtn": np.sqrt(i.size), "n": i.size}[scale]
    return vnp.array(found / by if i.size else found, dtype=kind)
