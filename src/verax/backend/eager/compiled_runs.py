"""Floor 4: equations of a program as the compiler runs them, with all their values.

One idea: what lies between two loops is one compiled program, whose outputs are the
results of all its equations; loops go step by step, as `transforms.comparing` has it::

    Compiled(engine, "f").run(jaxpr, 0, values)
"""

from collections.abc import Sequence

import numpy as np
from attrs import field, frozen

from verax.backend.eager.interpreter import host_of
from verax.backend.eager.single_op import OPTIONS
from verax.backend.programs.program import compiled
from verax.ir.jaxpr import UNKNOWN_SOURCE, Eqn, Jaxpr, Var
from verax.rules.rows.builder import Builder
from verax.rules.rows.row import Engine
from verax.transforms.comparing.alignment import is_open
from verax.transforms.comparing.running import Runner

type Part = tuple[Jaxpr, Jaxpr | None, list[Var], list[int]]
"""The program, that of some of its equations, what it reads, and how many results each
of them has."""


@frozen(eq=False, repr=False)
class Compiled(Runner):
    """Runs equations in compiled programs of as many as there are without a loop.

    An equation that does something is not compiled: what it does happens once.
    """

    name: str
    parts: dict[tuple[int, int], Part] = field(factory=dict)

    def run(
        self, jaxpr: Jaxpr, number: int, env: Sequence[np.ndarray]
    ) -> list[list[np.ndarray]]:
        key = (id(jaxpr), number)
        if key not in self.parts:
            self.parts[key] = part_of(jaxpr, number)
        _, part, reads, counts = self.parts[key]
        if part is None:
            return super().run(jaxpr, number, env)
        values = [env[v.index] for v in reads]
        outs = iter(whole_program(self.engine, part, self.name, values))
        return [[next(outs) for _ in range(count)] for count in counts]


def whole_program(
    engine: Engine, jaxpr: Jaxpr, name: str, values: Sequence[np.ndarray]
) -> list[np.ndarray]:
    """The outputs of a compiled program."""
    outs = compiled(engine, jaxpr, name, OPTIONS).run(values)
    return [host_of(x) for x in outs]


def part_of(jaxpr: Jaxpr, number: int) -> Part:
    """The equations from `number` on up to the next loop, as a program."""
    eqns: list[Eqn] = []
    for eqn in jaxpr.eqns[number:]:
        if is_open(eqn) or eqn.effects:
            break
        eqns.append(eqn)
    counts = [len(eqn.outvars) for eqn in eqns]
    if not sum(counts):
        return jaxpr, None, [], []
    made = {v.index for eqn in eqns for v in eqn.outvars}
    given = {a.index: a for eqn in eqns for a in eqn.invars if isinstance(a, Var)}
    reads = [v for index, v in given.items() if index not in made]
    builder = Builder("compare", source=UNKNOWN_SOURCE)
    inputs = builder.input_atoms([v.aval for v in reads])
    atoms = {v.index: a for v, a in zip(reads, inputs, strict=True)}
    outs: list[Var] = []
    for eqn in eqns:
        ins = [atoms[a.index] if isinstance(a, Var) else a for a in eqn.invars]
        results = builder.copy(eqn, ins)
        atoms |= {v.index: new for v, new in zip(eqn.outvars, results, strict=True)}
        outs += results
    return jaxpr, builder.close(outs)[0], reads, counts
