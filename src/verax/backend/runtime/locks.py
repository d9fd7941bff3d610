"""Floor 4: one thread at a time, without deadlocks.

One idea: what is made once per key is made under the lock of that key. Making it may
run the user's code, which may call functions that other threads are busy with: so a
thread waits only for locks that rank above all that it holds, and otherwise goes ahead
and at worst makes what another thread is making too::

    with locks.turn(key):
        value = cache.get(key) or make(key)
"""

import threading
from collections.abc import Generator, Hashable, Iterator
from threading import RLock
from typing import ClassVar, Final
from weakref import WeakValueDictionary

from verax.ir.locks import Lock, locked
from verax.rules.guards import block
from verax.rules.values.state import STATE

TRACING, COMPILING = 1, 2
"""The ranks: a thread that traces may wait for a compilation, never the reverse."""


class Held(threading.local):
    """The highest rank among the locks that the thread holds."""

    rank = 0


HELD: Final = Held()


@locked
class Locks:
    """Locks by key; one lives as long as somebody holds it or waits for it."""

    __slots__ = ("locks", "rank")
    lock: ClassVar[Lock]

    def __init__(self, rank: int) -> None:
        self.rank = rank
        self.locks: WeakValueDictionary[Hashable, RLock] = WeakValueDictionary()

    def of(self, key: Hashable) -> RLock:
        """The lock for `key`: one object for equal keys, while it is in use.

        >>> locks = Locks(TRACING)
        >>> one = locks.of("f32[3]")
        >>> locks.of("f32[3]") is one, locks.of("f32[4]") is one
        (True, False)
        """
        if STATE.forked:  # who held locks then does not exist here, and frees none
            return RLock()
        with self.lock:
            return self.locks.setdefault(key, RLock())

    @block
    def turn(self, key: Hashable) -> Generator[None]:
        """Hold the lock for `key` within the block; do without it if that may deadlock.

        The block must look first whether another thread has made the thing meanwhile.
        """
        lock, above = self.of(key), HELD.rank
        release: Iterator[None] = iter(lock.release, None)
        acquire = map(lock.acquire, [above < self.rank])
        taken: list[bool] = []
        try:
            taken += acquire
            HELD.rank = max(above, self.rank * (True in taken))
            yield
        finally:
            HELD.rank = above
            if True in taken:
                [*release]  # noqa: B018  # calls it in one step
