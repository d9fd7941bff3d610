"""Floor 1: the garbage collector during tracing and rewriting.

One idea: a program under construction is thousands of small objects, none of which is
garbage yet, so the collector waits until it is finished::

    with paused():
        rewrite(jaxpr)
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def paused() -> Iterator[None]:
    """Keep the cyclic collector from running within the block, if it was on."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
