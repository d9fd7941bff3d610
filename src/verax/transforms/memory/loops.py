"""Floor 3: loops that stack less for the loop that runs backwards.

A loop that is differentiated stacks values of each step, and a later loop reads them
row by row. Which rows to stack, and which to compute again in the later loop from what
is stacked, is a crossing as between any two parts of a program::

    c, as, bs = scan a          ->    c, as = scan a
    d = scan as bs                    d = scan as       (each b computed from its a)
"""

from collections.abc import Callable, Collection, Sequence
from functools import cached_property
from typing import Final

from attrs import evolve, frozen

from verax.ir.jaxpr import Atom, Eqn, Jaxpr, Var
from verax.ir.records import ReprMixin
from verax.ops.calls.call import inlined
from verax.ops.control.scan import scan_p
from verax.ops.control.scan_params import ScanParams
from verax.rules.rows.builder import Builder, program
from verax.rules.values.array import Array
from verax.rules.values.state import interpreting
from verax.transforms.memory.crossing import Crossing, Graph
from verax.transforms.memory.storage import flat, steps_of, stored_values

# The operations for which a byte is not worth stacking in any program: computing it
# again takes no longer than writing and reading it.
FREE: Final = 3.0

type Read = Callable[[Atom], Atom]
"""Where an atom is in the program that is being written."""


@frozen(eq=False, repr=False)
class Loop(ReprMixin):
    """A `scan`: its place in a program, its equation, and its body, which is flat."""

    place: int
    eqn: Eqn
    p: ScanParams
    body: Jaxpr

    @classmethod
    def at(cls, jaxpr: Jaxpr, place: int) -> "Loop | None":
        """The loop at a place, if there is one."""
        eqn = jaxpr.eqns[place]
        if eqn.primitive is not scan_p or not isinstance(eqn.params, ScanParams):
            return None
        return cls(place, eqn, eqn.params, flat(eqn.params.jaxpr))

    @property
    def rows(self) -> list[Atom]:
        """What the body returns to be stacked."""
        return self.p.results(self.body.outvars)[1]

    @property
    def stacks(self) -> list[Var]:
        """The stacks, which are results of the equation."""
        return self.p.results(self.eqn.outvars)[1]

    @cached_property
    def inputs(self) -> dict[Var, Atom]:
        """Inputs of the body that are the same or rows, and operands they come from."""
        names, given = self.p.parts(self.body.invars), self.p.parts(self.eqn.invars)
        pairs = zip([*names[0], *names[2]], [*given[0], *given[2]], strict=True)
        return dict(pairs)


@frozen(eq=False, repr=False)
class Pair(ReprMixin):
    """A loop, and a later one that alone reads some of its stacks, by number."""

    first: Loop
    second: Loop
    numbers: tuple[int, ...]

    @property
    def read(self) -> list[Var]:
        """The rows of the first that only the second reads, and that no step gets."""
        rows = self.first.rows
        stay = {a for k, a in enumerate(rows) if k not in self.numbers}
        chosen = [rows[k] for k in self.numbers]
        return [a for a in chosen if isinstance(a, Var) and a not in stay]

    @property
    def taken(self) -> list[Var]:
        """The stacks that only the second reads."""
        return [self.first.stacks[k] for k in self.numbers]

    def graph(self, jaxpr: Jaxpr) -> Graph:
        """What may be stacked, and what may run again."""
        body, p = self.first.body, self.first.p
        steps = steps_of(body, stored_values(body))
        _, carry, xs = p.parts(body.invars)
        late = {a for eqn in jaxpr.eqns[self.second.place :] for a in eqn.invars}
        there = {*jaxpr.invars, *jaxpr.outvars, *late}
        begun = [
            v
            for v in xs
            if isinstance(a := self.first.inputs[v], Var) and a not in there
        ]
        return Crossing(steps, self.read, [*carry, *begun]).graph()


type Choose = Callable[[Pair, Graph], frozenset[Var]]
"""Chooses what the first loop of a pair stacks, rows of one step."""


def pairs_of(jaxpr: Jaxpr) -> list[Pair]:
    """The loops of several steps whose stacks one later loop reads."""
    readers: dict[Var, set[int]] = {}
    for place, eqn in enumerate(jaxpr.eqns):
        for a in eqn.invars:
            if isinstance(a, Var):
                readers.setdefault(a, set()).add(place)
    outs = {a for a in jaxpr.outvars if isinstance(a, Var)}
    result = []
    for place in range(len(jaxpr.eqns)):
        loop = Loop.at(jaxpr, place)
        if loop is None:
            continue
        groups: dict[int, list[int]] = {}
        for k, v in enumerate(loop.stacks):
            places = readers.get(v, set())
            if len(places) == 1 and v not in outs:
                groups.setdefault(min(places), []).append(k)
        for later, numbers in groups.items():
            second = Loop.at(jaxpr, later)
            if second is not None and reads_rows(loop, second, numbers):
                result.append(Pair(loop, second, tuple(numbers)))
    return result


def reads_rows(first: Loop, second: Loop, numbers: Sequence[int]) -> bool:
    """Whether the second loop reads those stacks of the first only row by row."""
    consts, carry, _ = second.p.parts(second.eqn.invars)
    whole = {*consts, *carry}
    stacks = first.stacks
    same = first.p.length == second.p.length
    return (
        same and first.p.length > 1 and all([stacks[k] not in whole for k in numbers])
    )


def with_fewer_stacks(jaxpr: Jaxpr, price: float) -> Jaxpr:
    """The flat program whose pairs of loops stack what pays at this price of a byte."""
    return with_stacks(jaxpr, lambda pair, graph: graph.kept(price))


def with_stacks(jaxpr: Jaxpr, choose: Choose) -> Jaxpr:
    """The flat program whose pairs of loops stack what is chosen for each."""
    for number in range(len(pairs_of(jaxpr))):
        pairs = pairs_of(jaxpr)
        if number < len(pairs):
            pair = pairs[number]
            kept = choose(pair, pair.graph(jaxpr))
            if not kept.issuperset(pair.read):
                jaxpr = PairWriter(jaxpr, pair, kept).written()
    return jaxpr


class PairWriter:
    """Writes a program in which a pair of loops stacks other values."""

    def __init__(self, jaxpr: Jaxpr, pair: Pair, kept: Collection[Var]) -> None:
        self.jaxpr, self.first, self.second = jaxpr, pair.first, pair.second
        dropped = {v for v in pair.read if v not in kept}
        rows = pair.first.rows
        self.left = [k for k, a in enumerate(rows) if a not in dropped]
        there = {*[rows[k] for k in self.left], *pair.first.inputs}
        self.more = [v for v in kept if v not in there]
        self.gone = {
            stack: row
            for stack, row in zip(pair.first.stacks, rows, strict=True)
            if row in dropped
        }

    @property
    def stacked(self) -> list[Atom]:
        """The rows that the first loop stacks now."""
        rows = self.first.rows
        return [*[rows[k] for k in self.left], *self.more]

    def written(self) -> Jaxpr:
        """The program."""
        builder = Builder("stacks")
        inputs = builder.input_atoms(self.jaxpr.in_avals)
        env: dict[Var, Atom] = dict(zip(self.jaxpr.invars, inputs, strict=True))
        stacks: dict[Atom, Atom] = {}

        def read(a: Atom) -> Atom:
            return env[a] if isinstance(a, Var) else a

        for place, eqn in enumerate(self.jaxpr.eqns):
            if place == self.first.place:
                ins = list(map(read, eqn.invars))
                outs = self.bind(builder, eqn, self.shorter(), ins)
                carry, ys = self.first.p.results(outs)
                stacks = dict(zip(self.stacked, ys, strict=True))
                old_carry, old_ys = self.first.p.results(eqn.outvars)
                env.update(zip(old_carry, carry, strict=True))
                env.update({old_ys[k]: y for k, y in zip(self.left, ys, strict=False)})
            elif place == self.second.place:
                params, operands = self.longer(stacks, read)
                outs = self.bind(builder, eqn, params, operands)
                env.update(zip(eqn.outvars, outs, strict=True))
            else:
                outs = list(builder.copy(eqn, list(map(read, eqn.invars))))
                env.update(zip(eqn.outvars, outs, strict=True))
        return builder.close([read(a) for a in self.jaxpr.outvars])[0]

    def bind(
        self, builder: Builder, eqn: Eqn, p: ScanParams, ins: Sequence[Atom]
    ) -> list[Atom]:
        """The loop that takes the place of an equation, from the same line."""
        builder.source = eqn.source
        with interpreting(builder):
            outs = scan_p.bind(p, *builder.tracers(ins))
        builder.source = None
        return [builder.atom(x) for x in outs]

    def shorter(self) -> ScanParams:
        """The first loop, with the stacks that are left and those that are new."""
        carry, _ = self.first.p.results(self.first.body.outvars)
        body = evolve(self.first.body, outvars=(*carry, *self.stacked))
        return evolve(self.first.p, jaxpr=body)

    def longer(
        self, stacks: dict[Atom, Atom], read: Read
    ) -> tuple[ScanParams, list[Atom]]:
        """The second loop, which computes what is not stacked, and its operands."""
        p, first = self.second.p, self.first
        same, _, _ = first.p.parts(first.body.invars)
        leaves = self.leaves()
        consts = [v for v in leaves if v in same]
        rows = [v for v in leaves if v not in same]
        ours = p.parts(self.second.eqn.invars)
        stay = [i for i, a in enumerate(ours[2]) if a not in self.gone]
        operands = [
            *[read(first.inputs[v]) for v in consts],
            *[read(a) for a in (*ours[0], *ours[1])],
            *[read(ours[2][i]) for i in stay],
            *[stacks[v] if v in stacks else read(first.inputs[v]) for v in rows],
        ]
        linear = p.parts(p.linear)
        flags = (
            *[False] * len(consts),
            *linear[0],
            *linear[1],
            *[linear[2][i] for i in stay],
            *[False] * len(rows),
        )
        body = self.body(consts, rows, ours[2], stay)
        count = p.num_consts + len(consts)
        return evolve(p, jaxpr=body, linear=flags, num_consts=count), operands

    def leaves(self) -> list[Var]:
        """The inputs and stacked values from which the dropped rows are computed."""
        body = self.first.body
        known = {*self.stacked, *body.invars}
        waiting: set[Atom] = set(self.gone.values())
        rows = [a for a in self.gone.values() if isinstance(a, Var) and a in known]
        values: dict[Var, None] = dict.fromkeys(rows)
        for eqn in reversed(body.eqns):
            if not waiting.isdisjoint(eqn.outvars):
                operands = [a for a in eqn.invars if isinstance(a, Var)]
                values.update(dict.fromkeys([a for a in operands if a in known]))
                waiting.update([a for a in operands if a not in known])
        return list(values)

    def body(
        self,
        consts: Sequence[Var],
        rows: Sequence[Var],
        xs: Sequence[Atom],
        stay: Sequence[int],
    ) -> Jaxpr:
        """The body of the second loop, after what is computed again."""
        p = self.second.p
        same, carry, slices = p.parts(p.jaxpr.in_avals)
        outputs = [self.gone[a] for a in xs if isinstance(a, Var) and a in self.gone]
        again = part_of(self.first.body, [*consts, *rows], outputs)
        avals = (
            *[v.aval for v in consts],
            *same,
            *carry,
            *[slices[i] for i in stay],
            *[v.aval for v in rows],
        )

        def later(*args: Array) -> Sequence[object]:
            rest = iter(args)
            known = [next(rest) for _ in consts]
            own = [next(rest) for _ in (*same, *carry)]
            left = {i: next(rest) for i in stay}
            made = iter(inlined(again, [*known, *rest]))
            all_rows = [left[i] if i in left else next(made) for i in range(len(xs))]
            return inlined(p.jaxpr, [*own, *all_rows])

        return program(avals, later)


def part_of(jaxpr: Jaxpr, inputs: Sequence[Var], outs: Sequence[Atom]) -> Jaxpr:
    """The part of a program that computes values from others in it."""
    builder = Builder("again")
    env: dict[Var, Atom] = {v: builder.input_atom(v.aval) for v in inputs}
    needed = {a for a in outs if a not in env}
    eqns = []
    for eqn in reversed(jaxpr.eqns):
        if not needed.isdisjoint(eqn.outvars):
            eqns.append(eqn)
            needed.update([a for a in eqn.invars if a not in env])
    for eqn in reversed(eqns):
        made = builder.copy(
            eqn, [env[a] if isinstance(a, Var) else a for a in eqn.invars]
        )
        env.update(
            [(v, a) for v, a in zip(eqn.outvars, made, strict=True) if v not in env]
        )
    return builder.close([env[a] if isinstance(a, Var) else a for a in outs])[0]
