"""Values in memory by the lines of the user's that made them.

One idea: values of one line are an entry, but stacks of loops apart from others::

    places = Places()
    places.lines(program.held(program.line.fullest))
"""

from collections.abc import Iterable, Sequence
from typing import Final

from attrs import evolve

from verax.explorer.memory.report import (
    CurvePoint,
    Kind,
    LineMemory,
    LoopMemory,
    SourceLine,
)
from verax.ir.jaxpr import Source
from verax.transforms.memory.alive import Held, Program, Repeated

POINTS: Final = 400
"""The most points of a curve."""


def place_of(source: Source) -> SourceLine:
    """The line of a source."""
    kind: Kind = "cotangent" if source.backward else "value"
    return SourceLine(source.file, source.line, source.function, source.text, kind)


class Places:
    """The lines of sources, each found once."""

    def __init__(self) -> None:
        self.known: dict[Source, SourceLine] = {}

    def of(self, source: Source) -> SourceLine:
        """The line of a source."""
        place = self.known.get(source)
        if place is None:
            place = self.known[source] = place_of(source)
        return place

    def lines(self, values: Iterable[Held]) -> tuple[LineMemory, ...]:
        """The values by line, the most bytes first."""
        groups: dict[object, list[Held]] = {}
        for one in values:
            key = self.of(one.source), one.length, one.inside
            groups.setdefault(key, []).append(one)
        lines = [self.line(group) for group in groups.values()]
        return tuple(sorted(lines, key=lambda line: -line.bytes))

    def line(self, values: Sequence[Held]) -> LineMemory:
        """Values of one line, alike but for their types."""
        first = values[0]
        types = dict.fromkeys([repr(one.aval) for one in values])
        size = sum([one.bytes for one in values])
        return LineMemory(
            self.of(first.source),
            size,
            len(values),
            tuple(types),
            first.length,
            first.inside,
        )

    def loop(self, one: Repeated) -> LoopMemory:
        """What a loop takes, by line."""
        return LoopMemory(
            self.of(one.source),
            one.length,
            one.depth,
            one.carried,
            one.read,
            one.stacked,
            one.peak,
            self.lines([evolve(row, length=None) for row in one.rows]),
        )

    def curve(self, program: Program) -> tuple[CurvePoint, ...]:
        """The bytes over the steps; of many steps the fullest of each group."""
        used = program.line.used
        group = -(-len(used) // POINTS) or 1
        chosen = [
            max(range(i, min(i + group, len(used))), key=used.__getitem__)
            for i in range(0, len(used), group)
        ]
        return tuple(
            [CurvePoint(i, used[i], self.of(program.source(i))) for i in chosen]
        )

    def point(self, program: Program, number: int) -> CurvePoint:
        """A step of the program; the start of one without steps."""
        line = program.line
        if not line.steps:
            return CurvePoint(0, 0, self.of(Source(None, 0)))
        return CurvePoint(number, line.used[number], self.of(program.source(number)))


def kept_at_turn(program: Program) -> list[Held]:
    """The values that are kept when the way back of a gradient begins."""
    if not program.line.steps:
        return []
    return [program.value(v) for v in program.before(program.turn())]
