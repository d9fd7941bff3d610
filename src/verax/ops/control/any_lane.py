"""Floor 2: `any_lane`: whether a predicate holds for any element of the batch.

One idea: what only saves work may be decided for all batch elements together, so that a
choice stays one choice under vmap; for a single batch element it is the predicate
itself::

    c:bool[] = any_lane b
    d = cond[...] c ...         # skips the work if no batch element wants it
"""

from collections.abc import Sequence

from verax.ir.avals import ShapedArray
from verax.ir.dtypes import bool_
from verax.ir.jaxpr import NO_PARAMS, NoParams
from verax.ops.reductions.reduce import reduce_or
from verax.rules.rows.row import Axis, Engine, Row, Rows, Traits, each_result
from verax.rules.values.array import Array


def typing_any(p: NoParams, avals: Sequence[ShapedArray]) -> Sequence[ShapedArray]:
    (aval,) = avals
    if aval.dtype != bool_:
        raise TypeError(f"any_lane takes a boolean predicate, not {aval}")
    return avals


def batch_any(
    engine: Engine,
    p: NoParams,
    size: int,
    args: Sequence[Array],
    axes: Sequence[Axis],
) -> tuple[Sequence[Array], Sequence[Axis]]:
    """One answer for all batch elements; a vmap around that one asks again."""
    ((x,), (axis,)) = (args, axes)
    assert axis is not None, "the rule is asked only for batched operands"
    return (any_lane(reduce_or(x, (axis,))),), (None,)


any_lane_p: Row[NoParams] = Row(
    "any_lane",
    NoParams,
    typing=typing_any,
    evaluate=lambda engine, p, xs: xs,
    batch=batch_any,
    lower=lambda e, p, xs, outs: xs,
    traits=Traits(flops=each_result),
)


def any_lane(x: Array) -> Array:
    """Whether x holds for any batch element.

    Only for decisions that change no value: with it a function of one batch element
    sees the other ones.
    """
    return any_lane_p.call(NO_PARAMS, x)


ROWS: Rows = (any_lane_p,)
