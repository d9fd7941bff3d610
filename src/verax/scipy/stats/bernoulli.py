"""Floor 6: the distribution of Bernoulli: 1 with probability `p`, else 0.

>>> from verax.scipy.stats import bernoulli
>>> float(bernoulli.pmf(1, 0.25)), float(bernoulli.cdf(0, 0.25))
(0.25, 0.75)
"""

import numpy as np

from verax import numpy as vnp
from verax.numpy import where
from verax.rules.values.array import Array
from verax.scipy.special import xlog1py, xlogy
from verax.scipy.stats.standard import exponential, mass, of_count, plain_quantile

__all__ = ["cdf", "logpmf", "pmf", "ppf"]


@mass
def logpmf(k: Array, p: Array) -> Array:
    """The logarithm of the probability of k, 0 or 1."""
    outside = (k < 0) | (k > 1) | (k != vnp.floor(k))
    count = where(outside, 0.0, k)
    array = xlogy(count, p) + xlog1py(1 - count, -p)
    return chance(p, where(outside & (k == k), -np.inf, array + 0 * k))


@of_count
def cdf(k: Array, p: Array) -> Array:
    """The probability of k or less."""
    array = where(k < 0, 0.0, where(k < 1, 1 - p, 1.0))
    return chance(p, where(k == k, array, np.nan))


@plain_quantile
def ppf(q: Array, p: Array) -> Array:
    """The smallest count that is reached with probability q."""
    return chance(p, where(q <= 1 - p, 0.0, vnp.ones_like(p)))


def chance(p: Array, array: Array) -> Array:
    """NaN where p is not a probability."""
    return where((p >= 0) & (p <= 1), array, np.nan)


pmf = exponential("pmf", logpmf)
