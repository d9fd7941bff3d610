"""Floor 6: the binomial distribution: successes in `n` trials of probability `p`.

>>> from verax.scipy.stats import binom
>>> round(float(binom.pmf(1, 2, 0.5)), 4)
0.5
"""

import numpy as np

from verax import numpy as vnp
from verax.numpy import where
from verax.rules.values.array import Array
from verax.scipy.special import gammaln, xlog1py, xlogy
from verax.scipy.stats.standard import exponential, mass

__all__ = ["logpmf", "pmf"]


@mass
def logpmf(k: Array, n: Array, p: Array) -> Array:
    """The logarithm of the probability of k successes."""
    outside = (k < 0) | (k > n) | (k != vnp.floor(k))
    count = where(outside, 0.0, k)
    ways = gammaln(n + 1) - gammaln(count + 1) - gammaln(n - count + 1)
    array = ways + xlogy(count, p) + xlog1py(n - count, -p)
    array = where(outside & (k == k), -np.inf, array + 0 * count)
    valid = (n >= 0) & (n == vnp.floor(n)) & (p >= 0) & (p <= 1) & (k == k)
    return where(valid, array, np.nan)


pmf = exponential("pmf", logpmf)
