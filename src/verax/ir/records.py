"""Floor 0: records: frozen attrs classes that share their equality, hash and text.

One idea: attrs writes and compiles these methods for each class, a third of a
millisecond each time; there are a hundred classes of params, and a program uses five.
So they inherit one method that reads the fields in one call::

    @frozen(eq=False, repr=False)
    class Axes(Record):
        axes: tuple[int, ...]

    Axes((0,)) == Axes((0,))
"""

from collections.abc import Callable, Mapping
from operator import attrgetter
from reprlib import recursive_repr
from types import MappingProxyType
from typing import ClassVar, Final, Self

from attrs import Attribute, fields

type Read = Callable[["Record"], object]

QUIET: Final[Mapping[str, bool]] = MappingProxyType({"quiet": True})
"""The metadata of a field that is printed only where it is not the default."""


class ReprMixin:
    """Base of attrs classes made with `repr=False`: the text is that of attrs."""

    __slots__ = ()

    @recursive_repr("...")
    def __repr__(self) -> str:
        kind = type(self)
        shown = [
            f"{a.name}={(a.repr if callable(a.repr) else repr)(getattr(self, a.name))}"
            for a in fields(kind)  # type: ignore[arg-type]  # as above
            if a.repr
        ]
        return f"{kind.__qualname__.rpartition('>.')[2]}({', '.join(shown)})"


def hiding(names: str) -> Callable[[object], list[str]]:
    """`__dir__` of a class that keeps some attributes out of completion.

    Editors and notebooks offer what `dir` lists. What other floors read of an object,
    but its users do not, is named here; it can be read all the same.

    >>> class Counter:
    ...     __dir__ = hiding("lock")
    ...     lock = count = None
    >>> [name for name in dir(Counter()) if not name.startswith("_")]
    ['count']
    """
    hidden = frozenset(names.split())

    def __dir__(self: object) -> list[str]:
        return [name for name in object.__dir__(self) if name not in hidden]

    return __dir__


class Unchanging:
    """Base of what never changes, and may hold what cannot be copied: its own copy."""

    __slots__ = ()

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self


class Record(ReprMixin):
    """Base of frozen attrs classes made with `eq=False, repr=False`.

    Records are equal if they are of one class and equal in every field, but for those
    that say `field(eq=False)`; `field(eq=key)` and `field(repr=...)` hold as in attrs.
    """

    __slots__ = ()

    compared: ClassVar[Read]

    @classmethod
    def __attrs_init_subclass__(cls) -> None:
        """Called by attrs once the class has its fields."""
        cls.compared = reader([a for a in fields(cls) if a.eq])  # type: ignore[arg-type]  # every subclass is an attrs class
        cls.prepare()

    @classmethod
    def prepare(cls) -> None:
        """Prepares a class once it has its fields: nothing here."""

    def __eq__(self, other: object) -> bool:
        kind = type(self)
        if type(other) is not kind:
            return NotImplemented
        return kind.compared(self) == kind.compared(other)

    def __hash__(self) -> int:
        kind = type(self)
        return hash((kind, kind.compared(self)))


def reader(attributes: list["Attribute[object]"]) -> Read:
    """The function from a record to the values of these fields, in one call if it can.

    The function is not a method of Python's, so that a class attribute does not bind
    it.
    """
    names = [a.name for a in attributes]
    # typeshed's attrs does not know of `eq_key`.
    given = [getattr(a, "eq_key", None) for a in attributes]
    if any(given):
        keys = [(n, key or identity) for n, key in zip(names, given, strict=True)]
        return staticmethod(lambda r: tuple([key(getattr(r, n)) for n, key in keys]))
    return attrgetter(*names) if names else staticmethod(lambda record: ())


def identity(value: object) -> object:
    return value
