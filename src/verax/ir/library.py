"""Floor 0: which primitives a printed program means, and what shows a program.

One idea: floor 0 knows no primitive and no page, `verax.wiring` knows all of them, and
puts them here, once, as it puts the functions behind the methods of arrays::

    Library.primitives["sin"]
"""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import ClassVar, NoReturn, Protocol

from verax.ir.avals import ShapedArray
from verax.ir.jaxpr import Primitive

type Typing = Callable[..., Sequence[ShapedArray]]
"""Gives the result types for (primitive, params, *operand types), or raises."""


class Library:
    """The primitives by name, and their type rules: empty until verax is imported."""

    primitives: ClassVar[Mapping[str, Primitive]] = MappingProxyType({})
    typing: ClassVar[Typing | None] = None


class Page(Protocol):
    """Shows a program in a browser or a notebook: see `verax.explore`."""

    @property
    def html(self) -> str: ...
    @property
    def document(self) -> Mapping[str, object]: ...
    def save(self, path: str) -> object: ...
    def open(self) -> object: ...


def no_page(subject: object) -> NoReturn:
    """Shows programs in a process without `verax.wiring`."""
    raise RuntimeError(f"nothing shows {subject!r}; import verax")


class Explorable:
    """A report about a program, which can be shown there."""

    __slots__ = ()

    page: ClassVar[Callable[..., Page]] = no_page

    def explore(self) -> Page:
        """The program, as `verax.explore` shows it, with what the report is about.

        The function is traced again, with the arguments of the call.

        Raises:
            ValueError: the report does not know the call.
        """
        return Explorable.page(self)
