"""Floor 6: the exponential distribution.

>>> from verax.scipy.stats import expon
>>> float(expon.pdf(0.0)), float(expon.sf(-1.0))
(1.0, 1.0)
"""

import numpy as np

from verax import numpy as vnp
from verax.nn import log1mexp
from verax.numpy import where
from verax.rules.values.array import Array
from verax.scipy.stats.standard import (
    density,
    exponential,
    probability,
    quantile,
    supported,
)

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]


@density
def logpdf(z: Array) -> Array:
    """The logarithm of the density, -z from 0 on."""
    return where(z < 0, -np.inf, -z)


@probability
def cdf(z: Array) -> Array:
    """1 - exp(-z) from 0 on."""
    return supported(z < 0, z, 1.0, lambda z: -vnp.expm1(-z), 0.0)


@probability
def logcdf(z: Array) -> Array:
    """log(1 - exp(-z)) from 0 on."""
    return supported(z < 0, z, 1.0, log1mexp, -np.inf)


@probability
def logsf(z: Array) -> Array:
    """-z from 0 on."""
    return where(z < 0, 0.0, -z)


@quantile
def ppf(q: Array) -> Array:
    """-log(1 - q)."""
    return -vnp.log1p(-q)


pdf = exponential("pdf", logpdf)
sf = exponential("sf", logsf)
