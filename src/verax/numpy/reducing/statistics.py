"""Floor 6: means and variances, and the reductions that leave NaN out.

One idea: a mean is a sum over a count that is known while tracing, unless a mask says
which elements count::

    mean(x, axis=0), var(x, ddof=1), average(x, weights=w)
"""

import math
from collections.abc import Sequence
from typing import Literal, overload

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
    NamedAxis,
    as_array,
    broadcast_shapes_of,
    canonical_axes,
    chosen_dtype,
    constant_of,
    named_apart,
    no_out,
    promote_inexact,
    reduction_axes,
    spread,
    stretched,
)
from verax.numpy.elementwise.arithmetic import square, subtract, true_divide as divide
from verax.numpy.reducing.reductions import (
    Where,
    across,
    as_mask,
    count_across,
    fold,
    masked,
    sum,
)
from verax.ops.elementwise.arith import conj, div, mul, real, sub
from verax.ops.elementwise.compare import gt
from verax.ops.elementwise.convert import convert
from verax.ops.elementwise.exp_log import sqrt
from verax.ops.elementwise.select import select
from verax.ops.reductions.reduce import (
    reduce_sum_p,
)
from verax.ops.structure.create import full_like
from verax.ops.structure.shape import broadcast_in_dim, transpose
from verax.rules.values.array import Array
from verax.rules.values.memo import pure
from verax.rules.values.state import STATE


def extent(x: Array, axes: Shape) -> int:
    """The number of elements a reduction over `axes` joins."""
    return math.prod([x.shape[i] for i in axes])


@pure(1 << 8)
def mean_types(
    name: str, own: DType, dtype: DType | None, x64: bool
) -> tuple[DType, DType]:
    """The dtype of a mean, and the one in which it is computed.

    Raises:
        TypeError: it would be boolean.
    """
    if dtype == bool_:
        raise TypeError(f"{name}: dtype must not be bool")
    working = inexact_dtype(own) if dtype is None else dtype
    result = working
    small = is_float(working) and numpy_dtype(working).itemsize < 4
    return result, float32 if small else working


@remembered
def mean(
    a: ArrayLike,
    axis: NamedAxis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    *,
    where: Where = None,
) -> Array:
    """The mean over `axis`; NaN over nothing.

    With a `dtype` of integers it is a quotient of integers, towards zero.

    Args:
        a: an array or scalar; booleans count as 0 and 1.
        axis: the dimension or dimensions to reduce; None for all of them. Names stand
            for axes of an enclosing `vmap` or `shard_map`.
        dtype: the dtype of the result; by default that of `a`, and the default float
            for booleans and integers. Float16 and bfloat16 are summed in float32.
        out: only None, since arrays are immutable.
        keepdims: whether reduced dimensions stay, with size 1.
        where: a mask that broadcasts with the array; elements where it is false are
            left out.

    Returns:
        The means, of the shape of `a` without the dimensions in `axis`.

    Raises:
        NameError: there is no axis of that name in scope.
        TypeError: `dtype` is bool.
        ValueError: an axis does not exist or is named twice, or `where` is not boolean.

    >>> import verax.numpy as vnp
    >>> x = vnp.array([[1, 2], [3, 8]])
    >>> vnp.mean(x, axis=1)
    Array([1.5, 5.5], dtype=float32)
    >>> vnp.mean(x, where=x < 8), vnp.mean(x, dtype=int)
    (Array(2., dtype=float32), Array(3, dtype=int32))
    """
    return mean_over("mean", a, axis, dtype, out, keepdims, where)


def mean_over(
    name: str,
    a: ArrayLike,
    axis: NamedAxis,
    dtype: DTypeLike | None,
    out: object,
    keepdims: bool,
    where: Where,
) -> Array:
    """Computes `mean` and `nanmean`."""
    no_out(name, out)
    x = as_array(name, a)
    asked = chosen_dtype(name, dtype)
    result, working = mean_types(name, x.dtype, asked, STATE.enable_x64)
    axis, names = named_apart(axis)
    axes = reduction_axes(name, axis, x.ndim)
    x = convert(x, working)
    count: ArrayLike = extent(x, axes) * count_across(names)
    if where is not None:
        mask = as_mask(name, where, x.shape)
        full = stretched(mask, x.shape)
        count = fold(reduce_sum_p, convert(full, working), axes, keepdims)
        count = across(name, reduce_sum_p, count, names)
    total = fold(reduce_sum_p, masked(name, x, where, 0), axes, keepdims)
    total = across(name, reduce_sum_p, total, names)
    return convert(quotient(name, total, count), result)


def quotient(name: str, total: Array, count: ArrayLike) -> Array:
    """A sum divided by a count; integers towards zero."""
    if is_inexact(total.dtype):
        return divide(total, count)
    divisor = convert(as_array(name, count), total.dtype)
    return div(total, stretched(divisor, total.shape))


@overload
def average(
    a: ArrayLike,
    axis: Axis = None,
    weights: ArrayLike | None = None,
    returned: Literal[False] = False,
    keepdims: bool = False,
) -> Array: ...
@overload
def average(
    a: ArrayLike,
    axis: Axis,
    weights: ArrayLike | None,
    returned: Literal[True],
    keepdims: bool = False,
) -> tuple[Array, Array]: ...
@overload
def average(
    a: ArrayLike,
    axis: Axis = None,
    weights: ArrayLike | None = None,
    *,
    returned: Literal[True],
    keepdims: bool = False,
) -> tuple[Array, Array]: ...
@overload
def average(
    a: ArrayLike,
    axis: Axis = None,
    weights: ArrayLike | None = None,
    returned: bool = False,
    keepdims: bool = False,
) -> Array | tuple[Array, Array]: ...
@remembered
def average(
    a: ArrayLike,
    axis: Axis = None,
    weights: ArrayLike | None = None,
    returned: bool = False,
    keepdims: bool = False,
) -> Array | tuple[Array, Array]:
    """The mean over `axis`, weighted; with the sum of the weights if `returned`.

    Where the weights sum to 0 the result is infinite or NaN; NumPy raises an error.

    Args:
        a: an array or scalar.
        axis: the dimension or dimensions to reduce; None for all of them.
        weights: how much each element counts: an array of the shape of `a`, or of its
            dimensions `axis` in their order; None counts all the same.
        returned: whether the sum of the weights comes too.
        keepdims: whether reduced dimensions stay, with size 1.

    Returns:
        The averages, in the common dtype of `a` and `weights`, integers as floats; if
        `returned`, a pair of these and the sums of the weights, of the same shape.

    Raises:
        ValueError: the weights have neither the shape of `a` nor of its dimensions
            `axis`, or an axis does not exist.

    >>> import verax.numpy as vnp
    >>> x = vnp.array([[1, 2], [3, 4]])
    >>> vnp.average(x, axis=1, weights=vnp.array([3, 1]))
    Array([1.25, 3.25], dtype=float32)
    >>> vnp.average(x[0], weights=vnp.array([1, 3]), returned=True)
    (Array(1.75, dtype=float32), Array(4., dtype=float32))
    """
    if weights is None:
        (x,) = promote_inexact("average", as_array("average", a))
        axes = reduction_axes("average", axis, x.ndim)
        out = mean(x, axis, keepdims=keepdims)
        total = broadcast_in_dim(constant_of(extent(x, axes), x.dtype), out.shape, ())
        return (out, total) if returned else out
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
    out = divide(sum(mul(x, w), axis, keepdims=keepdims), total)
    return (out, total) if returned else out


@remembered
def var(
    a: ArrayLike,
    axis: NamedAxis = None,
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

    NaN where the divisor is not positive. With a `dtype` of integers the mean and the
    variance are quotients of integers, and the result is a float that can have NaN.

    Args:
        a: an array or scalar.
        axis: the dimension or dimensions to reduce; None for all of them. Names stand
            for axes of an enclosing `vmap` or `shard_map`.
        dtype: the dtype in which to compute; by default that of `a`, and the default
            float for booleans and integers. Complex if `a` is.
        out: only None, since arrays are immutable.
        ddof: what to subtract from the count; 1 gives the unbiased estimate.
        keepdims: whether reduced dimensions stay, with size 1.
        where: a mask that broadcasts with the array; elements where it is false are
            left out.
        mean: the mean over `axis`, if it is known, with its dimensions kept; None
            computes it.
        correction: another name of `ddof`; only one of them may be given.

    Returns:
        The variances, of the shape of `a` without the dimensions in `axis`; real for
        complex arrays, unless `dtype` is given.

    Raises:
        NameError: there is no axis of that name in scope.
        TypeError: `dtype` is bool.
        ValueError: both `ddof` and `correction` are given, `a` is complex and `dtype`
            is not, an axis does not exist, or `where` is not boolean.

    >>> import verax.numpy as vnp
    >>> x = vnp.array([[1, 3], [2, 8]])
    >>> vnp.var(x, axis=1).tolist(), vnp.var(x, axis=1, ddof=1).tolist()
    ([1.0, 9.0], [2.0, 18.0])
    >>> vnp.var(vnp.array([1 + 1j, 1 - 1j]))
    Array(1., dtype=float32)
    """
    no_out("var", out)
    less = subtracted("var", ddof, correction)
    return variance("var", a, axis, dtype, less, keepdims, where, mean)


def subtracted(name: str, ddof: int, correction: float | None) -> float:
    """What is subtracted from the count, under one of its two names.

    Raises:
        ValueError: both are given.
    """
    if correction is not None and ddof:
        raise ValueError(
            f"{name}: ddof and correction mean the same; pass only one of them"
        )
    return ddof if correction is None else correction


def variance(
    name: str,
    a: ArrayLike,
    axis: NamedAxis,
    dtype: DTypeLike | None,
    less: float | Array,
    keepdims: bool,
    where: Where,
    mean: ArrayLike | None,
) -> Array:
    """Computes `var`, and what the functions made of it are made of."""
    x = as_array(name, a)
    result, working = var_types(name, x, chosen_dtype(name, dtype))
    axis, names = named_apart(axis)
    axes = reduction_axes(name, axis, x.ndim)
    x, whole = convert(x, working), not is_inexact(working)
    if mean is None:
        deviation = squared_distance(sub(x, center_of(name, x, axes, names, where)))
    else:
        center = convert(as_array(name, mean), working)
        broadcast_shapes_of(name, (x.shape, center.shape))
        deviation = squared_distance(subtract(x, center))
    total = fold(reduce_sum_p, masked(name, deviation, where, 0), axes, keepdims)
    total = across(name, reduce_sum_p, total, names)
    known = not isinstance(less, Array)
    count = extent(x, axes) * count_across(names) - (
        int(less) if whole and known else less
    )
    if where is not None:
        mask = convert(stretched(as_mask(name, where, x.shape), x.shape), total.dtype)
        chosen = fold(reduce_sum_p, mask, axes, keepdims)
        count = subtract(across(name, reduce_sum_p, chosen, names), less)
    if whole:
        return weak_quotient(name, total, count)
    if where is not None or not known:
        count = convert(as_array(name, count), total.dtype)
        count = select(gt(count, 0), count, full_like(count, np.nan))
    elif count <= 0:
        count = np.nan
    return convert(divide(total, count), result)


def weak_quotient(name: str, total: Array, count: ArrayLike) -> Array:
    """A quotient of integers as weak floats, NaN where the divisor is not positive."""
    divisor = stretched(convert(as_array(name, count), total.dtype), total.shape)
    real = default_dtype("inexact", STATE.enable_x64)
    array = convert(div(total, divisor), real, True)
    return select(gt(divisor, 0), array, full_like(array, np.nan))


def var_types(name: str, x: Array, dtype: DType | None) -> tuple[DType, DType]:
    """The dtype of a variance, and the one in which distances are computed.

    Raises:
        ValueError: a real dtype is requested for complex numbers.
    """
    result, working = mean_types(name, x.dtype, dtype, STATE.enable_x64)
    if dtype is None:
        return real_dtype(result), working
    if is_complex(x.dtype) and not is_complex(dtype):
        raise ValueError(f"{name}: complex numbers need a complex dtype, not {dtype}")
    return result, working


def center_of(
    name: str, x: Array, axes: Shape, names: tuple[str, ...], where: Where
) -> Array:
    """The mean, broadcast to the shape of `x` so that it can be subtracted."""
    dtype = None if is_inexact(x.dtype) else x.dtype
    out = mean_over(name, x, (*axes, *names), dtype, None, False, where)
    return spread(out, x.shape, axes) if len(axes) < x.ndim else out


def squared_distance(x: Array) -> Array:
    return real(mul(x, conj(x))) if is_complex(x.dtype) else square(x)


@remembered
def std(
    a: ArrayLike,
    axis: NamedAxis = None,
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

    Args:
        a: an array or scalar.
        axis: the dimension or dimensions to reduce; None for all of them. Names stand
            for axes of an enclosing `vmap` or `shard_map`.
        dtype: the dtype in which to compute, a float or complex one; by default that of
            `a`, and the default float for booleans and integers. Complex if `a` is.
        out: only None, since arrays are immutable.
        ddof: what to subtract from the count; 1 for that of a sample.
        keepdims: whether reduced dimensions stay, with size 1.
        where: a mask that broadcasts with the array; elements where it is false are
            left out.
        mean: the mean over `axis`, if it is known, with its dimensions kept; None
            computes it.
        correction: another name of `ddof`; only one of them may be given.

    Returns:
        The standard deviations, of the shape of `a` without the dimensions in `axis`;
        real for complex arrays, unless `dtype` is given. NaN where the count minus
        `ddof` is not positive.

    Raises:
        NameError: there is no axis of that name in scope.
        ValueError: `dtype` is neither float nor complex, or `a` is complex and `dtype`
            is not, both `ddof` and `correction` are given, an axis does not exist, or
            `where` is not boolean.

    >>> import verax.numpy as vnp
    >>> vnp.std(vnp.array([[1, 3], [2, 8]]), axis=1, keepdims=True).tolist()
    [[1.0], [3.0]]
    >>> vnp.std(vnp.array([5.0]), ddof=1)
    Array(nan, dtype=float32)
    """
    no_out("std", out)
    x, chosen = as_array("std", a), chosen_dtype("std", dtype)
    if chosen is not None and not is_inexact(chosen):
        raise ValueError(f"std: dtype must be a float or complex dtype, not {chosen}")
    less = subtracted("std", ddof, correction)
    return sqrt(variance("std", x, axis, dtype, less, keepdims, where, mean))
