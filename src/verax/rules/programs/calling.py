"""Floor 1: the common part of rows that mean the jaxpr which they hold.

One idea: the rule of a call is the call of the rewritten jaxpr, whatever the call is::

    jvp=lambda engine, p, xs, ts: push(engine, p.jaxpr, rebinding(p), xs, ts)
"""

from collections.abc import Callable, Sequence

from verax.ir.jaxpr import Jaxpr
from verax.rules.rows.infer import (
    arrays_of,
    cotangents,
    filled,
    knowns,
    live,
    nonzeros,
    unknowns,
)
from verax.rules.rows.row import Axis, Engine, Known, Linear, Tangent, Zero
from verax.rules.values.array import Array

type Rebind = Callable[..., Sequence[Array]]
"""Binds a jaxpr to operands, as an equation of the same kind."""


def push(
    engine: Engine,
    jaxpr: Jaxpr,
    bind: Rebind,
    primals: Sequence[Array],
    tangents: Sequence[Tangent],
) -> tuple[Sequence[Array], Sequence[Tangent]]:
    """The jvp of a call."""
    pushed, mask = engine.jvp(jaxpr, nonzeros(tangents))
    outs = bind(pushed, *primals, *live(tangents))
    count = len(mask)
    return outs[:count], filled(mask, outs[count:], jaxpr.out_avals)


def pull(
    engine: Engine,
    jaxpr: Jaxpr,
    bind: Rebind,
    cts: Sequence[Tangent],
    args: Sequence[Known],
) -> Sequence[Tangent | None]:
    """The transpose of a call that is linear in the operands which are not known."""
    linear = unknowns(args)
    nonzero = nonzeros(cts)
    transposed, mask = engine.transpose(jaxpr, linear, nonzero)
    given = arrays_of(engine, nonzero, cts, cotangents(jaxpr.out_avals))
    found = iter(bind(transposed, *knowns(args), *given))
    flags = iter(mask)
    return [
        None
        if not isinstance(x, Linear)
        else next(found)
        if next(flags)
        else Zero(x.aval.cotangent())
        for x in args
    ]


def spread_batch(
    engine: Engine,
    jaxpr: Jaxpr,
    bind: Rebind,
    size: int,
    args: Sequence[Array],
    axes: Sequence[Axis],
) -> tuple[Sequence[Array], Sequence[Axis]]:
    """The batch rule of a call."""
    batched, out_axes = engine.batch(jaxpr, size, tuple(axes))
    return bind(batched, *args), out_axes
