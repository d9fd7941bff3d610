"""Sums tell what happened, and listeners hear of it as it happens."""

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
