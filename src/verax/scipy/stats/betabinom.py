"""Floor 6: the beta-binomial distribution: `n` trials of a beta(a, b) probability.

>>> from verax.scipy.stats import betabinom
>>> round(float(betabinom.pmf(1, 2, 1.0, 1.0)), 4)
0.3333
"""

import numpy as np

from verax import numpy as vnp
from verax.numpy import where
from verax.rules.values.array import Array
from verax.scipy.special import betaln
from verax.scipy.stats.standard import exponential, mass

__all__ = ["logpmf", "pmf"]


@mass
def logpmf(k: Array, n: Array, a: Array, b: Array) -> Array:
    """The logarithm of the probability of k successes; k is rounded down."""
    whole = vnp.floor(k)
    outside = (whole < 0) | (whole > n)
    count = where(outside, 0.0, whole)
    ways = -vnp.log1p(n) - betaln(n - count + 1, count + 1)
    array = ways + betaln(count + a, n - count + b) - betaln(a, b)
    array = where(outside, -np.inf, array)
    valid = (n >= 0) & (a > 0) & (b > 0) & (k == k)
    return where(valid, array, np.nan)


pmf = exponential("pmf", logpmf)
