"""Values that processes give to each other."""

import os
import signal
import time

import ml_dtypes
import numpy as np
import pytest

import verax
import verax.numpy as vnp
from verax.experimental import multihost_utils
from verax.sharding import Mesh, NamedSharding, PartitionSpec as P

INDEX, COUNT = verax.process_index(), verax.process_count()
DTYPES: list[str | type[np.generic]] = [
    "float32",
    "int8",
    "uint32",
    "bool",
    "complex64",
    ml_dtypes.bfloat16,
]


def check_allgather_stacks() -> None:
    for dtype in DTYPES:
        for shape in ((), (3,), (2, 0), (1, 2, 3)):
            own = np.full(shape, INDEX + 1).astype(dtype)
            actual = multihost_utils.process_allgather(own)
            assert actual.dtype == own.dtype
            due = np.stack([np.full(shape, i + 1).astype(dtype) for i in range(COUNT)])
            np.testing.assert_array_equal(actual, due)


def check_allgather_tiles() -> None:
    actual = multihost_utils.process_allgather(
        {"a": np.arange(2) + 10 * INDEX, "b": INDEX}, tiled=True
    )
    due = [10 * i + j for i in range(COUNT) for j in range(2)]
    assert actual["a"].tolist() == due
    assert actual["b"].tolist() == list(range(COUNT))


def check_allgather_of_an_array_over_processes() -> None:
    mesh = verax.make_mesh((verax.device_count(),), ("x",))
    x = verax.device_put(np.arange(16.0), NamedSharding(mesh, P("x")))
    for tiled in (False, True):
        actual = multihost_utils.process_allgather(x, tiled=tiled)
        assert actual.tolist() == list(range(16))
    whole = verax.device_put(np.arange(3.0), NamedSharding(mesh, P()))
    assert multihost_utils.process_allgather(whole).tolist() == [0, 1, 2]


def check_broadcast() -> None:
    values = {"x": np.array([-0.0, np.nan, INDEX]), "flag": INDEX == 0, "n": INDEX}
    actual = multihost_utils.broadcast_one_to_all(values)
    assert actual["n"] == 0
    assert actual["flag"].item() is True
    assert np.signbit(actual["x"][0])
    assert np.isnan(actual["x"][1])
    last = COUNT - 1
    assert multihost_utils.broadcast_one_to_all(INDEX, last == INDEX) == last


def check_broadcast_without_a_source() -> None:
    with pytest.raises(ValueError, match="one process with is_source=True, not 0"):
        multihost_utils.broadcast_one_to_all(1, is_source=False)


def check_assert_equal() -> None:
    multihost_utils.assert_equal({"x": vnp.arange(3), "y": np.nan})
    with pytest.raises(AssertionError, match=r"^steps: .* of process 0 in 1"):
        multihost_utils.assert_equal({"step": INDEX}, "steps")
    with pytest.raises(AssertionError):
        multihost_utils.assert_equal(np.zeros(INDEX + 1))  # other shapes


def check_sync() -> None:
    multihost_utils.sync_global_devices("one name")
    with pytest.raises(AssertionError, match="sync_global_devices"):
        multihost_utils.sync_global_devices(f"name {INDEX}")


def check_host_local_arrays() -> None:
    local = verax.local_device_count()
    devices = np.array(verax.devices(), object).reshape(COUNT, local)
    mesh = Mesh(devices, ("process", "device"))
    own = np.arange(4 * local, dtype=np.float32).reshape(local, 4) + 100 * INDEX
    inputs = {"x": own, "w": np.array([7], np.float32)}
    specs = {"x": P("process", "device"), "w": P()}
    there = multihost_utils.host_local_array_to_global_array(inputs, mesh, specs)
    assert there["x"].shape == (local * COUNT, 4)
    assert there["w"].shape == (1,)
    whole = multihost_utils.process_allgather(there["x"])
    np.testing.assert_array_equal(whole[INDEX * local : (INDEX + 1) * local], own)
    again = multihost_utils.host_local_array_to_global_array(there["x"], mesh, P())
    assert again is there["x"]
    back = multihost_utils.global_array_to_host_local_array(there, mesh, specs)
    assert back["x"].is_fully_addressable
    np.testing.assert_array_equal(back["x"], own)
    np.testing.assert_array_equal(back["w"], [7])


def check_specs_that_are_none() -> None:
    mesh = verax.make_mesh((verax.device_count(),), ("x",))
    with pytest.raises(ValueError, match="takes PartitionSpecs"):
        multihost_utils.host_local_array_to_global_array(np.ones(4), mesh, None)


def check_preemption() -> None:
    reached = [multihost_utils.reached_preemption_sync_point(step) for step in range(3)]
    assert reached == [False] * 3
    multihost_utils.sync_global_devices("all have taken over SIGTERM")
    if INDEX == 0:
        os.kill(os.getpid(), signal.SIGTERM)
    for step in range(3, 200):
        if multihost_utils.reached_preemption_sync_point(step):
            break
        multihost_utils.sync_global_devices(f"step {step}")
        time.sleep(0.02)
    else:
        raise AssertionError("no process heard of the preemption")
    multihost_utils.assert_equal(step, "processes save at different steps")
