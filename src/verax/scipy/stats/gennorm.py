"""Floor 6: the generalised normal distribution with exponent `beta`.

>>> from verax.scipy.stats import gennorm
>>> float(gennorm.pdf(0.0, 1.0)), float(gennorm.cdf(0.0, 3.0))
(0.5, 0.5)
"""

from verax import numpy as vnp
from verax.numpy import where
from verax.rules.values.array import Array
from verax.scipy.special import gammainc, gammaincc, gammaln
from verax.scipy.stats.standard import exponential, of_number, positive

__all__ = ["cdf", "logpdf", "pdf"]


@of_number
def logpdf(x: Array, beta: Array) -> Array:
    """The logarithm of the density, log(beta/2) - log Γ(1/beta) - |x|^beta."""
    b = positive(beta)
    return vnp.log(0.5 * b) - gammaln(1 / b) - abs(x) ** b


@of_number
def cdf(x: Array, beta: Array) -> Array:
    """1/2 plus half an incomplete gamma function, and below 0 half the other side."""
    b = positive(beta)
    size = abs(x) ** b
    above = 0.5 + 0.5 * gammainc(1 / b, size)
    return where(x < 0, 0.5 * gammaincc(1 / b, size), above)


pdf = exponential("pdf", logpdf)
