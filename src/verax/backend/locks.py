"""Floor 4: a lock for each thing that somebody is busy with.

One idea: what is made once per key is made under the lock of that key, so that threads
wait for those who make the same thing, and for nobody else::

    with locks.of(key):
        found = cache.get(key) or make(key)
"""

import threading
from collections.abc import Hashable
from weakref import WeakValueDictionary

from verax.rules.state import STATE


class Locks:
    """Locks by key; one lives as long as somebody holds it or waits for it."""

    __slots__ = ("guard", "locks")

    def __init__(self) -> None:
        self.guard = threading.Lock()
        self.locks: WeakValueDictionary[Hashable, threading.RLock] = (
            WeakValueDictionary()
        )

    def of(self, key: Hashable) -> threading.RLock:
        """The lock for `key`: one object for equal keys, while it is in use.

        >>> locks = Locks()
        >>> one = locks.of("f32[3]")
        >>> locks.of("f32[3]") is one, locks.of("f32[4]") is one
        (True, False)
        """
        if STATE.forked:  # who held locks then does not exist here, and frees none
            return threading.RLock()
        with self.guard:
            return self.locks.setdefault(key, threading.RLock())
