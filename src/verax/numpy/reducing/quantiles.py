"""Floor 6: medians, quantiles and percentiles.

One idea: sort once along one axis; a quantile lies between two neighbours, which are
read by their place::

    median(x, axis=0), quantile(x, 0.9), percentile(x, [25, 75])
"""

from math import prod

import numpy as np

from verax.backend.eager.composites import in_numpy, remembered
from verax.ir.avals import Shape
from verax.ir.dtypes import is_complex
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
from verax.numpy.reducing.host_quantiles import (
    median_at_once,
    nanmedian_at_once,
    quantile_at_once,
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
from verax.ops.indexing.take_along import take_along
from verax.ops.reductions import cumulative
from verax.ops.reductions.reduce import reduce_or, reduce_sum
from verax.ops.sorting.sort import sort
from verax.ops.structure.create import full_like
from verax.ops.structure.reshard import call_sharded
from verax.ops.structure.shape import broadcast_in_dim, reshape, transpose
from verax.ops.structure.slicing import slice_in_dim
from verax.rules.values.array import Array
from verax.rules.values.axes import kept, without

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

    The dimensions of `q` come first. NaN if there is a NaN. `method` says what to do
    between two elements: "linear", "lower", "higher", "midpoint", "nearest", or
    "inverted_cdf", the first element up to which there is that part. With that method
    elements may have `weights`, of the shape of `a` or of its dimensions `axis`.

    Raises:
        TypeError: there are no elements over `axis`.
        ValueError: an argument is complex, or `method` is unknown, or the shape of the
            weights differs.
        NotImplementedError: `method` takes no weights.
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
    """`quantile` with `q` in percent."""
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
    """`percentile` of the elements that are not NaN."""
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

    Raises:
        ValueError: there are no elements over `axis`, or they are complex.
    """
    x = as_array("median", a)
    if not elements_over(x.shape, reduction_axes("median", axis, x.ndim)):
        raise ValueError(
            f"median: an array of shape {x.shape} has no elements over axis {axis}, "
            "and so no middle one; verax.numpy.nanmedian answers NaN"
        )
    return quantile(x, 0.5, axis, out, overwrite_input, "midpoint", keepdims)


@in_numpy(nanmedian_at_once)
def nanmedian(
    a: ArrayLike,
    axis: int | tuple[int, ...] | None = None,
    out: None = None,
    overwrite_input: bool = False,
    keepdims: bool = False,
) -> Array:
    """`median` of the elements that are not NaN; NaN where there are none."""
    return nanquantile(a, 0.5, axis, out, overwrite_input, "midpoint", keepdims)


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
    """What all of them share."""
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
        found = read_weighted(lines, heavy, share, skip_nan)
    else:
        found = read_quantiles(lines, share, method, skip_nan)
    return reshape(found, (*share.shape, *axes_left(x.shape, axes, keepdims)))


def axes_left(shape: Shape, axes: Shape, keepdims: bool) -> Shape:
    """What a reduction over `axes` leaves of a shape."""
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
    found = transpose(between(line, target, limit, method), (1, 0))
    return found


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
