"""Floor 6: statistics of samples: the mode, ranks, the error of the mean.

One idea: equal values stand together in a sorted array; the first and the last place
of each run follow by a running maximum and minimum, for all lines at once::

    rankdata([10, 30, 30])             # (first + last) / 2 of each run
"""

from typing import Final, NamedTuple

import numpy as np

from verax import lax, numpy as vnp
from verax.ir.dtypes import is_inexact
from verax.numpy import where
from verax.numpy.arguments.arguments import (
    ArrayLike,
    as_array,
    canonical_axis,
    inexact_array,
)
from verax.rules.values.array import Array

METHODS: Final = ("average", "min", "max", "dense", "ordinal")


class ModeResult(NamedTuple):
    """The most frequent values and how often each occurs."""

    mode: Array
    count: Array  # type: ignore[assignment]  # SciPy's name hides that of tuples


def check_policy(name: str, nan_policy: str, *known: str) -> None:
    """Raise ValueError unless a policy for NaN is known."""
    if nan_policy not in known:
        raise ValueError(
            f"{name}: nan_policy must be {' or '.join(known)}, not {nan_policy!r}; "
            "mask or check NaN values before the call"
        )


def along_last(name: str, a: ArrayLike, axis: int | None) -> tuple[Array, int | None]:
    """An array whose last dimension is the one asked for, and which one that was."""
    x = vnp.atleast_1d(as_array(name, a))
    if axis is None:
        return vnp.ravel(x), None
    place = canonical_axis(name, axis, x.ndim)
    return vnp.moveaxis(x, place, -1), place


def runs(ordered: Array) -> tuple[Array, Array, Array]:
    """The first and last place of each element's run, and where runs begin.

    NaN is equal to NaN here.
    """
    size = ordered.shape[-1]
    before, after = ordered[..., :-1], ordered[..., 1:]
    change = before != after
    if is_inexact(ordered.dtype):
        change = change & ~(vnp.isnan(before) & vnp.isnan(after))
    edge = vnp.ones_like(ordered[..., :1], dtype=bool)
    starts = vnp.concatenate([edge, change], axis=-1)
    ends = vnp.concatenate([change, edge], axis=-1)
    places = vnp.broadcast_to(vnp.arange(size), ordered.shape)
    axis = ordered.ndim - 1
    first = lax.cummax(where(starts, places, 0), axis)
    last = lax.cummin(where(ends, places, size - 1), axis, reverse=True)
    return first, last, starts


def mode(
    a: ArrayLike,
    axis: int | None = 0,
    nan_policy: str = "propagate",
    keepdims: bool = False,
) -> ModeResult:
    """The most frequent value along an axis, the smallest of several, and its count.

    NaN counts as one value. Of an empty line the mode is NaN and the count 0, in floats
    of the default dtype, whatever that of `a`.

    Args:
        a: an array.
        axis: the dimension to work along; 0 by default, None for all elements.
        nan_policy: only "propagate".
        keepdims: whether reduced dimensions stay, with size 1.

    Returns:
        A `ModeResult`: the values `mode`, of the dtype of `a`, and the counts `count`,
        both of the shape of `a` without `axis`.

    Raises:
        ValueError: there is no such axis, or the policy is not "propagate".

    >>> value, count = mode(vnp.array([2, 4, 1, 1, 3, 4, 4]))
    >>> int(value), int(count)
    (4, 3)
    """
    check_policy("mode", nan_policy, "propagate")
    x, place = along_last("mode", a, axis)
    kept = (1,) * as_array("mode", a).ndim if place is None else None
    if x.shape[-1] == 0:
        counts = vnp.zeros(x.shape[:-1])
        values = vnp.full_like(counts, np.nan)
    else:
        ordered = vnp.sort(x, axis=-1)
        first, last, _ = runs(ordered)
        sizes = last - first + 1
        at = vnp.argmax(sizes, axis=-1)[..., None]
        values = vnp.take_along_axis(ordered, at, axis=-1)[..., 0]
        counts = sizes.max(-1)
    if keepdims and kept is not None:
        return ModeResult(vnp.reshape(values, kept), vnp.reshape(counts, kept))
    if keepdims and place is not None:
        return ModeResult(
            vnp.expand_dims(values, place), vnp.expand_dims(counts, place)
        )
    return ModeResult(values, counts)


def rankdata(
    a: ArrayLike,
    method: str = "average",
    *,
    axis: int | None = None,
    nan_policy: str = "propagate",
) -> Array:
    """Ranks from 1 on, as floats, of all elements or along an axis.

    A line with a NaN has only NaN ranks.

    Args:
        a: an array.
        method: what equal values get: the "average" of their ranks, the smallest
            ("min") or largest ("max"), one rank without gaps ("dense"), or ranks in
            order ("ordinal").
        axis: the dimension to work along; None to rank all elements together.
        nan_policy: only "propagate".

    Returns:
        Floats of the default dtype and of the shape of `a`, or flat if `axis` is None.

    Raises:
        ValueError: there is no such method or axis, or the policy is not "propagate".

    >>> rankdata(vnp.array([1, 3, 2, 3])).tolist()
    [1.0, 3.5, 2.0, 3.5]
    """
    check_policy("rankdata", nan_policy, "propagate")
    if method not in METHODS:
        raise ValueError(f"rankdata: method must be one of {METHODS}, not {method!r}")
    x, place = along_last("rankdata", a, axis)
    dtype = vnp.zeros(0).dtype
    if not x.size:
        return vnp.zeros(x.shape if place is None else np.shape(a), dtype)
    order = vnp.argsort(x, axis=-1, stable=True)
    back = vnp.argsort(order, axis=-1, stable=True)
    if method == "ordinal":
        ranks = (back + 1).astype(dtype)
    else:
        first, last, starts = runs(vnp.take_along_axis(x, order, axis=-1))
        array = {
            "average": lambda: (first + last).astype(dtype) / 2 + 1,
            "min": lambda: (first + 1).astype(dtype),
            "max": lambda: (last + 1).astype(dtype),
            "dense": lambda: vnp.cumsum(starts, axis=-1).astype(dtype),
        }[method]()
        ranks = vnp.take_along_axis(array, back, axis=-1)
    if is_inexact(x.dtype):
        ranks = where(vnp.isnan(x).any(-1, keepdims=True), np.nan, ranks)
    return ranks if place is None else vnp.moveaxis(ranks, -1, place)


def sem(
    a: ArrayLike,
    axis: int | None = 0,
    ddof: int = 1,
    nan_policy: str = "propagate",
    *,
    keepdims: bool = False,
) -> Array:
    """The standard error of the mean, std / √n.

    Args:
        a: an array; integers are taken as floats.
        axis: the dimension to reduce; 0 by default, None for all of them.
        ddof: how much less than the number of elements the sum of squares is divided
            by; 1 by default.
        nan_policy: "propagate", or "omit" to take only the elements that are not NaN.
        keepdims: whether reduced dimensions stay, with size 1.

    Returns:
        Floats of the shape of `a` without `axis`.

    Raises:
        ValueError: there is no such axis or policy.

    >>> round(float(sem(vnp.array([2.0, 4.0, 1.0, 1.0]))), 4)
    0.7071
    """
    check_policy("sem", nan_policy, "propagate", "omit")
    x = inexact_array("sem", a)
    if nan_policy == "omit":
        spread = vnp.nanstd(x, axis, ddof=ddof, keepdims=keepdims)
        count = (~vnp.isnan(x)).sum(axis, keepdims=keepdims)
        return spread / vnp.sqrt(count).astype(spread.dtype)
    size = x.size if axis is None else x.shape[canonical_axis("sem", axis, x.ndim)]
    return x.std(axis, ddof=ddof, keepdims=keepdims) / float(np.sqrt(size))
