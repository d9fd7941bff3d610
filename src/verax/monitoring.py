"""What the process has done so far: sums, and who wants to hear of them (floor 6).

One idea: what is counted happens next to a cached call, never in it; `metrics` reads
the sums, and a listener hears each addition under the same name::

    verax.metrics()["compiles"]
    with verax.monitoring.listening(lambda event, amount: ...):
        ...

| name | sum of |
|---|---|
| `traces`, `trace_seconds`, `equations` | functions traced, and their equations |
| `compiles`, `compile_seconds` | programs that XLA compiled |
| `disk_hits`, `disk_misses`, `disk_writes` | look-ups in the cache on disk |
| `live_arrays` | buffers that are alive now; no sum, and listeners do not hear of it |
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType

from verax.api.resources import live_arrays
from verax.backend.metrics import RECORDER, Listener

__all__ = ["listening", "metrics", "register_listener", "unregister_listener"]

EVENTS = (
    "traces",
    "trace_seconds",
    "equations",
    "compiles",
    "compile_seconds",
    "disk_hits",
    "disk_misses",
    "disk_writes",
)


def metrics() -> Mapping[str, float]:
    """The sums so far, since the process began; a snapshot that does not change.

    >>> import verax
    >>> before = verax.metrics()["traces"]
    >>> _ = verax.make_jaxpr(lambda x: x + 1)(1.0)
    >>> verax.metrics()["traces"] - before
    1
    """
    found = {event: RECORDER.counts[event] for event in EVENTS}
    return MappingProxyType({**found, "live_arrays": len(live_arrays())})


def register_listener(listener: Listener) -> None:
    """Call `listener(event, amount)` at every addition from now on, in its thread."""
    RECORDER.listen(listener)


def unregister_listener(listener: Listener) -> None:
    """Call `listener` no more.

    Raises:
        ValueError: it is not registered.
    """
    RECORDER.forget(listener)


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Call `listener(event, amount)` at every addition within the block.

    >>> import verax
    >>> heard = []
    >>> with listening(lambda event, amount: heard.append(event)):
    ...     _ = verax.make_jaxpr(lambda x: x + 1)(1.0)
    >>> heard
    ['traces', 'trace_seconds', 'equations']
    """
    register_listener(listener)
    try:
        yield
    finally:
        unregister_listener(listener)
