"""Floor 6: the negative binomial distribution: failures before `n` successes.

>>> from verax.scipy.stats import nbinom
>>> round(float(nbinom.pmf(0, 1, 0.25)), 4)
0.25
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
    """The logarithm of the probability of k failures."""
    outside = (k < 0) | (k != vnp.floor(k))
    count = where(outside, 0.0, k)
    ways = gammaln(count + n) - gammaln(n) - gammaln(count + 1)
    array = ways + xlogy(n, p) + xlog1py(count, -p)
    array = where(outside, -np.inf, array)
    valid = (n > 0) & (p > 0) & (p <= 1) & (k == k)
    return where(valid, array, np.nan)


pmf = exponential("pmf", logpmf)
