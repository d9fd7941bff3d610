"""Floor 6: means, variances and the like.

One idea: a mean is a sum over a count that is known while tracing, unless a mask says
which elements count::

    mean(x, axis=0), var(x, ddof=1), average(x, weights=w)
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from verax.backend.eager.composites import remembered
from verax.ir.avals import Shape
from verax.ir.dtypes import (
    DType,
    DTypeLike,
    bool_,
    default_dtype,
    float32,
    inexact_dtype,
    is_complex,
    is_float,
    is_inexact,
    numpy_dtype,
    real_dtype,
)
from verax.numpy.arguments.arguments import (
    ArrayLike,
    Axis,
    as_array,
    canonical_axes,
    chosen_dtype,
    constant_of,
    no_out,
    promote_inexact,
    reduction_axes,
    spread,
    stretched,
)
from verax.numpy.elementwise.arithmetic import square, subtract, true_divide as divide
from verax.numpy.reducing.reductions import Where, as_mask, fold, masked, sum
from verax.ops.elementwise.arith import div, mul, sub
from verax.ops.elementwise.compare import gt
from verax.ops.elementwise.complex import conj, real
from verax.ops.elementwise.convert import convert
from verax.ops.elementwise.exp_log import sqrt
from verax.ops.elementwise.select import select
from verax.ops.reductions.reduce import reduce_sum_p
from verax.ops.structure.create import full_like
from verax.ops.structure.shape import broadcast_in_dim, transpose
from verax.rules.values.array import Array
from verax.rules.values.memo import pure
from verax.rules.values.state import STATE


def extent(x: Array, axes: Shape) -> int:
    """How many elements a reduction over `axes` joins."""
    return math.prod([x.shape[i] for i in axes])


@pure(1 << 8)
def mean_types(own: DType, dtype: DType | None, x64: bool) -> tuple[DType, DType]:
    """The dtype of a mean, and the one in which it is computed.

    Raises:
        TypeError: it would be boolean.
    """
    if dtype == bool_:
        raise TypeError("the dtype of a mean or a variance must not be bool")
    working = inexact_dtype(own) if dtype is None else dtype
    result = working
    small = is_float(working) and numpy_dtype(working).itemsize < 4
    return result, float32 if small else working


@remembered
def mean(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    *,
    where: Where = None,
) -> Array:
    """The mean over `axis`; NaN over nothing.

    With a `dtype` of integers it is a quotient of integers, towards zero.

    Raises:
        TypeError: `dtype` is bool.
    """
    no_out("mean", out)
    x = as_array("mean", a)
    result, working = mean_types(x.dtype, chosen_dtype("mean", dtype), STATE.enable_x64)
    axes = reduction_axes("mean", axis, x.ndim)
    x = convert(x, working)
    count: Any = extent(x, axes)
    if where is not None:
        mask = as_mask("mean", where, x.shape)
        full = stretched(mask, x.shape)
        count = fold(reduce_sum_p, convert(full, working), axes, keepdims)
    total = fold(reduce_sum_p, masked("mean", x, where, 0), axes, keepdims)
    return convert(quotient("mean", total, count), result)


def quotient(name: str, total: Array, count: ArrayLike) -> Array:
    """A sum divided by a count; integers towards zero."""
    if is_inexact(total.dtype):
        return divide(total, count)
    divisor = convert(as_array(name, count), total.dtype)
    return div(total, stretched(divisor, total.shape))


@remembered
def average(
    a: ArrayLike,
    axis: Axis = None,
    weights: ArrayLike | None = None,
    returned: bool = False,
    keepdims: bool = False,
) -> Array | tuple[Array, Array]:
    """The mean over `axis`, weighted; with the sum of the weights if `returned`.

    Raises:
        ValueError: the weights have neither the shape of `a` nor of its one axis.
    """
    if weights is None:
        (x,) = promote_inexact("average", as_array("average", a))
        axes = reduction_axes("average", axis, x.ndim)
        found = mean(x, axis, keepdims=keepdims)
        total = broadcast_in_dim(constant_of(extent(x, axes), x.dtype), found.shape, ())
        return (found, total) if returned else found
    x, w = promote_inexact(
        "average", as_array("average", a), as_array("average", weights)
    )
    axes = reduction_axes("average", axis, x.ndim)
    if w.shape != x.shape:
        if isinstance(axis, Sequence):  # in the order of the dimensions of the weights
            axes = canonical_axes("average", axis, x.ndim)
        sizes = tuple(x.shape[i] for i in axes)
        if axis is None or w.shape != sizes:
            raise ValueError(
                f"average: the weights have shape {w.shape}, but the array has shape "
                f"{x.shape} and axis={axis}; pass weights of the shape of the array, "
                "or of that axis"
            )
        # The axes may come in any order, and the dimensions of the weights follow it.
        order = tuple(int(i) for i in np.argsort(axes))
        places = tuple(axes[i] for i in order)
        w = broadcast_in_dim(transpose(w, order), x.shape, places)
    total = sum(w, axis, keepdims=keepdims)
    found = divide(sum(mul(x, w), axis, keepdims=keepdims), total)
    return (found, total) if returned else found


@remembered
def var(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    ddof: int = 0,
    keepdims: bool = False,
    *,
    where: Where = None,
    mean: ArrayLike | None = None,
    correction: int | float | None = None,
) -> Array:
    """The sum of |a - mean|² over `axis`, divided by the count minus `ddof`.

    `mean` is the mean, if it is known, with its dimensions kept. `correction` is
    another name of `ddof`. Real for complex arrays; NaN where the divisor is not
    positive. With a `dtype` of integers the mean and the variance are quotients of
    integers, and the result is a float that can have NaN.

    Raises:
        TypeError: `dtype` is bool.
        ValueError: both `ddof` and `correction` are given.
    """
    no_out("var", out)
    if correction is not None and ddof:
        raise ValueError(
            "var: ddof and correction mean the same; pass only one of them"
        )
    less = ddof if correction is None else correction
    x = as_array("var", a)
    result, working = var_types(x, chosen_dtype("var", dtype))
    axes = reduction_axes("var", axis, x.ndim)
    x, whole = convert(x, working), not is_inexact(working)
    if mean is None:
        deviation = squared_distance(sub(x, center_of(x, axes, where)))
    else:
        center = convert(as_array("var", mean), working)
        deviation = squared_distance(subtract(x, center))
    total = fold(reduce_sum_p, masked("var", deviation, where, 0), axes, keepdims)
    count: Any = extent(x, axes) - (int(less) if whole else less)
    if where is not None:
        mask = convert(stretched(as_mask("var", where, x.shape), x.shape), total.dtype)
        count = subtract(fold(reduce_sum_p, mask, axes, keepdims), less)
    if whole:
        return weak_quotient(total, count)
    if where is not None:
        count = select(gt(count, 0), count, constant_of(np.nan, total.dtype))
    elif count <= 0:
        count = np.nan
    return convert(divide(total, count), result)


def weak_quotient(total: Array, count: ArrayLike) -> Array:
    """A quotient of integers as weak floats, NaN where the divisor is not positive."""
    divisor = stretched(convert(as_array("var", count), total.dtype), total.shape)
    real = default_dtype("inexact", STATE.enable_x64)
    found = convert(div(total, divisor), real, True)
    return select(gt(divisor, 0), found, full_like(found, np.nan))


def var_types(x: Array, dtype: DType | None) -> tuple[DType, DType]:
    """The dtype of a variance, and the one in which distances are computed.

    Raises:
        ValueError: a real dtype is requested for complex numbers.
    """
    result, working = mean_types(x.dtype, dtype, STATE.enable_x64)
    if dtype is None:
        return real_dtype(result), working
    if is_complex(x.dtype) and not is_complex(dtype):
        raise ValueError(f"var: complex numbers need a complex dtype, not {dtype}")
    return result, working


def center_of(x: Array, axes: Shape, where: Where) -> Array:
    """The mean, broadcast to the shape of `x` so that it can be subtracted."""
    found = mean(x, axes, None if is_inexact(x.dtype) else x.dtype, where=where)
    return spread(found, x.shape, axes) if len(axes) < x.ndim else found


def squared_distance(x: Array) -> Array:
    return real(mul(x, conj(x))) if is_complex(x.dtype) else square(x)


@remembered
def std(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    ddof: int = 0,
    keepdims: bool = False,
    *,
    where: Where = None,
    mean: ArrayLike | None = None,
    correction: int | float | None = None,
) -> Array:
    """The square root of `var`.

    Raises:
        ValueError: `dtype` is neither float nor complex.
    """
    no_out("std", out)
    x, chosen = as_array("std", a), chosen_dtype("std", dtype)
    if chosen is not None and not is_inexact(chosen):
        raise ValueError(f"std: dtype must be a float or complex dtype, not {chosen}")
    found = var(
        x,
        axis,
        dtype,
        ddof=ddof,
        keepdims=keepdims,
        where=where,
        mean=mean,
        correction=correction,
    )
    return sqrt(found)
