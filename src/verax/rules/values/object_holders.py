"""Floor 1: who holds an object, in the user's words.

One idea: a tracer that has left its trace is held by something with a name: a global,
an attribute, a variable of a closure, a cache; Python's collector knows which::

    holder(tracer)    # "item 0 of the global 'seen' of module train"
"""

import gc
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from types import CellType, FrameType, FunctionType, ModuleType
from typing import Final

from attrs import frozen

from verax.ir.records import ReprMixin

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

    x: object
    inner: "Link | None" = None

    def inside(self) -> str:
        """The place of what is held in this object, and in those inside."""
        if self.inner is None:
            return ""
        held = self.inner.x
        if type(self.x) is list or type(self.x) is tuple:
            places = [i for i, item in enumerate(self.x) if item is held]
            return self.inner.inside() + "".join([f"item {i} of " for i in places[:1]])
        if type(self.x) is dict:
            keys = [key for key, value in self.x.items() if value is held]
            return self.inner.inside() + "".join([f"entry {k!r} of " for k in keys[:1]])
        return self.inner.inside()


def holder(x: object) -> str:
    """The holder of `x`, as far as it has a name; "" if there is none.

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
    """The rank of a description: the less it says, the higher."""
    return next((i for i, words in enumerate(BEST) if words in text), len(BEST))


def expanded(links: Sequence[Link], seen: set[int]) -> tuple[list[str], list[Link]]:
    """The names of those that hold the links, and the links one step further."""
    held = {id(link.x): link for link in links}
    texts: list[str] = []
    further: list[Link] = []
    seen |= {id(links), id(held), id(further)}
    holders = gc.get_referrers(*[link.x for link in links])
    for by in holders:
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


def is_library(x: object) -> bool:
    """Whether an object is the library's own, which is not a name for the user."""
    home = x if type(x).__name__ == CACHE else type(x)
    return str(getattr(home, "__module__", "")).partition(".")[0] == LIBRARY


def named(link: Link, by: object) -> Iterator[str]:
    """The names of `by` in the user's program, and the place of the object in it."""
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


def in_object(link: Link, by: object) -> Iterator[str]:
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


def name_of(fun: object) -> str:
    return str(getattr(fun, "__qualname__", None) or type(fun).__name__)


def reachable(root: object, expected: type, walls: type) -> set[int]:
    """The ids of the `expected` objects that an object holds, also in closures.

    Modules, classes, the globals of functions, and `walls` are not entered.
    """
    seen: set[int] = set()
    ids: set[int] = set()
    left = [root]
    while left:
        x = left.pop()
        if id(x) in seen or isinstance(x, ModuleType | type | walls):
            continue
        seen.add(id(x))
        if isinstance(x, expected):
            ids.add(id(x))
        elif isinstance(x, FunctionType):
            left += [x.__closure__, x.__defaults__, x.__kwdefaults__, x.__dict__]
        else:
            left += gc.get_referents(x)
    return ids
