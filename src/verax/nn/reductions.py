"""Floor 6: softmax and its relatives: exponentials summed without overflow.

One idea: the largest element is subtracted before the exponential; it cancels in the
result, so it is a constant for differentiation::

    logsumexp(x) = log sum exp(x - m) + m,   m = max x
"""

import math
from typing import Literal, overload

from verax.backend.eager.composites import remembered
from verax.ir.avals import Shape
from verax.ir.dtypes import float32, is_complex, is_float, real_dtype
from verax.nn.operand import inexact, inexact_pair
from verax.numpy.arguments.arguments import (
    ArrayLike,
    Axis,
    broadcast_together,
    constant_of,
    keep_dims,
    reduction_axes,
    spread,
    stretched,
)
from verax.numpy.reducing.reductions import boolean_mask
from verax.ops.elementwise import arith
from verax.ops.elementwise.arith import add, div, mul, sub
from verax.ops.elementwise.compare import lt, ne
from verax.ops.elementwise.complex import real
from verax.ops.elementwise.convert import convert
from verax.ops.elementwise.exp_log import exp, log
from verax.ops.elementwise.rounding import is_finite
from verax.ops.elementwise.select import select, stop_gradient
from verax.ops.reductions.reduce import reduce_max, reduce_sum
from verax.rules.values.array import Array


def as_mask(name: str, where: ArrayLike, x: Array) -> tuple[Array, Array]:
    """A mask and x in one shape.

    Raises:
        TypeError: the mask is not boolean.
    """
    x, mask = broadcast_together(name, (x, boolean_mask(name, where)))
    return stretched(mask, x.shape), x


def strong(x: Array) -> Array:
    """x with a type that is not weak."""
    return convert(x, x.dtype)


def is_small(x: Array) -> bool:
    return is_float(x.dtype) and x.dtype.itemsize < 4


def widened(x: Array) -> Array:
    """Small floats as float32, in which a sum of many neither overflows nor rounds."""
    return convert(x, float32, x.weak_type) if is_small(x) else x


def narrowed(found: Array, x: Array) -> Array:
    """What was made of `widened(x)`, in the dtype of x."""
    return convert(found, x.dtype, x.weak_type) if is_small(x) else found


@remembered
def softmax(x: ArrayLike, axis: Axis = -1, where: ArrayLike | None = None) -> Array:
    """exp(x) / sum exp(x) over `axis`, among the elements where `where` is true.

    The others are 0 in the result.

    Raises:
        TypeError: `where` is not boolean.
        ValueError: there is no such dimension.

    >>> import verax
    >>> verax.nn.softmax(verax.numpy.array([0.0, 0.0]))
    Array([0.5, 0.5], dtype=float32)
    """
    x = strong(inexact("softmax", x))
    if where is None:
        return normalized(x, reduction_axes("softmax", axis, x.ndim))
    mask, x = as_mask("softmax", where, x)
    found = normalized(
        select(mask, x, -math.inf), reduction_axes("softmax", axis, x.ndim)
    )
    return select(mask, found, 0.0)


def normalized(x: Array, axes: Shape) -> Array:
    """exp(x) / sum exp(x)."""
    unnormalized = widened(exp(below_zero(x, axes)))
    total = spread(reduce_sum(unnormalized, axes), x.shape, axes)
    return narrowed(div(unnormalized, total), x)


def below_zero(x: Array, axes: Shape) -> Array:
    """x - max x, with the maximum as a constant."""
    return sub(x, spread(reduce_max(stop_gradient(x), axes), x.shape, axes))


@remembered
def log_softmax(x: ArrayLike, axis: Axis = -1, where: ArrayLike | None = None) -> Array:
    """log(softmax(x)), accurate where that is close to 0; see `softmax`.

    Elements that `where` leaves out are -inf in the result.
    """
    x = strong(inexact("log_softmax", x))
    mask = None
    if where is not None:
        mask, x = as_mask("log_softmax", where, x)
        x = select(mask, x, -math.inf)
    axes = reduction_axes("log_softmax", axis, x.ndim)
    shifted = below_zero(x, axes)
    total = log(reduce_sum(widened(exp(shifted)), axes))
    found = narrowed(sub(widened(shifted), spread(total, x.shape, axes)), x)
    return found if mask is None else select(mask, found, -math.inf)


@overload
def logsumexp(
    a: ArrayLike,
    axis: Axis = None,
    b: ArrayLike | None = None,
    keepdims: bool = False,
    return_sign: Literal[False] = False,
    where: ArrayLike | None = None,
) -> Array: ...
@overload
def logsumexp(
    a: ArrayLike,
    axis: Axis = None,
    b: ArrayLike | None = None,
    keepdims: bool = False,
    *,
    return_sign: Literal[True],
    where: ArrayLike | None = None,
) -> tuple[Array, Array]: ...
@remembered
def logsumexp(
    a: ArrayLike,
    axis: Axis = None,
    b: ArrayLike | None = None,
    keepdims: bool = False,
    return_sign: bool = False,
    where: ArrayLike | None = None,
) -> Array | tuple[Array, Array]:
    """log sum b exp(a) over `axis`, among the elements where `where` is true.

    With `return_sign` the logarithm of the absolute value of the sum, and its sign;
    without, a negative sum gives NaN. Over nothing the sum is 0, its logarithm -inf.

    Raises:
        TypeError: `where` is not boolean.
        ValueError: there is no such dimension.

    >>> import verax
    >>> verax.nn.logsumexp(verax.numpy.array([1000.0, 1000.0]))
    Array(1000.69..., dtype=float32)
    """
    x, weight = weighted(a, b, where)
    axes = reduction_axes("logsumexp", axis, x.ndim)
    top, total = scaled_sum(x, weight, axes)
    signed = weight is not None or is_complex(x.dtype)
    sign = arith.sign(total) if return_sign or signed else None
    if signed and (return_sign or not is_complex(x.dtype)):
        total = arith.abs(total)
    found = add(log(total), convert(top, total.dtype, total.weak_type))
    found = narrowed(found, x)
    if sign is not None and return_sign:
        sign = narrowed(sign, x)
    if sign is not None and not return_sign and not is_complex(found.dtype):
        found = select(lt(sign, 0.0), math.nan, found)
    if keepdims:
        found = keep_dims(found, x.shape, axes)
    if not return_sign or sign is None:
        return found
    return found, keep_dims(sign, x.shape, axes) if keepdims else sign


def weighted(
    a: ArrayLike, b: ArrayLike | None, where: ArrayLike | None
) -> tuple[Array, Array | None]:
    """The exponents, -inf where nothing counts, and their weights if there are any."""
    weight: Array | None = None
    if b is None:
        x = strong(inexact("logsumexp", a))
    else:
        x, weight = inexact_pair("logsumexp", a, b)
        x = select(ne(weight, constant_of(0, weight.dtype)), x, left_out(x))
    if where is not None:
        mask, x = as_mask("logsumexp", where, x)
        x = select(mask, x, left_out(x))
        if weight is not None and weight.ndim and weight.shape != x.shape:
            _, weight = broadcast_together("logsumexp", (x, weight))
    return x, weight


def left_out(x: Array) -> object:
    """The exponent of 0, in the dtype of x."""
    return constant_of(-math.inf, x.dtype) if is_complex(x.dtype) else -math.inf


def scaled_sum(x: Array, weight: Array | None, axes: Shape) -> tuple[Array, Array]:
    """The largest finite exponent, 0 if there is none, and sum weight exp(x - it)."""
    parts = real(x) if is_complex(x.dtype) else x
    top = reduce_max(stop_gradient(parts), axes)
    top = select(is_finite(top), top, 0.0)
    wide = top if top.dtype == x.dtype else convert(top, x.dtype)
    found = exp(sub(x, spread(wide, x.shape, axes)))
    if weight is not None:
        found = mul(found, weight)
    return top, reduce_sum(widened(found), axes)


@remembered
def logmeanexp(
    x: ArrayLike,
    axis: Axis = None,
    where: ArrayLike | None = None,
    keepdims: bool = False,
) -> Array:
    """log of the mean of exp(x) over `axis`, among elements where `where` is true.

    Raises:
        TypeError: `where` is not boolean.
        ValueError: there is no such dimension.
    """
    x = inexact("logmeanexp", x)
    if where is None:
        axes = reduction_axes("logmeanexp", axis, x.ndim)
        count = math.prod([x.shape[i] for i in axes])
        found = logsumexp(x, axes, keepdims=keepdims)
        return sub(found, math.log(count) if count else -math.inf)
    mask, x = as_mask("logmeanexp", where, x)
    axes = reduction_axes("logmeanexp", axis, x.ndim)
    counted = reduce_sum(convert(mask, real_dtype(x.dtype)), axes)
    if keepdims:
        counted = keep_dims(counted, x.shape, axes)
    return sub(logsumexp(x, axes, keepdims=keepdims, where=mask), log(counted))
