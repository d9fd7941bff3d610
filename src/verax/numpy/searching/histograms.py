"""Floor 6: counting into bins, of one dimension or several.

One idea: a count is a sum scattered to the bin of each element; what lies outside is
dropped, and a bin in several dimensions is one place in the row of all bins::

    bincount(x, length=10), histogram(x, bins=20), histogram2d(x, y, bins=20)
"""

import math
from collections.abc import Sequence
from typing import Any

from verax.ir.dtypes import bool_, inexact_dtype, is_integer
from verax.numpy.arguments.arguments import (
    ArrayLike,
    as_array,
    constant_of,
    default_integer,
    promote_inexact,
)
from verax.numpy.creation.creation import asarray
from verax.numpy.creation.filling import filled
from verax.numpy.elementwise.arithmetic import subtract, true_divide
from verax.numpy.indexing.getitem_and_at import at
from verax.numpy.ranges import known, linspace
from verax.numpy.reducing.reductions import sum
from verax.numpy.searching.sorting import searchsorted
from verax.numpy.shaping.joining import stack
from verax.numpy.shaping.shapes import reshape
from verax.ops.elementwise.arith import add, div, max as larger, mul, sub
from verax.ops.elementwise.compare import eq
from verax.ops.elementwise.convert import convert
from verax.ops.elementwise.select import select
from verax.ops.reductions.reduce import reduce_max, reduce_min
from verax.ops.structure.reshard import call_sharded
from verax.ops.structure.slicing import slice_in_dim
from verax.rules.values.array import Array
from verax.rules.values.conversions import shown
from verax.rules.values.sizes import as_size, unsharded


def bincount(
    x: ArrayLike,
    weights: ArrayLike | None = None,
    minlength: int = 0,
    *,
    length: int | None = None,
    out_sharding: object = None,
) -> Array:
    """Counts each of 0, 1, 2, ... in the vector `x`, or sums its weights.

    Negative numbers count as 0, where NumPy raises an error.

    Args:
        x: a vector of integers or booleans.
        weights: how much each element counts, an array of the shape of `x` or a scalar;
            None for 1.
        minlength: the least length of the result, if `length` is not given.
        length: the length of the result, known while tracing; larger numbers are
            dropped. None lets the largest number decide.
        out_sharding: how the result is split over an explicit mesh; None leaves it to
            the compiler.

    Returns:
        A vector whose element i is the number of elements i, in the default integer, or
        the sum of their weights, in the dtype of the weights.

    Raises:
        TypeError: `x` holds no integers.
        ValueError: `x` is not a vector, or the weights do not broadcast to its shape.
        AbstractValueError: `x` is traced and `length` is not given.

    >>> import verax.numpy as vnp
    >>> x = vnp.array([1, 1, 3])
    >>> vnp.bincount(x).tolist(), vnp.bincount(x, length=2).tolist()
    ([0, 2, 0, 1], [0, 2])
    >>> vnp.bincount(x, weights=vnp.array([0.5, 0.25, 2.0]))
    Array([0.  , 0.75, 0.  , 2.  ], dtype=float32)
    """
    if out_sharding is not None:
        return call_sharded(bincount, locals())
    given = as_array("bincount", x)
    if given.dtype == bool_:
        given = convert(given, default_integer())
    if not is_integer(given.dtype):
        raise TypeError(f"bincount counts integers, not {given.aval}")
    if given.ndim != 1:
        raise ValueError(f"bincount takes a vector, not {given.aval}; ravel it first")
    if length is None:
        values = given.concrete(
            "bincount without length=..., where the shape of the result depends "
            "on values,"
        )
        highest = int(values.max()) if values.size else -1
        length = max(int(minlength), highest + 1)
    places = larger(given, constant_of(0, given.dtype))
    length = as_size(length)
    if weights is None:
        return tally(places, length, 1, default_integer())
    weight = as_array("bincount", weights, 1)
    return tally(places, length, weight, weight.dtype)


def tally(places: Array, length: int, weights: Any, dtype: Any) -> Array:
    """The weights summed by place; places outside are dropped."""
    out: Array = at(filled((length,), 0, dtype))[places].add(weights, mode="drop")
    return out


def histogram_bin_edges(
    a: ArrayLike,
    bins: ArrayLike = 10,
    range: Sequence[ArrayLike] | None = None,
    weights: ArrayLike | None = None,
) -> Array:
    """The edges of `bins` equal bins over `range`, else from smallest to largest.

    If both ends are equal, each is moved out by one half.

    Args:
        a: an array or scalar of real numbers.
        bins: the number of bins, known while tracing, or a vector of edges, which are
            returned. NumPy's names of rules are not available.
        range: the two outer edges; None for the smallest and the largest element, or 0
            and 1 if there are no elements.
        weights: not used.

    Returns:
        A vector of `bins` + 1 edges, in the dtype of `a`, integers as floats.

    Raises:
        TypeError: `bins` is a name, or one number that is no integer.
        ValueError: `bins` has more than one dimension.

    >>> import verax.numpy as vnp
    >>> vnp.histogram_bin_edges(vnp.array([1, 2, 5]), bins=4)
    Array([1., 2., 3., 4., 5.], dtype=float32)
    >>> vnp.histogram_bin_edges(vnp.array([2, 2]), bins=2)
    Array([1.5, 2. , 2.5], dtype=float32)
    """
    return edges_of("histogram_bin_edges", a, bins, range)


def edges_of(
    name: str, a: ArrayLike, bins: ArrayLike, range: Sequence[ArrayLike] | None
) -> Array:
    """Computes `histogram_bin_edges`.

    Raises:
        TypeError: `bins` is a name, or one number that is no integer.
        ValueError: `bins` has more than one dimension.
    """
    if isinstance(bins, str):
        raise TypeError(
            f"{name}: bins must be a number or a vector of edges, not {shown(bins)}"
        )
    (x,) = promote_inexact(name, as_array(name, a))
    edges = as_array(name, bins, 1)
    if edges.ndim == 1:
        return convert(edges, x.dtype)
    low, high = limits(x, range)
    flat = eq(low, high)
    half = constant_of(0.5, x.dtype)
    low, high = select(flat, sub(low, half), low), select(flat, add(high, half), high)
    count = known(name, "bins", edges)
    if not (is_integer(edges.dtype) or edges.dtype == bool_):
        raise TypeError(
            f"{name}: bins must be an integer or a vector of edges, not {shown(bins)}"
        )
    return linspace(low, high, int(count) + 1, dtype=x.dtype)


def limits(x: Array, range: Sequence[ArrayLike] | None) -> tuple[Any, Any]:
    """The ends of the range, by default the extremes of `x`."""
    if range is not None:
        low, high = (asarray(end, dtype=x.dtype) for end in range)
        return low, high
    if not x.size:
        return filled((), 0, x.dtype), filled((), 1, x.dtype)
    axes = tuple(i for i, _ in enumerate(x.shape))
    return reduce_min(x, axes), reduce_max(x, axes)


def histogram(
    a: ArrayLike,
    bins: ArrayLike = 10,
    range: Sequence[ArrayLike] | None = None,
    weights: ArrayLike | None = None,
    density: bool | None = None,
    out_sharding: object = None,
) -> tuple[Array, Array]:
    """Counts the elements of each bin, or sums their weights; also the bins' edges.

    The last bin holds its right edge too. Elements outside all bins are left out. The
    counts are floats, unlike NumPy's.

    Args:
        a: an array or scalar of real numbers, taken as a flat one.
        bins: the number of equal bins, known while tracing, or a vector of increasing
            edges.
        range: the two outer edges, if `bins` is a number; None for the smallest and the
            largest element.
        weights: how much each element counts, of the shape of `a`; None for 1.
        density: whether to divide by the sum and the width of the bins, so that the
            integral is 1.
        out_sharding: only None; use `lax.with_sharding_constraint` on the result.

    Returns:
        A pair of vectors: the counts and the edges, of which there is one more; both in
        the common dtype of `a` and `weights`, integers as floats.

    Raises:
        TypeError: `bins` is a name, or one number that is no integer.
        ValueError: the weights have another shape than `a`, `bins` has more than one
            dimension, or `out_sharding` is given.

    >>> import verax.numpy as vnp
    >>> x = vnp.array([0, 1, 1, 4])
    >>> vnp.histogram(x, bins=2)
    (Array([3., 1.], dtype=float32), Array([0., 2., 4.], dtype=float32))
    >>> vnp.histogram(x, bins=vnp.array([0, 1, 2]))[0].tolist()
    [1.0, 2.0]
    """
    unsharded("histogram", out_sharding)
    x = as_array("histogram", a)
    if weights is None:
        (x,) = promote_inexact("histogram", x)
        weight = filled((x.size,), 1, x.dtype)
    else:
        held = as_array("histogram", weights, 3)
        if held.shape != x.shape:
            raise ValueError(
                f"histogram: the weights must have the shape of the array, {x.shape}, "
                f"not {held.shape}"
            )
        x, weight = promote_inexact("histogram", x, held)
        weight = reshape(weight, (x.size,))
    edges = edges_of("histogram", x, bins, range)
    flat, count = reshape(x, (x.size,)), edges.shape[0]
    place = searchsorted(edges, flat, side="right")
    top = eq(flat, edges[-1])
    place = select(top, constant_of(count - 1, place.dtype), place)
    array = slice_in_dim(tally(place, count, weight, weight.dtype), 1, count, axis=0)
    if density:
        array = div(div(array, sub(edges[1:], edges[:-1])), sum(array))
    return array, edges


def listed(bins: Any, count: int) -> list[Any]:
    """The bins of each dimension, from one entry for all or one for each.

    Raises:
        ValueError: there is another number of entries.
    """
    if not hasattr(bins, "__len__") or (isinstance(bins, Array) and not bins.ndim):
        return [bins] * count
    if len(bins) != count:
        raise ValueError(
            f"histogramdd: got {len(bins)} bins for {count} dimensions; pass one for "
            "each"
        )
    return list(bins)


def place_of(column: Array, edges: Array) -> Array:
    """The bin of each element; 0 is before the first and the last is behind all."""
    column = column.astype(edges.dtype)
    array = searchsorted(edges, column, side="right")
    top = constant_of(edges.shape[0] - 1, array.dtype)
    return select(eq(column, edges[-1]), top, array)


def histogramdd(
    sample: ArrayLike,
    bins: object = 10,
    range: Sequence[Any] | None = None,
    weights: ArrayLike | None = None,
    density: bool | None = None,
) -> tuple[Array, list[Array]]:
    """Counts the rows of `sample` in each bin, or sums their weights; also the edges.

    The last bin of each dimension holds its right edge too. Points outside all bins are
    left out.

    Args:
        sample: a matrix of real numbers with one row for each point and one column for
            each dimension.
        bins: the number of equal bins of every dimension, or a sequence with one entry
            for each: their number, or a vector of increasing edges.
        range: a sequence with the two outer edges for each dimension, or None for the
            smallest and the largest element of the column; None if all are so.
        weights: how much each point counts, a vector with one element for each; None
            for 1.
        density: whether to divide by the sum and the volume of the bins, so that the
            integral is 1.

    Returns:
        The counts, an array with one dimension for each column, in the default integer
        or the dtype of `weights`, with `density` in a float; and a list of the edges of
        each dimension.

    Raises:
        TypeError: a number of bins is no integer.
        ValueError: bins, ranges or weights do not fit the shape of the sample, or it is
            not a matrix.

    >>> import verax.numpy as vnp
    >>> points = vnp.array([[0.0, 0.0], [1.0, 0.0], [1.0, 2.0]])
    >>> counts, edges = vnp.histogramdd(points, bins=(2, vnp.array([0.0, 1.0, 3.0])))
    >>> counts.tolist(), edges[0].tolist()
    ([[1, 0], [1, 1]], [0.0, 0.5, 1.0])
    """
    points = as_array("histogramdd", sample)
    if points.ndim != 2:
        raise ValueError(
            f"histogramdd takes a matrix with one row for each point, not {points.aval}"
        )
    count, rank = points.shape
    ranges = [None] * rank if range is None else list(range)
    if len(ranges) != rank:
        raise ValueError(
            f"histogramdd: got {len(ranges)} ranges for {rank} dimensions; pass one "
            "for each"
        )
    weight: Any = 1
    dtype = default_integer()
    if weights is not None:
        weight = as_array("histogramdd", weights, 3)
        dtype = weight.dtype
        if weight.shape != (count,):
            raise ValueError(
                f"histogramdd: weights must have one element for each of the {count} "
                f"points, not shape {weight.shape}"
            )
    columns = [points[:, i] for i, _ in enumerate(ranges)]
    pairs = zip(columns, listed(bins, rank), ranges, strict=True)
    edges = [edges_of("histogramdd", x, own, span) for x, own, span in pairs]
    sizes = [line.shape[0] + 1 for line in edges]
    flat = flat_places(columns, edges, sizes)
    counts = reshape(tally(flat, math.prod(sizes), weight, dtype), sizes)
    inner = counts[tuple(slice(1, -1) for _ in sizes)]
    return (shares(inner, edges) if density else inner), edges


def flat_places(
    columns: Sequence[Array], edges: Sequence[Array], sizes: Sequence[int]
) -> Array:
    """The place of each point in the row of all bins."""
    out = place_of(columns[0], edges[0])
    for column, line, size in zip(columns[1:], edges[1:], sizes[1:], strict=True):
        place = place_of(column, line)
        out = add(mul(out, constant_of(size, out.dtype)), place)
    return out


def shares(counts: Array, edges: Sequence[Array]) -> Array:
    """Counts over their sum and the volume of their bins."""
    shares = convert(counts, inexact_dtype(edges[0].dtype))
    out = true_divide(shares, sum(shares))
    for i, line in enumerate(edges):
        shape = [-1 if j == i else 1 for j, _ in enumerate(edges)]
        out = true_divide(out, reshape(subtract(line[1:], line[:-1]), shape))
    return out


def histogram2d(
    x: ArrayLike,
    y: ArrayLike,
    bins: Any = 10,
    range: Sequence[object] | None = None,
    weights: ArrayLike | None = None,
    density: bool | None = None,
) -> tuple[Array, Array, Array]:
    """`histogramdd` of the points (x, y): the counts, and the edges of x and of y.

    Args:
        x: a vector of real numbers.
        y: a vector of the size of `x`.
        bins: the number of equal bins for both, or one vector of edges for both, or a
            pair with numbers or edges for x and for y; what has two elements is a pair.
        range: a pair of the two outer edges for x and for y, each of which may be None
            for the smallest and the largest element; None if both are so.
        weights: how much each point counts, a vector with one element for each; None
            for 1.
        density: whether to divide by the sum and the area of the bins, so that the
            integral is 1.

    Returns:
        The counts, a matrix with a row for each bin of x and a column for each bin of
        y, in the default integer or the dtype of `weights`, with `density` in a float;
        the edges of x, and those of y.

    Raises:
        TypeError: a number of bins is no integer.
        ValueError: `x` and `y` have different sizes, or `range` or `weights` do not
            fit.

    >>> import verax.numpy as vnp
    >>> x, y = vnp.array([0.0, 1.0, 1.0]), vnp.array([0.0, 0.0, 2.0])
    >>> counts, edges_x, edges_y = vnp.histogram2d(x, y, bins=(1, 2))
    >>> counts.tolist(), edges_x.tolist(), edges_y.tolist()
    ([[2, 1]], [0.0, 1.0], [0.0, 1.0, 2.0])
    """
    shared = hasattr(bins, "__len__") and len(bins) not in (1, 2)
    pair = [as_array("histogram2d", bins, 2)] * 2 if shared else bins
    if hasattr(pair, "__len__") and len(pair) == 1:
        pair = [pair[0]] * 2
    points = stack((x, y), axis=1)
    counts, edges = histogramdd(points, pair, range, weights, density)
    return counts, edges[0], edges[1]
