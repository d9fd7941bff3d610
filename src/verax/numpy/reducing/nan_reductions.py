"""Floor 6: reductions that leave NaN out.

One idea: NaN is replaced by what changes nothing, and where nothing is left the result
says so; a table has both for each reduction::

    nansum(x), nanmean(x, axis=0), nanmax(x)
"""

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from verax.backend.eager.composites import remembered
from verax.ir.dtypes import (
    DType,
    DTypeLike,
    is_inexact,
)
from verax.numpy.arguments.arguments import (
    ArrayLike,
    Axis,
    as_array,
    chosen_dtype,
    constant_of,
    no_out,
    stretched_together,
)
from verax.numpy.elementwise.comparison import logical_and
from verax.numpy.reducing.reductions import (
    Where,
    accumulate,
    all,
    boolean_mask,
    extreme,
)
from verax.numpy.reducing.running import place_of, running
from verax.numpy.reducing.statistics import mean_over, variance
from verax.ops.elementwise.compare import eq, ne
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
from verax.ops.structure.shape import reshape
from verax.rules.families.reducer import highest, lowest
from verax.rules.values.array import Array


class Skip(NamedTuple):
    """The way in which a reduction leaves NaN out."""

    reduce: Callable[..., Array]
    neutral: Callable[[DType], object]
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
