"""Floor 2: windows of few elements, as functions of shifted arrays.

XLA's code for a CPU goes through the elements of windows one by one. Windows of several
dimensions are windows along one dimension after another, and what windows along one
hold are slices, which are combined element by element::

    y[i] = max(x[s i], x[s i + 1], ..., x[s i + n - 1])
"""

import functools
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from math import prod
from typing import Final

import numpy as np

from verax.ir.avals import Shape, ShapedArray
from verax.ir.dtypes import int32
from verax.ops.elementwise.arith import add, mul, sub
from verax.ops.elementwise.bits import bitwise_and, bitwise_or
from verax.ops.elementwise.compare import eq, ge, lt, ne
from verax.ops.elementwise.select import select
from verax.ops.reductions.reduce import reduce_sum
from verax.ops.structure.create import broadcasted_iota
from verax.ops.structure.shape import broadcast_in_dim, reshape
from verax.ops.structure.slicing import pad, slice
from verax.ops.windows.geometry import WindowParams, dilated, strided, window_counts
from verax.rules.families.reducer import Scalar
from verax.rules.values.array import Array

WRITTEN: Final = 32
"""So many elements of a window are written out at most."""
LINE: Final = 4
"""The same along the last dimension alone, for which XLA has code with vectors."""

type Combine = Callable[[Array, Array], Array]


def suits(p: WindowParams, avals: Sequence[ShapedArray]) -> bool:
    """Whether windows have few elements along each dimension, and there are some."""
    (x,) = avals
    sizes = [n for n in p.window_dimensions if n > 1]
    most = LINE if p.window_dimensions[-1:] == tuple(sizes) else WRITTEN
    some = x.size > 0 and 0 not in window_counts(p.geometry(x.shape))
    return some and 0 < sum(sizes) <= most


def along_each(combine: Combine, init: Scalar, p: WindowParams, x: Array) -> Array:
    """The reduction of each window, along one dimension after another."""
    for axis, (_, window, stride, edges, base, spread) in enumerate(
        zip(*p.geometry(x.shape), strict=True)
    ):
        if edges != (0, 0) or base > 1:
            config = [(0, 0, 0)] * x.ndim
            config[axis] = (*edges, base - 1)
            x = pad(x, init, config)
        count = strided(x.shape[axis], dilated(window, spread), stride)
        starts = range(0, window * spread, spread)
        parts = [part(x, axis, start, count, stride) for start in starts]
        x = functools.reduce(combine, parts)
    return x


def part(x: Array, axis: int, start: int, count: int, stride: int) -> Array:
    """So many elements along a dimension, in steps."""
    starts, limits, strides = [0] * x.ndim, [*x.shape], [1] * x.ndim
    starts[axis], strides[axis] = start, stride
    limits[axis] = start + max(count - 1, 0) * stride + min(count, 1)
    whole = limits[axis] == x.shape[axis] and start == 0 and stride == 1
    return x if whole else slice(x, starts, limits, strides)


# -----------------------------------------------------------------------------
# Where the first extreme of a window is.


def is_plain(p: WindowParams, x: ShapedArray) -> bool:
    """Whether windows are of few elements, without holes."""
    ones = (1,) * x.ndim
    return (
        not x.symbolic
        and p.base_dilation == p.window_dilation == ones
        and 1 < prod(p.window_dimensions) <= WRITTEN
        and x.size > 0
        and 0 not in window_counts(p.geometry(x.shape))
    )


def is_tiling(p: WindowParams) -> bool:
    """Whether each element is in one window, or in none, and there is no padding."""
    edges = {edge for pair in p.padding for edge in pair}
    return bool(p.window_dimensions == p.window_strides) and edges == {0}


def first_of_each(p: WindowParams, x: Array, y: Array, values: Sequence[int]) -> Array:
    """The value of the first place of each window that holds its extreme y.

    `values` has an integer for each place of a window; NaN is an extreme. It is -1 for
    windows of padding alone.
    """
    padded = {edge for pair in p.padding for edge in pair} != {0}
    whole = pad(x, 0, [(*edges, 0) for edges in p.padding]) if padded else x
    out = broadcast_in_dim(np.int32(-1), y.shape, ())
    places = product(*map(range, p.window_dimensions))
    for place, value in [*zip(places, values, strict=True)][::-1]:
        limits = [
            k + (n - 1) * s + 1
            for k, n, s in zip(place, y.shape, p.window_strides, strict=True)
        ]
        here = slice(whole, place, limits, p.window_strides)
        extreme = bitwise_or(eq(here, y), ne(here, here))
        for mask in inside(p, x.shape, y.shape, place):
            extreme = bitwise_and(extreme, mask)
        out = select(extreme, broadcast_in_dim(np.int32(value), y.shape, ()), out)
    return out


def inside(
    p: WindowParams, shape: Shape, counts: Shape, place: tuple[int, ...]
) -> Iterator[Array]:
    """For each dimension where a place of windows may be padding: where it is not."""
    for axis, (n, count, k, stride, (low, _)) in enumerate(
        zip(shape, counts, place, p.window_strides, p.padding, strict=True)
    ):
        first, last = k - low, k - low + (count - 1) * stride
        if first < 0 or last >= n:
            at = add(mul(broadcasted_iota(int32, counts, axis), stride), first)
            yield ge(at, 0) if last < n else lt(at, n)
            if first < 0 and last >= n:
                yield ge(at, 0)


def flat_places(p: WindowParams, x: Array, y: Array) -> Array:
    """The places of first extremes in the flat array, or -1."""
    steps = [prod(x.shape[i + 1 :]) for i in range(x.ndim)]
    values = [
        sum(k * step for k, step in zip(place, steps, strict=True))
        for place in product(*map(range, p.window_dimensions))
    ]
    out = first_of_each(p, x, y, values)
    places = out
    for stride, (low, _), step, axis in zip(
        p.window_strides, p.padding, steps, range(x.ndim), strict=True
    ):
        line = sub(mul(broadcasted_iota(int32, y.shape, axis), stride), low)
        places = add(places, mul(line, step))
    return select(lt(out, 0), out, places)


def tangents_of_tiles(p: WindowParams, x: Array, y: Array, t: Array) -> Array:
    """The tangent at the first extreme of each window, where windows are tiles."""
    first = first_of_each(p, x, y, range(prod(p.window_dimensions)))
    mixed, outer, inner = tiles(p, y.shape)
    sizes = [mixed[i] for i in inner]
    own = reshape(broadcasted_iota(int32, (prod(sizes),), 0), sizes)
    here = eq(
        broadcast_in_dim(first, mixed, outer), broadcast_in_dim(own, mixed, inner)
    )
    whole = [n * w for n, w in zip(y.shape, p.window_dimensions, strict=True)]
    return reduce_sum(select(here, reshape(part_of(t, whole), mixed), 0.0), inner)


def spread_over_tiles(p: WindowParams, ct: Array, x: ShapedArray) -> Array:
    """Each element in all places of its window, zeros in those of no window."""
    mixed, outer, _ = tiles(p, ct.shape)
    whole = [n * w for n, w in zip(ct.shape, p.window_dimensions, strict=True)]
    spread = reshape(broadcast_in_dim(ct, mixed, outer), whole)
    rest = [(0, n - m, 0) for n, m in zip(x.shape, whole, strict=True)]
    return spread if [*x.shape] == whole else pad(spread, 0, rest)


def tiles(p: WindowParams, shape: Shape) -> tuple[Shape, Shape, Shape]:
    """The shape of windows and their elements; the dimensions of each of both."""
    mixed: list[int] = []
    outer, inner = [], []
    for n, window in zip(shape, p.window_dimensions, strict=True):
        outer.append(len(mixed))
        mixed.append(n)
        if window > 1:
            inner.append(len(mixed))
            mixed.append(window)
    return tuple(mixed), tuple(outer), tuple(inner)


def part_of(x: Array, shape: Sequence[int]) -> Array:
    """The first elements along each dimension."""
    return x if [*x.shape] == [*shape] else slice(x, (0,) * x.ndim, shape)
