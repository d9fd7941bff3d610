"""Floor 6: the places and the elements that a condition picks.

One idea: how many there are depends on values, so under a trace the caller says
`size`, and what is missing is filled::

    where(mask, x, y), nonzero(x, size=3, fill_value=-1), compress(mask, x, size=2)
"""

from collections.abc import Sequence
from functools import reduce
from operator import index, mul
from typing import Any, SupportsIndex, overload

import numpy as np

from verax.backend.arrays.concrete import beside
from verax.backend.eager.composites import remembered
from verax.ir.avals import Shape, iinfo, larger_size
from verax.ir.dtypes import (
    DType,
    DTypeLike,
    bool_,
    int32,
    is_bool,
    is_integer,
    is_unsigned,
)
from verax.ir.jaxpr import NO_PARAMS
from verax.numpy.arguments.arguments import (
    ArrayLike,
    ShapeLike,
    adapted,
    as_array,
    avals_of,
    canonical_axis,
    chosen_dtype,
    common_type,
    default_integer,
    no_out,
    promote,
    stretched_together,
)
from verax.numpy.elementwise.comparison import greater_equal, less, not_equal
from verax.numpy.elementwise.division import floor_divide, remainder
from verax.numpy.indexing.getitem_and_at import at
from verax.numpy.reducing.reductions import widened
from verax.numpy.reducing.running import cumsum
from verax.numpy.shaping.joining import stack
from verax.numpy.shaping.shapes import broadcast_to, moveaxis, ravel, reshape
from verax.ops.elementwise.convert import convert
from verax.ops.elementwise.select import select_n, select_n_p
from verax.ops.structure.create import full, iota
from verax.rules.rows.builder import Tracer
from verax.rules.values.array import Array
from verax.rules.values.conversions import AbstractValueError, ConcretizationTypeError
from verax.rules.values.sizes import as_size, one_or_more, size_as
from verax.rules.values.state import STATE

# A tuple made once: a union would be made again by every check.
VALUED = (Array, np.ndarray)


def as_condition(name: str, condition: ArrayLike) -> Any:
    """An array of booleans: whether elements are not zero."""
    x = condition if isinstance(condition, Array) else as_array(name, condition)
    return x if is_bool(x.dtype) else not_equal(x, 0)


@overload
def where(
    condition: ArrayLike,
    x: None = None,
    y: None = None,
    /,
    *,
    size: int | None = None,
    fill_value: object = None,
) -> tuple[Array, ...]: ...
@overload
def where(
    condition: ArrayLike,
    x: ArrayLike,
    y: ArrayLike,
    /,
    *,
    size: None = None,
    fill_value: None = None,
) -> Array: ...
def where(
    condition: ArrayLike,
    x: ArrayLike | None = None,
    y: ArrayLike | None = None,
    /,
    *,
    size: int | None = None,
    fill_value: object = None,
) -> Array | tuple[Array, ...]:
    """The elements of `x` where `condition` is true and of `y` elsewhere.

    With the condition alone: `nonzero`.

    Args:
        condition: an array or scalar that is true where it is not zero.
        x: an array or scalar that broadcasts with the condition; None if `y` is.
        y: an array or scalar that broadcasts with the condition; None if `x` is.
        size: the number of indices, known while tracing, only with the condition alone:
            more are cut off, and missing ones are filled in. None lets the values
            decide.
        fill_value: the index of missing ones, as for `nonzero`; None for 0.

    Returns:
        The elements in the common dtype of `x` and `y`, and of the shape to which all
        broadcast; with the condition alone, a tuple of indices.

    Raises:
        ValueError: only one of `x` and `y` is given, or shapes do not broadcast, or
            `size` or `fill_value` is given with `x` and `y`.
        AbstractValueError: the condition alone is given and traced, without a size.

    >>> import verax.numpy as vnp
    >>> x = vnp.array([[1, -2], [-3, 4]])
    >>> vnp.where(x < 0, 0, x).tolist()
    [[1, 0], [0, 4]]
    >>> vnp.where(x < 0)
    (Array([0, 1], dtype=int32), Array([1, 0], dtype=int32))
    """
    if x is None and y is None:
        return nonzero(condition, size=size, fill_value=fill_value)
    if x is None or y is None:
        raise ValueError("where takes both x and y, or neither")
    if size is not None or fill_value is not None:
        raise ValueError("where takes size and fill_value only without x and y")
    if isinstance(condition, Array) and isinstance(x, Array) and isinstance(y, Array):
        aval = condition.aval
        if aval.dtype is not bool_:
            return pick(condition, x, y)
        if x.aval is y.aval and x.aval.shape == aval.shape:
            return select_n_p.call(NO_PARAMS, condition, y, x)
    chosen = as_condition("where", condition)
    if isinstance(x, Array) and not isinstance(y, Array):
        if (constant := adapted(y, x.aval)) is not None:
            return mixed(chosen, x, constant)
    elif (
        isinstance(y, Array)
        and not isinstance(x, Array)
        and (constant := adapted(x, y.aval)) is not None
    ):
        return mixed(chosen, constant, y)
    return mixed(chosen, *promote("where", x, y))


@remembered
def pick(condition: Array, x: Array, y: Array) -> Array:
    """`where` for three arrays."""
    return mixed(as_condition("where", condition), *promote("where", x, y))


def mixed(condition: Array, x: object, y: object) -> Array:
    """`where` for operands of the same dtype."""
    if isinstance(x, VALUED) and isinstance(y, VALUED):
        shape = condition.shape
        if x.shape in (shape, ()) and y.shape in (shape, ()):
            return select_n_p.call(NO_PARAMS, condition, y, x)
    parts = stretched_together("where", (condition, x, y))
    return select_n(parts[0], parts[2], parts[1])


# ---------------------------------------------------------------------- the places


def known_mask(name: str, mask: Array) -> np.ndarray:
    """The values of a mask.

    Raises:
        ConcretizationTypeError: it is traced.
    """
    try:
        return mask.concrete(name)
    except AbstractValueError as error:
        raise ConcretizationTypeError(
            f"The size argument of jnp.{name} must be specified where it is traced: "
            f"the number of nonzero elements depends on values, which a traced "
            f"{mask.aval} does not have. Pass size=n, the largest number to return "
            "(the rest is fill_value), or use where(mask, x, y)"
        ) from error


def nonzero(
    a: ArrayLike, *, size: int | None = None, fill_value: object = None
) -> tuple[Array, ...]:
    """The indices of the elements that are not zero, one array per dimension.

    How many there are depends on values, so under a trace `size` is needed.

    Args:
        a: an array of one or more dimensions.
        size: the number of indices, known while tracing: more are cut off, and missing
            ones are filled in. None lets the values decide.
        fill_value: the index of missing ones, a scalar, or a tuple with one per
            dimension; None for 0.

    Returns:
        A tuple of vectors of the same size, in the default integer, in the order of the
        flat array.

    Raises:
        ValueError: `a` has no dimensions, or there is another number of fill values.
        AbstractValueError: `a` is traced and no size is given.

    >>> import verax.numpy as vnp
    >>> x = vnp.array([[0, 7], [8, 0]])
    >>> vnp.nonzero(x)
    (Array([0, 1], dtype=int32), Array([1, 0], dtype=int32))
    >>> [i.tolist() for i in vnp.nonzero(x, size=3, fill_value=-1)]
    [[0, 1, -1], [1, 0, -1]]
    """
    x = as_array("nonzero", a)
    if not x.ndim:
        raise ValueError(
            "nonzero takes an array with at least one dimension; use atleast_1d"
        )
    mask = as_condition("nonzero", x)
    if size is None:
        values = known_mask("nonzero", mask).nonzero()
        kind = default_integer()
        return tuple([beside(as_array("nonzero", i.astype(kind)), x) for i in values])
    count = as_size(size)
    flat, total = places_of(ravel(mask), count)
    fills = fill_value if isinstance(fill_value, tuple) else (fill_value,) * x.ndim
    if len(fills) != x.ndim:
        raise ValueError(
            f"nonzero: got {len(fills)} fill values for {x.ndim} dimensions"
        )
    missing = greater_equal(iota(int32, count), total)
    return tuple(
        [
            mixed(missing, as_filling(fill), convert(part, default_integer()))
            for part, fill in zip(coordinates(flat, x.shape), fills, strict=True)
        ]
    )


def as_filling(fill: ArrayLike | None) -> Array:
    """The index that stands for what is missing; it may be traced.

    Raises:
        ValueError: it has dimensions.
    """
    array = as_array("nonzero", 0 if fill is None else fill)
    if array.ndim:
        raise ValueError(
            f"nonzero: a fill value must be a scalar, not {array.aval}; pass a tuple "
            "with one for each dimension"
        )
    return convert(array, default_integer())


def places_of(mask: Array, count: int) -> tuple[Array, Array]:
    """The first places of a vector where it is true, and how many there are in all.

    The rank of each hit is the sum up to it, and is where its place is written.
    """
    n = mask.shape[0]
    empty = full((count,), 0, int32)
    if not n:
        return empty, as_array("nonzero", np.int32(0))
    ranks = cumsum(mask.astype(int32))
    targets = mixed(mask, ranks - 1, size_as(count, int32))
    return at(empty)[targets].set(iota(int32, n), mode="drop"), ranks[-1]


def coordinates(flat: Array, shape: Shape) -> list[Array]:
    """Indices of the elements of a row in an array of `shape`."""
    out = []
    for size in reversed(shape):
        divisor = larger_size(size, 1)
        out.append(remainder(flat, divisor))
        flat = floor_divide(flat, divisor)
    return out[::-1]


def flatnonzero(
    a: ArrayLike, *, size: int | None = None, fill_value: object = None
) -> Array:
    """The indices of the nonzero elements in the flat array.

    Args:
        a: an array or scalar; NaN is not zero.
        size: the number of indices, known while tracing: more are cut off, and missing
            ones are filled in. None lets the values decide.
        fill_value: the index of missing ones; None for 0.

    Returns:
        A vector of increasing indices in the default integer.

    Raises:
        AbstractValueError: `a` is traced and no size is given.

    >>> import verax.numpy as vnp
    >>> x = vnp.array([[0, 7], [8, 0]])
    >>> vnp.flatnonzero(x).tolist(), vnp.flatnonzero(x, size=3, fill_value=4).tolist()
    ([1, 2], [1, 2, 4])
    """
    out: Array = nonzero(
        ravel(as_array("flatnonzero", a)), size=size, fill_value=fill_value
    )[0]
    return out


def argwhere(
    a: ArrayLike, *, size: int | None = None, fill_value: object = None
) -> Array:
    """The index vectors of what is not zero, one per row.

    Args:
        a: an array or scalar.
        size: the number of rows, known while tracing: more are cut off, and missing
            ones are filled in. None lets the values decide.
        fill_value: the index of missing ones, a scalar, or a tuple with one per
            dimension; None for 0.

    Returns:
        A matrix in the default integer with a column for each dimension of `a`, in the
        order of the flat array.

    Raises:
        ValueError: there is another number of fill values than of dimensions.
        AbstractValueError: `a` is traced and no size is given.

    >>> import verax.numpy as vnp
    >>> vnp.argwhere(vnp.array([[0, 7], [8, 0]])).tolist()
    [[0, 1], [1, 0]]
    """
    x = as_array("argwhere", a)
    if not x.ndim:
        count = int(bool(known_mask("argwhere", x))) if size is None else size
        return full((count, 0), 0, default_integer())
    return stack(nonzero(x, size=size, fill_value=fill_value), axis=-1)


# -------------------------------------------------------------------- the elements


def compress(
    condition: ArrayLike,
    a: ArrayLike,
    axis: int | None = None,
    *,
    size: int | None = None,
    fill_value: object = 0,
    out: None = None,
) -> Array:
    """The parts of `a` along `axis` at which `condition` is true.

    Args:
        condition: a vector that is true where it is not zero; it may be shorter than
            the axis, or longer if it is false there.
        a: an array or scalar.
        axis: the dimension to work along; None for the flat array.
        size: the number of parts, known while tracing: more are cut off, and missing
            ones are filled in. None lets the condition decide.
        fill_value: what the elements of missing parts are, a scalar; 0 by default.
        out: only None, since arrays are immutable.

    Returns:
        The parts, in the dtype of `a`, and of its shape but for `axis`.

    Raises:
        ValueError: the condition is not a vector, or is true beyond the end, or there
            is no such axis.
        AbstractValueError: the condition is traced and no size is given.

    >>> import verax.numpy as vnp
    >>> x = vnp.array([[1, 2], [3, 4]])
    >>> vnp.compress(vnp.array([False, True]), x, axis=1).tolist()
    [[2], [4]]
    >>> vnp.compress(vnp.array([0, 1]), x, axis=0, size=2, fill_value=-1).tolist()
    [[3, 4], [-1, -1]]
    """
    no_out("compress", out)
    hits: Array = as_condition("compress", condition)
    if hits.ndim != 1:
        raise ValueError(f"compress takes a vector of booleans, not {hits.aval}")
    x = as_array("compress", a, 1)
    if axis is None:
        x, axis = ravel(x), 0
    x = moveaxis(x, canonical_axis("compress", axis, x.ndim), 0)
    return moveaxis(picked_rows("compress", hits, x, size, fill_value), 0, axis)


def picked_rows(
    name: str, hits: Array, x: Array, size: int | None, fill_value: object
) -> Array:
    """The rows of `x` at which the vector `hits` is true.

    Raises:
        ValueError: it is true beyond the last row.
    """
    n = min(hits.shape[0], x.shape[0])
    if hits.shape[0] > n and known_mask(name, hits[n:]).any():
        raise ValueError(
            f"{name}: the condition of size {hits.shape[0]} is true beyond the {n} "
            "elements of the axis"
        )
    hits, x = hits[:n], x[:n]
    if size is None:
        return x[known_mask(name, hits).nonzero()[0].astype(np.int32)]
    count = as_size(size)
    if not x.shape[0]:
        return full((count, *x.shape[1:]), fill_value, x.dtype)
    flat, total = places_of(hits, count)
    rows = x[flat]
    valid = less(iota(int32, count), total)
    column = reshape(valid, (count, *(1,) * (x.ndim - 1)))
    fill = full((), fill_value, x.dtype)
    return mixed(broadcast_to(column, rows.shape), rows, fill)


def extract(
    condition: ArrayLike,
    arr: ArrayLike,
    *,
    size: int | None = None,
    fill_value: object = 0,
) -> Array:
    """The elements of `arr` at which `condition` is true, in one row.

    Args:
        condition: an array that is true where it is not zero, compared with `arr` in
            the order of the flat arrays.
        arr: an array or scalar.
        size: the number of elements, known while tracing: more are cut off, and missing
            ones are filled in. None lets the condition decide.
        fill_value: what missing elements are, a scalar; 0 by default.

    Returns:
        A vector in the dtype of `arr`.

    Raises:
        ValueError: the condition is true beyond the end of `arr`.
        AbstractValueError: the condition is traced and no size is given.

    >>> import verax.numpy as vnp
    >>> x = vnp.array([[5, -1], [-2, 7]])
    >>> vnp.extract(x > 0, x).tolist(), vnp.extract(x > 0, x, size=3).tolist()
    ([5, 7], [5, 7, 0])
    """
    hits = ravel(as_condition("extract", condition))
    x = ravel(as_array("extract", arr, 1))
    return picked_rows("extract", hits, x, size, fill_value)


def place(
    arr: ArrayLike, mask: ArrayLike, vals: ArrayLike, *, inplace: bool = True
) -> Array:
    """`arr` with `vals`, one after the other and repeated, where `mask` is true.

    Arrays are immutable, so the result is a new one, and `inplace` must be False.

    Args:
        arr: an array or scalar.
        mask: an array of the size of `arr` that is true where it is not zero.
        vals: an array or scalar of one or more values, converted to the dtype of `arr`.
        inplace: only False.

    Returns:
        The new array, in the dtype and shape of `arr`.

    Raises:
        ValueError: `inplace` is not False, the sizes differ, or there is no value.

    >>> import verax.numpy as vnp
    >>> x = vnp.array([[0, 5], [0, 0]])
    >>> vnp.place(x, x == 0, vnp.array([1, 2]), inplace=False).tolist()
    [[1, 5], [2, 1]]
    """
    if inplace:
        raise ValueError(
            "place: arrays are immutable; pass inplace=False and use the result"
        )
    x, hits = as_array("place", arr), ravel(as_condition("place", mask))
    values = ravel(as_array("place", vals, 2))
    if hits.size != x.size or not values.size:
        raise ValueError(
            f"place takes a mask of {x.size} elements and at least one value, not "
            f"{hits.size} and {values.size}"
        )
    if not x.size:
        return x
    ranks = cumsum(hits.astype(int32)) - 1
    chosen = convert(values[remainder(ranks, values.size)], x.dtype, x.weak_type)
    return reshape(mixed(hits, chosen, ravel(x)), x.shape)


# ------------------------------------------------------------- indices as numbers


def unravel_index(
    indices: ArrayLike, shape: ShapeLike | Array | np.ndarray
) -> tuple[Array, ...]:
    """The index in an array of `shape` of each index of the flat array.

    Negative places count from the end; those out of bounds are moved inside, where
    NumPy raises an error.

    Args:
        indices: an array or scalar of integers.
        shape: the sizes of the dimensions, one integer or a sequence; they may be
            traced.

    Returns:
        A tuple of arrays of the shape of `indices`, one for each dimension, and in its
        dtype if that can count every dimension; else in the default integer.

    Raises:
        TypeError: `indices` holds no integers.

    >>> import verax.numpy as vnp
    >>> vnp.unravel_index(vnp.array([4, -1, 99]), (2, 3))
    (Array([1, 1, 1], dtype=int32), Array([1, 2, 2], dtype=int32))
    """
    given = as_array("unravel_index", indices)
    x = widened_index("unravel_index", given)
    if has_tracers(shape):
        parts: list[ArrayLike]
        if isinstance(shape, int) or not (isinstance(shape, Sequence) or shape.ndim):
            parts = [shape]
        else:
            parts = list(shape)
        due = common_type(avals_of("unravel_index", [given, *parts]))
        return traced_coordinates(x, parts, due)
    sizes = one_or_more(shape)
    total = int(np.prod(sizes, dtype=np.int64))
    wrapped = x if is_unsigned(x.dtype) else mixed(less(x, 0), x + total, x)
    inside = wrapped.clip(0, max(total - 1, 0))
    out = coordinates(convert(inside, default_integer()), sizes)
    if max(sizes, default=0) - 1 > iinfo(given.dtype).max:
        return tuple(out)
    return tuple([convert(place, given.dtype, given.weak_type) for place in out])


def has_tracers(shape: object) -> bool:
    """Whether a size, or all of them, are values of a program."""
    sizes = shape if isinstance(shape, Sequence) else (shape,)
    return any(isinstance(size, Tracer) for size in sizes)


def traced_coordinates(
    x: Array, shape: Sequence[ArrayLike], due: tuple[DType, bool]
) -> tuple[Array, ...]:
    """`unravel_index`, in the type `due`, where the sizes are values of a program."""
    word = default_integer()
    sizes = [convert(as_array("unravel_index", n), word) for n in shape]
    total = reduce(mul, sizes)
    flat = convert(x, word)
    flat = mixed(less(flat, 0), flat + total, flat)
    flat = flat.clip(0, (total - 1).clip(0))
    out = []
    for size in reversed(sizes):
        divisor = size.clip(1)
        out.append(convert(remainder(flat, divisor), *due))
        flat = floor_divide(flat, divisor)
    return tuple(out[::-1])


def ravel_multi_index(
    multi_index: Array | np.ndarray | Sequence[ArrayLike],
    dims: Sequence[SupportsIndex] | np.ndarray,
    mode: str = "raise",
    order: str = "C",
    *,
    dtype: DTypeLike | None = None,
) -> Array:
    """The index in the flat array, from one index for each dimension of `dims`.

    Args:
        multi_index: one array or scalar of integers for each dimension, in a sequence
            or along the first dimension of an array; they broadcast together.
        dims: the sizes of the dimensions, known while tracing.
        mode: what an index out of bounds does: "raise" makes it an error, "wrap" counts
            on around, "clip" moves it to the nearest end, and "ignore" computes with
            it.
        order: "C" if the last dimension runs fastest, "F" if the first does.
        dtype: the dtype of the result; by default that of the indices together, at
            least the default integer.

    Returns:
        The indices, of the shape to which those given broadcast.

    Raises:
        TypeError: an index is not an integer.
        ValueError: an index is out of bounds and the mode is "raise", there is another
            number of indices than of dimensions, or `mode` or `order` is unknown.
        AbstractValueError: an index is traced and the mode is "raise".

    >>> import verax.numpy as vnp
    >>> rows, columns = vnp.array([0, 1]), vnp.array([2, 3])
    >>> vnp.ravel_multi_index((rows, columns), (2, 3), mode="wrap").tolist()
    [2, 3]
    >>> vnp.ravel_multi_index((rows, columns), (2, 3), mode="clip").tolist()
    [2, 5]
    """
    chosen = chosen_dtype("ravel_multi_index", dtype)
    sizes = tuple(map(index, dims))
    parts = [widened_index("ravel_multi_index", i) for i in multi_index]
    if len(parts) != len(sizes):
        raise ValueError(
            f"ravel_multi_index: got {len(parts)} indices for {len(sizes)} dimensions"
        )
    if mode not in ("raise", "wrap", "clip", "ignore") or order not in ("C", "F"):
        raise ValueError(
            "ravel_multi_index: mode must be 'raise', 'wrap', 'clip' or 'ignore' and "
            f"order 'C' or 'F', not {mode!r} and {order!r}"
        )
    inside = [
        within("ravel_multi_index", i, n, mode)
        for i, n in zip(parts, sizes, strict=True)
    ]
    pairs = list(zip(inside, sizes, strict=True))
    total = None
    for part, size in pairs if order == "C" else pairs[::-1]:
        total = part if total is None else total * size + part
    result = as_array("ravel_multi_index", 0 if total is None else total)
    return result if chosen is None else convert(result, chosen)


def widened_index(name: str, x: ArrayLike) -> Array:
    """Indices in at least the default width of integers.

    Raises:
        TypeError: they are not integers.
    """
    array = as_array(name, x)
    if not is_integer(array.dtype):
        raise TypeError(f"{name}: indices must be integers, not {array.aval}")
    return convert(array, widened(array.dtype, STATE.enable_x64))


def within(name: str, places: Array, size: int, mode: str) -> Array:
    """Indices in bounds, in the way that `mode` says.

    Raises:
        ValueError: the mode is "raise" and one is out of bounds.
        AbstractValueError: the mode is "raise" and they are traced.
    """
    if mode == "wrap":
        return remainder(places, size)
    if mode == "ignore":
        return places
    if mode == "clip":
        return places.clip(0, size - 1)
    values = places.concrete(
        f"The error occurred because {name} was jit-compiled with mode='raise'. Use "
        f"mode='wrap' or mode='clip' instead. {name}"
    )
    if values.size and (values.min() < 0 or values.max() >= size):
        raise ValueError(
            f"invalid entry in the indices of {name}: one is out of bounds for size "
            f"{size}"
        )
    return places
