"""Floor 1: what goes, what stays and what moves when an operation has axes.

One idea: reductions, scans and sorts name dimensions of one element; these functions
say where they are in the result, and in a stack of elements::

    without((2, 3, 4), (1,))    # (2, 4)
    beside((0, 1), 1)           # (0, 2)
"""

from collections.abc import Sequence

from verax.ir.avals import Shape
from verax.ir.meshes import says_nothing


def without(shape: Shape, axes: Sequence[int]) -> Shape:
    """The dimensions of `shape` that `axes` leaves.

    >>> without((2, 3, 4), (1,))
    (2, 4)
    """
    return tuple(size for i, size in enumerate(shape) if i not in axes)


def kept(rank: int, axes: Sequence[int]) -> Shape:
    """The places of the dimensions that `axes` leaves.

    >>> kept(3, (1,))
    (0, 2)
    """
    return tuple(i for i in range(rank) if i not in axes)


def beside(axes: Sequence[int], batch_axis: int) -> Shape:
    """`axes` of one element, in an array with a batch dimension at `batch_axis`.

    >>> beside((0, 1), 1)
    (0, 2)
    """
    return tuple(axis + (axis >= batch_axis) for axis in axes)


def unsharded(name: str, out_sharding: object) -> None:
    """Raise if a sharding of the result is requested that says something."""
    if not says_nothing(out_sharding):
        raise ValueError(
            f"{name} does not take out_sharding; use "
            "verax.lax.with_sharding_constraint on its result"
        )
