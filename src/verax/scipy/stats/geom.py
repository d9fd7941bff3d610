"""Floor 6: the geometric distribution: trials up to the first success.

>>> from verax.scipy.stats import geom
>>> float(geom.pmf(1, 0.25)), float(geom.pmf(0, 0.25))
(0.25, 0.0)
"""

import numpy as np

from verax import numpy as vnp
from verax.numpy import where
from verax.rules.values.array import Array
from verax.scipy.special import xlog1py
from verax.scipy.stats.standard import exponential, mass

__all__ = ["logpmf", "pmf"]


@mass
def logpmf(k: Array, p: Array) -> Array:
    """The logarithm of the probability of success at trial k = 1, 2, ..."""
    outside = (k <= 0) | (k != vnp.floor(k))
    count = where(outside, 1.0, k)
    valid = (p > 0) & (p <= 1) & (k == k)
    safe = where(valid, p, 0.5)
    array = where(outside, -np.inf, xlog1py(count - 1, -safe) + vnp.log(safe))
    return where(valid, array, np.nan)


pmf = exponential("pmf", logpmf)
