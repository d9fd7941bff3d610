"""Sums of what the process has done so far, and listeners to them (floor 6).

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

JAX's events are here, too: `record_event` and its kin tell the listeners that
`register_event_listener` and its kin have registered. From verax these hear, under
JAX's names, how long traces, lowerings and compilations took, and of look-ups in the
cache on disk.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType

from verax.api.config.caches import live_arrays
from verax.backend.runtime.metrics import (
    EVENTS as LISTENERS,
    RECORDER,
    TALLY,
    Callback,
    Listener,
)

__all__ = [
    "clear_event_listeners",
    "get_event_duration_listeners",
    "get_event_listeners",
    "get_event_time_span_listeners",
    "get_scalar_listeners",
    "listening",
    "metrics",
    "record_event",
    "record_event_duration_secs",
    "record_event_time_span",
    "record_scalar",
    "register_event_duration_secs_listener",
    "register_event_listener",
    "register_event_time_span_listener",
    "register_listener",
    "register_scalar_listener",
    "unregister_event_duration_listener",
    "unregister_event_listener",
    "unregister_event_time_span_listener",
    "unregister_listener",
    "unregister_scalar_listener",
]

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
    out = {event: RECORDER.counts[event] for event in EVENTS}
    alive = {"live_arrays": len(live_arrays())}
    return MappingProxyType(out | TALLY.sums() | alive)


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


def record_event(event: str, **kwargs: str | int) -> None:
    """Tell the listeners of events that `event` has happened."""
    LISTENERS.tell("event", event, **kwargs)


def register_event_listener(callback: Callback) -> None:
    """Call `callback(event, **kwargs)` from now on."""
    LISTENERS.listen("event", callback)


def unregister_event_listener(callback: Callback) -> None:
    """Stop calling `callback`.

    Raises:
        AssertionError: it is not registered.
    """
    LISTENERS.forget("event", callback)


def get_event_listeners() -> list[Callback]:
    """The listeners that `record_event` tells, in order."""
    return list(LISTENERS.of("event"))


def record_event_duration_secs(
    event: str, duration: float, **kwargs: str | int
) -> None:
    """Tell the listeners of durations how many seconds `event` has taken."""
    LISTENERS.tell("duration", event, duration, **kwargs)


def register_event_duration_secs_listener(callback: Callback) -> None:
    """Call `callback(event, duration, **kwargs)` from now on."""
    LISTENERS.listen("duration", callback)


def unregister_event_duration_listener(callback: Callback) -> None:
    """Stop calling `callback`.

    Raises:
        AssertionError: it is not registered.
    """
    LISTENERS.forget("duration", callback)


def get_event_duration_listeners() -> list[Callback]:
    """The listeners that `record_event_duration_secs` tells, in order."""
    return list(LISTENERS.of("duration"))


def record_event_time_span(
    event: str, start_time: float, end_time: float, **kwargs: str | int
) -> None:
    """Tell the listeners of time spans when `event` began and ended, in seconds."""
    LISTENERS.tell("span", event, start_time, end_time, **kwargs)


def register_event_time_span_listener(callback: Callback) -> None:
    """Call `callback(event, start_time, end_time, **kwargs)` from now on."""
    LISTENERS.listen("span", callback)


def unregister_event_time_span_listener(callback: Callback) -> None:
    """Stop calling `callback`.

    Raises:
        AssertionError: it is not registered.
    """
    LISTENERS.forget("span", callback)


def get_event_time_span_listeners() -> list[Callback]:
    """The listeners that `record_event_time_span` tells, in order."""
    return list(LISTENERS.of("span"))


def record_scalar(event: str, value: float, **kwargs: str | int) -> None:
    """Tell the listeners of scalars that `event` has a value."""
    LISTENERS.tell("scalar", event, value, **kwargs)


def register_scalar_listener(callback: Callback) -> None:
    """Call `callback(event, value, **kwargs)` from now on."""
    LISTENERS.listen("scalar", callback)


def unregister_scalar_listener(callback: Callback) -> None:
    """Stop calling `callback`.

    Raises:
        AssertionError: it is not registered.
    """
    LISTENERS.forget("scalar", callback)


def get_scalar_listeners() -> list[Callback]:
    """The listeners that `record_scalar` tells, in order."""
    return list(LISTENERS.of("scalar"))


def clear_event_listeners() -> None:
    """Forget the listeners of all four kinds."""
    LISTENERS.clear()
