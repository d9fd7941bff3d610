"""Floor 6: arrays put together, taken apart and repeated.

One idea: all joins are one concatenation of operands whose dimensions were lined up
first, and all splits are slices::

    stack((x, y), axis=-1), concatenate((x, y)), split(x, 3), tile(x, 2), repeat(x, 2)
"""

from collections.abc import Sequence
from itertools import pairwise
from operator import index
from typing import Any

import numpy as np

from verax.backend.eager.composites import remembered
from verax.ir.avals import Shape, ShapedArray
from verax.ir.dtypes import DTypeLike
from verax.ir.memos import memoised
from verax.numpy.arguments.arguments import (
    ArrayLike,
    array_behind,
    as_array,
    as_type,
    avals_of,
    canonical_axes,
    canonical_axis,
    chosen_dtype,
    common_type,
    is_single,
    no_out,
    operand_aval,
    shape_of,
    with_weak_type,
)
from verax.numpy.creation.creation import as_values
from verax.numpy.elementwise.division import remainder
from verax.numpy.shaping.shapes import (
    AxisLike,
    at_least,
    broadcast_to,
    expand_dims,
    ndim,
    ravel,
    reshape,
    transpose,
)
from verax.ops.elementwise.convert import convert
from verax.ops.indexing.dynamic_slice import dynamic_slice_in_dim
from verax.ops.structure.joining import (
    ConcatenateParams,
    concatenate_p,
    rev,
    split as parts_of,
)
from verax.ops.structure.reshard import call_sharded
from verax.ops.structure.slicing import slice_in_dim
from verax.rules.rows.builder import Tracer
from verax.rules.values.array import Array
from verax.rules.values.conversions import shown
from verax.rules.values.sizes import ShapeError, as_size, kept, one_or_more

concatenate_params = memoised(ConcatenateParams)

type Arrays = Array | np.ndarray | Sequence[ArrayLike]


def operands(name: str, arrays: Arrays, dtype: DTypeLike | None = None) -> list[Any]:
    """The arrays of a join in one dtype; an array stands for its rows.

    Raises:
        TypeError: one is not an array.
        ValueError: there is none.
    """
    if isinstance(arrays, Array | np.ndarray):
        if arrays.ndim == 0:
            raise ValueError(f"{name} takes a sequence of arrays, not a single scalar")
        arrays = [arrays[i] for i in range(arrays.shape[0])]
    if not isinstance(arrays, Sequence):
        raise TypeError(f"{name} takes a sequence of arrays, not {shown(arrays)}")
    if not arrays:
        raise ValueError(f"{name} needs at least one array")
    if dtype is None and isinstance(arrays[0], Array):
        own = arrays[0].aval.dtype
        if all([isinstance(x, Array) and x.aval.dtype is own for x in arrays]):
            return list(arrays)
    avals = avals_of(name, arrays)
    expected = chosen_dtype(name, dtype)
    result, weak = common_type(avals) if expected is None else (expected, False)
    parts = [as_type(x, a, result, weak) for x, a in zip(arrays, avals, strict=True)]
    whole = [x if hasattr(x, "shape") else as_array(name, x) for x in parts]
    if expected is None:
        return whole
    return [with_weak_type(x, False) if isinstance(x, Array) else x for x in whole]


def joined(name: str, parts: Sequence[Any], axis: int) -> Array:
    """The parts one after the other along a dimension counted from the front."""
    if len(parts) == 1:
        return as_array(name, parts[0])
    first = parts[0].shape
    for part in parts:
        own = part.shape
        if own != first and not joinable(own, first, axis):
            shapes = ", ".join([str(part.shape) for part in parts])
            raise ShapeError(
                f"{name}: the arrays must have the same shape except along dimension "
                f"{axis}, not {shapes}"
            )
    return concatenate_p.call(concatenate_params(axis), *parts)


def common_aval(arrays: Arrays) -> ShapedArray | None:
    """The one type of several arrays in a list or tuple; None if they are otherwise."""
    if type(arrays) not in (list, tuple) or len(arrays) < 2:
        return None
    first = arrays[0]
    if not isinstance(first, Array):
        return None
    aval = first.aval
    alike = all([isinstance(x, Array) and x.aval is aval for x in arrays])
    return aval if alike else None


def joinable(own: Shape, first: Shape, axis: int) -> bool:
    """Whether two shapes agree except in one dimension."""
    return len(own) == len(first) and all(
        d == axis or a == b for d, (a, b) in enumerate(zip(own, first, strict=True))
    )


def concatenate(
    arrays: Arrays, axis: int | None = 0, dtype: DTypeLike | None = None
) -> Array:
    """The arrays one after the other along a dimension.

    Args:
        arrays: a sequence of arrays with at least one dimension, or an array, which
            stands for its rows. Their shapes agree except along `axis`.
        axis: the dimension to work along, 0 by default; None for the flat arrays.
        dtype: the dtype of the result; by default the common one of the arrays.

    Returns:
        An array whose size along `axis` is the sum of theirs; a vector if `axis` is
        None.

    Raises:
        ValueError: shapes differ elsewhere, or an array has no dimensions, or there are
            no arrays.

    >>> import verax.numpy as vnp
    >>> vnp.concatenate([vnp.array([[1, 2]]), vnp.array([[0.5], [1.5]])], axis=None)
    Array([1. , 2. , 0.5, 1.5], dtype=float32)
    >>> vnp.concatenate([vnp.array([[1, 2]]), vnp.array([[3, 4]])], axis=1)
    Array([[1, 2, 3, 4]], dtype=int32)
    """
    return end_to_end("concatenate", arrays, axis, dtype)


def end_to_end(
    name: str, arrays: Arrays, axis: int | None = 0, dtype: DTypeLike | None = None
) -> Array:
    """`concatenate`, for the function of that name."""
    aval = common_aval(arrays) if dtype is None else None
    if aval is not None and type(axis) is int and 0 <= axis < len(aval.shape):
        return concatenate_p.call(concatenate_params(axis), *arrays)
    parts = operands(name, arrays, dtype)
    if axis is None:
        return joined(name, [ravel(part) for part in parts], 0)
    if not all([part.ndim for part in parts]):
        raise ValueError(
            f"{name} takes arrays with at least one dimension; use stack for scalars"
        )
    place = canonical_axis(name, axis, parts[0].ndim)
    return joined(name, parts, place)


def concat(arrays: Sequence[ArrayLike], /, *, axis: int | None = 0) -> Array:
    """The arrays one after the other; as `concatenate`, by its name in the array API.

    Args:
        arrays: a sequence of arrays with at least one dimension, whose shapes agree
            except along `axis`.
        axis: the dimension to work along, 0 by default; None for the flat arrays.

    Returns:
        An array in their common dtype, whose size along `axis` is the sum of theirs.

    Raises:
        ValueError: shapes differ elsewhere, or an array has no dimensions, or there are
            no arrays.

    >>> import verax.numpy as vnp
    >>> vnp.concat([vnp.array([1, 2]), vnp.array([0.5])])
    Array([1. , 2. , 0.5], dtype=float32)
    """
    return end_to_end("concat", arrays, axis)


def stack(
    arrays: Arrays,
    axis: int = 0,
    out: None = None,
    dtype: DTypeLike | None = None,
) -> Array:
    """Arrays of the same shape as one array, with a new dimension `axis`.

    Args:
        arrays: a sequence of arrays or scalars of one shape, or an array, which stands
            for its rows.
        axis: the place of the new dimension in the result, 0 by default.
        out: only None, since arrays are immutable.
        dtype: the dtype of the result; by default the common one of the arrays.

    Returns:
        An array with one dimension more, whose size is the number of arrays.

    Raises:
        NotImplementedError: there is an `out`.
        ValueError: shapes differ, or there are no arrays.

    >>> import verax.numpy as vnp
    >>> x, y = vnp.array([1, 2, 3]), vnp.array([4, 5, 6])
    >>> vnp.stack([x, y], axis=-1)
    Array([[1, 4],
           [2, 5],
           [3, 6]], dtype=int32)
    """
    no_out("stack", out)
    if isinstance(arrays, Array) and axis == 0 and dtype is None and arrays.ndim:
        return arrays
    known = dtype is None and common_aval(arrays) is not None
    return piled(axis, *(arrays if known else operands("stack", arrays, dtype)))


@remembered
def piled(axis: int, *parts: Any) -> Array:
    """`stack` for arrays of the same dtype."""
    first = parts[0].shape
    if any(part.shape != first for part in parts):
        shapes = ", ".join(str(part.shape) for part in parts)
        raise ShapeError(f"stack takes arrays of the same shape, not {shapes}")
    place = canonical_axis("stack", axis, len(first) + 1)
    return joined("stack", [expand_dims(part, place) for part in parts], place)


def lined_up(
    name: str, arrays: Arrays, rank: int, dtype: DTypeLike | None
) -> list[Any]:
    """Operands with at least `rank` dimensions."""
    return [at_least(part, rank, name) for part in operands(name, arrays, dtype)]


def vstack(tup: Arrays, dtype: DTypeLike | None = None) -> Array:
    """Rows, or arrays along their first dimension, one below the other.

    Args:
        tup: a sequence of arrays or scalars, or an array, which stands for its rows.
            One with fewer than two dimensions is a row; shapes agree except along the
            first dimension.
        dtype: the dtype of the result; by default the common one of the arrays.

    Returns:
        An array with at least two dimensions.

    Raises:
        ValueError: shapes differ elsewhere, or there are no arrays.

    >>> import verax.numpy as vnp
    >>> vnp.vstack([vnp.array([1, 2]), vnp.array([[3, 4], [5, 6]])])
    Array([[1, 2],
           [3, 4],
           [5, 6]], dtype=int32)
    """
    return joined("vstack", lined_up("vstack", tup, 2, dtype), 0)


def hstack(tup: Arrays, dtype: DTypeLike | None = None) -> Array:
    """Arrays side by side: along the second dimension, or the only one.

    Args:
        tup: a sequence of arrays or scalars, or an array, which stands for its rows.
            Scalars are vectors of one element; shapes agree except along the dimension
            of the join.
        dtype: the dtype of the result; by default the common one of the arrays.

    Returns:
        An array with at least one dimension.

    Raises:
        ValueError: shapes differ elsewhere, or there are no arrays.

    >>> import verax.numpy as vnp
    >>> vnp.hstack([vnp.array([1, 2]), 3]).tolist()
    [1, 2, 3]
    >>> vnp.hstack([vnp.array([[1], [2]]), vnp.array([[3], [4]])]).tolist()
    [[1, 3], [2, 4]]
    """
    parts = lined_up("hstack", tup, 1, dtype)
    return joined("hstack", parts, 0 if parts[0].ndim == 1 else 1)


def dstack(tup: Arrays, dtype: DTypeLike | None = None) -> Array:
    """Arrays one behind the other, along the third dimension.

    Args:
        tup: a sequence of arrays or scalars, or an array, which stands for its rows.
            Those with fewer than three dimensions are filled up as in `atleast_3d`;
            shapes agree except along the third dimension.
        dtype: the dtype of the result; by default the common one of the arrays.

    Returns:
        An array with at least three dimensions.

    Raises:
        ValueError: shapes differ elsewhere, or there are no arrays.

    >>> import verax.numpy as vnp
    >>> vnp.dstack([vnp.array([1, 2]), vnp.array([3, 4])])
    Array([[[1, 3],
            [2, 4]]], dtype=int32)
    """
    return joined("dstack", lined_up("dstack", tup, 3, dtype), 2)


def column_stack(tup: Arrays) -> Array:
    """Vectors as columns, and matrices, side by side.

    Args:
        tup: a sequence of arrays or scalars, or an array, which stands for its rows. A
            vector is one column; all have the same number of rows.

    Returns:
        A matrix in the common dtype, with the columns of all arrays.

    Raises:
        ValueError: the numbers of rows differ, or there are no arrays.

    >>> import verax.numpy as vnp
    >>> vnp.column_stack([vnp.array([1, 2]), vnp.array([[3, 4], [5, 6]])])
    Array([[1, 3, 4],
           [2, 5, 6]], dtype=int32)
    """
    parts = [
        reshape(part, (-1, 1)) if part.ndim < 2 else part
        for part in operands("column_stack", tup)
    ]
    return joined("column_stack", parts, 1)


@remembered
def append(arr: ArrayLike, values: ArrayLike, axis: int | None = None) -> Array:
    """`values` after `arr`.

    `arr` stays as it is: each call makes a new array.

    Args:
        arr: an array or scalar.
        values: an array or scalar; with an `axis`, of the shape of `arr` except along
            it.
        axis: the dimension to work along; None for the flat arrays, and the default.

    Returns:
        An array in the common dtype; a vector if `axis` is None.

    Raises:
        ValueError: with an `axis`, shapes differ elsewhere or there are no dimensions.

    >>> import verax.numpy as vnp
    >>> vnp.append(vnp.array([[1, 2]]), 3).tolist()
    [1, 2, 3]
    >>> vnp.append(vnp.array([[1, 2]]), vnp.array([[3, 4]]), axis=0).tolist()
    [[1, 2], [3, 4]]
    """
    return end_to_end("append", (arr, values), axis)


def block(arrays: object) -> Array:
    """Nested lists of arrays put together: the innermost along the last dimension.

    Args:
        arrays: an array or scalar, or lists of them, nested evenly to any depth: the
            outermost list runs along the first of the dimensions joined. Arrays of
            fewer dimensions get new ones of size 1 in front.

    Returns:
        An array in the common dtype, with as many dimensions as the lists are deep, or
        as the array with the most has.

    Raises:
        ValueError: lists are nested unevenly, or one is empty, or shapes do not fit.
        TypeError: there is a tuple.

    >>> import verax.numpy as vnp
    >>> vnp.block([[vnp.eye(2), vnp.zeros((2, 1))], [vnp.ones((1, 3))]])
    Array([[1., 0., 0.],
           [0., 1., 0.],
           [1., 1., 1.]], dtype=float32)
    """
    depth = nesting(arrays)
    rank = max(depth, *[ndim(leaf) for leaf in leaves(arrays)])
    return assembled(arrays, depth, rank)


def nesting(arrays: object) -> int:
    """The depth to which the lists of `block` are nested.

    Raises:
        ValueError: they are nested unevenly, or one is empty.
        TypeError: there is a tuple.
    """
    if isinstance(arrays, tuple):
        raise TypeError("block takes lists of arrays; use a list instead of a tuple")
    if not isinstance(arrays, list):
        return 0
    depths = {nesting(part) for part in arrays}
    if len(depths) != 1:
        raise ValueError("block takes evenly nested lists, none of them empty")
    return 1 + depths.pop()


def leaves(arrays: Any) -> list[Any]:
    if not isinstance(arrays, list):
        return [arrays]
    return [leaf for part in arrays for leaf in leaves(part)]


def assembled(arrays: Any, depth: int, rank: int) -> Array:
    if not isinstance(arrays, list):
        x = as_array("block", arrays)
        return reshape(x, (1,) * (rank - x.ndim) + x.shape)
    parts = [assembled(part, depth - 1, rank) for part in arrays]
    return end_to_end("block", parts, -depth)


# ---------------------------------------------------------------------- splitting


def pieces(x: Array, bounds: Sequence[int], axis: int) -> list[Array]:
    """The parts of `x` between consecutive bounds, moved inside and kept in order."""
    n = x.shape[axis]
    inside = [min(max(b + n if b < 0 else b, 0), n) for b in bounds]
    sizes = [stop - start for start, stop in pairwise(inside)]
    if all(size >= 0 for size in sizes):
        return parts_of(x, sizes, axis)
    return [
        slice_in_dim(x, start, max(start, stop), axis=axis)
        for start, stop in pairwise(inside)
    ]


def sections(
    name: str, ary: ArrayLike, where: Any, axis: int, even: bool
) -> list[Array]:
    """`ary` split at the indices `where`, or into that many parts."""
    x = as_array(name, ary)
    place = canonical_axis(name, axis, x.ndim)
    n = x.shape[place]
    if not hasattr(where, "__index__") or shape_of(where):
        cuts = [as_size(i) for i in where]
        return pieces(x, [0, *cuts, n], place)
    count = index(where)
    if count < 1 or (even and n % count):
        raise ValueError(
            f"{name}: a dimension of size {n} does not divide into {count} equal parts"
        )
    least, more = divmod(n, count)
    bounds = [i * least + min(i, more) for i in range(count + 1)]
    return pieces(x, bounds, place)


@remembered
def split(ary: ArrayLike, indices_or_sections: Any, axis: int = 0) -> list[Array]:
    """Parts of equal size along a dimension, or the parts between given indices.

    Args:
        ary: an array.
        indices_or_sections: the number of parts, which divides the size; or a sequence
            of indices, known while tracing, at each of which a new part begins.
            Negative ones count from the end, and those beyond it stand for the end.
        axis: the dimension to work along, 0 by default.

    Returns:
        A list of arrays in the dtype of `ary`: as many as asked for, or one more than
        there are indices.

    Raises:
        ValueError: the size is not a multiple of the number of parts.

    >>> import verax.numpy as vnp
    >>> [part.tolist() for part in vnp.split(vnp.arange(6), 3)]
    [[0, 1], [2, 3], [4, 5]]
    >>> [part.tolist() for part in vnp.split(vnp.arange(6), [2, 2, 9])]
    [[0, 1], [], [2, 3, 4, 5], []]
    """
    return sections("split", ary, indices_or_sections, axis, True)


def array_split(
    ary: ArrayLike, indices_or_sections: object, axis: int = 0
) -> list[Array]:
    """`split`, where the first parts may be one longer.

    Args:
        ary: an array.
        indices_or_sections: the number of parts, whatever the size; or a sequence of
            indices as in `split`.
        axis: the dimension to work along, 0 by default.

    Returns:
        A list of arrays in the dtype of `ary`.

    Raises:
        ValueError: the number of parts is less than 1.

    >>> import verax.numpy as vnp
    >>> [part.tolist() for part in vnp.array_split(vnp.arange(5), 3)]
    [[0, 1], [2, 3], [4]]
    """
    return sections("array_split", ary, indices_or_sections, axis, False)


def vsplit(ary: ArrayLike, indices_or_sections: object) -> list[Array]:
    """`split` along the first dimension.

    Args:
        ary: an array with at least one dimension.
        indices_or_sections: the number of parts, or a sequence of indices, as in
            `split`.

    Returns:
        A list of arrays in the dtype of `ary`.

    Raises:
        ValueError: the size is not a multiple of the number of parts.

    >>> import verax.numpy as vnp
    >>> [part.tolist() for part in vnp.vsplit(vnp.array([[1, 2], [3, 4]]), 2)]
    [[[1, 2]], [[3, 4]]]
    """
    return sections("vsplit", ary, indices_or_sections, 0, True)


def hsplit(ary: ArrayLike, indices_or_sections: object) -> list[Array]:
    """`split` along the second dimension, or the only one.

    Args:
        ary: an array with at least one dimension.
        indices_or_sections: the number of parts, or a sequence of indices, as in
            `split`.

    Returns:
        A list of arrays in the dtype of `ary`.

    Raises:
        ValueError: the size is not a multiple of the number of parts.

    >>> import verax.numpy as vnp
    >>> [part.tolist() for part in vnp.hsplit(vnp.array([[1, 2], [3, 4]]), 2)]
    [[[1], [3]], [[2], [4]]]
    """
    axis = 0 if operand_aval("hsplit", 0, ary).ndim == 1 else 1
    return sections("hsplit", ary, indices_or_sections, axis, True)


def dsplit(ary: ArrayLike, indices_or_sections: object) -> list[Array]:
    """`split` along the third dimension.

    Args:
        ary: an array with at least three dimensions.
        indices_or_sections: the number of parts, or a sequence of indices, as in
            `split`.

    Returns:
        A list of arrays in the dtype of `ary`.

    Raises:
        ValueError: there is no third dimension, or its size is not a multiple of the
            number of parts.

    >>> import verax.numpy as vnp
    >>> [part.shape for part in vnp.dsplit(vnp.zeros((1, 2, 6)), [1, 4])]
    [(1, 2, 1), (1, 2, 3), (1, 2, 2)]
    """
    return sections("dsplit", ary, indices_or_sections, 2, True)


def unstack(x: ArrayLike, /, *, axis: int = 0) -> tuple[Array, ...]:
    """The parts along a dimension, without it.

    Args:
        x: an array with at least one dimension.
        axis: the dimension to work along, 0 by default.

    Returns:
        A tuple of arrays in the dtype of `x`, as many as the size of that dimension.

    Raises:
        ValueError: `x` has no dimensions.

    >>> import verax.numpy as vnp
    >>> [part.tolist() for part in vnp.unstack(vnp.array([[1, 2], [3, 4]]), axis=1)]
    [[1, 3], [2, 4]]
    """
    array = as_array("unstack", x)
    if not array.ndim:
        raise ValueError("unstack takes an array with at least one dimension")
    place = canonical_axis("unstack", axis, array.ndim)
    before = (slice(None),) * place
    return tuple([array[(*before, i)] for i in range(array.shape[place])])


# ---------------------------------------------------------------------- repeating


def tile(A: ArrayLike, reps: int | Sequence[int]) -> Array:
    """`A` repeated as a whole, `reps` times along each of the last dimensions.

    Args:
        A: an array or scalar.
        reps: an integer, or a sequence with one for each of the last dimensions. If
            these are more than `A` has, new ones of size 1 stand in front.

    Returns:
        An array in the dtype of `A`, whose sizes are those of `A` times `reps`.

    Raises:
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


def positions(counts: Any, n: int, total: int) -> Array:
    """For each of `total` places, the number of the part that is repeated there."""
    counts = broadcast_to(as_array("repeat", counts), (n,))
    ends = counts.cumsum()
    zeros = broadcast_to(np.int32(0), (total,))
    # A one at the end of each part begins the next.
    steps = zeros.at[ends].add(1, mode="drop")
    return convert(steps.cumsum(), np.dtype(np.int32)).clip(0, max(n - 1, 0))


# -----------------------------------------------------------------------------
# Elements in other places: flipped, rolled, cut out, put in, diagonals.
#
# What a place is made of is known while tracing, so all of these are slices,
# reversals and joins, and no gather::
#
#     flip(x, 0), roll(x, 3), rot90(x), diagonal(x), delete(x, 1), insert(x, 1, 0.0)


# ---------------------------------------------------------------------- reversals


@remembered
def flip(m: ArrayLike, axis: AxisLike | None = None) -> Array:
    """The elements in reverse order along some dimensions.

    Args:
        m: an array or scalar.
        axis: the dimension or dimensions to reverse; None for all of them.

    Returns:
        An array of the shape and dtype of `m`.

    Raises:
        ValueError: a dimension does not exist or stands twice.

    >>> import verax.numpy as vnp
    >>> x = vnp.array([[1, 2], [3, 4]])
    >>> vnp.flip(x).tolist(), vnp.flip(x, axis=0).tolist()
    ([[4, 3], [2, 1]], [[3, 4], [1, 2]])
    """
    x = as_array("flip", m)
    axes = range(x.ndim) if axis is None else canonical_axes("flip", axis, x.ndim)
    return rev(x, tuple(axes))


def fliplr(m: ArrayLike) -> Array:
    """The columns in reverse order.

    Args:
        m: an array with at least two dimensions, of which the second is reversed.

    Returns:
        An array of the shape and dtype of `m`.

    Raises:
        ValueError: there are fewer than two dimensions.

    >>> import verax.numpy as vnp
    >>> vnp.fliplr(vnp.array([[1, 2], [3, 4]]))
    Array([[2, 1],
           [4, 3]], dtype=int32)
    """
    x = as_array("fliplr", m)
    if x.ndim < 2:
        raise ValueError(
            f"fliplr takes an array with at least two dimensions, not {x.ndim}"
        )
    return rev(x, (1,))


def flipud(m: ArrayLike) -> Array:
    """The rows in reverse order.

    Args:
        m: an array with at least one dimension, of which the first is reversed.

    Returns:
        An array of the shape and dtype of `m`.

    Raises:
        ValueError: there are no dimensions.

    >>> import verax.numpy as vnp
    >>> vnp.flipud(vnp.array([[1, 2], [3, 4]]))
    Array([[3, 4],
           [1, 2]], dtype=int32)
    """
    x = as_array("flipud", m)
    if not x.ndim:
        raise ValueError("flipud takes an array with at least one dimension")
    return rev(x, (0,))


@remembered
def rot90(m: ArrayLike, k: int = 1, axes: tuple[int, int] = (0, 1)) -> Array:
    """A plane rotated by multiples of 90°, from the first of `axes` towards the second.

    Args:
        m: an array with at least two dimensions.
        k: how many quarters of a turn, known while tracing; 1 by default, and negative
            ones turn back.
        axes: the two dimensions of the plane; by default the first two, where one turn
            is counterclockwise.

    Returns:
        An array in the dtype of `m`; for odd `k`, the sizes of the two dimensions are
        swapped.

    Raises:
        ValueError: `axes` are not two different dimensions.

    >>> import verax.numpy as vnp
    >>> x = vnp.array([[1, 2], [3, 4]])
    >>> vnp.rot90(x).tolist(), vnp.rot90(x, k=-1).tolist()
    ([[2, 4], [1, 3]], [[3, 1], [4, 2]])
    """
    x = as_array("rot90", m)
    if x.ndim < 2:
        raise ValueError(
            "rot90 requires its first argument to have ndim at least two, but got "
            f"first argument of {x.aval}"
        )
    places = canonical_axes("rot90", axes, x.ndim)
    if len(places) != 2:
        raise ValueError(f"rot90 takes two axes, not {axes}")
    first, second = places
    quarters = k % 4
    if quarters == 0:
        return x
    if quarters == 2:
        return rev(x, places)
    order = list(range(x.ndim))
    order[first], order[second] = second, first
    if quarters == 1:
        return transpose(rev(x, (second,)), order)
    return rev(transpose(x, order), (second,))


@remembered
def roll(a: ArrayLike, shift: Any, axis: AxisLike | None = None) -> Array:
    """The elements moved by `shift`; those moved past one end come in at the other.

    Args:
        a: an array or scalar.
        shift: by how many places, an integer, or a sequence with one for each of
            `axis`; positive towards higher indices. It may be traced.
        axis: the dimension or dimensions to work along. None, the default, moves the
            elements of the flat array.

    Returns:
        An array of the shape and dtype of `a`.

    Raises:
        ValueError: the numbers of shifts and axes differ.

    >>> import verax.numpy as vnp
    >>> x = vnp.array([[1, 2, 3], [4, 5, 6]])
    >>> vnp.roll(x, 1).tolist()
    [[6, 1, 2], [3, 4, 5]]
    >>> vnp.roll(x, (1, -1), axis=(0, 1)).tolist()
    [[5, 6, 4], [2, 3, 1]]
    """
    x, shift = as_array("roll", a), array_behind(shift)
    if axis is None:
        return reshape(roll(ravel(x), shift, 0), x.shape)
    several = one_or_more(axis)
    axes = [canonical_axis("roll", i, x.ndim) for i in several]
    shifts = [shift] * len(axes) if is_single(shift) else list(shift)
    if len(axes) == 1 and len(shifts) > 1:
        axes = axes * len(shifts)
    if len(shifts) != len(axes):
        raise ValueError(f"roll: got {len(shifts)} shifts for {len(axes)} axes")
    for count, place in zip(shifts, axes, strict=True):
        x = rolled(x, count, place)
    return x


def rolled(x: Array, shift: Any, axis: int) -> Array:
    """`roll` along one dimension."""
    n = x.shape[axis]
    if not n:
        return x
    if isinstance(shift, Tracer):
        twice = concatenate((x, x), axis)
        return dynamic_slice_in_dim(twice, n - remainder(shift, n), n, axis)
    start = -index(shift) % n
    if not start:
        return x
    return concatenate(parts_of(x, (start, n - start), axis)[::-1], axis)


# ----------------------------------------------------------------- out of and into


# ---------------------------------------------------------------------- diagonals


def main_diagonal(x: Array, axis1: int, axis2: int) -> Array:
    """The elements whose indices along two dimensions are equal, as last dimension.

    In a square of side n read row by row, they stand n + 1 apart.
    """
    x = transpose(x, (*kept(x.ndim, (axis1, axis2)), axis1, axis2))
    n = min(x.shape[-2:])
    square = x[..., :n, :n]
    flat = reshape(square, (*x.shape[:-2], n * n))
    return flat[..., :: n + 1] if n else flat


@remembered
def diagonal(a: ArrayLike, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array:
    """The diagonal of a plane, as last dimension.

    Args:
        a: an array with at least two dimensions.
        offset: how far right of the main diagonal, 0, it lies; negative below it.
        axis1, axis2: the dimensions of the plane, of rows and columns; by default the
            first two.

    Returns:
        An array in the dtype of `a` without the two dimensions, and with the diagonal
        at the end; of size 0 if `offset` lies outside.

    Raises:
        ValueError: the axes are equal or do not exist.

    >>> import verax.numpy as vnp
    >>> vnp.diagonal(vnp.arange(12).reshape(3, 4), offset=1)
    Array([ 1,  6, 11], dtype=int32)
    >>> vnp.diagonal(vnp.arange(8).reshape(2, 2, 2))
    Array([[0, 6],
           [1, 7]], dtype=int32)
    """
    x = as_array("diagonal", a)
    first, second = canonical_axes("diagonal", (axis1, axis2), x.ndim)
    x = transpose(x, (*kept(x.ndim, (first, second)), first, second))
    k = index(offset)
    part = x[..., max(-k, 0) :, max(k, 0) :]
    return main_diagonal(part, x.ndim - 2, x.ndim - 1)


@remembered
def trace(
    a: ArrayLike,
    offset: int = 0,
    axis1: int = 0,
    axis2: int = 1,
    dtype: DTypeLike | None = None,
    out: None = None,
) -> Array:
    """The sum of a diagonal.

    Args:
        a: an array with at least two dimensions.
        offset: how far right of the main diagonal, 0, it lies; negative below it.
        axis1, axis2: the dimensions of the plane, of rows and columns; by default the
            first two.
        dtype: the dtype of the result; by default that of `a`, or the default integer
            for booleans and smaller integers, unsigned if these are.
        out: only None, since arrays are immutable.

    Returns:
        An array of the shape of `a` without the two dimensions.

    Raises:
        ValueError: the axes are equal or do not exist.
        NotImplementedError: `out` is given.

    >>> import verax.numpy as vnp
    >>> x = vnp.arange(9).reshape(3, 3)
    >>> vnp.trace(x), vnp.trace(x, offset=-1, dtype="float32")
    (Array(12, dtype=int32), Array(10., dtype=float32))
    """
    no_out("trace", out)
    expected = chosen_dtype("trace", dtype)
    return diagonal(a, offset, axis1, axis2).sum(axis=-1, dtype=expected)
