"""`compute_on`: what the compiler is told, derivatives, memories, bad input."""

from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from verax.api.tracing.apply import ENGINE
from verax.backend.lowering.lower import lower
from verax.experimental.compute_on import compute_on
from verax.memory import Space

X = np.arange(3, dtype=np.float32)
ON_HOST = '_xla_compute_type = "host"'


def doubled(x: Any, by: Any = 2) -> Any:
    return {"twice": x * by, "sum": x.sum()}


def text_on(platform: str, f: Any, *args: Any) -> str:
    jaxpr = verax.make_jaxpr(f)(*args).jaxpr
    return lower(ENGINE, jaxpr, "f", platforms=(platform,)).text


ATTRIBUTES = {
    "device_host": 'frontend_attributes = {_xla_compute_type = "host"}',
    "device": '{_xla_compute_type = "dense", backend_config = "{}"}',
    "tpu_sparsecore": '{_xla_compute_type = "sparseoffload", backend_config = "{}"}',
    "gpu_stream:3": '{_xla_stream_annotation = "3", inlineable = "false"}',
}


@pytest.mark.parametrize("kind", ATTRIBUTES)
def test_what_the_compiler_is_told(kind: str) -> None:
    f = compute_on(doubled, compute_type=kind, out_memory_spaces=Space.Device)
    lines = verax.jit(f).lower(X).as_text().splitlines()
    (call,) = [line for line in lines if "func.call" in line or " call @" in line]
    assert ATTRIBUTES[kind] in call
    (multiply,) = [line for line in lines if "stablehlo.multiply" in line]
    assert "backend_config" not in multiply
    assert ATTRIBUTES[kind].strip("{}").split(",")[0].split("{")[-1] in multiply
    for call_of in (f, verax.jit(f)):
        actual = call_of(X, by=3)
        assert np.array_equal(actual["twice"], X * 3)
        assert float(actual["sum"]) == 3


def test_options_and_decorators() -> None:
    @compute_on(
        compute_type="tpu_sparsecore",
        out_memory_spaces=Space.Any,
        compiler_options={"core": 'a "b"'},
    )
    def f(x: Any) -> Any:
        """Plus one."""
        return x + 1

    assert f.__doc__ == "Plus one."
    text = verax.jit(f).lower(X).as_text()
    assert "core" in text
    assert np.array_equal(verax.jit(f)(X), X + 1)


def test_results_in_other_memories() -> None:
    spaces = {"twice": Space.Host, "sum": Space.Device}
    f = compute_on(doubled, compute_type="device_host", out_memory_spaces=spaces)
    actual = f(X)
    assert actual["twice"].sharding.memory_kind == "pinned_host"
    assert actual["sum"].sharding.memory_kind == "device"
    text = text_on("cuda", f, X)
    assert text.count('_xla_buffer_placement = "pinned_host"') == 1
    assert text.count('_xla_buffer_placement = "device"') == 1
    bad = compute_on(doubled, compute_type="device_host", out_memory_spaces=(spaces,))
    with pytest.raises(ValueError, match="prefix"):
        verax.jit(bad)(X)


def test_derivatives_and_batches() -> None:
    f = compute_on(vnp.sin, compute_type="device_host", out_memory_spaces=Space.Device)
    slope = verax.jit(verax.grad(lambda x: f(x).sum()))
    np.testing.assert_allclose(slope(X), np.cos(X), rtol=1e-6)
    assert ON_HOST in slope.lower(X).as_text()
    np.testing.assert_allclose(verax.jit(verax.vmap(f))(X), np.sin(X), rtol=1e-6)
    looped = verax.jit(lambda x: verax.lax.fori_loop(0, 2, lambda i, y: f(y), x))
    np.testing.assert_allclose(looped(X), np.sin(np.sin(X)), rtol=1e-6)
    assert ON_HOST in looped.lower(X).as_text()


def test_bad_input() -> None:
    def made(f: Any, kind: Any) -> Any:
        return compute_on(f, compute_type=kind, out_memory_spaces=Space.Device)

    with pytest.raises(TypeError, match="compute_type argument must be a string"):
        made(vnp.sin, 3)
    with pytest.raises(ValueError, match="Invalid compute type host"):
        made(vnp.sin, "host")
    with pytest.raises(TypeError, match="compute_on"):
        made(3, "device_host")
    nested = made(made(vnp.sin, "device_host"), "device")
    with pytest.raises(ValueError, match="Nesting `compute_on`"):
        verax.jit(nested)(X)
