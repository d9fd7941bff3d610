"""Floor 6: parts of an array taken out or put in.

One idea: what stays or comes between is known by position, so the result is runs of the
old parts, joined, or one gather of them::

    delete(x, [0, 2]), insert(x, 1, values, axis=0), trim_zeros(x)
"""

import numpy as np

from verax.ir.dtypes import DType, as_dtype, int32, is_bool, is_integer
from verax.numpy.arguments.arguments import (
    ArrayLike,
    array_behind,
    as_array,
    canonical_axes,
    canonical_axis,
    shown,
)
from verax.numpy.elementwise.arithmetic import clip
from verax.numpy.elementwise.comparison import equal, less, less_equal
from verax.numpy.searching.sorting import argsort, sort
from verax.numpy.searching.where_nonzero import where
from verax.numpy.shaping.joining import concatenate
from verax.numpy.shaping.shapes import (
    AxisLike,
    broadcast_to,
    moveaxis,
    ravel,
    reshape,
)
from verax.ops.elementwise.convert import convert
from verax.ops.structure.create import iota
from verax.ops.structure.slicing import slice_in_dim
from verax.rules.rows.builder import Tracer
from verax.rules.values.array import Array
from verax.rules.values.sizes import AxisError


def kept_places(name: str, obj: object, n: int) -> np.ndarray:
    """Flags of the `n` places that an int, a slice, ints or booleans name."""
    hit = np.zeros(n, bool)
    if isinstance(obj, slice):
        hit[obj] = True
        return hit
    places = np.asarray(obj)
    if places.size and places.dtype.kind not in "biu":
        raise ValueError(f"{name}: places are integers or booleans, not {obj}")
    if places.dtype == bool:
        if places.shape != (n,):
            raise ValueError(
                f"{name}: a mask for size {n} must have shape ({n},), not "
                f"{places.shape}"
            )
        return places
    if places.size and (places.min() < -n or places.max() >= n):
        raise AxisError(f"{name}: index {obj} is out of bounds for size {n}")
    hit[places.astype(int)] = True
    return hit


def delete(
    arr: ArrayLike,
    obj: object,
    axis: int | None = None,
    *,
    assume_unique_indices: bool = False,
) -> Array:
    """`arr` without the parts at the places `obj`.

    Places are concrete, unless they are integers with `assume_unique_indices`: then
    they may be traced, and none may come twice; those beyond an end delete as many
    parts from that end, since the shape of the result is fixed.

    Args:
        arr: an array or scalar.
        obj: the places: an integer, integers, a slice, or a vector with one boolean for
            each part. Negative integers count from the end.
        axis: the dimension to work along; None for the flat array.
        assume_unique_indices: whether traced integers may be given, all different.

    Returns:
        What is left, in the dtype of `arr`, and of its shape but for `axis`.

    Raises:
        IndexError: a concrete place lies outside.
        ValueError: a concrete place is neither an integer nor a boolean, or the
            booleans are not one for each part.
        AbstractValueError: places are traced that are not assumed to be unique.

    >>> import verax.numpy as vnp
    >>> x = vnp.array([[1, 2, 3], [4, 5, 6]])
    >>> vnp.delete(x, vnp.array([0, -1]), axis=1).tolist()
    [[2], [5]]
    >>> vnp.delete(x, slice(None, None, 2)).tolist()
    [2, 4, 6]
    """
    x, obj = as_array("delete", arr), array_behind(obj)
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
    shift = less_equal(before[:, None], left[None]).sum(0, dtype=int32)
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
    arr: ArrayLike, obj: object, values: ArrayLike, axis: int | None = None
) -> Array:
    """`arr` with `values` put in before the places `obj`.

    Traced places outside mean the nearest end.

    Args:
        arr: an array or scalar.
        obj: the places in `arr` as it is: an integer, a vector of integers, or a slice;
            the size of the axis stands for its end, and negative integers count from
            there. Booleans are refused: `flatnonzero` has the places of a mask.
        values: an array or scalar, converted to the dtype of `arr`, that broadcasts to
            the parts put in. One place takes all of them, one after the other.
        axis: the dimension to work along; None for the flat array.

    Returns:
        A longer array, in the dtype of `arr`, and of its shape but for `axis`.

    Raises:
        IndexError: a concrete place lies outside.
        ValueError: the places are no integers or have several dimensions, `values` do
            not broadcast to the parts, or there is no such axis.

    >>> import verax.numpy as vnp
    >>> x = vnp.array([1, 2, 3])
    >>> vnp.insert(x, 1, vnp.array([8, 9])).tolist()
    [1, 8, 9, 2, 3]
    >>> vnp.insert(x, vnp.array([0, 3]), vnp.array([8, 9])).tolist()
    [8, 1, 2, 3, 9]
    """
    x, new = as_array("insert", arr), as_array("insert", values, 2)
    if axis is None:
        x, axis = ravel(x), 0
    place = canonical_axis("insert", axis, x.ndim)
    n, obj = x.shape[place], array_behind(obj)
    if isinstance(obj, slice):
        obj = np.arange(*obj.indices(n))
    if isinstance(obj, Tracer):
        check_places(obj.dtype, obj.ndim)
        return traced_insert(x, obj, new, place)
    given = np.asarray(obj)
    if not given.size and not isinstance(obj, Array):
        given = given.astype(int)  # NumPy takes an empty list for floats
    check_places(as_dtype(given.dtype), given.ndim)
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
    new = convert(broadcast_to(new, shape), x.dtype, x.weak_type)
    order = np.argsort(places, kind="stable")
    targets = places[order] + np.arange(count)
    source = np.zeros(n + count, int)
    rest = np.ones(n + count, bool)
    rest[targets] = False
    source[targets] = n + order
    source[rest] = np.arange(n)
    window = (slice(None),) * place
    return concatenate((x, new), place)[(*window, source.astype(np.int32))]


def check_places(dtype: DType, rank: int) -> None:
    """Raise a ValueError unless `insert` takes places of this kind."""
    if not is_integer(dtype):
        advice = "; pass flatnonzero(mask), the places of a mask" * is_bool(dtype)
        raise ValueError(f"insert: places are integers, not {dtype}{advice}")
    if rank > 1:
        raise ValueError(
            "insert: places are an integer, a vector or a slice, not an array of "
            f"{rank} dimensions"
        )


def traced_insert(x: Array, obj: Array, new: Array, axis: int) -> Array:
    """`insert` at traced places: which element comes where is computed as well."""
    n = x.shape[axis]
    if obj.ndim == 0:
        new = moveaxis(reshape(new, (1,) * (x.ndim - new.ndim) + new.shape), 0, axis)
    places = ravel(obj).astype(int32)
    places = clip(where(less(places, 0), places + n, places), 0, n)
    count = places.size
    if count == 1:
        count = new.shape[axis] if new.ndim == x.ndim else max(new.size, 1)
        places = broadcast_to(places, (count,))
    shape = (*x.shape[:axis], count, *x.shape[axis + 1 :])
    new = convert(broadcast_to(new, shape), x.dtype, x.weak_type)
    order = argsort(places)
    targets = places[order] + iota(int32, count)
    slots = iota(int32, n + count)
    before = less(targets[None], slots[:, None]).sum(1, dtype=int32)
    fresh = equal(targets[None], slots[:, None]).any(1)
    own = n + order.astype(int32)[before.clip(0, max(count - 1, 0))]
    source = where(fresh, own, slots - before)
    return concatenate((x, new), axis)[(*(slice(None),) * axis, source)]


def trim_zeros(
    filt: ArrayLike, trim: str = "fb", axis: AxisLike | None = None
) -> Array:
    """`filt` without the zeros at the front ("f") and the back ("b") of each `axis`.

    A part along an axis is cut off if all its elements are zero; by default of all
    axes, which leaves the smallest block that holds all that is not zero.

    Args:
        filt: an array or scalar.
        trim: where to cut: "f", "b", or "fb" for both; in capitals it means the same,
            and other letters mean nothing.
        axis: the dimension or dimensions to cut; None for all of them.

    Returns:
        The block that is left, in the dtype of `filt`; size 0 along a cut dimension if
        all is zero.

    Raises:
        TypeError: `trim` is not a string.
        ValueError: there is no such axis.
        AbstractValueError: `filt` is traced, since the shape depends on its values.

    >>> import verax.numpy as vnp
    >>> vnp.trim_zeros(vnp.array([0, 0, 1, 0, 2, 0]), trim="f").tolist()
    [1, 0, 2, 0]
    >>> vnp.trim_zeros(vnp.array([[0, 0, 0], [0, 1, 2]])).tolist()
    [[1, 2]]
    """
    if not isinstance(trim, str):
        raise TypeError(f"trim_zeros: trim must be a string, not {shown(trim)}")
    x = as_array("trim_zeros", filt)
    axes = tuple(range(x.ndim))
    if axis is not None:
        axes = canonical_axes("trim_zeros", axis, x.ndim)
    values = x.numbers("trim_zeros: the shape of the result, which depends on filt,")
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
