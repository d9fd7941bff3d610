"""Floor 6: the normal distribution.

>>> from verax.scipy.stats import norm
>>> round(float(norm.cdf(1.0, loc=1.0, scale=2.0)), 3)
0.5
>>> round(float(norm.ppf(0.975)), 3)
1.96
"""

from verax.rules.values.array import Array
from verax.scipy.special.normal import LOG_SQRT_2_PI, log_ndtr, ndtr, ndtri
from verax.scipy.stats.standard import (
    density,
    exponential,
    probability,
    strict_quantile,
)

__all__ = ["cdf", "isf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]


@density
def logpdf(z: Array) -> Array:
    """The logarithm of the density, -z²/2 - log √(2π)."""
    return -0.5 * z * z - LOG_SQRT_2_PI


@probability
def cdf(z: Array) -> Array:
    """The distribution function Φ(z)."""
    return ndtr(z)


@probability
def logcdf(z: Array) -> Array:
    """log Φ(z), accurate far below."""
    return log_ndtr(z)


@probability
def sf(z: Array) -> Array:
    """1 - Φ(z), accurate far above."""
    return ndtr(-z)


@probability
def logsf(z: Array) -> Array:
    """log(1 - Φ(z)), accurate far above."""
    return log_ndtr(-z)


@strict_quantile
def ppf(q: Array) -> Array:
    """The inverse of `cdf`."""
    return ndtri(q)


@strict_quantile
def isf(q: Array) -> Array:
    """The inverse of `sf`."""
    return -ndtri(q)


pdf = exponential("pdf", logpdf)
