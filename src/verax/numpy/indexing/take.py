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
    """The parts of `a` at `indices` along a dimension, or of the flat array.

    Out of bounds it does not raise, as NumPy does, unless `mode` is "raise".

    Args:
        a: an array or scalar.
        indices: an array or scalar of integers; negative ones count from the end,
            except in mode "clip".
        axis: the dimension to work along; None for the flat array, and the default.
        out: only None, since arrays are immutable.
        mode: what is read out of bounds: "fill" (or None, the default) reads
            `fill_value`, "clip" the first or last part, and "wrap" takes indices modulo
            the size; "promise_in_bounds" promises that there are none, and NumPy's
            "raise" checks that, for which it needs the values of the indices.
        unique_indices: a promise that no part is taken twice.
        indices_are_sorted: a promise that the indices do not decrease.
        fill_value: a scalar for mode "fill"; by default NaN, the least integer, the
            largest one without sign, or True.

    Returns:
        An array in the dtype of `a`, of its shape with the shape of `indices` in place
        of `axis`.

    Raises:
        TypeError: the indices are not integers.
        ValueError: there is no such mode or axis.
        IndexError: there is nothing to take from, or the mode is "raise" and an index
            is out of bounds.
        NotImplementedError: `out` is given, or the mode is "raise" and the indices are
            traced.

    >>> import verax.numpy as vnp
    >>> x = vnp.array([10.0, 20.0, 30.0])
    >>> vnp.take(x, vnp.array([-1, 0, 5]))
    Array([30., 10., nan], dtype=float32)
    >>> vnp.take(x, vnp.array([-1, 0, 5]), mode="clip")
    Array([10., 10., 30.], dtype=float32)
    """
    no_out("take", out)
    x, places = as_array("take", a), integer_indices("take", indices)
    x, place = line_axis("take", x, axis)
    n = x.shape[place]
    shape = (*x.shape[:place], *places.shape, *x.shape[place + 1 :])
    if not n and 0 not in shape:
        raise IndexError(
            f"a non-empty jnp.take cannot read dimension {place} of shape {x.shape}, "
            "which has no elements"
        )
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


def take_mode(
    mode: str | None, places: Array, n: int
) -> tuple[GatherScatterMode, object]:
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
    wrap_negative_indices: bool | None = None,
) -> Array:
    """For each line along `axis`, the elements at that line's indices.

    It reads what `argsort` and `argmax` (with `keepdims`) along the same axis found.

    Args:
        arr: an array.
        indices: an array of integers with as many dimensions; dimensions other than
            `axis` broadcast with those of `arr`.
        axis: the dimension to work along, the last one by default; None for the flat
            array, which takes a vector of indices.
        mode: what is read out of bounds: "fill" or "drop" (or None, the default) reads
            `fill_value`, "clip" the first or last element, "one_hot" reads 0;
            "promise_in_bounds" promises that there are none.
        fill_value: a scalar for mode "fill"; by default NaN, the least integer, the
            largest one without sign, or True.
        wrap_negative_indices: whether negative indices count from the end; if not, they
            are out of bounds. None means that they do unless `mode` promises that there
            are none.

    Returns:
        An array in the dtype of `arr`, of the size of `indices` along `axis`.

    Raises:
        ValueError: the numbers of dimensions differ, or shapes do not broadcast, or
            there is no such mode.
        TypeError: the indices are not integers.

    >>> import verax.numpy as vnp
    >>> x = vnp.array([[3, 1, 2], [9, 7, 8]])
    >>> vnp.take_along_axis(x, vnp.argsort(x, axis=1), axis=1)
    Array([[1, 2, 3],
           [7, 8, 9]], dtype=int32)
    >>> vnp.take_along_axis(x, vnp.array([[5], [-1]]), axis=1, mode="one_hot").tolist()
    [[0], [8]]
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
    if wrap_negative_indices is None:
        wrap_negative_indices = mode != "promise_in_bounds"
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

    Unlike NumPy, it returns a new array; out of bounds, nothing is written by default.

    Args:
        arr: an array.
        indices: an array of integers with as many dimensions; those other than `axis`
            broadcast with `arr`. Negative ones count from the end.
        values: an array or scalar that broadcasts to the elements at `indices`,
            converted to the dtype of `arr`.
        axis: the dimension to work along; None for the flat array, which takes a vector
            of indices.
        inplace: only False, since arrays are immutable, though True by default as in
            NumPy.
        mode: what is written out of bounds: "drop" or "fill" (or None, the default)
            writes nothing, "clip" writes to the first or last element;
            "promise_in_bounds" promises that there are none.

    Returns:
        An array of the shape and dtype of `arr`.

    Raises:
        ValueError: `inplace` is not False, or the numbers of dimensions differ.
        TypeError: the indices are not integers.

    >>> import verax.numpy as vnp
    >>> x = vnp.array([[3, 1, 2], [9, 7, 8]])
    >>> places = vnp.argmin(x, axis=1, keepdims=True)
    >>> vnp.put_along_axis(x, places, 0, axis=1, inplace=False)
    Array([[3, 0, 2],
           [9, 0, 8]], dtype=int32)
    """
    out_of_place("put_along_axis", inplace)
    x, places = (
        as_array("put_along_axis", arr),
        integer_indices("put_along_axis", indices),
    )
    original = x.shape
    x, place = line_axis("put_along_axis", x, axis)
    check_rank("put_along_axis", x, places)
    index: list[object] = []
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

    Unlike NumPy, it returns a new array; out of bounds, nothing is written by default.

    Args:
        a: an array or scalar.
        ind: an array or scalar of integers; negative ones count from the end, except in
            mode "clip".
        v: an array or scalar of values, converted to the dtype of `a` and repeated or
            cut off to the number of places.
        mode: what is written out of bounds: None, the default, writes nothing, "clip"
            writes to the first or last element, and "wrap" takes indices modulo the
            size.
        inplace: only False, since arrays are immutable, though True by default as in
            NumPy.

    Returns:
        An array of the shape and dtype of `a`.

    Raises:
        ValueError: `inplace` is not False, or there is no such mode.
        TypeError: the indices are not integers.

    >>> import verax.numpy as vnp
    >>> x = vnp.zeros(4)
    >>> vnp.put(x, vnp.array([0, 2, 9]), vnp.array([5, 6, 7]), inplace=False)
    Array([5., 0., 6., 0.], dtype=float32)
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
    """`a` with `val` on the diagonal of all its dimensions.

    Unlike NumPy, it returns a new array.

    Args:
        a: a matrix, or an array of more dimensions of equal sizes.
        val: an array or scalar, converted to the dtype of `a`; an array is flattened,
            and repeated or cut off to the length of the diagonal.
        wrap: whether, in a matrix with more rows than columns, the diagonal begins
            again where it has ended, after one row left out.
        inplace: only False, since arrays are immutable, though True by default as in
            NumPy.

    Returns:
        An array of the shape and dtype of `a`.

    Raises:
        NotImplementedError: `inplace` is not False.
        ValueError: there are fewer than two dimensions, or more of different sizes.

    >>> import verax.numpy as vnp
    >>> vnp.fill_diagonal(vnp.zeros((3, 3)), vnp.array([1, 2]), inplace=False)
    Array([[1., 0., 0.],
           [0., 2., 0.],
           [0., 0., 1.]], dtype=float32)
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
