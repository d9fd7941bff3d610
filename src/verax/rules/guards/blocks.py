"""Floor 1: `with` blocks that undo what they did, wherever an interrupt comes.

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

from collections import defaultdict
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager
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
        found: object = self.fget(block)(*args)
        return found


class Block:
    """What a function behind `block` gives, for the `with` statement that calls it."""

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
        found: Any = Block()
        found.entered = generator.__next__
        found.exited = partial(EXIT, defaultdict(generator.close))
        return found  # type: ignore[no-any-return]  # slots hold its methods

    return made
