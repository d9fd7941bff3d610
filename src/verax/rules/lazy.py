"""Floor 1: libraries that only some rows evaluate with, imported when first called.

One idea: `import scipy.special` takes as long as all of verax, and most programs never
reach it, so a row names the function and Python imports it at the first call::

    special = LazyModule("scipy.special")
    erf = special.erf              # nothing is imported yet
"""

import importlib
from functools import cache
from types import ModuleType
from typing import Any

from attrs import frozen


def module_named(name: str) -> ModuleType:
    """The module of this name, imported now unless it has been."""
    return importlib.import_module(name)


@cache
def loaded(module: str, name: str) -> Any:
    """The function `name` of `module`, which is imported now."""
    return getattr(module_named(module), name)


@frozen
class LazyFunction:
    """A function of a library that is imported at the first call."""

    module: str
    name: str

    def __call__(self, *args: Any, **options: Any) -> Any:
        return loaded(self.module, self.name)(*args, **options)


@frozen
class LazyModule:
    """A library whose functions can be named without importing it.

    >>> float(LazyModule("scipy.special").erf(0.0))
    0.0
    """

    module: str

    def __getattr__(self, name: str) -> LazyFunction:
        if name.startswith("__"):
            raise AttributeError(name)
        return LazyFunction(self.module, name)
