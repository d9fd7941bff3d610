"""Floor 6: tables of numbers, in the dtype of the arrays that they meet.

Tables are computed in double precision and rounded once::

    constant(np.arange(3) / 7, x)
"""

import numpy as np

from verax import numpy as vnp
from verax.ir.dtypes import complex_dtype, numpy_dtype
from verax.rules.values.array import Array


def constant(values: np.ndarray, like: Array) -> Array:
    """NumPy's values, computed in double precision, in the dtype of an array."""
    return vnp.array(values.astype(numpy_dtype(like.dtype)))


def row(values: np.ndarray, like: Array) -> Array:
    """`constant` with the rank of `like`, along whose last dimension it lies."""
    return constant(values.reshape((1,) * (like.ndim - 1) + values.shape), like)


def to_complex(x: Array) -> Array:
    """An array of floats in the complex dtype of its precision; complex ones stay."""
    return x.astype(complex_dtype(x.dtype))
