"""Floor 6: counting into bins.

One idea: a count is a sum scattered to the bin of each element; what lies outside is
dropped::

    bincount(x, length=10), histogram(x, bins=20)
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from verax.ir.dtypes import bool_, default_dtype, is_integer
from verax.numpy.arguments.arguments import (
    ArrayLike,
    as_array,
    constant_of,
    promote_inexact,
)
from verax.numpy.creation.creation import asarray
from verax.numpy.creation.filling import filled
from verax.numpy.indexing.getitem_and_at import at
from verax.numpy.ranges.ranges import known, linspace
from verax.numpy.reducing.reductions import sum
from verax.numpy.searching.sorting import searchsorted
from verax.ops.elementwise.arith import add, div, max as larger, sub
from verax.ops.elementwise.compare import eq
from verax.ops.elementwise.convert import convert
from verax.ops.elementwise.select import select
from verax.ops.reductions.reduce import reduce_max, reduce_min
from verax.ops.structure.shape import reshape
from verax.ops.structure.slicing import slice_in_dim
from verax.rules.rows.builder import Tracer
from verax.rules.values.array import Array
from verax.rules.values.axes import unsharded
from verax.rules.values.state import STATE


def bincount(
    x: ArrayLike,
    weights: ArrayLike | None = None,
    minlength: int = 0,
    *,
    length: int | None = None,
    out_sharding: object = None,
) -> Array:
    """How often each of 0, 1, 2, ... occurs in the vector `x`, or the weights summed.

    `length` is that of the result; larger numbers are dropped, and negative ones count
    as 0. Without it, the largest number decides.

    Raises:
        TypeError: `x` holds no integers.
        ValueError: `x` is no vector.
        AbstractValueError: `x` is traced and `length` is not given.
    """
    unsharded("bincount", out_sharding)
    given = as_array("bincount", x)
    if given.dtype == bool_:
        given = convert(given, default_dtype("integer", STATE.enable_x64))
    if not is_integer(given.dtype):
        raise TypeError(f"bincount counts integers, not {given.aval}")
    if given.ndim != 1:
        raise ValueError(f"bincount takes a vector, not {given.aval}; ravel it first")
    if length is None:
        if isinstance(given, Tracer):
            given.concrete(
                "bincount without length=..., on whose values its shape depends,"
            )
        values = np.asarray(given)
        highest = int(values.max()) if values.size else -1
        length = max(int(minlength), highest + 1)
    places = larger(given, constant_of(0, given.dtype))
    if weights is None:
        return tally(places, int(length), 1, default_dtype("integer", STATE.enable_x64))
    weight = as_array("bincount", weights, 1)
    return tally(places, int(length), weight, weight.dtype)


def tally(places: Array, length: int, weights: Any, dtype: Any) -> Array:
    """The weights summed by place; places outside are dropped."""
    found: Array = at(filled((length,), 0, dtype))[places].add(weights, mode="drop")
    return found


def histogram_bin_edges(
    a: ArrayLike,
    bins: ArrayLike = 10,
    range: Sequence[ArrayLike] | None = None,
    weights: ArrayLike | None = None,
) -> Array:
    """The edges of `bins` equal bins over `range`, else from smallest to largest.

    Raises:
        TypeError: `bins` is a name; only numbers and edges are known.
    """
    if isinstance(bins, str):
        raise TypeError(f"histogram: bins={bins!r} is no number and no vector of edges")
    (x,) = promote_inexact("histogram", as_array("histogram", a))
    edges = as_array("histogram", bins, 1)
    if edges.ndim == 1:
        return convert(edges, x.dtype)
    low, high = limits(x, range)
    flat = eq(low, high)
    half = constant_of(0.5, x.dtype)
    low, high = select(flat, sub(low, half), low), select(flat, add(high, half), high)
    line = linspace(
        low, high, int(known("histogram", "bins", edges)) + 1, dtype=x.dtype
    )
    assert isinstance(line, Array)
    return line


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
    """How many elements fall into each bin, or their weights, and the bins' edges.

    The last bin holds its right edge too. With `density` the integral is 1.

    Raises:
        ValueError: the weights have another shape than `a`.
    """
    unsharded("histogram", out_sharding)
    x = as_array("histogram", a)
    if weights is None:
        (x,) = promote_inexact("histogram", x)
        weight: Any = filled((x.size,), 1, x.dtype)
    else:
        held = as_array("histogram", weights, 3)
        if held.shape != x.shape:
            raise ValueError(
                f"histogram: the weights have shape {held.shape}, the array {x.shape}"
            )
        x, weight = promote_inexact("histogram", x, held)
        weight = reshape(weight, (x.size,))
    edges = histogram_bin_edges(x, bins, range)
    flat, count = reshape(x, (x.size,)), edges.shape[0]
    place = searchsorted(edges, flat, side="right")
    top = eq(flat, edges[-1])
    place = select(top, constant_of(count - 1, place.dtype), place)
    found = slice_in_dim(tally(place, count, weight, weight.dtype), 1, count, axis=0)
    if density:
        found = div(div(found, sub(edges[1:], edges[:-1])), sum(found))
    return found, edges
