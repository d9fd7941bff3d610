"""Floor 4: what functions of the host raised while a program called them.

One idea: an exception cannot travel through XLA, so it is kept under a number and XLA's
message carries the number::

    failure = FAILURES.behind(error)      # what the user's function raised, or None
"""

import re
from collections import OrderedDict
from typing import ClassVar, Final

from verax.backend.runtime.errors import ExecutionError, explained
from verax.ir.locks import Lock, locked
from verax.rules.programs.host import CallbackError
from verax.rules.values.state import State

MARK: Final = re.compile(r"verax callback failure (\d+)")
KEPT = 16


class FailedCallback(Exception):
    """The error that XLA sees, with the number under which the true one is kept."""


def suspect_others(error: Exception) -> None:
    """Ask, where there are other processes, whether one of them made an error.

    Raises:
        ProcessFailed: one did.
    """
    if State.joined:
        from verax.backend.runtime.cluster import suspect

        suspect(error)


@locked
class Failures:
    """The last exceptions of callbacks, by number; they are looked up many times."""

    lock: ClassVar[Lock]

    def __init__(self) -> None:
        self.count = 0
        self.kept: OrderedDict[int, BaseException] = OrderedDict()
        self.seen: set[int] = set()

    def keep(self, error: BaseException) -> FailedCallback:
        """Note an exception; what to raise into XLA instead."""
        with self.lock:
            self.count += 1
            self.kept[self.count] = error
            if len(self.kept) > KEPT:
                number, _ = self.kept.popitem(last=False)
                self.seen.discard(number)
            return FailedCallback(f"verax callback failure {self.count}")

    def behind(
        self, error: BaseException, *, new: bool = False
    ) -> BaseException | None:
        """The exception of a callback that made XLA raise `error`, ready to raise.

        With `new`, only one that has not been asked for yet.
        """
        match = MARK.search(str(error))
        if match is None:
            return None
        number = int(match[1])
        with self.lock:
            kept = self.kept.get(number)
            if kept is None or (new and number in self.seen):
                return None
            self.seen.add(number)
        if not isinstance(kept, CallbackError):
            return kept
        again = CallbackError(*kept.args)
        again.__cause__ = kept.__cause__
        return again

    def revealed(self, error: Exception) -> BaseException:
        """The exception to raise for an error of the runtime: its cause or its text."""
        out = self.behind(error)
        if out is None:
            suspect_others(error)
            out = ExecutionError(explained(str(error)))
            out.__cause__ = error
        return out


FAILURES: Final = Failures()
