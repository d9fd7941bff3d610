"""Floor 2: sorting, and the largest elements.

One idea: a sort is a permutation, which an operand that counts places reveals, so
tangents are gathered by it::

    sort((keys, values), num_keys=1)     # values in the order of keys
    top_k(x, 3)                          # the 3 largest of each row, and their places
"""

from collections.abc import Sequence
from math import log2
from random import Random
from typing import Any, overload

import numpy as np
from attrs import evolve, frozen

from verax.ir.avals import ShapedArray, iinfo
from verax.ir.dtypes import float64, int32, is_complex, is_float, numpy_dtype
from verax.ir.jaxpr import Params
from verax.ops.base import total_order_key
from verax.ops.elementwise.convert import convert
from verax.ops.indexing.gather import take_along
from verax.ops.structure.create import broadcasted_iota
from verax.ops.structure.shape import batched_alike, move_axis
from verax.ops.structure.slicing import slice_in_dim
from verax.rules.families.elementwise import whole_bytes
from verax.rules.families.linear import Pushed, one_pushed
from verax.rules.families.reducer import EXTREMES, wide
from verax.rules.families.sorting import lower_sort, one
from verax.rules.rows.eager_costs import SMALL, reading
from verax.rules.rows.emitter import Emitter, Operand, compared, converted, i64
from verax.rules.rows.row import (
    Axis,
    Domain,
    Engine,
    NDArray,
    Row,
    Rows,
    Sample,
    Tangent,
    Traits,
    Work,
    Zero,
)
from verax.rules.rows.type_shardings import same_places
from verax.rules.values.array import Array
from verax.rules.values.constants import ANYTHING, ORDERED, aval_of
from verax.rules.values.conversions import HostArray
from verax.rules.values.sizes import (
    AxisError,
    as_axis,
    as_integers,
    beside,
    draw_shape,
    surely_less,
)


@frozen(eq=False, repr=False)
class SortParams(Params):
    """Along which dimension, whether equal keys stay in order, how many keys."""

    dimension: int
    is_stable: bool = True
    num_keys: int = 1


def sort_typing(p: SortParams, avals: Sequence[ShapedArray]) -> Sequence[ShapedArray]:
    shapes = {aval.shape for aval in avals}
    if len(shapes) != 1:
        raise TypeError(
            f"sort takes operands of the same shape, not {', '.join(map(str, avals))}"
        )
    if not 0 <= p.dimension < avals[0].ndim:
        raise ValueError(f"sort: {avals[0]} has no dimension {p.dimension}")
    if not 1 <= p.num_keys <= len(avals):
        raise ValueError(
            "sort: num_keys must be between 1 and the number of operands, "
            f"{len(avals)}, not {p.num_keys}"
        )
    for aval in avals[: p.num_keys]:
        if not ANYTHING.holds(aval.dtype):
            raise TypeError(f"sort takes keys that are {ANYTHING}, not {aval.dtype}")
    return tuple(avals)


def evaluate_sort(p: SortParams, xs: Sequence[NDArray]) -> Sequence[NDArray]:
    """Gather by the stable permutation of the keys."""
    if len(xs) == 1 and (alone := sorted_alone(xs[0], p.dimension)) is not None:
        return (alone,)
    last = p.dimension == xs[0].ndim - 1
    rows = xs if last else [x.swapaxes(p.dimension, -1) for x in xs]
    keys = [key for x in rows[: p.num_keys] for key in keys_of(x)]
    if len(xs) == 1 and is_float(xs[0].dtype):
        keys.append(~np.signbit(wide(rows[0])))
    if rows[0].size == 0:
        return xs
    if len(keys) == 1:
        order = keys[0].argsort(axis=-1, kind="stable")
    else:
        order = np.lexsort(keys[::-1], axis=-1)
    places = in_order(order)
    if last:
        return [x.take(places) for x in rows]
    return [x.take(places).swapaxes(-1, p.dimension) for x in rows]


def sorted_alone(x: NDArray, dimension: int) -> NDArray | None:
    """NumPy's sort; None where it has another order than ours, or none.

    NumPy takes -0.0 and 0.0 as equal, so floats with zeros among them are left.
    """
    if x.dtype.kind not in "biuf":
        return None
    out = np.sort(x, dimension, "stable")
    if x.dtype.kind == "f" and not np.logical_and.reduce(out, None):
        return None
    return out


def in_order(order: NDArray) -> NDArray:
    """The places of the elements of each row that are to be at its places `order`."""
    if order.ndim == 1:
        return order
    starts = np.arange(0, order.size, order.shape[-1])
    return order + starts.reshape((*order.shape[:-1], 1))


def keys_of(x: NDArray) -> list[NDArray]:
    """Arrays that NumPy sorts by as `sort` does: NaN last, zeros equal."""
    if is_complex(x.dtype):
        return [x.real, x.imag]
    return [wide(x)]


def jvp_sort(
    engine: Engine,
    p: SortParams,
    primals: Sequence[Array],
    tangents: Sequence[Tangent],
) -> tuple[Sequence[Array], Sequence[Tangent]]:
    if all(isinstance(t, Zero) for t in tangents):
        outs = sort_p.bind(p, *primals)
        return outs, [Zero(y.aval.tangent()) for y in outs]
    places = broadcasted_iota(np.int32, primals[0].shape, p.dimension)
    *sorted_, order = sort_p.bind(p, *primals, places)
    return sorted_, [
        t if isinstance(t, Zero) else take_along(t, order, p.dimension)
        for t in tangents
    ]


def batch_sort(
    engine: Engine,
    p: SortParams,
    size: int,
    args: Sequence[Array],
    axes: Sequence[Axis],
) -> tuple[Sequence[Array], Sequence[Axis]]:
    """All operands with the batch dimension where the first batched one has it."""
    moved, place = batched_alike(args, axes, size)
    (dimension,) = beside((p.dimension,), place)
    outs = sort_p.bind(evolve(p, dimension=dimension), *moved)
    return outs, (place,) * len(outs)


LENGTHS = (1, 2, 3, 4, 6)


def draw_sort(random: Random) -> Sample[SortParams]:
    """Up to three operands; where there are more keys than one, the first ones tie."""
    shape, count = draw_shape(random, 1, 3, LENGTHS), random.choice((1, 1, 2, 3))
    # Keys of 64 bits are sorted in a way of their own.
    dtypes = [random.choice((*ANYTHING.samples(), float64)) for _ in range(count)]
    keys = random.randint(1, count)
    stable = count > 1 or random.random() < 0.8
    params = SortParams(random.randrange(len(shape)), stable, keys)
    avals = tuple([ShapedArray(shape, dtype) for dtype in dtypes])
    few = Domain(0, 1, special=(0.0, -0.0, 1.0, np.nan), smooth=False)
    ties = [few if i < keys - 1 else EXTREMES for i in range(count)]
    return Sample(params, avals, tuple(ties))


def comparisons(x: ShapedArray, dimension: int) -> float:
    """The operations of a sort: `n log2 n` for each row."""
    return float(x.size * log2(max(2, x.shape[dimension])))


sort_p: Row[SortParams] = Row(
    "sort",
    SortParams,
    typing=sort_typing,
    evaluate=lambda engine, p, xs: evaluate_sort(p, xs),
    jvp=jvp_sort,
    batch=batch_sort,
    lower=lambda e, p, xs, outs: (
        lower_sort(e, xs, p.dimension, p.is_stable, p.num_keys) if outs[0].size else xs
    ),
    draw=draw_sort,
    sharding=same_places(lambda p, x: [i for i in range(x.ndim) if i != p.dimension]),
    domains=(EXTREMES,),
    multiple_results=True,
    traits=Traits(
        Work.STORED,
        lambda p, ins, outs: comparisons(ins[0], p.dimension),
        makes_nans=False,
        quick_in_numpy=True,
    ),
)


@frozen(eq=False, repr=False)
class TopKParams(Params):
    """The number of elements of the last dimension that are kept."""

    k: int


def check_count(k: int, aval: ShapedArray, axis: int) -> None:
    """Raise ValueError unless `top_k` can take so many elements along the axis."""
    if k < 0:
        raise ValueError(f"k argument to top_k must be nonnegative, not {k}")
    if not k <= aval.shape[axis]:
        raise ValueError(
            "k argument to top_k must be no larger than size along axis; got "
            f"k={k} with {aval} and axis={axis}"
        )


def top_k_typing(p: TopKParams, avals: Sequence[ShapedArray]) -> Sequence[ShapedArray]:
    (x,) = avals
    ORDERED.check("top_k", x.dtype)
    if x.ndim == 0:
        raise TypeError(
            "top_k takes an array with at least one dimension, not a scalar"
        )
    check_count(p.k, x, x.ndim - 1)
    if surely_less(iinfo(int32).max, x.shape[-1]):
        raise ValueError(
            f"top_k returns int32 indices, which will overflow: the last dimension of "
            f"{x} is larger than {iinfo(int32).max}"
        )
    shape = (*x.shape[:-1], p.k)
    return x.with_shape(shape), ShapedArray(shape, int32)


def evaluate_top_k(p: TopKParams, x: NDArray) -> Sequence[NDArray]:
    """The first k of the order from the largest down; a NaN is the largest."""
    if is_float(x.dtype):
        canonical = np.array(np.nan, numpy_dtype(x.dtype))
        keys = total_order_key(np.where(np.isnan(x), canonical, x))
    else:
        keys = wide(x)
    order = np.argsort(~keys, axis=-1, kind="stable")[..., : p.k]
    return np.take_along_axis(x, order, -1), order


def jvp_top_k(p: TopKParams, x: Array, t: Array) -> Pushed:
    values, places = top_k_p.bind(p, x)
    none = Zero(places.aval.tangent())
    return (values, places), (take_along(t, places, t.ndim - 1), none)


def batch_top_k(
    engine: Engine,
    p: TopKParams,
    size: int,
    args: Sequence[Array],
    axes: Sequence[Axis],
) -> tuple[Sequence[Array], Sequence[Axis]]:
    (x,), (axis,) = args, axes
    assert axis is not None
    if axis == x.ndim - 1:
        x, axis = move_axis(x, axis, 0), 0
    return top_k_p.bind(p, x), (axis, axis)


def lower_top_k(
    e: Emitter, p: TopKParams, x: Operand, outs: Sequence[ShapedArray]
) -> Sequence[Operand]:
    """`chlo.top_k`, with NaNs of one sign so that all are the largest.

    XLA refuses integers of less than a byte here, so these are widened.
    """
    dtype = x.aval.dtype
    if is_float(dtype):
        nan = e.constant(np.nan, x.aval)
        x = one(e, "select", (compared(e, x, "NE", x), nan, x), x.aval)
    operand = whole_bytes(e, x)
    value, place = outs
    wide = value.with_dtype(operand.aval.dtype)
    y, places = e.op("chlo.top_k", (operand,), (wide, place), k=i64(p.k))
    return converted(e, y, dtype), places


def draw_top_k(random: Random) -> Sample[TopKParams]:
    shape, dtype = draw_shape(random, 1, 3, LENGTHS), random.choice(ORDERED.samples())
    return Sample(
        TopKParams(random.randint(0, shape[-1])), (ShapedArray(shape, dtype),)
    )


top_k_p: Row[TopKParams] = Row(
    "top_k",
    TopKParams,
    typing=top_k_typing,
    evaluate=lambda engine, p, xs: evaluate_top_k(p, xs[0]),
    jvp=one_pushed(jvp_top_k),
    batch=batch_top_k,
    lower=lambda e, p, xs, outs: lower_top_k(e, p, xs[0], outs),
    draw=draw_top_k,
    sharding=same_places(lambda p, x: range(x.ndim - 1)),
    domains=(EXTREMES,),
    costly=reading(ANYTHING, SMALL),
    multiple_results=True,
    traits=Traits(
        Work.STORED, lambda p, ins, outs: comparisons(ins[0], -1), makes_nans=False
    ),
)


@overload
def sort(
    operand: Array | HostArray,
    dimension: int = -1,
    is_stable: bool = True,
    num_keys: int = 1,
) -> Array: ...
@overload
def sort(
    operand: Sequence[Array | HostArray],
    dimension: int = -1,
    is_stable: bool = True,
    num_keys: int = 1,
) -> tuple[Array, ...]: ...
@overload
def sort(
    operand: object, dimension: int = -1, is_stable: bool = True, num_keys: int = 1
) -> Any: ...
def sort(
    operand: object, dimension: int = -1, is_stable: bool = True, num_keys: int = 1
) -> Any:
    """The elements along `dimension` in increasing order, NaN last.

    Complex numbers go by real part, then by imaginary part. 0.0 and -0.0 are equal
    keys.

    Args:
        operand: an array, or a tuple or list of arrays of the same shape.
        dimension: the dimension to work along; by default the last.
        is_stable: whether equal elements keep their order.
        num_keys: how many of several arrays are the keys; they are compared in
            lexicographic order, and the others follow.

    Returns:
        An array of the shape and dtype of `operand`, or a tuple of them.

    Raises:
        TypeError: the shapes differ.
        ValueError: there is no such dimension, or `num_keys` is out of range.

    >>> import verax.numpy as vnp
    >>> from verax import lax
    >>> lax.sort(vnp.array([vnp.nan, 1.0, -vnp.inf]))
    Array([-inf,   1.,  nan], dtype=float32)
    >>> x, y = vnp.array([2, 1, 2]), vnp.array([6, 5, 4])
    >>> lax.sort((x, y))
    (Array([1, 2, 2], dtype=int32), Array([5, 6, 4], dtype=int32))
    >>> lax.sort((x, y), num_keys=2)
    (Array([1, 2, 2], dtype=int32), Array([5, 4, 6], dtype=int32))
    """
    several = isinstance(operand, tuple | list)
    operands = tuple(operand) if isinstance(operand, tuple | list) else (operand,)
    if not operands:
        raise TypeError("sort takes at least one operand")
    place = as_axis("sort", dimension, aval_of(operands[0]).ndim)
    (count,) = as_integers("sort", "num_keys", (num_keys,))
    outs = sort_p.bind(SortParams(place, bool(is_stable), count), *operands)
    return outs if several else outs[0]


def sort_key_val(
    keys: object, values: object, dimension: int = -1, is_stable: bool = True
) -> tuple[Array, Array]:
    """`keys` in increasing order along `dimension`, and `values` in the same order.

    Args:
        keys: an array; a NaN comes last.
        values: an array of the same shape, of any dtype.
        dimension: the dimension to work along; by default the last.
        is_stable: whether values of equal keys keep their order.

    Returns:
        The sorted keys and the values, of the shapes and dtypes given.

    Raises:
        TypeError: the shapes differ.
        ValueError: there is no such dimension.

    >>> import verax.numpy as vnp
    >>> from verax import lax
    >>> lax.sort_key_val(vnp.array([2, 1, 2]), vnp.array([0.5, 1.5, 2.5]))
    (Array([1, 2, 2], dtype=int32), Array([1.5, 0.5, 2.5], dtype=float32))
    """
    key, value = sort((keys, values), dimension, is_stable)
    return key, value


def top_k(
    operand: object, k: int, *, axis: int = -1, is_stable: bool = True
) -> list[Array]:
    """The `k` largest elements along `axis`, from the largest down, and their places.

    A NaN is the largest; of equal elements the first comes first.

    Args:
        operand: an array of real numbers, of at least one dimension.
        k: how many elements, at most the size of the dimension.
        axis: the dimension to work along; by default the last.
        is_stable: of no effect: of equal elements the first always comes first.

    Returns:
        A list of two arrays of size `k` along `axis`: the elements and their int32
        places.

    Raises:
        ValueError: there are fewer than `k` elements, or no such axis.
        TypeError: `operand` is complex.

    >>> import verax.numpy as vnp
    >>> from verax import lax
    >>> lax.top_k(vnp.array([1.0, vnp.nan, 2.0, 2.0]), 3)
    [Array([nan,  2.,  2.], dtype=float32), Array([1, 2, 3], dtype=int32)]
    """
    aval = aval_of(operand)
    if aval.ndim == 0:
        raise AxisError(
            "top_k takes an array with at least one dimension, not a scalar"
        )
    place = as_axis("top_k", axis, aval.ndim)
    (count,) = as_integers("top_k", "k", (k,))
    last = aval.ndim - 1
    if place == last:
        return list(top_k_p.bind(TopKParams(count), operand))
    check_count(count, aval, place)
    x = operand if isinstance(operand, Array) else convert(operand, aval.dtype)
    values, places = top_k_p.bind(TopKParams(count), move_axis(x, place, last))
    return [move_axis(values, last, place), move_axis(places, last, place)]


ROWS: Rows = (sort_p, top_k_p)


# -----------------------------------------------------------------------------
# The operations that JAX lets hardware approximate, computed exactly.
#
# An exact answer has a recall of 1, which every `recall_target` allows::
#
#     approx_max_k(scores, 10)      # top_k(scores, 10)


def check_approx(name: str, operand: object, recall_target: float) -> None:
    """Raise unless numbers have an order and the part of right answers can be asked.

    Raises:
        TypeError: the operand is complex.
        ValueError: the part is not above 0 and at most 1.
    """
    aval = aval_of(operand)
    if is_complex(aval.dtype):
        raise TypeError(f"{name} takes real numbers, which have an order, not {aval}")
    if not 0 < recall_target <= 1:
        raise ValueError(
            f"{name}: recall_target must be above 0 and at most 1, not {recall_target}"
        )


def approx_max_k(
    operand: object,
    k: int,
    reduction_dimension: int = -1,
    recall_target: float = 0.95,
    reduction_input_size_override: int = -1,
    aggregate_to_topk: bool = True,
) -> list[Array]:
    """The `k` largest elements along a dimension, and their places; exactly.

    Args:
        operand: an array of real numbers.
        k: how many elements, at most the size of the dimension.
        reduction_dimension: the dimension to work along; by default the last.
        recall_target: the part of the result that must be right, above 0 and at most 1;
            of no effect, since all of it is.
        reduction_input_size_override: of no effect, since nothing is approximate.
        aggregate_to_topk: of no effect, since nothing is approximate.

    Returns:
        A list of two arrays of size `k` along the dimension: the elements, from the
        largest down, and their int32 places.

    Raises:
        ValueError: there are fewer than `k` elements, or no such dimension.
        TypeError: `operand` is complex.

    >>> import verax, numpy as np
    >>> approx_max_k(np.array([1.0, 3.0, 2.0]), 2)[0]
    Array([3., 2.], dtype=float32)
    """
    check_approx("approx_max_k", operand, recall_target)
    return top_k(operand, k, axis=reduction_dimension)


def approx_min_k(
    operand: object,
    k: int,
    reduction_dimension: int = -1,
    recall_target: float = 0.95,
    reduction_input_size_override: int = -1,
    aggregate_to_topk: bool = True,
) -> list[Array]:
    """The `k` smallest elements along a dimension, and their places; exactly.

    NaN does not count as small. Errors are those of `approx_max_k`.

    Args:
        operand: an array of real numbers.
        k: how many elements, at most the size of the dimension.
        reduction_dimension: the dimension to work along; by default the last.
        recall_target: the part of the result that must be right, above 0 and at most 1;
            of no effect, since all of it is.
        reduction_input_size_override: of no effect, since nothing is approximate.
        aggregate_to_topk: of no effect, since nothing is approximate.

    Returns:
        A list of two arrays of size `k` along the dimension: the elements, from the
        smallest up, and their int32 places.

    >>> import verax, numpy as np
    >>> approx_min_k(np.array([1.0, 3.0, 2.0]), 2)[1]
    Array([0, 2], dtype=int32)
    """
    check_approx("approx_min_k", operand, recall_target)
    aval = aval_of(operand)
    axis = as_axis("approx_min_k", reduction_dimension, aval.ndim)
    if not 0 <= k <= aval.shape[axis]:
        raise ValueError(
            f"approx_min_k: k must be between 0 and the {aval.shape[axis]} elements "
            f"of {aval}, not {k}"
        )
    places = broadcasted_iota(int32, aval.shape, axis)
    values, order = sort_key_val(operand, places, axis)
    return [slice_in_dim(x, 0, k, 1, axis) for x in (values, order)]
