"""Finds programs that differ between processes before they run, and hang (floor 4).

One idea: processes compile the programs that span them in the same order, so each
publishes the checksum of its first, second, third, and reads those of the others::

    compare_programs("step", text, devices)     # raises in all of them
"""

import hashlib
from collections import Counter
from collections.abc import Sequence
from threading import Lock
from typing import Final

from verax.backend.processes.exchange import connection, publish, published
from verax.backend.runtime.client import Device

SECONDS: Final = 120.0


class Order:
    """How many programs this process has compiled, by the processes that share them."""

    __slots__ = ("counts", "lock")

    def __init__(self) -> None:
        """None yet."""
        self.lock = Lock()
        self.counts: Counter[tuple[int, ...]] = Counter()

    def following(self, members: tuple[int, ...]) -> int:
        """The number of the next program over these processes."""
        with self.lock:
            self.counts[members] += 1
            return self.counts[members]


ORDER: Final = Order()


def compare_programs(name: str, text: str, devices: Sequence[Device]) -> None:
    """Wait until all processes of these devices compile a program, and compare it.

    Raises:
        ProcessFailed: another process failed meanwhile.
        RuntimeError: their programs differ, or one compiles none in time.
    """
    members = tuple(sorted({device.process_index for device in devices}))
    own = connection().settings.index
    if len(members) == 1 or own not in members:
        return
    number = ORDER.following(members)
    key = f"verax/programs/{'-'.join(map(str, members))}/{number}"
    mark = f"{name} {hashlib.sha256(text.encode()).hexdigest()[:16]}"
    publish(f"{key}/{own}", mark.encode())
    for other in members:
        try:
            found = published(f"{key}/{other}", SECONDS, [other]).decode()
        except RuntimeError as error:
            if "DEADLINE" not in str(error.__cause__):
                raise
            raise RuntimeError(
                f"process {own} compiles {name}, program {number} of processes "
                f"{members}, but process {other} has compiled none in {SECONDS:g} s: "
                "all processes must run the same programs in the same order"
            ) from error
        if found != mark:
            raise RuntimeError(
                f"program {number} of processes {members} differs: process {own} "
                f"compiles {mark}, but process {other} {found} (name and checksum of "
                "the module): all processes must run the same programs in the same "
                "order"
            )
