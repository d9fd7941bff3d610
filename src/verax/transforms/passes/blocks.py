"""Floor 3: what runs of equal equations become: the program of one, and calls of it.

What a run reads from outside is an operand of its call, and differs between the runs.
Values that are cheap to compute from what is there anyway are computed again, so that
the call does not keep what XLA would not have kept::

    block = Block(part, repeat)
    block.jaxpr             # { lambda ; a b c. let ... in (d, e) }
    block.operands          # {(x, y): 0, ...}: per input, the atom that each run passes

A backward pass reads what the forward pass has saved: without that, a program of blocks
would need twice the memory.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from heapq import heapify, heappop, heappush
from itertools import chain, count, islice
from operator import attrgetter
from typing import Final

import numpy as np
from attrs import frozen
from numpy.typing import NDArray
from pyrsistent import PVector, pvector

from verax.ir.jaxpr import (
    NO_PARAMS,
    Atom,
    Eqn,
    Jaxpr,
    Literal,
    Params,
    Var,
    equation,
    results_like,
    variable,
)
from verax.ir.records import ReprMixin
from verax.rules.rows.row import Work, traits_of

# -----------------------------------------------------------------------------
# Values that flow through block after block by cheap equations alone.
#
# XLA joins an addition to each operation that reads the sum. In a network whose blocks
# all add to one stream it so writes the sums of all earlier blocks into each block: a
# program of quadratic size, which computes these sums again and again. Where a block is
# a function, its operands and results are stored, and that ends::
#
#     flows(jaxpr, 0)     # the outputs that only cheap operations separate from input 0


def may_stream(eqns: Sequence[Eqn]) -> bool:
    """Whether there may be several blocks in a program, at a glance."""
    return sum([traits_of(eqn.primitive).work is Work.BLOCK for eqn in eqns]) > 1


def flows(jaxpr: Jaxpr, number: int) -> set[int]:
    """The outputs to which an input flows through cheap equations alone."""
    reached = {number}
    for eqn in jaxpr.eqns:
        cheap = traits_of(eqn.primitive).work is Work.CHEAP
        if cheap and reads(eqn.invars, reached):
            reached.update([v.index for v in eqn.outvars])
    return {i for i, atom in enumerate(jaxpr.outvars) if reads((atom,), reached)}


def reads(atoms: Iterable[Atom], variables: set[int]) -> bool:
    """Whether any of the atoms is one of the variables."""
    return any([type(a) is Var and a.index in variables for a in atoms])


def streams(
    jaxpr: Jaxpr, ins: Sequence[Sequence[Atom]], outs: Sequence[Sequence[Var]]
) -> bool:
    """Whether a value flows through calls of a program that stores others between.

    `ins` and `outs` are the operands and the results of the calls.
    """
    works = {traits_of(eqn.primitive).work for eqn in jaxpr.eqns}
    if Work.WHOLE in works or Work.BLOCK not in works:
        return False
    made = {v.index: i for results in outs for i, v in enumerate(results)}
    for number in range(len(jaxpr.invars)):
        passed = [operands[number] for operands in ins]
        sources = {made.get(a.index) for a in passed if not isinstance(a, Literal)}
        if sources - {None} and sources & flows(jaxpr, number):
            return True
    return False


# -----------------------------------------------------------------------------
# Runs of a sequence that occur again, found in near-linear time.
#
# A window of symbols has a number, made of the numbers of its halves; windows of equal
# numbers are sorted together, and the longest windows that repeat are looked at first::
#
#     # Repeat((1, 7), 5)
#     Repeats(symbols, defined, first, least=2).best(free, saved=2)
#
# What a position reads is known by the positions that define it: occurrences agree if
# each reads the same of its own part, wherever the rest comes from.


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
        """The start and stop of each run."""
        out = [(start, start + self.length) for start in self.starts]
        if self.last:
            out[-1] = (self.starts[-1], self.starts[-1] + len(self.last))
        return out

    @property
    def saved(self) -> int:
        """The number of symbols saved if the run were written once."""
        return sum([stop - start for start, stop in self.spans[1:]])

    @property
    def worth(self) -> int:
        """The saving; half as much again where each run follows upon the last one.

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
    values = mixed(symbols)
    while width * 2 <= len(symbols):
        if width * 2 > least:
            yield width, values
        values = values[:-width] * np.uint64(factor) + values[width:]
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
            result = self.at(places, symbols, positions, period)
            if result and (best is None or result.worth > best.worth):
                best = result
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
        out: list[int] = []
        here = start
        for there in range(begin, begin + repeat.length):
            if here == count or not free[here]:
                break
            alike = bool(self.symbols[here] == self.symbols[there])
            if alike:
                reads = [
                    out[d - begin] if d >= begin else -1 for d in self.reads(there)
                ]
                alike = reads == [d if d >= start else -1 for d in self.reads(here)]
            out.append(here if alike else -2)
            here += alike
        return tuple([i for i, at in enumerate(out) if at >= 0])

    def reads(self, position: int) -> list[int]:
        """The definitions of the operands of a position."""
        here = slice(self.first[position], self.first[position + 1])
        out: list[int] = self.defined[here].tolist()
        return out

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
                result = self.agreeing(repeat.starts, repeat.length)
                if result and (best is None or result.worth > best.worth):
                    best = result
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
        out = [Repeat(fewer, length)]
        if shorter >= self.least:
            out.append(Repeat(starts, shorter))
        return max(out, key=WORTH)


def promising(symbols: Ints, least: int) -> Iterator[tuple[Ints, int]]:
    """Positions of equal windows, a few of those that may save most, with their period.

    Where something repeats, it is equally far to the next place that looks the same,
    seen through the widest window that has one, for many positions in a row.
    """
    count = len(symbols)
    step: Ints = np.zeros(count, np.int64)
    level: Ints = np.zeros(count, np.int64)
    result: list[tuple[int, Hashes]] = []
    for width, numbers in islice(windows(symbols, least), 0, 5, 2):
        order = np.argsort(numbers, kind="stable")
        ordered = numbers[order]
        (at,) = np.nonzero(ordered[1:] == ordered[:-1])
        if not len(at):
            break
        here = order[at]
        step[here] = order[at + 1] - here
        level[here] = len(result)
        result.append((width, numbers))
    heads = np.flatnonzero(np.concatenate([[True], step[1:] != step[:-1]]))[:count]
    length = np.diff(np.append(heads, count)) * (step[heads] > 0)
    tried: list[Ints] = []
    # Of those that are as long, the first: there the runs begin.
    for start in heads[np.argsort(-length, kind="stable")[:LOOKED_AT]].tolist():
        period = int(step[start])
        if not period or any([start in other for other in tried]):
            continue
        # The last of the runs may end before a wider window does.
        narrow = [numbers for width, numbers in result[1:] if width <= period]
        numbers = [result[0][1], *narrow][min(level[start], len(narrow))]
        positions = np.flatnonzero(numbers == numbers[start])
        tried.append(positions)
        yield positions, period
        if len(tried) == TRIED:
            return


def spaced(positions: Sequence[int] | Ints, length: int) -> list[int]:
    """Those of the positions, in order, that are at least `length` apart."""
    out: list[int] = []
    for position in positions:
        if not out or position >= out[-1] + length:
            out.append(int(position))
    return out


type Passed = tuple[int, ...]
"""One place in a run: the number of an atom for each of the runs."""
type Maker = tuple[int, Ints | None]
"""The last equation that makes a part of what the runs pass, or -1; with it all of
them, if they are cheap, and of one kind."""
type Marks = NDArray[np.bool_]

DEPTH: Final = 4
"""So many equations that make one another are looked at, to see what a value takes."""
SMALL: Final = 16
"""Of so many elements of the largest array, a small one has one."""

invars_of: Final = attrgetter("invars")
outvars_of: Final = attrgetter("outvars")


@frozen(eq=False, repr=False)
class Part(ReprMixin):
    """The equations of a program as a sequence in which runs are looked for.

    Atoms have numbers: variables their index, literals negative ones.

    Attributes:
        eqns: the equations.
        kinds: for each equation a number, equal for those that may be joined.
        atoms: what is read, by its number.
        read: the operands of all equations in turn, as numbers.
        first: where the operands of each equation begin in `read`, and their end.
        results: the results of all equations in turn.
        made: the same as numbers.
        begin: where the results of each equation begin in `results`, and their end.
        position: by the index of a variable, the equation that defines it; -1 for what
            none does. The last place is for literals.
        ends: which variables are outputs of the program.
        repeats: the equations as symbols with their operands.
    """

    eqns: Sequence[Eqn]
    kinds: Ints
    atoms: dict[int, Atom]
    read: Ints
    first: Ints
    results: Sequence[Var]
    made: Ints
    begin: Ints
    position: Ints
    ends: Marks
    repeats: Repeats

    def makers(self, passed: Sequence[Passed], small: int) -> dict[Passed, Maker]:
        """The makers of each of these; arrays of up to `small` elements are cheap."""
        if not passed:
            return {}
        values = self.position[np.maximum(np.array(passed, np.int64), -1)]
        kinds = self.kinds[values]
        alike = (values >= 0).all(1) & (kinds[:, 0] >= 0)
        alike &= (kinds == kinds[:, :1]).all(1)
        rows = zip(passed, values.max(1).tolist(), alike.tolist(), values, strict=True)
        return {
            p: (last, eqns if one and is_cheap(self.eqns[last], small) else None)
            for p, last, one, eqns in rows
        }

    @cached_property
    def light(self) -> Marks:
        """Flags of the equations that take little time."""
        return np.array([traits_of(eqn.primitive).light for eqn in self.eqns], bool)

    def operands(self, eqns: Ints) -> list[Passed]:
        """For each operand of equations of one kind, what takes its place."""
        start = self.first[eqns]
        places = start[:, None] + np.arange(self.first[eqns[0] + 1] - start[0])
        return [tuple(column) for column in self.read[places].T.tolist()]

    def marked(self, numbers: Ints) -> Marks:
        """Flags of the variables that are among the numbers."""
        out = np.zeros(len(self.position), bool)
        out[numbers[numbers >= 0]] = True
        return out


def is_cheap(eqn: Eqn, small: int) -> bool:
    """Whether values are computed again; those of up to `small` elements take more."""
    work = traits_of(eqn.primitive).work
    if work is not Work.ROOT:
        return work is Work.CHEAP
    aval = eqn.outvars[0].aval
    return not aval.symbolic and aval.size <= small


def part_of(eqns: Sequence[Eqn], outvars: Sequence[Atom], least: int) -> Part:
    """The equations of a program with these outputs; runs have at least `least`."""
    operands = list(chain.from_iterable(map(invars_of, eqns)))
    results = list(chain.from_iterable(map(outvars_of, eqns)))
    first = bounds([len(eqn.invars) for eqn in eqns])
    begin = bounds([len(eqn.outvars) for eqn in eqns])
    numbers = numbers_of(operands)
    read: Ints = np.array(numbers, np.int64)
    made: Ints = np.array([v.index for v in results], np.int64)
    ends: Ints = np.array([a.index for a in outvars if type(a) is Var], np.int64)
    size = 2 + max([int(x.max(initial=0)) for x in (read, made, ends)])
    position: Ints = np.full(size, -1, np.int64)
    position[made] = np.repeat(np.arange(len(eqns)), np.diff(begin))
    is_end = np.zeros(size, bool)
    is_end[ends] = True
    kinds = kinds_of(eqns)
    defined = position[np.maximum(read, -1)]
    return Part(
        eqns,
        kinds,
        dict(zip(numbers, operands, strict=True)),
        read,
        first,
        results,
        made,
        begin,
        position,
        is_end,
        Repeats(kinds, defined, first, least),
    )


def bounds(sizes: Sequence[int]) -> Ints:
    """The beginnings of parts of these sizes in a row, and the end of the last one."""
    return np.cumsum([0, *sizes])


def numbers_of(atoms: Iterable[Atom]) -> list[int]:
    """The index of a variable, and for literals numbers below -1."""
    known: dict[Atom, int] = {}
    return [
        a.index if type(a) is Var else -2 - known.setdefault(a, len(known))
        for a in atoms
    ]


def kinds_of(eqns: Sequence[Eqn]) -> Ints:
    """A number for each equation: that of its kind, or one of no other."""
    # Few objects are the params of many equations; these few take time to compare.
    values: dict[Params, int] = {}
    params_of = {
        number: -1
        if params is not NO_PARAMS and params.effects
        else values.setdefault(params, len(values))
        for number, params in {id(eqn.params): eqn.params for eqn in eqns}.items()
    }
    known: dict[object, int] = {}
    out = []
    for i, eqn in enumerate(eqns):
        params = params_of[id(eqn.params)]
        if params < 0:
            out.append(-1 - i)
            continue
        ins = tuple([a.aval for a in eqn.invars])
        outs = tuple([v.aval for v in eqn.outvars])
        kind = (eqn.primitive, params, ins, outs)
        out.append(known.setdefault(kind, len(known)))
    return np.array(out, np.int64)


class Block:
    """The program of runs that are equal, and what each of them passes to it."""

    def __init__(self, part: Part, repeat: Repeat) -> None:
        self.part = part
        self.repeat = repeat
        self.start, self.stop = repeat.starts[0], repeat.starts[0] + repeat.length
        self.operands: dict[Passed, int] = {}
        # What is computed again, with what each place of the equation takes.
        self.again: dict[Passed, tuple[Eqn, list[Passed]]] = {}
        for passed in self.outside.values():
            self.operands.setdefault(passed, len(self.operands))
        made = part.results[part.begin[self.start] : part.begin[self.stop]]
        sizes = [v.aval.size for v in made if not v.aval.symbolic]
        self.small = max(sizes, default=0) // SMALL
        self.makers = part.makers(list(self.operands), self.small)
        self.compute_again()

    def columns(self, flat: Ints, first: Ints) -> Ints:
        """The entries of the runs in `flat`, a row for each; -1 for what one lacks."""
        starts = list(self.repeat.starts)
        count = first[self.stop] - first[self.start]
        if not self.repeat.last:
            return flat[first[starts, None] + np.arange(count)]
        rows: Ints = np.full((len(starts), count), -1, np.int64)
        rows[:-1] = flat[first[starts[:-1], None] + np.arange(count)]
        for number, place in enumerate(self.repeat.last, starts[-1]):
            at = first[self.start + place] - first[self.start]
            own = flat[first[number] : first[number + 1]]
            rows[-1, at : at + len(own)] = own
        return rows

    @cached_property
    def outside(self) -> dict[int, Passed]:
        """The operands of a run that it does not define, and what that is."""
        part = self.part
        read = self.columns(part.read, part.first)
        if self.repeat.last:
            # For what it lacks, anything of the type will do.
            read[-1] = np.where(read[-1] == -1, read[-2], read[-1])
        same = (read[0] < -1) & (read == read[0]).all(0)
        where = slice(part.first[self.start], part.first[self.stop])
        (out,) = np.nonzero((part.repeats.defined[where] < self.start) & ~same)
        passed = map(tuple, read.T[out].tolist())
        return dict(zip(out.tolist(), passed, strict=True))

    @cached_property
    def made(self) -> Ints:
        """The variables that the runs define, a row for each."""
        return self.columns(self.part.made, self.part.begin)

    def compute_again(self) -> None:
        """Replace operands by what they are computed from, where that is not more."""
        part, makers = self.part, self.makers
        made = [p for p in self.operands if makers[p][1] is not None]
        waiting = [(-makers[p][0], p) for p in made]
        heapify(waiting)
        while waiting and len(self.again) < self.repeat.length:
            passed = heappop(waiting)[1]
            eqns = makers[passed][1]
            assert eqns is not None
            needed = part.operands(eqns)
            new = [
                p
                for p in dict.fromkeys(needed)
                if not is_constant(p) and p not in self.operands and p not in self.again
            ]
            self.add_makers(new)
            if sum([self.cost(p, DEPTH) for p in new]) > self.weight(passed):
                continue
            self.again[passed] = part.eqns[eqns[0]], needed
            del self.operands[passed]
            for p in new:
                self.operands[p] = 0
                if makers[p][1] is not None:
                    heappush(waiting, (-makers[p][0], p))
        self.operands = {p: i for i, p in enumerate(self.operands)}

    def add_makers(self, passed: Sequence[Passed]) -> None:
        """Know what makes these, too."""
        new = [p for p in passed if p not in self.makers]
        self.makers |= self.part.makers(new, self.small)

    def cost(self, passed: Passed, depth: int) -> int:
        """The bytes that a run must keep to compute it from what is cheap to make."""
        weight = self.weight(passed)
        if passed in self.operands or passed in self.again or is_constant(passed):
            return 0
        eqns = self.makers[passed][1]
        if not weight or not depth or eqns is None:
            return weight
        needed = self.part.operands(eqns)
        self.add_makers(needed)
        return min(weight, sum([self.cost(p, depth - 1) for p in set(needed)]))

    def weight(self, passed: Passed) -> int:
        """The bytes that a run must keep to pass it: none for an input of all."""
        if self.makers[passed][0] < 0:
            return 0
        aval = self.part.atoms[passed[0]].aval
        # Which of two unknown sizes is larger may not be known, either.
        return (1 if aval.symbolic else aval.size) * aval.dtype.itemsize

    @cached_property
    def streams(self) -> bool:
        """Whether a value flows through the runs, from each to the next."""
        results = self.results(self.reads)
        return streams(self.jaxpr(results), self.interfaces, self.outs(results))

    @property
    def reads(self) -> Marks:
        """The variables that the calls read."""
        return self.part.marked(np.array(list(self.operands), np.int64))

    def results(self, read: Marks) -> Sequence[int]:
        """The results of a run that are read."""
        out: list[int] = np.flatnonzero(read[self.made].any(0)).tolist()
        return out

    def outs(self, results: Sequence[int], spare: int = 0) -> list[tuple[Var, ...]]:
        """These results of each run.

        What the last run lacks has numbers from `spare` on.
        """
        part, last = self.part, self.made[-1, results].tolist()
        begin = part.begin[list(self.repeat.starts)].tolist()
        if not self.repeat.last:
            return [tuple([part.results[i + at] for at in results]) for i in begin]
        outs = [tuple([part.results[i + at] for at in results]) for i in begin[:-1]]
        new = count(spare)
        numbers = [next(new) if number < 0 else number for number in last]
        avals = [v.aval for v in outs[0]]
        return [*outs, tuple(map(variable, numbers, avals))]

    @property
    def lacking(self) -> int:
        """The number of results the last run lacks."""
        return int((self.made[-1] < 0).sum())

    def trimmed(self, read: Marks, saved: int) -> "Block":
        """The block without a run of whose results more are read than of others'.

        The others would have to keep them, too: the forward pass of a network whose
        first block has another backward pass. It stays if too little were `saved`.
        """
        needed = read[self.made]
        extra = (needed & (needed.sum(0) == 1)).any(1)
        starts = zip(self.repeat.starts, extra.tolist(), strict=True)
        kept = tuple([start for start, more in starts if not more])
        smaller = Repeat(
            kept, self.repeat.length, () if extra[-1] else self.repeat.last
        )
        if smaller == self.repeat or smaller.saved < saved:
            return self
        return Block(self.part, smaller)

    def jaxpr(self, results: Sequence[int]) -> Jaxpr:
        """The program of a run that has these results."""
        inputs, eqns, made = self.body
        return Jaxpr((), inputs, eqns, tuple([made[at] for at in results]))

    @cached_property
    def body(self) -> tuple[tuple[Var, ...], PVector[Eqn], list[Var]]:
        """Inputs and equations of the program of a run, and what the run defines."""
        atoms = self.part.atoms
        inputs = tuple(
            [variable(i, atoms[p[0]].aval) for p, i in self.operands.items()]
        )
        places: dict[Passed, Atom] = dict(zip(self.operands, inputs, strict=True))
        eqns: list[Eqn] = []
        count = len(inputs)

        def write(eqn: Eqn, ins: Sequence[Atom]) -> tuple[Var, ...]:
            nonlocal count
            outs = results_like(count, eqn.outvars)
            count += len(outs)
            eqns.append(
                equation(eqn.primitive, eqn.params, tuple(ins), outs, eqn.source)
            )
            return outs

        for passed, (eqn, needed) in sorted(
            self.again.items(), key=lambda item: self.makers[item[0]][0]
        ):
            ins = [atoms[p[0]] if is_constant(p) else places[p] for p in needed]
            (places[passed],) = write(eqn, ins)
        given = {place: places[p] for place, p in self.outside.items()}
        own: dict[int, Var] = {}
        made: list[Var] = []
        place = 0
        for eqn in self.part.eqns[self.start : self.stop]:
            ins = [
                given.get(i) or (own[a.index] if type(a) is Var else a)
                for i, a in enumerate(eqn.invars, place)
            ]
            place += len(ins)
            outs = write(eqn, ins)
            made += outs
            own.update(zip([v.index for v in eqn.outvars], outs, strict=True))
        return inputs, pvector(eqns), made

    @cached_property
    def interfaces(self) -> list[tuple[Atom, ...]]:
        """The operands and results of each run."""
        atoms = self.part.atoms
        return [
            tuple([atoms[passed[number]] for passed in self.operands])
            for number in range(len(self.repeat.starts))
        ]


def is_constant(passed: Passed) -> bool:
    """Whether all runs read the same literal there."""
    return passed[0] < -1 and all([other == passed[0] for other in passed])
