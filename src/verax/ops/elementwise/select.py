"""Floor 2: choosing among values: select_n, clamp, and rows that pass them through.

One idea: a choice is linear in what it chooses from; predicates and bounds without
dimensions stay without them down to the compiled program::

    select_n_p: z = cases[which],  dz = dcases[which]
"""

from collections.abc import Mapping, Sequence
from functools import partial
from random import Random
from types import MappingProxyType

import numpy as np

from verax.ir.avals import ShapedArray
from verax.ir.dtypes import bool_, int32, is_bool
from verax.ir.jaxpr import NO_PARAMS, NoParams
from verax.ops.elementwise.bits import bitwise_and, bitwise_or
from verax.ops.elementwise.compare import ge, gt, lt
from verax.rules.families.elementwise import (
    SHAPES,
    batch_elementwise,
    common_shape,
    draw_sample,
    elementwise,
    elementwise_typing,
    full_operands,
    scalar_or,
    sum_of_contributions,
    unbroadcast,
)
from verax.rules.rows.eager_costs import huge
from verax.rules.rows.emitter import Emitter, Operand, compared
from verax.rules.rows.row import (
    Domain,
    Engine,
    Known,
    Linear,
    Narrow,
    NDArray,
    Row,
    Rows,
    Sample,
    Tangent,
    Traits,
    Work,
    Zero,
    each_result,
    no_flops,
)
from verax.rules.rows.type_shardings import axis_by_axis, linear_terms
from verax.rules.values.array import Array
from verax.rules.values.constants import ANYTHING, KEY, ORDERED
from verax.rules.values.operands import alike


def select_typing(p: NoParams, avals: Sequence[ShapedArray]) -> Sequence[ShapedArray]:
    if len(avals) < 2:
        raise ValueError("select_n takes a predicate and at least one case")
    which, *cases = avals
    if which.dtype not in (bool_, int32) or (is_bool(which.dtype) and len(cases) > 2):
        raise TypeError(
            "select_n takes a boolean predicate for two cases, or an int32 one for any "
            f"number, not {which.dtype} for {len(cases)} cases"
        )
    if any(case.dtype != cases[0].dtype for case in cases):
        raise TypeError(
            "select_n takes cases of the same dtype, not "
            f"{', '.join(str(case.dtype) for case in cases)}; convert them "
            "(verax.lax.convert_element_type) or use verax.numpy.where, which promotes"
        )
    weak = all(case.weak_type for case in cases)
    shape = common_shape("select_n", avals)
    return (ShapedArray(shape, cases[0].dtype, weak),)


MANY = 1 << 12
BITS: Mapping[int, type[np.signedinteger]] = MappingProxyType(
    {4: np.int32, 8: np.int64}
)


def select_bits(which: NDArray, on_true: NDArray, on_false: NDArray) -> NDArray:
    """Integers by a mask, without a branch for each, which is wrong half the time."""
    mask = which.astype(on_true.dtype)
    np.negative(mask, out=mask)
    alone = on_false.ndim == 0 and not on_false
    out: NDArray = mask & on_true if alone else ((on_true ^ on_false) & mask) ^ on_false
    return out


def evaluate_select(which: NDArray, *cases: NDArray) -> NDArray:
    if is_bool(which.dtype) and len(cases) == 2:
        bits = BITS.get(cases[0].dtype.itemsize) if which.size >= MANY else None
        if bits is None:
            return np.where(which, cases[1], cases[0])
        return select_bits(which, cases[1].view(bits), cases[0].view(bits)).view(
            cases[0].dtype
        )
    chosen = np.clip(which.astype(np.int64), 0, len(cases) - 1)
    result = cases[0]
    for i, case in enumerate(cases):
        result = np.where(chosen == i, case, result)
    return result


def jvp_select(
    engine: Engine, p: NoParams, primals: Sequence[Array], tangents: Sequence[Tangent]
) -> tuple[Sequence[Array], Sequence[Tangent]]:
    y = select_n_p.call(p, *primals)
    if all(isinstance(t, Zero) for t in tangents[1:]):
        return (y,), (Zero(y.aval.tangent()),)
    filled = [0.0 if isinstance(t, Zero) else t for t in tangents[1:]]
    t = select_n(primals[0], *filled)
    if t.shape != y.shape:
        t = engine.core.broadcast_in_dim(t, y.shape, ())
    return (y,), (t,)


def transpose_select(
    engine: Engine, p: NoParams, cts: Sequence[Tangent], args: Sequence[Known]
) -> Sequence[Tangent | None]:
    (ct,), (which, *cases) = cts, args
    assert isinstance(ct, Array)
    results: list[Tangent | None] = [None]
    for i, case in enumerate(cases):
        if not isinstance(case, Linear):
            results.append(None)
        else:
            others: list[object] = [0.0] * len(cases)
            others[i] = ct
            part = select_n(which, *others)
            results.append(unbroadcast(engine, part, case.aval.shape))
    return results


def lower_select(
    e: Emitter, p: NoParams, xs: Sequence[Operand], outs: Sequence[ShapedArray]
) -> Sequence[Operand]:
    which, *cases = xs
    full = list(full_operands(e, cases, outs))
    if len(cases) == 1:
        return full
    if is_bool(which.aval.dtype):
        return e.op("stablehlo.select", (which, full[1], full[0]), outs)
    return (search(e, which, full, 0, outs),)


def search(
    e: Emitter,
    which: Operand,
    cases: Sequence[Operand],
    first: int,
    outs: Sequence[ShapedArray],
) -> Operand:
    """The case number `which - first`, the nearest one if there is none."""
    if len(cases) == 1:
        return cases[0]
    half = len(cases) // 2
    bound = e.constant(first + half, which.aval)
    below = compared(e, which, "LT", bound)
    low = search(e, which, cases[:half], first, outs)
    high = search(e, which, cases[half:], first + half, outs)
    (chosen,) = e.op("stablehlo.select", (below, low, high), outs)
    return chosen


def draw_select(random: Random) -> Sample[NoParams]:
    count = random.randint(1, 4)
    two = count <= 2 and random.random() < 0.6
    shape = random.choice(SHAPES)
    dtype = random.choice(ANYTHING.samples())
    which = ShapedArray(random.choice((shape, ())), bool_ if two else int32)
    cases = [ShapedArray(shape, dtype) for _ in range(count)]
    index = Domain(-2, count + 1, special=(-1, 0, count - 1, count))
    domains = (index, *[Domain() for _ in range(count)])
    return Sample(NO_PARAMS, (which, *cases), domains)


select_n_p: Row[NoParams] = Row(
    "select_n",
    NoParams,
    typing=select_typing,
    evaluate=lambda engine, p, xs: (evaluate_select(*xs),),
    jvp=jvp_select,
    transpose=transpose_select,
    batch=lambda engine, p, size, xs, axes: batch_elementwise(
        engine, select_n_p, p, size, xs, axes
    ),
    lower=lower_select,
    draw=draw_select,
    costly=huge,
    sharding=partial(axis_by_axis, alike="select cases must have the same shardings"),
    terms=partial(linear_terms, first=1),
    traits=Traits(
        Work.CHEAP, each_result, elementwise=True, makes_nans=False, narrow=Narrow.MOVES
    ),
)

# At a tie the bound takes the derivative, so that the three always add up to one.
CLAMP_RULES = (
    lambda p, low, x, high, y, t: select_n(
        bitwise_and(ge(low, x), lt(low, high)), 0.0, t
    ),
    lambda p, low, x, high, y, t: select_n(
        bitwise_and(gt(x, low), lt(x, high)), 0.0, t
    ),
    lambda p, low, x, high, y, t: select_n(
        bitwise_or(ge(x, high), ge(low, high)), 0.0, t
    ),
)


def lower_clamp(
    e: Emitter, p: NoParams, xs: Sequence[Operand], outs: Sequence[ShapedArray]
) -> Sequence[Operand]:
    """One operation, which takes each bound in full or as a scalar."""
    low, x, high = xs
    (x,) = full_operands(e, (x,), outs)
    return e.op("stablehlo.clamp", (low, x, high), outs)


clamp_p: Row[NoParams] = Row(
    "clamp",
    NoParams,
    typing=elementwise_typing(
        "clamp", 3, ORDERED, lambda p, dtype: dtype, common_shape
    ),
    evaluate=lambda engine, p, xs: (np.minimum(np.maximum(xs[1], xs[0]), xs[2]),),
    jvp=lambda engine, p, xs, ts: sum_of_contributions(
        engine, clamp_p, p, CLAMP_RULES, xs, ts
    ),
    batch=lambda engine, p, size, xs, axes: batch_elementwise(
        engine, clamp_p, p, size, xs, axes
    ),
    lower=lower_clamp,
    draw=lambda random: draw_sample(
        random, 3, ORDERED, lambda r, dtype: NO_PARAMS, scalar_or
    ),
    domains=(Domain(-2, 0), Domain(-4, 4), Domain(0, 2)),
    costly=huge,
    sharding=axis_by_axis,
    traits=Traits(
        Work.CHEAP, each_result, elementwise=True, makes_nans=False, narrow=Narrow.MOVES
    ),
)
stop_gradient_p = elementwise(
    "stop_gradient",
    lambda x: x,
    lower=lambda e, p, xs, outs: xs,
    accepts=ANYTHING,
    domains=Domain(smooth=False),
    traits=Traits(Work.CHEAP, no_flops, makes_nans=False, view=True, additive=True),
)
copy_p = elementwise(
    "copy",
    np.copy,
    jvp=lambda x, y, t: copy(t),
    transpose=lambda ct, x: copy(ct),
    lower=lambda e, p, xs, outs: xs,
    accepts=ANYTHING | KEY,
    traits=Traits(flops=no_flops, makes_nans=False, additive=True),
)


def select_n(which: object, *cases: object) -> Array:
    """The elements of `cases[which]`; if it is boolean, of the second where true.

    Args:
        which: booleans (at most two cases) or int32 numbers, of the shape of the cases
            or a scalar. A number outside the cases means the nearest one.
        *cases: one or more arrays of the same shape and dtype, or scalars; a Python
            scalar takes the dtype of the first array.

    Returns:
        An array of the dtype of the cases, in the shape of the operands that are not
        scalars.

    Raises:
        TypeError: dtypes or shapes do not match.
        ValueError: there is no case.

    >>> import verax
    >>> which = np.array([0, 1, 7], np.int32)
    >>> select_n(which, np.zeros(3, np.float32), np.ones(3, np.float32))
    Array([0., 1., 1.], dtype=float32)
    """
    return select_n_p.call(NO_PARAMS, which, *alike(*cases))


def select(pred: object, on_true: object, on_false: object) -> Array:
    """`on_true` where the boolean `pred` is true, and `on_false` elsewhere.

    Args:
        pred: booleans, of the shape of the other two or a scalar.
        on_true, on_false: arrays of the same shape and dtype, or scalars; a Python
            scalar takes the dtype of the array beside it.

    Returns:
        An array of the dtype of `on_true`, in the shape of the operands that are not
        scalars. Unlike in `verax.numpy.where`, nothing is promoted or broadcast.

    Raises:
        TypeError: dtypes or shapes do not match.

    >>> import verax.numpy as vnp
    >>> from verax import lax
    >>> x = vnp.array([-2, 3])
    >>> lax.select(x > 0, x, 0)
    Array([0, 3], dtype=int32)
    """
    return select_n(pred, on_false, on_true)


def clamp(min: object, x: object, max: object) -> Array:
    """x, but at least `min` and at most `max`: minimum(maximum(x, min), max).

    At a bound the derivative is zero in x and one in the bound. Where `min` is above
    `max` the result is `max`; NaN stays.

    Args:
        min: the lower bound, an array of the shape of `x` or a scalar, of its dtype.
        x: an array or scalar of integers, floats or booleans.
        max: the upper bound, like `min`.

    Returns:
        An array of the dtype of `x`, in the shape of the operands that are not scalars.

    Raises:
        TypeError: dtypes or shapes do not match, or `x` is complex.

    >>> import verax.numpy as vnp
    >>> from verax import lax
    >>> lax.clamp(0.0, vnp.array([-1.0, 0.5, 3.0, vnp.nan]), 1.0)
    Array([0. , 0.5, 1. , nan], dtype=float32)
    """
    return clamp_p.call(NO_PARAMS, *alike(min, x, max))


def stop_gradient(x: object) -> Array:
    """x, with a derivative of zero."""
    return stop_gradient_p.call(NO_PARAMS, x)


def copy(x: object) -> Array:
    """x in memory of its own."""
    return copy_p.call(NO_PARAMS, x)


ROWS: Rows = (select_n_p, clamp_p, stop_gradient_p, copy_p)
