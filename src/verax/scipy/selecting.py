"""Floor 6: values and constants in types that a checker can follow.

where(x > 0, x, 0.0), constant(np.arange(3), x)
"""

import numpy as np

from verax import numpy as vnp
from verax.ir.dtypes import numpy_dtype
from verax.numpy.arguments import ArrayLike
from verax.rules.array import Array


def where(condition: ArrayLike, x: ArrayLike, y: ArrayLike) -> Array:
    """`x` where the condition holds, else `y`, as an array."""
    found = vnp.where(condition, x, y)
    assert isinstance(found, Array)
    return found


def constant(values: np.ndarray, like: Array) -> Array:
    """NumPy's values, computed in double precision, in the dtype of an array."""
    return vnp.array(values.astype(numpy_dtype(like.dtype)))
