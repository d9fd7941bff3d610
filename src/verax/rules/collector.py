"""Floor 1: the garbage collector during tracing and rewriting.

One idea: a program under construction is thousands of small objects, none of which is
garbage yet, so the collector waits until it is finished::

    with paused():
        rewrite(jaxpr)
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

# Python itself freezes some hundred objects when it starts.
FROZEN_BY_PYTHON = 1000


class Paused:
    """What `paused` gives; a class, since a generator takes twice the time."""

    __slots__ = ("on",)

    def __enter__(self) -> None:
        self.on = gc.isenabled()
        if self.on:
            gc.disable()

    def __exit__(self, *error: object) -> None:
        if self.on:
            gc.enable()


def paused() -> Paused:
    """Keep the cyclic collector from running within the block, if it was on."""
    return Paused()


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
