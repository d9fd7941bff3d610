"""Floor 6: elements in other places: flipped, turned and rolled.

One idea: what a place is made of is known while tracing, so all of these are slices,
reversals and joins, and no gather::

    flip(x, 0), roll(x, 3), rot90(x)
"""

from operator import index
from typing import Any

from verax.backend.eager.composites import remembered
from verax.numpy.arguments.arguments import (
    ArrayLike,
    array_behind,
    as_array,
    canonical_axes,
    canonical_axis,
    is_single,
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
from verax.ops.structure.joining import (
    rev,
    split as parts_of,
)
from verax.rules.rows.builder import Tracer
from verax.rules.values.array import Array
from verax.rules.values.sizes import one_or_more


@remembered
def flip(m: ArrayLike, axis: AxisLike | None = None) -> Array:
    """The elements in reverse order along some dimensions.

    Args:
        m: an array or scalar.
        axis: the dimension or dimensions to reverse; None for all of them.

    Returns:
        An array of the shape and dtype of `m`.

    Raises:
        ValueError: a dimension does not exist or stands twice.

    >>> import verax.numpy as vnp
    >>> x = vnp.array([[1, 2], [3, 4]])
    >>> vnp.flip(x).tolist(), vnp.flip(x, axis=0).tolist()
    ([[4, 3], [2, 1]], [[3, 4], [1, 2]])
    """
    x = as_array("flip", m)
    axes = range(x.ndim) if axis is None else canonical_axes("flip", axis, x.ndim)
    return rev(x, tuple(axes))


def fliplr(m: ArrayLike) -> Array:
    """The columns in reverse order.

    Args:
        m: an array with at least two dimensions, of which the second is reversed.

    Returns:
        An array of the shape and dtype of `m`.

    Raises:
        ValueError: there are fewer than two dimensions.

    >>> import verax.numpy as vnp
    >>> vnp.fliplr(vnp.array([[1, 2], [3, 4]]))
    Array([[2, 1],
           [4, 3]], dtype=int32)
    """
    x = as_array("fliplr", m)
    if x.ndim < 2:
        raise ValueError(
            f"fliplr takes an array with at least two dimensions, not {x.ndim}"
        )
    return rev(x, (1,))


def flipud(m: ArrayLike) -> Array:
    """The rows in reverse order.

    Args:
        m: an array with at least one dimension, of which the first is reversed.

    Returns:
        An array of the shape and dtype of `m`.

    Raises:
        ValueError: there are no dimensions.

    >>> import verax.numpy as vnp
    >>> vnp.flipud(vnp.array([[1, 2], [3, 4]]))
    Array([[3, 4],
           [1, 2]], dtype=int32)
    """
    x = as_array("flipud", m)
    if not x.ndim:
        raise ValueError("flipud takes an array with at least one dimension")
    return rev(x, (0,))


@remembered
def rot90(m: ArrayLike, k: int = 1, axes: tuple[int, int] = (0, 1)) -> Array:
    """A plane rotated by multiples of 90°, from the first of `axes` towards the second.

    Args:
        m: an array with at least two dimensions.
        k: how many quarters of a turn, known while tracing; 1 by default, and negative
            ones turn back.
        axes: the two dimensions of the plane; by default the first two, where one turn
            is counterclockwise.

    Returns:
        An array in the dtype of `m`; for odd `k`, the sizes of the two dimensions are
        swapped.

    Raises:
        ValueError: `axes` are not two different dimensions.

    >>> import verax.numpy as vnp
    >>> x = vnp.array([[1, 2], [3, 4]])
    >>> vnp.rot90(x).tolist(), vnp.rot90(x, k=-1).tolist()
    ([[2, 4], [1, 3]], [[3, 1], [4, 2]])
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

    Args:
        a: an array or scalar.
        shift: by how many places, an integer, or a sequence with one for each of
            `axis`; positive towards higher indices. It may be traced.
        axis: the dimension or dimensions to work along. None, the default, moves the
            elements of the flat array.

    Returns:
        An array of the shape and dtype of `a`.

    Raises:
        ValueError: the numbers of shifts and axes differ.

    >>> import verax.numpy as vnp
    >>> x = vnp.array([[1, 2, 3], [4, 5, 6]])
    >>> vnp.roll(x, 1).tolist()
    [[6, 1, 2], [3, 4, 5]]
    >>> vnp.roll(x, (1, -1), axis=(0, 1)).tolist()
    [[5, 6, 4], [2, 3, 1]]
    """
    x, shift = as_array("roll", a), array_behind(shift)
    if axis is None:
        return reshape(roll(ravel(x), shift, 0), x.shape)
    several = one_or_more(axis)
    axes = [canonical_axis("roll", i, x.ndim) for i in several]
    shifts = [shift] * len(axes) if is_single(shift) else list(shift)
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
    return concatenate(parts_of(x, (start, n - start), axis)[::-1], axis)
