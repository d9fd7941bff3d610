"""Floor 1: what is far off and seldom needed, imported when it is first called.

One idea: `import scipy.special` takes as long as all of verax, and most programs never
reach it, so a row names the function and Python imports it at the first call::

    special = LazyModule("scipy.special")
    erf = special.erf              # nothing is imported yet
"""

from collections.abc import Iterator, Mapping
from typing import Any, override

from attrs import frozen

from verax.ir.facade import module_named
from verax.ir.records import ReprMixin
from verax.rules.values.memo import pure


@pure()
def loaded(module: str, name: str) -> Any:
    """The function `name` of `module`, which is imported now."""
    return getattr(module_named(module), name)


@frozen(repr=False)
class LazyFunction(ReprMixin):
    """A function of a library that is imported at the first call."""

    module: str
    name: str

    def __call__(self, *args: object, **options: object) -> Any:
        return loaded(self.module, self.name)(*args, **options)

    @property
    def once(self) -> Any:
        """The function itself, which keeps nothing, where it is a memo."""
        return loaded(self.module, self.name).once


@frozen(repr=False)
class LazyModule(ReprMixin):
    """A library whose functions can be named without importing it.

    >>> float(LazyModule("scipy.special").erf(0.0))
    0.0
    """

    module: str

    def __getattr__(self, name: str) -> LazyFunction:
        if name.startswith("__"):
            raise AttributeError(name)
        return LazyFunction(self.module, name)


@frozen(eq=False, repr=False)
class LazyMapping(Mapping[str, Any], ReprMixin):
    """A table of a module that is imported at the first lookup.

    >>> LazyMapping("verax.ops.elementwise.trig", "__dict__")["sin_p"].name
    'sin'
    """

    module: str
    name: str

    @override
    def __getitem__(self, key: str) -> Any:
        return loaded(self.module, self.name)[key]

    @override
    def __iter__(self) -> Iterator[str]:
        return iter(loaded(self.module, self.name))

    @override
    def __len__(self) -> int:
        return len(loaded(self.module, self.name))
