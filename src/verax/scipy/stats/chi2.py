"""Floor 6: the χ² distribution with `df` degrees of freedom.

It is the gamma distribution of shape df/2 and twice the scale.

>>> from verax.scipy.stats import chi2
>>> round(float(chi2.sf(2.0, 2.0)), 4)
0.3679
"""

import math

from verax.rules.values.array import Array
from verax.scipy.stats import gamma
from verax.scipy.stats.standard import density, exponential, logarithm, probability

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "sf"]


@density
def logpdf(z: Array, df: Array) -> Array:
    """The logarithm of the density."""
    return gamma.logpdf(z / 2, df / 2) - math.log(2)


@probability
def cdf(z: Array, df: Array) -> Array:
    """The lower incomplete gamma function of df/2 and z/2."""
    return gamma.cdf(z / 2, df / 2)


@probability
def sf(z: Array, df: Array) -> Array:
    """The upper incomplete gamma function of df/2 and z/2."""
    return gamma.sf(z / 2, df / 2)


pdf = exponential("pdf", logpdf)
logcdf = logarithm("logcdf", cdf, sf)
logsf = logarithm("logsf", sf, cdf)
