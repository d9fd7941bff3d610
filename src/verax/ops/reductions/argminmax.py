"""Floor 2: where the extreme is: argmax and argmin.

One idea: the place of the extreme is the least index among those where it is attained,
by two plain reductions: on CPU 8 times as fast as one reduction of pairs::

    argmax(x, 0, np.int32)     # min over i where x[i] == max(x), or x[i] is NaN
"""

from collections.abc import Callable, Sequence
from random import Random

import numpy as np
from attrs import evolve, frozen

from verax.ir.avals import Shape, ShapedArray
from verax.ir.dtypes import (
    DType,
    DTypeLike,
    is_float,
    is_integer,
    numpy_dtype,
)
from verax.ir.jaxpr import Params
from verax.ir.limits import iinfo
from verax.rules.families.linear import one_batched, zero_jvp
from verax.rules.families.reducer import EXTREMES, Scalar, highest, lowest, wide
from verax.rules.rows.emitter import (
    Emitter,
    Operand,
    compared,
    folded,
    i64,
)
from verax.rules.rows.row import NDArray, Row, Rows, Sample
from verax.rules.rows.traits import Traits, each_operand
from verax.rules.rows.type_shardings import connected
from verax.rules.values.array import Array
from verax.rules.values.constants import aval_of
from verax.rules.values.kinds import ORDERED
from verax.rules.values.shape_samples import draw_shape
from verax.rules.values.sizes import (
    AxisError,
    as_axis,
    beside,
    kept,
    surely_less,
    without,
)
from verax.rules.values.state import asked_dtype


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
    found = compared(e, x, "EQ", spread)
    if is_float(x.aval.dtype):
        nan = compared(e, x, "NE", x)
        (found,) = e.op("stablehlo.or", (found, nan), (found.aval,))
    places = ShapedArray(x.aval.shape, p.index_dtype)
    (index,) = e.op("stablehlo.iota", (), (places,), iota_dimension=i64(p.axes[0]))
    last = int(iinfo(p.index_dtype).max)
    none = e.constant(last, places)
    (candidates,) = e.op("stablehlo.select", (found, index, none), (places,))
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
            f"{row.name}: axis {axis} must not be negative; for the array of dimension "
            f"{rank}, write {place}"
        )
    dtype = numpy_dtype(asked_dtype(index_dtype))
    return row.call(ArgParams((place,), dtype), operand)


def argmax(operand: object, axis: int, index_dtype: DTypeLike) -> Array:
    """The first place of the largest element along `axis`; a NaN is the largest.

    Raises:
        ValueError: the dimension is empty or does not exist.
        TypeError: `operand` is complex, or `index_dtype` no integer dtype.
    """
    return arg(argmax_p, operand, axis, index_dtype)


def argmin(operand: object, axis: int, index_dtype: DTypeLike) -> Array:
    """The first place of the smallest element along `axis`; a NaN is the smallest.

    Raises:
        ValueError: the dimension is empty or does not exist.
        TypeError: `operand` is complex, or `index_dtype` no integer dtype.
    """
    return arg(argmin_p, operand, axis, index_dtype)


ROWS: Rows = (argmax_p, argmin_p)
