"""The memory that a program needs, row by row (floor 6).

A result is in memory from its equation to the last row that reads it; arguments are the
caller's and stay, unless they are donated; what a program inside makes adds to what is
there around it. Nothing is known here of what a compiler joins or stores twice::

    peak = fill_live(rows)
    rows[peak.row].live == peak.bytes
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from attrs import frozen

from verax.explorer.rows.row import CONSTANT, EQUATION, HEAD, INPUT, Row
from verax.ir.records import ReprMixin

HOLDERS: Final = 40
"""How many of the results that make up a peak are listed."""


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
        found = [self.run(head, around, outer=False) for head in heads]
        return max(found, default=around)

    def peak(self) -> Peak | None:
        """The innermost row where most is alive, and what is alive there."""
        live = [row.live or 0.0 for row in self.rows]
        most = max(live, default=0.0)
        if not most:
            return None
        row = max([i for i, bytes in enumerate(live) if bytes == most])
        sizes = [(-self.sizes[i], i) for i in self.holders(row) if self.sizes[i]]
        found = [(i, -size) for size, i in sorted(sizes)]
        return Peak(most, row, tuple(found[:HOLDERS]))

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
