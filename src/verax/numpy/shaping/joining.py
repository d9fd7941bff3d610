"""Floor 6: arrays put together, taken apart and repeated.

One idea: all joins are one concatenation of operands whose dimensions were lined up
first, and all splits are slices::

    stack((x, y), axis=-1), concatenate((x, y)), split(x, 3), tile(x, 2), repeat(x, 2)
"""

from collections.abc import Collection, Iterable, Sequence
from typing import Any

import numpy as np

from verax.backend.eager.composites import remembered
from verax.ir.avals import Shape, ShapedArray
from verax.ir.dtypes import DTypeLike
from verax.ir.memos import memoised
from verax.numpy.arguments.arguments import (
    ArrayLike,
    as_array,
    as_type,
    avals_of,
    canonical_axis,
    chosen_dtype,
    common_type,
    no_out,
    with_weak_type,
)
from verax.numpy.shaping.shapes import (
    at_least,
    expand_dims,
    ndim,
    ravel,
    reshape,
)
from verax.ops.structure.joining import (
    ConcatenateParams,
    concatenate_p,
)
from verax.rules.values.array import Array
from verax.rules.values.conversions import shown
from verax.rules.values.sizes import ShapeError

concatenate_params = memoised(ConcatenateParams)

type Arrays = Array | np.ndarray | Collection[ArrayLike]


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
        arrays = gathered(name, arrays)
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


def gathered(name: str, arrays: Iterable[ArrayLike]) -> list[ArrayLike]:
    """The arrays of a container that is no sequence, as the values of a dictionary.

    Raises:
        TypeError: it is no container, or an iterator, which has its elements once.
    """
    try:
        parts = iter(arrays)
    except TypeError:
        parts = None
    if parts is None or parts is arrays:
        raise TypeError(f"{name} takes a sequence of arrays, not {shown(arrays)}")
    return list(parts)


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
    if not isinstance(arrays, list | tuple) or len(arrays) < 2:
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
def piled(axis: int, *parts: Array) -> Array:
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


def leaves(arrays: object) -> list[Any]:
    if not isinstance(arrays, list):
        return [arrays]
    return [leaf for part in arrays for leaf in leaves(part)]


def assembled(arrays: Any, depth: int, rank: int) -> Array:
    if not isinstance(arrays, list):
        x = as_array("block", arrays)
        return reshape(x, (1,) * (rank - x.ndim) + x.shape)
    parts = [assembled(part, depth - 1, rank) for part in arrays]
    return end_to_end("block", parts, -depth)
