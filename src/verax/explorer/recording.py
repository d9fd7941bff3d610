"""Recordings of what transformations make of the programs of one trace (floor 6).

The trace runs in a context that has an observer, so every program that is about to be
rewritten, and what comes of it, passes here and is marked::

    recording = Recording()
    with recording.watching():
        whole = jit(f).trace(*args)
    recording.whole(whole.traced.jaxpr)
    recording.levels()
"""

import linecache
import os
import time
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import CodeType
from typing import Final

from attrs import define, field, frozen

from verax.explorer.naming import Inputs, Scopes
from verax.explorer.rows.row import (
    CONSTANT,
    EQUATION,
    HEAD,
    INPUT,
    Marker,
    Peak,
    Row,
    all_sources,
    mark_of,
)
from verax.ir.jaxpr import Jaxpr, Source
from verax.ir.records import ReprMixin
from verax.rules.values.state import fresh_context


@define(eq=False, repr=False)
class Record(ReprMixin):
    """One program: as it was made, and the marked copy that goes on.

    Its `level` is one more than those of the programs that it was made from. It
    `keeps_inputs` if its first inputs are those of the only one, in order.
    """

    name: str
    title: str
    jaxpr: Jaxpr
    parents: frozenset["Record"] = frozenset()
    level: int = 0
    seconds: float | None = None
    function: str = "a function"
    keeps_inputs: bool = False
    key: object = field(factory=object, init=False)
    marked: Jaxpr = field(init=False)

    def __attrs_post_init__(self) -> None:
        # Marks know the key alone: rows keep them, and are to keep no program alive.
        self.marked = Marker(self.key).program(self.jaxpr)


@frozen(eq=False, repr=False)
class Name(ReprMixin):
    """A program that was traced: of which function, and how long it took."""

    jaxpr: Jaxpr
    function: str
    seconds: float | None


class Relay:
    """The observer of a trace, which tells a recording.

    Memos keep the context of a trace, and with it the relay, long after the recording
    has ended: so it lets go of the programs then.
    """

    def __init__(self, recording: "Recording") -> None:
        self.recording: Recording | None = recording

    def traced(
        self,
        jaxpr: Jaxpr,
        function: str,
        seconds: float,
        scope: object,
        describe: Callable[[], Sequence[str]] | None,
        captured: Sequence[tuple[object, object]],
    ) -> None:
        """See `Observer.traced`."""
        if self.recording is not None:
            self.recording.names[id(jaxpr)] = Name(jaxpr, function, seconds)
            self.recording.scopes.add(jaxpr, Inputs(scope, describe, captured))

    def rewrite[E](
        self, name: str, jaxpr: Jaxpr, make: Callable[[Jaxpr], tuple[Jaxpr, E]]
    ) -> tuple[Jaxpr, E]:
        """See `Observer.rewrite`."""
        if self.recording is None:
            return make(jaxpr)
        return self.recording.rewrite(name, jaxpr, make)

    def part[E](
        self, name: str, jaxpr: Jaxpr, make: Callable[[Jaxpr], tuple[Jaxpr, Jaxpr, E]]
    ) -> tuple[Jaxpr, Jaxpr, E]:
        """See `Observer.part`."""
        if self.recording is None:
            return make(jaxpr)
        return self.recording.part(name, jaxpr, make)


class Recording:
    """The programs of a trace; see the module."""

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.marked: dict[int, Record] = {}
        self.names: dict[int, Name] = {}
        self.scopes = Scopes()

    def add(
        self,
        name: str,
        jaxpr: Jaxpr,
        title: str = "",
        parents: Iterable[Record] = (),
        seconds: float | None = None,
    ) -> Record:
        """Keep a program; what its equations came from is read off their marks."""
        members = {mark.owner for s in all_sources(jaxpr) if (mark := mark_of(s))}
        known = {record for record in self.records if record.key in members}
        known.update(parents)
        level = 1 + max([parent.level for parent in known], default=-1)
        title = title or f"{name} of {self.function_of(jaxpr)}"
        record = Record(name, title, jaxpr, frozenset(known), level, seconds)
        self.records.append(record)
        self.marked[id(record.marked)] = record
        return record

    def before(self, jaxpr: Jaxpr) -> Record:
        """The record of a program that is about to be rewritten."""
        return self.marked.get(id(jaxpr)) or self.whole(jaxpr)

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Record what is traced within the block, in a context of its own."""
        relay = Relay(self)
        try:
            with fresh_context(relay):
                yield
        finally:
            relay.recording = None

    def name(self, jaxpr: Jaxpr, function: str) -> None:
        """Say which function a program is of."""
        self.names[id(jaxpr)] = Name(jaxpr, function, None)

    def function_of(self, jaxpr: Jaxpr) -> str:
        """The function that a program was traced from, or made of the trace of."""
        named = self.names.get(id(jaxpr))
        return "a function" if named is None else named.function

    def whole(self, jaxpr: Jaxpr) -> Record:
        """The record of a program that was traced."""
        named = self.names.get(id(jaxpr))
        record = self.add(
            "trace", jaxpr, seconds=None if named is None else named.seconds
        )
        record.function = self.function_of(jaxpr)
        if record.parents:
            record.name = "join"
            record.title = f"{record.function}, with what was made inside it"
        return record

    def rewrite[E](
        self, name: str, jaxpr: Jaxpr, make: Callable[[Jaxpr], tuple[Jaxpr, E]]
    ) -> tuple[Jaxpr, E]:
        """The result of `make` on a program, which is recorded before and after."""
        before = self.before(jaxpr)
        started = time.perf_counter()
        made, notes = make(before.marked)
        spent = time.perf_counter() - started
        title = f"{name} of {before.function}"
        after = self.add(name, made, title, [before], spent)
        after.function = before.function
        after.keeps_inputs = name in ("jvp", "vmap", "rewrite")
        return after.marked, notes

    def part[E](
        self, name: str, jaxpr: Jaxpr, make: Callable[[Jaxpr], tuple[Jaxpr, Jaxpr, E]]
    ) -> tuple[Jaxpr, Jaxpr, E]:
        """`rewrite` for what makes two programs of one."""
        before = self.before(jaxpr)
        started = time.perf_counter()
        first, second, out = make(before.marked)
        spent = time.perf_counter() - started
        function = before.function
        forward = self.add(name, first, f"{function}, forward", [before], spent)
        linear = self.add(name, second, f"linear part of {function}", [before])
        forward.function = linear.function = function
        forward.keeps_inputs = True
        return forward.marked, linear.marked, out

    def levels(self) -> list[list[Record]]:
        """For each stage its programs: what is new there, and what later ones need."""
        last = {record: record.level for record in self.records}
        for record in self.records:
            for parent in record.parents:
                last[parent] = max(last[parent], record.level - 1)
        count = 1 + max([record.level for record in self.records], default=-1)
        return [
            [r for r in self.records if r.level <= level <= last[r]]
            for level in range(count)
        ]


# -----------------------------------------------------------------------------
# The user's functions that a program comes from, as pieces of their files.
#
# Only what some equation names is shown: of each file the spans of those functions,
# joined where they overlap::
#
#     sources = sources_of([eqn.source for eqn in jaxpr.eqns])
#     sources.line(jaxpr.eqns[0].source)      # (0, 12): line 12, in piece 0


type Json = bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None
type Span = tuple[int, int]

MODULE: Final = "<module>"
AROUND: Final = 3
"""Lines shown around one that stands in no function."""


@frozen(eq=False, repr=False)
class Piece(ReprMixin):
    """Some lines of a file of the user's, from line `first` on."""

    path: str
    first: int
    lines: tuple[str, ...]

    def to_json(self) -> dict[str, Json]:
        """As the page reads it."""
        return {
            "name": os.path.basename(self.path),
            "path": self.path,
            "first": self.first,
            "lines": list(self.lines),
        }


class Lines:
    """Lines of instructions, found once for each code object."""

    def __init__(self) -> None:
        self.known: dict[CodeType, list[int | None]] = {}

    def of(self, source: Source) -> int:
        """The line of a source; 0 if it is unknown."""
        code = source.code
        if code is None:
            return 0
        entry = self.known.get(code)
        if entry is None:
            entry = self.known[code] = [place[0] for place in code.co_positions()]
        index = source.instruction // 2
        line = entry[index] if index < len(entry) else None
        return line or code.co_firstlineno


class Sources:
    """The pieces that rows name, and where each source is in them."""

    def __init__(self, pieces: Sequence[Piece], lines: Lines) -> None:
        self.pieces = pieces
        self.lines = lines
        self.starts: dict[str, list[tuple[int, int]]] = {}
        for number, piece in enumerate(pieces):
            self.starts.setdefault(piece.path, []).append((piece.first, number))

    def line(self, source: Source) -> tuple[int, int]:
        """The number of the piece, or -1, and the line, or 0."""
        line = self.lines.of(source)
        return self.piece(source.file, line), line

    def piece(self, path: str, line: int) -> int:
        """The number of the piece that holds a line of a file; -1 if none does."""
        starts = self.starts.get(path)
        at = bisect_right(starts, (line, len(self.pieces))) - 1 if starts else -1
        if starts is None or at < 0:
            return -1
        first, number = starts[at]
        return number if line < first + len(self.pieces[number].lines) else -1


def sources_of(sources: Iterable[Source]) -> Sources:
    """The pieces of the user's files that hold the functions of these sources."""
    lines = Lines()
    spans: dict[str, set[Span]] = {}
    for source in sources:
        if source.code is not None:
            spans.setdefault(source.file, set()).add(span(source, lines))
    pieces = [
        piece
        for path, ranges in sorted(spans.items())
        for first, last in joined(ranges)
        if (piece := read(path, first, last)).lines
    ]
    return Sources(pieces, lines)


def span(source: Source, lines: Lines) -> Span:
    """The first and the last line of the function of a source."""
    code = source.code
    assert code is not None
    if code.co_name == MODULE:
        line = lines.of(source)
        return max(1, line - AROUND), line + AROUND
    return code.co_firstlineno, max(all_lines(code))


def all_lines(code: CodeType) -> Iterator[int]:
    """The lines of a code object and of those inside it."""
    yield code.co_firstlineno
    yield from [line for _, _, line in code.co_lines() if line is not None]
    for const in code.co_consts:
        if isinstance(const, CodeType):
            yield from all_lines(const)


def joined(spans: Iterable[Span]) -> Iterator[Span]:
    """Spans in order, those that overlap or touch as one."""
    current: Span | None = None
    for first, last in sorted(spans):
        if current is not None and first <= current[1] + 1:
            current = current[0], max(current[1], last)
        else:
            if current is not None:
                yield current
            current = first, last
    if current is not None:
        yield current


def read(path: str, first: int, last: int) -> Piece:
    """Lines of a file; none if it cannot be read."""
    out = linecache.getlines(path)[first - 1 : last]
    return Piece(path, first, tuple([line.rstrip("\n") for line in out]))


# -----------------------------------------------------------------------------
# The document of an exploration: stages of rows, as JSON for the page.
#
# A row is one printed line of a stage. Columns of numbers and interned strings keep the
# JSON of ten thousand rows small::
#
#     Document(title, made, files, stages).to_json()["stages"][0]["rows"]["op"]


FORMAT: Final = 1


@frozen(eq=False, repr=False)
class Stage(ReprMixin):
    """One form of the program: its rows, and the stage that they were made from."""

    name: str
    kind: str
    title: str
    parent: int | None
    rows: Sequence[Row]
    seconds: float | None = None
    gone: tuple[int, ...] = ()
    peak: Peak | None = None


class Interned:
    """Strings by their number, in the order in which they first occur."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}

    def all(self, texts: Iterable[str]) -> list[int]:
        """The numbers of strings."""
        numbers = self.numbers
        return [numbers.setdefault(text, len(numbers)) for text in texts]


@frozen(eq=False, repr=False)
class Story(ReprMixin):
    """A path through the rows, step by step."""

    kind: str
    title: str
    rows: tuple[tuple[int, int], ...]
    text: tuple[str, ...]

    def to_json(self) -> dict[str, Json]:
        """As the page reads it."""
        return {
            "kind": self.kind,
            "title": self.title,
            "rows": [list(place) for place in self.rows],
            "text": list(self.text),
        }


@frozen(eq=False, repr=False)
class ProfileNote(ReprMixin):
    """A note on how the times were measured."""

    runs: int
    seconds: float
    note: str

    def to_json(self) -> dict[str, Json]:
        """As the page reads it."""
        return {"runs": self.runs, "seconds": self.seconds, "note": self.note}


@frozen(eq=False, repr=False)
class LineTotal(ReprMixin):
    """What a line costs in the whole program, there or on the way back."""

    file: str
    line: int
    backward: bool
    flops: float
    bytes: float
    known: bool


def costs_json(costs: Sequence[LineTotal], sources: "Sources") -> dict[str, Json]:
    """The costs of lines in columns, and their sums over all lines, known or not."""
    places = [sources.piece(one.file, one.line) for one in costs]
    shown = [(i, one) for i, one in zip(places, costs, strict=True) if i >= 0]
    return {
        "flops": sum([one.flops for one in costs]),
        "bytes": sum([one.bytes for one in costs]),
        "lines": {
            "file": [i for i, _ in shown],
            "line": [one.line for _, one in shown],
            "backward": [int(one.backward) for _, one in shown],
            "flops": [one.flops for _, one in shown],
            "bytes": [one.bytes for _, one in shown],
            "known": [int(one.known) for _, one in shown],
        },
    }


@frozen(eq=False, repr=False)
class WatchNote(ReprMixin):
    """The values of a run: `rows` of a stage have the `values` of these numbers.

    `every` equation has values, or only those whose results leave a line.
    """

    stage: int
    rows: Mapping[int, Sequence[int]]
    values: Sequence[Mapping[str, Json]]
    every: bool

    def to_json(self) -> dict[str, Json]:
        """As the page reads it."""
        rows = {str(row): list(numbers) for row, numbers in self.rows.items()}
        return {
            "stage": self.stage,
            "every": self.every,
            "rows": rows,
            "values": list(self.values),
        }


@frozen(eq=False, repr=False)
class DigitsNote(ReprMixin):
    """Where a run's digits go: `rows` of a stage have the `values` of these numbers.

    `lines` are (file, line, what it loses), those that lose most first.
    """

    stage: int
    rows: Mapping[int, Sequence[int]]
    values: Sequence[Mapping[str, Json]]
    lines: Sequence[tuple[str, int, Mapping[str, Json]]]

    def to_json(self, sources: "Sources") -> dict[str, Json]:
        """As the page reads it."""
        known = [
            {"file": sources.piece(file, line), "line": line, **facts}
            for file, line, facts in self.lines
        ]
        return {
            "stage": self.stage,
            "rows": {str(row): list(numbers) for row, numbers in self.rows.items()},
            "values": list(self.values),
            "lines": [each for each in known if each["file"] != -1],
        }


@frozen(eq=False, repr=False)
class TalkNote(ReprMixin):
    """What devices send each other for a line, and the rows that do it."""

    file: str
    line: int
    rows: Sequence[int]
    columns: Mapping[str, Json]


@frozen(eq=False, repr=False)
class CollectivesNote(ReprMixin):
    """What devices send each other: `rows` of talks are those of a stage.

    `axes` are those of the mesh with their sizes, `memory` the bytes of each device.
    """

    stage: int
    devices: int
    axes: Mapping[str, int]
    sent: float
    memory: Mapping[str, int]
    talks: Sequence[TalkNote]

    def to_json(self, sources: "Sources") -> dict[str, Json]:
        """As the page reads it."""
        return {
            "stage": self.stage,
            "devices": self.devices,
            "axes": dict(self.axes),
            "sent": self.sent,
            "memory": dict(self.memory),
            "talks": [
                {
                    "file": sources.piece(talk.file, talk.line),
                    "line": talk.line,
                    "rows": list(talk.rows),
                    **talk.columns,
                }
                for talk in self.talks
            ],
        }


type Moment = tuple[str, int, int]
"""A step of a program: the file and line of it, and the bytes in use."""


@frozen(eq=False, repr=False)
class MemoryNote(ReprMixin):
    """The predicted bytes over the whole program, and without its budget, if any."""

    after: Sequence[Moment]
    before: Sequence[Moment] | None

    def to_json(self, sources: "Sources") -> dict[str, Json]:
        """As the page reads it."""
        return {
            "curve": curve_json(self.after, sources),
            "before": None if self.before is None else curve_json(self.before, sources),
        }


def curve_json(points: Sequence[Moment], sources: "Sources") -> dict[str, Json]:
    """A curve in columns."""
    return {
        "bytes": [count for _, _, count in points],
        "file": [sources.piece(file, line) for file, line, _ in points],
        "line": [line for _, line, _ in points],
    }


def stage_json(stage: Stage, place: "Sources") -> dict[str, Json]:
    """A stage in columns."""
    rows, strings = stage.rows, Interned()
    scopes = strings.all([scope_of(row.source) for row in rows])
    lines = [place.line(row.source) for row in rows]
    columns: dict[str, Json] = {
        "op": strings.all([row.op for row in rows]),
        "left": strings.all([row.left for row in rows]),
        "right": strings.all([row.right for row in rows]),
        "depth": [row.depth for row in rows],
        "inside": [row.inside for row in rows],
        "kind": [row.kind for row in rows],
        "uses": [row.uses for row in rows],
        "from": [row.origins for row in rows],
        "file": [file for file, _ in lines],
        "line": [line for _, line in lines],
        "scope": scopes,
        "flops": [row.flops for row in rows],
        "bytes": [row.bytes for row in rows],
        "live": [row.live for row in rows],
        "time": [row.time for row in rows],
        "change": [row.change for row in rows],
        "notes": {str(i): row.note for i, row in enumerate(rows) if row.note},
        "sizes": {str(i): row.size for i, row in enumerate(rows) if is_given(row)},
    }
    return {
        "name": stage.name,
        "kind": stage.kind,
        "title": stage.title,
        "parent": stage.parent,
        "seconds": stage.seconds,
        "strings": list(strings.numbers),
        "rows": columns,
        "gone": list(stage.gone),
        "peak": peak_json(stage.peak),
        "totals": totals(rows),
    }


def is_given(row: Row) -> bool:
    """Whether a row is an argument or a constant whose size is known."""
    return row.kind in (INPUT, CONSTANT) and row.size > 0


def peak_json(peak: Peak | None) -> Json:
    """A peak as the page reads it."""
    if peak is None:
        return None
    holders = [list(holder) for holder in peak.holders]
    return {"bytes": peak.bytes, "row": peak.row, "holders": holders}


def totals(rows: Sequence[Row]) -> dict[str, Json]:
    """Sums over the equations at the top, which count what is inside them."""
    top = [row for row in rows if row.kind == EQUATION]
    outer = [row for row in top if row.inside < 0 or rows[row.inside].kind == HEAD]
    outer = [row for row in outer if is_outermost(rows, row)]
    return {
        "flops": sum([row.flops or 0 for row in outer]),
        "bytes": sum([row.bytes or 0 for row in outer]),
        "equations": len(top),
    }


def is_outermost(rows: Sequence[Row], row: Row) -> bool:
    """Whether no equation holds the row."""
    while row.inside >= 0:
        row = rows[row.inside]
        if row.kind == EQUATION:
            return False
    return True


def scope_of(source: Source) -> str:
    """The user's function and the transformations: what the graph puts together."""
    if source.code is None:
        return source.origin
    name = source.function.replace(".<locals>", "")
    return f"{name} · {source.origin}" if source.origin else name


@frozen(eq=False, repr=False)
class Document(ReprMixin):
    """All that the page shows."""

    title: str
    made: Mapping[str, str]
    sources: Sources
    stages: tuple[Stage, ...]
    story: Story | None = None
    profile: ProfileNote | None = None
    costs: Sequence[LineTotal] | None = None
    watch: WatchNote | None = None
    collectives: CollectivesNote | None = None
    memory: MemoryNote | None = None
    digits: DigitsNote | None = None

    def to_json(self) -> dict[str, Json]:
        """The document as one JSON object."""
        costs, talk = self.costs, self.collectives
        several = {} if talk is None else {"collectives": talk.to_json(self.sources)}
        if self.memory is not None:
            several["memory"] = self.memory.to_json(self.sources)
        if self.digits is not None:
            several["digits"] = self.digits.to_json(self.sources)
        return {
            "format": FORMAT,
            "title": self.title,
            "made": dict(self.made),
            "files": [file.to_json() for file in self.sources.pieces],
            "stages": [stage_json(stage, self.sources) for stage in self.stages],
            "story": None if self.story is None else self.story.to_json(),
            "profile": None if self.profile is None else self.profile.to_json(),
            "costs": None if costs is None else costs_json(costs, self.sources),
            "watch": None if self.watch is None else self.watch.to_json(),
            **several,
        }
