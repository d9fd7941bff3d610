"""Floor 5: copies of functions that keep what they have traced and compiled.

One idea: what such a function was made from is copied, its caches are not; one that a
module holds under its own name is pickled as that name, as Python's functions are::

    class PjitFunction(Copyable): ...
    copy.deepcopy(model)                  # whose method is behind jit
"""

import copy
import sys
from collections.abc import Mapping
from operator import attrgetter
from typing import Any, Self, SupportsIndex


class Copyable:
    """Base of such functions; `begin` makes what a new one starts with."""

    def begin(self) -> None:
        """Set the attributes that are not copied to what a new one has."""
        raise NotImplementedError

    def __getstate__(self) -> Mapping[str, Any]:
        fresh = object.__new__(type(self))
        fresh.begin()
        return {name: x for name, x in vars(self).items() if name not in vars(fresh)}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        vars(self).update(state)
        self.begin()

    def __copy__(self) -> Self:
        made = object.__new__(type(self))
        made.__setstate__(self.__getstate__())
        return made

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        made = object.__new__(type(self))
        memo[id(self)] = made  # the function may be a method of what holds this
        made.__setstate__(copy.deepcopy(self.__getstate__(), memo))
        return made

    def __reduce_ex__(self, protocol: SupportsIndex) -> str | tuple[Any, ...]:
        return found_as(self) or super().__reduce_ex__(protocol)


def found_as(x: object) -> str | None:
    """The name under which the module of a function holds `x` itself, if it does."""
    module = sys.modules.get(getattr(x, "__module__", ""))
    name = getattr(x, "__qualname__", "")
    try:
        return name if attrgetter(name)(module) is x else None
    except AttributeError:
        return None
