"""Modules named `jax...` that show verax's names, and a few of their own.

A view looks a name up in the overlay of its module (what only programs for JAX ask
for), then in the module of verax that it shows, then among its submodules. What a
program assigns stays in the view; verax never sees it::

    sys.modules["jax.numpy"] = View("jax.numpy", ("verax.numpy",))
"""

import atexit
import os
import sys
from collections import Counter
from collections.abc import Iterator, MutableMapping, Sequence
from dis import opname
from importlib import import_module
from pkgutil import iter_modules
from types import FrameType, ModuleType
from typing import Any, Final

from verax.ir.hints import hint
from verax.jax.names import MODULES, inert_names

# -----------------------------------------------------------------------------
# What a program asked of jax that verax lacks: `VERAX_JAX_RECORD=1` prints it.
#
# At its end, the program prints the names to standard error, one in a line, with how
# often they were asked for and where first. A name that `hasattr`, or `getattr` with
# a default, asked for is one that the program can do without: it says "probed"::
#
#     VERAX_JAX_RECORD=1 python -m verax.jax train.py


class Record:
    """The names that were asked for in vain, and where."""

    def __init__(self, expected: bool) -> None:
        self.wanted = expected
        self.counts: Counter[str] = Counter()
        self.first: dict[str, str] = {}
        self.needed: set[str] = set()
        if expected:
            atexit.register(self.report)

    def missing(self, name: str) -> None:
        """Note that a program asked for a name that is not there."""
        if self.wanted:
            frame = asking_frame(sys._getframe(1))
            self.counts[name] += 1
            self.first.setdefault(name, place_of(frame))
            if frame is None or not is_call(frame):
                self.needed.add(name)

    def report(self) -> None:
        """Print the names, those asked for most often first."""
        for name, count in self.counts.most_common():
            how = "" if name in self.needed else "  (probed)"
            print(
                f"{name}  {count}x, first at {self.first[name]}{how}", file=sys.stderr
            )


def asking_frame(frame: FrameType | None) -> FrameType | None:
    """The innermost frame outside this package and importlib."""
    while frame is not None:
        file = frame.f_code.co_filename
        if (
            os.path.dirname(file) != os.path.dirname(__file__)
            and "importlib" not in file
        ):
            break
        frame = frame.f_back
    return frame


def place_of(frame: FrameType | None) -> str:
    """File and line of a frame."""
    return "?" if frame is None else f"{frame.f_code.co_filename}:{frame.f_lineno}"


def is_call(frame: FrameType) -> bool:
    """Whether a frame is at a call, as of `hasattr`, and not at `a.b` or an import."""
    return opname[frame.f_code.co_code[frame.f_lasti]].startswith("CALL")


RECORD = Record(bool(os.environ.get("VERAX_JAX_RECORD")))


# -----------------------------------------------------------------------------
# Modules named `jax...` that show verax's names, and a few of their own.


WHERE = "verax as jax; see docs/libraries.md"
"""Python prints this where a name of a module cannot be imported."""


class View(ModuleType):
    """A module of jax, shown by the modules of verax that have its names."""

    __slots__ = ("view_sources", "view_submodules")

    def __init__(
        self, name: str, sources: Sequence[str], submodules: frozenset[str]
    ) -> None:
        super().__init__(name)
        self.__file__ = WHERE
        self.__path__: list[str] = []
        self.view_sources = tuple(sources)
        self.view_submodules = submodules
        own_names(self).update(inert_names(name))

    @property
    def __dict__(self) -> Any:  # type: ignore[override]  # not to be replaced
        """All names with their values, for programs that wrap every function."""
        return Names(self)

    def __getattr__(self, name: str) -> Any:
        if name == "__all__":
            return [name for name in dir(self) if not name.startswith("_")]
        if name in self.view_submodules:
            return import_module(f"{self.__name__}.{name}")
        if not (name.startswith("__") and name.endswith("__")) or name in SHOWN:
            for source in self.view_sources:
                out = getattr(import_module(source), name, ABSENT)
                if isinstance(out, ModuleType):
                    out = shown_module(out)
                if out is ABSENT:
                    continue
                own_names(self)[name] = out
                return out
        if not name.startswith("__"):
            RECORD.missing(f"{self.__name__}.{name}")
        raise AttributeError(
            f"module {self.__name__!r} has no attribute {name!r} ({WHERE}){hint(name)}"
        )

    def __reduce__(self) -> tuple[object, ...]:
        """By its name, as functions that mention it are pickled by value."""
        return import_module, (self.__name__,)

    def __dir__(self) -> list[str]:
        return sorted(
            own_names(self).keys() | self.view_submodules | self.shown_names()
        )

    def shown_names(self) -> set[str]:
        """The public names that the sources have, and no module of verax's layout."""
        return {n for source in self.view_sources for n in public_names(source)}


DICTIONARY: Any = dict
"""As a base beside another, of which mypy takes the metaclass for unrelated."""


class Names(MutableMapping[str, object], DICTIONARY):  # type: ignore[misc]  # see above
    """The names of a view and their values, which are looked up when they are read.

    Nothing is imported before: programs look at the names of all modules there are. It
    is a dictionary because `eval` takes no other mapping, and holds nothing itself.
    """

    def __init__(self, view: View) -> None:
        self.view = view

    def __getitem__(self, name: str) -> Any:
        try:
            return getattr(self.view, name)
        except AttributeError:
            raise KeyError(name) from None

    def __setitem__(self, name: str, value: object) -> None:
        setattr(self.view, name, value)

    def __delitem__(self, name: str) -> None:
        del own_names(self.view)[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.view.shown_names() | own_names(self.view).keys())

    def __len__(self) -> int:
        return len(list(iter(self)))


HELD: Final = vars(ModuleType)["__dict__"]


def own_names(module: ModuleType) -> dict[str, object]:
    """The names that a module holds: of a view, those that were looked up."""
    held: dict[str, object] = HELD.__get__(module)
    return held


ABSENT = object()
SHOWN = (
    "__version__",
    "__version_info__",
    "__array_api_version__",
    "__array_namespace_info__",
)
"""Names with underscores that are part of a module."""


def public_names(source: str) -> set[str]:
    """The names that a module defines, or lists as its own."""
    module = import_module(source)
    if not hasattr(module, "__all__"):
        return {n for n in dir(module) if is_public(n, getattr(module, n))}
    inside = {m.name for m in iter_modules(getattr(module, "__path__", ()))}
    return {n for n in module.__all__ if not n.startswith("_")} - inside


def is_public(name: str, value: object) -> bool:
    """Whether a module without `__all__` shows a name, rather than only using it."""
    home = getattr(value, "__module__", "verax")
    return not (
        name.startswith("_")
        or isinstance(value, ModuleType)
        or not str(home).startswith("verax")
    )


def shown_module(module: ModuleType) -> object:
    """The place of a module of verax among the modules of jax, if any."""
    top, _, rest = module.__name__.partition(".")
    if top != "verax":
        return module
    name = f"jax.{rest}"
    return import_module(name) if name in MODULES else ABSENT


def is_real_jax(module: ModuleType | None = None) -> bool:
    """Whether `jax` was imported, and not through this package."""
    module = sys.modules.get("jax") if module is None else module
    return module is not None and not isinstance(module, View)
