"""Floor 5: one thread at a time, without waiting in a circle.

One idea: tracing runs the user's code, which may call other functions that are being
traced, so a thread that holds a lock never waits for another one: it goes ahead, and at
worst traces what another thread is tracing too::

    with turn(lock):
        traced = trace(f, ...)
"""

import threading
from collections.abc import Generator, Iterator
from typing import Final

from verax.rules.guards.blocks import block


class Held(threading.local):
    """How many locks of this kind the thread holds."""

    count = 0


HELD: Final = Held()


@block
def turn(lock: threading.RLock) -> Generator[None]:
    """Hold `lock` within the block; do without it if waiting could last for ever."""
    count = HELD.count
    release: Iterator[None] = iter(lock.release, None)
    acquire = map(lock.acquire, [count == 0])
    taken: list[bool] = []
    try:
        taken += acquire
        HELD.count = count + (True in taken)
        yield
    finally:
        HELD.count = count
        if True in taken:
            [*release]  # noqa: B018  # calls it in one step
