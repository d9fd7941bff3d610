"""Floor 6: the distribution of Gumbel for minima.

>>> from verax.scipy.stats import gumbel_l
>>> round(float(gumbel_l.sf(0.0)), 4)
0.3679
"""

import numpy as np

from verax import numpy as vnp
from verax.nn import log1mexp
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
    """The logarithm of the density, z - exp(z)."""
    # At inf both terms are infinite.
    return supported(z == np.inf, z, 0.0, lambda z: z - vnp.exp(z), -np.inf)


@probability
def cdf(z: Array) -> Array:
    """1 - exp(-exp(z)), accurate for small z."""
    return -vnp.expm1(-vnp.exp(z))


@probability
def logcdf(z: Array) -> Array:
    """log(1 - exp(-exp(z)))."""
    return log1mexp(vnp.exp(z))


@probability
def logsf(z: Array) -> Array:
    """-exp(z)."""
    return -vnp.exp(z)


@quantile
def ppf(q: Array) -> Array:
    """log(-log(1 - q))."""
    return vnp.log(-vnp.log1p(-q))


pdf = exponential("pdf", logpdf)
sf = exponential("sf", logsf)
