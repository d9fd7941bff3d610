"""Floor 5: what every miss of jit's caches counts, whether it is logged or not.

`jit` inside a loop makes a new object each time, with empty caches, so objects of one
piece of code are counted. Why a call missed is worked out by `log`, which is imported
where misses are logged::

    with log_failure(miss):      # None where they are not
        ...
    uses_of(f).count
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, Protocol

from verax.api.arguments.cache_entries import Entry
from verax.api.tracing.argument_names import codes
from verax.backend.programs.program import Made, Program
from verax.ir.memos.memo import Recent


class Logged(Protocol):
    """A miss that is logged when its call has ended: see `log.Miss`."""

    def log(self, entry: Entry, made: Made | None, program: Program | None) -> None: ...
    def failed(self, error: BaseException) -> None: ...


@contextmanager
def log_failure(miss: Logged | None) -> Iterator[None]:
    """Log the miss when the block raises, if misses are logged."""
    try:
        yield
    except BaseException as error:
        if miss is not None:
            miss.failed(error)
        raise


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
