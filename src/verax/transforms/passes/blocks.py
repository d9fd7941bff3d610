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

from collections.abc import Iterable, Sequence
from functools import cached_property
from heapq import heapify, heappop, heappush
from itertools import chain, count
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
    Params,
    Var,
    equation,
    results_like,
    variable,
)
from verax.ir.records import ReprMixin
from verax.rules.rows.traits import Work, traits_of
from verax.transforms.passes.repeats import Ints, Repeat, Repeats
from verax.transforms.passes.streams import streams

type Passed = tuple[int, ...]
"""What takes one place in a run: the number of an atom for each of the runs."""
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
        """What makes each of these; arrays of up to `small` elements are cheap."""
        if not passed:
            return {}
        found = self.position[np.maximum(np.array(passed, np.int64), -1)]
        kinds = self.kinds[found]
        alike = (found >= 0).all(1) & (kinds[:, 0] >= 0)
        alike &= (kinds == kinds[:, :1]).all(1)
        rows = zip(passed, found.max(1).tolist(), alike.tolist(), found, strict=True)
        return {
            p: (last, eqns if one and is_cheap(self.eqns[last], small) else None)
            for p, last, one, eqns in rows
        }

    @cached_property
    def light(self) -> Marks:
        """Which equations take little time."""
        return np.array([traits_of(eqn.primitive).light for eqn in self.eqns], bool)

    def operands(self, eqns: Ints) -> list[Passed]:
        """For each operand of equations of one kind, what takes its place."""
        start = self.first[eqns]
        places = start[:, None] + np.arange(self.first[eqns[0] + 1] - start[0])
        return [tuple(column) for column in self.read[places].T.tolist()]

    def marked(self, numbers: Ints) -> Marks:
        """Which variables are among the numbers."""
        found = np.zeros(len(self.position), bool)
        found[numbers[numbers >= 0]] = True
        return found


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
    """Where parts of these sizes, in a row, begin, and where the last one ends."""
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
    found = []
    for i, eqn in enumerate(eqns):
        params = params_of[id(eqn.params)]
        if params < 0:
            found.append(-1 - i)
            continue
        ins = tuple([a.aval for a in eqn.invars])
        outs = tuple([v.aval for v in eqn.outvars])
        kind = (eqn.primitive, params, ins, outs)
        found.append(known.setdefault(kind, len(known)))
    return np.array(found, np.int64)


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
        """What the runs have in `flat`, a row for each; -1 for what one lacks."""
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
        (found,) = np.nonzero((part.repeats.defined[where] < self.start) & ~same)
        passed = map(tuple, read.T[found].tolist())
        return dict(zip(found.tolist(), passed, strict=True))

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
        """Which results of a run are among what is read."""
        found: list[int] = np.flatnonzero(read[self.made].any(0)).tolist()
        return found

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
        """How many results the last run lacks."""
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
        """What each run passes."""
        atoms = self.part.atoms
        return [
            tuple([atoms[passed[number]] for passed in self.operands])
            for number in range(len(self.repeat.starts))
        ]


def is_constant(passed: Passed) -> bool:
    """Whether all runs read the same literal there."""
    return passed[0] < -1 and all([other == passed[0] for other in passed])
