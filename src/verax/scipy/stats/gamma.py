"""Floor 6: the gamma distribution with shape `a`.

>>> from verax.scipy.stats import gamma
>>> round(float(gamma.cdf(2.0, 1.0)), 4)
0.8647
"""

import numpy as np

from verax.rules.values.array import Array
from verax.scipy.special import gammainc, gammaincc, gammaln, xlogy
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
def logpdf(z: Array, a: Array) -> Array:
    """The logarithm of the density, (a - 1) log z - z - log Γ(a) from 0 on."""
    scale = gammaln(positive(a))
    # Outside, the logarithm alone needs a safe operand; with z itself the rest is
    # faster.
    return supported(
        z < 0, z, 1.0, lambda safe: xlogy(a - 1, safe) - z - scale, -np.inf
    )


@probability
def cdf(z: Array, a: Array) -> Array:
    """The lower incomplete gamma function from 0 on."""
    return supported(z < 0, z, 1.0, lambda z: gammainc(positive(a), z), 0.0)


@probability
def sf(z: Array, a: Array) -> Array:
    """The upper incomplete gamma function from 0 on."""
    return supported(z < 0, z, 1.0, lambda z: gammaincc(positive(a), z), 1.0)


pdf = exponential("pdf", logpdf)
logcdf = logarithm("logcdf", cdf, sf)
logsf = logarithm("logsf", sf, cdf)
