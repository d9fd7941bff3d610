"""Floor 6: the logistic distribution.

>>> from verax.scipy.stats import logistic
>>> float(logistic.cdf(0.0)), float(logistic.ppf(0.5)), float(logistic.pdf(0.0))
(0.5, 0.0, 0.25)
"""

from verax import numpy as vnp
from verax.rules.values.array import Array
from verax.scipy.special import expit, logit
from verax.scipy.stats.standard import (
    density,
    exponential,
    probability,
    strict_quantile,
)

__all__ = ["cdf", "isf", "logpdf", "pdf", "ppf", "sf"]


@density
def logpdf(z: Array) -> Array:
    """The logarithm of the density, -2 log(exp(z/2) + exp(-z/2))."""
    return -abs(z) - 2 * vnp.log1p(vnp.exp(-abs(z)))


@probability
def cdf(z: Array) -> Array:
    """1 / (1 + exp(-z))."""
    return expit(z)


@probability
def sf(z: Array) -> Array:
    """1 / (1 + exp(z))."""
    return expit(-z)


@strict_quantile
def ppf(q: Array) -> Array:
    """log(q / (1 - q))."""
    return logit(q)


@strict_quantile
def isf(q: Array) -> Array:
    """log((1 - q) / q)."""
    return -logit(q)


pdf = exponential("pdf", logpdf)
