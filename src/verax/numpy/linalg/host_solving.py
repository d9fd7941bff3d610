"""Floor 6: determinants, systems and inverses of one small matrix, by LAPACK alone.

One idea: eagerly, the equations of `det` or `solve` take NumPy longer to start than to
compute; so for one matrix the same routines are called in a row, on the same operands::

    det_at_once(f32[8,8])(values)      # what `det` computes, to the bit
"""

from collections.abc import Callable
from math import isfinite
from operator import ne
from typing import Any

import numpy as np

from verax.backend.eager.composites import OneGo
from verax.ir.avals import ShapedArray
from verax.ir.dtypes import DType, float32, float64, numpy_dtype
from verax.ops.linalg.triangular import solving
from verax.rules.families.lapack import LETTERS, host_routine
from verax.rules.families.reducer import fold
from verax.rules.rows.row import NDArray


def is_matrix(a: ShapedArray) -> bool:
    """Whether `a` is one matrix, not empty, of a dtype that LAPACK has."""
    return a.ndim == 2 and a.dtype in LETTERS and a.size > 0


def det_at_once(a: ShapedArray) -> OneGo | None:
    """The product of the pivots, negated for an odd number of exchanges."""
    if not is_matrix(a) or a.shape[0] in (2, 3):
        return None
    dtype, places = numpy_dtype(a.dtype), range(a.shape[0])
    factor, product = host_routine("getrf", dtype), np.multiply.reduce

    def compute(x: NDArray) -> Any:
        packed, pivots, _ = factor(x)
        size = product(packed.diagonal())
        return -size if sum(map(ne, pivots.tolist(), places)) & 1 else size

    return compute


def slogdet_at_once(a: ShapedArray, *, method: str | None = None) -> OneGo | None:
    """The sign by what is negative and what was exchanged, and the logarithms' sum.

    None for pivots that are NaN, infinite or zero.
    """
    if not is_matrix(a) or method == "qr" or a.dtype not in (float32, float64):
        return None
    dtype, places = numpy_dtype(a.dtype), range(a.shape[0])
    factor, signs = host_routine("getrf", dtype), (dtype.type(1), dtype.type(-1))
    absolute, log, count = np.absolute, np.log, np.count_nonzero

    def compute(x: NDArray) -> Any:
        packed, pivots, _ = factor(x)
        pivot = packed.diagonal()
        size = fold_sum(log(absolute(pivot)))
        if not isfinite(size):
            return None
        turns = sum(map(ne, pivots.tolist(), places)) + count(pivot < 0)
        return signs[turns & 1], size

    return compute


def fold_sum(x: NDArray) -> Any:
    """The sum of a vector, as the equation computes it."""
    return fold(np.add, zero_of, x, (0,))


def zero_of(dtype: DType) -> int:
    """The sum of nothing."""
    return 0


def solve_at_once(a: ShapedArray, b: ShapedArray) -> OneGo | None:
    """The rows of `b` in the order of the factors, and two triangular systems."""
    if not is_matrix(a) or b.dtype is not a.dtype or b.ndim not in (1, 2) or not b.size:
        return None
    solve, shape = solution(a), b.shape
    return lambda x, y: solve(x, y if len(shape) == 2 else y[:, None]).reshape(shape)


def inv_at_once(a: ShapedArray) -> OneGo | None:
    """The solution for the columns of the identity."""
    if not is_matrix(a):
        return None
    solve, columns = solution(a), np.eye(a.shape[0], dtype=numpy_dtype(a.dtype))
    return lambda x: solve(x, columns)


def solution(a: ShapedArray) -> Callable[[NDArray, NDArray], NDArray]:
    """The solution of a system for several right-hand sides, in the order of C."""
    dtype = numpy_dtype(a.dtype)
    factor, exchange, triangular = (
        host_routine("getrf", dtype),
        host_routine("laswp", dtype),
        solving(dtype),
    )

    def compute(x: NDArray, y: NDArray) -> NDArray:
        packed, pivots, _ = factor(x)
        rows = exchange(y, pivots)  # a copy, in which the rest is computed
        inner = triangular(1, packed, rows, lower=1, diag=1, overwrite_b=1)
        outer = triangular(1, packed, inner, overwrite_b=1)
        return np.asarray(outer, order="C")

    return compute
