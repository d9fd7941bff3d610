"""Floor 3: how far values are from what they would be, as shares of themselves.

One idea: an element counts as a share of itself, or of what is usual in its array, for
an element that is small by chance has no digits of its own; shares end at 1, where no
digit is left::

    error = yardstick(actual, exact).error(exact)       # .worst, .mean
"""

from math import log10
from typing import Final

import numpy as np
from attrs import frozen

from verax.ir.avals import finfo
from verax.ir.dtypes import DType, DTypeLike, as_dtype
from verax.ir.records import ReprMixin
from verax.rules.rows.row import NDArray
from verax.rules.values.memo import pure

QUARTER: Final = 4
"""What is usual in an array: a quarter of its elements are smaller."""
SAMPLE: Final = 1024
"""So many elements of a large array are measured, evenly over it."""
FEW: Final = 256
"""So many of them say what is usual."""
LEAST: Final = 1e-300
MOST: Final = 17.0
"""So many digits cancel where nothing is left."""


@frozen(repr=False)
class RelativeError(ReprMixin):
    """The relative error of an array: at the worst element, and the mean.

    >>> import verax
    >>> verax.debug.precision(lambda x: x * 3)(1.0).outputs["output"].worst
    0.0
    """

    __module__ = "verax.debug"

    worst: float
    mean: float


EXACT: Final = RelativeError(0.0, 0.0)


@pure(64)
def roundoff(dtype: DTypeLike) -> float:
    """The largest relative error of rounding to a dtype.

    >>> roundoff(np.dtype("float32")) == 2.0**-24
    True
    """
    return float(finfo(as_dtype(dtype)).eps) / 2


def grown(before: float, after: float, unit: float) -> float:
    """The digits lost where an error grows; below `unit` all of them are there."""
    return log10(max(after, unit, LEAST) / max(before, unit, LEAST))


def stride(size: int) -> int:
    """The step of an even sample; odd, so that it meets every column."""
    return 1 if size <= SAMPLE else (size // SAMPLE) | 1


def sampled(x: NDArray, step: int) -> NDArray:
    """The elements of a sample in one dimension."""
    if step == 1:
        return x.reshape(-1)
    return x.reshape(-1)[::step] if x.flags.c_contiguous else x.flat[::step]


def sizes_of(x: NDArray) -> NDArray:
    """The magnitudes of elements, as float64."""
    if x.dtype == np.float64:
        return np.abs(x)
    if x.dtype.kind == "O":
        return np.asarray(np.abs(x), np.float64)
    wide = np.complex128 if x.dtype.kind == "c" else np.float64
    if x.dtype in (np.dtype(np.longdouble), np.dtype(np.clongdouble)):
        return np.abs(x).astype(np.float64)
    return np.abs(x.astype(wide, copy=False))


def usual(sizes: NDArray) -> float:
    """The lower quartile of magnitudes that are neither 0 nor infinite; of a sample."""
    if sizes.size > FEW:
        sizes = sizes[:: (sizes.size // FEW) | 1]
    known = sizes[(sizes > 0) & (sizes < np.inf)]
    if known.size < 2:
        return float(known[0]) if known.size else 0.0
    known.partition(known.size // QUARTER)
    return float(known[known.size // QUARTER])


def is_finite(x: NDArray) -> bool:
    """Whether all elements are finite; a sum that overflows says no, too."""
    return bool(np.isfinite(np.add.reduce(x, axis=None)))


@frozen(eq=False, repr=False)
class Yardstick(ReprMixin):
    """What errors of the elements of an array are shares of."""

    wide: NDArray
    sizes: NDArray
    finite: bool

    def error(self, exact: NDArray) -> RelativeError:
        """The relative error of the array against what is exact."""
        gaps = np.abs(self.wide - exact)
        if gaps.dtype != np.float64:
            gaps = gaps.astype(np.float64)
        if not self.finite:
            return self.rare(gaps, exact)
        shares = gaps / self.sizes
        worst = float(np.maximum.reduce(shares))
        if not worst:
            return EXACT
        if not worst <= 1:
            if not worst < np.inf:
                return self.rare(gaps, exact)
            worst = 1.0
            np.minimum(shares, 1.0, out=shares)
        return RelativeError(worst, float(np.add.reduce(shares)) / shares.size)

    def rare(self, gaps: NDArray, exact: NDArray) -> RelativeError:
        """The same where NaN or infinities are among the elements."""
        wide = self.wide
        if wide.dtype.kind == "O":
            known, other = wide.astype(np.float64), exact.astype(np.float64)
        else:
            known, other = wide, exact
        equal = (known == other) | (np.isnan(known) & np.isnan(other))
        shares = np.where(equal, 0.0, gaps / np.maximum(self.sizes, LEAST))
        shares = np.where(np.isfinite(shares), np.minimum(shares, 1.0), 1.0)
        return RelativeError(float(shares.max()), float(shares.mean()))


def yardstick(wide: NDArray, exact: NDArray) -> Yardstick:
    """The yardstick of an array, from its own elements and the exact ones."""
    own = sizes_of(wide)
    finite = bool(np.isfinite(np.add.reduce(own)))
    sizes = np.maximum(sizes_of(exact), max(usual(own), LEAST))
    if not finite:
        sizes = np.where(np.isfinite(sizes), sizes, 1.0)
    return Yardstick(wide, sizes, finite)


def cancellation(terms: float, result: NDArray) -> float:
    """The digits by which a sum is smaller than what it is the sum of."""
    after = float(sizes_of(result).mean())
    if not np.isfinite(terms) or not np.isfinite(after) or not terms:
        return 0.0
    return max(0.0, min(MOST, log10(terms / after))) if after else MOST


@frozen(repr=False)
class Accidents(ReprMixin):
    """Elements that overflow, become zero or denormal, and NaN that are made."""

    overflow: int = 0
    underflow: int = 0
    subnormal: int = 0
    nans: int = 0


NOTHING: Final = Accidents()


@pure(64)
def smallest(dtype: DType) -> float:
    """The smallest number of a dtype that has all of its digits."""
    return float(finfo(dtype).smallest_normal)


def accidents(wide: NDArray, exact: NDArray, limit: float) -> Accidents:
    """What happened to the results of one operation on these operands.

    `exact` are the results of the operation in wide arithmetic, and `wide` the actual
    ones, widened; numbers from `limit` on have all of their digits.
    """
    own, due = sizes_of(wide), sizes_of(exact)
    lost = (due < limit) & (due > 0) & (own != due)
    over = np.isinf(own) & np.isfinite(due)
    nans = np.isnan(own)
    if not (lost.any() or over.any() or nans.any()):
        return NOTHING
    gone = lost & (own == 0)
    made = nans & ~np.isnan(due)
    return Accidents(
        int(over.sum()), int(gone.sum()), int((lost & ~gone).sum()), int(made.sum())
    )
