"""Floor 2: scatter that replaces, subtracts, multiplies, takes the least or largest.

One idea: where several updates meet one element, derivatives follow the value: to the
last update, to all factors, or in equal shares to those that are the extreme::

    scatter(x, indices, updates, dims)        the last update stays
    scatter_max(x, indices, updates, dims)    ties share the cotangent

The functions of all rows are here, that of `scatter_add_p` too.
"""

from collections.abc import Callable, Sequence
from math import prod
from operator import index
from typing import Final, Protocol

import numpy as np

from verax.ir.dtypes import DType, int32, is_integer
from verax.ops.elementwise.arith import above, div, mul, neg
from verax.ops.elementwise.compare import eq
from verax.ops.elementwise.convert import convert_element_type
from verax.ops.elementwise.select import select
from verax.ops.indexing.gather import Mode, read_back, scatter_add_p
from verax.ops.indexing.geometry import GatherScatterMode, ScatterDimensionNumbers
from verax.ops.indexing.scatter_impl import (
    ScatterParams,
    scatter_family,
    scatter_terms,
)
from verax.ops.reductions.reduce import reduce_max, reduce_min, reduce_prod, reduce_sum
from verax.ops.structure.create import full, iota, ones, zeros
from verax.ops.structure.joining import concatenate
from verax.ops.structure.reshard import call_sharded
from verax.ops.structure.shape import broadcast_in_dim, reshape
from verax.rules.families.reducer import highest, larger_or_smaller, lowest, named
from verax.rules.rows.infer import dense, sum_of
from verax.rules.rows.row import (
    Engine,
    JvpRule,
    Known,
    Linear,
    Row,
    Rows,
    Tangent,
    Traits,
    Zero,
    no_flops,
)
from verax.rules.values.array import Array
from verax.rules.values.constants import ANYTHING, KEY, NUMBER, aval_of
from verax.rules.values.conversions import AbstractValueError, ConcretizationTypeError
from verax.rules.values.operands import alike
from verax.rules.values.sizes import as_size, surely_less

type Tangents = tuple[Sequence[Array], Sequence[Tangent]]


def jvp_linear(
    engine: Engine,
    row: Row[ScatterParams],
    p: ScatterParams,
    xs: Sequence[Array],
    ts: Sequence[Tangent],
) -> Tangents:
    """The jvp of a scatter that is linear in operand and updates together."""
    y = row.call(p, *xs)
    if isinstance(ts[0], Zero) and isinstance(ts[2], Zero):
        return (y,), (Zero(y.aval.tangent()),)
    t = row.call(p, dense(engine, ts[0]), xs[1], dense(engine, ts[2]))
    return (y,), (t,)


def transpose_sub(
    engine: Engine, p: ScatterParams, cts: Sequence[Tangent], args: Sequence[Known]
) -> Sequence[Tangent | None]:
    ct, (operand, indices, updates) = cts[0], args
    assert isinstance(ct, Array)
    assert isinstance(indices, Array)
    part = None
    if isinstance(updates, Linear):
        part = neg(read_back(p, ct, indices, updates))
    return ct if isinstance(operand, Linear) else None, None, part


scatter_sub_p: Row[ScatterParams] = scatter_family(
    "scatter-sub",
    np.subtract,
    named("subtract"),
    accepts=NUMBER,
    jvp=lambda engine, p, xs, ts: jvp_linear(engine, scatter_sub_p, p, xs, ts),
    transpose=transpose_sub,
    terms=scatter_terms,
)


def winners(
    p: ScatterParams, operand: Known, indices: Array, updates: Known
) -> tuple[Array, Array]:
    """Flags of the elements that stay, and of the updates that are there in the end.

    Every window gets a number; scattering the numbers over -1 says who wrote last.
    """
    shape, dims = updates.aval.shape, p.dimension_numbers
    windows = [1 if d in dims.update_window_dims else n for d, n in enumerate(shape)]
    numbers = reshape(iota(int32, prod(windows)), windows)
    numbers = broadcast_in_dim(numbers, shape, tuple(range(len(shape))))
    none = full(operand.aval.shape, -1, int32)
    written = scatter_p.call(p, none, indices, numbers)
    last = read_back(p, written, indices, updates)
    return eq(written, -1), eq(last, numbers)


def jvp_scatter(
    engine: Engine, p: ScatterParams, xs: Sequence[Array], ts: Sequence[Tangent]
) -> Tangents:
    """With duplicates the value, too, is made of the winners: XLA may choose anyone.

    Losers are replaced by -0.0, the neutral element of addition.
    """
    operand, indices, updates = xs
    if p.unique_indices or isinstance(ts[2], Zero):
        return jvp_linear(engine, scatter_p, p, xs, ts)
    stays, last = winners(p, operand, indices, updates)
    y = scatter_add_p.call(
        p, select(stays, operand, -0.0), indices, select(last, updates, -0.0)
    )
    t = scatter_add_p.call(
        p,
        select(stays, dense(engine, ts[0]), 0.0),
        indices,
        select(last, dense(engine, ts[2]), 0.0),
    )
    return (y,), (t,)


def transpose_scatter(
    engine: Engine, p: ScatterParams, cts: Sequence[Tangent], args: Sequence[Known]
) -> Sequence[Tangent | None]:
    ct, (operand, indices, updates) = cts[0], args
    assert isinstance(ct, Array)
    assert isinstance(indices, Array)
    kept, part = None, None
    if not p.unique_indices:
        stays, last = winners(p, operand, indices, updates)
        kept = select(stays, ct, 0.0)
        part = select(last, read_back(p, ct, indices, updates), 0.0)
    else:
        if isinstance(operand, Linear):
            nothing = zeros(updates.aval.with_dtype(ct.dtype))
            kept = scatter_p.call(p, ct, indices, nothing)
        if isinstance(updates, Linear):
            part = read_back(p, ct, indices, updates)
    return (
        kept if isinstance(operand, Linear) else None,
        None,
        part if isinstance(updates, Linear) else None,
    )


scatter_p = scatter_family(
    "scatter",
    None,
    None,
    accepts=ANYTHING | KEY,
    jvp=jvp_scatter,
    transpose=transpose_scatter,
    traits=Traits(flops=no_flops, quick_in_numpy=True),
)


def jvp_mul(
    engine: Engine, p: ScatterParams, xs: Sequence[Array], ts: Sequence[Tangent]
) -> Tangents:
    """z = x u where u meets x: dz = t_x u + x t_u, where each x meets one u."""
    operand, indices, updates = xs
    y = scatter_mul_p.call(p, *xs)
    total: Tangent = Zero(y.aval.tangent())
    if not isinstance(ts[0], Zero):
        total = scatter_mul_p.call(p, ts[0], indices, updates)
    if isinstance(ts[2], Zero):
        return (y,), (total,)
    check_unique(p)
    part = mul(operand, scatter_add_p.call(p, zeros(operand.aval), indices, ts[2]))
    return (y,), (sum_of(engine, total, part),)


def check_unique(p: ScatterParams) -> None:
    """Raise NotImplementedError where a product has several unknown factors."""
    if not p.unique_indices:
        raise NotImplementedError(
            "scatter_mul can be differentiated in its updates only if at most one of "
            "them hits each element: promise that with unique_indices=True, or "
            "multiply yourself with x.at[index].set(x[index] * updates)"
        )


def transpose_mul(
    engine: Engine, p: ScatterParams, cts: Sequence[Tangent], args: Sequence[Known]
) -> Sequence[Tangent | None]:
    ct, (operand, indices, updates) = cts[0], args
    assert isinstance(ct, Array)
    assert isinstance(indices, Array)
    if isinstance(operand, Linear):
        assert isinstance(updates, Array)
        return scatter_mul_p.call(p, ct, indices, updates), None, None
    check_unique(p)
    return None, None, read_back(p, mul(ct, operand), indices, updates)


scatter_mul_p = scatter_family(
    "scatter-mul",
    np.multiply,
    named("multiply"),
    accepts=NUMBER,
    jvp=jvp_mul,
    transpose=transpose_mul,
    counts=(1,),
)


def jvp_extreme(name: str) -> JvpRule[ScatterParams]:
    """Operand and updates that equal the result share its tangent equally.

    An operand beside which no update is counts as the extreme, NaN included.
    """

    def jvp(
        engine: Engine, p: ScatterParams, xs: Sequence[Array], ts: Sequence[Tangent]
    ) -> Tangents:
        operand, indices, updates = xs
        row = scatter_max_p if name == "max" else scatter_min_p
        y = row.call(p, *xs)
        if isinstance(ts[0], Zero) and isinstance(ts[2], Zero):
            return (y,), (Zero(y.aval.tangent()),)
        lost = above(y, operand) if name == "max" else above(operand, y)
        hit = eq(updates, read_back(p, y, indices, updates))
        count = scatter_add_p.call(
            p,
            select(lost, 0.0, ones(operand.aval.strong())),
            indices,
            select(hit, ones(updates.aval.strong()), 0.0),
        )
        total = scatter_add_p.call(
            p,
            select(lost, 0.0, dense(engine, ts[0])),
            indices,
            select(hit, dense(engine, ts[2]), 0.0),
        )
        return (y,), (div(total, count),)

    return jvp


scatter_min_p = scatter_family(
    "scatter-min",
    np.minimum,
    larger_or_smaller("minimum"),
    accepts=ANYTHING,
    jvp=jvp_extreme("min"),
)
scatter_max_p = scatter_family(
    "scatter-max",
    np.maximum,
    larger_or_smaller("maximum"),
    accepts=ANYTHING,
    jvp=jvp_extreme("max"),
)


class Scatter(Protocol):
    """The signature of all of them."""

    def __call__(
        self,
        operand: object,
        scatter_indices: object,
        updates: object,
        dimension_numbers: ScatterDimensionNumbers,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: Mode = None,
    ) -> Array: ...


def scatter_function(row: Row[ScatterParams], text: str) -> Scatter:
    """The function that calls a row of the family, of its name."""

    def scatter(
        operand: object,
        scatter_indices: object,
        updates: object,
        dimension_numbers: ScatterDimensionNumbers,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: Mode = None,
    ) -> Array:
        params = ScatterParams(
            dimension_numbers,
            bool(indices_are_sorted),
            bool(unique_indices),
            GatherScatterMode.from_any(mode).value,
        )
        operand, updates = alike(operand, updates)
        return row.call(params, operand, scatter_indices, updates)

    scatter.__name__ = scatter.__qualname__ = row.name.replace("-", "_")
    scatter.__doc__ = text + COMMON
    return scatter


COMMON: Final = """

    Semantics: StableHLO's scatter.

    Args:
        operand: an array, which stays as it is.
        scatter_indices: integers, whose last dimension holds the index vectors: where
            the windows begin. Negative ones are out of bounds.
        updates: the windows, of the dtype of `operand`, with the dimensions of
            `scatter_indices` but the last, and those of the windows.
        dimension_numbers: a `lax.ScatterDimensionNumbers`, which says what the
            dimensions of operand, indices and updates are.
        indices_are_sorted: a promise that the index vectors are in order.
        unique_indices: a promise that no element is updated twice.
        mode: what happens to a window that is not wholly inside: "drop" (or "fill"),
            the default, leaves it out, "clip" moves it inside; "promise_in_bounds"
            says that there is none. Or a `lax.GatherScatterMode`.

    Returns:
        A new array of the shape and dtype of `operand`.

    Raises:
        TypeError: the dimension numbers or dtypes do not fit.
        ValueError: there is no such mode.
    """

scatter: Final = scatter_function(
    scatter_p,
    """`operand` with windows replaced by `updates` at each index vector.

    The last of several updates of one element stays on CPU; elsewhere any may.

    >>> import verax.numpy as vnp
    >>> from verax import lax
    >>> x, at = vnp.array([1, 2, 3]), vnp.array([[0], [7]])
    >>> numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
    >>> lax.scatter(x, at, vnp.array([5, 6]), numbers)
    Array([5, 2, 3], dtype=int32)
    >>> lax.scatter(x, at, vnp.array([5, 6]), numbers, mode="clip")
    Array([5, 2, 6], dtype=int32)""",
)
scatter_add: Final = scatter_function(
    scatter_add_p,
    """`operand` with windows of `updates` added at each index vector.

    All updates of one element count, here two of element 0; element 7 does not exist:

    >>> import verax.numpy as vnp
    >>> from verax import lax
    >>> x, at = vnp.array([1, 2, 3]), vnp.array([[0], [0], [7]])
    >>> numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
    >>> lax.scatter_add(x, at, vnp.array([5, 6, 7]), numbers)
    Array([12,  2,  3], dtype=int32)""",
)
scatter_sub: Final = scatter_function(
    scatter_sub_p,
    """`operand` with windows of `updates` subtracted at each index vector.

    All updates of one element count, here two of element 0; element 7 does not exist:

    >>> import verax.numpy as vnp
    >>> from verax import lax
    >>> x, at = vnp.array([1, 2, 3]), vnp.array([[0], [0], [7]])
    >>> numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
    >>> lax.scatter_sub(x, at, vnp.array([5, 6, 7]), numbers)
    Array([-10,   2,   3], dtype=int32)""",
)
scatter_mul: Final = scatter_function(
    scatter_mul_p,
    """`operand` with windows multiplied by `updates` at each index vector.

    All updates of one element count. There is a derivative in `updates` only under
    `unique_indices=True`.

    >>> import verax.numpy as vnp
    >>> from verax import lax
    >>> x, at = vnp.array([1, 2, 3]), vnp.array([[0], [0], [7]])
    >>> numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
    >>> lax.scatter_mul(x, at, vnp.array([5, 6, 7]), numbers)
    Array([30,  2,  3], dtype=int32)""",
)
scatter_min: Final = scatter_function(
    scatter_min_p,
    """`operand` with windows replaced by the minimum of them and `updates`.

    In derivatives, all that are the minimum of an element share it equally.

    >>> import verax.numpy as vnp
    >>> from verax import lax
    >>> x, at = vnp.array([1, 2, 3]), vnp.array([[0], [0], [7]])
    >>> numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
    >>> lax.scatter_min(x, at, vnp.array([0, -1, 7]), numbers)
    Array([-1,  2,  3], dtype=int32)""",
)
scatter_max: Final = scatter_function(
    scatter_max_p,
    """`operand` with windows replaced by the maximum of them and `updates`.

    In derivatives, all that are the maximum of an element share it equally.

    >>> import verax.numpy as vnp
    >>> from verax import lax
    >>> x, at = vnp.array([1, 2, 3]), vnp.array([[0], [0], [7]])
    >>> numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
    >>> lax.scatter_max(x, at, vnp.array([5, 6, 7]), numbers)
    Array([6, 2, 3], dtype=int32)""",
)


ROWS: Rows = (
    scatter_p,
    scatter_sub_p,
    scatter_mul_p,
    scatter_min_p,
    scatter_max_p,
)


# -----------------------------------------------------------------------------
# Sums, products and extremes of segments, under the names of `jax.ops`.
#
# A segment is a place of a scatter whose operand is the neutral element; what
# points outside of the result is left out, as scatters do::
#
#     segment_sum(data, segment_ids, num_segments=3)    # data added up by its ids


SEGMENT_COMMON: Final = """
    Args:
        data: an array (n, ...), or one number, which is the data of each id.
        segment_ids: integers of shape (n,), or one: the segment to which each element
            along the first axis of `data` belongs. Others than 0 to num_segments - 1
            are left out.
        num_segments: the number of segments, which compiled functions need; None for
            the largest id and one more.
        indices_are_sorted: a promise that `segment_ids` are in order.
        unique_indices: a promise that no two of `segment_ids` are equal.
        bucket_size: parts of so many elements are folded on their own first, so that
            sums round less; None to fold all at once.
        mode: what happens to ids out of bounds: "drop" (or "fill"), the default,
            leaves them out, "clip" takes the nearest segment; "promise_in_bounds" says
            that there are none. Or a `lax.GatherScatterMode`.
        out_sharding: how the result is split over an explicit mesh; None leaves it to
            the compiler.

    Returns:
        An array (num_segments, ...) of the dtype of `data`.

    Raises:
        TypeError: `data` cannot be folded so, or `segment_ids` are not integers.
        ValueError: shapes or sizes do not fit.
    """


def for_each(data: object, ids: object) -> object:
    """The data; one number is that of each id."""
    if not isinstance(data, NUMBERS) or not isinstance(ids, NUMBERS):
        return data
    sizes = aval_of(ids).shape
    if aval_of(data).shape or not sizes:
        return data
    return broadcast_in_dim(data, sizes, ())


NUMBERS: Final = (Array, np.ndarray, np.generic, int, float, complex)


def checked(name: str, data: object, ids: object) -> None:
    """Checks what all segment functions ask of their arrays.

    Raises:
        TypeError: something is not an array, or the ids are not integers.
        ValueError: the ids do not have the leading dimensions of the data.
    """
    for what, x in (("data", data), ("segment_ids", ids)):
        if not isinstance(x, NUMBERS):
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
    """The number of segments: as said, or by the largest id."""
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
    """The number of parts of the data that are folded on their own first."""
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
        data = for_each(data, segment_ids)
        checked(name, data, segment_ids)
        count = segments_of(name, segment_ids, num_segments)
        aval, depth = aval_of(data), len(aval_of(segment_ids).shape)
        buckets = buckets_of(name, aval.shape[0] if depth else 1, bucket_size)
        split = () if surely_less(buckets, 2) else (buckets,)
        places = tuple(range(len(split) + 1))
        window = tuple(range(depth, len(aval.shape)))
        scatter, reduce = fold
        out = scatter(
            full((*split, count, *aval.shape[depth:]), start(aval.dtype), aval.dtype),
            columns(segment_ids, buckets, bucket_size),
            data,
            ScatterDimensionNumbers(window, places, places),
            indices_are_sorted=indices_are_sorted,
            unique_indices=unique_indices,
            mode=mode,
        )
        return reduce(out, (0,)) if split else out

    segment.__name__ = segment.__qualname__ = name
    segment.__doc__ = text + SEGMENT_COMMON
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
