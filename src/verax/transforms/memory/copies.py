"""Floor 3: the copies that XLA makes for its libraries on a CPU, step by step.

One idea: a copy is a value like others, made as soon as what it is made of is there,
and kept until the library reads it. There are three sorts: operands of convolutions in
another layout; and, in the library for sums, values of fewer elements and numbers that
are joined with what is summed, as arrays of its size::

    line = Timeline.of_steps(jaxpr, stored, with_copies(jaxpr, stored, steps))

A value on the way to one sum is written by the library if another sum reads it.
"""

from collections.abc import Container, Sequence
from typing import Final

from attrs import evolve

from verax.ir.avals import ShapedArray
from verax.ir.jaxpr import Atom, Eqn, Jaxpr, Literal, Var
from verax.ops.calls.checkpoint import optimization_barrier_p
from verax.rules.rows.row import traits_of
from verax.transforms.memory.storage import (
    NOTHING,
    Step,
    Timeline,
    steps_of,
    stored_values,
)

# A value that is made so few steps before the sum is joined with it.
NEAR: Final = 2


def timeline_on_cpu(jaxpr: Jaxpr, *, sums: bool) -> Timeline:
    """The memory of a flat program on a CPU; `sums` if its library for sums is used."""
    stored = stored_values(jaxpr)
    steps = Copies(jaxpr, stored, steps_of(jaxpr, stored)).steps(sums)
    return Timeline.of_steps(jaxpr, stored, steps)


class Copies:
    """Finds the copies of a flat program, and the steps that read them."""

    def __init__(
        self, jaxpr: Jaxpr, stored: Container[Var], steps: Sequence[Step]
    ) -> None:
        self.stored, self.given = stored, steps
        self.eqns = {v: eqn for eqn in jaxpr.eqns for v in eqn.outvars}
        self.made = {v: i for i, step in enumerate(steps) for v in step.writes}
        numbers = [v.index for v in (*jaxpr.invars, *self.eqns)]
        self.next = 1 + max(numbers, default=0)
        self.known: dict[object, Var] = {}
        self.after: dict[int, list[Step]] = {}
        self.seen: set[Var] = set()

    def steps(self, sums: bool) -> list[Step]:
        """The steps, with those that make copies."""
        own = []
        for i, step in enumerate(self.given):
            reads = set(step.reads)
            self.other_layouts(i, step, reads)
            traits = traits_of(step.eqn.primitive)
            if sums and traits.summed and not (traits.view or traits.elementwise):
                self.for_sums(i, step, reads)
            own.append((step, frozenset(reads)))
        result = self.after.get(-1, [])
        for i, (step, now) in enumerate(own):
            result.append(evolve(step, reads=now))
            result += self.after.get(i, [])
        return result

    def copy(
        self,
        key: object,
        aval: ShapedArray,
        roots: frozenset[Var],
        eqn: Eqn,
        at: int = -1,
    ) -> Var:
        """A copy that is made once its roots are there, and after step `at`."""
        known = self.known.get(key)
        if known is not None:
            return known
        v = self.known[key] = Var(self.next, aval)
        self.next += 1
        at = max([at, *[self.made.get(a, -1) for a in roots]])
        place = self.given[at].place if at >= 0 else 0
        self.after.setdefault(at, []).append(Step(eqn, place, roots, (v,), 0.0))
        return v

    def other_layouts(self, number: int, step: Step, reads: set[Var]) -> None:
        """Let a step read copies of operands that it wants in another layout.

        What comes from a barrier is copied right before the step.
        """
        eqn = step.eqn
        copied = traits_of(eqn.primitive).copied
        if copied is None:
            return
        for k in copied(eqn.params, [a.aval for a in eqn.invars]):
            a = eqn.invars[k]
            v = self.behind(a) if isinstance(a, Var) else a
            if isinstance(v, Var) and v in self.stored:
                at = -1 if v is a else number - 1
                made = self.copy(("layout", a), v.aval, frozenset((v,)), eqn, at)
                reads.discard(v)
                reads.add(made)

    def behind(self, v: Var) -> Atom:
        """What went into the barriers that a value comes from."""
        eqn = self.eqns.get(v)
        while eqn is not None and eqn.primitive is optimization_barrier_p:
            atom = eqn.invars[eqn.outvars.index(v)]
            if not isinstance(atom, Var):
                return atom
            v, eqn = atom, self.eqns.get(atom)
        return v

    def for_sums(self, number: int, step: Step, reads: set[Var]) -> None:
        """Let a sum read copies of what is joined with it in fewer elements."""
        waiting = [a for a in step.eqn.invars if isinstance(a, Var)]
        while waiting:
            v = waiting.pop()
            eqn = self.eqns.get(v)
            if v in self.seen or v in self.stored or eqn is None:
                continue
            self.seen.add(v)
            if eqn.primitive is optimization_barrier_p:
                continue
            operands = [a for a in eqn.invars if isinstance(a, Var)]
            if not traits_of(eqn.primitive).elementwise and self.grows(eqn):
                roots = self.roots(operands)
                at = max([self.made.get(a, -1) for a in roots], default=-1)
                if not roots or number - at > NEAR:
                    spread = ("spread", v.aval, eqn.invars)
                    reads.add(self.copy(spread, v.aval, roots, eqn))
                continue
            waiting += operands
            for a in eqn.invars:
                if isinstance(a, Literal) and v.aval.shape:
                    number_of = ("number", v.aval, repr(a))
                    reads.add(self.copy(number_of, v.aval, NOTHING, eqn))

    @staticmethod
    def grows(eqn: Eqn) -> bool:
        """Whether a result has more elements than the operands."""
        size = max([a.aval.size for a in eqn.invars], default=0)
        return bool(eqn.outvars[0].aval.size > size)

    def roots(self, values: Sequence[Var]) -> frozenset[Var]:
        """The stored values that some are computed of."""
        waiting, past, result = list(values), set[Var](), set[Var]()
        while waiting:
            v = waiting.pop()
            if v in past:
                continue
            past.add(v)
            if v in self.stored:
                result.add(v)
            elif v in self.eqns:
                operands = self.eqns[v].invars
                waiting += [a for a in operands if isinstance(a, Var)]
        return frozenset(result)
