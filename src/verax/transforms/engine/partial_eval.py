"""Floor 3: splitting a program in what is known now and what waits.

One idea: an equation whose operands are known is written in the first program, another
one in the second, which gets what it needs of the first as residuals; a row that holds
a program may be written in both::

    known:  known inputs -> known outputs, residuals
    later:  residuals, unknown inputs -> unknown outputs
"""

from collections.abc import Sequence
from functools import partial

from verax.ir.jaxpr import Atom, Eqn, Jaxpr, Literal, Var
from verax.ir.walk import interpret
from verax.rules.rows.builder import Builder, Tracer, renumber
from verax.rules.rows.infer import Mask
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
        """What stands for `atom` later: literals stand for themselves."""
        if type(atom) is not Var:
            return atom
        found = self.table.get(atom)
        if found is None:
            found = self.table[atom] = self.later.input_atom(atom.aval)
        return found

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
