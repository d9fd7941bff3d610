"""Floor 2: reductions: sums, products, extremes, and, or, xor over dimensions.

Each row is a monoid and its derivative; the family says what to reduce is::

    reduce_sum(x, (1,))     # x:f32[2,3]  ->  f32[2],  adjoint: broadcast_in_dim
"""

from collections.abc import Callable, Mapping, Sequence
from functools import reduce as reduce_with
from itertools import accumulate
from math import prod
from random import Random
from typing import Final

import numpy as np
from attrs import evolve, frozen

from verax.ir.avals import Shape, ShapedArray, bit_width, iinfo
from verax.ir.dtypes import (
    DType,
    DTypeLike,
    float32,
    float64,
    is_bool,
    is_float,
    is_integer,
    numpy_dtype,
)
from verax.ir.jaxpr import Params
from verax.ir.meshes import UnreducedKind
from verax.ops.elementwise.arith import add, add_p, div, max_p, min_p, mul
from verax.ops.elementwise.bits import and_p, or_p
from verax.ops.elementwise.compare import eq
from verax.ops.elementwise.convert import convert
from verax.ops.elementwise.select import select
from verax.ops.structure.create import zeros
from verax.ops.structure.joining import concatenate, split
from verax.ops.structure.shape import broadcast_in_dim, reshape, transpose
from verax.rules.families.elementwise import stablehlo
from verax.rules.families.linear import (
    Pushed,
    jvp_of_linear,
    one_batched,
    one_pushed,
    zero_jvp,
)
from verax.rules.families.reducer import (
    CHAIN,
    EXTREMES,
    ReduceParams,
    Scalar,
    extremes_on_cpu,
    folding_two,
    highest,
    larger_or_smaller,
    lowest,
    reduce_params,
    reducer,
    wide,
)
from verax.rules.rows.eager_costs import HUGE, reading
from verax.rules.rows.emitter import (
    Emitter,
    Operand,
    compared,
    folded,
    i64,
)
from verax.rules.rows.kernels import Kernel
from verax.rules.rows.row import (
    Engine,
    JvpRule,
    Known,
    Narrow,
    NDArray,
    Row,
    Rows,
    Sample,
    Tangent,
    Traits,
    Work,
    Zero,
    each_operand,
)
from verax.rules.rows.type_shardings import connected
from verax.rules.values.array import Array
from verax.rules.values.constants import ANYTHING, BITS, FLOAT, NUMBER, ORDERED, aval_of
from verax.rules.values.sizes import (
    AxisError,
    as_axes,
    as_axis,
    beside,
    draw_shape,
    kept,
    surely_less,
    without,
)
from verax.rules.values.state import asked_dtype

FACTORS: Final = 8
"""Of a product whose derivative is taken at once: more are kept in no register."""


def call_sharded(function: Callable[..., Array], given: Mapping[str, object]) -> Array:
    """`reshard.call_sharded`, whose file few programs need."""
    from verax.ops.structure import reshard

    return reshard.call_sharded(function, given)


def transpose_sum(
    engine: Engine, p: ReduceParams, cts: Sequence[Tangent], args: Sequence[Known]
) -> Sequence[Tangent | None]:
    (ct,), x = cts, args[0].aval
    if isinstance(ct, Zero):
        return (Zero(x),)
    return (broadcast_in_dim(ct, x.shape, kept(x.ndim, p.axes)),)


def jvp_prod(p: ReduceParams, x: Array, t: Array) -> Pushed:
    """The product rule on eighths, again and again: right at zeros, in linear work."""
    y = reduce_prod_p.call(p, x)
    n = prod(x.shape[i] for i in p.axes)
    if n == 0:
        return (y,), (Zero(y.aval.tangent()),)
    axis = p.axes[0] if len(p.axes) == 1 else 0
    if len(p.axes) > 1:
        x, t = (in_front(v, p, n) for v in (x, t))
    while n > 1:
        count = min(n, FACTORS)
        part, rest = divmod(n, count)
        sizes = [part] * count + [rest] * bool(rest)
        xs, ts = split(x, sizes, axis), split(t, sizes, axis)
        product, change = product_rule(xs[:count], ts[:count])
        x = concatenate((product, *xs[count:]), axis)
        t = concatenate((change, *ts[count:]), axis)
        n = part + rest
    return (y,), (reshape(t, y.shape),)


def product_rule(xs: Sequence[Array], ts: Sequence[Array]) -> tuple[Array, Array]:
    """The product of factors and its tangent, each by the factors before and after."""
    before = list(accumulate(xs, mul))
    after = list(accumulate(reversed(xs), mul))[::-1]
    parts = [mul(ts[0], after[1])]
    parts += [
        mul(t, mul(a, b)) for t, a, b in zip(ts[1:-1], before, after[2:], strict=False)
    ]
    parts += [mul(ts[-1], before[-2])]
    return before[-1], reduce_with(add, parts)


def product_of_parts(p: ReduceParams, x: Array) -> Array:
    """A product in double precision, of parts that are multiplied as they are read.

    A reduction of numbers in double precision would be one of an array of them.
    """
    axis = max(p.axes, key=lambda i: x.shape[i])
    part, rest = divmod(x.shape[axis], FACTORS)
    sizes = [part] * FACTORS + [rest] * bool(rest)
    parts = [convert(piece, float64) for piece in split(x, sizes, axis)]
    y = reduce_prod(reduce_with(mul, parts[:FACTORS]), p.axes)
    for piece in parts[FACTORS:]:
        y = mul(y, reduce_prod(piece, p.axes))
    return y


def is_long(p: ReduceParams, avals: Sequence[ShapedArray]) -> bool:
    """Whether parts of an operand are worth a product of their own."""
    lengths = [avals[0].shape[i] for i in p.axes]
    return prod(lengths) >= 8 * CHAIN and max(lengths) >= FACTORS


def in_front(x: Array, p: ReduceParams, n: int) -> Array:
    """The reduced dimensions as one dimension of size `n`, the first."""
    stay = kept(x.ndim, p.axes)
    moved = transpose(x, (*p.axes, *stay))
    return reshape(moved, (n, *(x.shape[i] for i in stay)))


def counting_dtype(dtype: DType) -> DType:
    """`dtype`, or float32 where it is a float that counts few elements exactly."""
    narrow = is_float(dtype) and bit_width(dtype) < 32
    return np.dtype(np.float32) if narrow else dtype


def jvp_extreme(row_of: Callable[[], Row[ReduceParams]]) -> JvpRule[ReduceParams]:
    """The jvp column of `max` or `min`: the mean tangent where the extreme is."""

    def jvp(p: ReduceParams, x: Array, t: Array) -> Pushed:
        y = row_of().call(p, x)
        if x.size == 0:
            return (y,), (Zero(y.aval.tangent()),)
        places = eq(x, broadcast_in_dim(y, x.shape, kept(x.ndim, p.axes)))
        wide = counting_dtype(t.dtype)
        chosen = select(places, t, zeros(t.aval))
        if wide == t.dtype:
            ties = reduce_sum(convert(places, wide), p.axes)
            return (y,), (div(reduce_sum(chosen, p.axes), ties),)
        # Ties are counted, and their tangents summed, in more digits.
        ties = reduce_sum(convert(places, wide), p.axes)
        mean = div(reduce_sum(convert(chosen, wide), p.axes), ties)
        return (y,), (convert(mean, t.dtype),)

    return one_pushed(jvp)


def ones(dtype: DType) -> Scalar:
    """The identity of `and`: every bit set."""
    if is_bool(dtype):
        return True
    limits = iinfo(dtype)
    return -1 if limits.min < 0 else int(limits.max)


reduce_sum_p: Row[ReduceParams] = reducer(
    "reduce_sum",
    np.add,
    stablehlo("add"),
    lambda dtype: 0,
    accepts=NUMBER,
    jvp=jvp_of_linear(lambda: reduce_sum_p),
    transpose=transpose_sum,
    kind=UnreducedKind.sum,
    traits=Traits(Work.LIGHT, summed=True, joined_by=add_p, narrow=Narrow.SUM),
)
reduce_prod_p = reducer(
    "reduce_prod",
    np.multiply,
    stablehlo("multiply"),
    lambda dtype: 1,
    accepts=NUMBER,
    jvp=one_pushed(jvp_prod),
    kernel=Kernel({float32: product_of_parts}, suits=is_long, least=1),
    costly=reading(FLOAT, HUGE),
)
reduce_max_p: Row[ReduceParams] = reducer(
    "reduce_max",
    np.maximum,
    folding_two(larger_or_smaller("maximum")),
    lowest,
    lower_on={"cpu": extremes_on_cpu("maximum", np.maximum, lowest)},
    accepts=ANYTHING,
    jvp=jvp_extreme(lambda: reduce_max_p),
    domain=EXTREMES,
    kind=UnreducedKind.max,
    traits=Traits(
        Work.LIGHT, makes_nans=False, summed=True, joined_by=max_p, narrow=Narrow.MOVES
    ),
)
reduce_min_p: Row[ReduceParams] = reducer(
    "reduce_min",
    np.minimum,
    folding_two(larger_or_smaller("minimum")),
    highest,
    lower_on={"cpu": extremes_on_cpu("minimum", np.minimum, highest)},
    accepts=ANYTHING,
    jvp=jvp_extreme(lambda: reduce_min_p),
    domain=EXTREMES,
    kind=UnreducedKind.min,
    traits=Traits(
        Work.LIGHT, makes_nans=False, summed=True, joined_by=min_p, narrow=Narrow.MOVES
    ),
)
reduce_and_p = reducer(
    "reduce_and",
    np.bitwise_and,
    stablehlo("and"),
    ones,
    accepts=BITS,
    across=is_bool,
    traits=Traits(quick_in_numpy=True, joined_by=and_p),
)
reduce_or_p = reducer(
    "reduce_or",
    np.bitwise_or,
    stablehlo("or"),
    lambda dtype: 0,
    accepts=BITS,
    across=is_bool,
    traits=Traits(quick_in_numpy=True, joined_by=or_p),
)
reduce_xor_p = reducer(
    "reduce_xor",
    np.bitwise_xor,
    stablehlo("xor"),
    lambda dtype: 0,
    accepts=BITS,
    across=lambda dtype: False,
)


def reduce(row: Row[ReduceParams], x: object, axes: Sequence[int]) -> Array:
    """`row` on `x` over `axes`; `x` itself if there are none and it is an array."""
    places = tuple(
        sorted(as_axes(row.name, axes, aval_of(x).ndim, "'axes' of the reduction"))
    )
    if not places and isinstance(x, Array):
        return x
    return row.call(reduce_params(places), x)


def reduce_sum(
    operand: object, axes: Sequence[int], *, out_sharding: object = None
) -> Array:
    """The sum of `operand` over `axes`; 0 over nothing.

    The dtype stays, so small integers may overflow; `verax.numpy.sum` widens them.

    Args:
        operand: an array of numbers.
        axes: the dimensions to reduce; negative ones count from the last. None are
            reduced if it is empty.
        out_sharding: how the result is split over an explicit mesh; None leaves it to
            the compiler.

    Returns:
        An array without these dimensions, of the dtype of `operand`.

    Raises:
        ValueError: an axis is out of range or named twice.
        TypeError: `operand` is boolean.

    >>> import verax.numpy as vnp
    >>> from verax import lax
    >>> lax.reduce_sum(vnp.array([[1, 2], [3, 4]]), (0,))
    Array([4, 6], dtype=int32)
    >>> lax.reduce_sum(vnp.array([100, 100], vnp.int8), (0,))
    Array(-56, dtype=int8)
    """
    if out_sharding is not None:
        return call_sharded(reduce_sum, locals())
    return reduce(reduce_sum_p, operand, axes)


def reduce_prod(
    operand: object, axes: Sequence[int], *, out_sharding: object = None
) -> Array:
    """The product of `operand` over `axes`; 1 over nothing.

    Args:
        operand: an array of numbers.
        axes: the dimensions to reduce; negative ones count from the last. None are
            reduced if it is empty.
        out_sharding: how the result is split over an explicit mesh; None leaves it to
            the compiler.

    Returns:
        An array without these dimensions, of the dtype of `operand`.

    Raises:
        ValueError: an axis is out of range or named twice.
        TypeError: `operand` is boolean.

    >>> import verax.numpy as vnp
    >>> from verax import lax
    >>> lax.reduce_prod(vnp.array([[1, 2], [3, 4]]), (1,))
    Array([ 2, 12], dtype=int32)
    >>> lax.reduce_prod(vnp.zeros((0, 2)), (0,))
    Array([1., 1.], dtype=float32)
    """
    if out_sharding is not None:
        return call_sharded(reduce_prod, locals())
    return reduce(reduce_prod_p, operand, axes)


def reduce_max(
    operand: object, axes: Sequence[int], *, out_sharding: object = None
) -> Array:
    """The largest element over `axes`, or NaN if there is one; complex by real part.

    Over nothing it is the lowest number of the dtype. Where several elements are
    largest, each has an equal share in the derivative.

    Args:
        operand: an array.
        axes: the dimensions to reduce; negative ones count from the last. None are
            reduced if it is empty.
        out_sharding: how the result is split over an explicit mesh; None leaves it to
            the compiler.

    Returns:
        An array without these dimensions, of the dtype of `operand`.

    Raises:
        ValueError: an axis is out of range or named twice.

    >>> import verax.numpy as vnp
    >>> from verax import lax
    >>> lax.reduce_max(vnp.array([[1.0, vnp.nan], [3.0, 4.0]]), (1,))
    Array([nan,  4.], dtype=float32)
    >>> lax.reduce_max(vnp.zeros((0, 2)), (0,))
    Array([-inf, -inf], dtype=float32)
    """
    if out_sharding is not None:
        return call_sharded(reduce_max, locals())
    return reduce(reduce_max_p, operand, axes)


def reduce_min(
    operand: object, axes: Sequence[int], *, out_sharding: object = None
) -> Array:
    """The smallest element over `axes`; see `reduce_max`.

    Over nothing it is the highest number of the dtype.

    Args:
        operand: an array.
        axes: the dimensions to reduce; negative ones count from the last. None are
            reduced if it is empty.
        out_sharding: how the result is split over an explicit mesh; None leaves it to
            the compiler.

    Returns:
        An array without these dimensions, of the dtype of `operand`.

    Raises:
        ValueError: an axis is out of range or named twice.

    >>> import verax.numpy as vnp
    >>> from verax import lax
    >>> lax.reduce_min(vnp.array([[1, -2], [3, 4]]), (1,))
    Array([-2,  3], dtype=int32)
    >>> lax.reduce_min(vnp.zeros((0, 2)), (0,))
    Array([inf, inf], dtype=float32)
    """
    if out_sharding is not None:
        return call_sharded(reduce_min, locals())
    return reduce(reduce_min_p, operand, axes)


def reduce_and(operand: object, axes: Sequence[int]) -> Array:
    """`and` over `axes`, bit by bit; all ones over nothing.

    Args:
        operand: an array of booleans or integers.
        axes: the dimensions to reduce; negative ones count from the last. None are
            reduced if it is empty.

    Returns:
        An array without these dimensions, of the dtype of `operand`.

    Raises:
        ValueError: an axis is out of range or named twice.
        TypeError: `operand` is neither boolean nor of integers.

    >>> import verax.numpy as vnp
    >>> from verax import lax
    >>> lax.reduce_and(vnp.array([0b110, 0b011]), (0,))
    Array(2, dtype=int32)
    >>> lax.reduce_and(vnp.array([[True, False], [True, True]]), (1,))
    Array([False,  True], dtype=bool)
    """
    return reduce(reduce_and_p, operand, axes)


def reduce_or(operand: object, axes: Sequence[int]) -> Array:
    """`or` over `axes`, bit by bit; 0 over nothing.

    Args:
        operand: an array of booleans or integers.
        axes: the dimensions to reduce; negative ones count from the last. None are
            reduced if it is empty.

    Returns:
        An array without these dimensions, of the dtype of `operand`.

    Raises:
        ValueError: an axis is out of range or named twice.
        TypeError: `operand` is neither boolean nor of integers.

    >>> import verax.numpy as vnp
    >>> from verax import lax
    >>> lax.reduce_or(vnp.array([0b110, 0b011]), (0,))
    Array(7, dtype=int32)
    >>> lax.reduce_or(vnp.array([[True, False], [False, False]]), (1,))
    Array([ True, False], dtype=bool)
    """
    return reduce(reduce_or_p, operand, axes)


def reduce_xor(operand: object, axes: Sequence[int]) -> Array:
    """`xor` over `axes`, bit by bit; 0 over nothing.

    Args:
        operand: an array of booleans or integers.
        axes: the dimensions to reduce; negative ones count from the last. None are
            reduced if it is empty.

    Returns:
        An array without these dimensions, of the dtype of `operand`.

    Raises:
        ValueError: an axis is out of range or named twice.
        TypeError: `operand` is neither boolean nor of integers.

    >>> import verax.numpy as vnp
    >>> from verax import lax
    >>> lax.reduce_xor(vnp.array([0b110, 0b011]), (0,))
    Array(5, dtype=int32)
    >>> lax.reduce_xor(vnp.array([True, True, True]), (0,))  # an odd number of them
    Array(True, dtype=bool)
    """
    return reduce(reduce_xor_p, operand, axes)


# -----------------------------------------------------------------------------
# Where the extreme is: argmax and argmin.
#
# The place of the extreme is the least index among those where it is attained,
# by two plain reductions: on CPU 8 times as fast as one reduction of pairs::
#
#     argmax(x, 0, np.int32)     # min over i where x[i] == max(x), or x[i] is NaN


@frozen(eq=False, repr=False)
class ArgParams(Params):
    """The one dimension that is searched, and the dtype of the places."""

    axes: Shape
    index_dtype: DType


def arg_extreme(
    name: str,
    search: Callable[..., NDArray],
    operation: str,
    identity: Callable[[DType], Scalar],
) -> Row[ArgParams]:
    """A row that finds the first place of an extreme."""
    row: Row[ArgParams] = Row(
        name,
        ArgParams,
        typing=lambda p, avals: arg_typing(name, p, avals),
        evaluate=lambda engine, p, xs: (search(wide(xs[0]), axis=p.axes[0]),),
        jvp=zero_jvp(lambda: row),
        batch=one_batched(lambda p, size, x, axis: batch_arg(row, p, x, axis)),
        lower=lambda e, p, xs, outs: lower_arg(e, p, xs[0], outs, operation, identity),
        draw=draw_arg,
        domains=(EXTREMES,),
        traits=Traits(flops=each_operand, quick_in_numpy=True),
        sharding=lambda p, avals, outs: connected(
            avals,
            [range(avals[0].ndim)],
            [without(tuple(range(avals[0].ndim)), p.axes)],
        ),
    )
    return row


def arg_typing(
    name: str, p: ArgParams, avals: Sequence[ShapedArray]
) -> Sequence[ShapedArray]:
    (x,) = avals
    ORDERED.check(name, x.dtype)
    if not is_integer(p.index_dtype):
        raise TypeError(
            f"{name}: index_dtype must be an integer type, not {p.index_dtype}"
        )
    if len(p.axes) != 1 or not 0 <= p.axes[0] < x.ndim:
        raise ValueError(
            f"{name}: axis must be one of the {x.ndim} dimensions of {x}, not {p.axes}"
        )
    size = x.shape[p.axes[0]]
    if size == 0:
        raise ValueError(
            f"{name}: argmin and argmax require non-empty reduced dimension, but {x} "
            f"is empty along axis {p.axes[0]}"
        )
    if surely_less(iinfo(p.index_dtype).max, size - 1):
        raise ValueError(
            f"{name}: index_dtype {p.index_dtype} cannot hold the index {size - 1}"
        )
    return (ShapedArray(without(x.shape, p.axes), p.index_dtype),)


def batch_arg(
    row: Row[ArgParams], p: ArgParams, x: Array, axis: int
) -> tuple[Array, int]:
    (gone,) = beside(p.axes, axis)
    return row.call(evolve(p, axes=(gone,)), x), axis - (gone < axis)


def lower_arg(
    e: Emitter,
    p: ArgParams,
    x: Operand,
    outs: Sequence[ShapedArray],
    operation: str,
    identity: Callable[[DType], Scalar],
) -> Sequence[Operand]:
    """The extreme, where it is attained, the indices there, and the least of them."""
    best = fold_operand(e, x, p.axes, operation, identity(x.aval.dtype))
    spread = e.broadcast(best, x.aval.shape, kept(x.aval.ndim, p.axes))
    result = compared(e, x, "EQ", spread)
    if is_float(x.aval.dtype):
        nan = compared(e, x, "NE", x)
        (result,) = e.op("stablehlo.or", (result, nan), (result.aval,))
    places = ShapedArray(x.aval.shape, p.index_dtype)
    (index,) = e.op("stablehlo.iota", (), (places,), iota_dimension=i64(p.axes[0]))
    last = int(iinfo(p.index_dtype).max)
    none = e.constant(last, places)
    (candidates,) = e.op("stablehlo.select", (result, index, none), (places,))
    return (fold_operand(e, candidates, p.axes, "minimum", last),)


def fold_operand(
    e: Emitter, x: Operand, axes: Shape, operation: str, start: Scalar
) -> Operand:
    """`x` reduced by a StableHLO operation."""
    scalar = x.aval.with_shape(())

    def both(xs: Sequence[Operand]) -> Sequence[Operand]:
        return e.op(f"stablehlo.{operation}", xs, (scalar,))

    return folded(e, x, e.constant(start, scalar), axes, both)


def draw_arg(random: Random) -> Sample[ArgParams]:
    rest = list(draw_shape(random, 1, 3))
    axis = random.randrange(len(rest))
    rest[axis] = max(1, rest[axis])
    index = np.dtype(random.choice((np.int32, np.int8, np.uint32)))
    dtype = random.choice(ORDERED.samples())
    return Sample(ArgParams((axis,), index), (ShapedArray(tuple(rest), dtype),))


argmax_p = arg_extreme("argmax", np.ndarray.argmax, "maximum", lowest)
argmin_p = arg_extreme("argmin", np.ndarray.argmin, "minimum", highest)


def arg(
    row: Row[ArgParams], operand: object, axis: int, index_dtype: DTypeLike
) -> Array:
    rank = aval_of(operand).ndim
    place = as_axis(row.name, axis, rank)
    if place != axis:
        raise AxisError(
            f"{row.name}: Invalid axis {axis} for operand {aval_of(operand)}: it must "
            f"not be negative; write {place}"
        )
    dtype = numpy_dtype(asked_dtype(index_dtype))
    return row.call(ArgParams((place,), dtype), operand)


def argmax(operand: object, axis: int, index_dtype: DTypeLike) -> Array:
    """The first place of the largest element along `axis`; a NaN is the largest.

    Args:
        operand: an array of booleans or real numbers.
        axis: the dimension to work along, not negative.
        index_dtype: the dtype of the result, an integer dtype.

    Returns:
        Indices of dtype `index_dtype`, without the dimension `axis`.

    Raises:
        ValueError: the dimension is empty or does not exist.
        TypeError: `operand` is complex, or `index_dtype` no integer dtype.

    >>> import verax.numpy as vnp
    >>> from verax import lax
    >>> lax.argmax(vnp.array([[1, 5, 5], [7, 0, 7]]), 1, vnp.int32)
    Array([1, 0], dtype=int32)
    >>> lax.argmax(vnp.array([1.0, vnp.nan, 2.0]), 0, vnp.uint8)
    Array(1, dtype=uint8)
    """
    return arg(argmax_p, operand, axis, index_dtype)


def argmin(operand: object, axis: int, index_dtype: DTypeLike) -> Array:
    """The first place of the smallest element along `axis`; a NaN is the smallest.

    Args:
        operand: an array of booleans or real numbers.
        axis: the dimension to work along, not negative.
        index_dtype: the dtype of the result, an integer dtype.

    Returns:
        Indices of dtype `index_dtype`, without the dimension `axis`.

    Raises:
        ValueError: the dimension is empty or does not exist.
        TypeError: `operand` is complex, or `index_dtype` no integer dtype.

    >>> import verax.numpy as vnp
    >>> from verax import lax
    >>> lax.argmin(vnp.array([[5, 1, 1], [0, 7, 0]]), 1, vnp.int32)
    Array([1, 0], dtype=int32)
    >>> lax.argmin(vnp.array([1.0, vnp.nan, 0.0]), 0, vnp.uint8)
    Array(1, dtype=uint8)
    """
    return arg(argmin_p, operand, axis, index_dtype)


ROWS: Rows = (
    reduce_sum_p,
    reduce_prod_p,
    reduce_max_p,
    reduce_min_p,
    reduce_and_p,
    reduce_or_p,
    reduce_xor_p,
    argmax_p,
    argmin_p,
)
