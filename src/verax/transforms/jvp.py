"""Floor 3: forward-mode differentiation of a jaxpr.

One idea: beside every variable stands its tangent, or nothing where it is zero::

    { lambda ; a. let b = sin a in (b,) }
    { lambda ; a t. let b = sin a; c = cos a; d = mul t c in (b, d) }
"""

from collections.abc import Sequence

from verax.ir.avals import ShapedArray
from verax.ir.jaxpr import Atom, Eqn, Jaxpr, Var
from verax.rules.builder import Builder
from verax.rules.row import Engine, MissingRule
from verax.rules.state import interpreting
from verax.transforms.templates import Mask, jvp_template, located, types

type Tangents = list[Atom | None]


def jvp(engine: Engine, jaxpr: Jaxpr, nonzero: Mask) -> tuple[Jaxpr, Mask]:
    """The program that pushes tangents forward.

    Contract: inputs are those of `jaxpr`, then a tangent for each input that `nonzero`
    marks; outputs are those of `jaxpr`, then a tangent for each output that the
    returned mask marks. The tangents of the others are zero. Values and effects of
    the primal program are kept.
    """
    builder = Builder("jvp")
    ins = [builder.input(aval).atom for aval in pushed_types(jaxpr, nonzero)]
    outs, mask = jvp_into(engine, builder, jaxpr, nonzero, ins)
    return builder.close(outs)[0], mask


def pushed_types(jaxpr: Jaxpr, nonzero: tuple[bool, ...]) -> list[ShapedArray]:
    """The types of the inputs of the program that pushes tangents forward."""
    active = zip(jaxpr.invars, nonzero, strict=True)
    return [*jaxpr.in_avals, *[v.aval.tangent() for v, flag in active if flag]]


def jvp_into(
    engine: Engine,
    builder: Builder,
    jaxpr: Jaxpr,
    nonzero: tuple[bool, ...],
    ins: Sequence[Atom],
) -> tuple[list[Atom], tuple[bool, ...]]:
    """`jvp`, written into `builder` on atoms of the types `pushed_types`."""
    count = len(jaxpr.invars)
    primals, given = list(ins[:count]), iter(ins[count:])
    tangents: Tangents = [next(given) if active else None for active in nonzero]
    for eqn in jaxpr.eqns:
        jvp_eqn(engine, builder, eqn, primals, tangents)
    outs = [primals[a.index] if type(a) is Var else a for a in jaxpr.outvars]
    pushed = [tangents[a.index] if type(a) is Var else None for a in jaxpr.outvars]
    live = [
        coerce(engine, builder, t, a.aval.tangent())
        for t, a in zip(pushed, jaxpr.outvars, strict=True)
        if t is not None
    ]
    return [*outs, *live], tuple(t is not None for t in pushed)


def jvp_eqn(
    engine: Engine, builder: Builder, eqn: Eqn, primals: list[Atom], tangents: Tangents
) -> None:
    """Write one equation and its tangent, if any operand has one."""
    ins = tuple([primals[a.index] if type(a) is Var else a for a in eqn.invars])
    ts = [tangents[a.index] if type(a) is Var else None for a in eqn.invars]
    live = [t for t in ts if t is not None]
    if not live:
        primals += builder.copy(eqn, ins)
        tangents += [None] * len(eqn.outvars)
        return
    mask = tuple([t is not None for t in ts])
    try:
        template, out_mask = jvp_template(
            engine, eqn.primitive, eqn.params, types(eqn.invars), mask
        )
    except MissingRule as error:
        raise located(error, eqn) from error
    outs = builder.inline(template, [*ins, *live], source=eqn.source.derived("jvp"))
    count = len(eqn.outvars)
    primals += outs[:count]
    rest = iter(outs[count:])
    tangents += [next(rest) if flag else None for flag in out_mask]


def coerce(engine: Engine, builder: Builder, tangent: Atom, aval: ShapedArray) -> Atom:
    """The tangent in the type that its primal has: only weakness may differ."""
    if tangent.aval is aval:
        return tangent
    with interpreting(builder):
        (x,) = builder.tracers((tangent,))
        return builder.atom(engine.core.convert(x, aval.dtype, aval.weak_type))
