"""Floor 3: the memory that a program takes if only some values are kept across a place.

The program is not written for that: its steps are played, and steps that run again are
played where what they make is next read, as `recomputed` would write them.
"""

from collections.abc import Collection, Sequence
from functools import cached_property
from itertools import chain

import numpy as np
from attrs import frozen

from verax.ir.jaxpr import Var
from verax.ir.records import ReprMixin
from verax.rules.rows.row import NDArray, traits_of
from verax.transforms.memory.storage import (
    Timeline,
    bytes_of,
    computed_where_read,
    inside,
)


@frozen(eq=False, repr=False)
class Played(ReprMixin):
    """What a choice of values costs: the peak in bytes, and operations run again."""

    peak: int
    work: float


@frozen(eq=False, repr=False)
class Lists(ReprMixin):
    """Lists of numbers, one after the other: where each begins, and its length."""

    numbers: NDArray
    starts: NDArray
    counts: NDArray

    @classmethod
    def of(cls, lists: Sequence[Sequence[int]]) -> "Lists":
        """The lists in one array."""
        counts = np.fromiter(map(len, lists), np.intp, len(lists))
        whole = np.fromiter(chain.from_iterable(lists), np.intp, int(counts.sum()))
        return cls(whole, np.cumsum(counts) - counts, counts)

    def of_all(self, chosen: NDArray) -> tuple[NDArray, NDArray]:
        """The numbers of chosen lists, and for each which choice it is of."""
        counts = self.counts[chosen]
        owner = np.repeat(np.arange(len(chosen)), counts)
        first = self.starts[chosen] - (np.cumsum(counts) - counts)
        return self.numbers[first[owner] + np.arange(len(owner))], owner


class Schedule:
    """The steps of a program around a place, as numbers, to be played often."""

    def __init__(self, line: Timeline, place: int, apart: Collection[Var]) -> None:
        self.steps = line.steps
        self.middle = sum([step.place < place for step in line.steps])
        self.numbers: dict[Var, int] = {}
        self.sizes: list[int] = []
        self.apart = apart
        self.works = [step.work for step in line.steps]
        self.reads: list[list[int]] = []
        self.writes: list[list[int]] = []
        self.maker: dict[int, int] = {}
        for i, step in enumerate(line.steps):
            writes = self.of(step.writes)
            self.maker.update(dict.fromkeys(writes, i))
            self.writes.append(writes)
            self.reads.append(self.of(step.reads))
        self.early = [
            (i, early)
            for i, reads in enumerate(self.reads[self.middle :], self.middle)
            if (early := [v for v in reads if self.maker[v] < self.middle])
        ]
        self.arrange()

    def arrange(self) -> None:
        """Put what is played in arrays.

        After the steps come transfers, which read nothing, one for each value.
        """
        count = len(self.sizes)
        nothing, each = [()] * count, [(v,) for v in range(count)]
        self.read = Lists.of([*self.reads, *nothing])
        self.written = Lists.of([*self.writes, *each])
        fuses = [
            computed_where_read(traits_of(step.eqn.primitive)) for step in self.steps
        ]
        self.fuses = np.array([*fuses, *[False] * count], bool)
        inner = [inside(step.eqn) for step in self.steps]
        self.inner = np.array([*inner, *[0] * count], np.int64)
        self.both_sizes = np.array([*self.sizes, *self.sizes], np.int64)

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

    def mask(self, values: Collection[Var]) -> NDArray:
        """Which of all values those are."""
        result = np.zeros(len(self.sizes), bool)
        result[[self.numbers[v] for v in values]] = True
        return result

    def play(self, kept: NDArray, away: NDArray, price: float = 0) -> Played:
        """The peak, and the work, if only those values are kept.

        Args:
            kept: which values are.
            away: which of them wait on the host.
            price: operations for each of their bytes.
        """
        keeps: list[bool] = kept.tolist()
        waiting = set(np.flatnonzero(away).tolist())
        work = price * sum([self.sizes[v] for v in waiting])
        fresh: dict[int, int] = {}
        order: list[int] = []
        repeated: list[tuple[int, int, int]] = []
        done = 0
        for i, early in self.early:
            needed = [v for v in early if not keeps[v] and v not in fresh]
            again = self.again(needed, keeps, fresh, i) if needed else ()
            back = self.back(i, again, waiting, fresh) if waiting else ()
            if again or back:
                order.extend(range(done, i))
                done, first = i, len(order)
                order.extend([len(self.steps) + v for v in back])
                order.extend(again)
                fresh.update(dict.fromkeys(back, i))
                repeated.append((first, len(order), i))
                for number in again:
                    work += self.works[number]
        order.extend(range(done, len(self.steps)))
        return Played(self.peak(np.array(order, np.intp), repeated, fresh), work)

    def again(
        self,
        needed: Sequence[int],
        keeps: Sequence[bool],
        fresh: dict[int, int],
        i: int,
    ) -> list[int]:
        """The steps to run before step `i`, which reads early values, in order.

        What they make is fresh from then on.
        """
        numbers: set[int] = set()
        waiting = list(needed)
        while waiting:
            v = waiting.pop()
            if keeps[v] or v in fresh:
                continue
            maker = self.maker[v]
            if maker not in numbers:
                numbers.add(maker)
                waiting += self.reads[maker]
        for number in numbers:
            fresh.update(dict.fromkeys(self.writes[number], i))
        return sorted(numbers)

    def back(
        self, i: int, again: Sequence[int], waiting: set[int], fresh: dict[int, int]
    ) -> list[int]:
        """The values on the host that a step reads, or what runs again before it."""
        reads = {v for step in (i, *again) for v in self.reads[step]}
        return sorted([v for v in waiting & reads if v not in fresh])

    def peak(
        self,
        order: NDArray,
        repeated: Sequence[tuple[int, int, int]],
        fresh: dict[int, int],
    ) -> int:
        """The most bytes in use at a time.

        Args:
            order: the steps in the order in which they run.
            repeated: parts of it that run again, or bring values back: where each
                begins and ends, and the step before which that is.
            fresh: values that are made again, and before which step.
        """
        count = len(order)
        if not count:
            return 0
        shift, sizes = len(self.sizes), self.both_sizes
        read, reader = self.read.of_all(order)
        written, writer = self.written.of_all(order)
        if fresh:
            moment, again = order.copy(), np.zeros(count, bool)
            for first, end, i in repeated:
                moment[first:end], again[first:end] = i, True
            since = np.full(shift, len(self.steps) + shift)
            since[list(fresh)] = list(fresh.values())
            read = read + shift * (since[read] <= moment[reader])
            written = written + shift * again[writer]
        last = np.full(2 * shift, -1)
        last[read] = reader  # the last one stays
        ending = last[read] == reader
        read, reader = read[ending], reader[ending]
        new = by_event(writer, sizes[written], count)
        ends = by_event(reader, sizes[read], count)
        lasting = last[written] > writer
        kept = by_event(writer[lasting], sizes[written][lasting], count)
        now = np.cumsum(kept - ends)
        placed = np.zeros(count, bool)
        placed[reader[sizes[read] == new[reader]]] = True
        here = new + self.inner[order] - np.where(placed & self.fuses[order], new, 0)
        here[1:] += now[:-1]
        return max(int(here.max()), 0)

    @cached_property
    def widths(self) -> tuple[NDArray, NDArray, NDArray]:
        """Bytes alive before each early step, bytes it makes, and lives of values.

        A life is a row: first step, last early step that reads the value, its place.
        """
        n = self.middle
        last: dict[int, int] = {}
        for i in range(n):
            last.update(dict.fromkeys(self.reads[i], i))
        change = np.zeros(n + 2)
        made = np.zeros(n)
        lives = []
        for i in range(n):
            for v in self.writes[i]:
                made[i] += self.sizes[v]
                end = last.get(v, i)
                lives.append((i, end, self.steps[i].place))
                change[i + 1] += self.sizes[v]
                change[end + 1] -= self.sizes[v]
        rows = np.array(lives, np.intp).reshape(-1, 3)
        return np.cumsum(change)[: n + 1], made, rows

    def borders(self, parts: int) -> tuple[int, ...]:
        """The early steps before which a part begins: where little is alive."""
        width, made, _ = self.widths
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
        _, _, lives = self.widths
        part = np.searchsorted(borders, np.arange(self.middle + 1), side="right")
        crosses = part[lives[:, 0]] != part[lives[:, 1]]
        return set(lives[crosses, 2].tolist())


def by_event(events: NDArray, sizes: NDArray, count: int) -> NDArray:
    """The sum of sizes at each event."""
    return np.bincount(events, sizes, count).astype(np.int64)
