"""Floor 6: elements in other places: flipped, rolled, cut out, put in, diagonals.

One idea: what a place is made of is known while tracing, so all of these are slices,
reversals and joins, and no gather::

    flip(x, 0), roll(x, 3), rot90(x), diagonal(x), delete(x, 1), insert(x, 1, 0.0)
"""

from operator import index
from typing import Any

import numpy as np

from verax.backend.eager.composites import remembered
from verax.ir.dtypes import DTypeLike, int32, is_integer
from verax.numpy.arguments.arguments import (
    ArrayLike,
    as_array,
    canonical_axes,
    canonical_axis,
    chosen_dtype,
    no_out,
)
from verax.numpy.elementwise.arithmetic import clip
from verax.numpy.elementwise.comparison import less, less_equal
from verax.numpy.elementwise.division import remainder
from verax.numpy.searching.sorting import sort
from verax.numpy.searching.where_nonzero import where
from verax.numpy.shaping.joining import concatenate
from verax.numpy.shaping.shapes import (
    AxisLike,
    broadcast_to,
    moveaxis,
    ravel,
    reshape,
    transpose,
)
from verax.ops.indexing.dynamic_dims import dynamic_slice_in_dim
from verax.ops.structure.create import iota
from verax.ops.structure.joining import rev
from verax.ops.structure.slicing import slice_in_dim
from verax.rules.rows.builder import Tracer
from verax.rules.values.array import Array

# ---------------------------------------------------------------------- reversals


@remembered
def flip(m: ArrayLike, axis: AxisLike | None = None) -> Array:
    """The elements in reverse order along `axis`, or along all dimensions."""
    x = as_array("flip", m)
    axes = range(x.ndim) if axis is None else canonical_axes("flip", axis, x.ndim)
    return rev(x, tuple(axes))


def fliplr(m: ArrayLike) -> Array:
    """The columns in reverse order.

    Raises:
        ValueError: there are fewer than two dimensions.
    """
    x = as_array("fliplr", m)
    if x.ndim < 2:
        raise ValueError(f"fliplr takes at least two dimensions, not {x.ndim}")
    return rev(x, (1,))


def flipud(m: ArrayLike) -> Array:
    """The rows in reverse order.

    Raises:
        ValueError: there are no dimensions.
    """
    x = as_array("flipud", m)
    if not x.ndim:
        raise ValueError("flipud takes at least one dimension")
    return rev(x, (0,))


@remembered
def rot90(m: ArrayLike, k: int = 1, axes: tuple[int, int] = (0, 1)) -> Array:
    """A plane turned by `k` quarters, from the first of `axes` towards the second.

    Raises:
        ValueError: `axes` are not two different dimensions.
    """
    x = as_array("rot90", m)
    places = canonical_axes("rot90", axes, x.ndim)
    if len(places) != 2:
        raise ValueError(f"rot90 takes two axes, not {axes}")
    first, second = places
    quarters = k % 4
    if quarters == 0:
        return x
    if quarters == 2:
        return rev(x, places)
    order = list(range(x.ndim))
    order[first], order[second] = second, first
    if quarters == 1:
        return transpose(rev(x, (second,)), order)
    return rev(transpose(x, order), (second,))


@remembered
def roll(a: ArrayLike, shift: Any, axis: AxisLike | None = None) -> Array:
    """The elements moved on by `shift`; those that fall off come in on the other side.

    `shift` may be traced.

    Raises:
        ValueError: there are not as many shifts as axes.
    """
    x = as_array("roll", a)
    if axis is None:
        return reshape(roll(ravel(x), shift, 0), x.shape)
    several = (axis,) if isinstance(axis, int) else axis
    axes = [canonical_axis("roll", i, x.ndim) for i in several]
    shifts = list(shift) if np.ndim(shift) else [shift] * len(axes)
    if len(axes) == 1 and len(shifts) > 1:
        axes = axes * len(shifts)
    if len(shifts) != len(axes):
        raise ValueError(f"roll: {len(shifts)} shifts for {len(axes)} axes")
    for count, place in zip(shifts, axes, strict=True):
        x = rolled(x, count, place)
    return x


def rolled(x: Array, shift: Any, axis: int) -> Array:
    """`roll` along one dimension."""
    n = x.shape[axis]
    if not n:
        return x
    if isinstance(shift, Tracer):
        twice = concatenate((x, x), axis)
        return dynamic_slice_in_dim(twice, n - remainder(shift, n), n, axis)
    start = -index(shift) % n
    if not start:
        return x
    parts = slice_in_dim(x, start, n, axis=axis), slice_in_dim(x, 0, start, axis=axis)
    return concatenate(parts, axis)


# ----------------------------------------------------------------- out of and into


def kept_places(name: str, obj: Any, n: int) -> np.ndarray:
    """Which of `n` places are named by an int, a slice, ints or booleans."""
    hit = np.zeros(n, bool)
    if isinstance(obj, slice):
        hit[obj] = True
        return hit
    places = np.asarray(obj)
    if places.dtype == bool:
        if places.shape != (n,):
            raise ValueError(f"{name}: a mask of shape {places.shape} for size {n}")
        return places
    if places.size and (places.min() < -n or places.max() >= n):
        raise IndexError(f"{name}: index {obj} is out of bounds for size {n}")
    hit[places.astype(int)] = True
    return hit


def delete(
    arr: ArrayLike,
    obj: Any,
    axis: int | None = None,
    *,
    assume_unique_indices: bool = False,
) -> Array:
    """`arr` without the parts at the places `obj`.

    Places are concrete, unless they are integers with `assume_unique_indices`: then
    they may be traced, none may come twice, and those outside delete nothing, but for
    as many parts from the end.

    Raises:
        IndexError: a concrete place lies outside.
        AbstractValueError: places are traced that are not assumed to be unique.
    """
    x = as_array("delete", arr)
    if axis is None:
        x, axis = ravel(x), 0
    place = canonical_axis("delete", axis, x.ndim)
    n = x.shape[place]
    if isinstance(obj, Tracer):
        if assume_unique_indices and is_integer(obj.dtype):
            return without_unique(x, ravel(obj), place)
        obj = obj.concrete("delete without assume_unique_indices=True and integers")
    keep = ~kept_places("delete", obj, n)
    return joined_runs(x, np.flatnonzero(keep), place)


def without_unique(x: Array, places: Array, axis: int) -> Array:
    """The parts of `x` at other places than these, each of which comes once.

    A part that stays is moved by the number of places that lie before it.
    """
    n, count = x.shape[axis], places.size
    wrapped = clip(where(less(places, 0), places + n, places), 0, n).astype(int32)
    before = sort(wrapped) - iota(int32, count)
    left = iota(int32, n - count)
    shift = less_equal(before[:, None], left).sum(0, dtype=int32)
    return x[(*(slice(None),) * axis, left + shift)]


def joined_runs(x: Array, places: np.ndarray, axis: int) -> Array:
    """The parts at increasing places: one slice for each run of neighbours."""
    if not places.size:
        return slice_in_dim(x, 0, 0, axis=axis)
    breaks = np.flatnonzero(np.diff(places) != 1) + 1
    runs = np.split(places, breaks)
    if len(runs) > 8:
        return x[(*(slice(None),) * axis, places.astype(np.int32))]
    parts = [slice_in_dim(x, int(run[0]), int(run[-1]) + 1, axis=axis) for run in runs]
    return concatenate(parts, axis)


def insert(
    arr: ArrayLike, obj: Any, values: ArrayLike, axis: int | None = None
) -> Array:
    """`arr` with `values` put in before the places `obj`, which must be concrete.

    Raises:
        IndexError: a place lies outside.
    """
    x, new = as_array("insert", arr), as_array("insert", values, 2)
    if axis is None:
        x, axis = ravel(x), 0
    place = canonical_axis("insert", axis, x.ndim)
    n = x.shape[place]
    if isinstance(obj, slice):
        obj = np.arange(*obj.indices(n))
    given = np.asarray(obj)
    if given.size and (given.min() < -n or given.max() > n):
        raise IndexError(f"insert: index {obj} is out of bounds for size {n}")
    if given.ndim == 0:
        new = moveaxis(reshape(new, (1,) * (x.ndim - new.ndim) + new.shape), 0, place)
    places = np.where(given < 0, given + n, given).ravel()
    count = int(places.size)
    if count == 1:
        count = new.shape[place] if new.ndim == x.ndim else max(new.size, 1)
        places = np.repeat(places, count)
    shape = (*x.shape[:place], count, *x.shape[place + 1 :])
    new = broadcast_to(new, shape).astype(x.dtype)
    order = np.argsort(places, kind="stable")
    targets = places[order] + np.arange(count)
    source = np.zeros(n + count, int)
    rest = np.ones(n + count, bool)
    rest[targets] = False
    source[targets] = n + order
    source[rest] = np.arange(n)
    window = (slice(None),) * place
    return concatenate((x, new), place)[(*window, source.astype(np.int32))]


def trim_zeros(
    filt: ArrayLike, trim: str = "fb", axis: AxisLike | None = None
) -> Array:
    """`filt` without the zeros at the front ("f") and the back ("b") of each `axis`.

    A part along an axis is cut off if all its elements are zero; by default of all
    axes, which leaves the smallest block that holds all that is not zero.

    Raises:
        AbstractValueError: `filt` is traced, since the shape depends on its values.
    """
    x = as_array("trim_zeros", filt)
    axes = tuple(range(x.ndim))
    if axis is not None:
        axes = canonical_axes("trim_zeros", axis, x.ndim)
    values = (
        x.concrete("trim_zeros: the shape of the result, which depends on filt,")
        if isinstance(x, Tracer)
        else np.asarray(x)
    )
    ends = trim.lower()
    for place in axes if "f" in ends or "b" in ends else ():
        others = tuple([i for i in range(x.ndim) if i != place])
        kept = np.flatnonzero((values != 0).any(others))
        start, stop = 0, x.shape[place]
        if not kept.size:
            stop = 0
        else:
            start = int(kept[0]) if "f" in ends else start
            stop = int(kept[-1]) + 1 if "b" in ends else stop
        x = slice_in_dim(x, start, stop, axis=place)
    return x


# ---------------------------------------------------------------------- diagonals


def main_diagonal(x: Array, axis1: int, axis2: int) -> Array:
    """The elements whose indices along two dimensions are equal, as last dimension.

    In a square of side n read row by row, they stand n + 1 apart.
    """
    rest = [i for i in range(x.ndim) if i not in (axis1, axis2)]
    x = transpose(x, (*rest, axis1, axis2))
    n = min(x.shape[-2:])
    square = x[..., :n, :n]
    flat = reshape(square, (*x.shape[:-2], n * n))
    return flat[..., :: n + 1] if n else flat


@remembered
def diagonal(a: ArrayLike, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array:
    """The diagonal of a plane, `offset` right of the main one, as last dimension.

    Raises:
        ValueError: the axes are equal or do not exist.
    """
    x = as_array("diagonal", a)
    first, second = canonical_axes("diagonal", (axis1, axis2), x.ndim)
    rest = [i for i in range(x.ndim) if i not in (first, second)]
    x = transpose(x, (*rest, first, second))
    k = index(offset)
    part = x[..., max(-k, 0) :, max(k, 0) :]
    return main_diagonal(part, x.ndim - 2, x.ndim - 1)


@remembered
def trace(
    a: ArrayLike,
    offset: int = 0,
    axis1: int = 0,
    axis2: int = 1,
    dtype: DTypeLike | None = None,
    out: None = None,
) -> Array:
    """The sum of a diagonal."""
    no_out("trace", out)
    wanted = chosen_dtype("trace", dtype)
    return diagonal(a, offset, axis1, axis2).sum(axis=-1, dtype=wanted)
