"""Sums tell what happened, and listeners hear of it as it happens."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from verax import monitoring


def test_a_call_is_traced_and_compiled_once() -> None:
    f = verax.jit(lambda x: vnp.sin(x) * 3.25 + vnp.cos(x))
    x = vnp.ones(5)
    start = verax.metrics()
    f(x)
    first = verax.metrics()
    f(x)
    second = verax.metrics()
    assert first["traces"] - start["traces"] == 1
    assert first["equations"] - start["equations"] == 4
    assert first["compiles"] - start["compiles"] == 1
    assert first["trace_seconds"] > start["trace_seconds"]
    assert first["compile_seconds"] > start["compile_seconds"]
    for event in ("traces", "equations", "compiles", "trace_seconds"):
        assert second[event] == first[event]
    with pytest.raises(TypeError, match="item assignment"):
        first["traces"] = 0  # type: ignore[index]  # a snapshot does not change


def grown(start: Mapping[str, float], *names: str) -> list[float]:
    """How much each of the sums has grown since."""
    now = verax.metrics()
    return [now[name] - start[name] for name in names]


@pytest.mark.slow
def test_every_cache_counts_its_look_ups() -> None:
    levels = ("trace_hits", "trace_misses", "program_hits", "program_misses")
    programs = ("executable_hits", "executable_misses", "lowerings", "compiles")

    def first(x: Any) -> Any:
        return vnp.sin(x) * 3.75 - vnp.cos(x)

    def second(x: Any) -> Any:
        return vnp.sin(x) * 3.75 - vnp.cos(x)

    x = vnp.ones(6)
    start = verax.metrics()
    f = verax.jit(first)
    f(x)
    assert grown(start, *levels) == [0, 1, 0, 1]
    assert grown(start, *programs) == [0, 1, 1, 1]
    assert grown(start, "lower_seconds")[0] > 0
    f(x)
    assert grown(start, *levels) == [0, 1, 0, 1]
    f(np.ones(6, np.float32))  # the same types, so the same program
    assert grown(start, *levels) == [0, 1, 1, 1]
    verax.jit(second)(x)
    assert grown(start, *levels) == [0, 2, 1, 2]
    assert grown(start, *programs) == [1, 1, 1, 1]


def test_equal_programs_of_other_names_are_one() -> None:
    """The name stays the function's own in messages."""

    def first(x: Any) -> Any:
        return x * 5.25 - 1

    def second(x: Any) -> Any:
        return x * 5.25 - 1

    verax.jit(first, donate_argnums=0)(vnp.ones(6))
    start = verax.metrics()
    given = vnp.ones(6)
    verax.jit(second, donate_argnums=0)(given)
    assert grown(start, "compiles") == [0]
    with pytest.raises(RuntimeError, match="donated to second"):
        given + 1


def test_bytes_that_travel_are_counted() -> None:
    start = verax.metrics()
    host = np.arange(8.0, dtype=np.float32)
    x = verax.device_put(host, verax.devices()[0])
    assert grown(start, "bytes_to_device", "bytes_to_host") == [32, 0]
    y = verax.jit(lambda x: x * 2.5)(x)
    np.asarray(y)
    np.asarray(y)  # it has been read already
    assert grown(start, "bytes_to_device", "bytes_to_host") == [32, 32]


def test_waits_are_counted() -> None:
    start = verax.metrics()
    y = verax.jit(lambda x: x * 2.75)(vnp.ones(4))
    y.block_until_ready()
    verax.block_until_ready({"a": y, "b": 1.0})
    vnp.ones(3).block_until_ready()  # in NumPy's memory: there is nothing to wait for
    assert grown(start, "waits") == [2]
    assert grown(start, "wait_seconds")[0] > 0


def test_live_arrays_are_counted() -> None:
    before = verax.metrics()["live_arrays"]
    kept = [vnp.full(3, i) for i in range(4)]
    assert verax.metrics()["live_arrays"] == before + len(kept)
    kept.clear()
    assert verax.metrics()["live_arrays"] == before


def test_listeners_hear_until_they_are_gone() -> None:
    heard: list[tuple[str, float]] = []

    def listener(event: str, amount: float) -> None:
        heard.append((event, amount))

    monitoring.register_listener(listener)
    verax.make_jaxpr(lambda x: x + 1)(1.0)
    monitoring.unregister_listener(listener)
    verax.make_jaxpr(lambda x: x + 2)(1.0)
    assert [event for event, _ in heard] == ["traces", "trace_seconds", "equations"]
    assert heard[0] == ("traces", 1.0)
    with pytest.raises(ValueError, match="is not registered"):
        monitoring.unregister_listener(listener)


KINDS = {
    "event": ("event", "event", "event", ()),
    "duration": (
        "event_duration_secs",
        "event_duration_secs",
        "event_duration",
        (1.5,),
    ),
    "span": ("event_time_span", "event_time_span", "event_time_span", (1.0, 2.0)),
    "scalar": ("scalar", "scalar", "scalar", (3,)),
}


@pytest.mark.parametrize("kind", KINDS)
def test_listeners_of_a_kind(kind: str) -> None:
    record, register, other, values = KINDS[kind]
    tell = getattr(monitoring, f"record_{record}")
    listeners = getattr(monitoring, f"get_{other}_listeners")
    forget = getattr(monitoring, f"unregister_{other}_listener")
    heard = []

    def callback(*args: Any, **metadata: Any) -> None:
        heard.append((args, metadata))

    getattr(monitoring, f"register_{register}_listener")(callback)
    tell("/test", *values, step=1)
    forget(callback)
    tell("/test", *values)
    assert heard == [(("/test", *values), {"step": 1})]
    assert callback not in listeners()
    with pytest.raises(AssertionError, match="not registered"):
        forget(callback)


def test_jax_names_of_durations() -> None:
    heard = []
    monitoring.register_event_duration_secs_listener(
        lambda event, duration, **metadata: heard.append(event)
    )
    verax.jit(lambda x: x - 17.5)(1.0)
    monitoring.clear_event_listeners()
    verax.jit(lambda x: x - 18.5)(1.0)
    for name in ("jaxpr_trace", "jaxpr_to_mlir_module", "backend_compile"):
        assert heard.count(f"/jax/core/compile/{name}_duration") == 1
