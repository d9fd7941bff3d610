"""Floor 3: the values that a compiled program keeps in memory, step by step.

One idea: a compiler computes cheap elementwise values where they are read, so that
only some are stored; an equation that stores one is a step, and a value lives from the
step that writes it to the last that reads it, or what is computed of it on the way::

    line = Timeline.of(jaxpr)
    line.peak               # bytes beside inputs and outputs

Inputs and outputs have memory of their own for as long as the program runs.
"""

from collections.abc import Container, Iterable, Mapping, Sequence, Set
from math import inf
from typing import Final

from attrs import frozen

from verax.ir.avals import ShapedArray
from verax.ir.jaxpr import NO_PARAMS, Eqn, Jaxpr, Var
from verax.ir.records import ReprMixin
from verax.ops.calls.call import CallParams, NamedCall, called, inline
from verax.ops.calls.checkpoint import CheckpointParams, optimization_barrier_p
from verax.ops.structure.reshard import DEVICE, MemoryParams
from verax.rules.rows.row import Traits, Work, traits_of
from verax.transforms.memory.work import Reckoner
from verax.transforms.passes.outline import STAYS

NOTHING: Final[frozenset[Var]] = frozenset()

# A value computed of more stored ones than this is stored, if it is read twice: or the
# cotangent along skip connections would be computed again from every layer on the way.
WIDEST: Final = 8


def bytes_of(aval: ShapedArray) -> int:
    """The bytes of an array of this type; 0 where a size is not known."""
    return 0 if aval.symbolic else int(aval.size * aval.dtype.itemsize)


def hosted(jaxpr: Jaxpr) -> list[Var]:
    """The values that are put in memory of the host."""
    return [
        v
        for eqn in jaxpr.eqns
        if isinstance(eqn.params, MemoryParams) and eqn.params.kind != DEVICE
        for v in eqn.outvars
    ]


def apart(jaxpr: Jaxpr, *, host: bool = True) -> set[Var]:
    """The variables that take none of the memory in between.

    Inputs and outputs have their own; without `host`, other values may not wait there.
    """
    away = hosted(jaxpr) if host else []
    return {*jaxpr.invars, *away, *[a for a in jaxpr.outvars if isinstance(a, Var)]}


def total(variables: Iterable[Var]) -> int:
    """The bytes of some values."""
    return sum([bytes_of(v.aval) for v in variables])


def opened(eqn: Eqn) -> Jaxpr | None:
    """The program whose equations a compiler sees instead of the call, if any.

    A call that stays a function is none, nor one that is to be computed apart.
    """
    params = eqn.params
    if isinstance(params, CallParams) and params.metadata is STAYS:
        return None
    if isinstance(params, CheckpointParams):
        apart = params.differentiated and params.prevent_cse
        return None if apart else params.jaxpr
    if isinstance(params, NamedCall) and params.runs is not params.jaxpr:
        return params.runs
    return called(eqn)


def flat(jaxpr: Jaxpr) -> Jaxpr:
    """The program without calls that a compiler opens."""
    return inline(jaxpr, opened)


def computed_where_read(traits: Traits) -> bool:
    """Whether a compiler may compute such an equation in the loop that reads it."""
    return traits.view or traits.fuses or traits.work is Work.CHEAP


def stored_values(jaxpr: Jaxpr) -> set[Var]:
    """The variables that have memory, inputs among them."""
    readers: dict[Var, int] = {}
    in_memory: set[Var] = set()
    for eqn in jaxpr.eqns:
        traits = traits_of(eqn.primitive)
        fuses = computed_where_read(traits) or traits.summed
        needs_memory = not fuses or eqn.primitive is optimization_barrier_p
        for v in {a for a in eqn.invars if isinstance(a, Var)}:
            readers[v] = readers.get(v, 0) + 1
            if needs_memory:
                in_memory.add(v)
    outs = {a for a in jaxpr.outvars if isinstance(a, Var)}
    stored = set(jaxpr.invars)
    roots: dict[Var, frozenset[Var]] = {}
    for eqn in jaxpr.eqns:
        traits = traits_of(eqn.primitive)
        made = from_memory(eqn, roots, stored)
        for v in eqn.outvars:
            count = readers.get(v, 0)
            wide = count > 1 and len(made) > WIDEST and not traits.view
            if wide or is_stored(v, traits, count, in_memory, outs):
                stored.add(v)
            else:
                roots[v] = made
    return stored


def from_memory(
    eqn: Eqn, roots: Mapping[Var, frozenset[Var]], stored: Container[Var]
) -> frozenset[Var]:
    """The stored values that an equation is computed from where it is read."""
    parts = [
        frozenset((a,)) if a in stored else roots.get(a, NOTHING)
        for a in eqn.invars
        if isinstance(a, Var)
    ]
    return parts[0].union(*parts[1:]) if parts else NOTHING


def is_stored(
    v: Var, traits: Traits, readers: int, in_memory: set[Var], outs: set[Var]
) -> bool:
    """Whether the result of an equation with these traits is stored."""
    if v in outs or not computed_where_read(traits):
        return True
    if traits.view:
        return False
    return v in in_memory or (traits.work is Work.SLOW and readers > 1)


@frozen(eq=False, repr=False)
class Step(ReprMixin):
    """An equation that stores something: what it reads in memory, and writes there.

    Attributes:
        eqn: the equation.
        place: its number in the program.
        reads: stored values from which it and what is computed on the way are made.
        writes: its stored results.
        work: the operations of both, infinite if they must not run twice.
    """

    eqn: Eqn
    place: int
    reads: frozenset[Var]
    writes: tuple[Var, ...]
    work: float


def steps_of(
    jaxpr: Jaxpr, stored: Container[Var], reckoner: Reckoner | None = None
) -> list[Step]:
    """The steps of a program; a value that is not stored stands for what is."""
    roots: dict[Var, frozenset[Var]] = {v: frozenset((v,)) for v in jaxpr.invars}
    works: dict[Var, float] = {}
    steps, reckoner = [], reckoner or Reckoner()
    for place, eqn in enumerate(jaxpr.eqns):
        if eqn.primitive is optimization_barrier_p:
            for v, a in zip(eqn.outvars, eqn.invars, strict=True):
                roots[v] = roots.get(a, NOTHING) if isinstance(a, Var) else NOTHING
            continue
        operands = [a for a in eqn.invars if isinstance(a, Var)]
        sets = [roots.get(a, NOTHING) for a in operands]
        reads = sets[0].union(*sets[1:]) if sets else NOTHING
        work = reckoner.work(eqn) + sum([works.get(a, 0.0) for a in operands])
        writes = tuple([v for v in eqn.outvars if v in stored])
        for v in eqn.outvars:
            if v in stored:
                roots[v] = frozenset((v,))
            else:
                roots[v], works[v] = reads, work
        if writes:
            steps.append(Step(eqn, place, reads, writes, work))
    return steps


@frozen(eq=False, repr=False)
class Timeline(ReprMixin):
    """The memory of a program, beside that of its inputs and outputs.

    Attributes:
        steps: the equations that store something, in order.
        used: the bytes in use while each runs.
        last: the last step that reads a value.
        stored: the values that have memory, inputs among them.
    """

    steps: tuple[Step, ...]
    used: tuple[int, ...]
    last: dict[Var, int]
    stored: Set[Var]

    @classmethod
    def of(
        cls, jaxpr: Jaxpr, *, host: bool = True, reckoner: Reckoner | None = None
    ) -> "Timeline":
        """The memory of a flat program, step by step, on a device that has a host."""
        stored = stored_values(jaxpr)
        steps = steps_of(jaxpr, stored, reckoner)
        return cls.of_steps(jaxpr, stored, steps, host=host)

    @classmethod
    def of_steps(
        cls, jaxpr: Jaxpr, stored: Set[Var], steps: Sequence[Step], *, host: bool = True
    ) -> "Timeline":
        """The memory of a flat program whose steps are known."""
        last = {v: i for i, step in enumerate(steps) for v in step.reads}
        outside = apart(jaxpr, host=host)
        alive: dict[Var, int] = {}
        now, used = 0, []
        for i, step in enumerate(steps):
            new = {v: bytes_of(v.aval) for v in step.writes if v not in outside}
            ends = [v for v in step.reads if last[v] == i and v in alive]
            size = sum(new.values())
            used.append(now + size - reused(step, size, ends) + inside(step.eqn))
            for v, count in new.items():
                if last.get(v, -1) > i:
                    alive[v] = count
                    now += count
            now -= sum([alive.pop(v) for v in ends])
        return cls(tuple(steps), tuple(used), last, stored)

    @property
    def peak(self) -> int:
        """The most bytes in use at a time."""
        return max(self.used, default=0)

    @property
    def fullest(self) -> int:
        """The number of the step at which most is in use."""
        return max(range(len(self.used)), key=self.used.__getitem__, default=0)


def reused(step: Step, size: int, ends: Sequence[Var]) -> int:
    """The bytes of an operand that ends here, if the result takes its place."""
    if not computed_where_read(traits_of(step.eqn.primitive)):
        return 0
    return size if any([bytes_of(v.aval) == size for v in ends]) else 0


def inside(eqn: Eqn) -> int:
    """The bytes that the programs of an equation need beside its operands."""
    if eqn.params is NO_PARAMS or traits_of(eqn.primitive).flops is not None:
        return 0
    programs = list(eqn.params.subjaxprs(aside=False))
    alone = isinstance(eqn.params, NamedCall)
    return max([peak_inside(p, alone) for p in programs], default=0)


def peak_inside(jaxpr: Jaxpr, alone: bool) -> int:
    """The peak of a program inside an equation.

    What a step of a loop returns is written to its place after it is computed, but
    what a call returns, `alone`, at once.
    """
    body = flat(jaxpr)
    inner = Timeline.of(body).peak
    if alone:
        return inner
    made = {a for a in body.outvars if isinstance(a, Var)} - set(body.invars)
    return inner + total(made)


def total_work(jaxpr: Jaxpr, reckoner: Reckoner) -> float:
    """The operations of a flat program, but for those that must run once."""
    return sum([w for eqn in jaxpr.eqns if (w := reckoner.work(eqn)) != inf])
