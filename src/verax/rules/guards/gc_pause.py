"""Floor 1: the garbage collector during tracing and rewriting.

One idea: a program under construction is thousands of small objects, none of which is
garbage yet, so the collector waits until it is finished::

    with paused():
        rewrite(jaxpr)
"""

import gc
from collections.abc import Generator, Iterator
from contextlib import contextmanager

from verax.rules.guards.blocks import block

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
