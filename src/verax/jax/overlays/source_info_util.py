"""`jax.extend.source_info_util`: where the lines of a program come from.

Equations know their lines here, and names of scopes are part of the program, so what
libraries pass around to keep both is empty::

    with user_context(traceback): ...
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, Protocol, runtime_checkable

from attrs import frozen

from verax.ir.records import ReprMixin
from verax.rules.values.state import user_source

__all__ = [
    "NameStack",
    "SourceInfo",
    "current",
    "current_name_stack",
    "extend_name_stack",
    "new_name_stack",
    "new_source_info",
    "register_exclusion",
    "reset_name_stack",
    "summarize",
    "transform_name_stack",
    "user_context",
    "user_frame",
]


SAME: Final = object()
"""In place of what stays as it is."""


@runtime_checkable
class Placed(Protocol):
    """A line of a program, as jaxlib's frames and verax's sources tell it."""

    file: object
    function: object
    line: int


@frozen(repr=False)
class NameStack(ReprMixin):
    """The names of the scopes around."""

    stack: tuple[str, ...] = ()

    def extend(self, name: str) -> "NameStack":
        return NameStack((*self.stack, name))

    def __add__(self, other: "NameStack") -> "NameStack":
        return NameStack(self.stack + other.stack)

    def __str__(self) -> str:
        return "/".join(self.stack)


@frozen(repr=False)
class SourceInfo(ReprMixin):
    """The traceback of a line and the scopes around it."""

    traceback: object
    name_stack: NameStack = NameStack()

    def replace(
        self, *, traceback: object = SAME, name_stack: NameStack | None = None
    ) -> "SourceInfo":
        return SourceInfo(
            self.traceback if traceback is SAME else traceback,
            self.name_stack if name_stack is None else name_stack,
        )


@frozen(repr=False)
class Frame(ReprMixin):
    """A line of a file."""

    file_name: str
    function_name: str
    start_line: int
    start_column: int = 0
    end_line: int = 0
    end_column: int = 0


def register_exclusion(path: str) -> None:
    """Lines of verax's messages are those of the program; nothing is left out."""


def new_name_stack(name: str = "") -> NameStack:
    """A stack of one name, or of none."""
    return NameStack((name,) if name else ())


def new_source_info() -> SourceInfo:
    """No line in particular."""
    return SourceInfo(None, NameStack())


def current() -> SourceInfo:
    """The line of the user's program that is running."""
    return SourceInfo(user_source(1), NameStack())


def current_name_stack() -> NameStack:
    """The names of the scopes around: none that is kept here."""
    return NameStack()


def summarize(source_info: object, num_frames: int = 1) -> str:
    """A line of the program, as file:line (function)."""
    source = getattr(source_info, "traceback", source_info)
    return "unknown" if source is None else str(source)


def user_frame(traceback: object) -> Frame | None:
    """The line of the user's program that a traceback is about."""
    source = getattr(traceback, "traceback", traceback)
    if not isinstance(source, Placed):
        return None
    return Frame(str(source.file), str(source.function), int(source.line))


@contextmanager
def unchanged(*_: object, **__: object) -> Iterator[None]:
    """A block in which nothing is different."""
    yield


user_context = reset_name_stack = extend_name_stack = unchanged
set_name_stack = transform_name_stack = unchanged
