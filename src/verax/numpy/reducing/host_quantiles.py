"""Floor 6: one quantile of floats, by one sort of NumPy.

One idea: where the share is one number, its place in the sorted rows is one number too,
so that reading and weighing are two elements of each row::

    quantile_at_once(f32[8], f32[], None, "quantile", 0, "linear", False, False)
"""

from collections.abc import Callable, Mapping
from math import prod
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from verax.backend.eager.composites import OneGo
from verax.ir.avals import Shape, ShapedArray
from verax.ir.dtypes import float32, float64, numpy_dtype
from verax.numpy.arguments.arguments import Axis, reduction_axes
from verax.rules.rows.row import NDArray
from verax.rules.values.axes import kept, without

type Between = Callable[[Any, Any, Any], Any]
# From the element below, that above, and how far the place is from the first.
BETWEEN: Final[Mapping[str, Between]] = MappingProxyType(
    {
        "linear": lambda low, high, weight: low * (1 - weight) + high * weight,
        "lower": lambda low, high, weight: low,
        "higher": lambda low, high, weight: high,
        "midpoint": lambda low, high, weight: (low + high) * weight.dtype.type(0.5),
    }
)
# Up to here float32 has every integer.
EXACT: Final = 1 << 24


def quantile_at_once(
    x: ShapedArray,
    share: ShapedArray,
    given: ShapedArray | None,
    name: str,
    axis: Axis,
    method: str,
    keepdims: bool,
    skip_nan: bool,
) -> OneGo | None:
    """What `found_in` computes, for one share, without weights, NaN or zeros.

    With `skip_nan` there may be NaN, but not in all of a row.
    """
    between = BETWEEN.get(method)
    floats = x.dtype in (float32, float64) and share.dtype is x.dtype
    if between is None or not floats or share.ndim or given is not None:
        return None
    axes = reduction_axes(name, axis, x.ndim)
    size = prod([x.shape[i] for i in axes])
    if not x.size or size > EXACT:
        return None
    last = x.dtype.type(size - 1)
    if size == x.size and axes == tuple(range(x.ndim)):
        return of_all(between, last, (1,) * x.ndim if keepdims else None, skip_nan)
    order = (*kept(x.ndim, axes), *axes)
    shape = tuple([1 if i in axes else n for i, n in enumerate(x.shape)])
    made = of_numbers if skip_nan else of_rows
    return made(between, last, order, shape if keepdims else without(x.shape, axes))


def located(share: NDArray, last: Any) -> tuple[int, int, Any] | None:
    """The places of the two elements, and how far from the first to go.

    None if the share is not between 0 and 1.
    """
    place = share[()] * last + 0  # 0.0 for -0.0
    if not 0 <= place <= last:
        return None
    low = int(place)
    weight = place - type(last)(low)
    return low, low + bool(weight), weight


def of_all(between: Between, last: Any, shape: Shape | None, skip_nan: bool) -> OneGo:
    """The quantile of all elements, of which `last` is the last one's place."""
    dtype = type(last)
    nan = dtype(np.nan)

    def found(values: NDArray, share: NDArray) -> Any:
        line, end = values.flatten(), last
        line.sort()
        if skip_nan and line[-1] != line[-1]:
            line = line[: line.searchsorted(nan)]
            end = dtype(line.size - 1)
        if not line.size or (places := located(share, end)) is None:
            return None
        low, high, weight = places
        below, above, end = line[low], line[high], line[-1]
        # NaN comes last; zeros of two signs are equal to NumPy.
        if end != end or not below or not above:
            return None
        number = between(below, above, weight)
        return number if shape is None else number.reshape(shape)

    return found


def of_rows(between: Between, last: Any, order: Shape, shape: Shape) -> OneGo:
    """The quantiles of rows, made by a transposition and of one more than `last`."""
    size, moved = int(last) + 1, order != tuple(range(len(order)))

    def found(values: NDArray, share: NDArray) -> Any:
        if (places := located(share, last)) is None:
            return None
        low, high, weight = places
        lines = values.transpose(order) if moved else values
        line = np.sort(lines.reshape((-1, size)), 1)
        below, above, end = line[:, low], line[:, high], line[:, -1]
        # As above; a sum of squares is NaN if one of its terms is.
        square, usual = end.dot(end), np.logical_and(below, above)
        if square != square or not np.logical_and.reduce(usual):
            return None
        return between(below, above, weight).reshape(shape)

    return found


def of_numbers(between: Between, last: Any, order: Shape, shape: Shape) -> OneGo:
    """`of_rows` of those elements of each row that are numbers."""
    size, moved = int(last) + 1, order != tuple(range(len(order)))
    dtype = last.dtype

    def found(values: NDArray, share: NDArray) -> Any:
        lines = values.transpose(order) if moved else values
        line = np.sort(lines.reshape((-1, size)), 1)
        ends = np.add.reduce(line == line, 1, dtype) - 1
        place, part = share * ends, share[()]
        if not 0 <= part <= 1 or np.minimum.reduce(ends) < 0:
            return None
        low, rows = place.astype(np.intp), np.arange(len(line))
        weight = place - low.astype(dtype)
        below, above = line[rows, low], line[rows, low + (weight > 0)]
        usual = np.logical_and(below, above)
        if not np.logical_and.reduce(usual):
            return None
        return between(below, above, weight).reshape(shape)

    return found


def median_at_once(
    a: ShapedArray,
    axis: Axis = None,
    out: None = None,
    overwrite_input: bool = False,
    keepdims: bool = False,
) -> OneGo | None:
    """What `median` computes, where there are no NaN or zeros in the middle."""
    return middle_at_once(a, axis, keepdims, skip_nan=False)


def nanmedian_at_once(
    a: ShapedArray,
    axis: Axis = None,
    out: None = None,
    overwrite_input: bool = False,
    keepdims: bool = False,
) -> OneGo | None:
    """What `nanmedian` computes, where there are no zeros in the middle."""
    return middle_at_once(a, axis, keepdims, skip_nan=True)


def middle_at_once(
    a: ShapedArray, axis: Axis, keepdims: bool, skip_nan: bool
) -> OneGo | None:
    """The quantile of one half."""
    if a.dtype not in (float32, float64):
        return None
    half = np.asarray(0.5, numpy_dtype(a.dtype))
    share = ShapedArray((), a.dtype)
    found = quantile_at_once(
        a, share, None, "median", axis, "midpoint", keepdims, skip_nan
    )
    return None if found is None else lambda x: found(x, half)
