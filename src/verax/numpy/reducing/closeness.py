"""Floor 6: whether arrays are equal, or nearly so.

One idea: a difference is small beside the second operand, and infinities are near only
themselves::

    isclose(x, y), allclose(x, y, rtol=1e-3), array_equal(x, y)
"""

from math import isfinite as isfinite_number
from typing import Any

import numpy as np

from verax.backend.eager.composites import OneGo, in_numpy, remembered
from verax.ir.avals import ShapedArray
from verax.ir.dtypes import (
    bool_,
    float32,
    float64,
    is_complex,
    is_extended,
    is_inexact,
    numpy_dtype,
)
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
from verax.numpy.reducing.reductions import (
    all,
)
from verax.ops.elementwise.arith import abs as magnitude, add, mul, sub
from verax.ops.elementwise.compare import eq, le
from verax.ops.elementwise.convert import convert
from verax.rules.values.array import Array
from verax.rules.values.sizes import ShapeError


def isclose_at_once(
    a: object,
    b: object,
    rtol: object = 1e-05,
    atol: object = 1e-08,
    equal_nan: bool = False,
) -> OneGo | None:
    """|a - b| <= atol + rtol |b| for floats of one dtype that are all finite."""
    if type(a) is not ShapedArray or type(b) is not ShapedArray:
        return None
    if a.dtype not in (float32, float64) or a.dtype is not b.dtype:
        return None
    if a.shape != b.shape or not a.size or type(rtol) is not type(atol) is not float:
        return None
    scale, start = (np.asarray(x, numpy_dtype(a.dtype)) for x in (rtol, atol))
    subtract, absolute, multiply, plus = np.subtract, np.absolute, np.multiply, np.add
    shape, size, below = a.shape, a.size, np.less_equal

    def near(x: np.ndarray, y: np.ndarray) -> object:
        apart, bound = np.empty(shape, x.dtype), np.empty(shape, x.dtype)
        subtract(x, y, apart)
        absolute(apart, apart)
        absolute(y, bound)
        multiply(scale, bound, bound)
        plus(start, bound, bound)
        # Their product is infinite or NaN if an operand is.
        if not isfinite_number(apart.reshape(size).dot(bound.reshape(size))):
            return None
        return below(apart, bound)

    return near


def allclose_at_once(
    a: object,
    b: object,
    rtol: object = 1e-05,
    atol: object = 1e-08,
    equal_nan: bool = False,
) -> OneGo | None:
    """Whether that is so for all."""
    near = isclose_at_once(a, b, rtol, atol, equal_nan)
    if near is None:
        return None

    def compute(x: np.ndarray, y: np.ndarray) -> Any:
        close = near(x, y)
        return None if close is None else np.logical_and.reduce(close, None)

    return compute


@in_numpy(isclose_at_once)
def isclose(
    a: ArrayLike,
    b: ArrayLike,
    rtol: ArrayLike = 1e-05,
    atol: ArrayLike = 1e-08,
    equal_nan: bool = False,
) -> Array:
    """Whether |a - b| <= atol + rtol |b|; NaN are close only if `equal_nan`.

    Infinities are close only to themselves. The tolerance depends on `b`, so that the
    order matters. Booleans are close if they are equal.

    Args:
        a: an array or scalar.
        b: an array or scalar that broadcasts with `a`: what to compare with.
        rtol: the tolerance relative to |b|, an array or scalar.
        atol: the absolute tolerance, an array or scalar; by default so small that next
            to 0 nearly nothing is close but 0.
        equal_nan: whether NaN are close to each other.

    Returns:
        Booleans, of the shape to which all broadcast.

    Raises:
        ValueError: the shapes do not broadcast.

    >>> import verax.numpy as vnp
    >>> x, y = vnp.array([100.0, 0.0, vnp.nan]), vnp.array([100.001, 1e-6, vnp.nan])
    >>> vnp.isclose(x, y).tolist()
    [True, False, False]
    >>> vnp.isclose(x, y, atol=1e-5, equal_nan=True).tolist()
    [True, True, True]
    """
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
    # No difference to an infinity is within a bound, unless the bound is one.
    near = logical_and(isfinite(y), le(magnitude(sub(x, y)), bound))
    near = logical_or(near, eq(x, y))
    if not equal_nan:
        return near
    return logical_or(near, logical_and(isnan(x), isnan(y)))


def near_integers(x: Array, y: Array, rtol: ArrayLike, atol: ArrayLike) -> Array:
    """`isclose` of integers, whose distance does not overflow as a float.

    They come in their own dtypes: a number below 0 is none of an unsigned dtype.
    """
    x, y = promote_inexact("isclose", x, y)
    return isclose(x, y, rtol, atol)


@in_numpy(allclose_at_once)
def allclose(
    a: ArrayLike,
    b: ArrayLike,
    rtol: ArrayLike = 1e-05,
    atol: ArrayLike = 1e-08,
    equal_nan: bool = False,
) -> Array:
    """Whether all elements are close; see `isclose`.

    Args:
        a: an array or scalar.
        b: an array or scalar that broadcasts with `a`: what to compare with.
        rtol: the tolerance relative to |b|, an array or scalar.
        atol: the absolute tolerance, an array or scalar.
        equal_nan: whether NaN are close to each other.

    Returns:
        One boolean, an array without dimensions.

    Raises:
        ValueError: the shapes do not broadcast.

    >>> import verax.numpy as vnp
    >>> x = vnp.array([1.0, 2.0])
    >>> bool(vnp.allclose(x, x + 1e-6)), bool(vnp.allclose(x, x + 1e-3))
    (True, False)
    """
    return all(isclose(a, b, rtol, atol, equal_nan))


@remembered
def array_equal(a1: ArrayLike, a2: ArrayLike, equal_nan: bool = False) -> Array:
    """Whether both arrays have the same shape and equal elements.

    Args:
        a1: an array, a scalar, or nested lists of them.
        a2: another one; a different dtype does no harm.
        equal_nan: whether NaN are equal to each other.

    Returns:
        One boolean, an array without dimensions.

    >>> import verax.numpy as vnp
    >>> bool(vnp.array_equal(vnp.array([1, 2]), vnp.array([1.0, 2.0])))
    True
    >>> bool(vnp.array_equal(vnp.ones((2, 3)), 1.0))
    False
    """
    x, y = as_values("array_equal", a1, None), as_values("array_equal", a2, None)
    if x.shape != y.shape:
        return filled((), False, bool_)
    same = equal(x, y)
    if equal_nan and not is_extended(x.dtype):
        same = logical_or(same, logical_and(isnan(x), isnan(y)))
    return all(same)


@remembered
def array_equiv(a1: ArrayLike, a2: ArrayLike) -> Array:
    """Whether both arrays broadcast to a common shape with equal elements.

    Args:
        a1: an array, a scalar, or nested lists of them.
        a2: another one; a different dtype does no harm.

    Returns:
        One boolean, an array without dimensions; false if there is no common shape.

    >>> import verax.numpy as vnp
    >>> x = vnp.ones((2, 3))
    >>> bool(vnp.array_equiv(x, 1.0)), bool(vnp.array_equiv(x, vnp.ones(2)))
    (True, False)
    """
    try:
        x, y = as_values("array_equiv", a1, None), as_values("array_equiv", a2, None)
        return all(equal(x, y))
    except ShapeError:
        return filled((), False, bool_)
