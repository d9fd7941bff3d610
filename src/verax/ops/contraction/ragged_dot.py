"""Floor 2: products of the rows of one matrix with several, in groups of any sizes.

One idea: a row that is no row of a group is zero for that group, so all groups are one
contraction over groups and columns::

    ragged_dot(x, y, sizes)[i] = x[i] @ y[group of row i]
"""

import numpy as np

from verax.ir.dtypes import DTypeLike, int32, is_integer
from verax.ops.contraction.dot import dot_general
from verax.ops.elementwise.arith import sub
from verax.ops.elementwise.bits import bitwise_and
from verax.ops.elementwise.compare import ge, lt
from verax.ops.elementwise.convert import convert
from verax.ops.elementwise.select import select
from verax.ops.indexing.dynamic_dims import dynamic_slice_in_dim
from verax.ops.reductions.cumulative import cumsum
from verax.ops.structure.create import broadcasted_iota
from verax.ops.structure.shape import broadcast_in_dim
from verax.rules.values.array import Array
from verax.rules.values.axes import unsharded
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
    so on; rows after the last group are zero. `group_offset` is the group that
    `rhs[0]` belongs to. Costs g products of (m, k) and (k, n).

    Raises:
        TypeError: shapes or dtypes do not go together.

    >>> import verax, numpy as np
    >>> y = np.array([[[1.0]], [[10.0]]])
    >>> ragged_dot(np.ones((3, 1)), y, np.array([1, 2])).ravel()
    Array([ 1., 10., 10.], dtype=float32)
    """
    unsharded("ragged_dot", out_sharding)
    x, y, sizes = aval_of(lhs), aval_of(rhs), aval_of(group_sizes)
    fits = x.ndim == 2 and y.ndim == 3 and sizes.ndim == 1
    if not fits or x.shape[1] != y.shape[1] or not is_integer(sizes.dtype):
        raise TypeError(
            "ragged_dot takes operands of shapes (m, k) and (g, k, n) and g integer "
            f"group sizes, not {x}, {y} and {sizes}"
        )
    if sizes.shape[0] != y.shape[0] and group_offset is None:
        raise TypeError(
            f"ragged_dot takes a size for each of the {y.shape[0]} groups of {y}, not "
            f"{sizes}"
        )
    (m, k), g = x.shape, y.shape[0]
    own = convert(group_sizes, int32)
    ends = cumsum(own, 0)
    starts = sub(ends, own)
    if group_offset is not None:
        starts = dynamic_slice_in_dim(starts, group_offset, g)
        ends = dynamic_slice_in_dim(ends, group_offset, g)
    rows = broadcasted_iota(np.int32, (g, m), 1)
    low, high = (broadcast_in_dim(v, (g, m), (0,)) for v in (starts, ends))
    mask = bitwise_and(ge(rows, low), lt(rows, high))
    whole = broadcast_in_dim(mask, (g, m, k), (0, 1))
    spread = select(whole, broadcast_in_dim(lhs, (g, m, k), (1, 2)), 0)
    numbers = (((0, 2), (0, 1)), ((), ()))
    return dot_general(spread, rhs, numbers, precision, preferred_element_type)
