"""Floor 5: how many jitted objects of one piece of code have been traced.

One idea: `jit` inside a loop makes a new object each time, with empty caches, and each
of them is traced for its first call; the code is the same, so it can be told::

    uses_of(f).count
"""

from collections.abc import Callable
from typing import Final

from verax.api.explain.keys import codes
from verax.ir.memo import Recent

REMEMBERED: Final = 1 << 12


class Uses:
    """A count."""

    __slots__ = ("count",)

    def __init__(self) -> None:
        self.count = 0


TRACED: Final = Recent[tuple[object, ...], Uses](REMEMBERED)
"""The uses of the codes that were traced last."""


def uses_of(fun: Callable[..., object]) -> Uses:
    """How many jitted objects of the code of `fun` have been traced.

    Of `grad(f)` it is the code of both.
    """
    return TRACED.add(codes(fun), Uses())
