"""Floor 6: reductions that leave NaN out.

One idea: NaN is replaced by what changes nothing, and where nothing is left the result
says so; a table has both for each reduction::

    nansum(x), nanmean(x, axis=0), nanmax(x)
"""

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from verax.backend.eager.composites import remembered
from verax.ir.dtypes import DType, DTypeLike, is_inexact
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
from verax.numpy.reducing.arg_and_cumulative import argmax, argmin, running
from verax.numpy.reducing.reductions import Where, all, max, min, prod, sum
from verax.numpy.reducing.statistics import mean, var
from verax.ops.elementwise.compare import eq, ne
from verax.ops.elementwise.convert import convert
from verax.ops.elementwise.exp_log import sqrt
from verax.ops.elementwise.select import select
from verax.ops.reductions import cumulative
from verax.ops.structure.shape import reshape
from verax.rules.families.reducer import highest, lowest
from verax.rules.values.array import Array


class Skip(NamedTuple):
    """How a reduction leaves NaN out."""

    reduce: Callable[..., Array]
    neutral: Callable[[DType], Any]
    """What stands for NaN."""
    nothing: float | None = None
    """What comes of NaN alone, where that is not what comes of `neutral`."""


def zero(dtype: DType) -> int:
    return 0


def one(dtype: DType) -> int:
    return 1


SKIPS: Mapping[str, Skip] = MappingProxyType(
    {
        "nansum": Skip(sum, zero),
        "nanprod": Skip(prod, one),
        "nancumsum": Skip(partial(running, "nancumsum", cumulative.cumsum), zero),
        "nancumprod": Skip(partial(running, "nancumprod", cumulative.cumprod), one),
        "nanmax": Skip(max, lowest, np.nan),
        "nanmin": Skip(min, highest, np.nan),
        "nanargmax": Skip(argmax, lowest, -1),
        "nanargmin": Skip(argmin, highest, -1),
    }
)


def skipping(
    name: str, a: ArrayLike, axis: Axis, *rest: Any, settled: bool = False
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
    found = reduce(bounded, axis, *rest)
    if nothing is None or settled:
        return found
    empty = reshape(all(nan, axis), found.shape)
    return select(empty, constant_of(nothing, found.dtype), found)


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
    """The sum over `axis` of the elements that are not NaN."""
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
    """The product over `axis` of the elements that are not NaN."""
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
    """The largest element over `axis` that is not NaN; NaN if there is none."""
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
    """The smallest element over `axis` that is not NaN; NaN if there is none."""
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
    """The index of the largest element that is not NaN; -1 if there is none."""
    no_out("nanargmax", out)
    return skipping("nanargmax", a, axis, None, keepdims)


@remembered
def nanargmin(
    a: ArrayLike,
    axis: int | None = None,
    out: None = None,
    keepdims: bool | None = None,
) -> Array:
    """The index of the smallest element that is not NaN; -1 if there is none."""
    no_out("nanargmin", out)
    return skipping("nanargmin", a, axis, None, keepdims)


@remembered
def nancumsum(
    a: ArrayLike,
    axis: int | None = None,
    dtype: DTypeLike | None = None,
    out: None = None,
) -> Array:
    """`cumsum` with NaN as 0."""
    return skipping("nancumsum", a, axis, dtype, out)


@remembered
def nancumprod(
    a: ArrayLike,
    axis: int | None = None,
    dtype: DTypeLike | None = None,
    out: None = None,
) -> Array:
    """`cumprod` with NaN as 1."""
    return skipping("nancumprod", a, axis, dtype, out)


def numbers(name: str, a: ArrayLike, where: Where) -> tuple[Array, Where]:
    """An array, and the mask of its elements that are not NaN, within `where`."""
    x = as_array(name, a)
    if not is_inexact(x.dtype):
        return x, where
    mask = eq(x, x)
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
    """The mean over `axis` of the elements that are not NaN."""
    x, chosen = numbers("nanmean", a, where)
    return mean(x, axis, dtype, out, keepdims, where=chosen)


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
    """The variance over `axis` of the elements that are not NaN."""
    x, chosen = numbers("nanvar", a, where)
    found = var(x, axis, dtype, out, ddof, keepdims, where=chosen, mean=mean)
    chosen_type = chosen_dtype("nanvar", dtype)
    return found if chosen_type is None else convert(found, chosen_type)


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
    no_out("nanstd", out)
    return sqrt(nanvar(a, axis, dtype, out, ddof, keepdims, where, mean))
