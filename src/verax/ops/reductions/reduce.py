"""Floor 2: reductions: sums, products, extremes, and, or, xor over dimensions.

Each row is a monoid and its derivative; the family says what to reduce is::

    reduce_sum(x, (1,))     # x:f32[2,3]  ->  f32[2],  adjoint: broadcast_in_dim
"""

from collections.abc import Callable, Sequence
from math import prod

import numpy as np

from verax.ir.avals import ShapedArray
from verax.ir.dtypes import DType, is_bool, is_complex, is_float, real_dtype
from verax.ir.limits import bit_width, iinfo
from verax.ir.meshes import UnreducedKind
from verax.ops.elementwise.arith import add, div, mul
from verax.ops.elementwise.compare import eq
from verax.ops.elementwise.convert import convert
from verax.ops.elementwise.select import select
from verax.ops.structure.create import zeros
from verax.ops.structure.joining import concatenate
from verax.ops.structure.shape import broadcast_in_dim, reshape, transpose
from verax.ops.structure.slicing import slice_in_dim
from verax.rules.families.elementwise import stablehlo
from verax.rules.families.linear import Pushed, jvp_of_linear, one_pushed
from verax.rules.families.reducer import (
    EXTREMES,
    ReduceParams,
    Scalar,
    highest,
    lowest,
    reduce_params,
    reducer,
)
from verax.rules.rows.eager_costs import HUGE, reading
from verax.rules.rows.emitter import Emitter, Operand, compared
from verax.rules.rows.row import Engine, JvpRule, Known, LowerRule, Row, Tangent, Zero
from verax.rules.rows.traits import Traits, Work
from verax.rules.values.array import Array
from verax.rules.values.constants import aval_of
from verax.rules.values.kinds import ANYTHING, BITS, FLOAT, NUMBER
from verax.rules.values.lazy import LazyFunction
from verax.rules.values.sizes import as_axes, kept

call_sharded: Callable[..., Array] = LazyFunction(
    "verax.ops.structure.reshard", "call_sharded"
)


def transpose_sum(
    engine: Engine, p: ReduceParams, cts: Sequence[Tangent], args: Sequence[Known]
) -> Sequence[Tangent | None]:
    (ct,), x = cts, args[0].aval
    if isinstance(ct, Zero):
        return (Zero(x),)
    return (broadcast_in_dim(ct, x.shape, kept(x.ndim, p.axes)),)


def jvp_prod(p: ReduceParams, x: Array, t: Array) -> Pushed:
    """The product rule on halves, again and again: right at zeros, in linear work."""
    y = reduce_prod_p.call(p, x)
    n = prod(x.shape[i] for i in p.axes)
    if n == 0:
        return (y,), (Zero(y.aval.tangent()),)
    x, t = (in_front(v, p, n) for v in (x, t))
    while n > 1:
        half = n // 2
        a, b, *rest = halves(x, half)
        t_a, t_b, *t_rest = halves(t, half)
        x = concatenate((mul(a, b), *rest), 0)
        t = concatenate((add(mul(t_a, b), mul(a, t_b)), *t_rest), 0)
        n -= half
    return (y,), (reshape(t, y.shape),)


def in_front(x: Array, p: ReduceParams, n: int) -> Array:
    """The reduced dimensions as one dimension of size `n`, the first."""
    stay = kept(x.ndim, p.axes)
    moved = transpose(x, (*p.axes, *stay))
    return reshape(moved, (n, *(x.shape[i] for i in stay)))


def halves(x: Array, half: int) -> list[Array]:
    """The first `half` elements, the next, and the one that may be left."""
    n = x.shape[0]
    return [slice_in_dim(x, i, min(i + half, n)) for i in range(0, n, half)]


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


def lower_extreme(operation: str, direction: str) -> LowerRule[ReduceParams]:
    """Lower to `operation`; complex numbers by real part, then by imaginary part."""
    simple = stablehlo(operation)

    def lower(
        e: Emitter,
        p: ReduceParams,
        xs: Sequence[Operand],
        outs: Sequence[ShapedArray],
    ) -> Sequence[Operand]:
        if not is_complex(outs[0].dtype):
            return simple(e, p, xs, outs)
        return lower_complex(e, xs, direction)

    return lower


def lower_complex(e: Emitter, xs: Sequence[Operand], way: str) -> Sequence[Operand]:
    """The first of two complex scalars if it is a NaN or wins against a number."""
    x, y = xs
    test = ShapedArray((), np.dtype(np.bool_))
    real = ShapedArray((), real_dtype(x.aval.dtype))

    def op(name: str, *operands: Operand, out: ShapedArray = test) -> Operand:
        return e.op(f"stablehlo.{name}", operands, (out,))[0]

    a, b = op("real", x, out=real), op("real", y, out=real)
    c, d = op("imag", x, out=real), op("imag", y, out=real)
    ahead = op(
        "select",
        compared(e, a, "EQ", b),
        compared(e, c, way, d),
        compared(e, a, way, b),
    )
    wins = op("and", ahead, compared(e, y, "EQ", y))
    first = op("or", wins, compared(e, x, "NE", x))
    return (op("select", first, x, y, out=x.aval),)


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
    traits=Traits(Work.LIGHT),
)
reduce_prod_p = reducer(
    "reduce_prod",
    np.multiply,
    stablehlo("multiply"),
    lambda dtype: 1,
    accepts=NUMBER,
    jvp=one_pushed(jvp_prod),
    costly=reading(FLOAT, HUGE),
)
reduce_max_p: Row[ReduceParams] = reducer(
    "reduce_max",
    np.maximum,
    lower_extreme("maximum", "GT"),
    lowest,
    accepts=ANYTHING,
    jvp=jvp_extreme(lambda: reduce_max_p),
    domain=EXTREMES,
    kind=UnreducedKind.max,
    traits=Traits(Work.LIGHT, makes_nans=False),
)
reduce_min_p: Row[ReduceParams] = reducer(
    "reduce_min",
    np.minimum,
    lower_extreme("minimum", "LT"),
    highest,
    accepts=ANYTHING,
    jvp=jvp_extreme(lambda: reduce_min_p),
    domain=EXTREMES,
    kind=UnreducedKind.min,
    traits=Traits(Work.LIGHT, makes_nans=False),
)
reduce_and_p = reducer(
    "reduce_and",
    np.bitwise_and,
    stablehlo("and"),
    ones,
    accepts=BITS,
    across=is_bool,
    traits=Traits(quick_in_numpy=True),
)
reduce_or_p = reducer(
    "reduce_or",
    np.bitwise_or,
    stablehlo("or"),
    lambda dtype: 0,
    accepts=BITS,
    across=is_bool,
    traits=Traits(quick_in_numpy=True),
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
    places = tuple(sorted(as_axes(row.name, axes, aval_of(x).ndim)))
    if not places and isinstance(x, Array):
        return x
    return row.call(reduce_params(places), x)


def reduce_sum(
    operand: object, axes: Sequence[int], *, out_sharding: object = None
) -> Array:
    """The sum of `operand` over `axes`; 0 over nothing.

    Raises:
        ValueError: an axis is out of range or named twice.
        TypeError: `operand` is boolean.
    """
    if out_sharding is not None:
        return call_sharded(reduce_sum, locals())
    return reduce(reduce_sum_p, operand, axes)


def reduce_prod(
    operand: object, axes: Sequence[int], *, out_sharding: object = None
) -> Array:
    """The product of `operand` over `axes`; 1 over nothing.

    Raises:
        ValueError: an axis is out of range or named twice.
        TypeError: `operand` is boolean.
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

    Raises:
        ValueError: an axis is out of range or named twice.
    """
    if out_sharding is not None:
        return call_sharded(reduce_max, locals())
    return reduce(reduce_max_p, operand, axes)


def reduce_min(
    operand: object, axes: Sequence[int], *, out_sharding: object = None
) -> Array:
    """The smallest element over `axes`; see `reduce_max`.

    Raises:
        ValueError: an axis is out of range or named twice.
    """
    if out_sharding is not None:
        return call_sharded(reduce_min, locals())
    return reduce(reduce_min_p, operand, axes)


def reduce_and(operand: object, axes: Sequence[int]) -> Array:
    """`and` over `axes`, bit by bit; all ones over nothing.

    Raises:
        ValueError: an axis is out of range or named twice.
        TypeError: `operand` is neither boolean nor of integers.
    """
    return reduce(reduce_and_p, operand, axes)


def reduce_or(operand: object, axes: Sequence[int]) -> Array:
    """`or` over `axes`, bit by bit; 0 over nothing.

    Raises:
        ValueError: an axis is out of range or named twice.
        TypeError: `operand` is neither boolean nor of integers.
    """
    return reduce(reduce_or_p, operand, axes)


def reduce_xor(operand: object, axes: Sequence[int]) -> Array:
    """`xor` over `axes`, bit by bit; 0 over nothing.

    Raises:
        ValueError: an axis is out of range or named twice.
        TypeError: `operand` is neither boolean nor of integers.
    """
    return reduce(reduce_xor_p, operand, axes)


ROWS = (
    reduce_sum_p,
    reduce_prod_p,
    reduce_max_p,
    reduce_min_p,
    reduce_and_p,
    reduce_or_p,
    reduce_xor_p,
)
