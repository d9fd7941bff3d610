"""What one device computes and sends, read off its program line by line (floor 6).

One idea: the partitioned program is walked loop by loop, and each instruction counts
for the line that its metadata name::

    reader = Reader(part.text, widths, grid, count)
    reader.works, reader.sent
"""

from collections.abc import Iterator, Sequence
from typing import Final

from attrs import evolve, frozen

from verax.explorer.collectives import Collective, Origins, entry_of
from verax.explorer.meshes.timing import Place, Region, Sent, Work
from verax.explorer.rows.collectives import (
    HALF,
    KINDS,
    START,
    WIDE,
    Body,
    Grid,
    Talk,
    Talks,
    runs,
)
from verax.explorer.rows.costs import (
    Array,
    Operation,
    bytes_of_operation,
    flops_of_operation,
)
from verax.explorer.rows.hlo import (
    FUSION,
    Computation,
    Instruction,
    RowWriter,
    size_of,
    whole,
)
from verax.ir.dtypes import is_inexact
from verax.ir.jaxpr import Eqn
from verax.ir.records import ReprMixin

IDLE: Final = frozenset(["parameter", "convert", "bitcast"])
"""What a fusion holds that only changes types, as CPUs need it for 16-bit floats."""
CALLS: Final = ("call", "conditional", "async-start")
NARROW: Final = "bf16["


class Widths(Origins):
    """Origins that also know the size of what their equations compute with."""

    def __init__(self) -> None:
        super().__init__()
        self.sizes: dict[int, int] = {}

    def locate(self, eqn: Eqn) -> str:
        """The location of an equation: its number, and its name."""
        text = super().locate(eqn)
        number = int(text.partition("/")[0].removeprefix('loc("r'))
        given = [a.aval for a in eqn.invars] or [v.aval for v in eqn.outvars]
        floats = [a.dtype.itemsize for a in given if is_inexact(a.dtype)]
        size = max(floats or [a.dtype.itemsize for a in given], default=4)
        self.sizes[number] = max(size, self.sizes.get(number, 0))
        return text

    def size(self, number: int | None) -> int:
        """The size in bytes of an element of its operands."""
        return self.sizes.get(-1 if number is None else number, 4)

    def place(self, number: int | None) -> Place:
        """The line of an equation."""
        source, _ = self.of(number)
        return Place(
            source.file, source.line, source.function, source.text, source.backward
        )


@frozen(repr=False)
class Turns(ReprMixin):
    """How often a computation runs, whether that is known, and in which region."""

    region: Region
    times: float
    known: bool


class Reader:
    """Reads the program of one device."""

    def __init__(self, text: str, widths: Widths, grid: Grid, count: int) -> None:
        self.talks, self.widths = Talks(text), widths
        self.grid, self.count = grid, count
        self.writer = RowWriter(self.talks.table, (), ())
        self.loops: dict[Region, int] = {}
        self.by_place: dict[tuple[Region, Place], Work] = {}
        self.sent: list[Sent] = []
        self.places: dict[int | None, Place] = {}
        if self.talks.entry:
            self.read(self.talks.entry, Turns((), 1.0, True))

    @property
    def works(self) -> list[Work]:
        """What is computed, by region and line."""
        return list(self.by_place.values())

    def read(self, name: str, turns: Turns) -> None:
        """Read a computation that runs so often."""
        kinds: dict[str, Array] = {}
        if name not in self.talks.table:
            return
        body = self.talks.body(name)
        for one in body.named.values():
            kinds[one.name] = whole(self.writer.types.of(one.kind))
            kind = one.opcode.removesuffix(START)
            if kind in KINDS:
                self.talk(one, kind, body, turns)
            elif one.opcode == "while":
                self.loop(one, turns)
            elif one.opcode in CALLS:
                sure = turns.known and one.opcode != "conditional"
                for _, callee in one.called:
                    self.read(callee, evolve(turns, known=sure))
            elif one.opcode != "parameter":
                self.work(one, kinds, body, turns)

    def loop(self, one: Instruction, turns: Turns) -> None:
        """Read the body of a loop, a region of its own."""
        number = self.loops[turns.region] = self.loops.get(turns.region, -1) + 1
        trips, sure = runs(one)
        inner = Turns(
            (*turns.region, number), turns.times * trips, turns.known and sure
        )
        for key, callee in one.called:
            if key == "body":
                self.read(callee, inner)

    def talk(self, one: Instruction, kind: str, body: Body, turns: Turns) -> None:
        """Add a collective: its operands that are for the same line together."""
        lines: dict[Collective, tuple[int, float]] = {}
        for talk in self.talks.operands(one, kind, body, turns.times, turns.known):
            entry = entry_of(talk, self.widths, self.grid, self.count)
            key = evolve(entry, bytes=0)
            size, messages = lines.get(key, (0, 0.0))
            lines[key] = size + entry.bytes, messages + message_of(talk)
        for key, (size, messages) in lines.items():
            self.sent.append(Sent(turns.region, evolve(key, bytes=size), messages))

    def work(
        self, one: Instruction, kinds: dict[str, Array], body: Body, turns: Turns
    ) -> None:
        """Add what an instruction computes and moves."""
        fused = list(self.fused(one))
        if is_idle(one, fused):
            return
        origin = self.origin(one, fused, body)
        moved = bytes_of_operation(self.writer.operation(one, kinds, fused=False))
        narrow = self.widths.size(origin) == 2 or (
            origin is None and any([x.kind.startswith(HALF) for x in fused])
        )
        if narrow and moved and (size := size_of(one.kind)):
            moved *= size_of(one.kind.replace(WIDE, NARROW)) / size
        self.add(turns, origin, 0.0, moved or 0.0)
        for source, flops in self.operations(one, kinds, fused):
            self.add(turns, origin if source is None else source, flops, 0.0)

    def origin(
        self, one: Instruction, fused: Sequence[Instruction], body: Body
    ) -> int | None:
        """The origin of an instruction, of what it joins, or of what is next to it."""
        known = [x.origin for x in (*fused, one) if x.origin is not None]
        if known:
            return known[-1]
        behind = self.talks.behind(one, body)
        return self.talks.ahead(one, body) if behind is None else behind

    def fused(self, one: Instruction) -> Iterator[Instruction]:
        """What a fusion joins, those inside others too."""
        for _, callee in one.called if one.opcode == FUSION else ():
            for inner in self.talks.table[callee].instructions:
                yield inner
                yield from self.fused(inner)

    def operations(
        self, one: Instruction, kinds: dict[str, Array], fused: Sequence[Instruction]
    ) -> Iterator[tuple[int | None, float]]:
        """The operations of an instruction, and of each that it joins, by origin."""
        if not fused:
            operation = self.writer.operation(one, kinds, fused=True)
            yield one.origin, self.flops(one, operation)
            return
        own = {x.name: whole(self.writer.types.of(x.kind)) for x in fused}
        for inner in fused:
            if inner.opcode not in (FUSION, "convert"):
                operation = self.writer.operation(inner, own, fused=True)
                yield inner.origin, self.flops(inner, operation)

    def flops(self, one: Instruction, operation: Operation) -> float:
        """The operations of an instruction; a copy to other places has none."""
        idle = one.opcode == "scatter" and self.is_put(one)
        return 0.0 if idle else flops_of_operation(operation) or 0.0

    def is_put(self, one: Instruction) -> bool:
        """Whether what is applied to each element returns what it is given."""
        bodies: list[Computation] = [self.talks.table[name] for _, name in one.called]
        inner = [x.opcode for body in bodies for x in body.instructions]
        return all([opcode == "parameter" for opcode in inner])

    def add(self, turns: Turns, origin: int | None, flops: float, moved: float) -> None:
        """Add one run's operations and bytes to what is counted for a line."""
        place = self.places.get(origin)
        if place is None:
            place = self.places[origin] = self.widths.place(origin)
        size, key = self.widths.size(origin), (turns.region, place)
        entry = self.by_place.get(key, Work(*key, {}, 0.0))
        counts = dict(entry.flops)
        if flops:
            counts[size] = counts.get(size, 0.0) + turns.times * flops
        moved = entry.bytes + turns.times * moved
        self.by_place[key] = Work(*key, counts, moved, entry.estimated and turns.known)


def is_idle(one: Instruction, fused: Sequence[Instruction]) -> bool:
    """Whether an instruction is there for a CPU alone: new types, copies of its own."""
    if fused:
        return all([x.opcode in IDLE for x in fused])
    return one.opcode == "convert" or (one.opcode == "copy" and one.origin is None)


def message_of(talk: Talk) -> float:
    """As how many messages an operand counts: all of an instruction are one."""
    return talk.times if talk.message else 0.0
