"""Floor 0: locks of what a process has once; a forked child finds them free.

One idea: a child has one thread, and whoever held a lock in the parent does not exist
there to release it; so each child makes such locks again::

    @locked
    class Table:
        lock: ClassVar[RLock]
"""

import os
from threading import RLock
from typing import ClassVar, Protocol


class Locked(Protocol):
    """A class whose objects share a lock: they hold it for a moment at a time."""

    lock: ClassVar[RLock]


def locked[C: type[Locked]](cls: C) -> C:
    """Give a class its lock, and a new one in each forked child."""

    def renew() -> None:
        cls.lock = RLock()

    renew()
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=renew)
    return cls
