"""Which calls run which line: found out once, on the rules as they are.

One idea: a mutant can only be noticed by a call that runs its line, so trials try these
calls and no others::

    reached(calls)["verax.ops.trig", 57]      # [Call("sin", "jvp", 0), ...]
"""

import functools
import gc
import sys
from collections import defaultdict
from collections.abc import Sequence
from types import CodeType
from typing import Any

from property_tests.mutants.trial import SOURCE, Call, tried

TOOL = sys.monitoring.COVERAGE_ID
FOLDERS = tuple(str(SOURCE / "verax" / name) + "/" for name in ("ops", "rules"))
PER_LINE = 60
"""So many calls are kept for each line, of different rows and laws first."""
type Reach = dict[tuple[str, int], list[Call]]


def caches() -> list[Any]:
    """Every memo of verax: a call must not profit from another one."""
    kind = type(functools.lru_cache(lambda: None))
    return [x for x in gc.get_objects() if isinstance(x, kind) and "verax" in of(x)]


def of(cache: Any) -> str:
    return str(getattr(cache, "__module__", ""))


def reached(calls: Sequence[Call]) -> Reach:
    """The calls that run each line of a rule; calls that fail are left out."""
    found: Reach = defaultdict(list)
    lines: set[tuple[str, int]] = set()

    def seen(code: CodeType, line: int) -> object:
        if code.co_filename.startswith(FOLDERS):
            lines.add((code.co_filename, line))
        return sys.monitoring.DISABLE

    sys.monitoring.use_tool_id(TOOL, "mutants")
    sys.monitoring.register_callback(TOOL, sys.monitoring.events.LINE, seen)
    sys.monitoring.set_events(TOOL, sys.monitoring.events.LINE)
    memos = caches()
    for call in calls:
        for memo in memos:
            memo.cache_clear()
        lines.clear()
        sys.monitoring.restart_events()
        try:
            tried(call)
        except Exception as error:
            print(f"{call} fails without any mutant: {str(error)[:200]}", flush=True)
            continue
        for place in lines:
            if len(found[place]) < PER_LINE:
                found[place].append(call)
    sys.monitoring.set_events(TOOL, 0)
    sys.monitoring.free_tool_id(TOOL)
    return dict(found)
