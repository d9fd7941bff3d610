"""Floor 3: runs of a sequence that occur again, found in near-linear time.

A window of symbols has a number, made of the numbers of its halves; windows of equal
numbers are sorted together, and the longest windows that repeat are looked at first::

    Repeats(symbols, defined, least=2).best()      # Repeat(starts=(1, 7), length=5)

What a position reads is known by the positions that define it: occurrences agree if
each reads the same of its own part, wherever the rest comes from.
"""

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from verax.ir.records import ReprMixin

type Ints = NDArray[np.int64]
type Hashes = NDArray[np.uint64]

# Odd, as every second one of its powers, so that no multiplication loses a symbol.
FACTOR: Final = 0x9E3779B97F4A7C15

# How many of the windows of a width are looked at.
TRIED: Final = 2
# How many symbols are compared for each: a run that occurs often is a short one.
COMPARED: Final = 1 << 14


@frozen(repr=False)
class Repeat(ReprMixin):
    """Runs of `length` symbols, without overlap, that are equal to each other."""

    starts: tuple[int, ...]
    length: int

    @property
    def saved(self) -> int:
        """How many symbols there would be less if the run were written once."""
        return (len(self.starts) - 1) * self.length

    @property
    def worth(self) -> int:
        """What it saves; half as much again where each run follows upon the last one.

        These are the blocks of a network. One that lacks its end, as the last one may,
        shall not cost all others theirs.
        """
        adjacent = self.starts[-1] - self.starts[0] == self.length * (
            len(self.starts) - 1
        )
        return self.saved * (3 if adjacent else 2)


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

    def best(self, free: NDArray[np.bool_]) -> Repeat | None:
        """The repeat that saves most among positions that are `free`."""
        places, symbols = self.joined(free)
        best: Repeat | None = None
        for width, numbers in windows(symbols, self.least):
            for positions in promising(numbers, width):
                found = self.at(places, symbols, positions, width)
                if found and (best is None or found.worth > best.worth):
                    best = found
        return best

    def joined(self, free: NDArray[np.bool_]) -> tuple[Ints, Ints]:
        """The free positions, with one of no equal for each gap, and their symbols."""
        kept = free.copy()
        kept[1:] |= free[:-1]
        places = np.flatnonzero(kept)
        symbols = np.where(free, self.symbols, -1 - np.arange(len(free)))
        return places, symbols[places]

    def at(
        self, places: Ints, symbols: Ints, positions: Ints, width: int
    ) -> Repeat | None:
        """The best repeat whose runs start at some of these places."""
        span, count = int(positions[-1] - positions[0]), len(positions)
        reach = min(span, max(width, COMPARED // count))
        read = positions[:, None] + np.arange(reach)
        rows = symbols[np.minimum(read, len(symbols) - 1)]
        differ = (rows != rows[0]) | (read >= len(symbols))
        alike = np.where(differ.any(1), differ.argmax(1), reach)
        gap = int(np.diff(positions).min())
        least = -(-self.least // gap) * gap
        best: Repeat | None = None
        for length in sorted({gap, least, width, *alike.tolist()}):
            if length < self.least:
                continue
            members = spaced(positions[alike >= length], length)
            if len(members) < 2:
                continue
            starts = tuple([int(places[i]) for i in members])
            if best is None or Repeat(starts, length).worth > best.worth:
                best = self.agreeing(starts, length) or best
        return best

    def agreeing(self, starts: tuple[int, ...], length: int) -> Repeat | None:
        """The runs as far as all of them read the same of their own parts."""
        inside = [self.inside(start, length) for start in starts]
        wrong = np.zeros(len(inside[0]), bool)
        for other in inside[1:]:
            wrong |= other != inside[0]
        if wrong.any():
            operand = int(self.first[starts[0]]) + int(wrong.argmax())
            where = int(np.searchsorted(self.first, operand, "right")) - 1
            length = where - starts[0]
        return Repeat(starts, length) if length >= self.least else None

    def inside(self, start: int, length: int) -> Ints:
        """For each operand of a run which position of the run it is, or -1."""
        read = self.defined[self.first[start] : self.first[start + length]]
        return np.maximum(read - start, -1)


def promising(numbers: Hashes, width: int) -> list[Ints]:
    """Positions of the windows that repeat, a few of those that may save most."""
    order = np.argsort(numbers, kind="stable")
    ordered = numbers[order]
    heads = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    counts = np.diff(np.r_[heads, len(order)])
    if counts.max(initial=1) < 2:
        return []
    ends = order[heads + counts - 1]
    span = ends - order[heads]
    # Occurrences that overlap are those of a shorter period.
    saved = np.minimum((counts - 1) * width, span)
    saved[span < width] = 0
    # Of those that save as much, the first: there the runs begin.
    chosen = np.lexsort((order[heads], -saved))[:TRIED]
    return [order[heads[i] : heads[i] + counts[i]] for i in chosen.tolist() if saved[i]]


def spaced(positions: Sequence[int] | Ints, length: int) -> list[int]:
    """Those of the positions, in order, that are at least `length` apart."""
    found: list[int] = []
    for position in positions:
        if not found or position >= found[-1] + length:
            found.append(int(position))
    return found
