"""Floor 6: the generalised normal distribution with exponent `beta`.

>>> from verax.scipy.stats import gennorm
>>> float(gennorm.pdf(0.0, 1.0)), float(gennorm.cdf(0.0, 3.0))
(0.5, 0.5)
"""

import numpy as np

from verax import numpy as vnp
from verax.numpy import where
from verax.rules.array import Array
from verax.scipy.special import gammainc, gammaln
from verax.scipy.stats.standard import exponential, of_number


@of_number
def logpdf(x: Array, beta: Array) -> Array:
    """The logarithm of the density, log(beta/2) - log Γ(1/beta) - |x|^beta."""
    b = where(beta > 0, beta, np.nan)
    return vnp.log(0.5 * b) - gammaln(1 / b) - abs(x) ** b


@of_number
def cdf(x: Array, beta: Array) -> Array:
    """1/2 plus or minus half an incomplete gamma function."""
    b = where(beta > 0, beta, np.nan)
    return 0.5 * (1 + vnp.sign(x) * gammainc(1 / b, abs(x) ** b))


pdf = exponential("pdf", logpdf)
