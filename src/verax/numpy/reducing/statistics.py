"""Floor 6: means and variances, and the reductions that leave NaN out.

One idea: a mean is a sum over a count that is known while tracing, unless a mask says
which elements count::

    mean(x, axis=0), var(x, ddof=1), average(x, weights=w)
"""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import isfinite as isfinite_number
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, overload

import numpy as np

from verax.backend.eager.composites import OneGo, in_numpy, remembered
from verax.ir.avals import Shape, ShapedArray
from verax.ir.dtypes import (
    DType,
    DTypeLike,
    bool_,
    default_dtype,
    float32,
    float64,
    inexact_dtype,
    is_complex,
    is_extended,
    is_float,
    is_inexact,
    numpy_dtype,
    real_dtype,
)
from verax.numpy.arguments.arguments import (
    ArrayLike,
    Axis,
    as_array,
    broadcast_shapes_of,
    canonical_axes,
    chosen_dtype,
    common_type,
    constant_of,
    no_out,
    promote_args,
    promote_inexact,
    reduction_axes,
    spread,
    stretched,
    stretched_together,
)
from verax.numpy.creation.creation import as_values, filled
from verax.numpy.elementwise.arithmetic import square, subtract, true_divide as divide
from verax.numpy.elementwise.comparison import equal, logical_and, logical_or
from verax.numpy.elementwise.float_parts import isfinite, isnan
from verax.numpy.reducing.reductions import (
    Where,
    accumulate,
    all,
    as_mask,
    boolean_mask,
    extreme,
    fold,
    masked,
    place_of,
    running,
    sum,
)
from verax.ops.elementwise.arith import abs as magnitude, add, conj, div, mul, real, sub
from verax.ops.elementwise.compare import eq, gt, le, ne
from verax.ops.elementwise.convert import convert
from verax.ops.elementwise.exp_log import sqrt
from verax.ops.elementwise.select import select
from verax.ops.reductions import cumulative, reduce
from verax.ops.reductions.reduce import (
    reduce_max_p,
    reduce_min_p,
    reduce_prod_p,
    reduce_sum_p,
)
from verax.ops.structure.create import full_like
from verax.ops.structure.shape import broadcast_in_dim, reshape, transpose
from verax.rules.families.reducer import highest, lowest
from verax.rules.values.array import Array
from verax.rules.values.memo import pure
from verax.rules.values.sizes import ShapeError
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
    axis: Axis = None,
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
        axis: the dimension or dimensions to reduce; None for all of them.
        dtype: the dtype of the result; by default that of `a`, and the default float
            for booleans and integers. Float16 and bfloat16 are summed in float32.
        out: only None, since arrays are immutable.
        keepdims: whether reduced dimensions stay, with size 1.
        where: a mask that broadcasts with the array; elements where it is false are
            left out.

    Returns:
        The means, of the shape of `a` without the dimensions in `axis`.

    Raises:
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
    axis: Axis,
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
    axes = reduction_axes(name, axis, x.ndim)
    x = convert(x, working)
    count: Any = extent(x, axes)
    if where is not None:
        mask = as_mask(name, where, x.shape)
        full = stretched(mask, x.shape)
        count = fold(reduce_sum_p, convert(full, working), axes, keepdims)
    total = fold(reduce_sum_p, masked(name, x, where, 0), axes, keepdims)
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

    NaN where the divisor is not positive. With a `dtype` of integers the mean and the
    variance are quotients of integers, and the result is a float that can have NaN.

    Args:
        a: an array or scalar.
        axis: the dimension or dimensions to reduce; None for all of them.
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
    axis: Axis,
    dtype: DTypeLike | None,
    less: float | Array,
    keepdims: bool,
    where: Where,
    mean: ArrayLike | None,
) -> Array:
    """Computes `var`, and what the functions made of it are made of."""
    x = as_array(name, a)
    result, working = var_types(name, x, chosen_dtype(name, dtype))
    axes = reduction_axes(name, axis, x.ndim)
    x, whole = convert(x, working), not is_inexact(working)
    if mean is None:
        deviation = squared_distance(sub(x, center_of(name, x, axes, where)))
    else:
        center = convert(as_array(name, mean), working)
        broadcast_shapes_of(name, (x.shape, center.shape))
        deviation = squared_distance(subtract(x, center))
    total = fold(reduce_sum_p, masked(name, deviation, where, 0), axes, keepdims)
    known = not isinstance(less, Array)
    count: Any = extent(x, axes) - (int(less) if whole and known else less)
    if where is not None:
        mask = convert(stretched(as_mask(name, where, x.shape), x.shape), total.dtype)
        count = subtract(fold(reduce_sum_p, mask, axes, keepdims), less)
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


def center_of(name: str, x: Array, axes: Shape, where: Where) -> Array:
    """The mean, broadcast to the shape of `x` so that it can be subtracted."""
    dtype = None if is_inexact(x.dtype) else x.dtype
    out = mean_over(name, x, axes, dtype, None, False, where)
    return spread(out, x.shape, axes) if len(axes) < x.ndim else out


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

    Args:
        a: an array or scalar.
        axis: the dimension or dimensions to reduce; None for all of them.
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


# -----------------------------------------------------------------------------
# Reductions that leave NaN out.
#
# NaN is replaced by what changes nothing, and where nothing is left the result
# says so; a table has both for each reduction::
#
#     nansum(x), nanmean(x, axis=0), nanmax(x)


class Skip(NamedTuple):
    """The way in which a reduction leaves NaN out."""

    reduce: Callable[..., Array]
    neutral: Callable[[DType], Any]
    """The number that takes the place of NaN."""
    nothing: float | None = None
    """The result of NaN alone, where that is not the result of `neutral`."""


def zero(dtype: DType) -> int:
    return 0


def one(dtype: DType) -> int:
    return 1


SKIPS: Mapping[str, Skip] = MappingProxyType(
    {
        "nansum": Skip(partial(accumulate, "nansum", reduce_sum_p, 0), zero),
        "nanprod": Skip(partial(accumulate, "nanprod", reduce_prod_p, 1), one),
        "nancumsum": Skip(partial(running, "nancumsum", cumulative.cumsum), zero),
        "nancumprod": Skip(partial(running, "nancumprod", cumulative.cumprod), one),
        "nanmax": Skip(partial(extreme, "nanmax", reduce_max_p), lowest, np.nan),
        "nanmin": Skip(partial(extreme, "nanmin", reduce_min_p), highest, np.nan),
        "nanargmax": Skip(partial(place_of, "nanargmax", reduce.argmax), lowest, -1),
        "nanargmin": Skip(partial(place_of, "nanargmin", reduce.argmin), highest, -1),
    }
)


def skipping(
    name: str, a: ArrayLike, axis: Axis, *rest: object, settled: bool = False
) -> Array:
    """The reduction of the table, called with `rest`, of the elements that are not NaN.

    Where it is `settled` what nothing gives, it is not asked for.
    """
    reduce, neutral, nothing = SKIPS[name]
    x = as_array(name, a)
    dtype = x.aval.dtype
    if not is_inexact(dtype):
        return reduce(x, axis, *rest)
    nan = ne(x, x)
    bounded = select(nan, constant_of(neutral(dtype), dtype), x)
    out = reduce(bounded, axis, *rest)
    if nothing is None or settled:
        return out
    empty = reshape(all(nan, axis), out.shape)
    return select(empty, constant_of(nothing, out.dtype), out)


@remembered
def nansum(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: Where = None,
) -> Array:
    """The sum over `axis` of the elements that are not NaN.

    Args:
        a: an array or scalar; booleans count as 0 and 1.
        axis: the dimension or dimensions to reduce; None for all of them.
        dtype: the dtype of the result; by default that of `a`, but at least the default
            integer, signed or unsigned, for booleans and integers.
        out: only None, since arrays are immutable.
        keepdims: whether reduced dimensions stay, with size 1.
        initial: a scalar to begin with; None for 0.
        where: a mask that broadcasts with the array; elements where it is false are
            left out.

    Returns:
        The sums, of the shape of `a` without the dimensions in `axis`; 0, or `initial`,
        where there is nothing but NaN.

    Raises:
        ValueError: an axis does not exist or is named twice, `initial` has dimensions,
            or `where` is not boolean.

    >>> import verax.numpy as vnp
    >>> x = vnp.array([[1.0, vnp.nan, 3.0], [vnp.nan, vnp.nan, vnp.nan]])
    >>> vnp.nansum(x, axis=1)
    Array([4., 0.], dtype=float32)
    """
    return skipping("nansum", a, axis, dtype, out, keepdims, initial, where)


@remembered
def nanprod(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: Where = None,
) -> Array:
    """The product over `axis` of the elements that are not NaN.

    Args:
        a: an array or scalar; booleans count as 0 and 1.
        axis: the dimension or dimensions to reduce; None for all of them.
        dtype: the dtype of the result; by default that of `a`, but at least the default
            integer, signed or unsigned, for booleans and integers.
        out: only None, since arrays are immutable.
        keepdims: whether reduced dimensions stay, with size 1.
        initial: a scalar to begin with; None for 1.
        where: a mask that broadcasts with the array; elements where it is false are
            left out.

    Returns:
        The products, of the shape of `a` without the dimensions in `axis`; 1, or
        `initial`, where there is nothing but NaN.

    Raises:
        ValueError: an axis does not exist or is named twice, `initial` has dimensions,
            or `where` is not boolean.

    >>> import verax.numpy as vnp
    >>> x = vnp.array([[2.0, vnp.nan, 3.0], [vnp.nan, vnp.nan, vnp.nan]])
    >>> vnp.nanprod(x, axis=1)
    Array([6., 1.], dtype=float32)
    """
    return skipping("nanprod", a, axis, dtype, out, keepdims, initial, where)


@remembered
def nanmax(
    a: ArrayLike,
    axis: Axis = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: Where = None,
) -> Array:
    """The largest element over `axis` that is not NaN; NaN if there is none.

    Args:
        a: an array or scalar.
        axis: the dimension or dimensions to reduce; None for all of them.
        out: only None, since arrays are immutable.
        keepdims: whether reduced dimensions stay, with size 1.
        initial: a scalar to begin with: the result is not less, and it is the result
            where there is nothing but NaN. Required with `where` and where there are no
            elements.
        where: a mask that broadcasts with the array; elements where it is false are
            left out.

    Returns:
        The largest elements, in the dtype of `a` and of its shape without the
        dimensions in `axis`.

    Raises:
        ValueError: there are no elements and no `initial`, `where` is given without
            `initial`, or an axis does not exist.

    >>> import verax.numpy as vnp
    >>> x = vnp.array([[1.0, vnp.nan], [vnp.nan, vnp.nan]])
    >>> vnp.nanmax(x, axis=1), vnp.nanmax(x, axis=1, initial=0.0)
    (Array([ 1., nan], dtype=float32), Array([1., 0.], dtype=float32))
    """
    no_out("nanmax", out)
    settled = initial is not None
    rest = keepdims, initial, where
    return skipping("nanmax", a, axis, None, *rest, settled=settled)


@remembered
def nanmin(
    a: ArrayLike,
    axis: Axis = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: Where = None,
) -> Array:
    """The smallest element over `axis` that is not NaN; NaN if there is none.

    Args:
        a: an array or scalar.
        axis: the dimension or dimensions to reduce; None for all of them.
        out: only None, since arrays are immutable.
        keepdims: whether reduced dimensions stay, with size 1.
        initial: a scalar to begin with: the result is not greater, and it is the result
            where there is nothing but NaN. Required with `where` and where there are no
            elements.
        where: a mask that broadcasts with the array; elements where it is false are
            left out.

    Returns:
        The smallest elements, in the dtype of `a` and of its shape without the
        dimensions in `axis`.

    Raises:
        ValueError: there are no elements and no `initial`, `where` is given without
            `initial`, or an axis does not exist.

    >>> import verax.numpy as vnp
    >>> x = vnp.array([[1.0, vnp.nan], [vnp.nan, -vnp.inf]])
    >>> vnp.nanmin(x, axis=0), vnp.min(x, axis=0)
    (Array([  1., -inf], dtype=float32), Array([nan, nan], dtype=float32))
    """
    no_out("nanmin", out)
    settled = initial is not None
    rest = keepdims, initial, where
    return skipping("nanmin", a, axis, None, *rest, settled=settled)


@remembered
def nanargmax(
    a: ArrayLike,
    axis: int | None = None,
    out: None = None,
    keepdims: bool | None = None,
) -> Array:
    """The index of the largest element that is not NaN; -1 if there is none.

    NaN counts as -inf: if no number is greater, the first of either is found. NumPy
    raises an error where there is nothing but NaN.

    Args:
        a: an array or scalar.
        axis: the dimension to work along; None for the flat array.
        out: only None, since arrays are immutable.
        keepdims: whether reduced dimensions stay, with size 1; without an axis, that is
            all of them.

    Returns:
        The indices along `axis`, or in the flat array, in the default integer; the
        first of equals.

    Raises:
        ValueError: there are no elements, or there is no such axis.

    >>> import verax.numpy as vnp
    >>> x = vnp.array([[vnp.nan, 1.0], [vnp.nan, vnp.nan]])
    >>> vnp.nanargmax(x, axis=1), vnp.argmax(x, axis=1)
    (Array([ 1, -1], dtype=int32), Array([0, 0], dtype=int32))
    """
    no_out("nanargmax", out)
    return skipping("nanargmax", a, axis, None, keepdims)


@remembered
def nanargmin(
    a: ArrayLike,
    axis: int | None = None,
    out: None = None,
    keepdims: bool | None = None,
) -> Array:
    """The index of the smallest element that is not NaN; -1 if there is none.

    NaN counts as inf: if no number is less, the first of either is found. NumPy raises
    an error where there is nothing but NaN.

    Args:
        a: an array or scalar.
        axis: the dimension to work along; None for the flat array.
        out: only None, since arrays are immutable.
        keepdims: whether reduced dimensions stay, with size 1; without an axis, that is
            all of them.

    Returns:
        The indices along `axis`, or in the flat array, in the default integer; the
        first of equals.

    Raises:
        ValueError: there are no elements, or there is no such axis.

    >>> import verax.numpy as vnp
    >>> vnp.nanargmin(vnp.array([vnp.nan, -1.0, -3.0]))
    Array(2, dtype=int32)
    """
    no_out("nanargmin", out)
    return skipping("nanargmin", a, axis, None, keepdims)


@remembered
def nancumsum(
    a: ArrayLike,
    axis: int | None = None,
    dtype: DTypeLike | None = None,
    out: None = None,
) -> Array:
    """`cumsum` with NaN as 0.

    Args:
        a: an array or scalar; a scalar is a vector of one element.
        axis: the dimension to work along; None for the flat array.
        dtype: the dtype of the result; by default that of `a`, and the default integer
            for booleans.
        out: only None, since arrays are immutable.

    Returns:
        The running sums, of the shape of `a`, or a vector if there is no axis.

    Raises:
        ValueError: there is no such axis.

    >>> import verax.numpy as vnp
    >>> vnp.nancumsum(vnp.array([vnp.nan, 1.0, vnp.nan, 2.0]))
    Array([0., 1., 1., 3.], dtype=float32)
    """
    return skipping("nancumsum", a, axis, dtype, out)


@remembered
def nancumprod(
    a: ArrayLike,
    axis: int | None = None,
    dtype: DTypeLike | None = None,
    out: None = None,
) -> Array:
    """`cumprod` with NaN as 1.

    Args:
        a: an array or scalar; a scalar is a vector of one element.
        axis: the dimension to work along; None for the flat array.
        dtype: the dtype of the result; by default that of `a`, and the default integer
            for booleans.
        out: only None, since arrays are immutable.

    Returns:
        The running products, of the shape of `a`, or a vector if there is no axis.

    Raises:
        ValueError: there is no such axis.

    >>> import verax.numpy as vnp
    >>> vnp.nancumprod(vnp.array([vnp.nan, 2.0, vnp.nan, 3.0]))
    Array([1., 2., 2., 6.], dtype=float32)
    """
    return skipping("nancumprod", a, axis, dtype, out)


def numbers(name: str, a: ArrayLike, where: Where) -> tuple[Array, Where]:
    """An array, and the mask of its elements that are not NaN, within `where`."""
    x = as_array(name, a)
    if not is_inexact(x.dtype):
        return x, where
    mask = eq(x, x)
    if where is not None:
        where = boolean_mask(name, where)
    # Zeros where NaN was: a derivative of zero times NaN would be NaN.
    x = select(mask, x, constant_of(0, x.dtype))
    return x, mask if where is None else logical_and(
        *stretched_together(name, (mask, where))
    )


@remembered
def nanmean(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    where: Where = None,
) -> Array:
    """The mean over `axis` of the elements that are not NaN.

    Args:
        a: an array or scalar; booleans count as 0 and 1.
        axis: the dimension or dimensions to reduce; None for all of them.
        dtype: the dtype of the result; by default that of `a`, and the default float
            for booleans and integers.
        out: only None, since arrays are immutable.
        keepdims: whether reduced dimensions stay, with size 1.
        where: a mask that broadcasts with the array; elements where it is false are
            left out.

    Returns:
        The means, of the shape of `a` without the dimensions in `axis`; NaN where there
        is nothing but NaN.

    Raises:
        TypeError: `dtype` is bool.
        ValueError: an axis does not exist or is named twice, or `where` is not boolean.

    >>> import verax.numpy as vnp
    >>> x = vnp.array([[1.0, vnp.nan, 4.0], [vnp.nan, vnp.nan, vnp.nan]])
    >>> vnp.nanmean(x, axis=1)
    Array([2.5, nan], dtype=float32)
    """
    x, chosen = numbers("nanmean", a, where)
    return mean_over("nanmean", x, axis, dtype, out, keepdims, chosen)


@remembered
def nanvar(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    ddof: int = 0,
    keepdims: bool = False,
    where: Where = None,
    mean: ArrayLike | None = None,
) -> Array:
    """The variance over `axis` of the elements that are not NaN.

    Args:
        a: an array or scalar.
        axis: the dimension or dimensions to reduce; None for all of them.
        dtype: the dtype in which to compute, and of the result; by default that of `a`,
            and the default float for booleans and integers. Complex if `a` is.
        out: only None, since arrays are immutable.
        ddof: what to subtract from the count of what is not NaN.
        keepdims: whether reduced dimensions stay, with size 1.
        where: a mask that broadcasts with the array; elements where it is false are
            left out.
        mean: the mean over `axis`, if it is known, with its dimensions kept; None
            computes it.

    Returns:
        The variances, of the shape of `a` without the dimensions in `axis`; real for
        complex arrays, unless `dtype` is given. NaN where the count minus `ddof` is not
        positive.

    Raises:
        TypeError: `dtype` is bool.
        ValueError: `a` is complex and `dtype` is not, an axis does not exist, or
            `where` is not boolean.

    >>> import verax.numpy as vnp
    >>> x = vnp.array([[1.0, vnp.nan, 3.0], [vnp.nan, 5.0, vnp.nan]])
    >>> vnp.nanvar(x, axis=1), vnp.nanvar(x, axis=1, ddof=1)
    (Array([1., 0.], dtype=float32), Array([ 2., nan], dtype=float32))
    """
    no_out("nanvar", out)
    return skipping_variance("nanvar", a, axis, dtype, ddof, keepdims, where, mean)


def skipping_variance(
    name: str,
    a: ArrayLike,
    axis: Axis,
    dtype: DTypeLike | None,
    less: float | Array,
    keepdims: bool,
    where: Where,
    mean: ArrayLike | None,
) -> Array:
    """Computes `nanvar`, and `nanstd` but for its root."""
    x, chosen = numbers(name, a, where)
    out = variance(name, x, axis, dtype, less, keepdims, chosen, mean)
    asked = chosen_dtype(name, dtype)
    return out if asked is None else convert(out, asked)


@remembered
def nanstd(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    ddof: int = 0,
    keepdims: bool = False,
    where: Where = None,
    mean: ArrayLike | None = None,
) -> Array:
    """The square root of `nanvar`.

    Args:
        a: an array or scalar.
        axis: the dimension or dimensions to reduce; None for all of them.
        dtype: the dtype in which to compute, a float or complex one; by default that of
            `a`, and the default float for booleans and integers. Complex if `a` is.
        out: only None, since arrays are immutable.
        ddof: what to subtract from the count of what is not NaN.
        keepdims: whether reduced dimensions stay, with size 1.
        where: a mask that broadcasts with the array; elements where it is false are
            left out.
        mean: the mean over `axis`, if it is known, with its dimensions kept; None
            computes it.

    Returns:
        The standard deviations, of the shape of `a` without the dimensions in `axis`;
        real for complex arrays, unless `dtype` is given. NaN where the count minus
        `ddof` is not positive.

    Raises:
        TypeError: `dtype` is neither float nor complex.
        ValueError: `a` is complex and `dtype` is not, an axis does not exist, or
            `where` is not boolean.

    >>> import verax.numpy as vnp
    >>> vnp.nanstd(vnp.array([[2.0, vnp.nan, 8.0], [4.0, 4.0, vnp.nan]]), axis=1)
    Array([3., 0.], dtype=float32)
    """
    no_out("nanstd", out)
    array = skipping_variance("nanstd", a, axis, dtype, ddof, keepdims, where, mean)
    if not is_inexact(array.dtype):
        raise TypeError(
            f"nanstd: dtype must be a float or complex dtype, not {array.dtype}"
        )
    return sqrt(array)


# -----------------------------------------------------------------------------
# Whether arrays are equal, or nearly so.
#
# A difference is small beside the second operand; infinities are near only
# themselves::
#
#     isclose(x, y), allclose(x, y, rtol=1e-3), array_equal(x, y)


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

    def near(x: np.ndarray, y: np.ndarray) -> Any:
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


def allclose_at_once(a: Any, b: Any, *rest: Any, **options: Any) -> OneGo | None:
    """Whether that is so for all."""
    near = isclose_at_once(a, b, *rest, **options)
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
    return convert(all(same), bool_)


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
