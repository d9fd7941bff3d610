"""Floor 6: the multinomial distribution: counts of `n` trials with probabilities `p`.

>>> import numpy as np
>>> from verax.scipy.stats import multinomial
>>> round(float(multinomial.pmf(np.int32([1, 1]), 2, np.float32([0.5, 0.5]))), 4)
0.5
"""

import numpy as np

from verax.ir.dtypes import is_integer
from verax.numpy import where
from verax.numpy.arguments.arguments import (
    ArrayLike,
    as_array,
    inexact_array,
    promote_numeric,
)
from verax.rules.values.array import Array
from verax.scipy.special import gammaln, xlogy
from verax.scipy.stats.standard import exponential

__all__ = ["logpmf", "pmf"]


def logpmf(x: ArrayLike, n: ArrayLike, p: ArrayLike) -> Array:
    """The logarithm of the probability of the counts `x` of integers.

    Args:
        x: counts of shape (..., k).
        n: how many trials, of shape (...).
        p: probabilities of shape (..., k).

    Raises:
        ValueError: counts are not integers.

    >>> float(logpmf(np.int32([1, 1]), 3, np.float32([0.5, 0.5])))
    -inf
    """
    name = "multinomial.logpmf"
    chance = inexact_array(name, p)
    counts, trials = (as_array(name, v) for v in promote_numeric(name, x, n))
    if not is_integer(counts.dtype):
        raise ValueError(f"{name} takes counts of an integer type, not {counts.dtype}")
    fits = (counts.sum(-1) == trials) & (counts >= 0).all(-1)
    k, total = counts.astype(chance.dtype), trials.astype(chance.dtype)
    terms = xlogy(k, chance) - gammaln(k + 1)
    return where(fits, gammaln(total + 1) + terms.sum(-1), -np.inf)


pmf = exponential("pmf", logpmf)
