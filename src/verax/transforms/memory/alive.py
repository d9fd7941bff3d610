"""Floor 3: which values a compiled program keeps at a step, and whose line made them.

One idea: what is alive at a step adds up to the bytes in use there, whichever programs
are inside of it; the stack of a loop belongs to the line of its body that makes a row::

    line = Timeline.of(jaxpr)
    values = Program(jaxpr, line).held(line.fullest)
    sum([one.bytes for one in values]) == line.peak
"""

from collections.abc import Iterator
from typing import Final

from attrs import evolve, frozen

from verax.ir.avals import ShapedArray
from verax.ir.jaxpr import NO_PARAMS, Atom, Eqn, Jaxpr, Source, Var
from verax.ir.records import ReprMixin
from verax.ops.calls.call import NamedCall
from verax.ops.control.scan_params import ScanParams
from verax.rules.rows.row import traits_of
from verax.transforms.memory.copies import timeline_on_cpu
from verax.transforms.memory.storage import (
    Timeline,
    apart,
    bytes_of,
    flat,
    hosted,
    peak_inside,
    reused,
    total,
)

DEEPEST: Final = 32
"""How many loops around each other are looked into for the line of a value."""


@frozen(repr=False)
class Held(ReprMixin):
    """A value in memory.

    Attributes:
        aval: its type.
        source: the line that made it; of a stack, that of its rows.
        length: the iterations of the loop that stacked it; None if it is no stack.
        inside: whether it lives in a step of a loop, or in a call.
    """

    aval: ShapedArray
    source: Source
    length: int | None = None
    inside: bool = False

    @property
    def bytes(self) -> int:
        """Its bytes; 0 where a size is a symbol."""
        return bytes_of(self.aval)


@frozen(repr=False)
class Repeated(ReprMixin):
    """What a loop takes of memory.

    Attributes:
        source: the line of the loop.
        length: its iterations; None if only values say.
        depth: the number of loops around it.
        carried: bytes that go from an iteration to the next.
        read: bytes of the rows that an iteration reads.
        stacked: bytes of the rows that an iteration leaves.
        peak: bytes in use within an iteration at most.
        rows: the rows that are left, as values.
    """

    source: Source
    length: int | None
    depth: int
    carried: int
    read: int
    stacked: int
    peak: int
    rows: tuple[Held, ...] = ()


class Bodies:
    """Programs inside equations, each made flat and looked through once."""

    def __init__(self) -> None:
        self.known: dict[int, tuple[Jaxpr, Program]] = {}

    def of(self, jaxpr: Jaxpr) -> "Program":
        """The program, flat, with its steps."""
        entry = self.known.get(id(jaxpr))
        if entry is None:
            body = flat(jaxpr)
            made = Program(body, Timeline.of(body), self)
            entry = self.known[id(jaxpr)] = (jaxpr, made)
        return entry[1]


class Program:
    """A flat program and its steps, to be asked what is alive."""

    def __init__(
        self, jaxpr: Jaxpr, line: Timeline, bodies: Bodies | None = None
    ) -> None:
        self.jaxpr, self.line = jaxpr, line
        self.bodies = Bodies() if bodies is None else bodies
        self.maker = {v: step.eqn for step in line.steps for v in step.writes}
        self.maker.update({v: eqn for eqn in jaxpr.eqns for v in eqn.outvars})
        self.apart = apart(jaxpr)

    def values_away(self) -> list[Held]:
        """The values that wait in memory of the host for a while."""
        return [self.value(v) for v in hosted(self.jaxpr)]

    def held(self, number: int) -> list[Held]:
        """The values whose bytes are in use while a step runs."""
        step = self.line.steps[number]
        result = [self.value(v) for v in self.before(number)]
        new = [v for v in step.writes if v not in self.apart]
        size = total(new)
        ends = [v for v in self.before(number) if self.line.last[v] == number]
        if reused(step, size, ends):
            new = []
        return [*result, *[self.value(v) for v in new], *self.within(step.eqn)]

    def before(self, number: int) -> list[Var]:
        """The values made before a step that it or a later one reads."""
        made = [v for step in self.line.steps[:number] for v in step.writes]
        last = self.line.last
        return [v for v in made if v not in self.apart and last.get(v, -1) >= number]

    def value(self, v: Var) -> Held:
        """A value of this program."""
        eqn = self.maker[v]
        if v not in eqn.outvars:  # a copy
            return Held(v.aval, eqn.source)
        source, length = self.origin(eqn, eqn.outvars.index(v))
        return Held(v.aval, source, length)

    def origin(
        self, eqn: Eqn, number: int, depth: int = 0
    ) -> tuple[Source, int | None]:
        """The line that made a result of an equation; iterations if it is a stack."""
        p = eqn.params
        if isinstance(p, NamedCall):
            body = self.bodies.of(p.jaxpr)
            answer = body.source_of(body.jaxpr.outvars[number], depth)
            return answer[0] or eqn.source, answer[1]
        if not isinstance(p, ScanParams):
            return eqn.source, None
        body = self.bodies.of(p.jaxpr)
        outs, carries = body.jaxpr.outvars, p.parts(body.jaxpr.invars)[1]
        atom = outs[number]
        if atom in carries:
            atom = outs[carries.index(atom)]
        source, _ = body.source_of(atom, depth)
        return source or eqn.source, p.length if number >= p.num_carry else None

    def source_of(self, atom: Atom, depth: int) -> tuple[Source | None, int | None]:
        """The line of a result of this program, and iterations if it is a stack."""
        eqn = self.maker.get(atom) if isinstance(atom, Var) else None
        if eqn is None or depth > DEEPEST:
            return None, None
        source, length = self.origin(eqn, eqn.outvars.index(atom), depth + 1)
        return (source if source.code is not None else None), length

    def within(self, eqn: Eqn) -> list[Held]:
        """The values that the programs of an equation need at the fullest moment."""
        if eqn.params is NO_PARAMS or traits_of(eqn.primitive).flops is not None:
            return []
        alone = isinstance(eqn.params, NamedCall)
        programs = list(eqn.params.subjaxprs(aside=False))
        if not programs:
            return []
        largest = max(programs, key=lambda p: peak_inside(p, alone))
        body = self.bodies.of(largest)
        result = body.held(body.line.fullest) if body.line.steps else []
        if not alone:
            made = dict.fromkeys([a for a in body.jaxpr.outvars if isinstance(a, Var)])
            result += [body.value(v) for v in made if v in body.maker]
        return [evolve(one, inside=True) for one in result]

    def source(self, number: int) -> Source:
        """The line of a step; of a call, that of what it gives first."""
        eqn = self.line.steps[number].eqn
        if not isinstance(eqn.params, NamedCall):
            return eqn.source
        return self.origin(eqn, 0)[0]

    def turn(self) -> int:
        """The step at which the way back of a gradient begins, else the fullest one.

        Of derivatives of derivatives it is that of the outermost.
        """
        places = range(len(self.line.steps))
        depths = [self.source(i).origin.count("transpose") for i in places]
        deepest = max(depths, default=0)
        return depths.index(deepest) if deepest else self.line.fullest

    def loops(self, depth: int = 0) -> Iterator[Repeated]:
        """The loops of the program, each before those inside it."""
        for eqn in self.jaxpr.eqns:
            p, inner = eqn.params, depth
            if p is NO_PARAMS or traits_of(eqn.primitive).flops is not None:
                continue
            programs = [self.bodies.of(q) for q in p.subjaxprs(aside=False)]
            if traits_of(eqn.primitive).loop:
                yield self.loop(eqn, depth, max([q.line.peak for q in programs]))
                inner += 1
            for q in programs:
                yield from q.loops(inner)

    def loop(self, eqn: Eqn, depth: int, peak: int) -> Repeated:
        """What the loop of an equation takes."""
        p = eqn.params
        if not isinstance(p, ScanParams):
            carried = total(eqn.outvars)
            return Repeated(eqn.source, None, depth, carried, 0, 0, peak)
        body = self.bodies.of(p.jaxpr)
        carry, stacks = p.results(eqn.outvars)
        places = range(p.num_carry, len(eqn.outvars))
        rows = [
            Held(a.aval, self.origin(eqn, k)[0], p.length)
            for k, a in zip(places, p.results(body.jaxpr.outvars)[1], strict=True)
        ]
        return Repeated(
            eqn.source,
            p.length,
            depth,
            total(carry),
            total(p.parts(body.jaxpr.invars)[2]),
            sum([one.bytes for one in rows]),
            peak,
            tuple(rows) if stacks else (),
        )


def flat_program(jaxpr: Jaxpr) -> Program:
    """A program without calls, with its steps."""
    body = flat(jaxpr)
    return Program(body, Timeline.of(body))


def program_on_cpu(jaxpr: Jaxpr, *, sums: bool) -> Program:
    """The same on a CPU, with copies; `sums` if XLA's library for sums is used."""
    body = flat(jaxpr)
    return Program(body, timeline_on_cpu(body, sums=sums))
