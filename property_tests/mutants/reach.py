"""Which calls run which line: found out once, on the rules as they are.

One idea: a mutant can only be noticed by a call whose law runs its line, so trials try
these calls and no others. What runs while modules are imported, or while a case is
made, is told apart: the former is in every call, the latter decides what program is
tried, not what is made of it::

    reached(calls).by_law["ops/elementwise/trig.py", 57]  # [Call("sin", "jvp", 0), ...]
"""

import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import CodeType

from attrs import Factory, frozen

from property_tests.mutants.patch import Key, key_of, memos, name_in_verax
from property_tests.mutants.scope import SOURCE
from property_tests.mutants.trial import Call, held, prepared

TOOL = sys.monitoring.COVERAGE_ID
FOLDERS = tuple(str(SOURCE / "verax" / name) + "/" for name in ("ops", "rules"))
PER_LINE = 60
"""So many calls are kept for each line, of different rows and laws first.

As many examples are kept beside them: the number of an example is none of a seed.
"""
type Place = tuple[str, int]


@frozen
class Reach:
    """The calls whose laws run each line, and the lines that run on other occasions.

    `early` are the codes that an import runs; `seconds` is how much time of a processor
    each call took.
    """

    by_law: dict[Place, list[Call]] = Factory(dict)
    making: set[Place] = Factory(set)
    importing: set[Place] = Factory(set)
    early: set[Key] = Factory(set)
    seconds: dict[Call, float] = Factory(dict)

    def join(self, other: "Reach") -> None:
        """Add what another process has found."""
        for place, calls in other.by_law.items():
            self.by_law.setdefault(place, []).extend(calls)
        self.making.update(other.making)
        self.importing.update(other.importing)
        self.early.update(other.early)
        self.seconds.update(other.seconds)


@contextmanager
def watching(lines: set[Place], codes: set[Key]) -> Iterator[None]:
    """Note the lines of rules that run within the block, once each."""

    def seen(code: CodeType, line: int) -> object:
        if code.co_filename.startswith(FOLDERS):
            lines.add((name_in_verax(code.co_filename), line))
            codes.add(key_of(code))
        return sys.monitoring.DISABLE

    sys.monitoring.use_tool_id(TOOL, "mutants")
    sys.monitoring.register_callback(TOOL, sys.monitoring.events.LINE, seen)
    sys.monitoring.set_events(TOOL, sys.monitoring.events.LINE)
    sys.monitoring.restart_events()
    try:
        yield
    finally:
        sys.monitoring.set_events(TOOL, 0)
        sys.monitoring.free_tool_id(TOOL)


def of_import() -> Reach:
    """What importing verax runs; in a process that has not done so."""
    actual = Reach()
    with watching(actual.importing, actual.early):
        import property_tests.mutants.calls  # noqa: F401  # imports verax
    return actual


def reached(calls: Sequence[Call]) -> Reach:
    """The calls that run each line of a rule; calls that fail are left out."""
    actual, by_law = Reach(), defaultdict[Place, list[Call]](list)
    kept = Counter[tuple[Place, bool]]()
    for call in calls:
        lines: set[Place] = set()
        begun = time.process_time()
        try:
            with watching(actual.making, set()):
                case = prepared(call)
            for memo in memos():
                memo.cache_clear()
            with watching(lines, set()):
                held(call, case)
        except Exception as error:
            print(f"{call} fails without any mutant: {str(error)[:200]}", flush=True)
            continue
        actual.seconds[call] = time.process_time() - begun
        example = call.law == "examples"
        for place in lines:
            if kept[place, example] < PER_LINE:
                kept[place, example] += 1
                by_law[place].append(call)
    actual.by_law.update(by_law)
    return actual
