"""Floor 6: counting into bins of several dimensions.

One idea: a bin in several dimensions is one place in the row of all bins::

    histogram2d(x, y, bins=20), histogramdd(points, bins=(10, 10, 5))
"""

import math
from collections.abc import Sequence
from typing import Any

from verax.ir.dtypes import default_dtype
from verax.numpy.arguments.arguments import ArrayLike, as_array, constant_of
from verax.numpy.elementwise.arithmetic import subtract, true_divide
from verax.numpy.reducing.reductions import sum
from verax.numpy.searching.histograms import histogram_bin_edges, tally
from verax.numpy.searching.sorting import searchsorted
from verax.numpy.shaping.joining import stack
from verax.numpy.shaping.shapes import reshape
from verax.ops.elementwise.arith import add, mul
from verax.ops.elementwise.compare import eq
from verax.ops.elementwise.select import select
from verax.rules.values.array import Array
from verax.rules.values.state import STATE


def listed(bins: Any, count: int) -> list[Any]:
    """The bins of each dimension, from one entry for all or one for each.

    Raises:
        ValueError: there is another number of entries.
    """
    if not hasattr(bins, "__len__") or (isinstance(bins, Array) and not bins.ndim):
        return [bins] * count
    if len(bins) != count:
        raise ValueError(
            f"histogramdd: {len(bins)} bins for {count} dimensions; give one for each"
        )
    return list(bins)


def place_of(column: Array, edges: Array) -> Array:
    """The bin of each element; 0 is before the first and the last is behind all."""
    column = column.astype(edges.dtype)
    found = searchsorted(edges, column, side="right")
    top = constant_of(edges.shape[0] - 1, found.dtype)
    return select(eq(column, edges[-1]), top, found)


def histogramdd(
    sample: ArrayLike,
    bins: Any = 10,
    range: Sequence[Any] | None = None,
    weights: ArrayLike | None = None,
    density: bool | None = None,
) -> tuple[Array, list[Array]]:
    """How many rows of `sample` fall into each bin, or their weights; and the edges.

    `bins` and `range` are as for `histogram`, one for each column; a range may be
    None. With `density` the integral is 1.

    Raises:
        ValueError: bins, ranges or weights do not fit the shape of the sample.
    """
    points = as_array("histogramdd", sample)
    if points.ndim != 2:
        raise ValueError(
            f"histogramdd takes a matrix, a row per point, not {points.aval}"
        )
    count, rank = points.shape
    ranges = [None] * rank if range is None else list(range)
    if len(ranges) != rank:
        raise ValueError(f"histogramdd: {len(ranges)} ranges for {rank} dimensions")
    weight: Any = 1
    dtype = default_dtype("integer", STATE.enable_x64)
    if weights is not None:
        weight = as_array("histogramdd", weights, 3)
        dtype = weight.dtype
        if weight.shape != (count,):
            raise ValueError(
                f"histogramdd: weights of shape {weight.shape} for {count} points"
            )
    columns = [points[:, i] for i, _ in enumerate(ranges)]
    pairs = zip(columns, listed(bins, rank), ranges, strict=True)
    edges = [histogram_bin_edges(x, own, span) for x, own, span in pairs]
    sizes = [line.shape[0] + 1 for line in edges]
    flat = flat_places(columns, edges, sizes)
    counts = reshape(tally(flat, math.prod(sizes), weight, dtype), sizes)
    inner = counts[tuple(slice(1, -1) for _ in sizes)]
    return (shares(inner, edges) if density else inner), edges


def flat_places(
    columns: Sequence[Array], edges: Sequence[Array], sizes: Sequence[int]
) -> Array:
    """The place of each point in the row of all bins."""
    found = place_of(columns[0], edges[0])
    for column, line, size in zip(columns[1:], edges[1:], sizes[1:], strict=True):
        place = place_of(column, line)
        found = add(mul(found, constant_of(size, found.dtype)), place)
    return found


def shares(counts: Array, edges: Sequence[Array]) -> Array:
    """Counts over their sum and the volume of their bins."""
    found = true_divide(counts, sum(counts))
    for i, line in enumerate(edges):
        shape = [-1 if j == i else 1 for j, _ in enumerate(edges)]
        found = true_divide(found, reshape(subtract(line[1:], line[:-1]), shape))
    return found


def histogram2d(
    x: ArrayLike,
    y: ArrayLike,
    bins: Any = 10,
    range: Sequence[Any] | None = None,
    weights: ArrayLike | None = None,
    density: bool | None = None,
) -> tuple[Array, Array, Array]:
    """`histogramdd` of the points (x, y): the counts, and the edges of x and of y.

    One vector of bins is for both; a pair has those of x and those of y.

    Raises:
        ValueError: `x` and `y` have different sizes.
    """
    shared = hasattr(bins, "__len__") and len(bins) not in (1, 2)
    pair = [as_array("histogram2d", bins, 2)] * 2 if shared else bins
    if hasattr(pair, "__len__") and len(pair) == 1:
        pair = [pair[0]] * 2
    points = stack((x, y), axis=1)
    counts, edges = histogramdd(points, pair, range, weights, density)
    return counts, edges[0], edges[1]
