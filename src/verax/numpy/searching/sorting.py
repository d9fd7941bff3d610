"""Floor 6: sorting, searching what is sorted, and the ends of an order.

One idea: a sort of several arrays by the first of them gives permutations, and a binary
search is a count of the elements that come before, taken a power of two at a time::

    sort(x), argsort(x, descending=True), searchsorted(x, 3.0), top_k(x, 3)
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from verax.backend.eager.composites import OneGo, in_numpy, remembered
from verax.ir.avals import ShapedArray
from verax.ir.dtypes import (
    DTypeLike,
    is_bool,
    is_complex,
    is_float,
    is_integer,
    numpy_dtype,
)
from verax.numpy.arguments.arguments import (
    ArrayLike,
    Axis,
    as_array,
    canonical_axis,
    chosen_dtype,
    constant_of,
    default_integer,
    promote_dtypes,
    shown,
)
from verax.numpy.creation.filling import filled
from verax.numpy.elementwise.comparison import bitwise_not
from verax.numpy.indexing.take import take_along_axis
from verax.numpy.reducing.reductions import Where, max, min
from verax.numpy.reducing.running import flat_or_along
from verax.ops.elementwise.arith import add, imag, real, sub
from verax.ops.elementwise.bits import bitwise_and, bitwise_or
from verax.ops.elementwise.compare import eq, le, lt, ne
from verax.ops.elementwise.convert import convert
from verax.ops.elementwise.select import select
from verax.ops.indexing.gather import take_along
from verax.ops.reductions.reduce import reduce_sum
from verax.ops.sorting import sort as sorts
from verax.ops.structure.create import broadcasted_iota
from verax.ops.structure.joining import rev
from verax.ops.structure.shape import broadcast_in_dim, reshape
from verax.ops.structure.slicing import slice_in_dim
from verax.rules.values.array import Array
from verax.rules.values.sizes import ShapeError, surely_less

# Up to here comparing all takes less time than a search, eagerly and compiled.
FEW_PAIRS = 1 << 12


def check_sort(name: str, kind: object, order: object) -> None:
    """Raise unless NumPy's names for algorithms and fields are left out.

    Raises:
        TypeError: one is given.
    """
    for argument, value in (("kind", kind), ("order", order)):
        if value is not None:
            raise TypeError(
                f"{name}: {argument}={shown(value)} is not available; use stable=... "
                "and descending=..."
            )


@remembered
def sort(
    a: ArrayLike,
    axis: int | None = -1,
    *,
    kind: None = None,
    order: None = None,
    stable: bool = True,
    descending: bool = False,
) -> Array:
    """`a` in increasing order along `axis`, NaN last; flat if `axis` is None.

    Args:
        a: an array; complex numbers are ordered by their real and then their imaginary
            parts.
        axis: the dimension to work along, by default the last; None for the flat array.
        kind: only None; there is one algorithm, see `stable`.
        order: only None, since there are no fields.
        stable: whether equal elements keep their order, which matters little here.
        descending: whether the order is decreasing, with NaN first.

    Returns:
        The sorted elements, in the dtype and shape of `a`; a vector if `axis` is None.

    Raises:
        TypeError: `kind` or `order` is given.
        ValueError: there is no such axis.

    >>> import verax.numpy as vnp
    >>> vnp.sort(vnp.array([3.0, vnp.nan, -1.0]))
    Array([-1.,  3., nan], dtype=float32)
    >>> vnp.sort(vnp.array([[3, 1], [2, 4]]), axis=0, descending=True).tolist()
    [[3, 4], [2, 1]]
    """
    check_sort("sort", kind, order)
    x, along = flat_or_along("sort", as_array("sort", a), axis)
    out: Array = sorts.sort(x, along, is_stable=stable)
    return rev(out, (along,)) if descending else out


@remembered
def argsort(
    a: ArrayLike,
    axis: int | None = -1,
    *,
    kind: None = None,
    order: None = None,
    stable: bool = True,
    descending: bool = False,
    dtype: DTypeLike | None = None,
) -> Array:
    """The indices that put `a` in order along `axis`; equal elements keep theirs.

    NaN comes last, or first if `descending`.

    Args:
        a: an array; complex numbers are ordered by their real and then their imaginary
            parts.
        axis: the dimension to work along, by default the last; None for the flat array.
        kind: only None; there is one algorithm, see `stable`.
        order: only None, since there are no fields.
        stable: whether equal elements must keep their order.
        descending: whether the order is decreasing; equal elements keep theirs.
        dtype: the dtype of the result; by default the default integer.

    Returns:
        The indices along `axis`, of the shape of `a`; a vector if `axis` is None.

    Raises:
        TypeError: `kind` or `order` is given.
        ValueError: there is no such axis.

    >>> import verax.numpy as vnp
    >>> x = vnp.array([3, 1, 3, 1])
    >>> vnp.argsort(x).tolist(), vnp.argsort(x, descending=True).tolist()
    ([1, 3, 0, 2], [0, 2, 1, 3])
    """
    check_sort("argsort", kind, order)
    x, along = flat_or_along("argsort", as_array("argsort", a), axis)
    target = chosen_dtype("argsort", dtype) or default_integer()
    places = broadcasted_iota(target, x.shape, along)
    if not descending:
        out: Array = sorts.sort((x, places), along, is_stable=stable)[1]
        return out
    # Backwards twice, so that equal elements stay in their order.
    backward, back_places = rev(x, (along,)), rev(places, (along,))
    out = sorts.sort((backward, back_places), along, is_stable=stable)[1]
    return rev(out, (along,))


def sort_complex(a: ArrayLike) -> Array:
    """`a` as complex numbers in order along its last axis.

    The real parts decide, and the imaginary parts where they are equal.

    Args:
        a: an array of one or more dimensions.

    Returns:
        The sorted numbers, of the shape of `a`, in its dtype if that is complex, else
        in complex128 for float64 and in complex64 for all others.

    Raises:
        ValueError: `a` has no dimensions.

    >>> import verax.numpy as vnp
    >>> vnp.sort_complex(vnp.array([2 + 1j, 1 + 2j, 1 - 3j]))
    Array([1.-3.j, 1.+2.j, 2.+1.j], dtype=complex64)
    """
    x = sort(a)
    if is_complex(x.dtype):
        return x
    wide = x.dtype == np.float64
    return convert(x, np.dtype(np.complex128 if wide else np.complex64))


def lexsort(
    keys: Array | np.ndarray | Sequence[ArrayLike],
    axis: int = -1,
    *,
    batch_size: int = 16,
) -> Array:
    """The indices that sort by the last of `keys`, then by the one before, and so on.

    Args:
        keys: arrays of one shape, a sequence of them or an array whose first dimension
            counts them; the last key decides first.
        axis: the dimension of the keys to work along, by default the last.
        batch_size: not used: all keys are sorted at once.

    Returns:
        The indices along `axis` in the default integer, of the shape of a key.

    Raises:
        TypeError: there are no keys.
        ValueError: the keys have different shapes, or there is no such axis.

    >>> import verax.numpy as vnp
    >>> ages, heights = vnp.array([30, 25, 30]), vnp.array([170, 180, 160])
    >>> vnp.lexsort((heights, ages)).tolist()
    [1, 2, 0]
    """
    given = [as_array("lexsort", key, i) for i, key in enumerate(keys)]
    if not given:
        raise TypeError("lexsort takes at least one key")
    if len({key.shape for key in given}) != 1:
        raise ValueError(
            "lexsort takes keys of the same shape, not "
            f"{', '.join(str(key.shape) for key in given)}"
        )
    if not given[0].ndim:
        return filled((), 0, default_integer())
    along = canonical_axis("lexsort", axis, given[0].ndim)
    places = broadcasted_iota(default_integer(), given[0].shape, along)
    outs = sorts.sort((*given[::-1], places), along, num_keys=len(given))
    last: Array = outs[-1]
    return last


def partition(a: ArrayLike, kth: int, axis: int = -1) -> Array:
    """`a` with the `kth` element in place, smaller ones before, larger ones after.

    Here all elements are sorted, NaN last.

    Args:
        a: an array of one or more dimensions.
        kth: the place, in the sorted order, of the element that must be there; a
            negative one counts from the end. It must be one integer.
        axis: the dimension to work along, by default the last.

    Returns:
        The elements in their new order, in the dtype and shape of `a`.

    Raises:
        ValueError: `kth` or `axis` is out of bounds.

    >>> import verax.numpy as vnp
    >>> x = vnp.partition(vnp.array([5, 1, 4, 2, 3]), 2)
    >>> int(x[2]), set(x[:2].tolist()) == {1, 2}
    (3, True)
    """
    x = as_array("partition", a)
    along = canonical_axis("partition", axis, x.ndim)
    canonical_axis("partition: kth", kth, x.shape[along])
    return sort(x, along)


def argpartition(a: ArrayLike, kth: int, axis: int = -1) -> Array:
    """The indices that `partition` takes.

    Args:
        a: an array of one or more dimensions.
        kth: the place, in the sorted order, of the element that must be there; a
            negative one counts from the end. It must be one integer.
        axis: the dimension to work along, by default the last.

    Returns:
        The indices along `axis` in the default integer, of the shape of `a`.

    Raises:
        ValueError: `kth` or `axis` is out of bounds.

    >>> import verax.numpy as vnp
    >>> x = vnp.array([5, 1, 4, 2, 3])
    >>> int(x[vnp.argpartition(x, 2)[2]])
    3
    """
    x = as_array("argpartition", a)
    along = canonical_axis("argpartition", axis, x.ndim)
    canonical_axis("argpartition: kth", kth, x.shape[along])
    return argsort(x, along)


METHODS = ("scan", "scan_unrolled", "sort", "compare_all", "default")


def bisect_at_once(
    line: ShapedArray, queries: ShapedArray, right: bool
) -> OneGo | None:
    """Counts few pairs as `bisect` does, by one comparison; NaN is for the steps."""
    few = surely_less(line.size * queries.size, FEW_PAIRS)
    if not few or line.dtype.kind not in "biuf":
        return None
    compare = np.less_equal if right else np.less
    dtype, count = numpy_dtype(default_integer()), np.add.reduce
    floats = is_float(line.dtype)

    def compute(line: np.ndarray, queries: np.ndarray) -> Any:
        if floats:
            flat = queries.reshape(-1)
            square = flat.dot(flat)
            if square != square:  # a sum of squares is NaN only for a NaN
                return None
        return count(compare(line, queries[..., None]), -1, dtype)

    return compute


def searchsorted_at_once(
    a: object,
    v: object,
    side: str = "left",
    sorter: object = None,
    *,
    method: str = "scan",
) -> OneGo | None:
    """Counts in `a` itself as `bisect` does, for operands of one type."""
    if not (type(a) is ShapedArray and type(v) is ShapedArray):
        return None
    if sorter is not None or a.dtype is not v.dtype:
        return None
    return bisect_at_once(a, v, side == "right")


@in_numpy(searchsorted_at_once)
def searchsorted(
    a: ArrayLike,
    v: ArrayLike,
    side: str = "left",
    sorter: ArrayLike | None = None,
    *,
    method: str = "scan",
) -> Array:
    """The places where the values `v` would go in the sorted vector `a`.

    NaN comes last and is equal to NaN. Complex numbers are ordered by their real, then
    by their imaginary parts, as by `sort`.

    Args:
        a: a vector in increasing order, or one that `sorter` puts in order.
        v: an array or scalar of values to look for.
        side: "left" for the place before equal elements, "right" for the one behind
            them.
        sorter: the indices that sort `a`, as from `argsort`; None if it is sorted.
        method: how to find it, which does not change the result: "scan",
            "scan_unrolled", "sort", "compare_all" or "default".

    Returns:
        The numbers of elements before each value, from 0 to the size of `a`, in the
        default integer and the shape of `v`.

    Raises:
        ValueError: `a` is not one-dimensional, or `side` or `method` is unknown.

    >>> import verax.numpy as vnp
    >>> a, v = vnp.array([1, 3, 3, 5]), vnp.array([0, 3, 9])
    >>> vnp.searchsorted(a, v).tolist(), vnp.searchsorted(a, v, side="right").tolist()
    ([0, 1, 4], [0, 3, 4])
    """
    if side not in ("left", "right") or method not in METHODS:
        raise ValueError(
            "searchsorted: side must be 'left' or 'right', and method one of "
            f"{', '.join(METHODS)}, not {side!r} and {method!r}"
        )
    line, queries = promote_dtypes(
        as_array("searchsorted", a), as_array("searchsorted", v)
    )
    if line.ndim != 1:
        raise ValueError(
            f"searchsorted: the first argument must be a vector, not {line.aval}"
        )
    if sorter is not None:
        line = take_along(line, as_array("searchsorted", sorter), 0)
    return bisect(line, queries, side == "right")


@in_numpy(bisect_at_once)
def bisect(line: Array, queries: Array, right: bool) -> Array:
    """Counts the elements before each query, bit by bit from the highest.

    Where there are few pairs of an element and a query, all are compared.
    """
    size = line.shape[0]
    dtype = default_integer()
    flat = reshape(queries, (queries.size,))
    if surely_less(size * queries.size, FEW_PAIRS):
        pairs = (queries.size, size)
        come_first = before(
            broadcast_in_dim(line, pairs, (1,)),
            broadcast_in_dim(flat, pairs, (0,)),
            or_equal=right,
        )
        return reshape(reduce_sum(convert(come_first, dtype), (1,)), queries.shape)
    count = filled(flat.shape, 0, dtype)
    for bit in reversed(range(size.bit_length())):
        trial = add(count, 1 << bit)
        inside = le(trial, size)
        place = sub(select(inside, trial, constant_of(size, dtype)), 1)
        element = take_along(line, place, 0)
        come_first = before(element, flat, or_equal=right)
        count = select(bitwise_and(inside, come_first), trial, count)
    return reshape(count, queries.shape)


def before(x: Array, y: Array, or_equal: bool) -> Array:
    """Whether x comes before y, or is equal too; NaN comes last and equals itself.

    Complex numbers are in the order of `sort`: by real, then by imaginary part.
    """
    if is_complex(x.dtype):
        a, b = real(x), real(y)
        less = before(a, b, or_equal=False)
        same = bitwise_and(before(a, b, or_equal=True), bitwise_not(less))
        return bitwise_or(less, bitwise_and(same, before(imag(x), imag(y), or_equal)))
    compare = le if or_equal else lt
    if not is_float(x.dtype):
        return compare(x, y)
    out = bitwise_or(compare(x, y), bitwise_and(ne(y, y), eq(x, x)))
    return bitwise_or(out, ne(y, y)) if or_equal else out


@remembered
def digitize(
    x: ArrayLike, bins: ArrayLike, right: bool = False, *, method: str | None = None
) -> Array:
    """The number of the bin that holds each element, for bins that rise or fall.

    Bin i lies between the edges i - 1 and i; 0 is before the first edge, and the number
    of edges is behind the last. That `bins` is in order is not checked.

    Args:
        x: an array or scalar of real numbers; NaN counts as larger than all edges.
        bins: a vector of edges in increasing or decreasing order.
        right: whether a bin holds its right edge, the larger one, instead of its left.
        method: a method of `searchsorted`, which does not change the result; None for
            its default.

    Returns:
        The numbers, from 0 to the size of `bins`, in the default integer and the shape
        of `x`.

    Raises:
        ValueError: `bins` is not a vector, or `method` is unknown.

    >>> import verax.numpy as vnp
    >>> x, edges = vnp.array([0, 1, 2, 5]), vnp.array([1, 2, 4])
    >>> vnp.digitize(x, edges).tolist(), vnp.digitize(x, edges, right=True).tolist()
    ([0, 1, 2, 3], [0, 0, 1, 3])
    """
    given, edges = as_array("digitize", x), as_array("digitize", bins, 1)
    if edges.ndim != 1:
        raise ValueError(f"digitize: bins must be a vector, not {edges.aval}")
    if not edges.size:
        return filled(given.shape, 0, default_integer())
    how = method or "scan"
    side = "left" if right else "right"
    rising = searchsorted(edges, given, side, method=how)
    falling = searchsorted(rev(edges, (0,)), given, side, method=how)
    up = le(edges[0], edges[-1])
    return select(up, rising, sub(constant_of(edges.size, rising.dtype), falling))


def minmax(
    a: ArrayLike,
    axis: Axis = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | tuple[ArrayLike, ArrayLike] | None = None,
    where: Where = None,
) -> tuple[Array, Array]:
    """The smallest and the largest element over `axis`.

    Args:
        a: an array or scalar; complex numbers are ordered by their real and then their
            imaginary parts.
        axis: the dimension or dimensions to reduce; None for all of them.
        out: only None, since arrays are immutable.
        keepdims: whether reduced dimensions stay, with size 1.
        initial: a scalar to begin with, or a tuple of one for the smallest and one for
            the largest element. Required with `where` and where there are no elements.
        where: a mask that broadcasts with the array; elements where it is false are
            left out.

    Returns:
        A pair of arrays, as from `min` and `max`, in the dtype of `a` and of its shape
        without the dimensions in `axis`; NaN if there is one.

    Raises:
        ValueError: there are no elements, or only some count, and no `initial`.

    >>> import verax.numpy as vnp
    >>> low, high = vnp.minmax(vnp.array([[3, 1], [5, 4]]), axis=1)
    >>> low.tolist(), high.tolist()
    ([1, 4], [3, 5])
    """
    low, high = initial if isinstance(initial, tuple) else (initial, initial)
    x = as_array("minmax", a)
    return (
        min(x, axis, out, keepdims, low, where),
        max(x, axis, out, keepdims, high, where),
    )


def top_k(
    a: ArrayLike,
    k: int,
    /,
    *,
    axis: int = -1,
    mode: str = "largest",
    sorted: bool = True,
) -> list[Array]:
    """The `k` largest or smallest elements along `axis`, in order, and their places.

    NaN is the largest; of equal elements the first comes first.

    Args:
        a: an array of one or more dimensions, not complex.
        k: the number of elements, at most the size of the axis.
        axis: the dimension to work along, by default the last.
        mode: "largest" or "smallest".
        sorted: whether the result must be in order, which it is in any case.

    Returns:
        A list of the elements, in the dtype of `a`, and their indices along `axis`, in
        integers; both of the shape of `a`, but with size `k` along `axis`.

    Raises:
        ValueError: there are fewer than `k`, there is no such axis, or another mode.
        TypeError: `a` is complex.

    >>> import verax.numpy as vnp
    >>> values, places = vnp.top_k(vnp.array([3.0, vnp.nan, 1.0]), 2)
    >>> values.tolist(), places.tolist()
    ([nan, 3.0], [1, 0])
    >>> vnp.top_k(vnp.array([3, 1, 4, 1]), 2, mode="smallest")[1].tolist()
    [1, 3]
    """
    if mode not in ("largest", "smallest"):
        raise ValueError(f"top_k: mode must be 'largest' or 'smallest', not {mode!r}")
    x = as_array("top_k", a)
    place = canonical_axis("top_k", axis, x.ndim)
    if is_complex(x.dtype):
        raise ShapeError(
            "top_k is not compatible with complex inputs, which have no order: "
            f"{x.aval}"
        )
    sorts.check_count(k, x.aval, place)
    if mode == "largest":
        return sorts.top_k(x, k, axis=place)
    if is_bool(x.dtype) or is_integer(x.dtype):
        values, places = sorts.top_k(bitwise_not(x), k, axis=place)
        return [bitwise_not(values), places]
    # Floats are sorted: there is no negation that keeps NaN the largest.
    places = slice_in_dim(argsort(x, axis=place), 0, k, axis=place)
    return [take_along_axis(x, places, axis=place), places]
