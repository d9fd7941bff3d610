"""Floor 0: packages that hold no code, whose names are loaded when they are first read.

One idea: a facade is a table from names to their homes, and Python asks the function
`__getattr__` of a module for what it does not find in it (PEP 562), so that a program
loads the files of what it uses and no others::

    __getattr__, __dir__ = facade(__name__, {".sums": "total mean=average"})

A facade has a stub beside it, `__init__.pyi`, which says the same to type checkers and
editors; `python -m tests.stubs` writes it, and a test holds it to the table.
"""

import importlib
import sys
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from types import ModuleType
from typing import ClassVar

from verax.ir.hints import hint


class Imports:
    """The block around an import: none, until verax itself is imported."""

    around: ClassVar[Callable[[], AbstractContextManager[None]]] = nullcontext


def module_named(name: str) -> ModuleType:
    """The module of this name, imported now unless it has been."""
    if name in sys.modules:
        return importlib.import_module(name)
    with Imports.around():
        return importlib.import_module(name)


def homes(
    package: str, names: Mapping[str, str], modules: str = ""
) -> dict[str, tuple[str, str]]:
    """The home of each name of a facade: its module, and what it is called there.

    A name that stands for a module comes from nowhere in it: its second part is empty.

    >>> homes("verax.ops", {".trig": "sin sine=sin", "verax.ir.avals": "ShapedArray"})
    {'sin': ('verax.ops.trig', 'sin'), 'sine': ('verax.ops.trig', 'sin'), \
'ShapedArray': ('verax.ir.avals', 'ShapedArray')}
    >>> homes("verax", {}, "lax")
    {'lax': ('verax.lax', '')}
    """
    out = {name: (f"{package}.{name}", "") for name in modules.split()}
    for module, words in names.items():
        home = package + module if module.startswith(".") else module
        for word in words.split():
            name, _, original = word.partition("=")
            out[name] = (home, original or name)
    return out


def facade(
    package: str, names: Mapping[str, str], modules: str = ""
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a package that holds no code.

    `__all__` is read through the first: the names without leading underscores.

    Args:
        package: its name.
        names: what it shows, by home: words, of which `new=old` is another name for
            what its home calls `old`. A home that starts with a dot is a module of the
            package.
        modules: which modules of the package are names too.

    What has been read is kept in the package, as Python keeps a module that has been
    imported in the package around it: the next reading is that of any global. So a name
    may not be that of a module of the package, unless it means it.
    """
    own = vars(sys.modules[package])

    @cache
    def table() -> dict[str, tuple[str, str]]:
        return homes(package, names, modules)

    def value_of(name: str) -> object:
        if name == "__all__":
            return [name for name in table() if not name.startswith("_")]
        if name not in table():
            raise AttributeError(
                f"module {package!r} has no attribute {name!r}{hint(name)}"
            )
        home, original = table()[name]
        module = module_named(home)
        return getattr(module, original) if original else module

    def read(name: str) -> object:
        own[name] = value = value_of(name)
        return value

    def listed() -> list[str]:
        """What is public, and what the package itself is: not what it has imported."""
        special = [name for name in own if name.startswith("__")]
        return sorted({*special, *table()})

    return read, listed
