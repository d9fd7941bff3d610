"""Floor 6: the χ² distribution with `df` degrees of freedom.

It is the gamma distribution of shape df/2 and twice the scale.

>>> from verax.scipy.stats import chi2
>>> round(float(chi2.sf(2.0, 2.0)), 4)
0.3679
"""

import math

from verax.rules.values.array import Array
from verax.scipy.special import gammaln, xlogy
from verax.scipy.stats import gamma
from verax.scipy.stats.standard import (
    density,
    exponential,
    logarithm,
    positive,
    probability,
    supported,
)

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "sf"]


@density
def logpdf(z: Array, df: Array) -> Array:
    """The logarithm of the density, that of z/2 without a further choice.

    (df/2 - 1) log z - z/2 - log Γ(df/2) - df/2 log 2 from 0 on.
    """
    a = df / 2
    scale = gammaln(positive(a)) + a * math.log(2)
    return supported(
        z < 0, z, 1.0, lambda safe: xlogy(a - 1, safe) - z / 2 - scale, -math.inf
    )


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
