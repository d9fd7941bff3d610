"""The distributions of `verax.scipy.stats` beside SciPy's, function by function."""

from collections.abc import Callable, Iterator, Mapping
from inspect import signature
from typing import Any, Final

import numpy as np
import scipy.stats

from property_tests.comparing import COUNT, LINE, UNIT, Known, Points, Pointwise
from verax.scipy import stats

SHAPE: Final = Points(0.1, 8, (0.5, 1.0, 2.0, 0.0, -1.0, np.nan))
PLACE: Final = Points(-3, 3, (0.0, 1.0, np.nan))
SCALE: Final = Points(0.1, 4, (1.0, 0.5, 0.0, -1.0, np.nan))
LOW: Final = Points(-3, 0, (-1.0, -np.inf, 0.0))
HIGH: Final = Points(0.1, 4, (1.0, np.inf, 0.5))
TRIALS: Final = Points(1, 20, (1.0, 5.0, 0.0), whole=True)
ODDS: Final = Points(0, 1, (0.0, 1.0, 0.5, -0.5, 1.5, np.nan))
NUMBER: Final = Points(-3, 25, (0.0, 1.0, 2.0, -1.0, np.nan), whole=True)
DENSITIES: Final = ("pdf", "logpdf", "pmf", "logpmf")
QUANTILES: Final = ("ppf", "isf")
NAMES: Final = (*DENSITIES, "cdf", "logcdf", "sf", "logsf", *QUANTILES, "entropy")
# Points of the shapes, and whether location and scale follow.
SHAPES: Final[Mapping[str, tuple[Points, ...]]] = {
    "bernoulli": (ODDS, PLACE),
    "beta": (SHAPE, SHAPE, PLACE, SCALE),
    "betabinom": (TRIALS, SHAPE, SHAPE, PLACE),
    "binom": (TRIALS, ODDS, PLACE),
    "cauchy": (PLACE, SCALE),
    "chi2": (SHAPE, PLACE, SCALE),
    "expon": (PLACE, SCALE),
    "gamma": (SHAPE, PLACE, SCALE),
    "gennorm": (SHAPE,),
    "geom": (ODDS, PLACE),
    "gumbel_l": (PLACE, SCALE),
    "gumbel_r": (PLACE, SCALE),
    "laplace": (PLACE, SCALE),
    "logistic": (PLACE, SCALE),
    "nbinom": (TRIALS, ODDS, PLACE),
    "norm": (PLACE, SCALE),
    "pareto": (SHAPE, PLACE, SCALE),
    "poisson": (SHAPE, PLACE),
    "t": (SHAPE, PLACE, SCALE),
    "truncnorm": (LOW, HIGH, PLACE, SCALE),
    "uniform": (PLACE, SCALE),
    "vonmises": (SHAPE,),
    "wrapcauchy": (ODDS,),
}
COUNTED: Final = ("bernoulli", "betabinom", "binom", "geom", "nbinom", "poisson")


def lines() -> Iterator[Pointwise]:
    """Each function of each distribution, standard and with location and scale."""
    for name, shapes in SHAPES.items():
        ours = getattr(stats, name)
        for function in NAMES:
            if not hasattr(ours, function):
                continue
            yield line(
                name,
                function,
                getattr(ours, function),
                reference(name, function),
                shapes,
            )


def reference(name: str, function: str) -> Callable[..., Any]:
    """SciPy's function, but for those in C++ that end the process at an overflow."""
    theirs = getattr(scipy.stats, name)
    actual: Callable[..., Any] = getattr(theirs, function)
    if name in ("beta", "binom", "nbinom") and function in ("pdf", "pmf"):
        logarithm = getattr(theirs, f"log{function}")
        return lambda *xs: np.exp(logarithm(*xs))
    if name == "beta" and function in LOGARITHMS:
        rest = theirs.sf if function == "logcdf" else theirs.cdf
        value = getattr(theirs, function.removeprefix("log"))
        return lambda *xs: np.where(
            value(*xs) > 0.5, np.log1p(-rest(*xs)), np.log(value(*xs))
        )
    return actual


def line(
    name: str,
    function: str,
    ours: Callable[..., Any],
    theirs: Callable[..., Any],
    shapes: tuple[Points, ...],
) -> Pointwise:
    x = UNIT if function in QUANTILES else NUMBER if name in COUNTED else LINE
    points = shapes if function == "entropy" else (x, *shapes)
    if name in COUNTED and function != "entropy":
        # A location that is a whole number keeps counts whole.
        points = tuple(COUNT if p is PLACE else p for p in points)
    points = points[: len(signature(ours).parameters)]
    return Pointwise(
        f"stats.{name}.{function}",
        ours,
        theirs,
        points,
        **options(name, function, theirs),
    )


def options(name: str, function: str, theirs: Callable[..., Any]) -> dict[str, Any]:
    """How far a function may be off, by what its formula does."""
    actual: dict[str, Any] = {"ulps": 16.0}
    if function in LOGARITHMS:
        actual["known"] = (Known(UNDERFLOW, lambda *xs: theirs(*xs) < -80),)
    if function in DENSITIES:
        actual["scale"] = terms(name, function, theirs)
    if name == "truncnorm" and function in LOGARITHMS:
        actual["scale"] = lambda *xs: np.exp(-theirs(*xs))
    elif name == "truncnorm":
        actual["scale"] = lambda *xs: 1.0
    return actual


def terms(name: str, function: str, theirs: Callable[..., Any]) -> Callable[..., Any]:
    """The size of the terms of a logarithm, which cancel; three Γ have larger ones."""
    size = 16.0 if name in COUNTED or name == "truncnorm" else 2.0
    if function.startswith("log"):
        return lambda *xs: size
    return lambda *xs: theirs(*xs) * (size + np.abs(np.log(theirs(*xs))))


UNDERFLOW: Final = "the probability is below the smallest number, as in JAX"
LOGARITHMS: Final = ("logcdf", "logsf")
POINTWISE: Final = tuple(lines())
