"""Floor 2: products over one dimension that is cut into groups of any sizes.

One idea: what lies outside a group is zero for it, so that all groups are one ordinary
product over a new dimension of groups::

    ragged_dot(x, y, sizes)[i] = x[i] @ y[group of row i]
    numbers = RaggedDotDimensionNumbers((((1,), (1,)), ((), ())), (0,), (0,))
    ragged_dot_general(x, y, sizes, numbers)
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from verax.ir.avals import Shape, ShapedArray
from verax.ir.dtypes import DTypeLike, int32, is_integer
from verax.ops.contraction.dot import dot_general
from verax.ops.elementwise.arith import sub
from verax.ops.elementwise.bits import bitwise_and
from verax.ops.elementwise.compare import ge, lt
from verax.ops.elementwise.convert import convert
from verax.ops.elementwise.select import select
from verax.ops.indexing.dynamic_slice import dynamic_slice_in_dim
from verax.ops.reductions.cumulative import cumsum
from verax.ops.structure.create import broadcasted_iota
from verax.ops.structure.reshard import call_sharded
from verax.ops.structure.shape import broadcast_in_dim, move_axis, reshape
from verax.rules.values.array import Array
from verax.rules.values.constants import aval_of


def ragged_dot(
    lhs: object,
    rhs: object,
    group_sizes: object,
    precision: object = None,
    preferred_element_type: DTypeLike | None = None,
    group_offset: object = None,
    out_sharding: object = None,
) -> Array:
    """Rows of `lhs` (m, k) times the matrix of their group in `rhs` (g, k, n).

    The first `group_sizes[0]` rows are group 0, the next `group_sizes[1]` group 1, and
    so on; rows after the last group are zero in the result. Costs g products of (m, k)
    and (k, n).

    Args:
        lhs: a matrix (m, k), whose rows are sorted by group.
        rhs: the matrices of the groups, (g, k, n).
        group_sizes: the number of rows of each group, integers of shape (g,), or more
            than g with `group_offset`.
        precision: how exact products are on accelerators: a `lax.Precision` or its
            name; None for the default.
        preferred_element_type: the dtype in which products are summed and returned;
            None for that of the operands.
        group_offset: the group to which `rhs[0]` belongs, an integer, alone or in a
            vector of one; rows of groups without a matrix in `rhs` are zero. None for
            group 0.
        out_sharding: how the result is split over an explicit mesh; None leaves it to
            the compiler.

    Returns:
        The products, of shape (m, n), in the preferred dtype or else that of the more
        precise operand.

    Raises:
        TypeError: shapes or dtypes do not match.

    >>> import verax, numpy as np
    >>> y = np.array([[[1.0]], [[10.0]]])
    >>> ragged_dot(np.ones((3, 1)), y, np.array([1, 2])).ravel()
    Array([ 1., 10., 10.], dtype=float32)
    """
    if out_sharding is not None:
        return call_sharded(ragged_dot, locals())
    x, y, sizes = aval_of(lhs), aval_of(rhs), aval_of(group_sizes)
    fits = x.ndim == 2 and y.ndim == 3 and sizes.ndim == 1
    if not fits or x.shape[1] != y.shape[1] or not is_integer(sizes.dtype):
        raise TypeError(
            "ragged_dot takes operands of shapes (m, k) and (g, k, n) and g integer "
            f"group sizes, not {x}, {y} and {sizes}"
        )
    if sizes.shape[0] != y.shape[0] and group_offset is None:
        raise TypeError(
            f"ragged_dot takes one group size for each of the {y.shape[0]} groups of "
            f"{y}, not {sizes}"
        )
    (m, k), g = x.shape, y.shape[0]
    own = convert(group_sizes, int32)
    ends = cumsum(own, 0)
    starts = sub(ends, own)
    if group_offset is not None:
        first = offset_of("ragged_dot", group_offset)
        starts = dynamic_slice_in_dim(starts, first, g)
        ends = dynamic_slice_in_dim(ends, first, g)
    rows = broadcasted_iota(np.int32, (g, m), 1)
    low, high = (broadcast_in_dim(v, (g, m), (0,)) for v in (starts, ends))
    mask = bitwise_and(ge(rows, low), lt(rows, high))
    whole = broadcast_in_dim(mask, (g, m, k), (0, 1))
    spread = select(whole, broadcast_in_dim(lhs, (g, m, k), (1, 2)), 0)
    numbers = (((0, 2), (0, 1)), ((), ()))
    return dot_general(spread, rhs, numbers, precision, preferred_element_type)


def offset_of(name: str, group_offset: object) -> object:
    """The group with which the matrices begin, as a scalar.

    Raises:
        TypeError: it is not one integer, alone or in a vector.
    """
    aval = aval_of(group_offset)
    if not is_integer(aval.dtype) or aval.shape not in ((), (1,)):
        raise TypeError(f"{name} takes one integer as group_offset, not {aval}")
    return reshape(group_offset, ()) if aval.shape else group_offset


class RaggedDotDimensionNumbers(NamedTuple):
    """The numbers of `dot_general`, the dimension of `lhs` that is cut, and of groups.

    `rhs_group_dimensions` is empty unless the rows of `lhs` are cut.
    """

    dot_dimension_numbers: tuple[
        tuple[Sequence[int], Sequence[int]], tuple[Sequence[int], Sequence[int]]
    ]
    lhs_ragged_dimensions: Sequence[int]
    rhs_group_dimensions: Sequence[int]


# The body of a NamedTuple takes nothing but fields.
RaggedDotDimensionNumbers.__module__ = "verax.lax"


def outer_dimensions(x: ShapedArray, numbers: RaggedDotDimensionNumbers) -> Shape:
    """The dimensions of `lhs` for each of whose places there may be sizes of groups."""
    (left, _), (batch, _) = numbers.dot_dimension_numbers
    (cut,) = numbers.lhs_ragged_dimensions
    if cut in batch:
        return tuple(batch[: list(batch).index(cut)])
    if cut in left:
        return (*batch, *left[: list(left).index(cut)])
    free = [i for i in range(x.ndim) if i not in (*left, *batch)]
    return (*batch, *free[: free.index(cut)])


def membership(
    x: ShapedArray,
    sizes: object,
    numbers: RaggedDotDimensionNumbers,
    offset: object,
    count: int,
) -> Array:
    """The elements of `lhs` in each group: (groups, *shape of lhs)."""
    (cut,) = numbers.lhs_ragged_dimensions
    given = aval_of(sizes)
    outer = outer_dimensions(x, numbers) if given.ndim > 1 else ()
    own = convert(sizes, int32)
    ends = cumsum(own, given.ndim - 1)
    starts = sub(ends, own)
    last = given.ndim - 1
    if offset is not None:
        starts = dynamic_slice_in_dim(starts, offset, count, last)
        ends = dynamic_slice_in_dim(ends, offset, count, last)
    shape = (starts.shape[-1], *x.shape)
    places = (0, *[i + 1 for i in outer])
    low, high = (
        broadcast_in_dim(move_axis(v, last, 0), shape, places) for v in (starts, ends)
    )
    rows = broadcasted_iota(np.int32, shape, cut + 1)
    return bitwise_and(ge(rows, low), lt(rows, high))


def check_ragged(
    numbers: RaggedDotDimensionNumbers,
    x: ShapedArray,
    y: ShapedArray,
    sizes: ShapedArray,
    all_groups: bool,
) -> None:
    """Raise TypeError unless ragged and group dimensions fit the operands.

    `all_groups` says that `rhs` has all the groups that have sizes.
    """
    name = "ragged_dot_general"
    (left, right), (batch, right_batch) = numbers.dot_dimension_numbers
    cut, groups = numbers.lhs_ragged_dimensions, tuple(numbers.rhs_group_dimensions)
    if not is_integer(sizes.dtype):
        raise TypeError(f"{name} takes integer group sizes, not {sizes}")
    if len(cut) != 1:
        raise TypeError(f"{name} expects exactly one lhs ragged dimension, not {cut}")
    if not 0 <= cut[0] < x.ndim:
        raise TypeError(
            f"{name} requires lhs ragged dimension numbers to be nonnegative and less "
            f"than the number of axes of the lhs, not {cut} for {x}"
        )
    free = cut[0] not in (*left, *batch)
    if len(groups) != free:
        raise TypeError(
            f"{name} requires exactly one rhs group dimension when lhs ragged "
            f"dimension is noncontracting, not {groups}"
            if free
            else f"{name} requires zero group dimensions in the rhs when lhs ragged "
            f"dimension is contracting or batch, not {groups}"
        )
    if not all([0 <= group < y.ndim for group in groups]):
        raise TypeError(
            f"{name} requires rhs group dimension numbers to be nonnegative and less "
            f"than the number of axes of the rhs, not {groups} for {y}"
        )
    if not set(groups).isdisjoint((*right, *right_batch)):
        raise TypeError(
            f"{name} requires rhs group dimension numbers to be distinct from "
            f"contracting and batch dimensions, not {groups}"
        )
    outer = tuple([x.shape[i] for i in outer_dimensions(x, numbers)])
    if not sizes.ndim or sizes.shape[:-1] not in ((), outer):
        raise TypeError(
            f"{name}: expected group_sizes to have shape "
            f"{(*outer, *sizes.shape[-1:])}, got {sizes.shape}"
        )
    if free and all_groups and y.shape[groups[0]] != sizes.shape[-1]:
        raise TypeError(
            f"{name}: expected rhs group dimension size to be {sizes.shape[-1]}, got "
            f"{y.shape[groups[0]]}"
        )


def ragged_dot_general(
    lhs: object,
    rhs: object,
    group_sizes: object,
    ragged_dot_dimension_numbers: RaggedDotDimensionNumbers,
    precision: object = None,
    preferred_element_type: DTypeLike | None = None,
    group_offset: object = None,
    out_sharding: object = None,
) -> Array:
    """`dot_general` with a dimension of `lhs` cut into groups of given sizes.

    If it is a free dimension, `rhs` has a dimension of groups and each row meets the
    matrix of its group; if it is contracted, the result has a dimension of groups in
    front; a batch dimension may be cut too, which changes nothing.

    Args:
        lhs: an array with the dimension that is cut.
        rhs: an array, with a dimension of groups if the cut one is free in `lhs`.
        group_sizes: the sizes of the groups, integers of shape (g,), or (..., g) to
            cut differently at each place of the batch dimensions and of those of the
            same sort that come before the one that is cut.
        ragged_dot_dimension_numbers: a `lax.RaggedDotDimensionNumbers`: the numbers of
            `dot_general`, the one dimension of `lhs` that is cut, and the dimension of
            groups of `rhs`.
        precision: how exact products are on accelerators: a `lax.Precision` or its
            name; None for the default.
        preferred_element_type: the dtype in which products are summed and returned;
            None for that of the operands.
        group_offset: the group with which `rhs` begins, an integer, alone or in a
            vector of one, only if the dimension that is cut is free; None for group 0.
        out_sharding: how the result is split over an explicit mesh; None leaves it to
            the compiler.

    Returns:
        The products, with the dimensions of `dot_general` without those of groups of
        `rhs`; after a contraction that is cut, with a dimension g in front.

    Raises:
        TypeError: shapes or dtypes do not match.
        NotImplementedError: there is a `group_offset`, and `rhs` has no groups.

    A cut of the contracted dimension gives one sum for each group:

    >>> import verax.numpy as vnp
    >>> from verax import lax
    >>> x, sizes = vnp.arange(5.0), vnp.array([2, 3])
    >>> numbers = lax.RaggedDotDimensionNumbers((((0,), (0,)), ((), ())), (0,), ())
    >>> lax.ragged_dot_general(x, vnp.ones(5), sizes, numbers)
    Array([1., 9.], dtype=float32)
    """
    if out_sharding is not None:
        return call_sharded(ragged_dot_general, locals())
    numbers = RaggedDotDimensionNumbers(*ragged_dot_dimension_numbers)
    x, sizes = aval_of(lhs), aval_of(group_sizes)
    groups = tuple(numbers.rhs_group_dimensions)
    (left, right), (batch, right_batch) = numbers.dot_dimension_numbers
    cut = tuple(numbers.lhs_ragged_dimensions)
    check_ragged(numbers, x, aval_of(rhs), sizes, group_offset is None)
    free = cut[0] not in (*left, *batch)
    if group_offset is not None:
        if not free:
            raise NotImplementedError(
                "ragged_dot_general takes a group_offset where rhs has a dimension of "
                "groups, but the cut lhs dimension is contracting or batch"
            )
        group_offset = offset_of("ragged_dot_general", group_offset)

    def dot(a: object, pairs: tuple[Sequence[int], Sequence[int]], moved: int) -> Array:
        places = tuple(i + moved for i in batch)
        return dot_general(
            a, rhs, (pairs, (places, right_batch)), precision, preferred_element_type
        )

    if cut[0] in batch:
        return dot(lhs, (left, right), 0)
    count = aval_of(rhs).shape[groups[0]] if free else sizes.shape[-1]
    mask = membership(x, group_sizes, numbers, group_offset, count)
    shape = mask.shape
    spread = broadcast_in_dim(lhs, shape, tuple(range(1, len(shape))))
    parts = select(mask, spread, 0)
    moved = tuple(i + 1 for i in left)
    if free:
        return dot(parts, ((0, *moved), (*groups, *right)), 1)
    return move_axis(dot(parts, (moved, right), 1), len(batch), 0)
