"""Floor 3: transposition: a program that is linear in some inputs, run backwards.

One idea: the cotangents of a variable add up over its uses, so walk the equations in
reverse and hand each what its results have gathered::

    { lambda ; a t. let b = mul t a in (b,) }     linear in t
    { lambda ; a c. let d = mul c a in (d,) }
"""

from verax.ir.effects import DEBUG, ORDERED_DEBUG
from verax.ir.jaxpr import NO_PARAMS, Atom, Eqn, Jaxpr, Literal, Var
from verax.rules.builder import Builder
from verax.rules.row import Engine, MissingRule
from verax.rules.state import interpreting
from verax.rules.typed import NotAnArray, NotLinear
from verax.transforms.jvp import coerce
from verax.transforms.templates import Mask, located, transpose_template, types

SHOWN = frozenset((DEBUG, ORDERED_DEBUG))


def transpose(
    engine: Engine, jaxpr: Jaxpr, linear: Mask, nonzero: Mask
) -> tuple[Jaxpr, Mask]:
    """The program that pulls cotangents back.

    Contract: `linear` marks the inputs in which `jaxpr` is linear, `nonzero` the
    outputs whose cotangent is given. Inputs are the others of `jaxpr`, then those
    cotangents; outputs are the cotangents of the linear inputs that the returned mask
    marks, in the types of their inputs' tangents. The other ones are zero.

    Raises:
        MissingRule: an equation on a linear operand has no transpose rule.
    """
    builder = Builder("transpose")
    env: list[Atom | None] = [
        None if flag else builder.input(v.aval).atom
        for v, flag in zip(jaxpr.invars, linear, strict=True)
    ]
    cts = [
        builder.input(a.aval.tangent()).atom if flag else None
        for a, flag in zip(jaxpr.outvars, nonzero, strict=True)
    ]
    backward = [eqn for eqn in jaxpr.eqns if not write_known(builder, eqn, env)]
    gathered: list[Atom | None] = [None] * len(env)
    for atom, ct in zip(jaxpr.outvars, cts, strict=True):
        gather(engine, builder, gathered, atom, ct, env)
    for eqn in reversed(backward):
        transpose_eqn(engine, builder, eqn, env, gathered)
    results = [
        (gathered[v.index], v)
        for v, flag in zip(jaxpr.invars, linear, strict=True)
        if flag
    ]
    live = [
        coerce(engine, builder, ct, v.aval.tangent())
        for ct, v in results
        if ct is not None
    ]
    return builder.close(live)[0], tuple(ct is not None for ct, _ in results)


def write_known(builder: Builder, eqn: Eqn, env: list[Atom | None]) -> bool:
    """Write an equation that has no linear operand; say whether it was one."""
    ins = [env[a.index] if type(a) is Var else a for a in eqn.invars]
    known = tuple([a for a in ins if a is not None])
    if len(known) < len(ins):
        env += [None] * len(eqn.outvars)
        return False
    env += builder.copy(eqn, known)
    return True


def gather(
    engine: Engine,
    builder: Builder,
    gathered: list[Atom | None],
    atom: Atom,
    ct: Atom | None,
    env: list[Atom | None],
) -> None:
    """Add a cotangent to what the variable has so far."""
    if ct is None or isinstance(atom, Literal) or env[atom.index] is not None:
        return
    before = gathered[atom.index]
    if before is not None:
        with interpreting(builder):
            x, y = builder.tracers((before, ct))
            ct = builder.atom(engine.core.add(x, y))
    gathered[atom.index] = ct


def refuse_effects(eqn: Eqn) -> None:
    """Raise if leaving `eqn` out loses more than a look at values never computed."""
    if eqn.params is not NO_PARAMS and not SHOWN.issuperset(eqn.effects):
        raise MissingRule(
            f"{eqn.primitive.name} has effects and works on values in which the "
            "program is linear, which reverse mode does not compute; met at "
            f"{eqn.source}"
        )


def transpose_eqn(
    engine: Engine,
    builder: Builder,
    eqn: Eqn,
    env: list[Atom | None],
    gathered: list[Atom | None],
) -> None:
    """Pull the cotangents of one equation back to its linear operands."""
    cts = [gathered[v.index] for v in eqn.outvars]
    live = [ct for ct in cts if ct is not None]
    if not live:
        refuse_effects(eqn)
        return
    ins = [env[a.index] if type(a) is Var else a for a in eqn.invars]
    linear = tuple([a is None for a in ins])
    out_types = tuple(
        [
            v.aval.tangent() if ct is None else ct.aval
            for v, ct in zip(eqn.outvars, cts, strict=True)
        ]
    )
    try:
        template, mask = transpose_template(
            engine,
            eqn.primitive,
            eqn.params,
            types(eqn.invars),
            linear,
            tuple([ct is not None for ct in cts]),
            out_types,
        )
    except MissingRule as error:
        raise located(error, eqn) from error
    except (NotAnArray, NotLinear) as error:
        # The rule asked a linear operand for its value.
        raise MissingRule(
            f"{eqn.primitive.name} is not linear in the operands that depend on the "
            f"inputs, at {eqn.source}; only a linear function has a transpose"
        ) from error
    others = [a for a in ins if a is not None]
    # The sums of cotangents, which `gather` writes, come from this equation too.
    source = builder.source = eqn.source.derived("transpose")
    found = iter(builder.inline(template, [*others, *live], source=source))
    flags = iter(mask)
    for atom, flag in zip(eqn.invars, linear, strict=True):
        if flag and next(flags):
            gather(engine, builder, gathered, atom, next(found), env)
