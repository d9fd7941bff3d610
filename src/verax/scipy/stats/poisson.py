"""Floor 6: the distribution of Poisson with mean `mu`.

>>> from verax.scipy.stats import poisson
>>> round(float(poisson.pmf(0, 1.0)), 4), round(float(poisson.cdf(1, 1.0)), 4)
(0.3679, 0.7358)
"""

import math
from typing import Final

import numpy as np

from verax import numpy as vnp
from verax.numpy import where
from verax.numpy.arguments.arguments import ArrayLike
from verax.rules.values.array import Array
from verax.scipy.special import gammaincc, gammaln, xlogy
from verax.scipy.special.arguments import reals
from verax.scipy.stats.standard import exponential, mass
from verax.scipy.tables import row

__all__ = ["cdf", "entropy", "logpmf", "pmf"]

# From this mean on the series of `entropy` has all digits of float64, and below it
# more counts than this have no weight.
LARGE: Final = 100.0
COUNTS: Final = 256


@mass
def logpmf(k: Array, mu: Array) -> Array:
    """The logarithm of the probability of k, k log mu - log k! - mu."""
    outside = (k < 0) | (k != vnp.floor(k))
    count = where(outside, 0.0, k)
    array = xlogy(count, mu) - gammaln(count + 1) - mu
    return mean(mu, k, where(outside, -np.inf, array))


@mass
def cdf(k: Array, mu: Array) -> Array:
    """The probability of k or less."""
    below = k < 0
    array = gammaincc(vnp.floor(where(below, 0.0, k)) + 1, mu)
    return mean(mu, k, where(below, 0.0, array))


def mean(mu: Array, k: Array, array: Array) -> Array:
    """NaN where mu is negative or k is NaN."""
    return where((mu >= 0) & (k == k), array, np.nan)


def entropy(mu: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The entropy in nats: a sum over counts, for large `mu` an asymptotic series.

    `loc` changes nothing but the shape of the result. The series is that of Evans,
    Boersma, Blachman and Jagers ("The entropy of a Poisson distribution", 1988).

    >>> float(entropy(0.0)), round(float(entropy(1.0)), 4)
    (0.0, 1.3048)
    """
    rate, place = reals("poisson.entropy", mu, loc)
    large = rate >= LARGE
    array = where(large, series(where(large, rate, LARGE)), summed(rate, large))
    array = where(rate >= 0, array, np.nan)
    return vnp.broadcast_to(array, vnp.broadcast_shapes(rate.shape, place.shape))


def summed(rate: Array, skipped: Array) -> Array:
    """-Σ p log p over the counts that matter."""
    safe = where(skipped | (rate <= 0), 1.0, rate)[..., None]
    logs = logpmf(row(np.arange(COUNTS), safe), safe)
    return where(rate == 0, 0.0, -vnp.sum(vnp.exp(logs) * logs, axis=-1))


def series(rate: Array) -> Array:
    """log √(2πe mu) - 1/12mu - 1/24mu² - 19/360mu³ - 9/80mu⁴ - ..."""
    x = 1 / rate
    terms = x * (1 / 12 + x * (1 / 24 + x * (19 / 360 + x * (9 / 80))))
    return 0.5 * vnp.log(2 * math.pi * math.e * rate) - terms


pmf = exponential("pmf", logpmf)
