"""One row of a stage: what is printed, what it reads, came from and costs (floor 6).

Rows are filled in step by step: written, then linked, then costed, then measured::

    Row(EQUATION, "sin", "b:f32[3]", "a", depth=0, inside=-1)
"""

from attrs import define, field

from verax.explorer.rows.marks import Mark
from verax.ir.jaxpr import UNKNOWN_SOURCE, Source
from verax.ir.records import ReprMixin

EQUATION, INPUT, CONSTANT, OUTPUT, HEAD = range(5)
"""The kinds of rows."""
SAME, NEW, CHANGED = range(3)
"""How a row compares with the stage before."""


@define(eq=False, repr=False)
class Row(ReprMixin):
    """One printed line of a stage.

    Attributes:
        kind: an equation, an input, a captured constant, an output, or the head of a
            program inside.
        op: the primitive or operation; empty for rows that only open or close.
        left: the results with their types.
        right: the rest of the line, after the operation.
        depth: how deep it is nested.
        inside: the row in whose body it stands; -1 at the top.
        uses: the rows whose results it reads.
        mark: what descendants of the row carry.
        before: the mark of what it was made from.
        source: the user's line.
        size: the bytes of its results.
        lasting: whether the results are in memory from the start, as inputs are.
    """

    kind: int
    op: str
    left: str
    right: str
    depth: int
    inside: int
    uses: list[int] = field(factory=list)
    mark: Mark | None = None
    before: Mark | None = None
    source: Source = UNKNOWN_SOURCE
    flops: float | None = None
    bytes: float | None = None
    size: int = 0
    lasting: bool = False
    live: float | None = None
    time: float | None = None
    change: int = SAME
    origins: list[int] = field(factory=list)
    note: str = ""
