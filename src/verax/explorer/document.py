"""The document of an exploration: stages of rows, as JSON for the page (floor 6).

A row is one printed line of a stage. Columns of numbers and interned strings keep the
JSON of ten thousand rows small::

    Document(title, made, files, stages).to_json()["stages"][0]["rows"]["op"]
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from attrs import frozen

from verax.explorer.recording import Json, Sources
from verax.explorer.rows.memory import Peak
from verax.explorer.rows.row import EQUATION, HEAD, Row
from verax.ir.jaxpr import Source
from verax.ir.records import ReprMixin

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
    """How the measured times were taken."""

    runs: int
    seconds: float
    note: str

    def to_json(self) -> dict[str, Json]:
        """As the page reads it."""
        return {"runs": self.runs, "seconds": self.seconds, "note": self.note}


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

    def to_json(self) -> dict[str, Json]:
        """The document as one JSON object."""
        return {
            "format": FORMAT,
            "title": self.title,
            "made": dict(self.made),
            "files": [file.to_json() for file in self.sources.pieces],
            "stages": [stage_json(stage, self.sources) for stage in self.stages],
            "story": None if self.story is None else self.story.to_json(),
            "profile": None if self.profile is None else self.profile.to_json(),
        }
