"""Floor 1: the family of reductions by a monoid: sums, products, extremes.

One idea: a reduction is a binary operation, its identity and a NumPy function; which
axes go and where a batch dimension stays are the same for all::

    reduce_sum_p = reducer("reduce_sum", np.add, stablehlo("add"), zero, ...)
"""

from collections.abc import Callable, Sequence
from random import Random
from typing import Any, Final

import numpy as np
from attrs import evolve, frozen

from verax.ir.avals import Shape, ShapedArray
from verax.ir.dtypes import DType, is_bool, is_complex, is_float, numpy_dtype
from verax.ir.jaxpr import Params
from verax.ir.limits import finfo, iinfo
from verax.ir.memos.memo import memoised
from verax.ir.meshes import Splits, UnreducedKind
from verax.rules.families.chained_sums import CHAIN, count, total, working_dtype
from verax.rules.families.linear import one_batched, zero_jvp
from verax.rules.rows.eager_costs import Costly
from verax.rules.rows.emitter import Emitter, Operand, converted, folded
from verax.rules.rows.row import (
    REALS,
    Domain,
    JvpRule,
    LowerRule,
    NDArray,
    Row,
    Sample,
    TransposeRule,
)
from verax.rules.rows.traits import NO_TRAITS, Traits, each_operand
from verax.rules.values.array import Array
from verax.rules.values.kinds import Kind
from verax.rules.values.lazy import LazyModule
from verax.rules.values.memo import pure
from verax.rules.values.shape_samples import draw_shape
from verax.rules.values.sizes import beside, without

# Few programs have meshes with explicit axes.
SPLITS: Final = LazyModule("verax.rules.rows.type_shardings")

EXTREMES = Domain(special=(0.0, -0.0, 1.0, np.inf, -np.inf, np.nan))

type Scalar = bool | int | float | complex | np.ndarray


@frozen(eq=False, repr=False)
class ReduceParams(Params):
    """The dimensions that go, in order."""

    axes: Shape


reduce_params = memoised(ReduceParams)


def reducer(
    name: str,
    ufunc: np.ufunc,
    combine: LowerRule[ReduceParams],
    identity: Callable[[DType], Scalar],
    *,
    accepts: Kind,
    jvp: JvpRule[ReduceParams] | None = None,
    transpose: TransposeRule[ReduceParams] | None = None,
    domain: Domain = REALS,
    costly: Costly | None = None,
    across: Callable[[DType], bool] = lambda dtype: True,
    kind: UnreducedKind | None = None,
    traits: Traits = NO_TRAITS,
) -> Row[ReduceParams]:
    """A row that folds an operand over some of its dimensions.

    `ufunc` is NumPy's binary function, `combine` lowers it on two scalars, and
    `identity(dtype)` is its neutral element. Without `jvp` the derivative is zero.
    `across(dtype)` says whether XLA folds what lies on several devices. With `kind`
    that may be left to be done.
    """
    row: Row[ReduceParams] = Row(
        name,
        ReduceParams,
        typing=lambda p, avals: reduce_typing(name, accepts, p, avals),
        evaluate=lambda engine, p, xs: (fold(ufunc, identity, xs[0], p.axes),),
        jvp=jvp or zero_jvp(lambda: row),
        transpose=transpose,
        batch=one_batched(lambda p, size, x, axis: batch_reduce(row, p, x, axis)),
        lower=lambda e, p, xs, outs: lower_reduce(
            e, p, xs, outs, ufunc, combine, identity
        ),
        draw=lambda random: draw_reduce(random, accepts),
        domains=(domain,),
        costly=costly,
        traits=evolve(traits, flops=each_operand),
        sharding=lambda p, avals, outs: split_elsewhere(p, avals, outs, across),
        terms=kind and (lambda p, avals: SPLITS.summed_terms(p, avals, p.axes, kind)),
    )
    return row


def split_elsewhere(
    p: ReduceParams,
    avals: Sequence[ShapedArray],
    outs: Sequence[ShapedArray],
    across: Callable[[DType], bool],
) -> Sequence[Splits]:
    """The sharding column: what goes may be split if XLA joins parts of devices."""
    (x,) = avals
    joined = across(x.dtype)
    labels = [i if joined or i not in p.axes else None for i in range(x.ndim)]
    kept = [i for i in range(x.ndim) if i not in p.axes]
    found: Sequence[Splits] = SPLITS.connected(avals, [labels], [kept])
    return found


def reduce_typing(
    name: str, accepts: Kind, p: ReduceParams, avals: Sequence[ShapedArray]
) -> Sequence[ShapedArray]:
    """The operand's dtype and weakness, without the dimensions `axes`."""
    if len(avals) != 1:
        raise TypeError(f"{name} takes one operand, not {len(avals)}")
    (x,) = avals
    accepts.check(name, x.dtype)
    if list(p.axes) != sorted(set(p.axes) & set(range(x.ndim))):
        raise ValueError(
            f"{name} takes distinct axes of the {x.ndim} dimensions of {x} in order, "
            f"not {p.axes}"
        )
    return (x.with_shape(without(x.shape, p.axes)),)


def wide(x: NDArray) -> NDArray:
    """`x` in a dtype that NumPy sums in: float32 for the small floats, as on CPU."""
    if x.dtype.itemsize < 4 and is_float(x.dtype):
        return x.astype(np.float32)
    if x.dtype.kind == "V":
        return x.astype(np.int32)
    return x


def fold(
    ufunc: np.ufunc, identity: Callable[[DType], Scalar], x: NDArray, axes: Shape
) -> NDArray:
    """`ufunc.reduce`, which in the dtype of `x` wraps around as machines do.

    NumPy takes twice as long to start from a given value. So a sum starts from its
    first element, and 0 is added at the end: that turns -0.0 into 0.0.
    """
    over, dtype, zero, many = folding(ufunc, x.dtype, x.shape, axes)
    if x.size == 0:
        start = np.asarray(identity(x.dtype), numpy_dtype(x.dtype))
        found = ufunc.reduce(wide(x), axes, dtype, initial=wide(start)[()])
    elif many:
        found = total(x if dtype is x.dtype else wide(x), axes) + zero
    else:
        found = ufunc.reduce(x if dtype is x.dtype else wide(x), over, dtype)
        if zero is not None:
            found = found + zero
    return found if type(found) is np.ndarray else np.asarray(found)


@pure(1 << 12)
def folding(
    ufunc: np.ufunc, dtype: np.dtype[Any], shape: Shape, axes: Shape
) -> tuple[Shape | None, np.dtype[Any], Any, bool]:
    """How arrays are folded: over what, in which dtype, and what is added at the end.

    And whether they are sums of so many floats that they are added in short chains.
    All dimensions are None, and what is added to one number is a number: NumPy needs
    half the time, and a fourth.
    """
    over = None if len(axes) == len(shape) else axes
    terms = count(shape, axes)
    own = wide(np.empty(0, dtype)).dtype
    working = numpy_dtype(working_dtype(ufunc, own, terms))
    if not axes or ufunc is not np.add or working.kind not in "fc":
        return over, working, None, False
    zero = np.zeros((), working)
    return over, working, zero[()] if over is None else zero, terms > CHAIN


def batch_reduce(
    row: Row[ReduceParams], p: ReduceParams, x: Array, axis: int
) -> tuple[Array, int]:
    """Reduce the same dimensions where they are; the batch dimension moves up."""
    gone = beside(p.axes, axis)
    return row.call(ReduceParams(gone), x), axis - sum(i < axis for i in gone)


def lower_reduce(
    e: Emitter,
    p: ReduceParams,
    operands: Sequence[Operand],
    outs: Sequence[ShapedArray],
    ufunc: np.ufunc,
    combine: LowerRule[ReduceParams],
    identity: Callable[[DType], Scalar],
) -> Sequence[Operand]:
    """One `stablehlo.reduce`, or nothing where no dimension goes."""
    if not p.axes:
        return operands
    (x,), (out,) = operands, outs
    working = working_dtype(ufunc, out.dtype, count(x.aval.shape, p.axes))
    scalar = out.with_shape(()).with_dtype(working, out.weak_type)
    start = e.constant(identity(working), scalar)

    def both(xs: Sequence[Operand]) -> Sequence[Operand]:
        return combine(e, p, xs, (scalar,))

    y = folded(e, converted(e, x, working), start, p.axes, both)
    return (converted(e, y, out.dtype),)


def draw_reduce(random: Random, accepts: Kind) -> Sample[ReduceParams]:
    shape = draw_shape(random, 0, 3, (1, 2, 3, 4, 5))
    axes = tuple(i for i in range(len(shape)) if random.random() < 0.6)
    dtype = random.choice(accepts.samples())
    return Sample(ReduceParams(axes), (ShapedArray(shape, dtype),))


def lowest(dtype: DType) -> Scalar:
    """The identity of `max`: what no number of `dtype` is below."""
    return extreme(dtype, -np.inf)


def highest(dtype: DType) -> Scalar:
    """The identity of `min`: what no number of `dtype` is above."""
    return extreme(dtype, np.inf)


def extreme(dtype: DType, infinity: float) -> Scalar:
    """The end of `dtype` towards `infinity`, and that itself where `dtype` has it."""
    if is_bool(dtype):
        return infinity > 0
    if is_complex(dtype):
        return complex(infinity, infinity)
    if not is_float(dtype):
        limits = iinfo(dtype)
        return int(limits.max if infinity > 0 else limits.min)
    if float(np.asarray(infinity, numpy_dtype(dtype))) == infinity:
        return infinity
    bounds = finfo(dtype)
    return float(bounds.max if infinity > 0 else bounds.min)
