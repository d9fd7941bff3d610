"""Floor 6: the distribution of Cauchy.

>>> from verax.scipy.stats import cauchy
>>> round(float(cauchy.cdf(1.0)), 3), round(float(cauchy.ppf(0.75)), 3)
(0.75, 1.0)
"""

import math

import numpy as np

from verax import numpy as vnp
from verax.numpy import where
from verax.rules.values.array import Array
from verax.scipy.stats.standard import (
    density,
    exponential,
    log1p_square,
    logarithm,
    probability,
    quantile,
)

__all__ = ["cdf", "isf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]


@density
def logpdf(z: Array) -> Array:
    """The logarithm of the density, -log(π (1 + z²))."""
    return -math.log(math.pi) - log1p_square(z)


@probability
def cdf(z: Array) -> Array:
    """1/2 + arctan(z)/π; as arctan(-1/z)/π below -1, where that is small."""
    return lower(z)


@probability
def sf(z: Array) -> Array:
    """1/2 - arctan(z)/π."""
    return lower(-z)


@quantile
def ppf(q: Array) -> Array:
    """tan(π (q - 1/2)), as a cotangent towards 0 and 1."""
    return upper(1 - q, q)


@quantile
def isf(q: Array) -> Array:
    """tan(π (1/2 - q))."""
    return upper(q, 1 - q)


def lower(z: Array) -> Array:
    """The probability below z."""
    far = z < -1
    tail = vnp.arctan(-1 / where(far, z, -1.0))
    return where(far, tail, 0.5 * math.pi + vnp.arctan(z)) / math.pi


def upper(above: Array, below: Array) -> Array:
    """The number with these probabilities above and below it."""
    small = vnp.minimum(above, below)
    sign = where(above < below, 1.0, -1.0)
    middle = small > 0.25
    near = -vnp.tan(math.pi * (small - 0.5))
    far = 1 / vnp.tan(math.pi * where(middle, 0.25, small))
    array = sign * where(middle, near, far)
    return where(small == 0, sign * np.inf, array)


pdf = exponential("pdf", logpdf)
logcdf = logarithm("logcdf", cdf, sf)
logsf = logarithm("logsf", sf, cdf)
