"""Floor 6: arrays repeated, as a whole or element by element.

One idea: equal counts are a broadcast; others need the place from which each element
of the result comes::

    tile(x, 2), repeat(x, 2), repeat(x, [1, 0, 3])
"""

from collections.abc import Sequence
from operator import index

import numpy as np

from verax.ir.avals import Shape
from verax.numpy.arguments.arguments import (
    ArrayLike,
    as_array,
    canonical_axis,
    is_single,
)
from verax.numpy.creation.creation import as_values
from verax.numpy.shaping.joining import leaves
from verax.numpy.shaping.shapes import (
    broadcast_to,
    ravel,
    reshape,
)
from verax.ops.elementwise.convert import convert
from verax.ops.structure.reshard import call_sharded, check_whole
from verax.rules.rows.builder import Tracer
from verax.rules.values.array import Array
from verax.rules.values.sizes import ShapeError, as_size, one_or_more


def tile(A: ArrayLike, reps: int | Sequence[int]) -> Array:
    """`A` repeated as a whole, `reps` times along each of the last dimensions.

    Args:
        A: an array or scalar.
        reps: an integer, or a sequence with one for each of the last dimensions. If
            these are more than `A` has, new ones of size 1 stand in front.

    Returns:
        An array in the dtype of `A`, whose sizes are those of `A` times `reps`.

    Raises:
        ShardingTypeError: an explicit axis splits a dimension along which `A` is
            repeated.
        ValueError: a number in `reps` is negative.

    >>> import verax.numpy as vnp
    >>> vnp.tile(vnp.array([1, 2]), 2)
    Array([1, 2, 1, 2], dtype=int32)
    >>> vnp.tile(vnp.array([1, 2]), (2, 1))
    Array([[1, 2],
           [1, 2]], dtype=int32)
    """
    x = as_array("tile", A)
    times = not_negative("tile", "reps", *one_or_more(reps))
    rank = max(x.ndim, len(times))
    times = (1,) * (rank - len(times)) + times
    own = (1,) * (rank - x.ndim) + x.shape
    if all(n == 1 for n in times):
        return reshape(x, own)
    repeated = [i for i, n in enumerate(times[rank - x.ndim :]) if n != 1]
    check_whole(
        x.aval,
        repeated,
        "tile: A cannot be sharded where its tiling is non-trivial, on axis",
    )
    grown = [n for pair in zip([1] * rank, own, strict=True) for n in pair]
    target = [n for pair in zip(times, own, strict=True) for n in pair]
    wide = broadcast_to(reshape(x, grown), target)
    return reshape(wide, [a * b for a, b in zip(times, own, strict=True)])


def not_negative(name: str, argument: str, *counts: int) -> Shape:
    """The counts.

    Raises:
        ValueError: one is negative.
    """
    for n in counts:
        if n < 0:
            raise ShapeError(f"{name}: {argument} must not be negative, not {n}")
    return counts


def repeat(
    a: ArrayLike,
    repeats: object,
    axis: int | None = None,
    *,
    total_repeat_length: int | None = None,
    out_sharding: object = None,
) -> Array:
    """Each element, or each part along a dimension, repeated.

    A traced `repeats` needs `total_repeat_length`.

    Args:
        a: an array or scalar.
        repeats: how often each part is repeated: an integer, or a vector with one for
            each part, or with one for all.
        axis: the dimension to work along; None for the flat array, and the default.
        total_repeat_length: the size of the result along `axis`: what is more is cut
            off, and what is less is filled with the last part. None for the sum of
            `repeats`.
        out_sharding: how the result is split over an explicit mesh; None leaves it to
            the compiler.

    Returns:
        An array in the dtype of `a`, with another size along `axis`.

    Raises:
        ValueError: the numbers of repeats and parts differ, or one is negative.

    >>> import verax.numpy as vnp
    >>> x = vnp.array([1, 2, 3])
    >>> vnp.repeat(x, vnp.array([1, 0, 2]))
    Array([1, 3, 3], dtype=int32)
    >>> vnp.repeat(x, vnp.array([1, 0, 2]), total_repeat_length=5)
    Array([1, 3, 3, 3, 3], dtype=int32)
    """
    if out_sharding is not None:
        return call_sharded(repeat, locals())
    x = as_array("repeat", a)
    if axis is None:
        x, axis = ravel(x), 0
    elif not x.ndim:
        x = reshape(x, (1,))
    place = canonical_axis("repeat", axis, x.ndim)
    n = x.shape[place]
    if total_repeat_length is None and is_single(repeats):
        (times,) = not_negative("repeat", "repeats", as_size(repeats))
        return repeat_evenly(x, times, place)
    known_counts = not any(isinstance(leaf, Tracer) for leaf in leaves(repeats))
    counts = np.asarray(repeats) if known_counts else as_values("repeat", repeats, None)
    if counts.ndim > 1 or (counts.ndim and counts.shape[0] not in (1, n)):
        raise ValueError(
            f"repeat: repeats must have 1 or {n} elements, not shape {counts.shape}"
        )
    if total_repeat_length is None:
        if isinstance(counts, Array):
            counts = counts.concrete("repeat without total_repeat_length=...")
        known = np.broadcast_to(counts, (n,))
        not_negative("repeat", "repeats", known.min(initial=0))
        return take_parts(x, np.repeat(np.arange(n), known), place)
    (total,) = not_negative("repeat", "total_repeat_length", index(total_repeat_length))
    return take_parts(x, positions(counts, n, total), place)


def repeat_evenly(x: Array, times: int, axis: int) -> Array:
    """Each part along `axis` repeated as often."""
    before, n, after = x.shape[:axis], x.shape[axis], x.shape[axis + 1 :]
    wide = broadcast_to(
        reshape(x, (*before, n, 1, *after)), (*before, n, times, *after)
    )
    return reshape(wide, (*before, n * times, *after))


def take_parts(x: Array, places: object, axis: int) -> Array:
    return x[(*(slice(None),) * axis, places)]


def positions(counts: ArrayLike, n: int, total: int) -> Array:
    """For each of `total` places, the number of the part that is repeated there."""
    counts = broadcast_to(as_array("repeat", counts), (n,))
    ends = counts.cumsum()
    zeros = broadcast_to(np.int32(0), (total,))
    # A one at the end of each part begins the next.
    steps = zeros.at[ends].add(1, mode="drop")
    return convert(steps.cumsum(), np.dtype(np.int32)).clip(0, max(n - 1, 0))
