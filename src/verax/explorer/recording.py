"""What transformations make of the programs of one trace, in turn (floor 6).

The trace runs in a context that has the recording as its observer, so every program
that is about to be rewritten, and what comes of it, passes here and is marked::

    recording = Recording()
    with fresh_context(recording):
        whole = jit(f).trace(*args)
    recording.add("trace", whole.traced.jaxpr)
    recording.levels()
"""

import time
from collections import Counter
from collections.abc import Callable, Iterable

from attrs import define, field

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
    marked: Jaxpr = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.marked = Marker(self).program(self.jaxpr)


def function_of(jaxpr: Jaxpr) -> str:
    """The user's function that most equations of a program come from."""
    names = [eqn.source.function for eqn in jaxpr.eqns if eqn.source.code is not None]
    found = Counter(names).most_common(1)
    return found[0][0].replace("<locals>.", "") if found else "a function"


class Recording:
    """The observer of a trace; see the module."""

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.marked: dict[int, Record] = {}

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
        title = title or f"{name} of {function_of(jaxpr)}"
        record = Record(name, title, jaxpr, frozenset(known), level, seconds)
        self.records.append(record)
        self.marked[id(record.marked)] = record
        return record

    def before(self, jaxpr: Jaxpr) -> Record:
        """The record of a program that is about to be rewritten."""
        return self.marked.get(id(jaxpr)) or self.traced(jaxpr)

    def traced(self, jaxpr: Jaxpr, seconds: float | None = None) -> Record:
        """The record of a program that was traced."""
        record = self.add("trace", jaxpr, seconds=seconds)
        if record.parents:
            record.name = "join"
            record.title = f"{record.title[9:]}, with what was made inside it"
        return record

    def rewrite[E](
        self, name: str, jaxpr: Jaxpr, make: Callable[[Jaxpr], tuple[Jaxpr, E]]
    ) -> tuple[Jaxpr, E]:
        """See `Observer.rewrite`."""
        before = self.before(jaxpr)
        started = time.perf_counter()
        made, found = make(before.marked)
        spent = time.perf_counter() - started
        title = f"{name} of {function_of(before.jaxpr)}"
        after = self.add(name, made, title, [before], spent)
        return after.marked, found

    def part[E](
        self, name: str, jaxpr: Jaxpr, make: Callable[[Jaxpr], tuple[Jaxpr, Jaxpr, E]]
    ) -> tuple[Jaxpr, Jaxpr, E]:
        """See `Observer.part`."""
        before = self.before(jaxpr)
        started = time.perf_counter()
        first, second, found = make(before.marked)
        spent = time.perf_counter() - started
        function = function_of(before.jaxpr)
        forward = self.add(name, first, f"{function}, forward", [before], spent)
        linear = self.add(name, second, f"linear part of {function}", [before])
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
