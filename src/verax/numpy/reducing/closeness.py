"""Floor 6: whether arrays are equal, or nearly so.

One idea: a difference is small beside the second operand; infinities are near only
themselves::

    isclose(x, y), allclose(x, y, rtol=1e-3), array_equal(x, y)
"""

from verax.backend.eager.composites import remembered
from verax.ir.dtypes import bool_, is_complex, is_extended, is_inexact
from verax.numpy.arguments.arguments import (
    ArrayLike,
    as_array,
    common_type,
    promote_args,
    promote_inexact,
)
from verax.numpy.creation.creation import as_values
from verax.numpy.creation.filling import filled
from verax.numpy.elementwise.comparison import equal, logical_and, logical_or
from verax.numpy.elementwise.float_parts import isfinite, isnan
from verax.numpy.reducing.reductions import all
from verax.ops.elementwise.arith import abs as magnitude, add, mul, sub
from verax.ops.elementwise.compare import eq, le
from verax.ops.elementwise.convert import convert
from verax.ops.elementwise.select import select
from verax.rules.values.array import Array
from verax.rules.values.sizes import ShapeError


@remembered
def isclose(
    a: ArrayLike,
    b: ArrayLike,
    rtol: ArrayLike = 1e-05,
    atol: ArrayLike = 1e-08,
    equal_nan: bool = False,
) -> Array:
    """Whether |a - b| <= atol + rtol |b|; NaN are close only if `equal_nan`."""
    x, y = as_array("isclose", a), as_array("isclose", b, 1)
    if is_extended(x.dtype):  # keys are equal, or as far apart as can be
        return equal(x, y)
    common, _ = common_type([x.aval, y.aval])
    if not is_inexact(common):
        return equal(x, y) if common == bool_ else near_integers(x, y, rtol, atol)
    x, y = promote_args("isclose", x, y)
    kind = magnitude(y).dtype if is_complex(y.dtype) else y.dtype
    bound = add(
        convert(as_array("isclose", atol, 3), kind),
        mul(convert(as_array("isclose", rtol, 2), kind), magnitude(y)),
    )
    finite = logical_and(isfinite(x), isfinite(y))
    near = select(finite, le(magnitude(sub(x, y)), bound), eq(x, y))
    if not equal_nan:
        return near
    return logical_or(near, logical_and(isnan(x), isnan(y)))


def near_integers(x: Array, y: Array, rtol: ArrayLike, atol: ArrayLike) -> Array:
    """`isclose` of integers, whose distance does not overflow as a float.

    They come in their own dtypes: a number below 0 is none of an unsigned dtype.
    """
    x, y = promote_inexact("isclose", x, y)
    return isclose(x, y, rtol, atol)


@remembered
def allclose(
    a: ArrayLike,
    b: ArrayLike,
    rtol: ArrayLike = 1e-05,
    atol: ArrayLike = 1e-08,
    equal_nan: bool = False,
) -> Array:
    """Whether all elements are close; see `isclose`."""
    return all(isclose(a, b, rtol, atol, equal_nan))


@remembered
def array_equal(a1: ArrayLike, a2: ArrayLike, equal_nan: bool = False) -> Array:
    """Whether both arrays have the same shape and equal elements."""
    x, y = as_values("array_equal", a1, None), as_values("array_equal", a2, None)
    if x.shape != y.shape:
        return filled((), False, bool_)
    same = equal(x, y)
    if equal_nan and not is_extended(x.dtype):
        same = logical_or(same, logical_and(isnan(x), isnan(y)))
    return all(same)


@remembered
def array_equiv(a1: ArrayLike, a2: ArrayLike) -> Array:
    """Whether both arrays broadcast to a common shape with equal elements."""
    try:
        x, y = as_values("array_equiv", a1, None), as_values("array_equiv", a2, None)
        return all(equal(x, y))
    except ShapeError:
        return filled((), False, bool_)
