"""Floor 3: how far two arrays are apart, and how far they may be.

One idea: elements may differ by a share of themselves, and by the same share of what is
usual in their array, for sums that cancel have no digits of their own::

    measure(np.float32([1.0, 2.0]), np.float32([1.0, 2.5]), Tolerance())

That is the worst element. NaN equals NaN, and integers are compared exactly.
"""

from typing import Final

import numpy as np
from attrs import frozen

from verax.ir.avals import finfo
from verax.ir.dtypes import float0, is_complex, is_inexact
from verax.ir.records import ReprMixin

QUARTER: Final = 4
"""What is usual in an array: a quarter of its elements are smaller."""
type Element = bool | int | float | complex


@frozen(repr=False)
class Difference(ReprMixin):
    """How far two arrays are apart: at the worst element, which is at `index`.

    `left` and `right` are its values, `absolute` is the distance between them,
    `relative` the same as a share of the larger, and `ulps` in units of the last place
    of the coarser dtype, None for integers. Of `size` elements `count` are beyond the
    tolerance. `excess` is the distance as a multiple of what is allowed: beyond 1 the
    values part.

    >>> import verax, verax.numpy as vnp
    >>> report = verax.debug.compare(vnp.sin, vnp.cos)(0.0)
    >>> report.first.difference.absolute, report.first.difference.relative
    (1.0, 1.0)
    """

    __module__ = "verax.debug"

    absolute: float
    relative: float
    ulps: float | None
    index: tuple[int, ...]
    left: Element
    right: Element
    count: int
    size: int
    excess: float

    @property
    def parts(self) -> bool:
        """Whether an element is beyond the tolerance."""
        return self.count > 0

    def __str__(self) -> str:
        units = "" if self.ulps is None else f", {brief(self.ulps)} ULPs"
        return (
            f"{brief(self.absolute)} absolute, {brief(self.relative)} relative{units}"
        )


def brief(value: float) -> str:
    """A number in three digits.

    >>> brief(0.1234567), brief(3.0), brief(12345678.0)
    ('0.123', '3', '1.23e+07')
    """
    return f"{value:.3g}"


@frozen(repr=False)
class Tolerance(ReprMixin):
    """What floats may differ by: `atol`, and the share `rtol` of the larger element.

    By default `rtol` is the root of the spacing of the coarser dtype at 1, which is
    half of its digits, and `atol` the same share of an element that is usual in the
    array: the lower quartile of those that are neither 0 nor infinite.
    """

    rtol: float | None = None
    atol: float | None = None

    def allowed(self, coarse: np.dtype, sizes: np.ndarray) -> np.ndarray:
        """What each element may differ by, from the magnitudes of the larger ones."""
        rtol = spacing(coarse)[0] ** 0.5 if self.rtol is None else self.rtol
        finite = np.where(np.isfinite(sizes), sizes, 0.0)
        atol = rtol * usual(finite) if self.atol is None else self.atol
        result: np.ndarray = atol + rtol * finite
        return result


def usual(sizes: np.ndarray) -> float:
    """The lower quartile of the magnitudes that are not 0."""
    known = sizes[sizes > 0]
    if not known.size:
        return 0.0
    place = known.size // QUARTER
    return float(np.partition(known, place)[place])


def spacing(dtype: np.dtype) -> tuple[float, float]:
    """The spacing of the numbers of a dtype at 1, and at 0."""
    info = finfo(dtype)
    return float(info.eps), float(info.smallest_subnormal)


def ulp(dtype: np.dtype, size: float) -> float:
    """The spacing of the numbers of a dtype at this magnitude.

    >>> ulp(np.dtype("float32"), 1.5) == 2.0**-23
    True
    """
    eps, least = spacing(dtype)
    if not np.isfinite(size) or not size:
        return least if not size else float("inf")
    return max(float(np.ldexp(eps, int(np.frexp(size)[1]) - 1)), least)


def coarser(x: np.dtype, y: np.dtype) -> np.dtype:
    """The dtype with fewer digits, of those that are inexact."""
    both = [dtype for dtype in (x, y) if is_inexact(dtype)]
    return sorted(both, key=spacing)[-1]


def measure(x: np.ndarray, y: np.ndarray, tolerance: Tolerance) -> Difference | None:
    """How far two arrays of one shape are apart; None if they are equal.

    NaN equals NaN, and an infinity itself. What has no numbers is equal.
    """
    if not x.size or float0 in (x.dtype, y.dtype):
        return None
    if x.dtype == y.dtype and x.tobytes() == y.tobytes():
        return None
    inexact = is_inexact(x.dtype) or is_inexact(y.dtype)
    return distance(x, y, tolerance) if inexact else exact(x, y)


def exact(x: np.ndarray, y: np.ndarray) -> Difference | None:
    """How far integers, booleans or the words of keys are apart."""
    other = np.asarray(x != y)
    if not other.any():
        return None
    gaps = np.abs(x.astype(np.float64) - y.astype(np.float64))
    gaps = np.where(other, np.maximum(gaps, 1.0), 0.0)  # large ones are rounded
    index = worst(gaps)
    left, right, gap = x[index].item(), y[index].item(), float(gaps[index])
    share = gap / max(abs(left), abs(right))
    count = int(np.count_nonzero(other))
    return Difference(gap, share, None, index, left, right, count, x.size, float("inf"))


def distance(x: np.ndarray, y: np.ndarray, tolerance: Tolerance) -> Difference | None:
    """How far arrays are apart of which one has inexact numbers."""
    wide = np.complex128 if is_complex(x.dtype) or is_complex(y.dtype) else np.float64
    a, b = x.astype(wide), y.astype(wide)
    with np.errstate(all="ignore"):
        equal = (a == b) | (np.isnan(a) & np.isnan(b))
        if equal.all():
            return None
        gaps = np.where(equal, 0.0, np.abs(a - b))
        gaps = np.where(np.isnan(gaps), np.inf, gaps)  # only one is NaN
        sizes = np.fmax(np.abs(a), np.abs(b))
        coarse = coarser(x.dtype, y.dtype)
        allowed = tolerance.allowed(coarse, sizes)
        excess = np.where(equal, 0.0, gaps / allowed)
        excess = np.where(np.isnan(excess), 1.0, excess)  # all is allowed
    index = worst(excess)
    gap, size = float(gaps[index]), float(sizes[index])
    share = gap / size if np.isfinite(gap) else float("inf")
    units = gap / ulp(coarse, size) if np.isfinite(gap) else float("inf")
    count = int(np.count_nonzero(excess > 1))
    left, right = a[index].item(), b[index].item()
    most = float(excess[index])
    return Difference(gap, share, units, index, left, right, count, x.size, most)


def worst(values: np.ndarray) -> tuple[int, ...]:
    """The index of the largest element."""
    place = np.unravel_index(int(np.argmax(values)), values.shape)
    return tuple(map(int, place))


def worse(x: Difference | None, y: Difference | None) -> Difference | None:
    """The one with the larger excess."""
    if x is None or y is None:
        return x or y
    return y if y.excess > x.excess else x
