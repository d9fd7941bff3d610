"""All cases in the order of the table, selected by a regular expression.

The idea: driver and workers import the same catalogue, and cases travel by name.

    [case.name for case in select("trace/")]
"""

import re

from . import deep, eager, second_run, staging, startup
from .case import Case

CASES: tuple[Case, ...] = (
    *staging.cases(),
    *deep.cases(),
    *eager.cases(),
    *startup.cases(),
    *second_run.cases(),
)

# groups that share the processes of another, because starting one costs a second
SHARED = {
    "operations": "lower",
    "inlined": "lower",
    "cached": "eager",
    "fresh": "eager",
    "memory": "growth",
}


def select(pattern: str | None) -> list[Case]:
    """Return the cases whose name the regular expression finds (all for None)."""
    return [case for case in CASES if pattern is None or re.search(pattern, case.name)]


def groups(cases: list[Case]) -> dict[str, list[Case]]:
    """Return the cases by the group whose processes they run in, in order."""
    table: dict[str, list[Case]] = {}
    for case in cases:
        table.setdefault(SHARED.get(case.group, case.group), []).append(case)
    return table
