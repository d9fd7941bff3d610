"""Floor 3: forward-mode differentiation of a jaxpr.

One idea: beside every variable stands its tangent, or nothing where it is zero::

    { lambda ; a. let b = sin a in (b,) }
    { lambda ; a t. let b = sin a; c = cos a; d = mul t c in (b, d) }
"""

from collections.abc import Sequence

from verax.ir.avals import ShapedArray
from verax.ir.jaxpr import Eqn, Jaxpr, Literal
from verax.ir.walk import beside, read
from verax.rules.rows.builder import Builder
from verax.rules.rows.masks import Mask
from verax.rules.rows.row import Engine, MissingRule
from verax.rules.values.memo import Unshared
from verax.rules.values.state import Context, current_context
from verax.transforms.engine.templates import (
    Writer,
    Written,
    coerce,
    jvp_template,
    located,
    types,
)


def jvp(engine: Engine, jaxpr: Jaxpr, nonzero: Mask) -> tuple[Jaxpr, Mask]:
    """The program that pushes tangents forward.

    Contract: inputs are those of `jaxpr`, then a tangent for each input that `nonzero`
    marks; outputs are those of `jaxpr`, then a tangent for each output that the
    returned mask marks. The tangents of the others are zero. Values and effects of
    the primal program are kept.
    """
    builder = Builder("jvp")
    ins = builder.input_atoms(pushed_types(jaxpr, nonzero))
    pushed = jvp_into(engine, builder, jaxpr, nonzero, ins)
    return builder.close(pushed[0])[0], pushed[1]


def pushed_types(jaxpr: Jaxpr, nonzero: tuple[bool, ...]) -> list[ShapedArray]:
    """The types of the inputs of the program that pushes tangents forward."""
    active = zip(jaxpr.invars, nonzero, strict=True)
    return [*jaxpr.in_avals, *[v.aval.tangent() for v, flag in active if flag]]


def jvp_into[V: Written](
    engine: Engine,
    writer: Writer[V],
    jaxpr: Jaxpr,
    nonzero: tuple[bool, ...],
    ins: Sequence[V],
) -> tuple[list[V | Literal], tuple[bool, ...]]:
    """`jvp`, written, or run, by `writer` on what has the types `pushed_types`."""
    count = len(jaxpr.invars)
    context = current_context()
    primals, given = list(ins[:count]), iter(ins[count:])
    tangents: list[V | None] = [next(given) if active else None for active in nonzero]
    for eqn in jaxpr.eqns:
        jvp_eqn(context, engine, writer, eqn, primals, tangents)
    pushed = beside(jaxpr.outvars, tangents)
    live = [
        coerce(engine, writer, t, a.aval.tangent())
        for t, a in zip(pushed, jaxpr.outvars, strict=True)
        if t is not None
    ]
    outs = [*read(jaxpr.outvars, primals), *live]
    return outs, tuple([t is not None for t in pushed])


def jvp_eqn[V: Written](
    context: Context,
    engine: Engine,
    writer: Writer[V],
    eqn: Eqn,
    primals: list[V],
    tangents: list[V | None],
) -> None:
    """Write one equation and its tangent, if any operand has one."""
    ins = read(eqn.invars, primals)
    ts = beside(eqn.invars, tangents)
    live = [t for t in ts if t is not None]
    if not live:
        primals += writer.copy(eqn, ins)
        tangents += [None] * len(eqn.outvars)
        return
    mask = tuple([t is not None for t in ts])
    primitive, params, avals = eqn.primitive, eqn.params, types(eqn.invars)
    try:
        template, out_mask = jvp_template(
            context, engine, primitive, params, avals, mask
        )
    except Unshared as kept:
        template, out_mask = kept.result
    except MissingRule as error:
        raise located(error, eqn) from error
    outs = writer.inline(template, [*ins, *live], eqn.source.derived("jvp"))
    count = len(eqn.outvars)
    primals += outs[:count]
    rest = iter(outs[count:])
    tangents += [next(rest) if flag else None for flag in out_mask]
