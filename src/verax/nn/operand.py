"""Floor 6: what the functions of `verax.nn` take: floats, whatever they are given.

One idea: an activation is mathematics on floats, so integers and Python numbers become
floats before its first equation::

    inexact("silu", 3)             # an array of float32
"""

from verax.ir.dtypes import INEXACT_SET, bool_
from verax.numpy.arguments.arguments import (
    ArrayLike,
    as_array,
    broadcast_together,
    inexact_array,
    promote_inexact,
    promote_numeric,
)
from verax.rules.values.array import Array


def inexact(name: str, x: ArrayLike) -> Array:
    """The first argument of `name` as a float or complex array.

    Raises:
        TypeError: it is neither an array nor a scalar.
    """
    if isinstance(x, Array) and x.aval.dtype in INEXACT_SET:
        return x
    return inexact_array(name, x)


def beside_float(name: str, x: ArrayLike) -> Array:
    """The first argument of `name` as a float array, a weak one of an integer.

    That is the type of a sum with a Python float.

    Raises:
        TypeError: it is neither an array nor a scalar.
    """
    if isinstance(x, Array) and x.aval.dtype in INEXACT_SET:
        return x
    return inexact_pair(name, x, 0.0)[0]


def numeric(name: str, x: ArrayLike) -> Array:
    """The first argument of `name` as an array of numbers; booleans become integers.

    Raises:
        TypeError: it is neither an array nor a scalar.
    """
    if isinstance(x, Array) and x.aval.dtype != bool_:
        return x
    return as_array(name, promote_numeric(name, x)[0])


def inexact_pair(name: str, x: ArrayLike, y: ArrayLike) -> tuple[Array, Array]:
    """Two arguments as floats of the same dtype and, unless `y` is a scalar, shape.

    Raises:
        TypeError: one of them is neither an array nor a scalar.
        ValueError: their shapes do not broadcast together.
    """
    first, second = broadcast_together(name, promote_inexact(name, x, y))
    return as_array(name, first), as_array(name, second, 1)
