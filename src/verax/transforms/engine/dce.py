"""Floor 3: dead-code elimination: what no output and no effect needs goes.

One idea: mark backwards, write forwards::

    { lambda ; a. let b = sin a; c = cos a in (c,) }
    { lambda ; a. let b = cos a in (b,) }
"""

from collections.abc import Iterable, Sequence
from itertools import compress

from verax.ir.jaxpr import NO_PARAMS, Atom, Eqn, Jaxpr, Var
from verax.ir.walk import read
from verax.rules.rows.builder import Builder
from verax.rules.rows.infer import Mask, chosen
from verax.rules.rows.row import Engine


def dce(
    engine: Engine, jaxpr: Jaxpr, used: Mask, *, keep: int | None = None
) -> tuple[Jaxpr, Mask]:
    """The program of the outputs that `used` marks, and which inputs it still has.

    Contract: values of those outputs and all effects are kept. The last `keep` inputs
    stay even if nothing uses them; `None` keeps only what is used.
    """
    ends = compress(jaxpr.outvars, used)
    kept, wanted = live(engine, jaxpr.eqns, ends, variables(jaxpr))
    count = len(jaxpr.invars)
    first_kept = count if keep is None else count - keep
    needed = tuple([flag or i >= first_kept for i, flag in enumerate(wanted[:count])])
    if all(needed) and all(used) and None not in kept and unchanged(jaxpr, kept):
        return jaxpr, needed
    builder = Builder("dce")
    env: list[Atom | None] = [
        builder.input_atom(v.aval) if flag else None
        for v, flag in zip(jaxpr.invars, needed, strict=True)
    ]
    for eqn, slim in zip(jaxpr.eqns, kept, strict=True):
        write(builder, eqn, slim, env)
    outs = read(chosen(used, jaxpr.outvars), env)
    return builder.close([a for a in outs if a is not None])[0], needed


def unchanged(jaxpr: Jaxpr, kept: list[Eqn | None]) -> bool:
    """Whether every equation stays as it is."""
    return all([a is b for a, b in zip(jaxpr.eqns, kept, strict=True)])


def variables(jaxpr: Jaxpr) -> int:
    """How many variables the jaxpr defines."""
    return len(jaxpr.invars) + sum([len(eqn.outvars) for eqn in jaxpr.eqns])


def live(
    engine: Engine, eqns: Sequence[Eqn], ends: Iterable[Atom], size: int
) -> tuple[list[Eqn | None], list[bool]]:
    """What `dce` keeps, without writing it again.

    For each equation itself, a slimmer one or None, and for each of `size` variables,
    inputs first, whether something reads it or it is one of `ends`.
    """
    wanted = [False] * size
    for atom in ends:
        if type(atom) is Var:
            wanted[atom.index] = True
    kept: list[Eqn | None] = []
    for eqn in reversed(eqns):
        plain = eqn.params is NO_PARAMS
        if plain and len(eqn.outvars) == 1:
            slim = eqn if wanted[eqn.outvars[0].index] else None
        else:
            outs = [wanted[v.index] for v in eqn.outvars]
            needed = any(outs) or (not plain and bool(eqn.effects))
            slim = slimmed(engine, eqn, tuple(outs)) if needed else None
        if slim is not None:
            for atom in slim.invars:
                if type(atom) is Var:
                    wanted[atom.index] = True
        kept.append(slim)
    return kept[::-1], wanted


def slimmed(engine: Engine, eqn: Eqn, used: Mask) -> Eqn:
    """The equation with only what `used` results need, where its row can say."""
    rule = engine.rules[eqn.primitive].dce
    if rule is None or all(used):
        return eqn
    params, needed, outs = rule(engine, eqn.params, used)
    ins = tuple(chosen(needed, eqn.invars))
    results = tuple(chosen(outs, eqn.outvars))
    return Eqn(eqn.primitive, params, ins, results, eqn.source)


def write(builder: Builder, eqn: Eqn, slim: Eqn | None, env: list[Atom | None]) -> None:
    """Write a kept equation; the environment gets None for results that are gone."""
    if slim is None:
        env += [None] * len(eqn.outvars)
        return
    outs = builder.copy(slim, read(slim.invars, env))  # type: ignore[arg-type]  # what is read is kept
    if len(outs) == len(eqn.outvars):
        env += outs
        return
    atoms = dict(zip(slim.outvars, outs, strict=True))
    env += [atoms.get(v) for v in eqn.outvars]
