"""Floor 6: elements in other places: flipped, rolled, cut out, put in, diagonals.

One idea: what a place is made of is known while tracing, so all of these are slices,
reversals and joins, and no gather::

    flip(x, 0), roll(x, 3), rot90(x), diagonal(x), delete(x, 1), insert(x, 1, 0.0)
"""

from operator import index
from typing import Any

import numpy as np

from verax.backend.eager.composites import remembered
from verax.ir.dtypes import DTypeLike
from verax.numpy.arguments.arguments import (
    ArrayLike,
    as_array,
    canonical_axes,
    canonical_axis,
    chosen_dtype,
    no_out,
)
from verax.numpy.elementwise.division import remainder
from verax.numpy.shaping.joining import concatenate
from verax.numpy.shaping.shapes import (
    AxisLike,
    ravel,
    reshape,
    transpose,
)
from verax.ops.indexing.dynamic_slice import dynamic_slice_in_dim
from verax.ops.structure.joining import rev
from verax.ops.structure.slicing import slice_in_dim
from verax.rules.rows.builder import Tracer
from verax.rules.values.array import Array
from verax.rules.values.sizes import kept, one_or_more

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
        raise ValueError(
            f"fliplr takes an array with at least two dimensions, not {x.ndim}"
        )
    return rev(x, (1,))


def flipud(m: ArrayLike) -> Array:
    """The rows in reverse order.

    Raises:
        ValueError: there are no dimensions.
    """
    x = as_array("flipud", m)
    if not x.ndim:
        raise ValueError("flipud takes an array with at least one dimension")
    return rev(x, (0,))


@remembered
def rot90(m: ArrayLike, k: int = 1, axes: tuple[int, int] = (0, 1)) -> Array:
    """A plane rotated by `k` times 90°, from the first of `axes` towards the second.

    Raises:
        ValueError: `axes` are not two different dimensions.
    """
    x = as_array("rot90", m)
    if x.ndim < 2:
        raise ValueError(
            "rot90 requires its first argument to have ndim at least two, but got "
            f"first argument of {x.aval}"
        )
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
    """The elements moved by `shift`; those moved past one end come in at the other.

    `shift` may be traced.

    Raises:
        ValueError: the numbers of shifts and axes differ.
    """
    x = as_array("roll", a)
    if axis is None:
        return reshape(roll(ravel(x), shift, 0), x.shape)
    several = one_or_more(axis)
    axes = [canonical_axis("roll", i, x.ndim) for i in several]
    shifts = list(shift) if np.ndim(shift) else [shift] * len(axes)
    if len(axes) == 1 and len(shifts) > 1:
        axes = axes * len(shifts)
    if len(shifts) != len(axes):
        raise ValueError(f"roll: got {len(shifts)} shifts for {len(axes)} axes")
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


# ---------------------------------------------------------------------- diagonals


def main_diagonal(x: Array, axis1: int, axis2: int) -> Array:
    """The elements whose indices along two dimensions are equal, as last dimension.

    In a square of side n read row by row, they stand n + 1 apart.
    """
    x = transpose(x, (*kept(x.ndim, (axis1, axis2)), axis1, axis2))
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
    x = transpose(x, (*kept(x.ndim, (first, second)), first, second))
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
