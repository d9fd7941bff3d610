"""Floor 6: the distribution of Cauchy wrapped around the circle, 0 < `c` < 1.

>>> from verax.scipy.stats import wrapcauchy
>>> round(float(wrapcauchy.pdf(0.0, 0.5)), 4)
0.4775
"""

import math

import numpy as np

from verax import numpy as vnp
from verax.numpy import where
from verax.rules.values.array import Array
from verax.scipy.stats.standard import exponential, of_number

__all__ = ["logpdf", "pdf"]


@of_number
def logpdf(x: Array, c: Array) -> Array:
    """The logarithm of the density between 0 and 2π."""
    inside = (c > 0) & (c < 1)
    safe = where(inside, c, 0.5)
    # 1 + c² - 2c cos x, without the difference of near numbers.
    below = (1 - safe) ** 2 + 4 * safe * vnp.sin(x / 2) ** 2
    array = vnp.log((1 - safe) * (1 + safe)) - math.log(2 * math.pi) - vnp.log(below)
    array = where((x < 0) | (x > 2 * math.pi), -np.inf, array)
    return where(inside, array, np.nan)


pdf = exponential("pdf", logpdf)
