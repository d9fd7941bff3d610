"""Counts of what the process has done so far, and listeners to them (floor 4).

One idea: whatever is worth counting happens rarely next to a cached call, so it is
counted where it happens, under one name, and listeners hear the same names::

    RECORDER.record("compiles")
    RECORDER.counts["compiles"], RECORDER.listeners

What happens next to every call, such as a transfer, is added to a plain attribute in a
tenth of that time, and no listener hears of it::

    TALLY.bytes_to_host += array.nbytes

What lasts can be shown while it does: `with stage("f", "XLA"): ...`.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from types import MappingProxyType
from typing import ClassVar, Final

from verax.ir.locks import Lock, locked
from verax.rules.values.state import STATE

type Listener = Callable[[str, float], object]


@locked
class Recorder:
    """Sums by name, and the functions that are told of every change."""

    __slots__ = ("counts", "listeners")
    lock: ClassVar[Lock]

    def __init__(self) -> None:
        self.counts: defaultdict[str, float] = defaultdict(int)
        self.listeners: tuple[Listener, ...] = ()

    def record(self, event: str, amount: float = 1) -> None:
        """Add to a sum, and tell the listeners."""
        with self.lock:
            self.counts[event] += amount
        for listener in self.listeners:
            listener(event, amount)

    def record_all(self, **amounts: float) -> None:
        """`record` for several sums at once."""
        with self.lock:
            for event, amount in amounts.items():
                self.counts[event] += amount
        for listener in self.listeners:
            for event, amount in amounts.items():
                listener(event, amount)

    def listen(self, listener: Listener) -> None:
        """Tell `listener` from now on; twice if it is added twice."""
        with self.lock:
            self.listeners = (*self.listeners, listener)

    def forget(self, listener: Listener) -> None:
        """Stop telling `listener`.

        Raises:
            ValueError: it is not a listener.
        """
        with self.lock:
            left = list(self.listeners)
            if listener not in left:
                raise ValueError(f"{listener!r} is not registered")
            left.remove(listener)
            self.listeners = tuple(left)


class Tally:
    """Sums of what is too frequent for a lock.

    An addition to an attribute is not interrupted by other threads in CPython with its
    global lock, so that nothing is lost.
    """

    __slots__ = ("bytes_to_device", "bytes_to_host", "wait_seconds", "waits")

    def __init__(self) -> None:
        self.bytes_to_device = 0
        self.bytes_to_host = 0
        self.waits = 0
        self.wait_seconds = 0.0

    def sums(self) -> dict[str, float]:
        """The sums so far, by name."""
        return {name: getattr(self, name) for name in self.__slots__}


def stage(program: str, name: str) -> AbstractContextManager[None]:
    """A block that is shown while it lasts, if `compile_progress` is on."""
    if not STATE.compile_progress:
        return HIDDEN
    from verax.backend.runtime.background import shown

    return shown(program, name)


HIDDEN: Final = nullcontext()
RECORDER: Final = Recorder()
TALLY: Final = Tally()


# -----------------------------------------------------------------------------
# Listeners by the kind of what they hear, under JAX's names.
#
# An event is told to all listeners of its kind, in the thread where it happens, with
# all that was said about it::
#
#     EVENTS.listen("event", callback)
#     EVENTS.tell("event", "/my/event", step=3)


type Callback = Callable[..., object]

DURATIONS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "trace_seconds": "/jax/core/compile/jaxpr_trace_duration",
        "lower_seconds": "/jax/core/compile/jaxpr_to_mlir_module_duration",
        "compile_seconds": "/jax/core/compile/backend_compile_duration",
    }
)
HAPPENED: Final[Mapping[str, str]] = MappingProxyType(
    {
        "disk_hits": "/jax/compilation_cache/cache_hits",
        "disk_misses": "/jax/compilation_cache/cache_misses",
    }
)
"""JAX's names of what `metrics` counts."""


def told(event: str, amount: float) -> None:
    """Pass on what was counted, under JAX's name."""
    if event in DURATIONS:
        EVENTS.tell("duration", DURATIONS[event], amount)
    elif event in HAPPENED:
        EVENTS.tell("event", HAPPENED[event])


@locked
class Events:
    """The listeners of each kind, in the order in which they came."""

    __slots__ = ("listeners",)
    lock: ClassVar[Lock]

    def __init__(self) -> None:
        self.listeners: Mapping[str, tuple[Callback, ...]] = {}

    def of(self, kind: str) -> tuple[Callback, ...]:
        """The listeners of a kind."""
        return self.listeners.get(kind, ())

    def tell(self, kind: str, *args: object, **metadata: object) -> None:
        """Call the listeners of a kind."""
        for callback in self.of(kind):
            callback(*args, **metadata)

    def listen(self, kind: str, callback: Callback) -> None:
        """Call `callback` from now on; twice if it is added twice."""
        with self.lock:
            self.set({**self.listeners, kind: (*self.of(kind), callback)})

    def forget(self, kind: str, callback: Callback) -> None:
        """Stop calling `callback`.

        Raises:
            AssertionError: it is not registered.
        """
        with self.lock:
            left = list(self.of(kind))
            if callback not in left:
                raise AssertionError(f"{callback!r} is not registered")
            left.remove(callback)
            self.set({**self.listeners, kind: tuple(left)})

    def clear(self) -> None:
        """Forget all listeners."""
        with self.lock:
            self.set({})

    def set(self, listeners: Mapping[str, tuple[Callback, ...]]) -> None:
        """Have these listeners, and hear of what is counted only for them."""
        self.listeners = listeners
        hears = told in RECORDER.listeners
        needed = bool(self.of("duration") or self.of("event"))
        if needed and not hears:
            RECORDER.listen(told)
        elif hears and not needed:
            RECORDER.forget(told)


EVENTS: Final = Events()
