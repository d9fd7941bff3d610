"""One row of a stage: what is printed, what it reads, came from and costs (floor 6).

Rows are filled in step by step: written, then linked, then costed, then measured::

    Row(EQUATION, "sin", "b:f32[3]", "a", depth=0, inside=-1)
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import CodeType
from typing import ClassVar, Final

from attrs import define, field, frozen
from pyrsistent import pvector

from verax.ir.jaxpr import NO_PARAMS, UNKNOWN_SOURCE, Eqn, Jaxpr, Source, equation
from verax.ir.records import ReprMixin
from verax.ir.walk import map_subjaxprs

# -----------------------------------------------------------------------------
# Marks on the equations of a program, by which their descendants know them.
#
# A rewrite gives each equation the source of the one that it came from, so a source
# that carries a mark says which one that was, however many rewrites later::
#
#     marked, _ = Marker(owner).program(jaxpr)
#     batched.eqns[3].source.mark is marked.eqns[1].source.mark


class Mark:
    """One equation of a program; `owner` stands for the program."""

    __slots__ = ("owner",)

    def __init__(self, owner: object) -> None:
        self.owner = owner


@frozen(eq=False, repr=False)
class MarkedSource(Source):
    """A source that says which equation of a marked program it is the source of."""

    __module__ = "verax.explorer.rows.row"

    mark: Mark | None = None

    def derived(self, transformation: str) -> "MarkedSource":
        """The same line and mark, one transformation later."""
        origin = self.origin
        later = f"{transformation}({origin})" if origin else transformation
        return MarkedSource(self.code, self.instruction, later, self.mark)


@frozen(repr=False, eq=False)
class MarkedJaxpr(Jaxpr):
    """A program whose equations are marked.

    Memos keep what they make of it with it, as for a program that holds closures: an
    equal program without marks, or with others, is none of theirs.
    """

    __module__ = "verax.explorer.rows.row"

    transient: ClassVar[bool] = True


def mark_of(source: Source) -> Mark | None:
    """The mark of a source, if it has one."""
    return source.mark if isinstance(source, MarkedSource) else None


class Marker:
    """Marks one program; equal programs inside it share their marks.

    Rewrites treat equal programs as one, so that each of them would not be told apart
    from the others afterwards. Who reads the marks knows in which equation a program
    stands.
    """

    def __init__(self, owner: object) -> None:
        self.owner = owner
        self.known: dict[Jaxpr, Jaxpr] = {}

    def program(self, jaxpr: Jaxpr) -> Jaxpr:
        """The same program, with marks of this marker alone."""
        entry = self.known.get(jaxpr)
        if entry is None:
            eqns = pvector([self.equation(eqn) for eqn in jaxpr.eqns])
            entry = MarkedJaxpr(jaxpr.constvars, jaxpr.invars, eqns, jaxpr.outvars)
            self.known[jaxpr] = entry
        return entry

    def equation(self, eqn: Eqn) -> Eqn:
        """One equation, marked."""
        params, source = eqn.params, eqn.source
        if params is not NO_PARAMS:
            params = map_subjaxprs(params, self.program)
        place: tuple[CodeType | None, int, str] = (
            source.code,
            source.instruction,
            source.origin,
        )
        marked = MarkedSource(*place, Mark(self.owner))
        return equation(eqn.primitive, params, eqn.invars, eqn.outvars, marked)


def all_sources(jaxpr: Jaxpr, seen: set[int] | None = None) -> Iterator[Source]:
    """The sources of all equations, each program inside once."""
    seen = set() if seen is None else seen
    if id(jaxpr) in seen:
        return
    seen.add(id(jaxpr))
    for eqn in jaxpr.eqns:
        yield eqn.source
        if eqn.params is not NO_PARAMS:
            for inner in eqn.params.subjaxprs():
                yield from all_sources(inner, seen)


# -----------------------------------------------------------------------------
# One row of a stage: what is printed, what it reads, came from and costs.


EQUATION, INPUT, CONSTANT, OUTPUT, HEAD = range(5)
"""The kinds of rows."""
SAME, NEW, CHANGED = range(3)
"""The states of a row, compared with the stage before."""


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


# -----------------------------------------------------------------------------
# The memory that a program needs, row by row.
#
# A result is in memory from its equation to the last row that reads it; arguments are
# the caller's and stay, unless they are donated; what a program inside makes adds to
# what is there around it. Nothing is known here of what a compiler joins or stores
# twice::
#
#     peak = fill_live(rows)
#     rows[peak.row].live == peak.bytes


HOLDERS: Final = 40
"""The number of listed results of those that make up a peak."""


@frozen(eq=False, repr=False)
class Peak(ReprMixin):
    """The row after which most memory is in use, and which rows' results that is."""

    bytes: float
    row: int
    holders: tuple[tuple[int, int], ...]


def anything(row: Row) -> bool:
    """Whatever a row holds is computed in memory of its own."""
    return True


def fill_live(
    rows: Sequence[Row], opens: Callable[[Row], bool] = anything
) -> Peak | None:
    """Fill in the bytes alive at each row; where they are most, and what holds them.

    Programs inside equations for which `opens` is false need no memory.
    """
    scopes: dict[int, list[int]] = {}
    for number, row in enumerate(rows):
        scopes.setdefault(row.inside, []).append(number)
    memory = Memory(rows, scopes, opens)
    tops = [i for i in scopes.get(-1, ()) if rows[i].kind == HEAD]
    for top in tops or (-1,):
        memory.run(top, 0.0, outer=True)
    return memory.peak()


class Memory:
    """Runs a program in mind."""

    def __init__(
        self,
        rows: Sequence[Row],
        scopes: Mapping[int, Sequence[int]],
        opens: Callable[[Row], bool],
    ) -> None:
        self.rows = rows
        self.scopes = scopes
        self.opens = opens
        self.sizes: dict[int, int] = {}
        self.last: dict[int, int] = {}

    def run(self, scope: int, around: float, *, outer: bool) -> float:
        """Fill in the rows of one program; the most that is alive at one of them.

        `around` are the bytes alive outside it.
        """
        rows, numbers = self.rows, self.scopes.get(scope, ())
        most = alive = around
        self.last |= last_uses(rows, numbers)
        ends: dict[int, list[int]] = {}
        for number in numbers:
            ends.setdefault(self.last.get(number, -1), []).append(number)
        for number in numbers:
            row = rows[number]
            owned = row.kind == EQUATION or (outer and row.kind in (INPUT, CONSTANT))
            size = self.sizes[number] = row.size if owned else 0
            alive += size
            row.live = alive
            if row.kind == EQUATION and self.opens(row):
                row.live = max(alive, self.inner(number, alive - size))
            most = max(most, row.live)
            alive -= sum([self.sizes[ended] for ended in ends.get(number, ())])
        return most

    def inner(self, number: int, around: float) -> float:
        """The most that is alive while the programs in an equation run."""
        heads = [i for i in self.scopes.get(number, ()) if self.rows[i].kind == HEAD]
        out = [self.run(head, around, outer=False) for head in heads]
        return max(out, default=around)

    def peak(self) -> Peak | None:
        """The innermost row where most is alive, and what is alive there."""
        live = [row.live or 0.0 for row in self.rows]
        most = max(live, default=0.0)
        if not most:
            return None
        row = max([i for i, bytes in enumerate(live) if bytes == most])
        sizes = [(-self.sizes[i], i) for i in self.holders(row) if self.sizes[i]]
        out = [(i, -size) for size, i in sorted(sizes)]
        return Peak(most, row, tuple(out[:HOLDERS]))

    def holders(self, number: int) -> Iterator[int]:
        """The values alive at a row, in its own program and in those around it."""
        rows, first = self.rows, True
        while number >= 0:
            for other in self.scopes.get(rows[number].inside, ()):
                own = first and other == number
                if own or (other < number <= self.last.get(other, number)):
                    yield other
            number, first = self.around(number), False

    def around(self, number: int) -> int:
        """The equation in whose program a row stands; -1 at the top."""
        number = self.rows[number].inside
        while number >= 0 and self.rows[number].kind == HEAD:
            number = self.rows[number].inside
        return number


def last_uses(rows: Sequence[Row], numbers: Sequence[int]) -> dict[int, int]:
    """For each row whose memory is free again, the last row that needs it.

    What has no memory of its own is another view of what it reads.
    """
    last = {i: i for i in numbers if not rows[i].lasting}
    for number in reversed(numbers):
        row = rows[number]
        view = row.kind == EQUATION and not row.size
        at = last[number] if view else number
        for used in row.uses:
            if used in last:
                last[used] = max(last[used], at)
    return last
