"""Floor 1: memos: what the library computes once and finds again.

One idea: what a memo keeps must depend on its key alone, and must not keep alive what
the user has let go. So a memo either has the context in its key, or runs where nothing
is configured; and it refuses keys that hold captured arrays or closures::

    @memo(1 << 12)
    def pushed(context: Context, engine: Engine, jaxpr: Jaxpr) -> Jaxpr: ...

    @pure(1 << 12)
    def plan(shape: tuple[int, ...]) -> Plan: ...

`recall(pushed, jaxpr, context, engine, jaxpr)` finds, for a program that holds such
objects, what is kept with that program and dies with it. Where each look-up counts,
`@memo(1 << 12, holder="jaxpr")` says who keeps it, and the caller, who need not look
at the program first, takes the result from `Unshared`. There is no other kind of memo
above floor 0: the architecture test forbids `functools.lru_cache` there.
"""

import functools
import gc
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from types import CellType, FrameType, FunctionType, MappingProxyType, ModuleType
from typing import Any, Final, Protocol, TypeGuard, cast
from weakref import WeakKeyDictionary

from attrs import frozen

from verax.ir.jaxpr import Jaxpr, Params
from verax.ir.memos import holds
from verax.ir.records import ReprMixin
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
"""How many entries about programs one memo may keep.

A loop may write others without an end, each with its own numbers in it.
"""


KEPT: Final = 1 << 10
"""How much a program, or params, keep themselves."""


MISSING: Final = object()
CLASS_OF_MEMOS: Final = functools._lru_cache_wrapper
HOLDER: Final = "the holder"
"""What stands for a holder in what is kept with it."""
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


class Unshared(Exception):
    """What a memo with a `holder` leads to, where it must not keep that itself."""

    def __init__(self, result: Any) -> None:
        super().__init__(result)
        self.result = result


def memo[**P, R](
    size: int, *, typed: bool = False, holder: str | None = None
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """A memo of a function whose first parameter is the `context` that it may read.

    The function may run code of the user's, or rules, which read what is configured and
    the named axes; so the caller passes `current_context()`. Where the interpreter
    matters, too, the first parameter is `mode`, which is `current_mode()`.

    `holder` names the parameter that keeps results if it is transient. The call then
    raises `Unshared`, with the result; so errors of the function are the same for all
    keys, and those that the memo keeps cost nothing more.

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

        def enter(*args: Any, **named: Any) -> AbstractContextManager[None]:
            if args[0] != current():
                raise AssertionError(f"{function!r} was asked with another context")
            return UNCHANGED

        return bounded(function, enter, size, typed, holder=holder)

    return decorate


def pure[**P, R](
    size: int = 1 << 12,
    *,
    typed: bool = False,
    lasting: tuple[type, ...] = (),
    holder: str | None = None,
    keep: bool = True,
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """A memo of a function of its arguments alone: it runs where nothing is configured.

    `typed` tells arguments apart that are equal but of different classes. Objects of
    the classes `lasting`, such as devices, live as long as the process. `holder` is as
    for `memo`; without `keep` it keeps nothing, and the function runs each time.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        def enter(*args: Any, **named: Any) -> AbstractContextManager[None]:
            return entered(NEUTRAL)

        return bounded(function, enter, size, typed, lasting, holder, keep)

    return decorate


def bounded[**P, R](
    function: Callable[P, R],
    enter: Callable[..., AbstractContextManager[None]],
    size: int,
    typed: bool,
    lasting: tuple[type, ...] = (),
    holder: str | None = None,
    keep: bool = True,
) -> Callable[P, R]:
    """The memo itself: `size` entries, of which those used last stay.

    The function runs within what `enter` makes of its arguments. All entries are
    dropped when the constants in the results become heavy, or the programs many.
    """
    weight, programs = [0], [0]
    names: tuple[str, ...] = () if holder is None else function.__code__.co_varnames
    place = None if holder is None else names.index(holder)

    def once(*args: Any, **named: Any) -> R:
        try:
            with enter(*args, **named):
                return cast(Callable[..., R], function)(*args, **named)
        except Unshared as error:  # of another memo: nobody is to take it for ours
            raise TransientKey(f"{function!r} did not expect {error!r}") from error

    def miss(*args: Any, **named: Any) -> R:
        held = [x for x in (*args, *named.values()) if holds(x)]
        if held and not all([isinstance(x, lasting) for x in held]):
            if place is None or any([x is not args[place] for x in held]):
                raise TransientKey(f"{function!r} was asked with a transient key")
            if not keep:
                raise Unshared(once(*args))
            raise Unshared(kept_with(args[place], kept, *args))
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
    """What is kept for each function of the user's, until the function dies.

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
    """What `memo` and `pure` make, for those who clear it."""

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
    """What a memo says, where `holder` decides among the arguments who keeps it.

    What a transient holder leads to is kept with the holder.
    """
    if not holder.transient:
        return memoised(*args)
    return kept_with(holder, memoised, *args)


def asked[*Ts, R](memoised: Callable[[*Ts], R], holder: Holder, *args: *Ts) -> R:
    """What a memo says, computed each time where `holder` is transient."""
    if not holder.transient:
        return memoised(*args)
    once: Callable[..., R] = memoised.once  # type: ignore[attr-defined]  # of a memo
    return once(*args)


def kept_with[*Ts, R](holder: Holder, memoised: Callable[[*Ts], R], *args: *Ts) -> R:
    """What a memo says, kept with `holder`, which is among the arguments."""
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


def exchanged(value: Any, old: object, new: object) -> Any:
    """`value`, or the tuple of its items, with one object instead of another."""
    if type(value) is tuple:
        return tuple([new if x is old else x for x in value])
    return new if value is old else value


# -----------------------------------------------------------------------------
# Who holds an object, in the user's words.
#
# A tracer that has left its trace is held by something with a name: a global,
# an attribute, a variable of a closure, a cache; Python's collector knows which::
#
#     holder(tracer)    # "item 0 of the global 'seen' of module train"


# Holders of holders are asked so far; each step goes through all objects once.
DEPTH: Final = 6
# So many objects are followed at each step.
WIDTH: Final = 256
CACHE: Final = "_lru_cache_wrapper"
LIBRARY: Final = "verax"
# What says most to the user comes first; what has no such name may be the library's.
BEST: Final = ("the global", "the attribute", "the cache")


@frozen(eq=False, repr=False)
class Link(ReprMixin):
    """An object on the way from the one that is held; `inner` is what it holds."""

    x: Any
    inner: "Link | None" = None

    def inside(self) -> str:
        """Where in this object, and in those inside, what is held is."""
        if self.inner is None:
            return ""
        held = self.inner.x
        if type(self.x) in (list, tuple):
            places = [i for i, item in enumerate(self.x) if item is held]
            return self.inner.inside() + "".join([f"item {i} of " for i in places[:1]])
        if type(self.x) is dict:
            keys = [key for key, value in self.x.items() if value is held]
            return self.inner.inside() + "".join([f"entry {k!r} of " for k in keys[:1]])
        return self.inner.inside()


def holder(x: object) -> str:
    """What holds `x`, as far as it has a name; "" if nothing is found.

    It goes through all objects of the process, so it is for messages.
    """
    with suppress(Exception):  # of the user's classes: a message must not fail
        return search(x)
    return ""


def search(x: object) -> str:
    """The best name that is found in the fewest steps."""
    links = [Link(x)]
    seen = {id(x), id(links)}
    for _ in range(DEPTH):
        texts, links = expanded(links, seen)
        if texts:
            return min(texts, key=rank)
    return ""


def is_kept(x: object) -> bool:
    """Whether a global, an attribute or a cache of the user's holds `x`."""
    return rank(holder(x)) < len(BEST)


def rank(text: str) -> int:
    """How little a description says."""
    return next((i for i, words in enumerate(BEST) if words in text), len(BEST))


def expanded(links: Sequence[Link], seen: set[int]) -> tuple[list[str], list[Link]]:
    """The names of those that hold the links, and the links one step further."""
    held = {id(link.x): link for link in links}
    texts: list[str] = []
    further: list[Link] = []
    seen |= {id(links), id(held), id(further)}
    result = gc.get_referrers(*[link.x for link in links])
    for by in result:
        if id(by) in seen or isinstance(by, FrameType | ModuleType | Link):
            continue
        if is_library(by):
            continue
        seen.add(id(by))
        for y in gc.get_referents(by):
            if id(y) in held:
                texts += named(held[id(y)], by)
                further.append(Link(by, held[id(y)]))
                break
    return texts, further[:WIDTH]


def is_library(x: Any) -> bool:
    """Whether an object is the library's own, which is not a name for the user."""
    home = x if type(x).__name__ == CACHE else type(x)
    return str(getattr(home, "__module__", "")).partition(".")[0] == LIBRARY


def named(link: Link, by: Any) -> Iterator[str]:
    """What `by` is called in the user's program, and where in it the object is."""
    if type(by) is dict:
        module = by.get("__name__")
        loaded = sys.modules.get(module) if isinstance(module, str) else None
        for key in [k for k, v in by.items() if v is link.x][:1]:
            if loaded is not None and vars(loaded) is by:
                yield f"{link.inside()}the global {key!r} of module {module}"
    elif isinstance(by, FunctionType):
        yield from in_function(link, by)
    elif type(by).__name__ == CACHE:
        yield f"{link.inside()}the cache around {name_of(by)}"
    elif isinstance(by, type) or not isinstance(by, list | tuple | CellType):
        yield from in_object(link, by)


def in_function(link: Link, by: FunctionType) -> Iterator[str]:
    """A variable or a default value of a function."""
    if by.__defaults__ is link.x:
        yield f"{link.inside()}the default values of {name_of(by)}"
    cell, cells = link.inner, by.__closure__
    if cell is not None and cells is not None and cells is link.x:
        place = next(i for i, item in enumerate(cells) if item is cell.x)
        name = by.__code__.co_freevars[place]
        yield f"{cell.inside()}the variable {name!r} that {name_of(by)} closes over"


def in_object(link: Link, by: Any) -> Iterator[str]:
    """An attribute of an object or a class, which may be in a dict of its own."""
    of = f"class {by.__qualname__}" if isinstance(by, type) else object_name(by)
    own = getattr(by, "__dict__", {})
    for candidate in (link, link.inner):
        if candidate is None or (candidate is not link and type(link.x) is not dict):
            continue
        for name in (*own, *slots(type(by))):
            value = own[name] if name in own else getattr(by, name, None)
            if value is candidate.x:
                yield f"{candidate.inside()}the attribute {name!r} of {of}"
                return


def slots(cls: type) -> Iterator[str]:
    """The names of the slots of a class."""
    for base in cls.__mro__:
        given = base.__dict__.get("__slots__", ())
        yield from (given,) if isinstance(given, str) else given


def object_name(x: object) -> str:
    return f"an object of class {type(x).__qualname__}"


def name_of(fun: Any) -> str:
    return str(getattr(fun, "__qualname__", None) or type(fun).__name__)


def reachable(root: object, expected: type, walls: type) -> set[int]:
    """The ids of the `expected` objects that an object holds, also in closures.

    Modules, classes, the globals of functions, and `walls` are not entered.
    """
    seen: set[int] = set()
    out: set[int] = set()
    left = [root]
    while left:
        x = left.pop()
        if id(x) in seen or isinstance(x, ModuleType | type | walls):
            continue
        seen.add(id(x))
        if isinstance(x, expected):
            out.add(id(x))
        elif isinstance(x, FunctionType):
            left += [x.__closure__, x.__defaults__, x.__kwdefaults__, x.__dict__]
        else:
            left += gc.get_referents(x)
    return out
