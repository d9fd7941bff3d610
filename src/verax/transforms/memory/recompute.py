"""Floor 3: a program whose later part computes again what was not kept.

One idea: right before an equation that reads a value that was dropped, the equations
that make it are written again, from values that are kept. What they read comes from a
barrier together with a value that was computed last, so that a compiler neither takes
the old value nor computes the new one early. What comes out of the barrier is read, or
a compiler would leave it out::

    { lambda ; a. let b = sin a; c = exp b; d = mul c 2.0;
        e f = optimization_barrier a d; g = sin e; h = mul d g in (h,) }
"""

from collections.abc import Collection, Sequence

from verax.ir.jaxpr import Atom, Eqn, Jaxpr, Source, Var
from verax.ops.calls.checkpoint import BARRIER, optimization_barrier_p
from verax.rules.rows.builder import Builder
from verax.rules.values.state import interpreting


def recomputed(jaxpr: Jaxpr, place: int, kept: Collection[Var]) -> Jaxpr:
    """The flat program that keeps only some values across an equation's place.

    Inputs and outputs stay anyway. Effects come once, for `kept` holds what they give.
    """
    return Rewriter(jaxpr, place, kept).written()


class Rewriter:
    """Writes the program; `early` and `fresh` say where values are in the new one."""

    def __init__(self, jaxpr: Jaxpr, place: int, kept: Collection[Var]) -> None:
        self.jaxpr, self.place = jaxpr, place
        before = jaxpr.eqns[:place]
        outs = [a for a in jaxpr.outvars if isinstance(a, Var)]
        self.free = {*jaxpr.invars, *outs}
        self.stands = set(kept)
        self.maker = {v: eqn for eqn in before for v in eqn.outvars}
        self.order = {id(eqn): i for i, eqn in enumerate(before)}
        self.builder = Builder("recomputed")
        inputs = self.builder.input_atoms(jaxpr.in_avals)
        self.early: dict[Var, Atom] = dict(zip(jaxpr.invars, inputs, strict=True))
        self.fresh: dict[Var, Atom] = {}
        self.depth: dict[Atom, int] = {}
        self.late: set[Var] = set()
        self.here = place
        self.last = {
            a: i
            for i, eqn in enumerate(jaxpr.eqns)
            for a in eqn.invars
            if isinstance(a, Var)
        }

    def written(self) -> Jaxpr:
        """The whole program."""
        jaxpr, place = self.jaxpr, self.place
        for eqn in jaxpr.eqns[:place]:
            self.copy(eqn, [self.early_atom(a) for a in eqn.invars])
        for i, eqn in enumerate(jaxpr.eqns[place:], place):
            self.here = i
            self.make([a for a in eqn.invars if isinstance(a, Var)])
            self.copy(eqn, [self.late_atom(a) for a in eqn.invars])
            self.late.update([v for v in eqn.outvars if v not in self.free])
            self.late = {v for v in self.late if self.last.get(v, -1) > i}
        outs = [self.early_atom(a) for a in jaxpr.outvars]
        return self.builder.close(outs)[0]

    def copy(self, eqn: Eqn, operands: Sequence[Atom]) -> Sequence[Atom]:
        outs = self.builder.copy(eqn, operands)
        self.early.update(zip(eqn.outvars, outs, strict=True))
        self.measure(operands, outs)
        return outs

    def measure(self, operands: Sequence[Atom], outs: Sequence[Atom]) -> None:
        """Note how many equations come before some in any order of the program."""
        depth = 1 + max([self.depth.get(a, 0) for a in operands], default=0)
        self.depth.update(dict.fromkeys(outs, depth))

    def pace(self) -> Var | None:
        """The value, among those still read, that comes last in any order."""
        alive = [v for v in self.late if isinstance(self.early[v], Var)]
        return max(
            alive, key=lambda v: (self.depth[self.early[v]], v.index), default=None
        )

    def early_atom(self, atom: Atom) -> Atom:
        return self.early[atom] if isinstance(atom, Var) else atom

    def late_atom(self, atom: Atom) -> Atom:
        """The value computed again, if it was."""
        if not isinstance(atom, Var):
            return atom
        return self.fresh.get(atom) or self.early[atom]

    def make(self, needed: Sequence[Var]) -> None:
        """Write what values need that are read late for the first time."""
        missing = [v for v in needed if v not in self.fresh and self.is_early(v)]
        eqns: dict[int, Eqn] = {}
        leaves: dict[Var, None] = {}
        while missing:
            v = missing.pop()
            if v in self.stands:
                leaves[v] = None
                continue
            eqn = self.maker[v]
            if id(eqn) in eqns:
                continue
            eqns[id(eqn)] = eqn
            for a in eqn.invars:
                if isinstance(a, Var):
                    if a in self.free or a in self.fresh:
                        leaves[a] = None
                    else:
                        missing.append(a)
        if leaves:
            self.write(sorted(eqns.values(), key=lambda e: self.order[id(e)]), leaves)

    def is_early(self, v: Var) -> bool:
        """Whether a value is made before the place and does not stay anyway."""
        return v in self.maker and v not in self.free

    def write(self, eqns: Sequence[Eqn], leaves: Collection[Var]) -> None:
        """Write equations again, from leaves behind a barrier."""
        pace = self.pace()
        if pace is None and not eqns:
            return
        leaves = [*leaves] if pace is None else [*leaves, pace]
        atoms = [self.late_atom(v) for v in leaves]
        source = eqns[0].source if eqns else self.jaxpr.eqns[self.here].source
        behind = dict(zip(leaves, self.barrier(atoms, source), strict=True))
        if pace is not None:
            self.early[pace] = behind.pop(pace)
        kept = {v: atom for v, atom in behind.items() if v not in self.free}
        self.fresh.update(kept)
        for eqn in eqns:
            ins = [
                (behind.get(a) or self.late_atom(a)) if isinstance(a, Var) else a
                for a in eqn.invars
            ]
            outs = self.builder.copy(eqn, ins)
            self.measure(ins, outs)
            self.fresh.update(zip(eqn.outvars, outs, strict=True))

    def barrier(self, atoms: Sequence[Atom], source: Source) -> Sequence[Atom]:
        """The same values, which a compiler takes for others, on a line."""
        if not atoms:
            return ()
        self.builder.source = source
        with interpreting(self.builder):
            outs = optimization_barrier_p.bind(BARRIER, *self.builder.tracers(atoms))
        self.builder.source = None
        result = [self.builder.atom(x) for x in outs]
        self.measure(atoms, result)
        return result
