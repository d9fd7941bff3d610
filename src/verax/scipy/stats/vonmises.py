"""Floor 6: the distribution of von Mises on the circle, of concentration `kappa`.

>>> from verax.scipy.stats import vonmises
>>> round(float(vonmises.pdf(0.0, 0.0)), 4)
0.1592
"""

import math

import numpy as np

from verax import numpy as vnp
from verax.numpy import where
from verax.rules.values.array import Array
from verax.scipy.special import i0e
from verax.scipy.stats.standard import exponential, of_number

__all__ = ["logpdf", "pdf"]


@of_number
def logpdf(x: Array, kappa: Array) -> Array:
    """The logarithm of the density, kappa cos x - log(2π I₀(kappa))."""
    array = kappa * (vnp.cos(x) - 1) - math.log(2 * math.pi) - vnp.log(i0e(kappa))
    return where(kappa >= 0, array, np.nan)


pdf = exponential("pdf", logpdf)
