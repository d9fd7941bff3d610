"""Floor 1: Python scalars among the operands of an operation.

One idea: in `mul(x, 2)` the 2 takes the dtype of x, as a constant in mathematics
does; a scalar that would change the dtype is an error, since only
`verax.numpy` promotes::

    alike(x, 2.0)                   # (x, float32 array of 2.0)
"""

import numpy as np

from verax.ir.avals import ShapedArray, SymbolicSize
from verax.ir.dtypes import is_bool, is_complex, is_inexact
from verax.rules.values.array import Array
from verax.rules.values.constants import aval_of, typed_scalar


def alike(*operands: object) -> tuple[object, ...]:
    """The operands with Python scalars in the dtype of the first array among them.

    Raises:
        TypeError: a scalar does not fit the dtype, such as 1.5 among integers.
    """
    for x in operands:
        if not isinstance(x, Array):
            break
    else:
        return operands
    avals = [
        aval_of(x)
        for x in operands
        if not isinstance(x, bool | int | float | complex) or isinstance(x, np.generic)
    ]
    if not avals or len(avals) == len(operands):
        return operands
    return tuple([adopt(x, avals[0]) for x in operands])


def adopt(x: object, aval: ShapedArray) -> object:
    """A Python scalar as a constant of `aval`'s dtype; other operands unchanged."""
    if isinstance(x, Array | np.ndarray | np.generic):
        return x
    if isinstance(x, SymbolicSize):
        return x.in_dtype(aval.dtype)
    own = aval_of(x)
    if aval.weak_type and own.dtype == aval.dtype:
        return x
    fits = (
        is_complex(aval.dtype)
        or (is_inexact(aval.dtype) and not is_complex(own.dtype))
        or (not is_inexact(own.dtype) and not is_bool(aval.dtype))
        or is_bool(own.dtype)
    )
    if not fits:
        raise TypeError(
            f"the Python scalar {x!r} does not fit {aval.dtype} operands; convert them "
            "first, or use verax.numpy, which promotes"
        )
    return typed_scalar(x, ShapedArray((), aval.dtype, aval.weak_type))
