"""Floor 1: memos: what the library computes once and finds again.

One idea: what a memo keeps must depend on its key alone, and must not keep alive what
the user has let go. So a memo either has the context in its key, or runs where nothing
is configured; and it refuses keys that hold captured arrays or closures::

    @memo(1 << 12)
    def pushed(context: Context, engine: Engine, jaxpr: Jaxpr) -> Jaxpr: ...

    @pure(1 << 12)
    def plan(shape: tuple[int, ...]) -> Plan: ...

Params and programs say by `transient` whether they hold such objects. Who calls a memo
with one of them chooses what becomes of its results then::

    recall(pushed, jaxpr, context, engine, jaxpr)    # kept with it, and die with it
    asked(infer, params, row, params, *avals)        # computed each time

There is no other kind of memo above floor 0: the architecture test forbids
`functools.lru_cache` there.
"""

import functools
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from types import MappingProxyType
from typing import Any, Final, Protocol, TypeGuard, cast
from weakref import WeakKeyDictionary

from verax.ir.jaxpr import Jaxpr, Params
from verax.ir.memos import holds
from verax.rules.values.state import (
    NEUTRAL,
    UNCHANGED,
    current_context,
    current_mode,
    entered,
)

HEAVY: Final = 1 << 24
"""Bytes of constants that the results of one memo may hold together."""


PROGRAMS: Final = 1 << 11
"""The number of entries about programs one memo may keep.

A loop may write others without an end, each with its own numbers in it.
"""


KEPT: Final = 1 << 10
"""The most results that a program, or params, keep themselves."""


MISSING: Final = object()
CLASS_OF_MEMOS: Final = functools._lru_cache_wrapper
HOLDER: Final = "the holder"
"""Takes the place of a holder in what is kept with it."""
CURRENT: Final[Mapping[str, Callable[[], object]]] = MappingProxyType(
    {"context": current_context, "mode": current_mode}
)


class Holder(Protocol):
    """A program or params: what they hold, and what memos keep with them."""

    @property
    def transient(self) -> bool: ...
    @property
    def kept(self) -> dict[object, object]: ...


class TransientKey(AssertionError):
    """A memo was asked with what it must not keep alive: call it through `recall`."""


def memo[**P, R](
    size: int, *, typed: bool = False
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """A memo of a function whose first parameter is the `context` that it may read.

    The function may run code of the user's, or rules, which read what is configured and
    the named axes; so the caller passes `current_context()`. Where the interpreter
    matters, too, the first parameter is `mode`, which is `current_mode()`.

    Raises:
        TypeError: the function has another first parameter.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        code = getattr(function, "__code__", None)
        first = "" if code is None else code.co_varnames[0]
        current = CURRENT.get(first)
        if current is None:
            raise TypeError(
                f"{function!r} needs context as its first parameter to be a memo; use "
                "@pure for a function that does not read the configuration"
            )

        def enter(*args: object, **named: object) -> AbstractContextManager[None]:
            if args[0] != current():
                raise AssertionError(f"{function!r} was asked with another context")
            return UNCHANGED

        return bounded(function, enter, size, typed)

    return decorate


def pure[**P, R](
    size: int = 1 << 12,
    *,
    typed: bool = False,
    lasting: tuple[type, ...] = (),
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """A memo of a function of its arguments alone: it runs where nothing is configured.

    `typed` tells arguments apart that are equal but of different classes. Objects of
    the classes `lasting`, such as devices, live as long as the process.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        def enter(*args: object, **named: object) -> AbstractContextManager[None]:
            return entered(NEUTRAL)

        return bounded(function, enter, size, typed, lasting)

    return decorate


def bounded[**P, R](
    function: Callable[P, R],
    enter: Callable[..., AbstractContextManager[None]],
    size: int,
    typed: bool,
    lasting: tuple[type, ...] = (),
) -> Callable[P, R]:
    """The memo itself: `size` entries, of which those used last stay.

    The function runs within what `enter` makes of its arguments. All entries are
    dropped when the constants in the results become heavy, or the programs many.
    """
    weight, programs = [0], [0]

    def once(*args: object, **named: object) -> R:
        with enter(*args, **named):
            return cast(Callable[..., R], function)(*args, **named)

    def miss(*args: object, **named: object) -> R:
        held = [x for x in (*args, *named.values()) if holds(x)]
        if held and not all([isinstance(x, lasting) for x in held]):
            raise TransientKey(f"{function!r} was asked with a transient key")
        out = once(*args, **named)
        weight[0] += weight_of(out)
        programs[0] += any(map(has_program, args))
        if weight[0] > HEAVY or programs[0] > PROGRAMS:
            weight[0] = programs[0] = 0
            kept.cache_clear()
        return out

    functools.update_wrapper(miss, function)
    kept = functools.lru_cache(size, typed)(miss)
    kept.once = once  # type: ignore[attr-defined]  # what runs, without being kept
    return cast(Callable[P, R], kept)


class ByFunction[V]:
    """A store for each function of the user's, until the function dies.

    What is kept must not hold the function, or both would live forever; see `holds`.
    """

    def __init__(self) -> None:
        self.entries: WeakKeyDictionary[object, dict[object, V]] = WeakKeyDictionary()

    def of(self, function: object) -> dict[object, V]:
        """The entries of a function; empty, and not kept, for what has no identity.

        Two bound methods, say, may be equal and not the same.
        """
        kind = type(function)
        own: object = kind.__hash__
        if own is not object.__hash__ or not kind.__weakrefoffset__:
            return {}
        entry = self.entries.get(function)
        return self.entries.setdefault(function, {}) if entry is None else entry

    def drop(self, function: object) -> None:
        """Forget what is kept for a function."""
        self.of(function).clear()

    def cache_clear(self) -> None:
        """Forget everything."""
        self.entries.clear()


class Memo(Protocol):
    """A memo, as `memo` and `pure` make it, for those who clear it."""

    def cache_clear(self) -> None: ...


def is_memo(x: object) -> TypeGuard[Memo]:
    """Whether `memo` or `pure` made an object."""
    return isinstance(x, CLASS_OF_MEMOS) and hasattr(x, "once")


def weight_of(result: object) -> int:
    """The bytes of the array constants in the programs of a result."""
    parts = result if isinstance(result, tuple) else (result,)
    uses = [use for part in parts for use in getattr(part, "used_consts", ())]
    return sum([use.size for use in uses])


def has_program(x: object) -> bool:
    """Whether an argument is a program, or params that hold one."""
    if isinstance(x, Params):
        return any(True for _ in x.subjaxprs())
    return isinstance(x, Jaxpr)


def recall[*Ts, R](memoised: Callable[[*Ts], R], holder: Holder, *args: *Ts) -> R:
    """Asks a memo, where `holder` decides among the arguments who keeps the result.

    What a transient holder leads to is kept with the holder.
    """
    if not holder.transient:
        return memoised(*args)
    return kept_with(holder, memoised, *args)


def asked[*Ts, R](memoised: Callable[[*Ts], R], holder: Holder, *args: *Ts) -> R:
    """Asks a memo, which computes each time where `holder` is transient."""
    if not holder.transient:
        return memoised(*args)
    once: Callable[..., R] = memoised.once  # type: ignore[attr-defined]  # of a memo
    return once(*args)


def kept_with[*Ts, R](holder: Holder, memoised: Callable[[*Ts], R], *args: *Ts) -> R:
    """Asks a memo, and keeps the result with `holder`, which is among the arguments."""
    # Were the holder itself in a key or a result, it would keep itself alive.
    key = (memoised, *exchanged(args, holder, None))
    store = holder.kept
    entry = store.get(key, MISSING)  # another thread may clear the store meanwhile
    if entry is MISSING:
        if len(store) >= KEPT:
            store.clear()
        once: Callable[..., R] = memoised.once  # type: ignore[attr-defined]  # of a memo
        entry = store[key] = exchanged(once(*args), holder, HOLDER)
    return cast(R, exchanged(entry, HOLDER, holder))


def exchanged(value: object, old: object, new: object) -> Any:
    """`value`, or the tuple of its items, with one object instead of another."""
    if type(value) is tuple:
        return tuple([new if x is old else x for x in value])
    return new if value is old else value
