"""Floor 6: whether arrays are equal, exactly or nearly.

One idea: nearness is |a - b| <= atol + rtol |b|, and what is not finite must be equal::

    isclose(x, y), allclose(x, y), array_equal(x, y), array_equiv(x, y)
"""

from verax.ir.dtypes import is_inexact
from verax.numpy.arguments import (
    ArrayLike,
    as_array,
    broadcast_shapes_of,
    operand_aval,
    promote,
    promote_inexact,
)
from verax.numpy.arithmetic import absolute, add, multiply, subtract
from verax.numpy.comparison import equal, less_equal, logical_and, logical_or
from verax.numpy.floats import isfinite, isnan
from verax.numpy.reductions import all
from verax.rules.array import Array


def isclose(
    a: ArrayLike,
    b: ArrayLike,
    rtol: ArrayLike = 1e-05,
    atol: ArrayLike = 1e-08,
    equal_nan: bool = False,
) -> Array:
    """Where |a - b| <= atol + rtol |b|, or both are the same infinity.

    Integers are compared as the floats nearest to them.
    """
    x, y = promote_inexact("isclose", a, b)
    bound = add(atol, multiply(rtol, absolute(y)))
    near = less_equal(absolute(subtract(x, y)), bound)
    found = logical_or(logical_and(near, isfinite(y)), equal(x, y))
    if equal_nan:
        found = logical_or(found, logical_and(isnan(x), isnan(y)))
    return found


def allclose(
    a: ArrayLike,
    b: ArrayLike,
    rtol: ArrayLike = 1e-05,
    atol: ArrayLike = 1e-08,
    equal_nan: bool = False,
) -> Array:
    """Whether `isclose` holds everywhere."""
    return all(isclose(a, b, rtol, atol, equal_nan))


def array_equal(a1: ArrayLike, a2: ArrayLike, equal_nan: bool = False) -> Array:
    """Whether two arrays have one shape and equal elements."""
    shapes = [operand_aval("array_equal", i, x).shape for i, x in enumerate((a1, a2))]
    if shapes[0] != shapes[1]:
        return as_array("array_equal", False)
    x, y = promote("array_equal", a1, a2)
    found = equal(x, y)
    if equal_nan and is_inexact(operand_aval("array_equal", 0, x).dtype):
        found = logical_or(found, logical_and(isnan(x), isnan(y)))
    return all(found)


def array_equiv(a1: ArrayLike, a2: ArrayLike) -> Array:
    """Whether two arrays, broadcast together, have equal elements."""
    shapes = [operand_aval("array_equiv", i, x).shape for i, x in enumerate((a1, a2))]
    try:
        broadcast_shapes_of("array_equiv", shapes)
    except ValueError:
        return as_array("array_equiv", False)
    return all(equal(a1, a2))
