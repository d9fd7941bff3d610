"""Floor 3: runs of a sequence that occur again, found in near-linear time.

A window of symbols has a number, made of the numbers of its halves; windows of equal
numbers are sorted together, and the longest windows that repeat are looked at first::

    Repeats(symbols, defined, first, least=2).best(free, saved=2)    # Repeat((1, 7), 5)

What a position reads is known by the positions that define it: occurrences agree if
each reads the same of its own part, wherever the rest comes from.
"""

from collections.abc import Iterator, Sequence
from itertools import islice
from operator import attrgetter
from typing import Final

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from verax.ir.records import ReprMixin

type Ints = NDArray[np.int64]
type Hashes = NDArray[np.uint64]

# Odd, as every second one of its powers, so that no multiplication loses a symbol.
FACTOR: Final = 0x9E3779B97F4A7C15

# How many windows are looked at, and where.
TRIED: Final = 4
LOOKED_AT: Final = 16
# How often as many symbols as there are may be compared for each.
COMPARED: Final = 4


# See `Repeat.worth`.
ADJACENT: Final = 3

# Of so many symbols of a run, one at most is lacking in the last one.
LACKING: Final = 3


@frozen(repr=False)
class Repeat(ReprMixin):
    """Runs of `length` symbols, without overlap, that are equal to each other.

    The last one may lack some: then `last` has the places in a run of those that it
    has, in order.
    """

    starts: tuple[int, ...]
    length: int
    last: tuple[int, ...] = ()

    @property
    def spans(self) -> list[tuple[int, int]]:
        """Where each run starts and stops."""
        found = [(start, start + self.length) for start in self.starts]
        if self.last:
            found[-1] = (self.starts[-1], self.starts[-1] + len(self.last))
        return found

    @property
    def saved(self) -> int:
        """How many symbols there would be less if the run were written once."""
        return sum([stop - start for start, stop in self.spans[1:]])

    @property
    def worth(self) -> int:
        """What it saves; half as much again where each run follows upon the last one.

        These are the blocks of a network. One that lacks its end, as the last one may,
        shall not cost all others theirs.
        """
        adjacent = self.starts[-1] - self.starts[0] == self.length * (
            len(self.starts) - 1
        )
        return self.saved * (ADJACENT if adjacent else 2)


WORTH: Final = attrgetter("worth")


def windows(symbols: Ints, least: int) -> Iterator[tuple[int, Hashes]]:
    """Widths, powers of two from below `least` on, and a number for each window.

    Windows with equal symbols have equal numbers. It ends where none can repeat.
    """
    width, factor, mask = 1, FACTOR, (1 << 64) - 1
    found = mixed(symbols)
    while width * 2 <= len(symbols):
        if width * 2 > least:
            yield width, found
        found = found[:-width] * np.uint64(factor) + found[width:]
        factor = factor * factor & mask
        width *= 2


def mixed(symbols: Ints) -> Hashes:
    """Symbols as numbers of 64 bits that look random (the finaliser of splitmix64)."""
    x = symbols.astype(np.uint64) + np.uint64(FACTOR)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def repeating(symbols: Ints, least: int) -> int:
    """In how many places a window of about `least` symbols starts that occurs again."""
    for _, numbers in windows(symbols, least):
        ordered = np.sort(numbers)
        return int(np.count_nonzero(ordered[1:] == ordered[:-1]))
    return 0


@frozen(eq=False, repr=False)
class Repeats(ReprMixin):
    """A sequence with what each of its positions reads.

    Attributes:
        symbols: at each position a number; equal ones have as many operands.
        defined: for each operand of each position in turn, where it is defined, a
            position, or less than 0 outside of the sequence.
        first: where the operands of each position begin in `defined`, and their end.
        least: how long a run must be.
    """

    symbols: Ints
    defined: Ints
    first: Ints
    least: int

    def best(self, free: NDArray[np.bool_], saved: int) -> Repeat | None:
        """The repeat that saves most, at least `saved`, among `free` positions."""
        places, symbols = self.joined(free)
        best: Repeat | None = None
        for positions, period in promising(symbols, self.least):
            # Runs do not overlap, so that no more is saved than what lies between.
            span = int(positions[-1] - positions[0])
            if span < saved or (best and span * ADJACENT <= best.worth):
                continue
            found = self.at(places, symbols, positions, period)
            if found and (best is None or found.worth > best.worth):
                best = found
        return best if best and best.saved >= saved else None

    def completed(
        self, repeat: Repeat, free: NDArray[np.bool_], light: NDArray[np.bool_]
    ) -> Repeat:
        """The same with one run more, which follows upon the last one and lacks some.

        It lacks few, which are `light`: a block calculates them in vain.
        """
        start = repeat.starts[-1] + repeat.length
        places = self.aligned(repeat, start, free)
        lacking = np.ones(repeat.length, bool)
        lacking[list(places)] = False
        heavy = lacking & ~light[repeat.starts[0] : repeat.starts[0] + repeat.length]
        if heavy.any() or not 0 < lacking.sum() * LACKING <= repeat.length:
            return repeat
        return Repeat((*repeat.starts, start), repeat.length, places)

    def aligned(
        self, repeat: Repeat, start: int, free: NDArray[np.bool_]
    ) -> tuple[int, ...]:
        """The places in a run of the symbols from `start` on, as far as they agree."""
        begin, count = repeat.starts[0], len(self.symbols)
        # For each symbol of the run so far, where it stands here, or -2.
        found: list[int] = []
        here = start
        for there in range(begin, begin + repeat.length):
            if here == count or not free[here]:
                break
            alike = bool(self.symbols[here] == self.symbols[there])
            if alike:
                reads = [
                    found[d - begin] if d >= begin else -1 for d in self.reads(there)
                ]
                alike = reads == [d if d >= start else -1 for d in self.reads(here)]
            found.append(here if alike else -2)
            here += alike
        return tuple([i for i, at in enumerate(found) if at >= 0])

    def reads(self, position: int) -> list[int]:
        """Where the operands of a position are defined."""
        here = slice(self.first[position], self.first[position + 1])
        found: list[int] = self.defined[here].tolist()
        return found

    def joined(self, free: NDArray[np.bool_]) -> tuple[Ints, Ints]:
        """The free positions, with one of no equal for each gap, and their symbols."""
        kept = free.copy()
        kept[1:] |= free[:-1]
        places = np.flatnonzero(kept)
        symbols = np.where(free, self.symbols, -1 - np.arange(len(free)))
        return places, symbols[places]

    def at(
        self, places: Ints, symbols: Ints, positions: Ints, period: int
    ) -> Repeat | None:
        """The best repeat whose runs start at some of these places."""
        # Never much more in all than there are symbols.
        most = COMPARED * len(symbols) // len(positions)
        reach = max(min(period, most), 2 * self.least)
        read = positions[:, None] + np.arange(reach)
        rows = symbols[np.minimum(read, len(symbols) - 1)]
        differ = (rows != rows[0]) | (read >= len(symbols))
        alike = np.where(differ.any(1), differ.argmax(1), reach)
        gap = int(np.diff(positions).min())
        least = -(-self.least // gap) * gap
        likely: list[Repeat] = []
        for length in sorted({gap, least, period, *alike.tolist()}):
            members = spaced(positions[alike >= length], length)
            if length >= self.least and len(members) > 1:
                starts = tuple([int(places[i]) for i in members])
                likely.append(Repeat(starts, length))
        best: Repeat | None = None
        for repeat in sorted(likely, key=WORTH, reverse=True):
            if best is None or repeat.worth > best.worth:
                found = self.agreeing(repeat.starts, repeat.length)
                if found and (best is None or found.worth > best.worth):
                    best = found
        return best

    def agreeing(self, starts: tuple[int, ...], length: int) -> Repeat | None:
        """The runs as far as all of them read the same of their own parts.

        Or those of them that agree with most others, where that saves more.
        """
        begin: Ints = np.array(starts)[:, None]
        count = self.first[starts[0] + length] - self.first[starts[0]]
        read = self.defined[self.first[begin] + np.arange(count)] - begin
        # Position in the run, or -1.
        inside = np.maximum(read, -1)
        wrong = inside != inside[len(starts) // 2]
        if not wrong.any():
            return Repeat(starts, length)
        operand = int(self.first[starts[0]]) + int(wrong.any(0).argmax())
        shorter = int(np.searchsorted(self.first, operand, "right")) - 1 - starts[0]
        fewer = tuple(begin[~wrong.any(1), 0].tolist())
        found = [Repeat(fewer, length)]
        if shorter >= self.least:
            found.append(Repeat(starts, shorter))
        return max(found, key=WORTH)


def promising(symbols: Ints, least: int) -> Iterator[tuple[Ints, int]]:
    """Positions of equal windows, a few of those that may save most, with their period.

    Where something repeats, it is equally far to the next place that looks the same,
    seen through the widest window that has one, for many positions in a row.
    """
    count = len(symbols)
    step: Ints = np.zeros(count, np.int64)
    level: Ints = np.zeros(count, np.int64)
    found: list[tuple[int, Hashes]] = []
    for width, numbers in islice(windows(symbols, least), 0, 5, 2):
        order = np.argsort(numbers, kind="stable")
        ordered = numbers[order]
        (at,) = np.nonzero(ordered[1:] == ordered[:-1])
        if not len(at):
            break
        here = order[at]
        step[here] = order[at + 1] - here
        level[here] = len(found)
        found.append((width, numbers))
    heads = np.flatnonzero(np.concatenate([[True], step[1:] != step[:-1]]))[:count]
    length = np.diff(np.append(heads, count)) * (step[heads] > 0)
    tried: list[Ints] = []
    # Of those that are as long, the first: there the runs begin.
    for start in heads[np.argsort(-length, kind="stable")[:LOOKED_AT]].tolist():
        period = int(step[start])
        if not period or any([start in other for other in tried]):
            continue
        # The last of the runs may end before a wider window does.
        narrow = [numbers for width, numbers in found[1:] if width <= period]
        numbers = [found[0][1], *narrow][min(level[start], len(narrow))]
        positions = np.flatnonzero(numbers == numbers[start])
        tried.append(positions)
        yield positions, period
        if len(tried) == TRIED:
            return


def spaced(positions: Sequence[int] | Ints, length: int) -> list[int]:
    """Those of the positions, in order, that are at least `length` apart."""
    found: list[int] = []
    for position in positions:
        if not found or position >= found[-1] + length:
            found.append(int(position))
    return found
