"""Floor 6: distinct elements.

One idea: after a sort, equal elements are neighbours, and what is kept is marked and
then moved to the front. How many these are depends on values, so that under a trace
`size` has to say it::

    unique(x), unique(x, size=8, fill_value=0), unique_counts(x)
"""

import operator
from typing import Literal, NamedTuple, overload

import numpy as np

from verax.ir.avals import Shape
from verax.ir.dtypes import bool_, is_complex, is_inexact
from verax.numpy.arguments.arguments import (
    ArrayLike,
    as_array,
    canonical_axis,
    constant_of,
    default_integer,
    stretched,
    with_weak_type,
)
from verax.numpy.creation.filling import filled
from verax.ops.elementwise.arith import min as smaller, sub
from verax.ops.elementwise.bits import bitwise_and, bitwise_not
from verax.ops.elementwise.compare import lt, ne
from verax.ops.elementwise.convert import convert
from verax.ops.elementwise.select import select
from verax.ops.indexing.gather import take_along
from verax.ops.reductions.cumulative import cumsum
from verax.ops.reductions.reduce import reduce_or
from verax.ops.sorting.sort import sort
from verax.ops.structure.create import broadcasted_iota
from verax.ops.structure.joining import concatenate
from verax.ops.structure.shape import broadcast_in_dim, move_axis, reshape
from verax.ops.structure.slicing import pad, slice_in_dim
from verax.rules.rows.builder import Tracer
from verax.rules.values.array import Array


class UniqueAllResult(NamedTuple):
    """The results of `unique_all`."""

    values: Array
    indices: Array
    inverse_indices: Array
    counts: Array


class UniqueCountsResult(NamedTuple):
    """The results of `unique_counts`."""

    values: Array
    counts: Array


class UniqueInverseResult(NamedTuple):
    """The results of `unique_inverse`."""

    values: Array
    inverse_indices: Array


class Groups(NamedTuple):
    """Sorted rows: the rows, where they were, and which are first among equals."""

    rows: Array
    order: Array
    first: Array


def static_size(name: str, size: int | None, *args: Array) -> int | None:
    """`size`, which has to be given if an argument is traced.

    Raises:
        AbstractValueError: it is not.
        TypeError: it is not an integer.
    """
    for x in args:
        if size is None and isinstance(x, Tracer):
            x.concrete(
                f"{name} without size=..., where the shape of the result depends on "
                "values,"
            )
    if size is None:
        return None
    count = operator.index(size)
    if count < 0:
        raise ValueError(f"{name}: size may not be negative, but is {size}")
    return count


def grouped(rows: Array, equal_nan: bool) -> Groups:
    """The rows of a matrix in lexicographic order."""
    count, width = rows.shape
    if is_complex(rows.dtype):
        # Sorting tells complex NaNs apart, by the part that is a number.
        rows = select(ne(rows, rows), constant_of(np.nan, rows.dtype), rows)
    places = broadcasted_iota(default_integer(), (count,), 0)
    columns = [
        reshape(slice_in_dim(rows, j, j + 1, axis=1), (count,)) for j in range(width)
    ]
    order = sort((*columns, places), 0, num_keys=width)[-1] if width else places
    spread = broadcast_in_dim(order, (count, width), (0,))
    array = take_along(rows, spread, 0)
    if count < 2:
        return Groups(array, order, filled((count,), True, bool_))
    above = slice_in_dim(array, 0, count - 1, axis=0)
    below = slice_in_dim(array, 1, count, axis=0)
    changed = ne(above, below)
    if equal_nan and is_inexact(rows.dtype):
        both = bitwise_and(ne(above, above), ne(below, below))
        changed = bitwise_and(changed, bitwise_not(both))
    first = concatenate([filled((1,), True, bool_), reduce_or(changed, (1,))], 0)
    return Groups(array, order, first)


def kept_places(mask: Array, size: int) -> Array:
    """The indices at which `mask` is true, then its length, `size` in all."""
    count = mask.shape[0]
    places = broadcasted_iota(default_integer(), (count,), 0)
    outside = constant_of(count, places.dtype)
    out: Array = sort(select(mask, places, outside), 0)
    if size <= count:
        return slice_in_dim(out, 0, size, axis=0)
    return pad(out, outside, [(0, size - count, 0)])


def how_many(mask: Array) -> int:
    """The number of true elements of a concrete mask."""
    if isinstance(mask, Tracer):
        mask.concrete("the number of distinct elements, which depends on values,")
    return int(np.count_nonzero(np.asarray(mask)))


def picked(
    rows: Array, places: Array, fill_value: ArrayLike | None, part: Shape = ()
) -> Array:
    """The rows at `places`, and `fill_value` (else the first of them) outside.

    A row is a part of shape `part`, to which a fill value broadcasts.
    """
    count, width = rows.shape
    if not count:
        value = 0 if fill_value is None else fill_value
        spare = convert(as_array("unique", value), rows.dtype)
        return broadcast_in_dim(spare, (places.shape[0], width), ())
    inside = lt(places, count)
    place = smaller(places, count - 1)
    out = take_along(rows, broadcast_in_dim(place, (places.shape[0], width), (0,)), 0)
    if not places.shape[0]:
        return out
    if fill_value is None:
        line = reshape(slice_in_dim(out, 0, 1, axis=0), (width,))
        some = reshape(slice_in_dim(inside, 0, 1, axis=0), ())
        line = select(some, line, constant_of(0, line.dtype))
        spare = broadcast_in_dim(line, out.shape, (1,))
    else:
        value = convert(as_array("unique", fill_value), rows.dtype)
        # A number fills all; what has dimensions fills one of the distinct parts.
        line = value if value.size == 1 else stretched(value, part)
        flat = reshape(line, () if value.size == 1 else (width,))
        spare = broadcast_in_dim(flat, out.shape, (1,) if flat.ndim else ())
    return select(broadcast_in_dim(inside, out.shape, (0,)), out, spare)


@overload
def unique(
    ar: ArrayLike,
    return_index: Literal[False] = False,
    return_inverse: Literal[False] = False,
    return_counts: Literal[False] = False,
    axis: int | None = None,
    *,
    equal_nan: bool = True,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
    sorted: bool = True,
) -> Array: ...
@overload
def unique(
    ar: ArrayLike,
    return_index: Literal[True],
    return_inverse: Literal[False] = False,
    return_counts: Literal[False] = False,
    axis: int | None = None,
    *,
    equal_nan: bool = True,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
    sorted: bool = True,
) -> tuple[Array, Array]: ...
@overload
def unique(
    ar: ArrayLike,
    return_index: Literal[False] = False,
    *,
    return_inverse: Literal[True],
    return_counts: Literal[False] = False,
    axis: int | None = None,
    equal_nan: bool = True,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
    sorted: bool = True,
) -> tuple[Array, Array]: ...
@overload
def unique(
    ar: ArrayLike,
    return_index: Literal[False] = False,
    return_inverse: Literal[False] = False,
    *,
    return_counts: Literal[True],
    axis: int | None = None,
    equal_nan: bool = True,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
    sorted: bool = True,
) -> tuple[Array, Array]: ...
@overload
def unique(
    ar: ArrayLike,
    return_index: Literal[False],
    return_inverse: Literal[True],
    return_counts: Literal[False] = False,
    axis: int | None = None,
    *,
    equal_nan: bool = True,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
    sorted: bool = True,
) -> tuple[Array, Array]: ...
@overload
def unique(
    ar: ArrayLike,
    return_index: Literal[False],
    return_inverse: Literal[False],
    return_counts: Literal[True],
    axis: int | None = None,
    *,
    equal_nan: bool = True,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
    sorted: bool = True,
) -> tuple[Array, Array]: ...
@overload
def unique(
    ar: ArrayLike,
    return_index: Literal[True],
    return_inverse: Literal[True],
    return_counts: Literal[False] = False,
    axis: int | None = None,
    *,
    equal_nan: bool = True,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
    sorted: bool = True,
) -> tuple[Array, Array, Array]: ...
@overload
def unique(
    ar: ArrayLike,
    return_index: Literal[True],
    return_inverse: Literal[False] = False,
    *,
    return_counts: Literal[True],
    axis: int | None = None,
    equal_nan: bool = True,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
    sorted: bool = True,
) -> tuple[Array, Array, Array]: ...
@overload
def unique(
    ar: ArrayLike,
    return_index: Literal[False] = False,
    *,
    return_inverse: Literal[True],
    return_counts: Literal[True],
    axis: int | None = None,
    equal_nan: bool = True,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
    sorted: bool = True,
) -> tuple[Array, Array, Array]: ...
@overload
def unique(
    ar: ArrayLike,
    return_index: Literal[False],
    return_inverse: Literal[True],
    return_counts: Literal[True],
    axis: int | None = None,
    *,
    equal_nan: bool = True,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
    sorted: bool = True,
) -> tuple[Array, Array, Array]: ...
@overload
def unique(
    ar: ArrayLike,
    return_index: Literal[True],
    return_inverse: Literal[False],
    return_counts: Literal[True],
    axis: int | None = None,
    *,
    equal_nan: bool = True,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
    sorted: bool = True,
) -> tuple[Array, Array, Array]: ...
@overload
def unique(
    ar: ArrayLike,
    return_index: Literal[True],
    return_inverse: Literal[True],
    return_counts: Literal[True],
    axis: int | None = None,
    *,
    equal_nan: bool = True,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
    sorted: bool = True,
) -> tuple[Array, Array, Array, Array]: ...
@overload
def unique(
    ar: ArrayLike,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    *,
    equal_nan: bool = True,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
    sorted: bool = True,
) -> Array | tuple[Array, ...]: ...
def unique(
    ar: ArrayLike,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    *,
    equal_nan: bool = True,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
    sorted: bool = True,
) -> Array | tuple[Array, ...]:
    """The distinct elements in order, or along `axis` the distinct parts.

    With the index of the first of each, for each element the index of its value, and
    how often each occurs, as requested. How many there are depends on values, so under
    a trace `size` is needed.

    Args:
        ar: an array or scalar.
        return_index: whether the index of the first of each comes too.
        return_inverse: whether the index of its value comes too for each element.
        return_counts: whether it comes too how often each occurs.
        axis: the dimension along which parts are compared, in lexicographic order; None
            for the elements of the flat array.
        equal_nan: whether NaN are equal to each other.
        size: the number of results, known while tracing: more are cut off, and missing
            ones are filled in. None lets the values decide.
        fill_value: what missing ones are, a scalar or one part, converted to the dtype
            of `ar`; None for the smallest element.
        sorted: whether the result must be in order, which it is in any case.

    Returns:
        The distinct elements in the dtype of `ar`: a vector, or an array of another
        size along `axis`. If more is requested, a tuple of these, the first indices,
        the inverse, of the shape of `ar` or a vector along `axis`, and the counts,
        which are 0 for what is filled in; all in the default integer.

    Raises:
        AbstractValueError: `ar` is traced and `size` is not given.
        ValueError: `size` is negative, or there is no such axis.

    >>> import verax.numpy as vnp
    >>> x = vnp.array([3, 1, 3])
    >>> values, inverse = vnp.unique(x, return_inverse=True)
    >>> values.tolist(), values[inverse].tolist()
    ([1, 3], [3, 1, 3])
    >>> vnp.unique(x, size=4, fill_value=-1).tolist()
    [1, 3, -1, -1]
    """
    x = as_array("unique", ar)
    expected = static_size("unique", size, x)
    along = 0 if axis is None else canonical_axis("unique", axis, x.ndim)
    whole = reshape(x, (x.size,)) if axis is None else move_axis(x, along, 0)
    count = whole.shape[0]
    rows = reshape(whole, (count, whole.size // count if count else 1))
    groups = grouped(rows, equal_nan)
    places = kept_places(
        groups.first, how_many(groups.first) if expected is None else expected
    )
    values = picked(groups.rows, places, fill_value, whole.shape[1:])
    values = reshape(values, (values.shape[0], *whole.shape[1:]))
    out = [move_axis(with_weak_type(values, x.weak_type), 0, along)]
    if return_index:
        out.append(reshape(picked(column(groups.order), places, None), places.shape))
    if return_inverse:
        inverse = inverse_of(groups)
        out.append(reshape(inverse, x.shape) if axis is None else inverse)
    if return_counts:
        out.append(counts_of(groups.first, places))
    return out[0] if len(out) == 1 else tuple(out)


def column(x: Array) -> Array:
    return reshape(x, (x.shape[0], 1))


def inverse_of(groups: Groups) -> Array:
    """For each row as it was, the number of its group."""
    if not groups.order.shape[0]:
        return groups.order
    number = sub(cumsum(convert(groups.first, groups.order.dtype), 0), 1)
    out: Array = sort((groups.order, number), 0)[1]
    return out


def counts_of(first: Array, places: Array) -> Array:
    """From each first place to the next one; 0 for what is filled in."""
    size = first.shape[0]
    every = kept_places(first, places.shape[0] + 1)
    following = slice_in_dim(every, 1, places.shape[0] + 1, axis=0)
    return sub(smaller(following, size), smaller(places, size))


def unique_all(
    x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None
) -> UniqueAllResult:
    """Distinct elements, first indices, inverse and counts; NaN differ.

    Args:
        x: an array or scalar.
        size: the number of results, known while tracing: more are cut off, and missing
            ones are filled in. None lets the values decide.
        fill_value: what missing ones are; None for the smallest element.

    Returns:
        A named tuple: the `values`, in order and in the dtype of `x`; the `indices` of
        the first of each in the flat array; `inverse_indices`, of the shape of `x`; and
        the `counts`.

    Raises:
        AbstractValueError: `x` is traced and `size` is not given.

    >>> import verax.numpy as vnp
    >>> out = vnp.unique_all(vnp.array([[3, 1], [3, 3]]))
    >>> out.values.tolist(), out.indices.tolist(), out.counts.tolist()
    ([1, 3], [1, 0], [1, 3])
    >>> out.inverse_indices.tolist()
    [[1, 0], [1, 1]]
    """
    return UniqueAllResult(
        *unique(x, True, True, True, equal_nan=False, size=size, fill_value=fill_value)
    )


def unique_counts(
    x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None
) -> UniqueCountsResult:
    """Distinct elements and how often they occur; NaN differ.

    Args:
        x: an array or scalar.
        size: the number of results, known while tracing: more are cut off, and missing
            ones are filled in. None lets the values decide.
        fill_value: what missing ones are; None for the smallest element.

    Returns:
        A named tuple: the `values`, in order and in the dtype of `x`, and the `counts`.

    Raises:
        AbstractValueError: `x` is traced and `size` is not given.

    >>> import verax.numpy as vnp
    >>> out = vnp.unique_counts(vnp.array([vnp.nan, 1.0, vnp.nan, 1.0]))
    >>> out.values.tolist(), out.counts.tolist()
    ([1.0, nan, nan], [2, 1, 1])
    """
    return UniqueCountsResult(
        *unique(
            x, return_counts=True, equal_nan=False, size=size, fill_value=fill_value
        )
    )


def unique_inverse(
    x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None
) -> UniqueInverseResult:
    """Distinct elements, and for each element the index of its value; NaN differ.

    Args:
        x: an array or scalar.
        size: the number of results, known while tracing: more are cut off, and missing
            ones are filled in. None lets the values decide.
        fill_value: what missing ones are; None for the smallest element.

    Returns:
        A named tuple: the `values`, in order and in the dtype of `x`, and
        `inverse_indices`, of the shape of `x`.

    Raises:
        AbstractValueError: `x` is traced and `size` is not given.

    >>> import verax.numpy as vnp
    >>> values, inverse = vnp.unique_inverse(vnp.array([[30, 10], [30, 20]]))
    >>> values.tolist(), inverse.tolist()
    ([10, 20, 30], [[2, 0], [2, 1]])
    """
    return UniqueInverseResult(
        *unique(
            x, return_inverse=True, equal_nan=False, size=size, fill_value=fill_value
        )
    )


def unique_values(
    x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None
) -> Array:
    """Distinct elements; NaN differ.

    Args:
        x: an array or scalar.
        size: the number of results, known while tracing: more are cut off, and missing
            ones are filled in. None lets the values decide.
        fill_value: what missing ones are; None for the smallest element.

    Returns:
        A vector of the values, in order and in the dtype of `x`.

    Raises:
        AbstractValueError: `x` is traced and `size` is not given.

    >>> import verax.numpy as vnp
    >>> vnp.unique_values(vnp.array([vnp.nan, 1.0, vnp.nan, 1.0]))
    Array([ 1., nan, nan], dtype=float32)
    """
    return unique(x, equal_nan=False, size=size, fill_value=fill_value)
