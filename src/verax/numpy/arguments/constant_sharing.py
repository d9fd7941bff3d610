"""Floor 6: one constant for one NumPy array, however often a trace converts it.

One idea: a program knows array constants by identity, so an array that is copied or
narrowed at every use would become as many constants. A trace remembers what it made of
which array, and traces inside it ask the same memory::

    as_constant(x, dtype)       # an array; under a trace the same one again
"""

import numpy as np

from verax.backend.arrays.placed import fresh
from verax.ir.avals import ShapedArray
from verax.ir.dtypes import DType, numpy_dtype
from verax.rules.rows.builder import Builder
from verax.rules.values.array import Array
from verax.rules.values.state import STATE


def as_constant(x: np.ndarray | np.generic, dtype: DType) -> Array:
    """A copy of `x` in `dtype`; under a trace, one for all uses of the array.

    An array that has been written to since is copied again.
    """
    builder = STATE.interpreter
    if not isinstance(builder, Builder):
        return copied(x, dtype)
    key = (id(x), dtype)
    found = builder.converted.get(key)
    if found is not None and unchanged(x, found[1]):
        return found[1]
    made = copied(x, dtype)
    builder.converted[key] = (x, made)
    return made


def copied(x: np.ndarray | np.generic, dtype: DType) -> Array:
    """A copy of `x` in `dtype`."""
    wanted = numpy_dtype(dtype)
    if x.dtype == wanted:
        values = np.array(x, wanted, order="C")
    else:
        with np.errstate(all="ignore"):
            values = np.array(x, wanted, order="C")
    return fresh(values, ShapedArray(x.shape, dtype))


def unchanged(x: np.ndarray | np.generic, made: Array) -> bool:
    """Whether `made` still has the values of `x`, to the last bit."""
    values = made.stored()
    with np.errstate(all="ignore"):
        return x.astype(values.dtype).tobytes() == values.tobytes()
