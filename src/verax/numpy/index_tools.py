"""Floor 6: arrays written between brackets, indices of masks, and what can be iterated.

One idea: a slice between brackets is a range, and what stands side by side is joined::

    r_[0:4, 10, x], c_[x, y], mask_indices(3, tril)
"""

from collections.abc import Callable
from typing import Any

from verax.numpy.arguments.arguments import ArrayLike, as_array
from verax.numpy.creation.creation import asarray
from verax.numpy.creation.filling import ones
from verax.numpy.ranges.grids import axis_of
from verax.numpy.ranges.ranges import arange
from verax.numpy.searching.where_nonzero import nonzero
from verax.numpy.shaping.joining import concatenate
from verax.numpy.shaping.shapes import reshape, swapaxes, transpose
from verax.rules.values.array import Array


class Joiner:
    """`r_` and `c_`: what stands between brackets is joined along a dimension.

    `axis` is that dimension, `rank` the least number of dimensions, and `start` the
    place of an operand's own dimensions among them. A first entry "axis,rank,start"
    says all three; "r" and "c" make a row or a column.
    """

    def __init__(self, axis: int, rank: int, start: int) -> None:
        self.axis = axis
        self.rank = rank
        self.start = start

    def __getitem__(self, key: Any) -> Array:
        items = list(key) if isinstance(key, tuple) else [key]
        settings, matrix = (self.axis, self.rank, self.start), ""
        if items and isinstance(items[0], str):
            directive = items.pop(0).strip()
            if directive in ("r", "c"):
                matrix = directive
            else:
                settings = self.directed(directive)
        if any(isinstance(item, str) for item in items):
            raise ValueError("r_: a directive has to be the first entry")
        axis, rank, start = settings
        joined = concatenate([piece(item, rank, start) for item in items], axis)
        if matrix and joined.ndim == 1:
            joined = reshape(joined, (1, -1) if matrix == "r" else (-1, 1))
        return joined

    def directed(self, directive: str) -> tuple[int, int, int]:
        """The axis, rank and start that a directive says, the rest by default."""
        try:
            numbers = [int(part) for part in directive.split(",")]
        except ValueError:
            numbers = []
        if not 1 <= len(numbers) <= 3:
            raise ValueError(
                f"r_: {directive!r} is no directive; write 'axis', 'axis,rank', "
                "'axis,rank,start', 'r' or 'c'"
            )
        settings = (self.axis, self.rank, self.start)
        axis, rank, start = (*numbers, *settings[len(numbers) :])
        return axis, rank, start


def piece(item: Any, rank: int, start: int) -> Array:
    """One entry as an array of at least `rank` dimensions."""
    if isinstance(item, slice):
        found = arange(item.start) if item.stop is None else axis_of(item)
        own = found.ndim
        if own < rank:
            found = reshape(found, (1,) * (rank - own) + found.shape)
            found = found if start == -1 else swapaxes(found, -1, start)
        return found
    found = asarray(item)
    own = found.ndim
    if own >= rank:
        return found
    found = reshape(found, (1,) * (rank - own) + found.shape)
    if start == -1 or not own:
        return found
    added = rank - own
    place = start + added + 1 if start < 0 else start
    order = list(range(rank))
    return transpose(found, order[:place] + order[added:] + order[place:added])


r_ = Joiner(0, 1, -1)
c_ = Joiner(-1, 2, 0)


def mask_indices(
    n: int,
    mask_func: Callable[..., ArrayLike],
    k: int = 0,
    *,
    size: int | None = None,
) -> tuple[Array, Array]:
    """Rows and columns of the elements that `mask_func` leaves of an n x n matrix.

    `mask_func(ones, k)` is like `triu` and `tril`. A traced mask needs `size`.
    """
    mask = as_array("mask_indices", mask_func(ones((n, n)), k))
    rows, columns = nonzero(mask, size=size)
    return rows, columns


def iterable(y: object) -> bool:
    """Whether `y` can be iterated over; arrays without dimensions cannot."""
    try:
        iter(y)  # type: ignore[call-overload]  # it is asked whether this works
    except TypeError:
        return False
    return True
