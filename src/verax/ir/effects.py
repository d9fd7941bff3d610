"""Floor 0: effects: what an equation does besides computing its results.

One idea: an effect is a value that the params of an equation state, and the effects of
a program are those of its equations, so nothing has to track them::

    ORDERED_IO in jaxpr.effects
    is_ordered(jaxpr.effects)
"""

from collections.abc import Iterable
from typing import ClassVar, Final

from attrs import frozen

from verax.ir.records import ReprMixin


@frozen(cache_hash=True, repr=False)
class Effect(ReprMixin):
    """A kind of effect; ordered ones happen in the order of the program.

    >>> str(Effect("io", ordered=True))
    'ordered io'
    """

    __module__ = "verax.ir"

    transient: ClassVar[bool] = False

    name: str
    ordered: bool = False

    def __str__(self) -> str:
        return f"ordered {self.name}" if self.ordered else self.name


@frozen(cache_hash=True, repr=False)
class RefEffect(Effect):
    """A read or write of a reference: operand `index` of an equation.

    Of a program it is the input `index`; None for a reference that the program closes
    over. Reads and writes happen in the order of the program.

    >>> str(RefEffect("write", 0))
    'write 0'
    """

    __module__ = "verax.ref"

    index: int | None = None

    def __str__(self) -> str:
        return self.name if self.index is None else f"{self.name} {self.index}"


READ: Final = "read"
WRITE: Final = "write"
HOLD: Final = "hold"
"""The effect of a call whose rule for derivatives may touch a reference later."""
MAKE: Final = "make"
"""The effect of making a reference, which nothing outside of the program sees."""
DEBUG: Final = Effect("debug")
ORDERED_DEBUG: Final = Effect("debug", ordered=True)
IO: Final = Effect("io")
ORDERED_IO: Final = Effect("io", ordered=True)
CHECK: Final = Effect("check")
LOG: Final = Effect("log")
NO_EFFECTS: Final[frozenset[Effect]] = frozenset()
CHECKS: Final = frozenset((CHECK,))
LOGS: Final = frozenset((LOG,))
SHOWN: Final = frozenset((DEBUG, ORDERED_DEBUG, CHECK, LOG))
"""Effects without results: what is computed a second time is computed without them."""


def is_ordered(effects: Iterable[Effect]) -> bool:
    """Whether one of the effects is ordered.

    >>> is_ordered({DEBUG, ORDERED_IO}), is_ordered({DEBUG})
    (True, False)
    """
    return any([effect.ordered for effect in effects])
