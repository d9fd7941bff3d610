"""Floor 6: the distribution of Laplace.

>>> from verax.scipy.stats import laplace
>>> float(laplace.pdf(0.0)), float(laplace.cdf(0.0))
(0.5, 0.5)
"""

import math

from verax import numpy as vnp
from verax.numpy import where
from verax.rules.values.array import Array
from verax.scipy.stats.standard import density, exponential, probability

__all__ = ["cdf", "logpdf", "pdf"]


@density
def logpdf(z: Array) -> Array:
    """The logarithm of the density, -|z| - log 2."""
    return -abs(z) - math.log(2)


@probability
def cdf(z: Array) -> Array:
    """exp(z)/2 below 0, 1 - exp(-z)/2 above."""
    half = 0.5 * vnp.exp(-abs(z))
    return where(z < 0, half, 1 - half)


pdf = exponential("pdf", logpdf)
