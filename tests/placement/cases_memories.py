"""Memory kinds: shardings, `device_put` and compiled programs, on eight devices."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from verax.api.config.config import override
from verax.experimental.serialize_executable import deserialize_and_load, serialize
from verax.memory import Space
from verax.sharding import (
    AxisType,
    NamedSharding,
    PartitionSpec as P,
    SingleDeviceSharding,
)

DEVICE = verax.devices()[3]
MESH = verax.make_mesh((4, 2), ("x", "y"), (AxisType.Auto,) * 2)
VALUES = np.arange(8, dtype=np.float32)
HOST = "pinned_host"
PLACES = [
    SingleDeviceSharding(DEVICE, memory_kind=HOST),
    SingleDeviceSharding(verax.devices()[0], memory_kind=HOST),
    NamedSharding(MESH, P("x"), memory_kind=HOST),
    NamedSharding(MESH, P(), memory_kind="unpinned_host"),
]


def kinds(x: Any) -> set[str]:
    """The kinds of memory in which the runtime has the parts."""
    return {part._sharding._memory_kind for part in x.device_buffer()._arrays}


def test_shardings_and_their_memories() -> None:
    for plain, place in (
        (SingleDeviceSharding(DEVICE), PLACES[0]),
        (NamedSharding(MESH, P("x")), PLACES[2]),
    ):
        own = place.with_memory_kind("device")
        assert (plain.memory_kind, own.memory_kind) == ("device", "device")
        assert place.memory_kind == HOST
        assert plain == own != place
        assert hash(plain) == hash(own)
        assert plain.is_equivalent_to(own, 1)
        assert not place.is_equivalent_to(own, 1)
        assert repr(place).endswith("memory_kind=pinned_host)")
        assert "memory" not in repr(plain)
    assert PLACES[2].update(spec=P()).memory_kind == HOST  # type: ignore[attr-defined]  # a NamedSharding
    assert DEVICE.default_memory().kind == "device"
    assert DEVICE.memory(HOST) in DEVICE.addressable_memories()


def test_memories_that_no_device_has() -> None:
    message = "Could not find memory addressable by device cpu.*memory kinds: device, p"
    with pytest.raises(ValueError, match=message):
        SingleDeviceSharding(DEVICE, memory_kind="hbm")
    with pytest.raises(ValueError, match=message):
        NamedSharding(MESH, P(), memory_kind="host")
    with pytest.raises(ValueError, match=message):
        PLACES[0].with_memory_kind("hbm")
    with pytest.raises(TypeError, match="memory_kind must be a string"):
        SingleDeviceSharding(DEVICE, memory_kind=3)  # type: ignore[arg-type]  # on purpose
    with pytest.raises(TypeError, match="move arrays with device_put"):
        verax.lax.with_sharding_constraint(VALUES, Space.Host)


@pytest.mark.parametrize("place", PLACES, ids=repr)
def test_there_and_back(place: Any) -> None:
    for values in (VALUES, vnp.asarray(VALUES), verax.device_put(VALUES, DEVICE)):
        x = verax.device_put(values, place)
        assert x.sharding == place
        assert x.committed
        assert kinds(x) == {place.memory_kind}
        assert np.array_equal(x, VALUES)
        assert {s.data.sharding.memory_kind for s in x.addressable_shards} == kinds(x)
        back = verax.device_put(x, place.with_memory_kind("device"))
        assert kinds(back) == {"device"}
        assert kinds(verax.device_put(back, place)) == kinds(x)
        assert verax.device_put(x, place) is not back
    empty = verax.device_put(np.zeros((0, 8)), place.with_memory_kind(HOST))
    assert empty.shape == (0, 8)


def test_a_memory_alone_leaves_arrays_on_their_devices() -> None:
    x = verax.device_put({"a": VALUES, "b": 1.0}, Space.Host)
    assert x["a"].sharding.memory_kind == HOST
    assert kinds(x["b"]) == {HOST}
    y = verax.device_put(VALUES, NamedSharding(MESH, P("x")))
    far = verax.device_put(y, Space.Host)
    assert far.sharding == PLACES[2]
    assert verax.device_put(far, Space.Any).sharding == PLACES[2]
    assert verax.device_put(far, Space.Device).sharding == y.sharding
    assert verax.device_put(y, Space.Device, src=Space.Host) is y
    copy = verax.device_put(far, Space.Host, may_alias=False)
    assert copy.sharding == PLACES[2]
    verax.device_put(far, Space.Device, donate=True)
    assert far.is_deleted()


@pytest.mark.parametrize("place", PLACES, ids=repr)
def test_compiled_programs(place: Any) -> None:
    own = place.with_memory_kind("device")
    x = verax.device_put(VALUES, place)
    double = verax.jit(lambda x: x * 2)
    out = double(x)
    assert np.array_equal(out, VALUES * 2)
    assert kinds(out) == {"device"}
    text = double.lower(x).as_text()
    assert text.count(f'mhlo.memory_kind = "{place.memory_kind}"') == 1
    send = verax.jit(lambda x: (x * 2, x.sum()), out_shardings=(place, None))
    for argument in (VALUES, x, verax.device_put(VALUES, own)):
        far, total = send(argument)
        assert far.sharding == place
        assert kinds(far) == {place.memory_kind}
        assert kinds(total) == {"device"}
        assert np.array_equal(far, VALUES * 2)
    both = verax.jit(lambda x: x + 1, in_shardings=place, out_shardings=place)
    assert kinds(both(both(x))) == {place.memory_kind}
    with pytest.raises(ValueError, match="which is committed to"):
        both(verax.device_put(VALUES, own))
    if DEVICE not in place.device_set or place.num_devices > 1:
        loaded = deserialize_and_load(*serialize(both.lower(x).compile()))
        assert kinds(loaded(x)) == {place.memory_kind}


def test_eager_operations_compute_on_the_device() -> None:
    for place in PLACES[:3]:
        x = verax.device_put(VALUES, place)
        for y in (x + 1, vnp.sin(x), x.reshape(2, 4), x[2:]):
            assert y.sharding.memory_kind == "device"
        assert float(x.sum()) == 28


def test_captured_arrays_are_fetched() -> None:
    for place in PLACES[:3]:
        w = verax.device_put(VALUES, place)
        out = verax.jit(lambda x, w=w: x * w)(2.0)
        assert np.array_equal(out, VALUES * 2)
        assert kinds(out) == {"device"}


def test_programs_of_two_memories_are_two_files(tmp_path: Path) -> None:
    with (
        override("enable_compilation_cache", True),
        override("compilation_cache_dir", str(tmp_path)),
        override("persistent_cache_min_compile_time_secs", 0.0),
    ):
        for kind in ("device", HOST):
            verax.clear_caches()
            place = PLACES[0].with_memory_kind(kind)
            far = verax.jit(lambda x: x * 3, out_shardings=place)(VALUES)
            assert kinds(far) == {kind}
        assert len(list(tmp_path.glob("*.verax"))) == 2


def test_results_are_split_in_the_memory_of_the_device() -> None:
    mesh = verax.make_mesh((4, 2), ("x", "y"))
    place = NamedSharding(mesh, P("x"), memory_kind=HOST)
    for make in (vnp.zeros, vnp.ones):
        with pytest.raises(ValueError, match="sharding with memory_kind is not"):
            make(8, out_sharding=place)
        assert make(8, out_sharding=place.with_memory_kind("device")).shape == (8,)
