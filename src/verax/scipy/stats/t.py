"""Floor 6: Student's distribution with `df` degrees of freedom.

>>> from verax.scipy.stats import t
>>> round(float(t.pdf(0.0, 1.0)), 4)
0.3183
"""

import math

from verax import numpy as vnp
from verax.rules.values.array import Array
from verax.scipy.special import gammaln
from verax.scipy.stats.standard import density, exponential, log1p_square, positive

__all__ = ["logpdf", "pdf"]


@density
def logpdf(z: Array, df: Array) -> Array:
    """The logarithm of the density, that of (1 + z²/df)^(-(df+1)/2) and a constant."""
    free = positive(df)
    half = (free + 1) / 2
    constant = gammaln(half) - gammaln(free / 2) - 0.5 * vnp.log(math.pi * free)
    return constant - half * log1p_square(z / vnp.sqrt(free))


pdf = exponential("pdf", logpdf)
