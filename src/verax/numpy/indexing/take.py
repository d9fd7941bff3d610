"""Floor 6: elements by their indices: take, put, and along an axis.

One idea: they are gathers and scatters whose windows are whole rows; out of bounds,
`take` reads NaN or the like unless `mode` says otherwise, and `put` writes nothing::

    take(x, rows, axis=0), take_along_axis(x, order), put(x, 3, 0.0, inplace=False)
"""

from math import prod
from typing import Any, NamedTuple

import numpy as np

from verax.backend.arrays.concrete import beside
from verax.backend.eager.composites import OneGo, in_numpy, remembered
from verax.ir.avals import Shape, ShapedArray, bit_width, smaller_size
from verax.ir.dtypes import DType, is_integer
from verax.numpy.arguments.arguments import (
    ArrayLike,
    as_array,
    broadcast_shapes_of,
    canonical_axis,
    no_out,
    operand_aval,
)
from verax.numpy.elementwise.division import remainder
from verax.numpy.indexing.getitem_and_at import at
from verax.numpy.indexing.vectors import gather_indices, wrapped
from verax.numpy.shaping.shapes import broadcast_to, ravel, reshape, squeeze
from verax.ops.indexing.gather import gather
from verax.ops.indexing.geometry import GatherDimensionNumbers, GatherScatterMode
from verax.ops.structure.create import zeros
from verax.ops.structure.shape import reshape as reshape_to
from verax.rules.rows.builder import Tracer
from verax.rules.values.array import Array
from verax.rules.values.memo import pure

FILL = GatherScatterMode.FILL_OR_DROP
CLIP = GatherScatterMode.CLIP
PROMISE = GatherScatterMode.PROMISE_IN_BOUNDS


def integer_indices(name: str, indices: ArrayLike, position: int = 1) -> Array:
    """Indices as an array of integers.

    Raises:
        TypeError: they are not an array, or of another dtype.
    """
    aval = operand_aval(name, position, indices)
    if not is_integer(aval.dtype):
        raise TypeError(f"{name} indices must be of integer type, got {aval.dtype}")
    return as_array(name, indices, position)


def line_axis(name: str, x: Array, axis: int | None) -> tuple[Array, int]:
    """The array and the dimension to take along: all elements in one row if None."""
    if axis is None:
        return ravel(x), 0
    return x, canonical_axis(name, axis, x.ndim)


def check_rank(name: str, x: Array, places: Array) -> None:
    """Raise ValueError unless array and indices have the same number of dimensions."""
    if x.ndim != places.ndim:
        raise ValueError(
            f"{name}: the array has {x.ndim} dimensions and the indices have "
            f"{places.ndim}; they must have the same number"
        )


@pure(1 << 10)
def take_dims(rank: int, axis: int, batch: int) -> GatherDimensionNumbers:
    """A gather of rows: the indices' dimensions replace `axis`."""
    offsets = (*range(axis), *range(axis + batch, rank + batch - 1))
    return GatherDimensionNumbers(offsets, (axis,), (axis,))


@remembered
def take(
    a: ArrayLike,
    indices: ArrayLike,
    axis: int | None = None,
    out: None = None,
    mode: str | None = None,
    unique_indices: bool = False,
    indices_are_sorted: bool = False,
    fill_value: object = None,
) -> Array:
    """The parts of `a` at `indices` along `axis`, or of the flat array.

    `mode` is "fill" (the default: out of bounds is `fill_value`, or NaN, the least
    integer, the largest without sign), "clip", "wrap", "promise_in_bounds" or NumPy's
    "raise", which needs the values of the indices.

    Raises:
        ValueError: there is no such mode or axis.
        IndexError: there is nothing to take from, or the mode is "raise" and an index
            is out of bounds.
        NotImplementedError: the mode is "raise" and the indices are traced.
    """
    no_out("take", out)
    x, places = as_array("take", a), integer_indices("take", indices)
    x, place = line_axis("take", x, axis)
    n = x.shape[place]
    shape = (*x.shape[:place], *places.shape, *x.shape[place + 1 :])
    if not n and 0 not in shape:
        raise IndexError(f"take: dimension {place} of shape {x.shape} has no elements")
    if 0 in shape:
        return beside(zeros(x.aval.with_shape(shape)), x)
    chosen, vectors = take_mode(mode, places, n)
    sizes = (*x.shape[:place], 1, *x.shape[place + 1 :])
    return gather(
        x,
        gather_indices([vectors], places.shape),
        take_dims(x.ndim, place, places.ndim),
        sizes,
        unique_indices=unique_indices,
        indices_are_sorted=indices_are_sorted,
        mode=chosen,
        fill_value=fill_value,
    )


def take_mode(mode: str | None, places: Array, n: int) -> tuple[GatherScatterMode, Any]:
    """The mode of the gather, and the indices as that mode wants them."""
    if mode == "wrap":
        return PROMISE, remainder(places, n)
    if mode == "clip":
        return CLIP, wrapped(places, n, False)
    if mode in (None, "fill"):
        return FILL, wrapped(places, n, True)
    if mode == "promise_in_bounds":
        return PROMISE, wrapped(places, n, True)
    if mode == "raise":
        check_bounds(places, n)
        return PROMISE, wrapped(places, n, True)
    raise ValueError(
        f"take: unknown mode {mode!r}; use 'fill', 'clip', 'wrap', "
        "'promise_in_bounds' or 'raise'"
    )


def check_bounds(places: Array, n: int) -> None:
    """Raise IndexError unless every index is one of a dimension of size `n`."""
    if isinstance(places, Tracer):
        raise NotImplementedError(
            "take: mode='raise', NumPy's default, needs the values of the indices, "
            "which are traced; use verax.numpy.take, or mode='clip' or 'wrap'"
        )
    values = np.asarray(places)
    if (outside := (values < -n) | (values >= n)).any():
        raise IndexError(
            f"take: index {values[outside][0]} is out of bounds for a dimension of "
            f"size {n}"
        )


# ---------------------------------------------------------------------- along axes


class AlongPlan(NamedTuple):
    """The plan for reading one element per line: what to squeeze, and the gather."""

    squeezed: Shape
    indices: Shape
    sizes: Shape
    dims: GatherDimensionNumbers


@pure(1 << 10)
def along_plan(own: Shape, indices: Shape, axis: int) -> AlongPlan:
    """The plan for an array of shape `own` and indices of equal rank.

    A dimension of size 1 in the indices is covered by the windows; one of size 1 in the
    array is squeezed; in the others, both run together.
    """
    squeezed, offsets, sizes, batching, together = [], [], [], [], []
    kept: list[int] = []
    place = new_axis = 0
    for i, (n, m) in enumerate(zip(own, indices, strict=True)):
        if i == axis:
            new_axis, place = place, place + 1
            sizes.append(1)
            kept.append(m)
        elif m == 1:
            offsets.append(i)
            sizes.append(n)
            place += 1
        elif n == 1:
            squeezed.append(i)
            kept.append(m)
        else:
            batching.append(place)
            together.append(len(kept))
            sizes.append(smaller_size(n, 1))
            kept.append(m)
            place += 1
    dims = GatherDimensionNumbers(offsets, (new_axis,), (new_axis,), batching, together)
    return AlongPlan(tuple(squeezed), tuple(kept), tuple(sizes), dims)


def along_at_once(
    arr: object,
    indices: object,
    axis: int | None = -1,
    mode: str | None = None,
    **rest: object,
) -> OneGo | None:
    """Elements of each line by their place among all; None for indices outside."""
    if type(arr) is not ShapedArray or type(indices) is not ShapedArray:
        return None
    if axis is None or mode not in (None, "fill") or rest or not arr.size:
        return None
    place = axis + arr.ndim if axis < 0 else axis
    if not is_plain_dtype(arr.dtype) or not is_integer(indices.dtype):
        return None
    own, other = list(arr.shape), list(indices.shape)
    n, m = own.pop(place), other.pop(place)
    if own != other or not m or bit_width(indices.dtype) < 8:
        return None
    step = prod(arr.shape[place + 1 :])
    firsts = np.arange(arr.size).reshape(arr.shape).take([0], place)
    unsigned, size = f"u{indices.dtype.itemsize}", arr.size

    def compute(x: np.ndarray, places: np.ndarray) -> Any:
        # Read without sign, those below 0 are the largest.
        if places.view(unsigned).max() >= n:
            return None
        at = places + firsts if step == 1 else places * step + firsts
        return x.reshape(size).take(at)

    return compute


def is_plain_dtype(dtype: DType) -> bool:
    """Whether NumPy has the dtype itself."""
    return isinstance(dtype, np.dtype) and dtype.kind in "fiucb"


@in_numpy(along_at_once)
def take_along_axis(
    arr: ArrayLike,
    indices: ArrayLike,
    axis: int | None = -1,
    mode: str | GatherScatterMode | None = None,
    fill_value: object = None,
    *,
    wrap_negative_indices: bool = True,
) -> Array:
    """For each line along `axis`, the elements at that line's indices.

    Other dimensions broadcast. `mode` is as in `take`, except for "wrap"; with
    "one_hot" out of bounds is 0.

    Raises:
        ValueError: the numbers of dimensions differ, or shapes do not broadcast.
        TypeError: the indices are not integers.
    """
    x, places = (
        as_array("take_along_axis", arr),
        integer_indices("take_along_axis", indices),
    )
    x, place = line_axis("take_along_axis", x, axis)
    check_rank("take_along_axis", x, places)
    n = x.shape[place]
    lines = (*x.shape[:place], 1, *x.shape[place + 1 :])
    shape = broadcast_shapes_of("take_along_axis", (places.shape, lines))
    if not n or 0 in shape:
        return beside(zeros(x.aval.with_shape(shape)), x)
    if mode == "one_hot":  # a row of one hot element, or of none, times the line
        mode, fill_value = FILL, 0
    plan = along_plan(x.shape, places.shape, place)
    vectors = wrapped(places, n, wrap_negative_indices)
    column = reshape_to(vectors, (*plan.indices, 1))
    return gather(
        squeeze(x, plan.squeezed),
        column,
        plan.dims,
        plan.sizes,
        mode=FILL if mode is None else GatherScatterMode.from_any(mode),
        fill_value=fill_value,
    )


@remembered
def put_along_axis(
    arr: ArrayLike,
    indices: ArrayLike,
    values: ArrayLike,
    axis: int | None,
    inplace: bool = True,
    *,
    mode: str | None = None,
) -> Array:
    """`arr` with, for each line along `axis`, `values` at that line's indices.

    Raises:
        ValueError: `inplace` is not False, or the numbers of dimensions differ.
    """
    out_of_place("put_along_axis", inplace)
    x, places = (
        as_array("put_along_axis", arr),
        integer_indices("put_along_axis", indices),
    )
    original = x.shape
    x, place = line_axis("put_along_axis", x, axis)
    check_rank("put_along_axis", x, places)
    index: list[Any] = []
    for i, size in enumerate(x.shape):
        line = np.arange(size).reshape([-1 if j == i else 1 for j in range(x.ndim)])
        index.append(places if i == place else line)
    return reshape(at(x)[tuple(index)].set(values, mode=mode), original)


def out_of_place(name: str, inplace: bool, kind: type[Exception] = ValueError) -> None:
    """Raise unless a function that writes in NumPy was asked for a new array."""
    if inplace:
        raise kind(f"{name}: arrays are immutable; pass inplace=False to get a new one")


def put(
    a: ArrayLike,
    ind: ArrayLike,
    v: ArrayLike,
    mode: str | None = None,
    *,
    inplace: bool = True,
) -> Array:
    """`a` with values at indices of the flat array.

    Values are repeated or cut off to the number of places. `mode` is "clip", "wrap" or
    None: out of bounds, nothing is written.

    Raises:
        ValueError: `inplace` is not False, or there is no such mode.
    """
    out_of_place("put", inplace)
    x, places = as_array("put", a), ravel(integer_indices("put", ind))
    values = ravel(as_array("put", v, 2))
    if not places.size or not values.size:
        return x
    if values.size < places.size:
        times = -(-places.size // values.size)
        values = ravel(broadcast_to(values, (times, values.size)))
    values = values[: places.size]
    if mode == "wrap":
        places = remainder(places, x.size)
    elif mode not in (None, "clip"):
        raise ValueError(f"put: unknown mode {mode!r}; use 'clip', 'wrap' or None")
    flat = at(ravel(x))[places].set(
        values,
        mode="clip" if mode == "clip" else None,
        wrap_negative_indices=mode != "clip",
    )
    return reshape(flat, x.shape)


def fill_diagonal(
    a: ArrayLike, val: ArrayLike, wrap: bool = False, *, inplace: bool = True
) -> Array:
    """`a` with `val`, repeated, on the diagonal of all its dimensions.

    Raises:
        ValueError: `inplace` is not False, or there are fewer than two dimensions.
    """
    out_of_place("fill_diagonal", inplace, NotImplementedError)
    x, values = as_array("fill_diagonal", a), as_array("fill_diagonal", val, 1)
    if x.ndim < 2 or (x.ndim > 2 and len(set(x.shape)) > 1):
        raise ValueError(
            "fill_diagonal takes a matrix, or an array whose dimensions have equal "
            f"sizes, not shape {x.shape}"
        )
    columns = x.shape[1]
    step = columns + 1 if x.ndim == 2 else sum(columns**i for i in range(x.ndim))
    end = x.size if wrap or x.ndim > 2 else min(x.size, columns * columns)
    count = len(range(0, end, step))
    if values.ndim:
        places = np.arange(count, dtype=np.int32) % max(values.size, 1)
        values = ravel(values)[places]
    return reshape(at(ravel(x))[:end:step].set(values), x.shape)
