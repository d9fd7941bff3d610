"""Listeners by the kind of what they hear, under JAX's names (floor 4).

An event is told to all listeners of its kind, in the thread where it happens, with all
that was said about it::

    EVENTS.listen("event", callback)
    EVENTS.tell("event", "/my/event", step=3)
"""

from collections.abc import Callable, Mapping
from threading import RLock
from types import MappingProxyType
from typing import ClassVar, Final

from verax.backend.runtime.metrics import RECORDER
from verax.ir.memos.memo import locked

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
    lock: ClassVar[RLock]

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
