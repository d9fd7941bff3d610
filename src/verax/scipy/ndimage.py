"""Floor 6: `verax.scipy.ndimage`: images between their pixels.

One idea: along each dimension a point has one or two neighbours with weights; the value
is the sum over all combinations::

    map_coordinates(image, [rows, columns], order=1, mode="nearest")
"""

import itertools
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from verax import numpy as vnp
from verax.ir.dtypes import is_inexact
from verax.numpy import where
from verax.numpy.arguments.arguments import ArrayLike, as_array, constant_of
from verax.rules.values.array import Array

__all__ = ["map_coordinates"]


def mirrored(index: Array, size: int) -> Array:
    """Reflected at the centres of the outermost pixels."""
    last = max(size - 1, 1)
    out = abs((index + last) % (2 * last) - last)
    return out if size > 1 else out * 0


def reflected(index: Array, size: int) -> Array:
    """Reflected at the edges of the outermost pixels."""
    period = 2 * size
    out: Array = vnp.minimum(index % period, (-index - 1) % period)
    return out


INSIDE: Final[dict[str, Callable[[Array, int], Array]]] = {
    "constant": lambda index, size: vnp.clip(index, 0, size - 1),
    "nearest": lambda index, size: vnp.clip(index, 0, size - 1),
    "wrap": lambda index, size: index % size,
    "mirror": mirrored,
    "reflect": reflected,
}


def map_coordinates(
    input: ArrayLike,
    coordinates: Sequence[ArrayLike],
    order: int,
    mode: str = "constant",
    cval: ArrayLike = 0.0,
) -> Array:
    """The values of an array at points between its elements.

    Args:
        input: an array of n dimensions.
        coordinates: n arrays of the same shape, the places along each dimension.
        order: 0 for the nearest element, 1 for linear interpolation.
        mode: what stands outside: "constant" (`cval`), "nearest", "wrap", "mirror" or
            "reflect".
        cval: the constant.

    Returns:
        An array of the points' shape and the input's dtype; integers are rounded.

    Raises:
        NotImplementedError: there is no such mode or order.
        ValueError: there is another number of coordinates.

    >>> map_coordinates(vnp.array([0.0, 10.0]), [vnp.array([0.25, 5.0])], 1).tolist()
    [2.5, 0.0]
    """
    x = as_array("map_coordinates", input)
    parts = list(coordinates)
    check_interpolation(x, len(parts), order, mode)
    places = [as_array("map_coordinates", c, 1) for c in parts]
    outside = as_array("map_coordinates", cval).astype(x.dtype)
    fixed = INSIDE[mode]
    nodes = [
        [(fixed(i, n), (i >= 0) & (i < n), w) for i, w in neighbours(c, order)]
        for c, n in zip(places, x.shape, strict=True)
    ]
    total: Array | float = 0.0
    for corner in itertools.product(*nodes):
        value = x[tuple(index for index, _, _ in corner)]
        if mode == "constant":
            valid = corner[0][1]
            for _, more, _ in corner[1:]:
                valid = valid & more
            value = where(valid, value, outside)
        for _, _, weight in corner:
            value = value if weight is None else weight * value
        total = value + total
    assert isinstance(total, Array)
    if not is_inexact(x.dtype) and is_inexact(total.dtype):
        total = away_from_zero(total)
    return total.astype(x.dtype)


def check_interpolation(x: Array, count: int, order: int, mode: str) -> None:
    """Raise unless the arguments of `map_coordinates` have a meaning."""
    if mode not in INSIDE:
        raise NotImplementedError(
            f"map_coordinates does not yet support mode {mode!r}: it must be one of "
            f"{tuple(INSIDE)}"
        )
    if order not in (0, 1):
        raise NotImplementedError(
            f"map_coordinates requires order<=1, 0 or 1, not {order!r}"
        )
    if count != x.ndim or not count:
        raise ValueError(
            f"coordinates must be a sequence of length {x.ndim}, not {count}: "
            "map_coordinates takes one array of coordinates for each dimension of "
            f"{x.aval}"
        )


def neighbours(c: Array, order: int) -> list[tuple[Array, Array | None]]:
    """Indices of the elements around, with weights; None for a weight of one."""
    if not is_inexact(c.dtype):
        return [(c, None)]
    if order == 0:
        return [(away_from_zero(c).astype(np.int32), None)]
    lower = vnp.floor(c)
    index, part = lower.astype(np.int32), c - lower
    return [(index, 1 - part), (index + 1, part)]


def away_from_zero(x: Array) -> Array:
    """The nearest integer, of two equally near ones the larger in size."""
    half = constant_of(0.5, x.dtype)
    return vnp.sign(x) * vnp.floor(abs(x) + half)
