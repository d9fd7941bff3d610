"""Floor 6: sets: distinct elements, and unions, intersections and differences.

One idea: after a sort, equal elements are neighbours, and what is kept is marked and
then moved to the front. How many these are depends on values, so that under a trace
`size` has to say it::

    unique(x), unique(x, size=8, fill_value=0), isin(x, [1, 2])
"""

import operator
from typing import Any, Literal, NamedTuple, overload

import numpy as np

from verax.backend.eager.composites import remembered
from verax.ir.avals import Shape
from verax.ir.dtypes import bool_, is_complex, is_inexact, is_integer
from verax.lax.looping import while_loop
from verax.numpy.arguments.arguments import (
    ArrayLike,
    as_array,
    canonical_axis,
    constant_of,
    default_integer,
    promote,
    promote_dtypes,
    stretched,
    stretched_together,
    with_weak_type,
)
from verax.numpy.creation.creation import filled
from verax.numpy.elementwise.arithmetic import abs, multiply
from verax.numpy.elementwise.comparison import equal, logical_not, not_equal
from verax.numpy.reducing.reductions import any
from verax.numpy.searching.sorting import bisect
from verax.numpy.searching.where_nonzero import where
from verax.ops.elementwise.arith import add, div, min as smaller, sub
from verax.ops.elementwise.bits import bitwise_and, bitwise_not, bitwise_or, bitwise_xor
from verax.ops.elementwise.compare import eq, le, lt, ne
from verax.ops.elementwise.convert import convert
from verax.ops.elementwise.remainder import rem
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

# Below so many test elements, comparing with all of them beats a sort and a search.
FEW = 32
MEMBERSHIP = ("auto", "compare_all", "binary_search", "sort")


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


def isin(
    element: ArrayLike,
    test_elements: ArrayLike,
    assume_unique: bool = False,
    invert: bool = False,
    *,
    method: str = "auto",
) -> Array:
    """Whether each element is among `test_elements`; NaN never is.

    Args:
        element: an array or scalar.
        test_elements: an array or scalar of any shape.
        assume_unique: not used.
        invert: whether to say of each element that it is not among them.
        method: "auto", "compare_all", "binary_search" or "sort", which changes nothing:
            the way is chosen by the number of elements.

    Returns:
        Booleans, of the shape of `element`.

    Raises:
        ValueError: there is no such method.

    >>> import verax.numpy as vnp
    >>> x = vnp.array([[1.0, 2.0], [3.0, vnp.nan]])
    >>> vnp.isin(x, vnp.array([2.0, vnp.nan])).tolist()
    [[False, True], [False, False]]
    """
    if method not in MEMBERSHIP:
        raise ValueError(
            f"isin: method must be one of {', '.join(MEMBERSHIP)}, not {method!r}"
        )
    x, tests = promote_dtypes(
        as_array("isin", element), as_array("isin", test_elements, 1)
    )
    flat = reshape(tests, (tests.size,))
    out = among(x, flat)
    return logical_not(out) if invert else out


def among(x: Array, tests: Array) -> Array:
    """Whether each element of `x` is in the vector `tests`."""
    count = tests.shape[0]
    if not count:
        return filled(x.shape, False, bool_)
    if count <= FEW:
        shape = (*x.shape, count)
        left = broadcast_in_dim(x, shape, tuple(range(x.ndim)))
        right = broadcast_in_dim(tests, shape, (x.ndim,))
        return reduce_or(eq(left, right), (x.ndim,))
    line: Array = sort(tests, 0)
    place = smaller(bisect(line, x, right=False), count - 1)
    nearest = take_along(line, reshape(place, (x.size,)), 0)
    return equal(reshape(nearest, x.shape), x)


def in1d(
    ar1: ArrayLike, ar2: ArrayLike, assume_unique: bool = False, invert: bool = False
) -> Array:
    """`isin` of the flat array."""
    x = as_array("in1d", ar1)
    return isin(reshape(x, (x.size,)), ar2, assume_unique, invert)


def flat_pair(name: str, ar1: ArrayLike, ar2: ArrayLike) -> tuple[Array, Array]:
    """Both arrays flat and of the same dtype."""
    x, y = promote_dtypes(as_array(name, ar1), as_array(name, ar2, 1))
    return reshape(x, (x.size,)), reshape(y, (y.size,))


def select_set(
    name: str,
    groups: Groups,
    keep: Array,
    size: int | None,
    fill_value: ArrayLike | None,
) -> tuple[Array, Array]:
    """The kept among the first of each group, and where they stand."""
    mask = bitwise_and(groups.first, keep)
    places = kept_places(mask, how_many(mask) if size is None else size)
    array = reshape(picked(groups.rows, places, fill_value), places.shape)
    return with_weak_type(array, groups.rows.weak_type), places


def union1d(
    ar1: ArrayLike,
    ar2: ArrayLike,
    *,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
) -> Array:
    """The elements in either of two sets, in order; see `unique` for `size`.

    Args:
        ar1: an array or scalar, taken as a flat one; elements may come twice.
        ar2: another one.
        size: the number of results, known while tracing: more are cut off, and missing
            ones are filled in. None lets the values decide.
        fill_value: what missing ones are, a scalar; None for the smallest element.

    Returns:
        A vector of distinct elements, in the common dtype of the arguments; NaN comes
        once.

    Raises:
        AbstractValueError: an argument is traced and `size` is not given.

    >>> import verax.numpy as vnp
    >>> x, y = vnp.array([3, 1, 3]), vnp.array([2, 3])
    >>> vnp.union1d(x, y).tolist(), vnp.union1d(x, y, size=5, fill_value=0).tolist()
    ([1, 2, 3], [1, 2, 3, 0, 0])
    """
    x, y = flat_pair("union1d", ar1, ar2)
    static_size("union1d", size, x, y)
    return unique(concatenate([x, y], 0), size=size, fill_value=fill_value)


@overload
def intersect1d(
    ar1: ArrayLike,
    ar2: ArrayLike,
    assume_unique: bool = False,
    return_indices: Literal[False] = False,
    *,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
) -> Array: ...
@overload
def intersect1d(
    ar1: ArrayLike,
    ar2: ArrayLike,
    assume_unique: bool,
    return_indices: Literal[True],
    *,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
) -> tuple[Array, Array, Array]: ...
@overload
def intersect1d(
    ar1: ArrayLike,
    ar2: ArrayLike,
    assume_unique: bool = False,
    *,
    return_indices: Literal[True],
    size: int | None = None,
    fill_value: ArrayLike | None = None,
) -> tuple[Array, Array, Array]: ...
@overload
def intersect1d(
    ar1: ArrayLike,
    ar2: ArrayLike,
    assume_unique: bool = False,
    return_indices: bool = False,
    *,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
) -> Array | tuple[Array, Array, Array]: ...
def intersect1d(
    ar1: ArrayLike,
    ar2: ArrayLike,
    assume_unique: bool = False,
    return_indices: bool = False,
    *,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
) -> Array | tuple[Array, Array, Array]:
    """The elements in both sets, in order, and their first indices, if requested.

    Args:
        ar1: an array or scalar, taken as a flat one; elements may come twice.
        ar2: another one.
        assume_unique: not used.
        return_indices: whether the indices in both flat arrays come too.
        size: the number of results, known while tracing: more are cut off, and missing
            ones are filled in. None lets the values decide.
        fill_value: what missing ones are, a scalar; None for the smallest element of
            the result, or 0 if there is none.

    Returns:
        A vector of distinct elements, in the common dtype of the arguments, without
        NaN; if `return_indices`, a tuple of it and the indices in `ar1` and in `ar2`,
        in the default integer. The index of what is filled in is the size of the array.

    Raises:
        AbstractValueError: an argument is traced and `size` is not given.

    >>> import verax.numpy as vnp
    >>> x, y = vnp.array([3, 1, 2, 3]), vnp.array([3, 4, 1])
    >>> [part.tolist() for part in vnp.intersect1d(x, y, return_indices=True)]
    [[1, 3], [1, 0], [2, 0]]
    """
    x, y = flat_pair("intersect1d", ar1, ar2)
    expected = static_size("intersect1d", size, x, y)
    groups = grouped(column(x), True)
    keep = among(reshape(groups.rows, (x.size,)), y)
    out, places = select_set("intersect1d", groups, keep, expected, fill_value)
    if not return_indices:
        return out
    left = reshape(picked(column(groups.order), places, x.size), places.shape)
    other = grouped(column(y), True)
    rank = bisect(reshape(other.rows, (y.size,)), out, right=False)
    right = reshape(picked(column(other.order), rank, y.size), places.shape)
    inside = lt(places, x.size)
    return out, left, select(inside, right, constant_of(y.size, right.dtype))


def setdiff1d(
    ar1: ArrayLike,
    ar2: ArrayLike,
    assume_unique: bool = False,
    *,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
) -> Array:
    """The elements of the first but not of the second set, in order and in its dtype.

    Args:
        ar1: an array or scalar, taken as a flat one; elements may come twice.
        ar2: another one.
        assume_unique: not used.
        size: the number of results, known while tracing: more are cut off, and missing
            ones are filled in. None lets the values decide.
        fill_value: what missing ones are, a scalar; None for 0.

    Returns:
        A vector of distinct elements in the dtype of `ar1`; a NaN of `ar1` stays.

    Raises:
        AbstractValueError: an argument is traced and `size` is not given.

    >>> import verax.numpy as vnp
    >>> x, y = vnp.array([3, 1, 2, 3]), vnp.array([1, 9])
    >>> vnp.setdiff1d(x, y).tolist(), vnp.setdiff1d(x, y, size=4).tolist()
    ([2, 3], [2, 3, 0, 0])
    """
    x, y = flat_pair("setdiff1d", ar1, ar2)
    expected = static_size("setdiff1d", size, x, y)
    groups = grouped(column(x), True)
    keep = bitwise_not(among(reshape(groups.rows, (x.size,)), y))
    value = 0 if fill_value is None else fill_value
    array = select_set("setdiff1d", groups, keep, expected, value)[0]
    own = as_array("setdiff1d", ar1)
    return convert(array, own.dtype, own.weak_type)


def setxor1d(
    ar1: ArrayLike,
    ar2: ArrayLike,
    assume_unique: bool = False,
    *,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
) -> Array:
    """The elements in exactly one of two sets, in order; NaNs of two sets differ.

    Args:
        ar1: an array or scalar, taken as a flat one; elements may come twice.
        ar2: another one.
        assume_unique: not used.
        size: the number of results, known while tracing: more are cut off, and missing
            ones are filled in. None lets the values decide.
        fill_value: what missing ones are, a scalar; None for the smallest element of
            the result, or 0 if there is none.

    Returns:
        A vector of distinct elements, in the common dtype of the arguments.

    Raises:
        AbstractValueError: an argument is traced and `size` is not given.

    >>> import verax.numpy as vnp
    >>> vnp.setxor1d(vnp.array([3, 1, 2, 3]), vnp.array([1, 9])).tolist()
    [2, 3, 9]
    """
    x, y = flat_pair("setxor1d", ar1, ar2)
    expected = static_size("setxor1d", size, x, y)
    groups = grouped(column(concatenate([x, y], 0)), True)
    line = reshape(groups.rows, (x.size + y.size,))
    keep = bitwise_xor(among(line, x), among(line, y))
    if is_inexact(line.dtype):
        groups, keep = with_missing(groups, keep, line, x, y)
    return select_set("setxor1d", groups, keep, expected, fill_value)[0]


def with_missing(
    groups: Groups, keep: Array, line: Array, x: Array, y: Array
) -> tuple[Groups, Array]:
    """The groups of `line` and which are kept, with one NaN from each set that has any.

    NaNs of the two sets differ.
    """
    missing = ne(line, line)
    number = cumsum(convert(missing, default_integer()), 0)
    sets = [convert(reduce_or(ne(part, part), (0,)), number.dtype) for part in (x, y)]
    groups = groups._replace(first=bitwise_or(groups.first, missing))
    return groups, select(missing, le(number, add(*sets)), keep)


# -----------------------------------------------------------------------------
# Greatest common divisors and least common multiples.
#
# Euclid's algorithm on all elements at once, until every remainder is 0::
#
#     gcd(12, x), lcm(x, y)


def integers(name: str, x1: ArrayLike, x2: ArrayLike) -> tuple[Array, Array]:
    """The absolute values, in one dtype and shape.

    Raises:
        TypeError: the operands are not integers.
    """
    pair = [as_array(name, x) for x in promote(name, x1, x2)]
    if not is_integer(pair[0].dtype):
        raise ValueError(f"{name} takes integers, not {pair[0].aval}")
    x, y = stretched_together(name, [abs(x) for x in pair])
    shape = x.shape or y.shape
    return filled_to(x, shape), filled_to(y, shape)


def filled_to(x: Array, shape: tuple[int, ...]) -> Array:
    """`x` in a shape; weak only if that has no dimensions, as in JAX."""
    if not shape:
        return x
    wide = x if x.shape == shape else broadcast_in_dim(x, shape, ())
    return convert(wide, wide.dtype)


@remembered
def gcd(x1: ArrayLike, x2: ArrayLike) -> Array:
    """The greatest common divisors of integers, by elements; gcd(x, 0) is |x|.

    Args:
        x1: an array or scalar of integers.
        x2: an array or scalar of integers that broadcasts with `x1`.

    Returns:
        The divisors, which are not negative, in the common dtype of both and of the
        shape to which they broadcast.

    Raises:
        ValueError: the operands are not integers, or do not broadcast.

    >>> import verax.numpy as vnp
    >>> int(vnp.gcd(12, -18))
    6
    >>> vnp.gcd(vnp.array([0, 0, 12]), vnp.array([0, -5, 8])).tolist()
    [0, 5, 4]
    """
    return euclid(*integers("gcd", x1, x2))


def euclid(x: Array, y: Array) -> Array:
    """Pairs become (divisor, remainder) where there is a remainder."""

    def unfinished(pair: Any) -> Array:
        return any(not_equal(pair[1], 0))

    def step(pair: Any) -> Any:
        high, low = pair
        done = equal(low, 0)
        remainder = abs(rem(high, where(done, 1, low)))
        return where(done, high, low), where(done, low, remainder)

    out: Array = while_loop(unfinished, step, (x, y))[0]
    return out


@remembered
def lcm(x1: ArrayLike, x2: ArrayLike) -> Array:
    """The least common multiples of integers, by elements; 0 where one is 0.

    They overflow where the dtype cannot hold them.

    Args:
        x1: an array or scalar of integers.
        x2: an array or scalar of integers that broadcasts with `x1`.

    Returns:
        The multiples, which are not negative, in the common dtype of both and of the
        shape to which they broadcast.

    Raises:
        ValueError: the operands are not integers, or do not broadcast.

    >>> import verax.numpy as vnp
    >>> vnp.lcm(vnp.array([4, -6, 0]), vnp.array([6, 4, 3])).tolist()
    [12, 12, 0]
    """
    x, y = integers("lcm", x1, x2)
    divisor = euclid(x, y)
    divisor = where(equal(divisor, 0), 1, divisor)
    return multiply(abs(x), div(abs(y), divisor))
