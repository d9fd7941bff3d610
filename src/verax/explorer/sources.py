"""The user's functions that a program comes from, as pieces of their files (floor 6).

Only what some equation names is shown: of each file the spans of those functions,
joined where they overlap::

    sources = sources_of([eqn.source for eqn in jaxpr.eqns])
    sources.line(jaxpr.eqns[0].source)      # (0, 12): line 12, in piece 0
"""

import linecache
import os
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import CodeType
from typing import Final

from attrs import frozen

from verax.ir.jaxpr import Source
from verax.ir.records import ReprMixin

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
        found = self.known.get(code)
        if found is None:
            found = self.known[code] = [place[0] for place in code.co_positions()]
        index = source.instruction // 2
        line = found[index] if index < len(found) else None
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
        for path, found in sorted(spans.items())
        for first, last in joined(found)
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
    found = linecache.getlines(path)[first - 1 : last]
    return Piece(path, first, tuple([line.rstrip("\n") for line in found]))
