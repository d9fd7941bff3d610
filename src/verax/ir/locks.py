"""Floor 0: locks that neither Ctrl-C nor a fork leaves held.

One idea: a `with` statement releases what it took only once it has begun. CPython 3.14
looks for Ctrl-C as soon as a lock of C is taken, which is before that; in a function of
Python, a list that calls what an iterator has to call is one step, and none follows
that could be interrupted::

    take = iter(lock.acquire, True)
    [*take]
"""

import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager
from operator import attrgetter
from threading import RLock
from typing import ClassVar, Protocol

from verax.ir.system import after_fork

type Lock = AbstractContextManager[bool, None]
"""A lock for `with` statements; the thread that holds it may take it again."""


class WholeLock:
    """A lock that is taken in one step with the beginning of the block.

    >>> lock = WholeLock()
    >>> with lock, lock:
    ...     pass
    """

    __slots__ = ("release", "take")
    # The statement finds it without running any Python.
    __exit__ = property(attrgetter("release"))

    def __init__(self) -> None:
        lock = RLock()
        self.take, self.release = lock.acquire, lock.__exit__

    def __enter__(self) -> bool:
        take: Iterator[bool] = iter(self.take, True)
        [*take]  # noqa: B018  # calls it in one step
        return True


def new_lock() -> Lock:
    """A lock for `with` statements."""
    return WholeLock() if sys.version_info >= (3, 14) else RLock()


# -----------------------------------------------------------------------------
# Locks of what a process has once; a forked child finds them free.
#
# A child has one thread, and whoever held a lock in the parent does not exist
# there to release it; so each child makes such locks again::
#
#     @locked
#     class Table:
#         lock: ClassVar[Lock]


class Locked(Protocol):
    """A class whose objects share a lock: they hold it for a moment at a time."""

    lock: ClassVar[Lock]


def locked[C: type[Locked]](cls: C) -> C:
    """Give a class its lock, and a new one in each forked child."""

    def renew() -> None:
        cls.lock = new_lock()

    renew()
    after_fork(renew)
    return cls
