"""Floor 0: memoising that keeps the signature of what it memoises.

One idea: `functools.lru_cache` forgets the types of parameters, so that a caller could
pass anything; here the cache is the same C object, typed as the function it wraps::

    @memoised
    def square(x: int) -> int: ...

`Recent` is for look-ups that must not compute, `Weighed` for what is large.
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


class Weighed[K: Hashable, V](Recent[K, V]):
    """The entries used last that weigh at most `limit` together, and those in use.

    `weigh` says how much a value weighs; `loosen(value, gone)` makes a function that
    gives the value as long as somebody else holds it, and calls `gone` when nobody
    does any more.

    >>> import weakref
    >>> class Value: ...
    >>> values = [Value() for _ in range(3)]
    >>> few = Weighed[int, Value](2, lambda value: 1, weakref.ref)
    >>> all([few.add(*entry) for entry in enumerate(values)])
    True
    >>> [few.find(i) in values for i in range(3)]
    [True, True, True]
    >>> values.clear()
    >>> [few.find(i) is None for i in range(3)]
    [True, False, False]
    """

    def __init__(
        self,
        limit: int,
        weigh: Callable[[V], int],
        loosen: Callable[[V, Callable[[object], object]], Callable[[], V | None]],
    ) -> None:
        super().__init__(limit)
        self.weigh, self.loosen = weigh, loosen
        self.weight = 0
        self.loose: dict[K, Callable[[], V | None]] = {}

    def find(self, key: K) -> V | None:
        """The value for `key`, if there is one."""
        with self.lock:
            found = super().find(key)
            if found is None and (held := self.loose.pop(key, None)) is not None:
                found = held()
                if found is not None:
                    self.add(key, found)
            return found

    def add(self, key: K, value: V) -> V:
        """The value for `key` from now on: the first that was added."""
        with self.lock:
            if key in self.entries:
                return self.entries[key]
            self.entries[key] = value
            self.weight += self.weigh(value)
            while self.weight > self.size and len(self.entries) > 1:
                old, left = self.entries.popitem(last=False)
                self.weight -= self.weigh(left)
                self.loose[old] = self.loosen(left, self.forget(old))
            return value

    def forget(self, key: K) -> Callable[[object], object]:
        """What forgets an entry that nobody holds any more."""
        return lambda _: self.loose.pop(key, None)

    def cache_clear(self) -> None:
        """Forget everything."""
        with self.lock:
            super().cache_clear()
            self.loose.clear()
            self.weight = 0
