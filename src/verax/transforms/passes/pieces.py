"""Floor 3: what is read in several places is computed once.

XLA writes a function of elements into every loop that reads it: once for each place of
its array that an element of the loop reads, and into loops that pad, which go one
element at a time. A barrier stores the values::

    { lambda ; a. let b = exp a; c = slice b 0:8; d = slice b 1:9; e = slice b 2:10;
        f = add c d; g = add f e in (g,) }
    { lambda ; a. let x = exp a; b = optimization_barrier x;
        c = slice b 0:8; d = slice b 1:9; e = slice b 2:10;
        f = add c d; g = add f e in (g,) }
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from attrs import define, field

from verax.ir.jaxpr import Atom, Eqn, Jaxpr, Var, equation
from verax.ir.records import ReprMixin
from verax.ops.calls.checkpoint import BARRIER, optimization_barrier_p
from verax.ops.structure.joining import concatenate_p
from verax.ops.structure.slicing import PadParams, alternates
from verax.rules.rows.row import Work, traits_of
from verax.rules.values.memo import pure, recall
from verax.transforms.engine.partial_eval import variables
from verax.transforms.passes.outline import with_eqns, with_subjaxprs

LARGE: Final = 1 << 12
"""Elements from which a loop takes longer than what it costs to begin another."""
STORING: Final = 12.0
"""The time of storing an element, in that of reading one which the cache holds."""
OPERATION: Final = 1 / 8
SLOW: Final = 8.0
"""The time of an operation, and of one like `exp`."""
SPREAD: Final = -1
"""Ends a place of a small array, which no loop that pads reads in vectors."""
COPIES: Final = 8.0
"""So often counts an element at most that a larger array repeats."""
JOINED: Final = 2
"""An array of whose pieces so many others are joined is stored, if it is made ..."""
ARRAYS: Final = 3
"""... from so many; from fewer, a loop reads those again in less time."""
MOST: Final = 64
"""So many places are told apart; more are as many."""

type Place = tuple[int, ...]


class Loop(NamedTuple):
    """An element that is not stored: the places that it is read from, and its time.

    `slow` is the time of what is like `exp`, and `work` that of all other operations.
    """

    places: frozenset[Place]
    work: float = 0.0
    slow: float = 0.0

    @property
    def spread(self) -> int:
        """How many places are of small arrays."""
        return sum([place[-1] == SPREAD for place in self.places])


@define(repr=False)
class Reads(ReprMixin):
    """How an array is read.

    Attributes:
        elements: how many are read in parts, for each of its own.
        loops: the arrays whose loops read it as it is, by their variables' numbers; its
            own loop for all that loops do not read.
        padding: how many loops without vectors read it: one for each time that it is
            padded itself, and for each function of elements that comes into one.
        padded: whether it is padded itself.
        joined: the concatenations that have parts of it, by their variables' numbers.
        copied: whether XLA copies it into another layout.
        uses: how many equations read it.
    """

    elements: float = 0.0
    loops: set[int] = field(factory=set)
    padding: int = 0
    padded: bool = False
    joined: set[int] = field(factory=set)
    copied: bool = False
    uses: int = 0

    @property
    def count(self) -> float:
        """How many elements are read, for each of its own."""
        return self.elements + self.padding + self.several

    @property
    def several(self) -> int:
        """How many loops read it as it is.

        What has one reader is read by the loops of that, which may be stored instead.
        """
        return len(self.loops) if self.uses > 1 else min(len(self.loops), 1)

    @property
    def alone(self) -> bool:
        """Whether something reads its elements one by one, if it is not stored."""
        return self.padded or self.padding > 1


def with_stored_pieces(jaxpr: Jaxpr) -> Jaxpr:
    """The program with what is read in several places stored, nested jaxprs included.

    Contract: inputs, outputs, values and effects are kept.
    """
    return recall(stored_once, jaxpr, jaxpr)


@pure(1 << 10)
def stored_once(jaxpr: Jaxpr) -> Jaxpr:
    """`with_stored_pieces`, without its memo."""
    eqns, _ = stored(jaxpr.eqns, jaxpr.outvars, variables(jaxpr))
    return with_eqns(jaxpr, eqns)


def stored(
    eqns: Sequence[Eqn], outvars: Sequence[Atom], size: int
) -> tuple[Sequence[Eqn], int]:
    """The equations with barriers, and how many variables there are.

    There were `size`, which keep their numbers.
    """
    eqns = with_subjaxprs(eqns, with_stored_pieces)
    reads = reads_of(eqns, outvars)
    loops: dict[int, Loop] = {}
    out: list[Eqn] = []
    for eqn in eqns:
        made = loops_of(eqn, loops)
        gain = [gains(loop, reads.get(index)) for index, loop in made.items()]
        if not any(gain) or not computes(eqn):
            loops.update(made)
            out.append(eqn)
            continue
        (v,) = eqn.outvars
        new = Var(size, v.aval)
        size += 1
        source = eqn.source
        out += [
            equation(eqn.primitive, eqn.params, eqn.invars, (new,), source),
            equation(optimization_barrier_p, BARRIER, (new,), (v,), source),
        ]
    return out, size


def gains(loop: Loop, read: Reads | None) -> bool:
    """Whether reading a stored array takes less time than the loop in each place.

    A loop that reads what it needs from memory computes in the meantime.
    """
    if read is None:
        return False
    count = len(loop.places)
    if read.copied or (len(read.joined) >= JOINED and count >= ARRAYS):
        return True
    parts, loops = read.elements + read.padding, read.several
    again = (parts if loops else parts - 1) * (count - 1 + loop.work + loop.slow)
    again += max(loops - 1, 0) * (count - loop.spread - 1 + loop.slow)
    work = loop.spread + (loop.work + loop.slow) / SLOW
    return again + (STORING * work if read.alone else 0.0) >= STORING


def reads_of(eqns: Sequence[Eqn], outvars: Sequence[Atom]) -> Mapping[int, Reads]:
    """How arrays are read, by the numbers of their variables."""
    reads: defaultdict[int, Reads] = defaultdict(Reads)
    for a in outvars:
        if type(a) is Var:
            reads[a.index].loops.add(a.index)
    for eqn in reversed(eqns):
        whole = moved(eqn)
        if whole is not None:
            read_in_parts(reads, eqn, whole)
            continue
        copied = traits_of(eqn.primitive).copied
        if copied is not None:
            avals = [a.aval for a in eqn.invars]
            for a in [eqn.invars[i] for i in copied(eqn.params, avals)]:
                if type(a) is Var:
                    reads[a.index].copied = True
        for a in {a for a in eqn.invars if type(a) is Var}:
            read_by(reads, eqn, a)
    return reads


def read_in_parts(reads: Mapping[int, Reads], eqn: Eqn, whole: Var) -> None:
    """Note that what reads the results of an equation reads their places in another."""
    read = reads[whole.index]
    read.uses += 1
    for v in eqn.outvars:
        into = reads[v.index]
        share = v.aval.size / max(1, whole.aval.size)
        read.elements += min(COPIES, share) * into.count
        read.padded |= into.padded
        read.joined |= into.joined


def read_by(reads: Mapping[int, Reads], eqn: Eqn, a: Var) -> None:
    """Note that an equation reads an array as it is."""
    read = reads[a.index]
    read.uses += 1
    if isinstance(eqn.params, PadParams) and alternates(eqn.params):
        read.padding += 1
        read.padded = True
    elif eqn.primitive is concatenate_p:
        read.joined.add(eqn.outvars[0].index)
    elif not computes(eqn):
        read.loops.add(a.index)
    elif reads[eqn.outvars[0].index].padding:
        read.padding += 1
    elif len(read.loops) < MOST:
        (v,) = eqn.outvars
        read.loops |= reads[v.index].loops or {v.index}


def moved(eqn: Eqn) -> Var | None:
    """The one array whose elements the results are, which loops read in its place."""
    traits = traits_of(eqn.primitive)
    arrays = [a for a in eqn.invars if type(a) is Var]
    if len(arrays) != 1 or not (traits.moves and traits.light) or computes(eqn):
        return None
    symbolic = any([v.aval.symbolic for v in (*arrays, *eqn.outvars)])
    return None if symbolic else arrays[0]


def computes(eqn: Eqn) -> bool:
    """Whether the equation is a function of elements."""
    return traits_of(eqn.primitive).elementwise and len(eqn.outvars) == 1


def loops_of(eqn: Eqn, loops: Mapping[int, Loop]) -> dict[int, Loop]:
    """What the results of the equation are in loops, by their variables' numbers.

    Empty for what is stored. `loops` has those of the variables before.
    """
    if not all([is_large(v) for v in eqn.outvars]):
        return {}
    whole = moved(eqn)
    if whole is not None:
        loop = loops.get(whole.index, Loop(frozenset([(whole.index,)])))
        if not is_large(whole):
            one = whole.aval.size == 1
            loop = loop._replace(places=frozenset([] if one else [(SPREAD,)]))
        parts = [[(v.index, *place) for place in loop.places] for v in eqn.outvars]
        return {
            v.index: loop._replace(places=frozenset(part))
            for v, part in zip(eqn.outvars, parts, strict=True)
        }
    if not computes(eqn):
        return {}
    (out,) = eqn.outvars
    places: frozenset[Place] = frozenset()
    takes_long = traits_of(eqn.primitive).work is Work.SLOW
    work, slow = (0.0, SLOW) if takes_long else (OPERATION, 0.0)
    for a in eqn.invars:
        if type(a) is Var and a.aval.shape == out.aval.shape:
            loop = loops.get(a.index, Loop(frozenset([(a.index,)])))
            work, slow = work + loop.work, slow + loop.slow
            if len(places) < MOST:
                places |= loop.places
    return {out.index: Loop(places, min(work, STORING), min(slow, STORING))}


def is_large(v: Var) -> bool:
    """Whether a loop over the array takes longer than what it costs to begin one."""
    return not v.aval.symbolic and v.aval.size >= LARGE
