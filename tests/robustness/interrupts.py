"""Interrupts at every place where CPython can raise one, one place at a time.

One idea: the interpreter looks for Ctrl-C where a function of Python begins or goes on,
where a call has returned and where a loop goes back; it reports the same places to
monitors, and what a monitor raises is raised there (but for loops, where CPython 3.12.1
skips the handlers around)::

    count = places(work)
    for place in range(count):
        interrupted(work, place)      # KeyboardInterrupt at that place, or it is over
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import get_ident
from types import CodeType
from typing import Final

EVENTS: Final = sys.monitoring.events
TOOL: Final = 4
OURS: Final = "/src/verax/"


class Places:
    """Counts the places that are passed, and raises at one of them."""

    def __init__(self, expected: int | None) -> None:
        self.wanted = expected
        self.thread = get_ident()
        self.passed = 0
        self.where = ""

    def passing(self, code: CodeType, offset: int) -> None:
        if OURS not in code.co_filename or get_ident() != self.thread:
            return
        here, self.passed = self.passed, self.passed + 1
        if here == self.wanted:
            self.where = f"{code.co_filename}:{code.co_qualname}+{offset}"
            raise KeyboardInterrupt

    def returned(
        self, code: CodeType, offset: int, called: object, arg: object
    ) -> None:
        del called, arg  # the frames of an interrupt hold nothing more than true ones
        self.passing(code, offset)


@contextmanager
def watched(places: Places) -> Iterator[None]:
    """Have `places` told within the block."""
    monitoring = sys.monitoring
    told: dict[int, Callable[..., object]] = {
        EVENTS.PY_START: places.passing,
        EVENTS.PY_RESUME: places.passing,
        EVENTS.C_RETURN: places.returned,
    }
    monitoring.use_tool_id(TOOL, "interrupts")
    try:
        for event, function in told.items():
            monitoring.register_callback(TOOL, event, function)
        # What C functions return is told where calls are.
        monitoring.set_events(TOOL, EVENTS.PY_START | EVENTS.PY_RESUME | EVENTS.CALL)
        yield
    finally:
        monitoring.set_events(TOOL, 0)
        for event in told:
            monitoring.register_callback(TOOL, event, None)
        monitoring.free_tool_id(TOOL)


def places(work: Callable[[], object]) -> int:
    """How many places there are, in functions of ours, while `work` runs."""
    actual = Places(None)
    with watched(actual):
        work()
    return actual.passed


def interrupted(
    work: Callable[[], object], place: int, kept: list[BaseException] | None = None
) -> tuple[bool, str]:
    """Run `work` with an interrupt at one place: whether it came out, and where it was.

    `kept` gets the exception; without it nobody looks at its frames any more.
    """
    actual = Places(place)
    came = False
    with watched(actual):
        try:
            work()
        except KeyboardInterrupt as error:
            came = True
            if kept is not None:
                kept.append(error)
        except RuntimeError as error:  # XLA has called, and tells what it was told
            came = "error calling callback" in str(error)
            if not came:
                raise
    return came, actual.where
