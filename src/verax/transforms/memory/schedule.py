"""Floor 3: the memory that a program takes if only some values are kept across a place.

The program is not written for that: its steps are played, and steps that run again are
played where what they make is next read, as `recomputed` would write them.
"""

from collections.abc import Collection, Sequence
from itertools import chain

import numpy as np
from attrs import frozen

from verax.ir.jaxpr import Var
from verax.ir.records import ReprMixin
from verax.rules.rows.row import traits_of
from verax.transforms.memory.storage import (
    Timeline,
    bytes_of,
    computed_where_read,
    inside,
)

type Event = tuple[Sequence[int], Sequence[int], int, bool]
"""Values read and written, bytes inside, and whether a result takes a place."""


@frozen(eq=False, repr=False)
class Played(ReprMixin):
    """What a choice of values costs: the peak in bytes, and operations run again."""

    peak: int
    work: float


class Schedule:
    """The steps of a program around a place, as numbers, to be played often."""

    def __init__(self, line: Timeline, place: int, apart: Collection[Var]) -> None:
        self.steps = line.steps
        self.middle = sum([step.place < place for step in line.steps])
        self.numbers: dict[Var, int] = {}
        self.sizes: list[int] = []
        self.apart = apart
        self.events: list[Event] = []
        self.maker: dict[int, int] = {}
        for i, step in enumerate(line.steps):
            writes = self.of(step.writes)
            self.maker.update(dict.fromkeys(writes, i))
            fuses = computed_where_read(traits_of(step.eqn.primitive))
            self.events.append((self.of(step.reads), writes, inside(step.eqn), fuses))
        self.early = [
            [v for v in reads if self.maker[v] < self.middle]
            for reads, _, _, _ in self.events
        ]

    def of(self, values: Collection[Var]) -> list[int]:
        """The numbers of values, but not of inputs and outputs."""
        result = []
        for v in values:
            if v in self.apart:
                continue
            number = self.numbers.get(v)
            if number is None:
                number = self.numbers[v] = len(self.sizes)
                self.sizes.append(bytes_of(v.aval))
            result.append(number)
        return result

    def crossing(self) -> list[Var]:
        """The values made before the place and read after it."""
        late = {v for step in self.steps[self.middle :] for v in step.reads}
        made = [v for step in self.steps[: self.middle] for v in step.writes]
        return [v for v in made if v in late and v not in self.apart]

    def play(
        self, kept: Collection[Var], away: Collection[Var] = (), price: float = 0
    ) -> Played:
        """The peak, and the work, if only those values are kept.

        Args:
            kept: the values.
            away: those of them that wait on the host.
            price: operations for each of their bytes.
        """
        keeps = {self.numbers[v] for v in kept}
        middle, shift = self.middle, len(self.sizes)
        events = self.events[:middle]
        waiting = {self.numbers[v] for v in away}
        fresh: set[int] = set()
        work = price * sum([self.sizes[v] for v in waiting])
        for event, early in zip(self.events[middle:], self.early[middle:], strict=True):
            needed = [v for v in early if v not in keeps and v not in fresh]
            again = self.again(needed, keeps, fresh) if needed else ()
            for v in self.back(event, again, waiting - fresh) if waiting else ():
                events.append(((), (v + shift,), 0, False))
                fresh.add(v)
            for i in again:
                work += self.steps[i].work
                events.append(self.renamed(self.events[i], fresh, shift, True))
            events.append(self.renamed(event, fresh, shift, False))
        return Played(self.peak(events, shift), work)

    def again(
        self, needed: Sequence[int], keeps: set[int], fresh: set[int]
    ) -> list[int]:
        """The steps to run before one that reads `needed`, early values, in order."""
        numbers: set[int] = set()
        waiting = list(needed)
        while waiting:
            v = waiting.pop()
            i = self.maker[v]
            if v in keeps or v in fresh or i in numbers:
                continue
            numbers.add(i)
            waiting += self.events[i][0]
        for i in numbers:
            fresh.update(self.events[i][1])
        return sorted(numbers)

    def back(self, event: Event, again: Sequence[int], waiting: set[int]) -> list[int]:
        """The values on the host that an event reads, or what runs again before it."""
        reads = [event[0], *[self.events[i][0] for i in again]]
        return sorted(waiting.intersection(set().union(*reads)))

    def renamed(self, event: Event, fresh: set[int], shift: int, again: bool) -> Event:
        """The event with values that were made again."""
        if not fresh:
            return event
        reads = [v + shift if v in fresh else v for v in event[0]]
        writes = [v + shift for v in event[1]] if again else event[1]
        return reads, writes, event[2], event[3]

    def peak(self, events: Sequence[Event], shift: int) -> int:
        """The most bytes in use at a time."""
        if not events:
            return 0
        reads, writes, inner, fuses = zip(*events, strict=True)
        read, reader = flat(reads)
        written, writer = flat(writes)
        sizes = np.array([*self.sizes, *self.sizes], np.int64)
        last = np.full(2 * shift, -1)
        last[read] = reader  # the last one stays
        ending = last[read] == reader
        read, reader = read[ending], reader[ending]
        new = by_event(writer, sizes[written], len(events))
        ends = by_event(reader, sizes[read], len(events))
        lasting = last[written] > writer
        kept = by_event(writer[lasting], sizes[written][lasting], len(events))
        now = np.cumsum(kept - ends)
        placed = np.zeros(len(events), bool)
        placed[reader[sizes[read] == new[reader]]] = True
        here = new + inner - np.where(placed & np.array(fuses), new, 0)
        here[1:] += now[:-1]
        return max(int(here.max()), 0)

    def widths(self) -> tuple[np.ndarray, np.ndarray, list[tuple[int, int, int]]]:
        """Bytes alive before each early step, bytes it makes, and lives of values.

        A life is (first step, last early step that reads the value, step's place).
        """
        n = self.middle
        last: dict[int, int] = {}
        for i in range(n):
            for v in self.events[i][0]:
                last[v] = i
        change = np.zeros(n + 2)
        made = np.zeros(n)
        lives = []
        for i in range(n):
            for v in self.events[i][1]:
                made[i] += self.sizes[v]
                end = last.get(v, i)
                lives.append((i, end, self.steps[i].place))
                change[i + 1] += self.sizes[v]
                change[end + 1] -= self.sizes[v]
        return np.cumsum(change)[: n + 1], made, lives

    def borders(self, parts: int) -> tuple[int, ...]:
        """The early steps before which a part begins: where little is alive."""
        width, made, _ = self.widths()
        ends = np.concatenate([[0.0], np.cumsum(made)])
        half = ends[-1] / parts / 2
        cuts = set()
        for k in range(1, parts):
            middle = ends[-1] * k / parts
            low = int(np.searchsorted(ends, middle - half))
            high = max(int(np.searchsorted(ends, middle + half)), low + 1)
            if low < len(made) and high - low > 0 and half > 0:
                off = np.abs(ends[low:high] - middle) / half
                cuts.add(low + int(np.argmin(width[low:high] * (1 + 0.1 * off))))
        return tuple(sorted(cuts))

    def crossing_borders(self, borders: Sequence[int]) -> set[int]:
        """The places of steps whose results are read in a later part."""
        _, _, lives = self.widths()
        part = np.searchsorted(borders, np.arange(self.middle + 1), side="right")
        return {place for first, end, place in lives if part[first] != part[end]}


def flat(lists: Sequence[Sequence[int]]) -> tuple[np.ndarray, np.ndarray]:
    """The numbers of all lists, and for each the list that it is in."""
    counts = np.fromiter(map(len, lists), np.intp, len(lists))
    numbers = np.fromiter(chain.from_iterable(lists), np.intp, int(counts.sum()))
    return numbers, np.repeat(np.arange(len(lists)), counts)


def by_event(events: np.ndarray, sizes: np.ndarray, count: int) -> np.ndarray:
    """The sum of sizes at each event."""
    return np.bincount(events, sizes, count).astype(np.int64)
