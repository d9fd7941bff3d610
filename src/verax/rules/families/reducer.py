"""Floor 1: the family of reductions by a monoid: sums, products, extremes.

One idea: a reduction is a binary operation, its identity and a NumPy function; which
axes go and where a batch dimension stays are the same for all::

    reduce_sum_p = reducer("reduce_sum", np.add, stablehlo("add"), zero, ...)
"""

import math
from collections.abc import Callable, Mapping, Sequence
from random import Random

import numpy as np
from attrs import evolve, field, frozen

from verax.ir.avals import Shape, ShapedArray, finfo, iinfo
from verax.ir.dtypes import (
    DType,
    complex64,
    complex128,
    float32,
    float64,
    is_bool,
    is_complex,
    is_float,
    numpy_dtype,
    real_dtype,
)
from verax.ir.jaxpr import Params
from verax.ir.memos import memoised
from verax.ir.meshes import Splits, UnreducedKind
from verax.ir.records import QUIET
from verax.rules.families.linear import one_batched, zero_jvp
from verax.rules.rows.eager_costs import Costly
from verax.rules.rows.emitter import Emitter, Operand, compared, converted, folded
from verax.rules.rows.kernels import Kernel
from verax.rules.rows.row import (
    NO_TRAITS,
    NOWHERE,
    REALS,
    Domain,
    JvpRule,
    LowerRule,
    NDArray,
    Row,
    Sample,
    Traits,
    TransposeRule,
    each_operand,
)
from verax.rules.rows.type_shardings import connected, summed_terms
from verax.rules.values.array import Array
from verax.rules.values.constants import Kind
from verax.rules.values.memo import pure
from verax.rules.values.sizes import beside, draw_shape, surely_less, without

# -----------------------------------------------------------------------------
# Sums of many floats in short chains, so that they round as trees do.
#
# NumPy adds pairwise along the dimension that is closest in memory, and one
# after another along all others. There, `CHAIN` blocks of rows are added to one block,
# again and again, until few rows are left::
#
#     total(np.ones((2**25, 2), np.float32), (0,))    # 33554432., one by one 16777216.
#
# Whole blocks are added at once, which is faster than row after row, up to 50 times
# where rows are short.


# Chains of 32 additions round to 2 units in the last place; shorter ones gain little,
# and cost more passes over memory.
CHAIN = 32
# XLA's library for reductions computes none of fewer elements.
FEW = 2048
DOUBLE: dict[DType, DType] = {float32: float64, complex64: complex128}


def count(shape: Shape, axes: Shape) -> int:
    """The number of elements that become one."""
    return math.prod([shape[i] for i in axes])


def doubled(dtype: DType) -> DType:
    """The dtype of twice the width, for floats that have one; else `dtype` itself.

    Running folds are kept in it: each element is rounded once, however long the chain.
    """
    small = is_float(dtype) and dtype.itemsize < 4
    return float64 if small else DOUBLE.get(dtype, dtype)


def working_dtype(ufunc: np.ufunc, dtype: DType, terms: int) -> DType:
    """The dtype in which `terms` numbers of `dtype` are added or multiplied.

    Small floats would be rounded in every step. So are products of many factors, and
    there no order helps: the errors of all steps add up.
    """
    if ufunc not in (np.add, np.multiply):
        return dtype
    if is_float(dtype) and dtype.itemsize < 4:
        dtype = float32
    long = ufunc is np.multiply and surely_less(CHAIN, terms)
    return doubled(dtype) if long else dtype


def total(x: NDArray, axes: Shape) -> NDArray:
    """The sum of floats over some axes; of as many dimensions as are left."""
    if x.flags.c_contiguous and axes == tuple(range(x.ndim - len(axes), x.ndim)):
        return np.asarray(np.add.reduce(x, axes))
    stay = [n for i, n in enumerate(x.shape) if i not in axes]
    return outermost_first(x, axes).reshape(stay)


def outermost_first(x: NDArray, axes: Shape) -> NDArray:
    """The sum, with the dimensions kept as ones.

    The dimensions go in the order of memory, so that all but the first are passed on
    arrays that are small already.
    """
    strides = [abs(s) if n > 1 else 0 for s, n in zip(x.strides, x.shape, strict=True)]
    closest = min(
        (s for s, n in zip(strides, x.shape, strict=True) if n > 1), default=0
    )
    for axis in sorted(axes, key=lambda i: -strides[i]):
        pairwise = closest and strides[axis] == closest
        x = np.add.reduce(x if pairwise else few_rows(x, axis), axis, keepdims=True)
    return x


def few_rows(x: NDArray, axis: int) -> NDArray:
    """At most `CHAIN` rows along the axis, of the same sum."""
    lead = (slice(None),) * axis
    while (n := x.shape[axis]) > CHAIN:
        rows = -(-n // CHAIN)
        number = n // rows
        end = number * rows
        whole, rest = x[(*lead, slice(end))], x[(*lead, slice(end, n))]
        blocks = whole.reshape((*x.shape[:axis], number, rows, *x.shape[axis + 1 :]))
        x = np.add.reduce(blocks, axis)
        first = x[(*lead, slice(n - end))]
        np.add(first, rest, first)
    return x


def accumulated(ufunc: np.ufunc, x: NDArray) -> NDArray:
    """The folds of the elements so far along axis 0, by an associative `ufunc`.

    They are kept in double precision, or made in blocks where `x` has that.
    """
    working = numpy_dtype(doubled(x.dtype))
    if x.shape[0] <= CHAIN or x.dtype.kind not in "fc":
        return np.asarray(ufunc.accumulate(x, 0, dtype=x.dtype))
    if working != x.dtype:
        return np.asarray(ufunc.accumulate(x, 0, dtype=working).astype(x.dtype))
    if ufunc is np.multiply:  # All steps round in whichever order.
        return np.asarray(ufunc.accumulate(x, 0))
    return in_blocks(ufunc, x)


def in_blocks(ufunc: np.ufunc, x: NDArray) -> NDArray:
    """The folds so far of blocks, each after the fold of those before it.

    Blocks are longer than `CHAIN`, since each level costs several calls of NumPy.
    """
    n, size = x.shape[0], 2 * CHAIN
    if n <= size:
        return np.asarray(ufunc.accumulate(x, 0))
    out, whole = np.empty_like(x), n // size * size
    shape = (n // size, size, *x.shape[1:])
    blocks = out[:whole].reshape(shape)
    ufunc.accumulate(x[:whole].reshape(shape), 1, out=blocks)
    totals = in_blocks(ufunc, blocks[:, -1])
    ufunc(totals[:-1, None], blocks[1:], blocks[1:])
    if whole < n:
        ufunc.accumulate(x[whole:], 0, out=out[whole:])
        ufunc(totals[-1], out[whole:], out[whole:])
    return out


# -----------------------------------------------------------------------------
# The family of reductions by a monoid: sums, products, extremes.


EXTREMES = Domain(special=(0.0, -0.0, 1.0, np.inf, -np.inf, np.nan))

type Scalar = bool | int | float | complex | np.ndarray
type Combine = Callable[[Emitter, Operand, Operand], Operand]


@frozen(eq=False, repr=False)
class ReduceParams(Params):
    """The dimensions that go, in order.

    With `loses_nan` an extreme need not be NaN where an element is: it saves time where
    what is made of it is NaN then in any case.
    """

    axes: Shape
    loses_nan: bool = field(default=False, metadata=QUIET)


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
    kernel: Kernel | None = None,
    lower_on: Mapping[str, LowerRule[ReduceParams]] = NOWHERE,
    traits: Traits = NO_TRAITS,
) -> Row[ReduceParams]:
    """A row that folds an operand over some of its dimensions.

    `ufunc` is NumPy's binary function, `combine` lowers it on two scalars, and
    `identity(dtype)` is its neutral element. Without `jvp` the derivative is zero.
    `across(dtype)` says whether XLA folds what lies on several devices. With `kind`
    that may be left to be done. `lower_on` has the rules of platforms that lower
    differently.
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
        lower_on=lower_on,
        draw=lambda random: draw_reduce(random, accepts),
        domains=(domain,),
        costly=costly,
        kernel=kernel,
        traits=evolve(traits, flops=each_operand),
        sharding=lambda p, avals, outs: split_elsewhere(p, avals, outs, across),
        terms=kind and (lambda p, avals: summed_terms(p, avals, p.axes, kind)),
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
    return connected(avals, [labels], [kept])


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
        out = ufunc.reduce(wide(x), axes, dtype, initial=wide(start)[()])
    elif many:
        out = total(x if dtype is x.dtype else wide(x), axes) + zero
    else:
        out = ufunc.reduce(x if dtype is x.dtype else wide(x), over, dtype)
        if zero is not None:
            out = out + zero
    return out if type(out) is np.ndarray else np.asarray(out)


@pure(1 << 12)
def folding(
    ufunc: np.ufunc, dtype: np.dtype[np.generic], shape: Shape, axes: Shape
) -> tuple[Shape | None, np.dtype[np.generic], object, bool]:
    """The fold of arrays: over what, in which dtype, and what is added at the end.

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
    return row.call(evolve(p, axes=gone), x), axis - sum(i < axis for i in gone)


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


def named(operation: str) -> Combine:
    """The fold of two operands that is one StableHLO operation."""
    return lambda e, x, y: e.op(f"stablehlo.{operation}", (x, y), (y.aval,))[0]


def folding_two(combine: Combine) -> LowerRule[Params]:
    """The lower column that folds two operands."""
    return lambda e, p, xs, outs: (combine(e, *xs),)


def larger_or_smaller(operation: str) -> Combine:
    """ "maximum" or "minimum" of two operands, NaN if one of them is.

    Complex numbers are ordered by real, then by imaginary part.
    """
    way = "GT" if operation == "maximum" else "LT"

    def combine(e: Emitter, x: Operand, y: Operand) -> Operand:
        if not is_complex(y.aval.dtype):
            return e.op(f"stablehlo.{operation}", (x, y), (y.aval,))[0]
        part = y.aval.with_dtype(real_dtype(y.aval.dtype))
        (a, b), (c, d) = (
            [e.op(f"stablehlo.{name}", (z,), (part,))[0] for z in (x, y)]
            for name in ("real", "imag")
        )
        same = compared(e, a, "EQ", b)
        test = (same.aval,)
        ways = same, compared(e, c, way, d), compared(e, a, way, b)
        ahead = e.op("stablehlo.select", ways, test)[0]
        wins = e.op("stablehlo.and", (ahead, compared(e, y, "EQ", y)), test)[0]
        first = e.op("stablehlo.or", (wins, compared(e, x, "NE", x)), test)[0]
        return e.op("stablehlo.select", (first, x, y), (y.aval,))[0]

    return combine


def clamped(operation: str) -> Combine:
    """`larger_or_smaller` for CPUs, where XLA's library for reductions loses NaN.

    That computes the extremes of two operands with the instructions of the processor,
    which return the second if one is NaN. It leaves `clamp` to XLA, which does not.
    """
    plain = larger_or_smaller(operation)

    def combine(e: Emitter, x: Operand, y: Operand) -> Operand:
        dtype = y.aval.dtype
        if not is_float(dtype):
            return plain(e, x, y)
        larger = operation == "maximum"
        far = e.constant(
            highest(dtype) if larger else lowest(dtype), y.aval.with_shape(())
        )
        bounds = (y, x, far) if larger else (far, x, y)
        return e.op("stablehlo.clamp", bounds, (y.aval,))[0]

    return combine


def extremes_on_cpu(
    operation: str, ufunc: np.ufunc, identity: Callable[[DType], Scalar]
) -> LowerRule[ReduceParams]:
    """The lower column of `max` or `min` for CPUs, NaN if an element is.

    XLA's library for reductions loses NaN there, but not in a sum of squares, which is
    NaN for nothing else, and takes as little time.
    """
    combine, plus = folding_two(larger_or_smaller(operation)), folding_two(named("add"))

    def lower(
        e: Emitter,
        p: ReduceParams,
        operands: Sequence[Operand],
        outs: Sequence[ShapedArray],
    ) -> Sequence[Operand]:
        found = lower_reduce(e, p, operands, outs, ufunc, combine, identity)
        (x,), (out,) = operands, outs
        exact = p.loses_nan or not p.axes or not is_float(out.dtype)
        if exact or surely_less(x.aval.size, FEW):
            return found
        squares = e.op("stablehlo.multiply", (x, x), (x.aval,))
        (y,) = lower_reduce(e, p, squares, outs, np.add, plus, lambda dtype: 0)
        return e.op("stablehlo.select", (compared(e, y, "NE", y), y, *found), outs)

    return lower


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
