"""Arrays over several processes, and programs on them."""

import copy
import os
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from verax import lax
from verax.experimental.multihost_utils import process_allgather
from verax.sharding import Mesh, NamedSharding, PartitionSpec as P

INDEX, COUNT = verax.process_index(), verax.process_count()
LOCAL = verax.local_device_count()
SIZE = verax.device_count()
MESH = verax.make_mesh((SIZE,), ("x",))
SPLIT, WHOLE = NamedSharding(MESH, P("x")), NamedSharding(MESH, P())
VALUES = np.arange(4 * SIZE, dtype=np.float32)


def spread_values() -> Any:
    return verax.device_put(VALUES, SPLIT)


def equal(x: Any, due: Any) -> None:
    """The whole of `x`, which every process can see, is as it should be."""
    np.testing.assert_array_equal(process_allgather(x, tiled=True), due)


def check_shards() -> None:
    x = spread_values()
    assert not x.is_fully_addressable
    assert not x.is_fully_replicated
    assert len(x.global_shards) == SIZE
    assert len(x.addressable_shards) == LOCAL
    assert [s.device for s in x.addressable_shards] == verax.local_devices()
    for shard in x.addressable_shards:
        np.testing.assert_array_equal(shard.data, VALUES[shard.index])
    others = [s for s in x.global_shards if s.device.process_index != INDEX]
    assert all(shard.data is None for shard in others)
    assert x.addressable_data(0).shape == (4,)
    assert x.sharding.addressable_devices == set(verax.local_devices())
    assert len(x.sharding.device_set) == SIZE


def check_values_that_are_elsewhere() -> None:
    x = spread_values()
    reads: list[Callable[[Any], Any]] = [np.asarray, pickle.dumps, verax.device_get]
    reads.append(lambda x: x.tolist())
    for read in reads:
        with pytest.raises(RuntimeError, match="addressable_shards") as caught:
            read(x)
        assert "process_allgather" in str(caught.value)
    assert repr(x) == str(x) == f"Array(shape=({4 * SIZE},), dtype=float32)"
    assert f"{x}" == repr(x)


def check_copies() -> None:
    x = spread_values()
    for made in (copy.copy(x), copy.deepcopy(x), x.clone()):
        assert made.sharding == x.sharding
        equal(made, VALUES)


def check_replicated() -> None:
    x = verax.device_put(VALUES, WHOLE)
    assert x.is_fully_replicated
    assert not x.is_fully_addressable
    np.testing.assert_array_equal(x, VALUES)
    assert x.addressable_data(0).shape == VALUES.shape


def check_values_of_this_process_only() -> None:
    """What other processes passed is not what this one passed."""
    x = verax.device_put(VALUES + INDEX, SPLIT)
    actual = process_allgather(x)
    np.testing.assert_array_equal(actual, VALUES + np.arange(SIZE).repeat(4) // LOCAL)


def check_process_local_data() -> None:
    own = np.arange(2 * LOCAL, dtype=np.int32).reshape(LOCAL, 2) + 100 * INDEX
    x = verax.make_array_from_process_local_data(SPLIT, own)
    assert x.shape == (SIZE, 2)
    due = [np.arange(2 * LOCAL).reshape(LOCAL, 2) + 100 * i for i in range(COUNT)]
    equal(x, np.concatenate(due))
    x = verax.make_array_from_process_local_data(SPLIT, own, (SIZE, 2))
    equal(x, np.concatenate(due))
    whole = verax.make_array_from_process_local_data(SPLIT, VALUES, VALUES.shape)
    equal(whole, VALUES)
    tree = verax.make_array_from_process_local_data(
        {"a": SPLIT, "b": WHOLE}, {"a": own, "b": np.float32(3)}
    )
    assert tree["a"].shape == (SIZE, 2)
    assert float(tree["b"]) == 3
    with pytest.raises(ValueError, match="takes data of shape"):
        verax.make_array_from_process_local_data(SPLIT, own, (SIZE + COUNT * LOCAL, 2))


def check_callback_data() -> None:
    asked = []

    def part(index: tuple[slice, ...]) -> np.ndarray:
        asked.append(index)
        return VALUES[index]

    x = verax.make_array_from_callback(VALUES.shape, SPLIT, part)
    assert len(asked) == LOCAL
    equal(x, VALUES)


def check_single_device_arrays() -> None:
    parts = [verax.device_put(np.ones(2), device) for device in verax.local_devices()]
    x = verax.make_array_from_single_device_arrays((2 * SIZE,), SPLIT, parts)
    equal(x, np.ones(2 * SIZE))
    with pytest.raises(ValueError, match="there is no part for"):
        verax.make_array_from_single_device_arrays((2 * SIZE,), SPLIT, parts[1:])
    foreign = verax.make_array_from_single_device_arrays(
        (2 * SIZE,), SPLIT, parts, dtype=np.float32
    )
    assert foreign.dtype == np.float32


def check_device_put_moves() -> None:
    x = spread_values()
    whole = verax.device_put(x, WHOLE)
    np.testing.assert_array_equal(whole, VALUES)
    equal(verax.device_put(whole, SPLIT), VALUES)
    table = verax.device_put(VALUES.reshape(SIZE, 4), SPLIT)
    turned = NamedSharding(Mesh(MESH.devices[::-1], ("x",)), P("x"))
    moved = verax.device_put(table, turned)
    assert moved.sharding == turned
    equal(moved, VALUES.reshape(SIZE, 4))
    with pytest.raises(ValueError, match="to other devices"):
        verax.device_put(x, verax.local_devices()[0])
    own = verax.device_put(VALUES, verax.local_devices()[0])
    equal(verax.device_put(own, SPLIT), VALUES)


def check_device_put_donates_and_copies() -> None:
    x = spread_values()
    kept = verax.device_put(x, SPLIT, may_alias=False)
    equal(kept, VALUES)
    moved = verax.device_put(x, WHOLE, donate=True)
    assert x.is_deleted()
    np.testing.assert_array_equal(moved, VALUES)


def check_jit() -> None:
    x = spread_values()
    np.testing.assert_array_equal(verax.jit(vnp.sum)(x), VALUES.sum())
    y = verax.jit(lambda x: 2 * x)(x)
    assert y.sharding == SPLIT
    equal(y, 2 * VALUES)
    z = verax.jit(lambda x: x + 1, out_shardings=WHOLE)(x)
    np.testing.assert_array_equal(z, VALUES + 1)
    w = verax.jit(lambda x: x * 3, in_shardings=SPLIT)(VALUES)
    equal(w, 3 * VALUES)
    captured = spread_values()
    equal(verax.jit(lambda a: a + captured)(x), 2 * VALUES)


def check_ahead_of_time() -> None:
    spec = verax.ShapeDtypeStruct(VALUES.shape, np.float32, sharding=SPLIT)
    compiled = verax.jit(lambda x: x * x).lower(spec).compile()
    equal(compiled(spread_values()), VALUES * VALUES)


def check_eager() -> None:
    x = spread_values()
    equal(x + 1, VALUES + 1)
    assert float(vnp.sum(x)) == VALUES.sum()
    assert float(x[5]) == 5
    equal(x.at[0].set(7), np.r_[np.float32(7), VALUES[1:]])


def check_derivatives_and_batches() -> None:
    x = spread_values()
    equal(verax.grad(lambda x: (x**2).sum())(x), 2 * VALUES)
    equal(verax.jit(verax.vmap(lambda a: a * a))(x), VALUES * VALUES)
    hessian = verax.jit(verax.jacfwd(lambda a: (a**3).sum()))(x)
    equal(hessian, 3 * VALUES**2)


def check_collectives() -> None:
    x = spread_values()

    def mapped(f: Any, out: Any = SPLIT.spec) -> Any:
        return verax.jit(verax.shard_map(f, mesh=MESH, in_specs=P("x"), out_specs=out))

    total = mapped(lambda a: lax.psum(a, "x"), P())(x)
    parts = VALUES.reshape(SIZE, 4)
    np.testing.assert_array_equal(total, parts.sum(0))
    equal(mapped(lambda a: a + lax.axis_index("x"))(x), VALUES + VALUES // 4)
    shift = [(i, (i + 1) % SIZE) for i in range(SIZE)]
    equal(mapped(lambda a: lax.ppermute(a, "x", shift))(x), np.roll(VALUES, 4))
    equal(mapped(lambda a: lax.pmax(a, "x"))(x), np.tile(parts.max(0), SIZE))
    gathered = mapped(lambda a: lax.all_gather(a, "x", tiled=True).sum()[None])(x)
    equal(gathered, np.full(SIZE, VALUES.sum()))
    scattered = mapped(lambda a: lax.psum_scatter(vnp.tile(a, SIZE), "x", tiled=True))
    equal(scattered(x), np.tile(parts.sum(0), SIZE))
    wide = verax.device_put(np.arange(SIZE * SIZE * 1.0), SPLIT)
    swapped = mapped(lambda a: lax.all_to_all(a, "x", 0, 0))(wide)
    equal(swapped, np.arange(SIZE * SIZE).reshape(SIZE, SIZE).T.reshape(-1))


def check_gradients_through_collectives() -> None:
    def loss(x: Any) -> Any:
        return verax.shard_map(
            lambda a: lax.psum((a**2).sum(), "x"),
            mesh=MESH,
            in_specs=P("x"),
            out_specs=P(),
        )(x)

    equal(verax.jit(verax.grad(loss))(spread_values()), 2 * VALUES)


def check_random_numbers() -> None:
    """The same bits whatever the split; one process alone draws them here."""
    due = np.asarray(verax.random.normal(verax.random.key(3), (8 * SIZE,)))

    def draw(key: Any) -> Any:
        return verax.random.normal(key, (8 * SIZE,))

    for place in (SPLIT, WHOLE):
        actual = verax.jit(draw, out_shardings=place)(verax.random.key(3))
        np.testing.assert_allclose(process_allgather(actual), due, rtol=1e-6)
    bits = verax.jit(lambda k: verax.random.bits(k, (8 * SIZE,)), out_shardings=SPLIT)(
        verax.random.key(5)
    )
    equal(bits, np.asarray(verax.random.bits(verax.random.key(5), (8 * SIZE,))))


def check_donation() -> None:
    x = spread_values()
    y = verax.jit(lambda x: x + 1, donate_argnums=0)(x)
    assert x.is_deleted()
    equal(y, VALUES + 1)
    x.delete()
    y.delete()
    with pytest.raises(RuntimeError, match="deleted"):
        y.block_until_ready()


def check_host_callbacks() -> None:
    x = spread_values()

    def double(a: np.ndarray) -> np.ndarray:
        return np.asarray(a) * 2

    def called(a: Any) -> Any:
        shape = verax.ShapeDtypeStruct(a.shape, a.dtype)
        return verax.pure_callback(double, shape, a, vmap_method="sequential")

    equal(verax.jit(called, out_shardings=SPLIT)(x), 2 * VALUES)


def check_where_callbacks_run() -> None:
    """Those inside `shard_map` in each process, with its parts."""
    seen: list[float] = []

    def note(a: Any) -> None:
        seen.append(float(np.asarray(a)[0]))

    def f(a: Any) -> Any:
        verax.debug.callback(note, a)
        return a

    verax.jit(f)(spread_values()).block_until_ready()
    verax.effects_barrier()
    assert seen == ([] if INDEX else [VALUES[0]])
    seen.clear()
    mapped = verax.shard_map(f, mesh=MESH, in_specs=P("x"), out_specs=P("x"))
    verax.jit(mapped)(spread_values()).block_until_ready()
    verax.effects_barrier()
    own = [VALUES[shard.index][0] for shard in spread_values().addressable_shards]
    assert sorted(seen) == own


def check_programs_of_one_process() -> None:
    """What concerns one process only needs no other."""
    x = vnp.arange(3.0)
    assert float(verax.jit(vnp.sum)(x + INDEX)) == 3 + 3 * INDEX
    for device in verax.local_devices():
        y = verax.device_put(x, device) * 2
        assert y.devices() == {device}
        assert y.tolist() == [0, 2, 4]


def check_devices_of_other_processes() -> None:
    (other, *_) = verax.local_devices(process_index=(INDEX + 1) % COUNT)
    with pytest.raises(ValueError, match="a device of process"):
        verax.device_put(np.ones(3), other)


def check_the_disk_cache() -> None:
    """The first process writes, and each reads."""
    folder = os.environ["CHECKS_FOLDER"]
    options = {
        "enable_compilation_cache": True,
        "compilation_cache_dir": folder,
        "persistent_cache_min_compile_time_secs": 0.0,
    }
    former = {name: getattr(verax.config, name) for name in options}
    for name, value in options.items():
        verax.config.update(name, value)
    try:
        actual = verax.jit(lambda x: vnp.sin(x).sum())(spread_values())
        process_allgather(actual)
        verax.clear_caches()
        before = verax.metrics()["disk_hits"]
        again = verax.jit(lambda x: vnp.sin(x).sum())(spread_values())
        assert float(actual) == float(again)
        assert verax.metrics()["disk_hits"] > before
    finally:
        for name, value in former.items():
            verax.config.update(name, value)


def check_programs_are_compared() -> None:
    x = spread_values()
    verax.config.update("compare_programs", True)
    try:
        equal(verax.jit(lambda x: x * 5)(x), 5 * VALUES)
        with pytest.raises(RuntimeError, match=r"program \d+ of processes .* differs"):
            verax.jit(lambda x: x * (7 + INDEX))(x)
        equal(verax.jit(lambda x: x * 6)(x), 6 * VALUES)
    finally:
        verax.config.update("compare_programs", False)
