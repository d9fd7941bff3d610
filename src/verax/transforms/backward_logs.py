"""Floor 3: what the rules of a backward pass have logged, as outputs of the pass.

One idea: logs leave a call with its results, a choice as one slot for each branch, and
a loop as stacks, one row for each step::

    collect(jaxpr)   # .jaxpr: outputs of `jaxpr`, then logs; .entries: what they are
"""

from collections.abc import Hashable, Sequence
from functools import cached_property

import numpy as np
from attrs import define, frozen

from verax.ir.avals import ShapedArray
from verax.ir.effects import LOG
from verax.ir.jaxpr import UNKNOWN_SOURCE, Atom, Eqn, Jaxpr
from verax.ir.records import ReprMixin
from verax.ir.walk import interpret, itself
from verax.ops.calls.backward_log import LogParams
from verax.ops.calls.call import inlined
from verax.ops.elementwise.arith import add, sub
from verax.ops.indexing.dynamic_slice import dynamic_update_index_in_dim
from verax.ops.structure.create import zeros
from verax.rules.rows.bodies import OfWholeValues, Role, Types, flat, thread_of, whole
from verax.rules.rows.builder import Builder, program
from verax.rules.values.array import Array
from verax.rules.values.memo import memo, recall
from verax.rules.values.state import Context, current_context, interpreting

PROGRAMS = 1 << 8


@frozen(repr=False)
class Leaves(ReprMixin):
    """What one rule has logged under a key: a structure with so many leaves."""

    tree: Hashable
    count: int


@frozen(repr=False)
class Choice(ReprMixin):
    """What the branches of a choice log under a key; None for one that does not.

    Its values are the index of the branch that was taken, then those of all branches.
    """

    branches: tuple["Entry | None", ...]

    @cached_property
    def count(self) -> int:
        """How many values there are."""
        return 1 + sum(entry.count for entry in self.branches if entry is not None)


type Entry = Leaves | Choice
type Entries = tuple[tuple[Hashable, Entry], ...]
type Values = Sequence[Array]


@frozen(eq=False, repr=False)
class Collected(ReprMixin):
    """A program with its logs: outputs of `jaxpr` are its own, then all values."""

    jaxpr: Jaxpr
    entries: Entries

    @property
    def count(self) -> int:
        """The number of values that are logged."""
        return sum(entry.count for _, entry in self.entries)

    @property
    def avals(self) -> list[ShapedArray]:
        """The types of the values."""
        outs = self.jaxpr.out_avals
        return [aval.strong() for aval in outs[len(outs) - self.count :]]

    def blank(self) -> list[Array]:
        """The values where the program has not run."""
        return [zeros(aval) for aval in self.avals]

    def parted[T](self, values: Sequence[T]) -> dict[Hashable, tuple[Entry, list[T]]]:
        """The values of each key."""
        rest = iter(values)
        return {
            key: (entry, [next(rest) for _ in range(entry.count)])
            for key, entry in self.entries
        }


@define(eq=False, repr=False)
class Threading(OfWholeValues):
    """The programs of one equation with their logs, and what comes out of them."""

    inner: tuple[Collected, ...]
    source: object
    length: int | None
    reverse: bool
    logs: dict[Hashable, tuple[Entry, Values]]

    def enter(self, role: Role) -> Sequence[object]:
        """A counter and empty stacks, for a loop.

        Raises:
            ValueError: the loop does not say how often it runs.
        """
        if role is not Role.STEP:
            return ()
        if self.length is None:
            raise ValueError(
                "a backward pass cannot log from within a loop that does not say how "
                f"often it runs: the one at {self.source}; log outside of it"
            )
        (one,) = self.inner
        stacks = [a.with_shape((self.length, *a.shape)) for a in one.avals]
        return [np.int32(0), *map(zeros, stacks)]

    def program(
        self,
        number: int,
        role: Role,
        types: Sequence[Types],
        due: Sequence[Types | None],
    ) -> Jaxpr:
        one, jaxpr = self.inner[number], self.jaxprs[number]
        count, own = len(jaxpr.outvars), len(jaxpr.invars)
        if role is Role.CALL:
            return one.jaxpr

        def branch(*ins: Array) -> Sequence[object]:
            outs = inlined(one.jaxpr, ins)
            logged: list[object] = [np.int32(number)]
            for i, other in enumerate(self.inner):
                logged += outs[count:] if i == number else other.blank()
            return [*outs[:count], *logged]

        if role is Role.BRANCH:
            return program(jaxpr.in_avals, branch)

        def step(*ins: Array) -> Sequence[object]:
            outs = inlined(one.jaxpr, ins[:own])
            place, *stacks = ins[own:]
            assert self.length is not None, "a loop without a length has no state"
            slot = sub(np.int32(self.length - 1), place) if self.reverse else place
            kept = [
                dynamic_update_index_in_dim(stack, row, slot, 0)
                for stack, row in zip(stacks, outs[count:], strict=True)
            ]
            return [*outs[:count], add(place, np.int32(1)), *kept]

        return program((*jaxpr.in_avals, *self.state), step)

    @property
    def state(self) -> list[ShapedArray]:
        """The types of what a loop carries along."""
        made = program((), lambda: self.enter(Role.STEP))
        return list(made.out_avals)

    def leave(
        self, role: Role, state: Sequence[Array], lanes: Sequence[int] = ()
    ) -> None:
        if role is Role.BRANCH:
            self.logs = self.choices(state)
        else:
            (one,) = self.inner
            self.logs = {**one.parted(state[1:] if role is Role.STEP else state)}

    def choices(self, state: Sequence[Array]) -> dict[Hashable, tuple[Entry, Values]]:
        """What the branches have logged, by key."""
        index, *rest = state
        parts, at = [], 0
        for one in self.inner:
            parts.append(one.parted(rest[at : at + one.count]))
            at += one.count
        logs: dict[Hashable, tuple[Entry, Values]] = {}
        for key in dict.fromkeys([key for part in parts for key in part]):
            slots = [part.get(key) for part in parts]
            entry = Choice(tuple([None if x is None else x[0] for x in slots]))
            logs[key] = (
                entry,
                [index, *[v for x in slots if x is not None for v in x[1]]],
            )
        return logs


def collect(jaxpr: Jaxpr) -> Collected:
    """The program whose logs are outputs.

    Of two logs with one key the later one is kept: in a backward pass that of the
    earlier call.
    """
    return recall(written, jaxpr, current_context(), jaxpr)


@memo(PROGRAMS)
def written(context: Context, jaxpr: Jaxpr) -> Collected:
    """The program, written again."""
    writer = Writer()
    inputs = writer.builder.input_atoms(jaxpr.in_avals)
    with interpreting(writer.builder):
        outs = interpret(jaxpr, inputs, writer.write, itself)
    logs = writer.logs.items()
    atoms = [writer.builder.atom(x) for _, (_, values) in logs for x in values]
    closed = writer.builder.close([*outs, *atoms])[0]
    return Collected(closed, tuple([(key, entry) for key, (entry, _) in logs]))


class Writer:
    """One program while it is written again, and its logs so far."""

    def __init__(self) -> None:
        self.builder = Builder("logs", source=UNKNOWN_SOURCE)
        self.logs: dict[Hashable, tuple[Entry, Values]] = {}

    def write(self, eqn: Eqn, ins: Sequence[Atom]) -> Sequence[Atom]:
        """Write an equation, or keep what it logs."""
        builder = self.builder
        builder.source = eqn.source
        p = eqn.params
        if isinstance(p, LogParams):
            values = builder.tracers(ins)
            self.logs[p.key] = Leaves(p.tree, len(values)), values
            return []
        thread = thread_of(eqn.primitive)
        if LOG not in eqn.effects or thread is None:
            return builder.copy(eqn, ins)
        jaxprs = tuple(p.subjaxprs())
        length = getattr(p, "length", None)
        reverse = bool(getattr(p, "reverse", False))
        inner = tuple([collect(jaxpr) for jaxpr in jaxprs])
        through = Threading(jaxprs, inner, eqn.source, length, reverse, {})
        outs = flat(thread(through, p, whole(builder.tracers(ins))))
        self.logs.update(through.logs)
        return [builder.atom(x) for x in outs]
