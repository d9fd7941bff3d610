"""Moves between memories in programs: what the compiler is told, and derivatives."""

from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from verax.ad_checkpoint import checkpoint_name
from verax.api.tracing.apply import ENGINE
from verax.backend.lowering.lower import lower
from verax.experimental.xla_metadata import set_xla_metadata
from verax.memory import Space
from verax.sharding import NamedSharding, PartitionSpec as P, SingleDeviceSharding

X = np.arange(4, dtype=np.float32)
HOST = '_xla_buffer_placement = "pinned_host"'
BACK = '_xla_buffer_placement = "device"'


def text_on(platform: str, f: Any, *args: Any) -> str:
    jaxpr = verax.make_jaxpr(f)(*args).jaxpr
    return lower(ENGINE, jaxpr, "f", platforms=(platform,)).text


def there_and_back(x: Any) -> Any:
    return verax.device_put(verax.device_put(x, Space.Host) * 1, Space.Device) ** 2


@pytest.mark.parametrize("platform", ["cuda", "rocm", "tpu"])
def test_moves_are_told_to_the_compiler(platform: str) -> None:
    text = text_on(platform, there_and_back, X)
    assert text.count("annotate_device_placement") == 2
    assert text.index(HOST) < text.index(BACK)
    mesh = verax.make_mesh((1,), ("x",))
    for place in (
        NamedSharding(mesh, P("x"), memory_kind="pinned_host"),
        SingleDeviceSharding(verax.devices()[0], memory_kind="pinned_host"),
    ):
        moved = text_on(platform, lambda x, p=place: verax.device_put(x, p), X)
        assert moved.count(HOST) == 1
    plain = SingleDeviceSharding(verax.devices()[0])
    assert "annotate" not in text_on(platform, lambda x: verax.device_put(x, plain), X)


def test_on_the_cpu_all_memories_are_one() -> None:
    assert "annotate" not in text_on("cpu", there_and_back, X)
    assert np.array_equal(verax.jit(there_and_back)(X), X**2)


def test_other_words_for_the_compiler_stay() -> None:
    def f(x: Any) -> Any:
        with set_xla_metadata(block="far"):
            return verax.device_put(x, Space.Host)

    text = text_on("cuda", f, X)
    assert HOST in text
    assert 'block = "far"' in text


def test_derivatives_and_batches() -> None:
    def f(x: Any) -> Any:
        return there_and_back(x).sum()

    assert np.array_equal(verax.grad(f)(X), 2 * X)
    assert np.array_equal(verax.vmap(f)(np.stack([X, X])), [14.0, 14.0])
    assert np.array_equal(verax.jit(verax.hessian(f))(X), 2 * np.eye(4))
    text = text_on("cuda", verax.grad(f), X)
    assert text.count(HOST) <= 2


def offloaded(x: Any) -> Any:
    y = checkpoint_name(vnp.sin(x), "far")
    z = checkpoint_name(vnp.sin(y), "near")
    return vnp.sin(z).sum()


def test_policies_that_offload() -> None:
    policy = verax.checkpoint_policies.save_and_offload_only_these_names(
        names_which_can_be_saved=["near"],
        names_which_can_be_offloaded=["far"],
        offload_src="device",
        offload_dst="pinned_host",
    )
    f = verax.grad(verax.checkpoint(offloaded, policy=policy))
    np.testing.assert_allclose(verax.jit(f)(X), verax.grad(offloaded)(X), rtol=1e-6)
    text = text_on("cuda", f, X)
    assert text.count(HOST) == text.count(BACK) == 1
    assert text.index(BACK) < text.index(HOST)  # the second computation is a function
    assert text.count("stablehlo.sine") == 2  # nothing is computed again
    looped = verax.jit(
        lambda x: verax.lax.scan(lambda c, _: (f(c), None), x, None, length=2)[0]
    )
    np.testing.assert_allclose(looped(X), f(f(X)), rtol=1e-6)


def test_products_that_are_offloaded() -> None:
    policy = verax.checkpoint_policies.offload_dot_with_no_batch_dims(
        "device", "pinned_host"
    )
    both = verax.checkpoint_policies.save_from_both_policies(
        verax.checkpoint_policies.nothing_saveable, policy
    )
    w = np.eye(4, dtype=np.float32)
    for chosen in (policy, both):
        f = verax.checkpoint(lambda x, w: vnp.sin(x @ w).sum(), policy=chosen)
        text = text_on("cuda", verax.grad(f), X, w)
        assert text.count(HOST) == text.count(BACK) == 1
        np.testing.assert_allclose(verax.grad(f)(X, w), np.cos(X), rtol=1e-6)
