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

from collections.abc import Iterator, Sequence
from functools import cached_property
from heapq import heapify, heappop, heappush

import numpy as np
from attrs import frozen
from pyrsistent import pvector

from verax.ir.jaxpr import (
    NO_PARAMS,
    Atom,
    Eqn,
    Jaxpr,
    Literal,
    Var,
    equation,
    types_of,
    variable,
)
from verax.ir.records import ReprMixin
from verax.transforms.passes.repeats import Ints, Repeat, Repeats
from verax.transforms.passes.streams import CHEAP, streams

type Passed = tuple[Atom, ...]
"""What takes one place in a run: an atom for each of the runs."""


@frozen(eq=False, repr=False)
class Part(ReprMixin):
    """The equations of a program as a sequence in which runs are looked for.

    Attributes:
        eqns: the equations.
        position: by the index of a variable, the equation that defines it; -1 for what
            none does.
        kinds: for each equation a number, equal for those that may be joined.
        repeats: the same as symbols with their operands.
    """

    eqns: Sequence[Eqn]
    position: Ints
    kinds: Ints
    repeats: Repeats

    def run(self, start: int, length: int) -> Sequence[Eqn]:
        """Some of the equations."""
        return self.eqns[start : start + length]

    def made_by(self, passed: Passed) -> list[int] | None:
        """The equations of one kind that make what the runs pass, if they do."""
        found = [int(self.position[a.index]) if type(a) is Var else -1 for a in passed]
        kind = self.kinds[found[0]]
        if min(found) < 0 or kind < 0 or any(self.kinds[found] != kind):
            return None
        return found


def part_of(eqns: Sequence[Eqn], outvars: Sequence[Atom], least: int) -> Part:
    """The equations of a program with these outputs; runs have at least `least`."""
    results = [(v.index, i) for i, e in enumerate(eqns) for v in e.outvars]
    read = [a.index if type(a) is Var else -1 for e in eqns for a in e.invars]
    ends = [a.index for a in outvars if type(a) is Var]
    size = 1 + max([*[v for v, _ in results], *read, *ends, 0])
    # The last place is for operands that are no variable, whose index is -1.
    position: Ints = np.full(size + 1, -1, np.int64)
    if results:
        variables, positions = np.array(results, np.int64).T
        position[variables] = positions
    kinds = kinds_of(eqns)
    first = np.cumsum([0, *[len(e.invars) for e in eqns]])
    defined = position[np.array(read, np.int64)]
    return Part(eqns, position, kinds, Repeats(kinds, defined, first, least))


def kinds_of(eqns: Sequence[Eqn]) -> Ints:
    """A number for each equation: that of its kind, or one of no other."""
    known: dict[object, int] = {}
    found = []
    for i, eqn in enumerate(eqns):
        params = eqn.params
        if params is not NO_PARAMS and eqn.effects:
            found.append(-1 - i)
            continue
        kind = (eqn.primitive, params, types_of(eqn.invars), types_of(eqn.outvars))
        found.append(known.setdefault(kind, len(known)))
    return np.array(found, np.int64)


class Block:
    """The program of runs that are equal, and what each of them passes to it."""

    def __init__(self, part: Part, repeat: Repeat) -> None:
        self.part = part
        self.repeat = repeat
        self.runs = [part.run(start, repeat.length) for start in repeat.starts]
        self.operands: dict[Passed, int] = {}
        # What is computed again, with what each place of the equation takes.
        self.again: dict[Passed, tuple[Eqn, list[Passed]]] = {}
        for _, passed in self.outside():
            self.operands.setdefault(passed, len(self.operands))
        self.compute_again()

    def outside(self) -> Iterator[tuple[tuple[int, int], Passed]]:
        """The places of a run that read what it does not define, and what that is."""
        start = self.repeat.starts[0]
        for offset, eqn in enumerate(self.runs[0]):
            for place, atom in enumerate(eqn.invars):
                if isinstance(atom, Literal) or self.part.position[atom.index] < start:
                    passed = tuple([run[offset].invars[place] for run in self.runs])
                    if not is_constant(passed):
                        yield (offset, place), passed

    def compute_again(self) -> None:
        """Replace operands by what they are computed from, where that is not more."""
        waiting = [(-self.latest(p), i) for i, p in enumerate(self.operands)]
        heapify(waiting)
        names = list(self.operands)
        while waiting and len(self.again) < self.repeat.length:
            passed = names[heappop(waiting)[1]]
            made = self.part.made_by(passed)
            if made is None:
                continue
            eqns = [self.part.eqns[i] for i in made]
            if eqns[0].primitive.name not in CHEAP:
                continue
            needed = [
                tuple([eqn.invars[place] for eqn in eqns])
                for place in range(len(eqns[0].invars))
            ]
            new = [
                p
                for p in dict.fromkeys(needed)
                if not is_constant(p) and p not in self.operands and p not in self.again
            ]
            if sum(map(self.weight, new)) > self.weight(passed):
                continue
            self.again[passed] = eqns[0], needed
            del self.operands[passed]
            for p in new:
                self.operands[p] = 0
                heappush(waiting, (-self.latest(p), len(names)))
                names.append(p)
        self.operands = {p: i for i, p in enumerate(self.operands)}

    def latest(self, passed: Passed) -> int:
        """The last of the equations that make what the runs pass."""
        made = [int(self.part.position[a.index]) for a in passed if type(a) is Var]
        return max(made, default=-1)

    def weight(self, passed: Passed) -> int:
        """The bytes that a run must keep to pass it: none for an input of all."""
        if all(
            [isinstance(a, Literal) or self.part.position[a.index] < 0 for a in passed]
        ):
            return 0
        aval = passed[0].aval
        # Which of two unknown sizes is larger may not be known, either.
        return (1 if aval.symbolic else aval.size) * aval.dtype.itemsize

    @cached_property
    def streams(self) -> bool:
        """Whether a value flows through the runs, from each to the next."""
        results = self.results(self.reads)
        outs = [[run[at].outvars[i] for at, i in results] for run in self.runs]
        return streams(self.jaxpr(results), self.interfaces, outs)

    @property
    def reads(self) -> set[int]:
        """The indices of the variables that the calls read."""
        return {a.index for p in self.operands for a in p if type(a) is Var}

    def results(self, read: set[int]) -> list[tuple[int, int]]:
        """Which results of a run are among what is read: equation and number."""
        return [
            (offset, number)
            for offset in range(self.repeat.length)
            for number in range(len(self.runs[0][offset].outvars))
            if any([run[offset].outvars[number].index in read for run in self.runs])
        ]

    def trimmed(self, read: set[int], saved: int) -> "Block":
        """The block without a run of whose results more are read than of others'.

        The others would have to keep them, too: the forward pass of a network whose
        first block has another backward pass. It stays if too little were `saved`.
        """
        needed = [
            {
                (offset, i)
                for offset, eqn in enumerate(run)
                for i, v in enumerate(eqn.outvars)
                if v.index in read
            }
            for run in self.runs
        ]
        kept = [
            start
            for number, start in enumerate(self.repeat.starts)
            if not needed[number].difference(
                *[other for i, other in enumerate(needed) if i != number]
            )
        ]
        smaller = Repeat(tuple(kept), self.repeat.length)
        if smaller == self.repeat or smaller.saved < saved:
            return self
        return Block(self.part, smaller)

    def jaxpr(self, results: Sequence[tuple[int, int]]) -> Jaxpr:
        """The program of a run that has these results."""
        inputs = tuple([variable(i, p[0].aval) for p, i in self.operands.items()])
        places: dict[Passed, Atom] = dict(zip(self.operands, inputs, strict=True))
        own: dict[int, Var] = {}
        eqns: list[Eqn] = []
        count = len(inputs)

        def write(eqn: Eqn, ins: Sequence[Atom]) -> tuple[Var, ...]:
            nonlocal count
            outs = tuple(
                [variable(count + i, v.aval) for i, v in enumerate(eqn.outvars)]
            )
            count += len(outs)
            eqns.append(
                equation(eqn.primitive, eqn.params, tuple(ins), outs, eqn.source)
            )
            return outs

        for passed, (eqn, needed) in sorted(
            self.again.items(), key=lambda item: self.latest(item[0])
        ):
            ins = [p[0] if is_constant(p) else places[p] for p in needed]
            (places[passed],) = write(eqn, ins)
        given = {place: places[p] for place, p in self.outside()}
        for offset, eqn in enumerate(self.runs[0]):
            ins = [
                given.get((offset, place)) or self.local(atom, own)
                for place, atom in enumerate(eqn.invars)
            ]
            outs = write(eqn, ins)
            own.update({v.index: x for v, x in zip(eqn.outvars, outs, strict=True)})
        ends = [own[self.runs[0][at].outvars[i].index] for at, i in results]
        return Jaxpr((), inputs, pvector(eqns), tuple(ends))

    @staticmethod
    def local(atom: Atom, own: dict[int, Var]) -> Atom:
        """What an equation of a run reads of the run itself, or a constant."""
        return own[atom.index] if type(atom) is Var else atom

    @cached_property
    def interfaces(self) -> list[tuple[Atom, ...]]:
        """What each run passes."""
        return [
            tuple([passed[number] for passed in self.operands])
            for number in range(len(self.runs))
        ]


def is_constant(passed: Passed) -> bool:
    """Whether all runs read the same literal there."""
    first = passed[0]
    return type(first) is Literal and all([other == first for other in passed[1:]])
