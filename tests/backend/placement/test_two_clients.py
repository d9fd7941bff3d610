"""Arrays between the devices of two clients, as between a CPU and a GPU.

A second client of the processor stands for that of a GPU: runtimes share no memory,
so that values have to go from one to the other.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from jaxlib import xla_client

import verax
import verax.numpy as vnp
from verax import lax, random
from verax.experimental import io_callback
from verax.sharding import Mesh, NamedSharding, PartitionSpec, SingleDeviceSharding

CLIENT = xla_client.make_cpu_client(num_devices=2)
HERE = verax.devices()[0]
FIRST, SECOND = CLIENT.local_devices()
X = np.arange(4, dtype=np.float32)
DTYPES = ("bool", "int4", "int8", "uint32", "bfloat16", "float8_e5m2", "complex64")
ACROSS = NamedSharding(Mesh(np.array([FIRST, SECOND]), ("a",)), PartitionSpec("a"))


def where(x: Any) -> list[int]:
    """Which devices of the second client hold an array."""
    assert all(device.client is CLIENT for device in x.devices())
    return sorted(device.id for device in x.devices())


@pytest.mark.parametrize("dtype", DTYPES)
def test_there_and_back(dtype: str) -> None:
    values = (X > 1).astype(vnp.dtype(dtype))
    committed = verax.device_put(values, HERE)
    for x in (values, vnp.asarray(values), committed):
        far = verax.device_put(x, FIRST)
        assert (far.dtype, far.committed, where(far)) == (values.dtype, True, [0])
        assert (np.asarray(far) == values).all()
        assert where(verax.device_put(far, SECOND)) == [1]
        near = verax.device_put(far, HERE)
        assert near.devices() == {HERE}
        assert (np.asarray(near) == values).all()


def test_trees_keys_memories_and_donation() -> None:
    far = verax.device_put({"x": X, "n": 2.0, "key": random.key(3)}, FIRST)
    assert [where(leaf) for leaf in verax.tree.leaves(far)] == [[0]] * 3
    assert (random.normal(far["key"]) == random.normal(random.key(3))).item()
    pinned = SingleDeviceSharding(FIRST, memory_kind="pinned_host")
    assert verax.device_put(X, pinned).sharding.memory_kind == "pinned_host"
    given = verax.device_put(X, HERE) + 0
    assert where(verax.device_put(given, FIRST, donate=True)) == [0]


def test_parts_on_several_devices() -> None:
    x = verax.device_put(verax.device_put(X, HERE), ACROSS)
    assert where(x + 1) == [0, 1]
    assert float(verax.jit(vnp.sum)(x)) == 6
    assert verax.device_put(x, HERE).tolist() == X.tolist()


PROGRAMS: dict[str, Callable[[Any], Any]] = {
    "eager": lambda x: vnp.sin(x) @ x + x[1:].sum(),
    "jit": verax.jit(lambda x: x * 2),
    "with uncommitted": lambda x: verax.jit(vnp.add)(x, vnp.ones(4)) + np.ones(4),
    "gradient": verax.grad(lambda x: (x**2).sum()),
    "ahead of time": lambda x: verax.jit(vnp.cos).lower(x).compile()(x),
    "writes": lambda x: x.at[0].set(5.0),
    "scan": lambda x: lax.scan(lambda c, y: (c + y, c), x[0], x)[1],
    "callback": lambda x: verax.pure_callback(np.square, x, x),
    "compiled callback": verax.jit(lambda x: verax.pure_callback(np.square, x, x)),
    "effect": lambda x: io_callback(np.square, x, x),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_run_where_their_operands_are(name: str) -> None:
    f = PROGRAMS[name]
    y = f(verax.device_put(X, SECOND))
    assert (where(y), y.committed) == ([1], True)
    np.testing.assert_allclose(y, f(vnp.asarray(X)), rtol=1e-6)


def test_default_device_and_results_elsewhere() -> None:
    with verax.default_device(FIRST):
        x = vnp.ones(3) * 2
    assert (where(x), x.committed) == ([0], False)
    moved = verax.jit(lambda x: x + 1, out_shardings=SingleDeviceSharding(FIRST))
    assert where(moved(X)) == [0]
    with pytest.raises(ValueError, match="committed to different devices"):
        verax.device_put(X, FIRST) + verax.device_put(X, HERE)
