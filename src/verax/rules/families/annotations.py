"""Floor 1: rows that say something of a value, and leave it what it is.

What is said is about the primal value alone: tangents and cotangents pass unmarked.
The lowering, or who reads the jaxpr, knows what the params mean::

    name_p = annotation("name", NameParams, draw=..., lower=lambda e, p, xs, outs: xs)
"""

from collections.abc import Callable
from random import Random

from verax.ir.jaxpr import Params
from verax.rules.rows.row import LowerRule, Row, Sample, as_typed
from verax.rules.rows.traits import Traits, no_flops


def annotation[P: Params](
    name: str,
    params: type[P],
    *,
    lower: LowerRule[P],
    draw: Callable[[Random], Sample[P]],
) -> Row[P]:
    """The identity of one operand, whose params say something of it."""
    row: Row[P] = Row(
        name,
        params,
        typing=lambda p, avals: avals,
        evaluate=lambda engine, p, xs: xs,
        jvp=lambda engine, p, xs, ts: ((row.call(p, *xs),), tuple(ts)),
        transpose=lambda engine, p, cts, args: cts,
        batch=lambda engine, p, size, xs, axes: ((row.call(p, *xs),), axes),
        lower=lower,
        draw=draw,
        sharding=as_typed,
        traits=Traits(
            flops=no_flops, makes_nans=False, additive=True, marker=True, view=True
        ),
    )
    return row
