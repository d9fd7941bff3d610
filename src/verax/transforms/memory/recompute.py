"""Floor 3: a program whose later part computes again what was not kept.

One idea: right before an equation that reads a value that was dropped, the equations
that make it are written again, from values that are kept. What they read comes from a
barrier together with a value that was computed last, so that a compiler neither takes
the old value nor computes the new one early. What comes out of the barrier is read, or
a compiler would leave it out::

    { lambda ; a. let b = sin a; c = exp b; d = mul c 2.0;
        e f = optimization_barrier a d; g = sin e; h = mul d g in (h,) }
"""

from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType

from verax.ir.jaxpr import Atom, Eqn, Jaxpr, Source, Var
from verax.ops.calls.checkpoint import BARRIER, optimization_barrier_p
from verax.ops.structure.reshard import DEVICE, in_memory
from verax.rules.rows.builder import Builder
from verax.rules.values.state import interpreting
from verax.transforms.memory.storage import apart, stored_values


def recomputed(
    jaxpr: Jaxpr,
    place: int,
    kept: Collection[Var],
    away: Mapping[Var, str] = MappingProxyType({}),
    stored: Collection[Var] | None = None,
) -> Jaxpr:
    """The flat program that keeps only some values across an equation's place.

    Inputs and outputs stay anyway. Effects come once, for `kept` holds what they give.
    Of those that are kept, `away` wait in a memory of that kind. `stored` are the
    values that have memory, if the caller knows them.
    """
    known = stored_values(jaxpr) if stored is None else stored
    return Rewriter(jaxpr, place, kept, away, known).written()


class Rewriter:
    """Writes the program.

    Where values are in the new one: `early`, as they were computed first; `made`, if
    they were computed again; `fresh`, as they are read late, from a barrier or of what
    came from one; `hosted`, as they wait on the host.
    """

    def __init__(
        self,
        jaxpr: Jaxpr,
        place: int,
        kept: Collection[Var],
        away: Mapping[Var, str],
        stored: Collection[Var],
    ) -> None:
        self.jaxpr, self.place = jaxpr, place
        before = jaxpr.eqns[:place]
        self.free = apart(jaxpr)
        self.away = away
        self.hosted: dict[Var, Atom] = {}
        self.stands = set(kept)
        self.maker = {v: eqn for eqn in before for v in eqn.outvars}
        self.order = {id(eqn): i for i, eqn in enumerate(before)}
        self.builder = Builder("recomputed")
        inputs = self.builder.input_atoms(jaxpr.in_avals)
        self.early: dict[Var, Atom] = dict(zip(jaxpr.invars, inputs, strict=True))
        self.made: dict[Var, Atom] = {}
        self.fresh: dict[Var, Atom] = {}
        self.stored = {*stored, *self.stands}
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
            if self.away:
                for v in [v for v in eqn.outvars if v in self.away]:
                    self.hosted[v] = self.moved(self.early[v], self.away[v], eqn.source)
        for i, eqn in enumerate(jaxpr.eqns[place:], place):
            self.here = i
            read = [a for a in eqn.invars if isinstance(a, Var)]
            needed = [a for a in read if a not in self.fresh and self.is_early(a)]
            if needed:
                self.make(needed)
            self.copy(eqn, [self.late_atom(a) for a in eqn.invars])
            self.late.difference_update([v for v in read if self.last[v] == i])
            new = [v for v in eqn.outvars if v not in self.free]
            self.late.update([v for v in new if self.last.get(v, -1) > i])
        outs = [self.early_atom(a) for a in jaxpr.outvars]
        return self.builder.close(outs)[0]

    def copy(self, eqn: Eqn, operands: Sequence[Atom]) -> Sequence[Atom]:
        outs = self.builder.copy(eqn, operands)
        for v, out in zip(eqn.outvars, outs, strict=True):
            self.early[v] = out
        self.measure(operands, outs)
        return outs

    def measure(self, operands: Sequence[Atom], outs: Sequence[Atom]) -> None:
        """Note how many equations come before some in any order of the program."""
        depth = 1
        for a in operands:
            depth = max(depth, 1 + self.depth.get(a, 0))
        for out in outs:
            self.depth[out] = depth

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
        """Write what values need that are read late for the first time.

        Stored values first, computed again if they were dropped; then, behind a barrier
        of their own, what is computed of them where it is read.
        """
        roots, eqns = self.roots_of(needed)
        dropped = [v for v in roots if v not in self.stands and v not in self.made]
        if dropped:
            self.run_again(dropped)
        self.bring([v for v in roots if v not in self.fresh])
        for eqn in self.in_order(eqns):
            self.again(eqn, {}, self.fresh)

    def roots_of(self, needed: Sequence[Var]) -> tuple[list[Var], list[Eqn]]:
        """The stored values that early ones are computed of, and the way from them."""
        roots: dict[Var, None] = {}
        eqns: dict[int, Eqn] = {}
        waiting = list(needed)
        while waiting:
            v = waiting.pop()
            if not self.is_early(v) or v in self.fresh:
                continue
            if v in self.stored:
                roots[v] = None
                continue
            eqn = self.maker[v]
            if id(eqn) not in eqns:
                eqns[id(eqn)] = eqn
                waiting += [a for a in eqn.invars if isinstance(a, Var)]
        return list(roots), list(eqns.values())

    def run_again(self, dropped: Sequence[Var]) -> None:
        """Compute values again, from what is kept, behind a barrier."""
        eqns: dict[int, Eqn] = {}
        leaves: dict[Var, None] = {}
        waiting = list(dropped)
        while waiting:
            eqn = self.maker[waiting.pop()]
            if id(eqn) in eqns:
                continue
            eqns[id(eqn)] = eqn
            for a in eqn.invars:
                if isinstance(a, Var):
                    there = a in self.stands or a in self.made or a in self.free
                    if there or not self.is_early(a):
                        leaves[a] = None
                    else:
                        waiting.append(a)
        given = self.behind(list(leaves))
        self.fresh.update({v: x for v, x in given.items() if v not in self.free})
        local: dict[Var, Atom] = {}
        for eqn in self.in_order(list(eqns.values())):
            self.again(eqn, {**given, **self.made}, local)
            stored = [v for v in eqn.outvars if v in self.stored]
            self.made.update({v: local[v] for v in stored if v not in self.stands})

    def bring(self, values: Sequence[Var]) -> None:
        """Let values that are read late for the first time come from a barrier."""
        if values:
            self.fresh.update(self.behind(values))

    def again(self, eqn: Eqn, given: Mapping[Var, Atom], into: dict[Var, Atom]) -> None:
        """Write an equation once more."""
        ins = [
            (into.get(a) or given.get(a) or self.late_atom(a))
            if isinstance(a, Var)
            else a
            for a in eqn.invars
        ]
        outs = self.builder.copy(eqn, ins)
        self.measure(ins, outs)
        into.update(zip(eqn.outvars, outs, strict=True))

    def in_order(self, eqns: Sequence[Eqn]) -> list[Eqn]:
        return sorted(eqns, key=lambda eqn: self.order[id(eqn)])

    def is_early(self, v: Var) -> bool:
        """Whether a value is made before the place and does not stay anyway."""
        return v in self.maker and v not in self.free

    def behind(self, values: Sequence[Var]) -> dict[Var, Atom]:
        """Values behind a barrier that waits for what was computed last."""
        pace = self.pace()
        names = [*values] if pace is None else [*values, pace]
        hosted = {v: x for v, x in self.hosted.items() if v not in self.fresh}
        atoms = [self.made.get(v) or hosted.get(v) or self.late_atom(v) for v in names]
        source = self.jaxpr.eqns[self.here].source
        copies = dict(zip(names, self.barrier(atoms, source), strict=True))
        for v in [v for v in copies if v in hosted]:
            copies[v] = self.moved(copies[v], DEVICE, source)
        if pace is not None:
            self.early[pace] = copies.pop(pace)
        return copies

    def moved(self, atom: Atom, kind: str, source: Source) -> Atom:
        """A value in a memory of the device or the host, on a line."""
        self.builder.source = source
        with interpreting(self.builder):
            out = in_memory(self.builder.tracers([atom])[0], kind)
        self.builder.source = None
        result = self.builder.atom(out)
        self.measure([atom], [result])
        return result

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
