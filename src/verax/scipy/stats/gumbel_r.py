"""Floor 6: the distribution of Gumbel for maxima.

>>> from verax.scipy.stats import gumbel_r
>>> round(float(gumbel_r.cdf(0.0)), 4)
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
    """The logarithm of the density, -z - exp(-z)."""
    # At -inf both terms are infinite.
    return supported(z == -np.inf, z, 0.0, lambda z: -z - vnp.exp(-z), -np.inf)


@probability
def logcdf(z: Array) -> Array:
    """-exp(-z)."""
    return -vnp.exp(-z)


@probability
def sf(z: Array) -> Array:
    """1 - exp(-exp(-z)), accurate for large z."""
    return -vnp.expm1(-vnp.exp(-z))


@probability
def logsf(z: Array) -> Array:
    """log(1 - exp(-exp(-z)))."""
    return log1mexp(vnp.exp(-z))


@quantile
def ppf(q: Array) -> Array:
    """-log(-log q)."""
    return -vnp.log(-vnp.log(q))


pdf = exponential("pdf", logpdf)
cdf = exponential("cdf", logcdf)
