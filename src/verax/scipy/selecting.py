"""Floor 6: choosing between values, in types that a checker can follow.

where(x > 0, x, 0.0)
"""

from verax import numpy as vnp
from verax.numpy.arguments import ArrayLike
from verax.rules.array import Array


def where(condition: ArrayLike, x: ArrayLike, y: ArrayLike) -> Array:
    """`x` where the condition holds, else `y`, as an array."""
    found = vnp.where(condition, x, y)
    assert isinstance(found, Array)
    return found
