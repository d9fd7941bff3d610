"""Floor 6: sets: distinct elements, and unions, intersections and differences.

One idea: after a sort, equal elements are neighbours, and what is kept is marked and
then moved to the front. How many these are depends on values, so that under a trace
`size` has to say it::

    unique(x), unique(x, size=8, fill_value=0), isin(x, [1, 2])
"""

from typing import Literal, overload

from verax.ir.dtypes import bool_, is_inexact
from verax.numpy.arguments.arguments import (
    ArrayLike,
    as_array,
    constant_of,
    default_integer,
    promote_dtypes,
    with_weak_type,
)
from verax.numpy.creation.filling import filled
from verax.numpy.elementwise.comparison import equal, logical_not
from verax.numpy.searching.sorting import bisect
from verax.numpy.searching.unique import (
    Groups,
    column,
    grouped,
    how_many,
    kept_places,
    picked,
    static_size,
    unique,
)
from verax.ops.elementwise.arith import add, min as smaller
from verax.ops.elementwise.bits import bitwise_and, bitwise_not, bitwise_or, bitwise_xor
from verax.ops.elementwise.compare import eq, le, lt, ne
from verax.ops.elementwise.convert import convert
from verax.ops.elementwise.select import select
from verax.ops.indexing.gather import take_along
from verax.ops.reductions.cumulative import cumsum
from verax.ops.reductions.reduce import reduce_or
from verax.ops.sorting.sort import sort
from verax.ops.structure.joining import concatenate
from verax.ops.structure.shape import broadcast_in_dim, reshape
from verax.rules.values.array import Array

# Below so many test elements, comparing with all of them beats a sort and a search.
FEW = 32
MEMBERSHIP = ("auto", "compare_all", "binary_search", "sort")


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
    out = among(with_weak_type(x, False), with_weak_type(flat, False))
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
