"""What transformations make of the programs of one trace, in turn (floor 6).

The trace runs in a context that has the recording as its observer, so every program
that is about to be rewritten, and what comes of it, passes here and is marked::

    recording = Recording()
    with fresh_context(recording):
        whole = jit(f).trace(*args)
    recording.whole(whole.traced.jaxpr)
    recording.levels()
"""

import time
from collections.abc import Callable, Iterable

from attrs import define, field, frozen

from verax.explorer.marks import Marker, all_sources, mark_of
from verax.ir.jaxpr import Jaxpr
from verax.ir.records import ReprMixin


@define(eq=False, repr=False)
class Record(ReprMixin):
    """One program: as it was made, and the marked copy that goes on.

    Its `level` is one more than those of the programs that it was made from.
    """

    name: str
    title: str
    jaxpr: Jaxpr
    parents: frozenset["Record"] = frozenset()
    level: int = 0
    seconds: float | None = None
    function: str = "a function"
    marked: Jaxpr = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.marked = Marker(self).program(self.jaxpr)


@frozen(eq=False, repr=False)
class Name(ReprMixin):
    """A program that was traced: of which function, and how long it took."""

    jaxpr: Jaxpr
    function: str
    seconds: float


class Recording:
    """The observer of a trace; see the module."""

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.marked: dict[int, Record] = {}
        self.names: dict[int, Name] = {}

    def add(
        self,
        name: str,
        jaxpr: Jaxpr,
        title: str = "",
        parents: Iterable[Record] = (),
        seconds: float | None = None,
    ) -> Record:
        """Keep a program; what its equations came from is read off their marks."""
        found = {mark.owner for s in all_sources(jaxpr) if (mark := mark_of(s))}
        known = {record for record in self.records if record in found}
        known.update(parents)
        level = 1 + max([parent.level for parent in known], default=-1)
        title = title or f"{name} of {self.function_of(jaxpr)}"
        record = Record(name, title, jaxpr, frozenset(known), level, seconds)
        self.records.append(record)
        self.marked[id(record.marked)] = record
        return record

    def before(self, jaxpr: Jaxpr) -> Record:
        """The record of a program that is about to be rewritten."""
        return self.marked.get(id(jaxpr)) or self.whole(jaxpr)

    def traced(self, jaxpr: Jaxpr, function: str, seconds: float) -> None:
        """See `Observer.traced`."""
        self.names[id(jaxpr)] = Name(jaxpr, function, seconds)

    def function_of(self, jaxpr: Jaxpr) -> str:
        """The function that a program was traced from, or made of the trace of."""
        named = self.names.get(id(jaxpr))
        return "a function" if named is None else named.function

    def whole(self, jaxpr: Jaxpr) -> Record:
        """The record of a program that was traced."""
        named = self.names.get(id(jaxpr))
        record = self.add(
            "trace", jaxpr, seconds=None if named is None else named.seconds
        )
        record.function = self.function_of(jaxpr)
        if record.parents:
            record.name = "join"
            record.title = f"{record.function}, with what was made inside it"
        return record

    def rewrite[E](
        self, name: str, jaxpr: Jaxpr, make: Callable[[Jaxpr], tuple[Jaxpr, E]]
    ) -> tuple[Jaxpr, E]:
        """See `Observer.rewrite`."""
        before = self.before(jaxpr)
        started = time.perf_counter()
        made, found = make(before.marked)
        spent = time.perf_counter() - started
        title = f"{name} of {before.function}"
        after = self.add(name, made, title, [before], spent)
        after.function = before.function
        return after.marked, found

    def part[E](
        self, name: str, jaxpr: Jaxpr, make: Callable[[Jaxpr], tuple[Jaxpr, Jaxpr, E]]
    ) -> tuple[Jaxpr, Jaxpr, E]:
        """See `Observer.part`."""
        before = self.before(jaxpr)
        started = time.perf_counter()
        first, second, found = make(before.marked)
        spent = time.perf_counter() - started
        function = before.function
        forward = self.add(name, first, f"{function}, forward", [before], spent)
        linear = self.add(name, second, f"linear part of {function}", [before])
        forward.function = linear.function = function
        return forward.marked, linear.marked, found

    def levels(self) -> list[list[Record]]:
        """For each stage its programs: what is new there, and what later ones need."""
        last = {record: record.level for record in self.records}
        for record in self.records:
            for parent in record.parents:
                last[parent] = max(last[parent], record.level - 1)
        count = 1 + max([record.level for record in self.records], default=-1)
        return [
            [r for r in self.records if r.level <= level <= last[r]]
            for level in range(count)
        ]
