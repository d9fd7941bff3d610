"""The memory between arguments and results that a program needs, by size (floor 6).

One idea: what a compiler sets aside follows from the order of instructions, and from
how long each result is needed; with other sizes the most may be alive elsewhere, so the
order is kept, the sizes are put in, and the results packed again::

    room = Room(text)
    room.most(room.sizes), room.most({name: n / 4 for name, n in room.sizes.items()})

Results in the place of an operand that nothing else reads, loops that run in the memory
of what they carry, and results of the whole beside all others are as XLA has them.
"""

import re
from bisect import insort
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from attrs import define, field, frozen

from verax.explorer.rows.collectives import Body, body_of
from verax.explorer.rows.costs import ELEMENTWISE, arrays
from verax.explorer.rows.hlo import (
    FUSION,
    SAME_BYTES,
    UPDATE,
    Instruction,
    computations,
)
from verax.ir.records import ReprMixin

INDEX: Final = re.compile(r"index=(\d+)")
POINTWISE: Final = frozenset(
    [*ELEMENTWISE.replace("_", "-").split(), "copy", *SAME_BYTES]
)
NOWHERE: Final = frozenset(["constant", "partition-id", "replica-id", "after-all"])
"""Operations whose results are there before the program runs, or are scalars."""
ALIGNED: Final = 64
"""A buffer starts at a multiple of so many bytes."""
NONE: Final = -1

type Value = int | tuple[Value, ...]
"""The number of a buffer, or a tuple of them; that of none is `NONE`."""


@define(eq=False, repr=False)
class Buffer(ReprMixin):
    """A result in memory: its name, and when it is written first and read last.

    `outside` is what lies in other memory: results of the program, and those of a
    loop's body, which are in the place of what the loop carries. `over` are buffers in
    whose place it may be.
    """

    name: str
    start: int
    end: int
    outside: bool = False
    over: list[int] = field(factory=list)


@frozen(repr=False)
class Span(ReprMixin):
    """Memory of so many bytes that is needed from a time to another."""

    size: float
    start: int
    end: int


def numbers_in(value: Value) -> Iterator[int]:
    """The buffers of a value."""
    if isinstance(value, int):
        yield from (value,) if value != NONE else ()
        return
    for part in value:
        yield from numbers_in(part)


class Room:
    """The order in which a program needs memory."""

    def __init__(self, text: str) -> None:
        table, entry = computations(text)
        self.table = {name: body_of(each) for name, each in table.items()}
        self.buffers: list[Buffer] = []
        self.sizes: dict[str, float] = {}
        self.time = 0
        if entry:
            for buffer in numbers_in(self.run(self.table[entry], ())):
                self.buffers[buffer].outside = True

    @property
    def kinds(self) -> dict[str, list[str]]:
        """The names of results in their order, by what they are without numbers."""
        out: dict[str, list[str]] = {}
        for name in self.sizes:
            out.setdefault(name.rstrip("0123456789.#"), []).append(name)
        return out

    # -------------------------------------------------------------------------
    # Running the program in mind.

    def run(self, body: Body, arguments: Sequence[Value]) -> Value:
        """Run a computation: the value that it returns."""
        known: dict[str, Value] = {}
        result: Value = NONE
        for one in body.named.values():
            self.time += 1
            given = [known[name] for name in one.operands if name in known]
            kinds = [body.named[name].kind for name in one.operands if name in known]
            same = [kind == one.kind for kind in kinds]
            value = known[one.name] = self.value(one, given, same, arguments)
            for buffer in [*numbers_in(tuple(given)), *numbers_in(value)]:
                self.buffers[buffer].end = self.time
            result = value if one.root else result
        return result

    def value(
        self,
        one: Instruction,
        given: Sequence[Value],
        same: Sequence[bool],
        arguments: Sequence[Value],
    ) -> Value:
        """The value of an instruction, in memory of its own or of another.

        `same` says which operands have the type of the result.
        """
        if one.opcode == "parameter":
            number = int(one.rest.partition(",")[0].partition(")")[0])
            return arguments[number] if number < len(arguments) else NONE
        if one.opcode in NOWHERE:
            return NONE
        if one.opcode == "tuple":
            return tuple(given)
        if one.opcode in ("get-tuple-element", *SAME_BYTES) and given:
            return self.view(one, given[0])
        if one.opcode == "call" and one.called:
            return self.run(self.table[one.called[0][1]], given)
        if one.opcode == "while" and given:
            return self.loop(one, given[0])
        if one.opcode == "conditional":
            for _, name in one.called:
                self.run(self.table[name], given[1:])
        return self.new(one, given, same)

    def view(self, one: Instruction, value: Value) -> Value:
        """An element of a tuple, or the same in another shape."""
        index = INDEX.search(one.rest)
        if isinstance(value, tuple) and index is not None:
            return value[int(index[1])]
        return value

    def loop(self, one: Instruction, carried: Value) -> Value:
        """Run the body of a loop: its results are in the memory that it carries."""
        kept = set(numbers_in(carried))
        for key, name in one.called:
            if key == "body":
                out = self.run(self.table[name], (carried,))
                for buffer in set(numbers_in(out)) - kept:
                    self.buffers[buffer].outside = True
        return carried

    def new(
        self, one: Instruction, given: Sequence[Value], same: Sequence[bool]
    ) -> Value:
        """Memory for a result, or what is updated where it is."""
        sizes = [float(each.bytes) for each in arrays(one.kind)]
        if self.updates(one):
            for operand, value in zip(one.operands, given, strict=False):
                if value != NONE and self.sizes.get(operand) == sizes[0]:
                    return value
        if one.kind.startswith("("):
            names = [f"{one.name}#{i}" for i in range(len(sizes))]
            parts = zip(names, sizes, strict=True)
            return tuple([self.buffer(name, size, ()) for name, size in parts])
        over = [
            value
            for place, value in enumerate(given)
            if isinstance(value, int)
            and value != NONE
            and same[place]
            and self.in_place(one, place)
        ]
        return self.buffer(one.name, sum(sizes), over)

    def buffer(self, name: str, size: float, over: Sequence[int]) -> int:
        """A new buffer."""
        self.sizes.setdefault(name, size)
        self.buffers.append(Buffer(name, self.time, self.time, over=list(over)))
        return len(self.buffers) - 1

    def updates(self, one: Instruction) -> bool:
        """Whether an instruction changes a part of an operand where it is."""
        if one.opcode != FUSION:
            return one.opcode == UPDATE
        (name,) = [name for _, name in one.called] or [""]
        roots = [x for x in self.table[name].named.values() if x.root]
        while roots and roots[0].opcode in SAME_BYTES:
            roots = [self.table[name].named[roots[0].operands[0]]]
        return bool(roots) and roots[0].opcode == UPDATE

    def in_place(self, one: Instruction, place: int) -> bool:
        """Whether a result may take the place of an operand: element by element."""
        if one.opcode != FUSION:
            return one.opcode in POINTWISE
        body = self.table[one.called[0][1]]
        given = [x for x in body.named.values() if x.opcode == "parameter"]
        own = [x for x in given if int(x.rest.partition(",")[0]) == place]
        return bool(own) and self.pointwise(own[0], body)

    def pointwise(self, one: Instruction, body: Body) -> bool:
        """Whether all that is made of a value is made element by element."""
        front, seen = [one.name], {one.name}
        while front:
            for reader in body.readers.get(front.pop(), ()):
                if reader.opcode not in POINTWISE:
                    return False
                if reader.name not in seen:
                    seen.add(reader.name)
                    front.append(reader.name)
        return True

    # -------------------------------------------------------------------------
    # Packing.

    def most(self, sizes: Mapping[str, float]) -> float:
        """The memory beside arguments and results, if results have these sizes."""
        spans = self.spans(sizes)
        large = sorted(spans, key=lambda one: (-one.size, one.start))
        long = sorted(spans, key=lambda one: (one.start - one.end, -one.size))
        return min(packed(large), packed(long))

    def spans(self, sizes: Mapping[str, float]) -> list[Span]:
        """What is needed for how long: buffers in each other's place as one."""
        ends = [buffer.end for buffer in self.buffers]
        starts = [buffer.start for buffer in self.buffers]
        home = list(range(len(ends)))
        for number, buffer in enumerate(self.buffers):
            for other in () if buffer.outside else buffer.over:
                old = home[other]
                name = self.buffers[old].name
                free = ends[old] == buffer.start and not self.buffers[old].outside
                if free and sizes[name] == sizes[buffer.name]:
                    home[number], ends[old] = old, ends[number]
                    break
        return [
            Span(-(-sizes[one.name] // ALIGNED) * ALIGNED, starts[i], ends[i])
            for i, one in enumerate(self.buffers)
            if home[i] == i and not one.outside and sizes[one.name]
        ]


def packed(spans: Sequence[Span]) -> float:
    """The bytes for these, each put in turn where it fits best beside the others.

    As in XLA, the best place is the smallest hole, or else the end.

    >>> packed([Span(8, 0, 2), Span(4, 1, 3), Span(8, 3, 4)])
    12.0
    """
    placed: list[tuple[float, float, Span]] = []
    whole = 0.0
    for span in spans:
        at, best, end = None, None, 0.0
        for start, stop, other in placed:
            if other.end < span.start or span.end < other.start:
                continue
            hole = start - end
            if hole >= span.size and (best is None or hole < best):
                at, best = end, hole
            end = max(end, stop)
        place = end if at is None else at
        insort(placed, (place, place + span.size, span), key=lambda one: one[:2])
        whole = max(whole, place + span.size)
    return whole
