"""What the process has done so far: sums, and listeners to them (floor 6).

One idea: what is counted happens next to a cached call, never in it; `metrics` reads
the sums, and a listener hears each addition under the same name::

    verax.metrics()["compiles"]
    with verax.monitoring.listening(lambda event, amount: ...):
        ...

| name | sum of |
|---|---|
| `traces`, `trace_seconds`, `equations` | functions traced, and their equations |
| `lowerings`, `lower_seconds` | programs written as StableHLO |
| `compiles`, `compile_seconds` | programs that XLA compiled |
| `trace_hits`, `trace_misses` | look-ups of a jitted function among its own traces |
| `program_hits`, `program_misses` | its look-ups among its own compiled programs |
| `executable_hits`, `executable_misses` | after a miss: look-ups among all programs |
| `disk_hits`, `disk_misses`, `disk_writes` | look-ups in the cache on disk |
| `bytes_to_device`, `bytes_to_host` | NumPy memory handed to devices, and read back |
| `waits`, `wait_seconds` | waits of `block_until_ready` for values on devices |
| `live_arrays` | arrays that are alive now; not a sum |

A call of a jitted function with arguments of known kinds is not counted at all, nor is
what it transfers. Memory that a device and NumPy share counts as a transfer without a
copy: the sums are bytes handed over. Listeners do not hear of `bytes_to_device`,
`bytes_to_host`, `waits`, `wait_seconds` and `live_arrays`.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType

from verax.api.config.caches import live_arrays
from verax.backend.runtime.metrics import RECORDER, TALLY, Listener

__all__ = ["listening", "metrics", "register_listener", "unregister_listener"]

EVENTS = (
    "traces",
    "trace_seconds",
    "equations",
    "lowerings",
    "lower_seconds",
    "compiles",
    "compile_seconds",
    "trace_hits",
    "trace_misses",
    "program_hits",
    "program_misses",
    "executable_hits",
    "executable_misses",
    "disk_hits",
    "disk_misses",
    "disk_writes",
)


def metrics() -> Mapping[str, float]:
    """The sums since the process started; a snapshot that does not change.

    >>> import verax
    >>> before = verax.metrics()["traces"]
    >>> _ = verax.make_jaxpr(lambda x: x + 1)(1.0)
    >>> verax.metrics()["traces"] - before
    1
    """
    found = {event: RECORDER.counts[event] for event in EVENTS}
    alive = {"live_arrays": len(live_arrays())}
    return MappingProxyType(found | TALLY.sums() | alive)


def register_listener(listener: Listener) -> None:
    """Call `listener(event, amount)` at every addition from now on, in its thread."""
    RECORDER.listen(listener)


def unregister_listener(listener: Listener) -> None:
    """Stop calling `listener`.

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
