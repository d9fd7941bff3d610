"""Floor 2: sums, products and extremes of segments, under the names of `jax.ops`.

One idea: a segment is a place of a scatter whose operand is the neutral element; what
points outside of the result is left out, as scatters do::

    segment_sum(data, segment_ids, num_segments=3)    # data added up by its ids
"""

from collections.abc import Callable
from operator import index
from typing import Final, Protocol

import numpy as np

from verax.ir.dtypes import DType, int32, is_integer
from verax.ops.elementwise.arith import div
from verax.ops.elementwise.convert import convert_element_type
from verax.ops.indexing.gather import Mode
from verax.ops.indexing.geometry import ScatterDimensionNumbers
from verax.ops.indexing.scatter import (
    scatter_add,
    scatter_max,
    scatter_min,
    scatter_mul,
)
from verax.ops.reductions.reduce import reduce_max, reduce_min, reduce_prod, reduce_sum
from verax.ops.structure.create import full, iota
from verax.ops.structure.joining import concatenate
from verax.ops.structure.reshard import call_sharded
from verax.ops.structure.shape import broadcast_in_dim, reshape
from verax.rules.families.reducer import highest, lowest
from verax.rules.values.array import Array
from verax.rules.values.constants import aval_of
from verax.rules.values.conversions import AbstractValueError, ConcretizationTypeError
from verax.rules.values.sizes import as_size, surely_less

COMMON: Final = """
    `segment_ids` (n,) says for each element along the first axis of `data` (n, ...)
    where it belongs; others than 0 to num_segments - 1 are left out. Without
    `num_segments`, which compiled functions need, the largest id says it. Parts of
    `bucket_size` elements are folded on their own first: sums round less. `mode` is
    that of `lax.scatter`; `out_sharding` must be None.

    Raises:
        TypeError: `data` cannot be folded so, or `segment_ids` are not integers.
        ValueError: shapes or sizes do not fit, or there is an `out_sharding`.
    """


def checked(name: str, data: object, ids: object) -> None:
    """What all segment functions ask of their arrays.

    Raises:
        TypeError: something is not an array, or the ids are not integers.
        ValueError: the ids do not have the leading dimensions of the data.
    """
    for what, x in (("data", data), ("segment_ids", ids)):
        if not isinstance(x, Array | np.ndarray | np.generic | int | float | complex):
            raise TypeError(
                f"{name} takes arrays, but {what} is of type {type(x).__name__}"
            )
    kind, shape, led = aval_of(ids).dtype, aval_of(ids).shape, aval_of(data).shape
    if not is_integer(kind):
        raise TypeError(f"{name}: segment_ids must be integers, not {kind}")
    if len(shape) > 1 or led[: len(shape)] != shape:
        raise ValueError(
            f"{name} takes one segment id for each element along the first axis of "
            f"data, but data has shape {led} and segment_ids have shape {shape}"
        )


def segments_of(name: str, ids: object, num_segments: object) -> int:
    """How many segments there are: as said, or by the largest id."""
    if num_segments is None:
        aval = aval_of(ids)
        if 0 in aval.shape:
            raise ValueError(f"{name} with empty segment_ids needs num_segments")
        try:
            largest = index(reduce_max(ids, tuple(range(len(aval.shape)))))
        except AbstractValueError as error:
            raise ConcretizationTypeError(
                f"{name} does not know the values of segment_ids while tracing; pass "
                "num_segments, a Python integer"
            ) from error
        return max(largest + 1, 0)
    count = as_size(num_segments)
    if count < 0:
        raise ValueError(f"{name}: num_segments must not be negative, but is {count}")
    return count


def buckets_of(name: str, length: int, bucket_size: int | None) -> int:
    """How many parts of the data are folded on their own first."""
    if bucket_size is not None and bucket_size < 1:
        raise ValueError(f"{name}: bucket_size must be positive, but is {bucket_size}")
    return 1 if bucket_size is None else -(-length // bucket_size)


def columns(ids: object, buckets: int, bucket_size: int | None) -> Array:
    """The index vectors of the scatter: (bucket, id), or (id,) where there is one."""
    shape = aval_of(ids).shape
    column = reshape(ids, (*shape, 1))
    if surely_less(buckets, 2) or bucket_size is None:
        return column
    dtype = aval_of(ids).dtype
    rows = convert_element_type(div(iota(int32, shape[0]), bucket_size), dtype)
    rows = broadcast_in_dim(rows, column.shape, (0,))
    return concatenate([rows, column], len(shape))


class Segment(Protocol):
    """The signature of all of them."""

    def __call__(
        self,
        data: object,
        segment_ids: object,
        num_segments: int | None = None,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        bucket_size: int | None = None,
        mode: Mode = None,
        out_sharding: object = None,
    ) -> Array: ...


def segment_function(
    name: str,
    fold: tuple[Callable[..., Array], Callable[..., Array]],
    start: Callable[[DType], object],
    text: str,
) -> Segment:
    """The function `name`: scatters the data into neutral elements, folds buckets."""

    def segment(
        data: object,
        segment_ids: object,
        num_segments: int | None = None,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        bucket_size: int | None = None,
        mode: Mode = None,
        out_sharding: object = None,
    ) -> Array:
        if out_sharding is not None:
            return call_sharded(segment, locals())
        checked(name, data, segment_ids)
        count = segments_of(name, segment_ids, num_segments)
        aval, depth = aval_of(data), len(aval_of(segment_ids).shape)
        buckets = buckets_of(name, aval.shape[0] if depth else 1, bucket_size)
        split = () if surely_less(buckets, 2) else (buckets,)
        places = tuple(range(len(split) + 1))
        window = tuple(range(depth, len(aval.shape)))
        scatter, reduce = fold
        found = scatter(
            full((*split, count, *aval.shape[depth:]), start(aval.dtype), aval.dtype),
            columns(segment_ids, buckets, bucket_size),
            data,
            ScatterDimensionNumbers(window, places, places),
            indices_are_sorted=indices_are_sorted,
            unique_indices=unique_indices,
            mode=mode,
        )
        return reduce(found, (0,)) if split else found

    segment.__name__ = segment.__qualname__ = name
    segment.__doc__ = text + COMMON
    return segment


segment_sum: Final = segment_function(
    "segment_sum",
    (scatter_add, reduce_sum),
    lambda dtype: 0,
    """The sum of each segment of `data`; 0 where there is nothing.

    >>> import verax.numpy as vnp
    >>> segment_sum(vnp.arange(5), vnp.array([0, 0, 1, 3, -1])).tolist()
    [1, 2, 0, 3]
    """,
)
segment_prod: Final = segment_function(
    "segment_prod",
    (scatter_mul, reduce_prod),
    lambda dtype: 1,
    """The product of each segment of `data`; 1 where there is nothing.

    >>> import verax.numpy as vnp
    >>> segment_prod(vnp.arange(5), vnp.array([0, 0, 1, 3, 3]), 4).tolist()
    [0, 2, 1, 12]
    """,
)
segment_max: Final = segment_function(
    "segment_max",
    (scatter_max, reduce_max),
    lowest,
    """The largest element of each segment; -inf or the least integer if there is none.

    >>> import verax.numpy as vnp
    >>> segment_max(vnp.array([1.0, 5.0, 2.0]), vnp.array([0, 0, 2]), 3).tolist()
    [5.0, -inf, 2.0]
    """,
)
segment_min: Final = segment_function(
    "segment_min",
    (scatter_min, reduce_min),
    highest,
    """The least element of each segment; inf or the largest integer if there is none.

    >>> import verax.numpy as vnp
    >>> segment_min(vnp.array([1.0, 5.0, 2.0]), vnp.array([0, 0, 2]), 3).tolist()
    [1.0, inf, 2.0]
    """,
)
