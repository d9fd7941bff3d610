"""Floor 6: the uniform distribution between `loc` and `loc + scale`.

>>> from verax.scipy.stats import uniform
>>> float(uniform.pdf(1.5, loc=1.0, scale=2.0)), float(uniform.cdf(9.0))
(0.5, 1.0)
"""

import numpy as np

from verax import numpy as vnp
from verax.lax import stop_gradient
from verax.numpy import where
from verax.rules.values.array import Array
from verax.scipy.stats.standard import density, exponential, probability, quantile

__all__ = ["cdf", "logpdf", "pdf", "ppf"]


@density
def logpdf(z: Array) -> Array:
    """The logarithm of the density, 0 between 0 and 1."""
    # A constant, but NaN where z is; its slope is 0 everywhere.
    return where((z < 0) | (z > 1), -np.inf, where(z == z, 0.0, stop_gradient(z)))


@probability
def cdf(z: Array) -> Array:
    """z between 0 and 1."""
    return vnp.clip(z, 0.0, 1.0)


@quantile
def ppf(q: Array) -> Array:
    """q itself."""
    return q


pdf = exponential("pdf", logpdf)
