"""Floor 0: memoising that keeps the signature of what it memoises.

One idea: `functools.lru_cache` forgets the types of parameters, so that a caller could
pass anything; here the cache is the same C object, typed as the function it wraps::

    @memoised
    def square(x: int) -> int: ...

`Recent` is for look-ups that must not compute.
"""

import functools
from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import RLock
from typing import ClassVar, cast

from verax.ir.memos.locks import locked

CACHE_SIZE = 8192


def memoised[**P, R](function: Callable[P, R]) -> Callable[P, R]:
    """`function` behind a bounded least-recently-used cache; arguments must hash.

    >>> @memoised
    ... def square(x: int) -> int:
    ...     return x * x
    >>> square(3)
    9
    """
    return cast(Callable[P, R], functools.lru_cache(CACHE_SIZE)(function))


@locked
class Recent[K: Hashable, V]:
    """The entries used last, at most `size` of them; several threads may share it.

    >>> recent = Recent[str, int](2)
    >>> [recent.add(name, i) for i, name in enumerate("abc")], recent.find("a")
    ([0, 1, 2], None)
    """

    lock: ClassVar[RLock]

    def __init__(self, size: int) -> None:
        self.size = size
        self.entries: OrderedDict[K, V] = OrderedDict()

    def find(self, key: K) -> V | None:
        """The value for `key`, if there is one."""
        with self.lock:
            found = self.entries.get(key)
            if found is not None:
                self.entries.move_to_end(key)
            return found

    def add(self, key: K, value: V) -> V:
        """The value for `key` from now on: the first that was added."""
        with self.lock:
            found = self.entries.setdefault(key, value)
            if len(self.entries) > self.size:
                self.entries.popitem(last=False)
            return found

    def cache_clear(self) -> None:
        """Forget everything."""
        with self.lock:
            self.entries.clear()
