"""Floor 4: a lock for each thing that somebody is busy with.

One idea: what is made once per key is made under the lock of that key, so that threads
wait for those who make the same thing, and for nobody else::

    with locks.of(key):
        found = cache.get(key) or make(key)
"""

from collections.abc import Hashable
from threading import RLock
from typing import ClassVar
from weakref import WeakValueDictionary

from verax.ir.locks import locked
from verax.rules.values.state import STATE


@locked
class Locks:
    """Locks by key; one lives as long as somebody holds it or waits for it."""

    __slots__ = ("locks",)
    lock: ClassVar[RLock]

    def __init__(self) -> None:
        self.locks: WeakValueDictionary[Hashable, RLock] = WeakValueDictionary()

    def of(self, key: Hashable) -> RLock:
        """The lock for `key`: one object for equal keys, while it is in use.

        >>> locks = Locks()
        >>> one = locks.of("f32[3]")
        >>> locks.of("f32[3]") is one, locks.of("f32[4]") is one
        (True, False)
        """
        if STATE.forked:  # who held locks then does not exist here, and frees none
            return RLock()
        with self.lock:
            return self.locks.setdefault(key, RLock())
