"""Floor 6: the beta distribution with shapes `a` and `b`.

>>> from verax.scipy.stats import beta
>>> round(float(beta.pdf(0.5, 2.0, 2.0)), 4), round(float(beta.cdf(0.5, 2.0, 2.0)), 4)
(1.5, 0.5)
"""

import numpy as np

from verax import numpy as vnp
from verax.numpy import where
from verax.rules.values.array import Array
from verax.scipy.special import betainc, betaln, xlog1py, xlogy
from verax.scipy.stats.standard import (
    density,
    exponential,
    logarithm,
    probability,
    supported,
)

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "sf"]


@density
def logpdf(z: Array, a: Array, b: Array) -> Array:
    """The logarithm of the density, that of z^(a-1) (1-z)^(b-1) / B(a, b)."""
    array = supported(
        (z < 0) | (z > 1),
        z,
        0.5,
        lambda z: xlogy(a - 1, z) + xlog1py(b - 1, -z) - betaln(a, b),
        -np.inf,
    )
    return valid(a, b, array)


@probability
def cdf(z: Array, a: Array, b: Array) -> Array:
    """The incomplete beta function."""
    return valid(a, b, betainc(a, b, vnp.clip(z, 0.0, 1.0)))


@probability
def sf(z: Array, a: Array, b: Array) -> Array:
    """The incomplete beta function from the other side, or below 1/2 one less it."""
    low = z < 0.5  # where 1 - z has lost digits of z
    place = vnp.clip(where(low, z, 1 - z), 0.0, 1.0)
    array = betainc(where(low, a, b), where(low, b, a), place)
    return valid(a, b, where(low, 1 - array, array))


def valid(a: Array, b: Array, array: Array) -> Array:
    """NaN where a shape is not positive."""
    return where((a > 0) & (b > 0), array, np.nan)


pdf = exponential("pdf", logpdf)
logcdf = logarithm("logcdf", cdf, sf)
logsf = logarithm("logsf", sf, cdf)
