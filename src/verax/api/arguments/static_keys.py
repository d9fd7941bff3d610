"""Floor 5: static values as keys of traces, and what happens when one of them changes.

One idea: a trace may use all that can be seen of a static value, so its key tells apart
what `==` calls equal: types, the signs of zeros, also inside tuples; and objects that
compare by identity are looked at again, because a key cannot see them change::

    typed(1) != typed(True) and typed((1,)) != typed((1.0,))
"""

import warnings
from collections.abc import Hashable, Iterable
from operator import is_
from types import (
    BuiltinFunctionType,
    FunctionType,
    MethodType,
    ModuleType,
    NoneType,
)
from typing import Any

import numpy as np
from attrs import frozen

from verax.ir.records import ReprMixin
from verax.rules.values.source import LIBRARY

# Classes whose equal values are the same value, which are most static values.
EXACT = frozenset((int, str, bool, NoneType))
FLOATS = (float, complex, np.inexact)
# Objects of these classes compare by identity, and may have attributes that no trace
# depends on.
UNWATCHED = (type, FunctionType, BuiltinFunctionType, MethodType, ModuleType)


def typed(value: Any) -> Hashable:
    """The key of a static value: its class and the value, tuples item by item.

    >>> typed(1) == typed(True), typed(0.0) == typed(-0.0), typed((1,)) == typed((1.0,))
    (False, False, False)
    """
    cls = type(value)
    if cls in EXACT:
        return (cls, value)
    if cls is tuple:
        return (tuple, *[typed(item) for item in value])
    if cls is frozenset:
        return (frozenset, frozenset([typed(item) for item in value]))
    if is_floating(cls) and (value == 0 or value != value):  # NaN
        return (cls, repr(value))
    return (cls, value)


def is_floating(cls: type) -> bool:
    """Whether objects of a class have zeros with a sign, and values without equals."""
    return issubclass(cls, FLOATS)


@frozen(eq=False, repr=False)
class Watched(ReprMixin):
    """A static object that compares by identity, as it was when it was traced."""

    label: str
    value: Any
    attributes: dict[str, Any]

    def changed(self) -> list[str]:
        """The attributes that were set, replaced or deleted since."""
        now, then = vars(self.value), self.attributes
        if [*now] == [*then] and all(map(is_, now.values(), then.values())):
            return []
        missing = object()
        names = {**then, **now}
        return [n for n in names if now.get(n, missing) is not then.get(n, missing)]


def by_identity(cls: type) -> bool:
    """Whether objects of a class compare by identity and may change unseen."""
    own: object = cls.__hash__
    return own is object.__hash__ and not issubclass(cls, UNWATCHED)


def watch(labelled: Iterable[tuple[str, Any]]) -> tuple[Watched, ...]:
    """Those of the static values whose changes their keys cannot show."""
    return tuple(
        [
            Watched(label, value, dict(vars(value)))
            for label, value in labelled
            if by_identity(type(value)) and hasattr(value, "__dict__")
        ]
    )


def warn_changed(name: str, watched: Iterable[Watched]) -> None:
    """Warn of static objects that have changed since `name` was traced."""
    for text in changes(name, watched):
        warnings.warn(text, skip_file_prefixes=(LIBRARY,))


def changes(name: str, watched: Iterable[Watched]) -> list[str]:
    """The warning for static objects that have changed."""
    return [
        f"static {held.label} of {name}, an object of class "
        f"{type(held.value).__name__}, has changed since {name} was traced "
        f"(attributes: {', '.join(names)}); the compiled program still uses the old "
        "values. Give the class __eq__ and __hash__ that depend on its attributes, "
        "make it a pytree, or pass what changes as an argument"
        for held in watched
        if (names := held.changed())
    ]


class Hashes:
    """The hashes that static objects had, to notice those that change."""

    def __init__(self) -> None:
        self.known: dict[int, tuple[Any, int]] = {}

    def check(self, name: str, labelled: Iterable[tuple[str, Any]]) -> None:
        """Warn of objects whose hash differs from an earlier call."""
        for label, value in labelled:
            found, now = self.known.get(id(value)), hash(value)
            if found is not None and found[0] is value and found[1] != now:
                warnings.warn(
                    f"static {label} of {name}, an object of class "
                    f"{type(value).__name__}, has a different hash than in an earlier "
                    f"call, so it was changed. {name} compiles again for each of its "
                    "states and keeps the old programs; use a new object for a new "
                    "value",
                    skip_file_prefixes=(LIBRARY,),
                )
            self.known[id(value)] = (value, now)
