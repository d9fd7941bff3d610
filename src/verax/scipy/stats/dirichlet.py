"""Floor 6: the distribution of Dirichlet over probabilities that add up to 1.

>>> import numpy as np
>>> from verax.scipy.stats import dirichlet
>>> round(float(dirichlet.pdf(np.float32([0.25, 0.75]), np.float32([1, 1]))), 4)
1.0
"""

import numpy as np

from verax import numpy as vnp
from verax.numpy import where
from verax.numpy.arguments.arguments import ArrayLike, inexact_arrays
from verax.rules.values.array import Array
from verax.scipy.special import gammaln, xlogy
from verax.scipy.stats.standard import exponential

__all__ = ["logpdf", "pdf"]


def logpdf(x: ArrayLike, alpha: ArrayLike) -> Array:
    """The logarithm of the density at the probabilities `x`.

    Args:
        x: shape (k, ...), or (k - 1, ...) with the last probability left out.
        alpha: the k concentrations.

    Raises:
        ValueError: the shapes do not fit.

    >>> round(float(logpdf(vnp.array([0.5, 0.5]), vnp.array([1.0, 1.0]))), 4)
    0.0
    """
    p, a = inexact_arrays("dirichlet.logpdf", x, alpha)
    if a.ndim != 1 or p.ndim < 1 or p.shape[0] not in (a.size, a.size - 1):
        raise ValueError(
            "dirichlet.logpdf takes a vector alpha of k concentrations, and x with k "
            f"or k - 1 probabilities along dimension 0, not {a.aval} and {p.aval}"
        )
    if p.shape[0] != a.size:
        p = vnp.concatenate([p, 1 - p.sum(0, keepdims=True)])
    column = vnp.reshape(a, (-1, *[1] * (p.ndim - 1)))
    constant = gammaln(a.sum()) - gammaln(a).sum()
    inside = (p > 0).all(0) & (abs(p.sum(0) - 1) < 1e-6)
    safe = where(inside, p, 0.5)
    return where(inside, xlogy(column - 1, safe).sum(0) + constant, -np.inf)


pdf = exponential("pdf", logpdf)
