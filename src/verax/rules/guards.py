"""Floor 1: what holds within a block and is undone after it, come what may.

One idea: CPython looks for Ctrl-C where a function of Python begins, where a loop goes
back, and where a call has returned; so an `__exit__` of Python may be interrupted
before it does anything. One of C is not, nor the `finally` of a generator that it
closes::

    @block
    def paused():
        enable = iter(gc.enable, None)
        try:
            gc.disable()
            yield
        finally:
            [*enable]

Such a `finally` makes no calls that Python sees: stores, and calls that a list makes of
an iterator that was there before the `yield`.
"""

import gc
from collections import defaultdict
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial, wraps
from operator import attrgetter
from typing import Any, Final

# Takes what `__exit__` is told and looks into a table, which calls what makes values.
# The text is empty: no exception counts as handled.
EXIT: Final = "{0[closed]!s:.0}".format


class Slot(property):
    """A function in a slot, for `with` statements and for `ExitStack`.

    A statement finds the function without running any Python. A stack takes this from
    the class and calls it, which an interrupt may come between.
    """

    def __call__(self, block: object, *args: object) -> object:
        assert self.fget is not None
        out: object = self.fget(block)(*args)
        return out


class Block:
    """The value of a function behind `block`, for the `with` statement around it."""

    __slots__ = ("entered", "exited")
    __enter__ = Slot(attrgetter("entered"))
    __exit__ = Slot(attrgetter("exited"))


def block[**P](
    steps: Callable[P, Generator[None]],
) -> Callable[P, AbstractContextManager[None, None]]:
    """`contextlib.contextmanager` for state that must never be left behind.

    The generator is closed at the end of the block, so it does not see exceptions.

    >>> @block
    ... def marked(marks):
    ...     try:
    ...         yield
    ...     finally:
    ...         marks += ["left"]
    >>> marks = []
    >>> with marked(marks):
    ...     marks.append("inside")
    >>> marks
    ['inside', 'left']
    """

    @wraps(steps)
    def made(*args: P.args, **kwargs: P.kwargs) -> AbstractContextManager[None, None]:
        generator = steps(*args, **kwargs) if kwargs else steps(*args)  # type: ignore[call-arg]  # quicker
        out: Any = Block()
        out.entered = generator.__next__
        out.exited = partial(EXIT, defaultdict(generator.close))
        return out  # type: ignore[no-any-return]  # slots hold its methods

    return made


# -----------------------------------------------------------------------------
# The garbage collector during tracing and rewriting.
#
# A program under construction is thousands of small objects, none of which is
# garbage yet, so the collector waits until it is finished::
#
#     with paused():
#         rewrite(jaxpr)


# Python itself freezes some hundred objects when it starts.
FROZEN_BY_PYTHON = 1000


@block
def paused() -> Generator[None]:
    """Keep the cyclic collector from running within the block, if it was on."""
    on = gc.isenabled()
    enable: Iterator[None] = iter(gc.enable, None)
    try:
        gc.disable()
        yield
    finally:
        if on:
            [*enable]  # noqa: B018  # calls it in one step


@contextmanager
def keeping() -> Iterator[None]:
    """`paused`, for a block whose objects stay: they count as old ones afterwards.

    So the next collection does not go through them. Freezing and unfreezing moves
    every object to the oldest generation, at no cost; a process that has frozen
    objects of its own keeps them frozen and pays for the collection.
    """
    with paused():
        yield
        if not gc.isenabled() and gc.get_freeze_count() < FROZEN_BY_PYTHON:
            gc.freeze()
            gc.unfreeze()


def every_object() -> list[object]:
    """All objects that the collector knows.

    It does not show those that a process has put aside with `gc.freeze`, to share their
    memory with its children: they are put back among the others before.
    """
    if gc.get_freeze_count() >= FROZEN_BY_PYTHON:
        gc.unfreeze()
    return gc.get_objects()
