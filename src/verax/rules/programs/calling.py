"""Floor 1: the common part of rows that mean the jaxpr which they hold.

One idea: the rule of a call is the call of the rewritten jaxpr, whatever the call is::

    jvp=lambda engine, p, xs, ts: push(engine, p.jaxpr, rebinding(p), xs, ts)
"""

from collections.abc import Callable, Sequence

from verax.ir.jaxpr import Jaxpr
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
    nonzero = tuple(not isinstance(t, Zero) for t in tangents)
    pushed, out_nonzero = engine.jvp(jaxpr, nonzero)
    live = [t for t in tangents if not isinstance(t, Zero)]
    outs = bind(pushed, *primals, *live)
    count = len(out_nonzero)
    return outs[:count], spread_tangents(jaxpr, out_nonzero, outs[count:])


def spread_tangents(
    jaxpr: Jaxpr, nonzero: Sequence[bool], live: Sequence[Array]
) -> list[Tangent]:
    """Tangents of all outputs of `jaxpr`, from those that are not zero."""
    found = iter(live)
    return [
        next(found) if flag else Zero(aval.tangent())
        for flag, aval in zip(nonzero, jaxpr.out_avals, strict=True)
    ]


def pull(
    engine: Engine,
    jaxpr: Jaxpr,
    bind: Rebind,
    cts: Sequence[Tangent],
    args: Sequence[Known],
) -> Sequence[Tangent | None]:
    """The transpose of a call that is linear in the operands which are not known."""
    linear = tuple(isinstance(x, Linear) for x in args)
    nonzero = tuple(not isinstance(ct, Zero) for ct in cts)
    transposed, mask = engine.transpose(jaxpr, linear, nonzero)
    known = [x for x in args if isinstance(x, Array)]
    live = [
        engine.core.convert(ct, aval.tangent().dtype, aval.tangent().weak_type)
        for ct, aval in zip(cts, jaxpr.out_avals, strict=True)
        if not isinstance(ct, Zero)
    ]
    found = iter(bind(transposed, *known, *live))
    flags = iter(mask)
    return [
        None
        if not isinstance(x, Linear)
        else next(found)
        if next(flags)
        else Zero(x.aval)
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
