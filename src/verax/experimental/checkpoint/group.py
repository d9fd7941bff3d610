"""The processes that write one checkpoint, and how they wait for one another.

They meet in the store of the distributed runtime, not by computing, so that a save in a
thread does not mix with the program's own collectives::

    group.agree(lambda: new_name())   # the first one's answer, everywhere
    group.barrier("written")
"""

import itertools
from collections import defaultdict
from collections.abc import Callable
from typing import Final

from attrs import evolve, frozen

from verax.backend.processes.exchange import publish, published, wait_for_all, withdraw
from verax.backend.runtime.client import process_count, process_index
from verax.experimental.checkpoint.leaves import CheckpointError
from verax.ir.locks import new_lock
from verax.ir.records import ReprMixin

SECONDS: Final = 3600.0
"""The time that a process waits for the others, which may have more to write."""

DONE: Final = "+"
FAILED: Final = "-"


class Turns:
    """Numbers the saves to each path, as every other process numbers them too."""

    def __init__(self) -> None:
        self.lock = new_lock()
        self.counts: defaultdict[str, itertools.count[int]] = defaultdict(
            itertools.count
        )

    def next(self, path: str) -> int:
        """The number of saves to a path so far."""
        with self.lock:
            return next(self.counts[path])


TURNS: Final = Turns()


@frozen(repr=False)
class Group(ReprMixin):
    """All processes of the program, at one save."""

    path: str
    turn: int
    size: int

    @property
    def name(self) -> str:
        """The beginning of the keys of this save."""
        return f"verax/checkpoint/{self.path}/{self.turn}"

    @classmethod
    def of_save(cls, path: str) -> "Group":
        """The processes that save to a path; each of them calls this."""
        size = process_count()
        turn = TURNS.next(path) if size > 1 else 0
        out = cls(path, turn, size)
        if turn > 1 and process_index() == 0:
            # Every process has left the last save but one.

            withdraw(evolve(out, turn=turn - 2).name)
        return out

    def agree(self, make: Callable[[], str]) -> str:
        """Returns in all processes what `make` returns in process 0.

        Raises:
            CheckpointError: it raised there.
        """
        made: list[str] = []

        def work() -> None:
            if process_index() == 0:
                made.append(make())

        told = self.together("begin", work, lambda: made[0] if made else "")
        return told[0] if told else made[0]

    def together(
        self, step: str, work: Callable[[], None], tell: Callable[[], str] = str
    ) -> list[str]:
        """Do the work of this process, and wait until all have done theirs.

        Returns:
            What `tell` says in each process after the work; nothing if alone.

        Raises:
            CheckpointError: another process failed; what this one raises, it raises.
        """
        if self.size == 1:
            work()
            return []
        key = f"{self.name}/{step}"
        failure = None
        try:
            work()
        except BaseException as error:
            failure = error
        told = repr(failure) if failure else tell()
        mark = FAILED if failure else DONE

        publish(f"{key}/{process_index()}", (mark + told).encode())
        wait_for_all(key, SECONDS)
        answers = [
            published(f"{key}/{process}", SECONDS).decode()
            for process in range(self.size)
        ]
        # Who goes on may end, and with process 0 what others would read.
        wait_for_all(f"{key}/read", SECONDS)
        if failure is not None:
            raise failure
        for process, answer in enumerate(answers):
            if answer.startswith(FAILED):
                raise CheckpointError(
                    f"process {process} could not do its part of the checkpoint: "
                    f"{answer.removeprefix(FAILED)}"
                )
        return [answer.removeprefix(DONE) for answer in answers]
