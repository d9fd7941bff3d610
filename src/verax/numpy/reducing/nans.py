"""Floor 6: reductions that leave NaN out.

One idea: NaN is replaced by what changes nothing, and where nothing is left the result
is NaN::

    nansum(x), nanmean(x, axis=0), nanmax(x)
"""

from typing import Any

import numpy as np

from verax.backend.eager.composites import remembered
from verax.ir.dtypes import DTypeLike, is_inexact
from verax.numpy.arguments.arguments import (
    ArrayLike,
    Axis,
    as_array,
    constant_of,
    no_out,
)
from verax.numpy.elementwise.comparison import logical_and
from verax.numpy.reducing.arg_and_cumulative import without_nan
from verax.numpy.reducing.reductions import Where, all, max, min, prod, sum
from verax.numpy.reducing.statistics import mean, std, var
from verax.ops.elementwise.compare import eq, ne
from verax.ops.elementwise.select import select
from verax.rules.families.reducer import highest, lowest
from verax.rules.values.array import Array


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
    """The sum over `axis` of what is no NaN."""
    x = without_nan("nansum", a, 0)
    return sum(x, axis, dtype, out, keepdims, initial, where)


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
    """The product over `axis` of what is no NaN."""
    x = without_nan("nanprod", a, 1)
    return prod(x, axis, dtype, out, keepdims, initial, where)


def nan_extreme(
    name: str,
    search: Any,
    end: Any,
    a: ArrayLike,
    axis: Axis,
    keepdims: bool,
    rest: Any,
) -> Array:
    """What `nanmax` and `nanmin` share."""
    x = as_array(name, a)
    if not is_inexact(x.dtype):
        plain: Array = search(x, axis, None, keepdims, **rest)
        return plain
    nan = ne(x, x)
    bounded = select(nan, constant_of(end(x.dtype), x.dtype), x)
    found: Array = search(bounded, axis, None, keepdims, **rest)
    if rest["initial"] is not None:
        return found
    nothing = all(nan, axis, keepdims=keepdims)
    return select(nothing, constant_of(np.nan, x.dtype), found)


@remembered
def nanmax(
    a: ArrayLike,
    axis: Axis = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: Where = None,
) -> Array:
    """The largest element over `axis` that is no NaN; NaN if there is none."""
    no_out("nanmax", out)
    rest = {"initial": initial, "where": where}
    return nan_extreme("nanmax", max, lowest, a, axis, keepdims, rest)


@remembered
def nanmin(
    a: ArrayLike,
    axis: Axis = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: Where = None,
) -> Array:
    """The smallest element over `axis` that is no NaN; NaN if there is none."""
    no_out("nanmin", out)
    rest = {"initial": initial, "where": where}
    return nan_extreme("nanmin", min, highest, a, axis, keepdims, rest)


def numbers(x: Array, where: Where) -> Where:
    """The mask of what is no NaN, within the mask `where`."""
    if not is_inexact(x.dtype):
        return where
    mask = eq(x, x)
    return mask if where is None else logical_and(mask, where)


@remembered
def nanmean(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    where: Where = None,
) -> Array:
    """The mean over `axis` of what is no NaN."""
    x = as_array("nanmean", a)
    return mean(x, axis, dtype, out, keepdims, where=numbers(x, where))


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
    """The variance over `axis` of what is no NaN."""
    x = as_array("nanvar", a)
    chosen = numbers(x, where)
    return var(x, axis, dtype, out, ddof, keepdims, where=chosen, mean=mean)


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
    """The square root of `nanvar`."""
    x = as_array("nanstd", a)
    chosen = numbers(x, where)
    return std(x, axis, dtype, out, ddof, keepdims, where=chosen, mean=mean)
