"""Statistics of the benchmarks: medians, ratios per round, growth exponents.

The idea: machines drift, so verax and jax are compared round by round and only the
ratios of one round are pooled.

    >>> compare([2.0, 4.0], [1.0, 1.0])
    Ratio(median=0.375, low=0.25, high=0.5)
"""

import math
from collections.abc import Sequence
from statistics import fmean, median
from typing import NamedTuple


class Ratio(NamedTuple):
    """Candidate / baseline: the median of the rounds and the extremes."""

    median: float
    low: float
    high: float


def compare(baseline: Sequence[float], candidate: Sequence[float]) -> Ratio | None:
    """Return the ratios of paired rounds, or None where no round has both.

    >>> compare([], [1.0]) is None
    True
    """
    ratios = [b / a for a, b in zip(baseline, candidate, strict=False) if a > 0]
    return spread(ratios) if ratios else None


def spread(values: Sequence[float]) -> Ratio:
    """Return the median, the least and the greatest of `values`.

    >>> spread([3.0, 1.0, 2.0])
    Ratio(median=2.0, low=1.0, high=3.0)
    """
    return Ratio(median(values), min(values), max(values))


def growth_exponent(sizes: Sequence[float], times: Sequence[float]) -> float:
    """Return p of the least-squares fit times = c * sizes**p.

    >>> round(growth_exponent([10, 100, 1000], [1.0, 10.0, 100.0]), 6)
    1.0
    """
    if len(sizes) < 2 or len(sizes) != len(times):
        raise ValueError(f"need two or more pairs, got {len(sizes)} and {len(times)}")
    xs, ys = [math.log(s) for s in sizes], [math.log(t) for t in times]
    x_mean, y_mean = fmean(xs), fmean(ys)
    above = sum((x - x_mean) * (y - y_mean) for x, y in zip(xs, ys, strict=True))
    return above / sum((x - x_mean) ** 2 for x in xs)


def verdict(figure: float | None, step: float | None, peak: float | None) -> str:
    """Say how far a figure (less is better) has come.

    >>> [verdict(f, 0.4, 0.2) for f in (0.1, 0.3, 0.5)]
    ['peak', 'step', 'over']
    >>> verdict(0.5, None, None), verdict(0.5, None, 0.2)
    ('', 'over')
    """
    if figure is None or (step is None and peak is None):
        return ""
    if peak is not None and figure <= peak:
        return "peak"
    return "step" if step is not None and figure <= step else "over"


UNITS = {
    "s": (("s", 1.0), ("ms", 1e-3), ("us", 1e-6), ("ns", 1e-9)),
    "B": (("MB", 1e6),),
}


def show(value: float | None, unit: str) -> str:
    """Write a figure with its unit in three significant digits.

    >>> show(0.0123, "s"), show(2.5e-6, "s"), show(533.0, "B"), show(None, "s")
    ('12.3 ms', '2.5 us', '533 B', '-')
    """
    if value is None:
        return "-"
    for name, size in UNITS.get(unit, ()):
        if value >= size:
            return f"{value / size:.3g} {name}"
    text = f"{value:.0f}" if value >= 100 else f"{value:.3g}"
    return f"{text} {unit}".strip()
