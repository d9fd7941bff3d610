"""The largest error of a function over points of all exponents in its range.

largest("sin", np.float32, 10_000)     # of verax, XLA, and NumPy or SciPy
"""

from collections.abc import Callable, Sequence
from typing import Any

import mpmath
import numpy as np

import verax

from .functions import BITS, CASES, Case, Range

type Array = Any
SEED = 28


def drawn(where: Range, dtype: Any, count: int, rng: Any) -> Array:
    """Half of the points are uniform, half have exponents that are.

    Every exponent of a range gets as many points, of either sign where it has both.
    """
    low, high = where
    even = rng.uniform(low, high, count // 2)
    info = np.finfo(dtype)
    ends = [abs(x) for x in where if x]
    least = min(ends) if low * high > 0 else float(info.tiny) * 2
    first, last = (int(np.floor(np.log2(x))) for x in (least, max(ends)))
    exponents = np.resize(np.arange(first, last + 1), count - count // 2)
    sizes = np.ldexp(rng.uniform(1, 2, exponents.size), exponents)
    signs = rng.choice([-1.0, 1.0], sizes.size) if low < 0 else 1.0
    points = np.concatenate([even, signs * sizes])
    points = points[(points >= low) & (points <= high)]
    return np.resize(rng.permutation(points), count).astype(dtype)


def exact(case: Case, xs: Sequence[Array], dtype: Any) -> Array:
    """The results in a wider dtype."""
    wide: Any = np.float64 if dtype == np.float32 else np.longdouble
    if dtype == np.float64 and case.precise is not None:
        with mpmath.workprec(BITS):
            values = [
                case.precise(*map(mpmath.mpf, map(float, x)))
                for x in zip(*xs, strict=True)
            ]
            high = [float(value) for value in values]
            low = [float(value - h) for value, h in zip(values, high, strict=True)]
        return np.array(high, wide) + np.array(low, wide)
    reference = case.wide or case.theirs
    return reference(*[x.astype(wide) for x in xs])


def errors(actual: Array, due: Array, dtype: Any) -> Array:
    """Units in the last place; where results are normal, for others are flushed."""
    info = np.finfo(dtype)
    sizes = np.abs(due)
    normal = np.isfinite(due) & (sizes < info.max) & (sizes > info.tiny)
    unit = np.spacing(np.where(normal, sizes, 1).astype(dtype)).astype(due.dtype)
    return np.where(normal, np.abs(actual.astype(due.dtype) - due) / unit, 0)


def ways(case: Case) -> dict[str, Callable[..., Array]]:
    """The function as verax compiles it, as XLA does, and of NumPy or SciPy."""
    return {
        "verax": verax.jit(case.function),
        "xla": verax.jit(case.function, cpu_lowerings="xla"),
        "theirs": case.theirs,
    }


def largest(
    name: str, dtype: Any, count: int, only: Sequence[str] = ("verax", "xla", "theirs")
) -> dict[str, float]:
    """The largest errors over so many points, of each of the ways."""
    case = CASES[name]
    rng = np.random.default_rng(SEED)
    with verax.enable_x64(), np.errstate(all="ignore"):
        xs = [drawn(where, dtype, count, rng) for where in case.ranges]
        due = exact(case, xs, dtype)
        return {
            way: float(np.nanmax(errors(np.asarray(f(*xs)), due, dtype)))
            for way, f in ways(case).items()
            if way in only
        }


def points(name: str, dtype: Any, scale: float = 1.0) -> int:
    """How many points are looked at: fewer where mpmath is asked."""
    slow = dtype == np.float64 and CASES[name].precise is not None
    few = 1_000 if len(CASES[name].ranges) > 1 else 10_000
    return max(256, int((few if slow else 500_000) * scale))
