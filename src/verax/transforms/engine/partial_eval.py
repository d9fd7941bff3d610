"""Floor 3: splitting a program in what is known now and what waits.

One idea: an equation whose operands are known is written in the first program, another
one in the second, which gets what it needs of the first as residuals; a row that holds
a program may be written in both::

    known:  known inputs -> known outputs, residuals
    later:  residuals, unknown inputs -> unknown outputs
"""

from collections.abc import Iterable, Sequence
from functools import partial
from itertools import compress

from verax.ir.jaxpr import NO_PARAMS, Atom, Eqn, Jaxpr, Literal, Var
from verax.ir.walk import interpret, read
from verax.rules.rows.builder import Builder, Tracer, renumber
from verax.rules.rows.infer import Mask, chosen
from verax.rules.rows.row import Engine, Known, Linear
from verax.rules.values.state import interpreting

type Marked = tuple[bool, Atom]
"""An atom of one of the two programs: of the second one, if it is marked."""


class Residuals:
    """The inputs of a later program that stand for atoms of an earlier one."""

    def __init__(self, later: Builder) -> None:
        self.later = later
        self.table: dict[Atom, Atom] = {}

    def of(self, atom: Atom) -> Atom:
        """The later stand-in for `atom`: literals stand for themselves."""
        if type(atom) is not Var:
            return atom
        entry = self.table.get(atom)
        if entry is None:
            entry = self.table[atom] = self.later.input_atom(atom.aval)
        return entry

    def close(self, outvars: Sequence[Atom], own: Sequence[Atom]) -> Jaxpr:
        """The later program: residuals first, then its `own` inputs."""
        jaxpr, _ = self.later.close(outvars)
        order = [*self.table.values(), *own]
        return renumber(jaxpr, [v for v in order if isinstance(v, Var)])


def split(engine: Engine, jaxpr: Jaxpr, unknown: Mask) -> tuple[Jaxpr, Jaxpr, Mask]:
    """Partial evaluation: the program of the known inputs, and the rest of it.

    Contract: the first jaxpr maps the known inputs to the known outputs, then
    residuals; the second maps residuals, then the unknown inputs, to the unknown
    outputs; the mask tells which outputs are unknown. Running both is running `jaxpr`.
    """
    known, later = Builder("split"), Builder("split")
    residuals = Residuals(later)
    inputs: list[Marked] = [
        (flag, (later if flag else known).input_atom(aval))
        for aval, flag in zip(jaxpr.in_avals, unknown, strict=True)
    ]
    own = [atom for flag, atom in inputs if flag]
    write = partial(split_eqn, engine, known, residuals)
    outs = interpret(jaxpr, inputs, write, known_literal)
    second = residuals.close([a for flag, a in outs if flag], own)
    first, _ = known.close(
        [*[a for flag, a in outs if not flag], *residuals.table.keys()]
    )
    return first, second, tuple(flag for flag, _ in outs)


def known_literal(literal: Literal) -> Marked:
    return False, literal


def split_eqn(
    engine: Engine,
    known: Builder,
    residuals: Residuals,
    eqn: Eqn,
    ins: Sequence[Marked],
) -> list[Marked]:
    """Write one equation in the program where it belongs, or in both."""
    if not any(flag for flag, _ in ins):
        return [(False, a) for a in known.copy(eqn, [a for _, a in ins])]
    row = engine.rules[eqn.primitive]
    if row.split is None:
        operands = [a if flag else residuals.of(a) for flag, a in ins]
        return [(True, a) for a in residuals.later.copy(eqn, operands)]
    args: list[Known] = [
        Linear(a.aval) if flag else Tracer(known, a) for flag, a in ins
    ]
    with interpreting(known):
        parts = row.split(engine, eqn.params, args)
    later = residuals.later
    saved = later.tracers([residuals.of(known.atom(r)) for r in parts.residuals])
    waiting = later.tracers([a for flag, a in ins if flag])
    with interpreting(later):
        finished = iter(parts.finish(saved, waiting))
    return [
        (True, later.atom(next(finished))) if x is None else (False, known.atom(x))
        for x in parts.known
    ]


# -----------------------------------------------------------------------------
# Dead-code elimination: what no output and no effect needs goes.
#
# Mark backwards, write forwards::
#
#     { lambda ; a. let b = sin a; c = cos a in (c,) }
#     { lambda ; a. let b = cos a in (b,) }


def dce(
    engine: Engine, jaxpr: Jaxpr, used: Mask, *, keep: int | None = None
) -> tuple[Jaxpr, Mask]:
    """The program of the outputs that `used` marks, and which inputs it still has.

    Contract: values of those outputs and all effects are kept. The last `keep` inputs
    stay even if nothing uses them; `None` keeps only what is used.
    """
    ends = compress(jaxpr.outvars, used)
    kept, expected = live(engine, jaxpr.eqns, ends, variables(jaxpr))
    count = len(jaxpr.invars)
    first_kept = count if keep is None else count - keep
    needed = tuple([flag or i >= first_kept for i, flag in enumerate(expected[:count])])
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
    """The number of variables the jaxpr defines."""
    return len(jaxpr.invars) + sum([len(eqn.outvars) for eqn in jaxpr.eqns])


def live(
    engine: Engine, eqns: Sequence[Eqn], ends: Iterable[Atom], size: int
) -> tuple[list[Eqn | None], list[bool]]:
    """The part of a program that `dce` keeps, without writing it again.

    For each equation itself, a slimmer one or None, and for each of `size` variables,
    inputs first, whether something reads it or it is one of `ends`.
    """
    expected = [False] * size
    for atom in ends:
        if type(atom) is Var:
            expected[atom.index] = True
    kept: list[Eqn | None] = []
    for eqn in reversed(eqns):
        plain = eqn.params is NO_PARAMS
        if plain and len(eqn.outvars) == 1:
            slim = eqn if expected[eqn.outvars[0].index] else None
        else:
            outs = [expected[v.index] for v in eqn.outvars]
            needed = any(outs) or (not plain and bool(eqn.effects))
            slim = slimmed(engine, eqn, tuple(outs)) if needed else None
        if slim is not None:
            for atom in slim.invars:
                if type(atom) is Var:
                    expected[atom.index] = True
        kept.append(slim)
    return kept[::-1], expected


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
