"""Floor 6: medians, quantiles and percentiles.

One idea: sort once along one axis; a quantile lies between two neighbours, which are
read by their place::

    median(x, axis=0), quantile(x, 0.9), percentile(x, [25, 75])
"""

from collections.abc import Callable, Mapping
from math import prod
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from verax.backend.eager.composites import OneGo, in_numpy, remembered
from verax.ir.avals import Shape, ShapedArray
from verax.ir.dtypes import float32, float64, is_complex, numpy_dtype
from verax.numpy.arguments.arguments import (
    ArrayLike,
    Axis,
    as_array,
    constant_of,
    inexact_type,
    no_out,
    promote_inexact,
    reduction_axes,
)
from verax.ops.elementwise.arith import (
    add,
    div,
    max as larger,
    min as smaller,
    mul,
    sub,
)
from verax.ops.elementwise.compare import eq, lt, ne
from verax.ops.elementwise.convert import convert
from verax.ops.elementwise.rounding import RoundingMethod, ceil, floor, round
from verax.ops.elementwise.select import select
from verax.ops.indexing.gather import take_along
from verax.ops.reductions import cumulative
from verax.ops.reductions.reduce import reduce_or, reduce_sum
from verax.ops.sorting.sort import sort
from verax.ops.structure.create import full_like
from verax.ops.structure.reshard import call_sharded
from verax.ops.structure.shape import broadcast_in_dim, reshape, transpose
from verax.ops.structure.slicing import slice_in_dim
from verax.rules.rows.row import NDArray
from verax.rules.values.array import Array
from verax.rules.values.sizes import kept, without

# -----------------------------------------------------------------------------
# One quantile of floats, by one sort of NumPy.
#
# Where the share is one number, its place in the sorted rows is one number too,
# so that reading and weighing are two elements of each row::
#
#     quantile_at_once(f32[8], f32[], None, "quantile", 0, "linear", False, False)


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
    """Computes one quantile in NumPy, without weights, NaN or zeros.

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


def located(share: NDArray, last: Any) -> tuple[int, int, object] | None:
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

    def compute(values: NDArray, share: NDArray) -> Any:
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

    return compute


def of_rows(between: Between, last: Any, order: Shape, shape: Shape) -> OneGo:
    """The quantiles of rows, made by a transposition and of one more than `last`."""
    size, moved = int(last) + 1, order != tuple(range(len(order)))

    def compute(values: NDArray, share: NDArray) -> Any:
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

    return compute


def of_numbers(between: Between, last: Any, order: Shape, shape: Shape) -> OneGo:
    """`of_rows` of those elements of each row that are numbers."""
    size, moved = int(last) + 1, order != tuple(range(len(order)))
    dtype = last.dtype

    def compute(values: NDArray, share: NDArray) -> Any:
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

    return compute


def median_at_once(
    a: ShapedArray,
    axis: Axis = None,
    out: None = None,
    overwrite_input: bool = False,
    keepdims: bool = False,
) -> OneGo | None:
    """Computes the median in NumPy, where there are no NaN or zeros in the middle."""
    return middle_at_once(a, axis, keepdims, skip_nan=False)


def nanmedian_at_once(
    a: ShapedArray,
    axis: Axis = None,
    out: None = None,
    overwrite_input: bool = False,
    keepdims: bool = False,
) -> OneGo | None:
    """Computes `nanmedian` in NumPy, where there are no zeros in the middle."""
    return middle_at_once(a, axis, keepdims, skip_nan=True)


def middle_at_once(
    a: ShapedArray, axis: Axis, keepdims: bool, skip_nan: bool
) -> OneGo | None:
    """The quantile of one half."""
    if a.dtype not in (float32, float64):
        return None
    half = np.asarray(0.5, numpy_dtype(a.dtype))
    share = ShapedArray((), a.dtype)
    out = quantile_at_once(
        a, share, None, "median", axis, "midpoint", keepdims, skip_nan
    )
    return None if out is None else lambda x: out(x, half)


INTS = np.dtype(np.int32)
METHODS = ("linear", "lower", "higher", "midpoint", "nearest", "inverted_cdf")


def quantile(
    a: ArrayLike,
    q: ArrayLike,
    axis: int | tuple[int, ...] | None = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: ArrayLike | None = None,
) -> Array:
    """The values below which lie the parts `q` (0 to 1) of the elements over `axis`.

    NaN if there is a NaN.

    Args:
        a: an array or scalar of real numbers.
        q: an array or scalar of parts from 0 to 1; what lies beyond counts as the
            nearer end.
        axis: the dimension or dimensions to reduce; None for all of them.
        out: only None, since arrays are immutable.
        overwrite_input: not used, since arrays are immutable.
        method: what to do between two elements: "linear", "lower", "higher",
            "midpoint", "nearest" (of equally near ones the even place), or
            "inverted_cdf", the first element up to which there is that part.
        keepdims: whether reduced dimensions stay, with size 1.
        weights: how much each element counts, of the shape of `a` or of its dimensions
            `axis`, only with the method "inverted_cdf"; None counts all the same.

    Returns:
        The quantiles in the common dtype of `a` and `weights`, integers as floats; the
        dimensions of `q` come first, then those of `a` that are not in `axis`.

    Raises:
        TypeError: there are no elements over `axis`.
        ValueError: an argument is complex, or `method` is unknown, or the shape of the
            weights differs, or an axis does not exist.
        NotImplementedError: `method` takes no weights.

    >>> import verax.numpy as vnp
    >>> x = vnp.array([[1, 2, 3, 4], [0, 10, 20, 30]])
    >>> vnp.quantile(x, vnp.array([0.25, 0.5]), axis=1)
    Array([[ 1.75,  7.5 ],
           [ 2.5 , 15.  ]], dtype=float32)
    >>> vnp.quantile(x[0], 0.5, method="higher")
    Array(3., dtype=float32)
    """
    return parts("quantile", a, q, axis, out, method, keepdims, weights, False)


def nanquantile(
    a: ArrayLike,
    q: ArrayLike,
    axis: int | tuple[int, ...] | None = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: ArrayLike | None = None,
) -> Array:
    """`quantile` of the elements that are not NaN.

    Over an axis without elements the result is NaN, without the dimensions of `q`, as
    in NumPy.

    Args:
        a: an array or scalar of real numbers.
        q: an array or scalar of parts from 0 to 1; what lies beyond counts as the
            nearer end.
        axis: the dimension or dimensions to reduce; None for all of them.
        out: only None, since arrays are immutable.
        overwrite_input: not used, since arrays are immutable.
        method: what to do between two elements, as for `quantile`.
        keepdims: whether reduced dimensions stay, with size 1.
        weights: how much each element counts, of the shape of `a` or of its dimensions
            `axis`, only with the method "inverted_cdf"; None counts all the same.

    Returns:
        The quantiles in the common dtype of `a` and `weights`, integers as floats, NaN
        where there is nothing but NaN; the dimensions of `q` come first, then those of
        `a` that are not in `axis`.

    Raises:
        ValueError: an argument is complex, or `method` is unknown, or the shape of the
            weights differs, or an axis does not exist.
        NotImplementedError: `method` takes no weights.

    >>> import verax.numpy as vnp
    >>> x = vnp.array([[1.0, vnp.nan, 5.0], [vnp.nan, vnp.nan, vnp.nan]])
    >>> vnp.nanquantile(x, 0.25, axis=1)
    Array([ 2., nan], dtype=float32)
    """
    return parts("nanquantile", a, q, axis, out, method, keepdims, weights, True)


def percentile(
    a: ArrayLike,
    q: ArrayLike,
    axis: int | tuple[int, ...] | None = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: ArrayLike | None = None,
    out_sharding: object = None,
) -> Array:
    """`quantile` with `q` in percent.

    Args:
        a: an array or scalar of real numbers.
        q: an array or scalar of percentages from 0 to 100; what lies beyond counts as
            the nearer end.
        axis: the dimension or dimensions to reduce; None for all of them.
        out: only None, since arrays are immutable.
        overwrite_input: not used, since arrays are immutable.
        method: what to do between two elements, as for `quantile`.
        keepdims: whether reduced dimensions stay, with size 1.
        weights: how much each element counts, of the shape of `a` or of its dimensions
            `axis`, only with the method "inverted_cdf"; None counts all the same.
        out_sharding: how the result is split over an explicit mesh; None leaves it to
            the compiler.

    Returns:
        The percentiles in the common dtype of `a` and `weights`, integers as floats;
        the dimensions of `q` come first, then those of `a` that are not in `axis`.

    Raises:
        TypeError: there are no elements over `axis`.
        ValueError: an argument is complex, or `method` is unknown, or the shape of the
            weights differs, or an axis does not exist.
        NotImplementedError: `method` takes no weights.

    >>> import verax.numpy as vnp
    >>> vnp.percentile(vnp.array([1, 2, 3, 4]), vnp.array([25, 75]))
    Array([1.75, 3.25], dtype=float32)
    """
    if out_sharding is not None:
        return call_sharded(percentile, locals())
    share = hundredth("percentile", q)
    return parts("percentile", a, share, axis, out, method, keepdims, weights, False)


def nanpercentile(
    a: ArrayLike,
    q: ArrayLike,
    axis: int | tuple[int, ...] | None = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: ArrayLike | None = None,
) -> Array:
    """`percentile` of the elements that are not NaN.

    Over an axis without elements the result is NaN, without the dimensions of `q`.

    Args:
        a: an array or scalar of real numbers.
        q: an array or scalar of percentages from 0 to 100; what lies beyond counts as
            the nearer end.
        axis: the dimension or dimensions to reduce; None for all of them.
        out: only None, since arrays are immutable.
        overwrite_input: not used, since arrays are immutable.
        method: what to do between two elements, as for `quantile`.
        keepdims: whether reduced dimensions stay, with size 1.
        weights: how much each element counts, of the shape of `a` or of its dimensions
            `axis`, only with the method "inverted_cdf"; None counts all the same.

    Returns:
        The percentiles in the common dtype of `a` and `weights`, integers as floats,
        NaN where there is nothing but NaN; the dimensions of `q` come first, then those
        of `a` that are not in `axis`.

    Raises:
        ValueError: an argument is complex, or `method` is unknown, or the shape of the
            weights differs, or an axis does not exist.
        NotImplementedError: `method` takes no weights.

    >>> import verax.numpy as vnp
    >>> x = vnp.array([1.0, vnp.nan, 3.0, 5.0])
    >>> vnp.nanpercentile(x, 25), vnp.percentile(x, 25)
    (Array(2., dtype=float32), Array(nan, dtype=float32))
    """
    share = hundredth("nanpercentile", q)
    return parts("nanpercentile", a, share, axis, out, method, keepdims, weights, True)


def hundredth(name: str, q: ArrayLike) -> Array:
    return hundredth_of(name, as_array(name, q, 1))


@remembered
def hundredth_of(name: str, share: Array) -> Array:
    (typed,) = promote_inexact(name, share)
    return div(typed, 100)


@in_numpy(median_at_once)
def median(
    a: ArrayLike,
    axis: int | tuple[int, ...] | None = None,
    out: None = None,
    overwrite_input: bool = False,
    keepdims: bool = False,
) -> Array:
    """The middle element over `axis`, or the mean of the two in the middle.

    Args:
        a: an array or scalar of real numbers.
        axis: the dimension or dimensions to reduce; None for all of them.
        out: only None, since arrays are immutable.
        overwrite_input: not used, since arrays are immutable.
        keepdims: whether reduced dimensions stay, with size 1.

    Returns:
        The medians in the dtype of `a`, integers as floats, and of its shape without
        the dimensions in `axis`; NaN if there is a NaN.

    Raises:
        ValueError: there are no elements over `axis`, or they are complex, or an axis
            does not exist.

    >>> import verax.numpy as vnp
    >>> vnp.median(vnp.array([[7, 1, 2, 4], [0, 9, 8, 9]]), axis=1)
    Array([3. , 8.5], dtype=float32)
    """
    x = as_array("median", a)
    if not elements_over(x.shape, reduction_axes("median", axis, x.ndim)):
        raise ValueError(
            f"median: an array of shape {x.shape} has no elements over axis {axis}, "
            "and so no middle one; verax.numpy.nanmedian answers NaN"
        )
    return parts("median", x, 0.5, axis, out, "midpoint", keepdims, None, False)


@in_numpy(nanmedian_at_once)
def nanmedian(
    a: ArrayLike,
    axis: int | tuple[int, ...] | None = None,
    out: None = None,
    overwrite_input: bool = False,
    keepdims: bool = False,
) -> Array:
    """`median` of the elements that are not NaN; NaN where there are none.

    Args:
        a: an array or scalar of real numbers.
        axis: the dimension or dimensions to reduce; None for all of them.
        out: only None, since arrays are immutable.
        overwrite_input: not used, since arrays are immutable.
        keepdims: whether reduced dimensions stay, with size 1.

    Returns:
        The medians in the dtype of `a`, integers as floats, and of its shape without
        the dimensions in `axis`.

    Raises:
        ValueError: the elements are complex, or an axis does not exist.

    >>> import verax.numpy as vnp
    >>> x = vnp.array([[vnp.nan, 1.0, 5.0], [vnp.nan, vnp.nan, vnp.nan]])
    >>> vnp.nanmedian(x, axis=1)
    Array([ 3., nan], dtype=float32)
    """
    return parts("nanmedian", a, 0.5, axis, out, "midpoint", keepdims, None, True)


def parts(
    name: str,
    a: ArrayLike,
    q: ArrayLike,
    axis: Axis,
    out: None,
    method: str,
    keepdims: bool,
    weights: ArrayLike | None,
    skip_nan: bool,
) -> Array:
    """The parts that all of them share."""
    no_out(name, out)
    if method not in METHODS:
        raise ValueError(
            f"{name}: method must be one of {', '.join(METHODS)}, not {method!r}"
        )
    if weights is not None and method != "inverted_cdf":
        raise NotImplementedError(
            f"{name}: method={method!r} does not take weights; only 'inverted_cdf' does"
        )
    x, share = as_array(name, a), as_array(name, q, 1)
    given = None if weights is None else as_array(name, weights, 2)
    return found_in(x, share, given, name, axis, method, keepdims, skip_nan)


@in_numpy(quantile_at_once)
def found_in(
    x: Array,
    share: Array,
    given: Array | None,
    name: str,
    axis: Axis,
    method: str,
    keepdims: bool,
    skip_nan: bool,
) -> Array:
    """The quantiles of arrays, `given` being the weights."""
    operands = [x, share] if given is None else [x, share, given]
    if any(is_complex(operand.dtype) for operand in operands):
        raise ValueError(
            f"{name} takes real arguments, since complex numbers have no order"
        )
    typed = [x.aval] if given is None else [x.aval, given.aval]
    dtype, _ = inexact_type(typed)
    axes = reduction_axes(name, axis, x.ndim)
    if not elements_over(x.shape, axes):
        own = axes_left(x.shape, axes, keepdims)
        nan = constant_of(np.nan, dtype)
        if skip_nan:
            return broadcast_in_dim(nan, own, ())
        if not share.size:
            return broadcast_in_dim(nan, (*share.shape, *own), ())
        raise TypeError(
            f"{name}: an array of shape {x.shape} has no elements over its dimensions "
            f"{axes}, and so no quantiles; verax.numpy.nan{name} answers NaN"
        )
    lines, share = in_rows(convert(x, dtype), axes), convert(share, dtype)
    if method == "inverted_cdf":
        one = constant_of(1, dtype)
        given = as_array(name, one) if given is None else convert(given, dtype)
        heavy = in_rows(weights_like(name, given, x, axes), axes)
        array = read_weighted(lines, heavy, share, skip_nan)
    else:
        array = read_quantiles(lines, share, method, skip_nan)
    return reshape(array, (*share.shape, *axes_left(x.shape, axes, keepdims)))


def axes_left(shape: Shape, axes: Shape, keepdims: bool) -> Shape:
    """The shape after a reduction over `axes`."""
    if not keepdims:
        return without(shape, axes)
    return tuple([1 if i in axes else size for i, size in enumerate(shape)])


def elements_over(shape: Shape, axes: Shape) -> int:
    """The number of elements over the dimensions `axes`."""
    return prod([shape[i] for i in axes])


def in_rows(x: Array, axes: tuple[int, ...]) -> Array:
    """A matrix whose rows hold the elements over `axes`, one for each other index."""
    rows, size = prod(without(x.shape, axes)), elements_over(x.shape, axes)
    return reshape(transpose(x, (*kept(x.ndim, axes), *axes)), (rows, size))


@remembered
def read_quantiles(x: Array, share: Array, method: str, skip_nan: bool) -> Array:
    """The quantiles of the rows of `x`, those of the first share first."""
    rows, size = x.shape
    nan = ne(x, x)
    if skip_nan:
        last = sub(reduce_sum(convert(eq(x, x), x.dtype), (1,)), 1)
    else:
        spoilt = broadcast_in_dim(reduce_or(nan, (1,)), x.shape, (0,))
        x = select(spoilt, constant_of(np.nan, x.dtype), x)
        last = broadcast_in_dim(constant_of(size - 1, x.dtype), (rows,), ())
    count = share.size
    line: Array = sort(x, 1)
    flat = reshape(share, (count,))
    target = mul(
        broadcast_in_dim(flat, (rows, count), (1,)),
        broadcast_in_dim(last, (rows, count), (0,)),
    )
    limit = broadcast_in_dim(last, (rows, count), (0,))
    out = transpose(between(line, target, limit, method), (1, 0))
    return out


def between(line: Array, target: Array, last: Array, method: str) -> Array:
    """The sorted rows at the places `target`, which may lie between two elements."""
    zero = constant_of(0, target.dtype)
    low, high = floor(target), ceil(target)
    weight = sub(target, low)
    below = larger(smaller(low, last), zero)
    above = larger(smaller(high, last), zero)
    if method == "lower":
        return at_place(line, below)
    if method == "higher":
        return at_place(line, above)
    if method == "nearest":
        nearest = round(target, RoundingMethod.TO_NEAREST_EVEN)
        return at_place(line, larger(smaller(nearest, last), zero))
    left, right = at_place(line, below), at_place(line, above)
    if method == "midpoint":
        return mul(add(left, right), 0.5)
    other = sub(constant_of(1, weight.dtype), weight)
    return add(mul(left, other), mul(right, weight))


def weights_like(name: str, weights: Array, x: Array, axes: tuple[int, ...]) -> Array:
    """Weights in the shape of `x`.

    Raises:
        ValueError: they have neither its shape nor that of its dimensions `axes`.
    """
    reduced = tuple([x.shape[i] for i in axes])
    if weights.shape == x.shape:
        return weights
    if weights.ndim and weights.shape != reduced:
        raise ValueError(
            f"{name}: the weights have shape {weights.shape}; they must have the "
            f"shape of the array, {x.shape}, or that of its dimensions {axes}, "
            f"{reduced}"
        )
    return broadcast_in_dim(weights, x.shape, axes if weights.ndim else ())


@remembered
def read_weighted(x: Array, weights: Array, share: Array, skip_nan: bool) -> Array:
    """The first elements of the rows up to which there is the share of all weights."""
    rows, size = x.shape
    zero = constant_of(0, x.dtype)
    nan = ne(x, x)
    if skip_nan:
        weights = select(nan, full_like(weights, 0), weights)
    else:
        spoilt = broadcast_in_dim(reduce_or(nan, (1,)), x.shape, (0,))
        x = select(spoilt, constant_of(np.nan, x.dtype), x)
    line, heavy = sort([x, weights], 1, num_keys=1)
    total = cumulative.cumsum(heavy, 1)
    whole = slice_in_dim(total, size - 1, size, axis=1)
    reached = div(total, broadcast_in_dim(whole, x.shape, (0, 1)))
    # What has no weight is never the first, also for a share of 0.
    reached = select(eq(total, zero), full_like(total, -1), reached)
    count = share.size
    cube = (rows, count, size)
    missing = lt(
        broadcast_in_dim(reached, cube, (0, 2)),
        broadcast_in_dim(reshape(share, (count,)), cube, (1,)),
    )
    place = reduce_sum(convert(missing, INTS), (2,))
    last = constant_of(max(size - 1, 0), INTS)
    return transpose(take_along(line, smaller(place, last), 1), (1, 0))


def at_place(line: Array, place: Array) -> Array:
    return take_along(line, convert(place, INTS), 1)
