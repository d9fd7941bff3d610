"""Callbacks of programs over several devices: one device calls, with whole arrays."""

from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from verax import lax
from verax.rules.programs.host import CallbackError
from verax.sharding import NamedSharding, PartitionSpec as P

MESH = verax.make_mesh((8,), ("x",))
VALUES = np.arange(16, dtype=np.float32)


def sharded() -> verax.Array:
    x: verax.Array = verax.device_put(VALUES, NamedSharding(MESH, P("x")))
    return x


@pytest.mark.parametrize("ordered", [False, True])
def test_effects_happen_once_and_not_on_each_device(ordered: bool) -> None:
    seen: list[Any] = []

    @verax.jit
    def f(x: Any) -> Any:
        def step(c: Any, _: None) -> Any:
            verax.debug.callback(lambda c: seen.append(c.tolist()), c, ordered=ordered)
            return c + 1, None

        return lax.scan(step, x, None, length=2)[0]

    assert f(sharded()).tolist() == (VALUES + 2).tolist()
    verax.effects_barrier()
    assert seen == [VALUES.tolist(), (VALUES + 1).tolist()]


def test_results_and_failures_come_back() -> None:
    def host(x: Any) -> Any:
        if x[0] < 0:
            raise ValueError("negative")
        return np.asarray(x) * 2

    f = verax.jit(lambda x: verax.pure_callback(host, x, x) + x)
    assert f(sharded()).tolist() == (VALUES * 3).tolist()
    with pytest.raises(CallbackError, match="raised ValueError: negative"):
        np.asarray(f(sharded() - 1))
    assert f(sharded()).tolist() == (VALUES * 3).tolist()


def test_a_program_of_another_device() -> None:
    x = verax.device_put(vnp.ones(3), verax.devices()[3])
    seen: list[Any] = []
    f = verax.jit(lambda x: (verax.debug.callback(seen.append, x), x * 2)[1])
    assert f(x).devices() == {verax.devices()[3]}
    verax.effects_barrier()
    assert [y.tolist() for y in seen] == [[1.0, 1.0, 1.0]]


def test_pure_callbacks_are_called_once() -> None:
    seen: list[Any] = []

    def host(x: Any) -> Any:
        seen.append(x.shape)
        return np.asarray(x) * 2

    out = verax.jit(lambda x: verax.pure_callback(host, x, x))(sharded())
    assert out.tolist() == (VALUES * 2).tolist()
    assert seen == [(16,)]


def test_callbacks_in_shard_map_take_one_part_after_the_other() -> None:
    seen: list[Any] = []

    def double(x: Any) -> Any:
        seen.append(x.tolist())
        return x * 2

    def body(x: Any) -> Any:
        return verax.pure_callback(double, x, x) + lax.axis_index("x")

    f = verax.jit(verax.shard_map(body, mesh=MESH, in_specs=P("x"), out_specs=P("x")))
    due = VALUES * 2 + np.repeat(np.arange(8), 2)
    np.testing.assert_array_equal(f(sharded()), due)
    assert sorted(seen) == VALUES.reshape(8, 2).tolist()
    with pytest.raises(verax.errors.MissingRule, match="vmap_method"):
        verax.vmap(lambda x: verax.pure_callback(double, x, x))(VALUES)
