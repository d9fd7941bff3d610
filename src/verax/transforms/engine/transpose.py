"""Floor 3: transposition: a program that is linear in some inputs, run backwards.

One idea: the cotangents of a variable add up over its uses, so walk the equations in
reverse and hand each what its results have gathered::

    { lambda ; a t. let b = mul t a in (b,) }     linear in t
    { lambda ; a c. let d = mul c a in (d,) }
"""

from collections.abc import Sequence

from verax.ir.avals import ShapedArray
from verax.ir.effects import SHOWN
from verax.ir.jaxpr import (
    NO_PARAMS,
    Atom,
    Eqn,
    Jaxpr,
    Source,
    Var,
)
from verax.ir.walk import read
from verax.rules.rows.builder import Builder
from verax.rules.rows.masks import Mask
from verax.rules.rows.row import Engine, MissingRule
from verax.rules.values.memo import Unshared
from verax.rules.values.state import Context, current_context
from verax.rules.values.typed import NotAnArray, NotLinear
from verax.transforms.engine.templates import (
    added,
    coerce,
    located,
    transpose_template,
    types,
)


def transpose(
    engine: Engine, jaxpr: Jaxpr, linear: Mask, nonzero: Mask
) -> tuple[Jaxpr, Mask]:
    """The program that pulls cotangents back.

    Contract: `linear` marks the inputs in which `jaxpr` is linear, `nonzero` the
    outputs whose cotangent is given. Inputs are the others of `jaxpr`, then those
    cotangents; outputs are the cotangents of the linear inputs that the returned mask
    marks, in the types of their inputs' cotangents. The other ones are zero.

    Raises:
        MissingRule: an equation on a linear operand has no transpose rule.
    """
    builder = Builder("transpose")
    ins = builder.input_atoms(backward_types(jaxpr, linear, nonzero))
    live, mask = transpose_into(engine, builder, jaxpr, linear, nonzero, ins)
    return builder.close(live)[0], mask


def backward_types(jaxpr: Jaxpr, linear: Mask, nonzero: Mask) -> list[ShapedArray]:
    """The types of the inputs of the transposed program."""
    known = zip(jaxpr.invars, linear, strict=True)
    given = zip(jaxpr.outvars, nonzero, strict=True)
    return [
        *[v.aval for v, flag in known if not flag],
        *[a.aval.cotangent() for a, flag in given if flag],
    ]


def transpose_into(
    engine: Engine,
    builder: Builder,
    jaxpr: Jaxpr,
    linear: Mask,
    nonzero: Mask,
    ins: Sequence[Atom],
) -> tuple[list[Atom], Mask]:
    """`transpose`, written into `builder` on atoms of the types `backward_types`."""
    given = iter(ins)
    env: list[Atom | None] = [None if flag else next(given) for flag in linear]
    cts = [next(given) if flag else None for flag in nonzero]
    gathered = backwards(engine, builder, jaxpr, env, cts)
    results = [
        (gathered[v.index], v)
        for v, flag in zip(jaxpr.invars, linear, strict=True)
        if flag
    ]
    live = [
        coerce(engine, builder, ct, v.aval.cotangent())
        for ct, v in results
        if ct is not None
    ]
    return live, tuple(ct is not None for ct, _ in results)


def backwards(
    engine: Engine,
    builder: Builder,
    jaxpr: Jaxpr,
    env: list[Atom | None],
    cts: Sequence[Atom | None],
) -> Sequence[Atom | None]:
    """The cotangent of each variable, as far as it has one, from those of the outputs.

    `env` has the inputs in which `jaxpr` is not linear, and None for the others. Where
    no output has a cotangent, all are zeros that were pulled back to it.
    """
    backward = [eqn for eqn in jaxpr.eqns if not write_known(builder, eqn, env)]
    gathered: list[Atom | None] = [None] * len(env)
    for atom, ct in zip(jaxpr.outvars, cts, strict=True):
        gather(engine, builder, gathered, atom, ct, env)
    context = current_context()
    zeros: set[int] = set()
    if not any([ct is not None for ct in cts]):
        zeros = {atom.index for atom in jaxpr.outvars if type(atom) is Var}
    for eqn in reversed(backward):
        transpose_eqn(context, engine, builder, eqn, env, gathered, zeros)
    return gathered


def write_known(builder: Builder, eqn: Eqn, env: list[Atom | None]) -> bool:
    """Write an equation that has no linear operand; say whether it was one."""
    ins = read(eqn.invars, env)
    known = [a for a in ins if a is not None]
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
    source: Source | None = None,
) -> None:
    """Add a cotangent to what the variable has so far; `source` is that of the sum."""
    if ct is None or type(atom) is not Var or env[atom.index] is not None:
        return
    gathered[atom.index] = added(engine, builder, gathered[atom.index], ct, source)


def refuse_effects(eqn: Eqn) -> None:
    """Raise if leaving `eqn` out loses more than a look at values never computed."""
    if eqn.params is not NO_PARAMS and not SHOWN.issuperset(eqn.effects):
        raise MissingRule(
            f"{eqn.primitive.name} has effects and depends on linear inputs, whose "
            f"values reverse mode does not compute; met at {eqn.source}"
        )


def is_asked(eqn: Eqn, zeros: set[int]) -> bool:
    """Whether an equation without cotangents is pulled back all the same.

    One that is not hands the zeros that it was given to its operands.
    """
    if not zeros or zeros.isdisjoint([v.index for v in eqn.outvars]):
        return False
    if not eqn.params.answers_zeros:
        zeros.update([a.index for a in eqn.invars if type(a) is Var])
    return eqn.params.answers_zeros


def transpose_eqn(
    context: Context,
    engine: Engine,
    builder: Builder,
    eqn: Eqn,
    env: list[Atom | None],
    gathered: list[Atom | None],
    zeros: set[int],
) -> None:
    """Pull the cotangents of one equation back to its linear operands.

    `zeros` are the variables that an equation which had cotangents gave none.
    """
    invars, outvars = eqn.invars, eqn.outvars
    cts = [gathered[v.index] for v in outvars]
    live = [ct for ct in cts if ct is not None]
    if not live:
        refuse_effects(eqn)
        if not is_asked(eqn, zeros):
            return
    ins = read(invars, env)
    others = [a for a in ins if a is not None]
    linear = tuple([a is None for a in ins])
    if len(live) == len(cts):
        nonzero, out_types = (True,) * len(live), types(live)
    else:
        nonzero = tuple([ct is not None for ct in cts])
        out_types = tuple(
            [
                v.aval.cotangent() if ct is None else ct.aval
                for v, ct in zip(outvars, cts, strict=True)
            ]
        )
    primitive, params, avals = eqn.primitive, eqn.params, types(invars)
    try:
        template, mask = transpose_template(
            context, engine, primitive, params, avals, linear, nonzero, out_types
        )
    except Unshared as kept:
        template, mask = kept.result
    except MissingRule as error:
        raise located(error, eqn) from error
    except (NotAnArray, NotLinear) as error:
        # The rule asked a linear operand for its value.
        raise MissingRule(
            f"{eqn.primitive.name} is not linear in the operands that depend on the "
            f"inputs, at {eqn.source}; only a linear function has a transpose"
        ) from error
    source = eqn.source.derived("transpose")
    found = iter(builder.inline(template, [*others, *live], source))
    operands = [a for a, flag in zip(invars, linear, strict=True) if flag]
    for atom, flag in zip(operands, mask, strict=True):
        if flag:
            # The sums of cotangents come from this equation, too.
            gather(engine, builder, gathered, atom, next(found), env, source)
        elif type(atom) is Var:
            zeros.add(atom.index)
