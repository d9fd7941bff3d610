"""Floor 6: the normal distribution cut off below `a` and above `b`.

One idea: the mass of an interval is computed in logarithms, on the side of 0 where the
interval lies, so that intervals in a tail keep their digits::

    log_mass(a, b)                 # log(Φ(b) - Φ(a))

>>> from verax.scipy.stats import truncnorm
>>> round(float(truncnorm.cdf(0.0, -1.0, 1.0)), 3)
0.5
"""

import numpy as np

from verax import numpy as vnp
from verax.nn import log1mexp
from verax.numpy import where
from verax.rules.values.array import Array
from verax.scipy.special import log_ndtr, ndtr
from verax.scipy.stats import norm
from verax.scipy.stats.standard import density, exponential, probability

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "sf"]


@density
def logpdf(z: Array, a: Array, b: Array) -> Array:
    """The logarithm of the density between `a` and `b`."""
    array = norm.logpdf(z) - log_mass(a, b)
    array = where((z < a) | (z > b), -np.inf, array)
    return where(a < b, array, np.nan)


@probability
def logcdf(z: Array, a: Array, b: Array) -> Array:
    """The logarithm of the probability below z."""
    return log_below(z, a, b)


@probability
def logsf(z: Array, a: Array, b: Array) -> Array:
    """The logarithm of the probability above z."""
    return log_below(-z, -b, -a)


def log_below(z: Array, a: Array, b: Array) -> Array:
    inside = (z > a) & (z < b)
    middle = where(inside, z, vnp.clip(0.5 * (a + b), -1.0, 1.0))
    middle = where((middle > a) & (middle < b), middle, vnp.nan)
    whole = log_mass(a, b)
    below, above = log_mass(a, middle) - whole, log_mass(middle, b) - whole
    # Near one the rest is known to more digits.
    near = below > -0.1
    array = where(near, vnp.log1p(-vnp.exp(where(near, above, -1.0))), below)
    array = where(z <= a, -np.inf, where(z >= b, 0.0, array))
    return where((a < b) & (z == z), array, np.nan)


def log_mass(a: Array, b: Array) -> Array:
    """log(Φ(b) - Φ(a)) for a < b."""
    right, left = a > 0, b <= 0
    low, high = where(right, -b, a), where(right, -a, b)
    top = log_ndtr(high)
    across = ~(right | left)
    # An end at -inf takes nothing away, and its derivative is not infinite.
    endless = low == -np.inf
    gap = where(across | endless, 1.0, top - log_ndtr(where(endless, -1.0, low)))
    start, end = where(across, a, -1.0), where(across, b, 1.0)
    central = vnp.log1p(-ndtr(start) - ndtr(-end))
    return where(across, central, where(endless, top, top + log1mexp(gap)))


pdf = exponential("pdf", logpdf)
cdf = exponential("cdf", logcdf)
sf = exponential("sf", logsf)
