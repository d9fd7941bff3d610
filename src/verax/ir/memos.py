"""Floor 0: memos, what they must not keep, and the locks of what a process has once.

One idea: `functools.lru_cache` forgets the types of parameters, so that a caller could
pass anything; here the cache is the same C object, typed as the function it wraps::

    @memoised
    def square(x: int) -> int: ...

`Recent` is for look-ups that must not compute, `Weighed` for what is large.
"""

import enum
import functools
from collections import OrderedDict
from collections.abc import Callable, Hashable
from types import (
    BuiltinFunctionType,
    FunctionType,
    GenericAlias,
    ModuleType,
    NoneType,
    UnionType,
)
from typing import (
    ClassVar,
    Final,
    TypeAliasType,
    Union,
    cast,
    get_args,
    get_origin,
)

import numpy as np
from attrs import fields, has

from verax.ir.locks import Lock, locked

# -----------------------------------------------------------------------------
# Which values keep mortal objects alive, so that memos must not keep them.
#
# A memo that outlives its callers may keep numbers, types and programs, but no
# array that a closure captured and no function that captured one. A value says by
# `transient` that it holds such an object; everything else is judged by its class::
#
#     # False, False, True
#     holds(3), holds(lambda: 0), holds((lambda x: lambda: x)(0))


PLAIN: Final = frozenset(
    (bool, int, float, complex, str, bytes, NoneType, type, slice, range, type(...))
)
"""Classes whose values hold nothing."""
PLAIN_BASES: Final = (
    np.generic,
    np.dtype,
    np.ufunc,
    enum.Enum,
    BuiltinFunctionType,
    ModuleType,
)
CONTAINERS: Final = (tuple, frozenset)


def holds(value: object) -> bool:
    """Whether a value holds an array, or a function or object that may hold one.

    Functions without closure and defaults hold nothing but code. An object of an
    unknown class may hold anything, unless it says `transient = False`.
    """
    kind = type(value)
    if kind in PLAIN:
        return False
    known = getattr(value, "transient", None)
    if type(known) is bool:
        return known
    if isinstance(value, CONTAINERS):
        return any(map(holds, value))
    if isinstance(value, FunctionType):
        return captures(value)
    if isinstance(value, PLAIN_BASES):
        return False
    if isinstance(value, type):
        return False
    if has(kind):
        return any([holds(getattr(value, a.name)) for a in fields(kind)])
    return True


def captures(function: FunctionType) -> bool:
    """Whether a function holds values of the place where it was made."""
    if function.__closure__:
        return True
    named = function.__kwdefaults__ or {}
    return any(map(holds, (*(function.__defaults__ or ()), *named.values())))


def is_plain_type(kind: object) -> bool:
    """Whether all values of an annotated type hold nothing."""
    if isinstance(kind, TypeAliasType):
        return is_plain_type(kind.__value__)
    if kind is None or kind is ...:
        return True
    origin = get_origin(kind)
    if origin in (Union, UnionType, *CONTAINERS):
        return all(map(is_plain_type, get_args(kind)))
    if isinstance(kind, GenericAlias) or origin is not None:
        return isinstance(origin, type) and issubclass(origin, PLAIN_BASES)
    return isinstance(kind, type) and (
        kind in PLAIN
        or issubclass(kind, PLAIN_BASES)
        or getattr(kind, "transient", None) is False
    )


# -----------------------------------------------------------------------------
# Memos of a bounded size.

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

    lock: ClassVar[Lock]

    def __init__(self, size: int) -> None:
        self.size = size
        self.entries: OrderedDict[K, V] = OrderedDict()

    def find(self, key: K) -> V | None:
        """The value for `key`, if there is one."""
        with self.lock:
            entry = self.entries.get(key)
            if entry is not None:
                self.entries.move_to_end(key)
            return entry

    def add(self, key: K, value: V) -> V:
        """The value for `key` from now on: the first that was added."""
        with self.lock:
            out = self.entries.setdefault(key, value)
            if len(self.entries) > self.size:
                self.entries.popitem(last=False)
            return out

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
            out = super().find(key)
            if out is None and (held := self.loose.pop(key, None)) is not None:
                out = held()
                if out is not None:
                    self.add(key, out)
            return out

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
        """Forgets an entry that nobody holds any more."""
        return lambda _: self.loose.pop(key, None)

    def cache_clear(self) -> None:
        """Forget everything."""
        with self.lock:
            super().cache_clear()
            self.loose.clear()
            self.weight = 0
