"""Floor 6: quantiles of the Poisson distribution, from normal samples, without a loop.

One idea: below a mean of 7 the distribution function is summed and compared, above it
is Peizer and Pratt's normal approximation ("A normal approximation for binomial, F,
beta and other common, related tail probabilities", 1968), inverted on integers::

    quantile(z, rate)              # the count at which Φ(z) is reached
"""

import math

import numpy as np

from verax.numpy.searching.where_nonzero import where
from verax.ops.elementwise import arith
from verax.ops.elementwise.convert import convert
from verax.ops.elementwise.exp_log import exp, log, sqrt, square
from verax.ops.elementwise.rounding import ceil
from verax.ops.special.erf_gamma import erfc
from verax.rules.values.array import Array

SPLIT = 7.0
TERMS = 20
CORRECTION = 0.02


def quantile(z: Array, rate: Array) -> Array:
    """The counts, as floats, at the normal quantiles `z` for means `rate`."""
    # Φ(z), without loading verax.scipy.special.
    small = summed(erfc(z * -math.sqrt(0.5)) * 0.5, rate)
    found: Array = where(rate < SPLIT, small, inverted(z, rate))
    return found


def summed(u: Array, rate: Array) -> Array:
    """How many partial sums of the probabilities lie below u."""
    term = exp(-rate)
    total = term
    count = convert(total < u, u.dtype)
    for k in range(1, TERMS - 1):
        term = term * (rate / k)
        total = total + term
        count = count + convert(total < u, u.dtype)
    return count


def inverted(z: Array, rate: Array) -> Array:
    """The smallest count with z(count) ≥ z, among three around a guess of the root."""
    root = sqrt(rate)
    guess = rate + root * z - 2 / 3 + square(z) / 6 + z * (1 - square(z)) / (72 * root)
    middle = ceil(guess + 0.6)

    def reached(count: Array) -> Array:
        value = where(count < 0, -np.inf, transformed(arith.max(count, 0.0), rate))
        return convert(value >= z, z.dtype)

    found = middle + 1 - reached(middle) - reached(middle - 1)
    return arith.max(found, 0.0)


def transformed(x: Array, rate: Array) -> Array:
    """Peizer and Pratt's normal variable of a count."""
    y = (x + 0.5) / rate
    shift = x - rate + 2 / 3 + CORRECTION / (x + 1)
    return shift * sqrt((1 + skewness(y)) / rate)


def skewness(y: Array) -> Array:
    """(1 - y² + 2 y log y) / (1 - y)², by its series around 1."""
    d = y - 1
    near = abs(d) < 0.25
    series = d * 0.0
    for k in reversed(range(1, 10)):
        series = d * (2 * (-1) ** k / ((k + 1) * (k + 2)) + series)
    far_y, far_d = where(near, 2.0, y), where(near, 1.0, d)
    direct = (1 - square(far_y) + 2 * far_y * log(far_y)) / square(far_d)
    found: Array = where(near, series, direct)
    return found
