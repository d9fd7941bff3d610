"""Floor 6: the distribution of Pareto with exponent `b`.

>>> from verax.scipy.stats import pareto
>>> float(pareto.sf(2.0, 3.0)), float(pareto.cdf(0.5, 3.0))
(0.125, 0.0)
"""

import numpy as np

from verax import numpy as vnp
from verax.nn import log1mexp
from verax.rules.values.array import Array
from verax.scipy.stats.standard import (
    density,
    exponential,
    positive,
    probability,
    quantile,
    supported,
)

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]


@density
def logpdf(z: Array, b: Array) -> Array:
    """The logarithm of the density, log b - (b + 1) log z from 1 on."""
    exponent = positive(b)
    return supported(
        z < 1,
        z,
        1.0,
        lambda z: vnp.log(exponent) - (exponent + 1) * vnp.log(z),
        -np.inf,
    )


@probability
def cdf(z: Array, b: Array) -> Array:
    """1 - z^-b from 1 on."""
    return supported(
        z < 1, z, 1.0, lambda z: -vnp.expm1(-positive(b) * vnp.log(z)), 0.0
    )


@probability
def logcdf(z: Array, b: Array) -> Array:
    """log(1 - z^-b) from 1 on."""
    return supported(
        z < 1, z, 2.0, lambda z: log1mexp(positive(b) * vnp.log(z)), -np.inf
    )


@probability
def logsf(z: Array, b: Array) -> Array:
    """-b log z from 1 on."""
    return supported(z < 1, z, 1.0, lambda z: -positive(b) * vnp.log(z), 0.0)


@quantile
def ppf(q: Array, b: Array) -> Array:
    """(1 - q)^(-1/b)."""
    return vnp.exp(-vnp.log1p(-q) / positive(b))


pdf = exponential("pdf", logpdf)
sf = exponential("sf", logsf)
