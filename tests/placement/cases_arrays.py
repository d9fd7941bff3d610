"""Where arrays live, and what they say of it."""

import pickle
from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from verax.sharding import (
    Mesh,
    NamedSharding,
    PartitionSpec as P,
    Sharding,
    SingleDeviceSharding,
)

DEVICES = verax.devices()
MESH = verax.make_mesh((4, 2), ("x", "y"))
VALUES = np.arange(32, dtype=np.float32).reshape(8, 4)
SPECS = [P(), P("x"), P("x", "y"), P(("x", "y")), P(None, "y"), P(("y", "x"), None)]


def wrong(x: Any) -> Any:
    """What types forbid and users try."""
    return x


def sharded(*spec: object) -> NamedSharding:
    return NamedSharding(MESH, P(*spec))


def test_there_are_eight_devices_and_their_number_is_fixed_now() -> None:
    assert len(DEVICES) == 8
    assert verax.config.num_cpu_devices == 8
    verax.config.update("jax_num_cpu_devices", 8)
    with pytest.raises(RuntimeError, match=r"already started.*8 devices"):
        verax.config.update("num_cpu_devices", 4)


def test_device_put_commits_to_a_device() -> None:
    x = verax.device_put(VALUES, DEVICES[3])
    assert x.device == DEVICES[3]
    assert x.devices() == {DEVICES[3]}
    assert x.committed
    assert x.sharding == SingleDeviceSharding(DEVICES[3])
    assert np.array_equal(np.asarray(x), VALUES)
    assert not vnp.ones(3).committed
    assert vnp.ones(3).devices() == {DEVICES[0]}


LIKE = [
    vnp.zeros_like,
    vnp.ones_like,
    vnp.empty_like,
    lambda x, **more: vnp.full_like(x, 3, **more),
    lambda x, **more: vnp.full_like(x, vnp.float32(3), **more),
    lambda x, **more: verax.lax.full_like(x, 3, **more),
]


@pytest.mark.parametrize("like", LIKE)
def test_arrays_like_another_are_where_it_is(like: Any) -> None:
    place = sharded("x", "y")
    x = verax.device_put(VALUES, place)
    actual = like(x)
    assert actual.sharding == place
    assert actual.committed
    assert len({float(v) for v in np.asarray(actual).ravel()}) == 1
    assert like(x, dtype=vnp.int32).sharding == place
    assert like(x, shape=VALUES.shape).sharding == place
    assert not like(x, shape=(3,)).committed
    whole = verax.device_put(VALUES, sharded())
    assert like(whole, shape=(3,)).sharding == sharded()
    assert like(verax.device_put(VALUES, DEVICES[3])).devices() == {DEVICES[3]}
    assert not like(vnp.asarray(VALUES)).committed
    assert not like(VALUES).committed


@pytest.mark.parametrize("spec", SPECS, ids=repr)
def test_sharded_arrays_hold_the_values(spec: P) -> None:
    place = NamedSharding(MESH, spec)
    x = verax.device_put(VALUES, place)
    assert x.sharding == place
    assert x.is_fully_addressable
    assert x.is_fully_replicated == (spec == P())
    fresh = pickle.loads(pickle.dumps(x))
    assert np.array_equal(np.asarray(x), VALUES)
    assert np.array_equal(np.asarray(fresh), VALUES)
    assert str(x) == str(VALUES)
    for shard in x.addressable_shards:
        assert shard.data is not None
        assert shard.data.devices() == {shard.device}
        assert np.array_equal(np.asarray(shard.data), VALUES[shard.index])
    expected = place.devices_indices_map(x.shape)
    assert {s.device: s.index for s in x.global_shards} == expected


def test_copies_of_a_part_are_numbered() -> None:
    shards = verax.device_put(VALUES, sharded("x")).addressable_shards
    assert [shard.replica_id for shard in shards] == [0, 1] * 4


@pytest.mark.parametrize("dtype", ["bfloat16", "int8", "bool", "complex64", "uint32"])
def test_every_dtype_is_sharded(dtype: str) -> None:
    x = vnp.arange(8).astype(dtype)
    y = verax.device_put(x, sharded("x"))
    assert y.dtype == x.dtype
    assert np.array_equal(np.asarray(y), np.asarray(x))


def test_empty_and_scalar_arrays() -> None:
    assert verax.device_put(np.zeros((0, 4)), sharded("x", "y")).shape == (0, 4)
    scalar = verax.device_put(2.5, sharded())
    assert float(scalar) == 2.5
    assert len(scalar.addressable_shards) == 8


def test_keys_are_sharded_along_their_own_dimensions() -> None:
    keys = verax.random.split(verax.random.key(0), 8)
    spread = verax.device_put(keys, sharded("x"))
    assert spread.sharding == sharded("x")
    draw = verax.jit(verax.vmap(verax.random.bits))
    assert np.array_equal(draw(spread), draw(keys))
    assert draw(spread).sharding == sharded("x")


def test_from_one_sharding_to_another() -> None:
    x = verax.device_put(VALUES, sharded("x", "y"))
    for place in (sharded("y"), sharded(), SingleDeviceSharding(DEVICES[5])):
        x = verax.device_put(x, place)
        assert x.sharding == place
        assert np.array_equal(np.asarray(x), VALUES)


def test_device_put_takes_prefix_trees() -> None:
    tree = {"a": (VALUES, VALUES), "b": 1.0}
    put = verax.device_put(tree, {"a": sharded("x"), "b": None})
    assert put["a"][0].sharding == put["a"][1].sharding == sharded("x")
    assert not put["b"].committed
    with pytest.raises(ValueError, match="must be a tree prefix"):
        verax.device_put(tree, {"a": sharded("x")})


def test_the_three_copy_semantics() -> None:
    x: Any = verax.device_put(VALUES, DEVICES[1])
    shared: Any = verax.device_put(x, DEVICES[1], may_alias=True)
    copied: Any = verax.device_put(x, DEVICES[1], may_alias=False)
    pointer = x.device_buffer().unsafe_buffer_pointer()
    assert shared.device_buffer().unsafe_buffer_pointer() == pointer
    assert copied.device_buffer().unsafe_buffer_pointer() != pointer
    moved = verax.device_put(x, DEVICES[1], donate=True)
    assert x.is_deleted()
    assert np.array_equal(np.asarray(moved), VALUES)
    with pytest.raises(RuntimeError, match="deleted"):
        np.asarray(x)
    with pytest.raises(ValueError, match="cannot be True at the same time"):
        verax.device_put(moved, DEVICES[2], donate=True, may_alias=True)


def test_a_donated_array_leaves_its_device() -> None:
    x = verax.device_put(VALUES, DEVICES[1])
    y = verax.device_put(x, sharded("x"), donate=True)
    assert x.is_deleted()
    assert np.array_equal(np.asarray(y), VALUES)


def test_device_put_without_a_device() -> None:
    x = verax.device_put(VALUES, DEVICES[2])
    assert verax.device_put(x).devices() == {DEVICES[2]}
    assert not verax.device_put(3.0).committed


def test_shards_and_replicas_along_a_new_dimension() -> None:
    parts = [{"w": np.full(3, i)} for i in range(4)]
    whole = verax.device_put_sharded(parts, DEVICES[2:6])["w"]
    assert whole.shape == (4, 3)
    assert [s.device for s in whole.addressable_shards] == DEVICES[2:6]
    assert np.array_equal(whole, [[i] * 3 for i in range(4)])
    copies = verax.device_put_replicated(VALUES, DEVICES[:3])
    assert copies.shape == (3, 8, 4)
    with pytest.raises(ValueError, match="2 shards for 3 devices"):
        verax.device_put_sharded([1, 2], DEVICES[:3])
    with pytest.raises(ValueError, match="same type"):
        verax.device_put_sharded([1, np.ones(2)], DEVICES[:2])


def test_arrays_from_their_parts() -> None:
    place = sharded("x", "y")
    called = []

    def part(index: tuple[slice, ...]) -> np.ndarray:
        called.append(index)
        return VALUES[index]

    x = verax.make_array_from_callback((8, 4), place, part)
    assert np.array_equal(np.asarray(x), VALUES)
    assert len(called) == 8
    verax.make_array_from_callback((8, 4), sharded("x"), part)
    assert len(called) == 12, "one call for each part, not for each copy"
    pieces = [shard.data for shard in x.addressable_shards]
    again = verax.make_array_from_single_device_arrays((8, 4), place, pieces[::-1])
    assert np.array_equal(np.asarray(again), VALUES)
    with pytest.raises(ValueError, match="no part for cpu:7"):
        verax.make_array_from_single_device_arrays((8, 4), place, pieces[:7])
    with pytest.raises(ValueError, match="shape"):
        verax.make_array_from_single_device_arrays((16, 4), place, pieces)
    with pytest.raises(
        ValueError, match=r"Expected shard shape .* which data_callback returned"
    ):
        verax.make_array_from_callback((8, 4), place, lambda index: VALUES)
    with pytest.raises(verax.errors.UnexpectedTracerError, match="a traced context"):
        verax.jit(lambda: verax.make_array_from_callback((8, 4), place, part))()


def test_device_get_reads_trees_of_sharded_arrays() -> None:
    got = verax.device_get({"a": verax.device_put(VALUES, sharded("y")), "b": 3})
    assert type(got["a"]) is np.ndarray
    assert np.array_equal(got["a"], VALUES)
    assert got["b"] == 3


def test_meshes_and_shardings_are_values() -> None:
    again = Mesh(np.array(DEVICES).reshape(4, 2), ("x", "y"), MESH.axis_types)
    assert again == MESH
    assert hash(again) == hash(MESH)
    assert NamedSharding(again, P("x")) == sharded("x")
    assert len({sharded("x"), NamedSharding(again, P("x")), sharded("y")}) == 2
    assert repr(sharded("x", None)) == (
        "NamedSharding(mesh=Mesh('x': 4, 'y': 2, axis_types=(Explicit, Explicit)), "
        "spec=P('x', None))"
    )
    assert sharded("x") != sharded("x", None)
    assert sharded("x").is_equivalent_to(sharded("x", None), 2)
    assert sharded(("x", "y")).shard_shape((16, 3)) == (2, 3)
    assert isinstance(sharded(), Sharding)
    assert pickle.loads(pickle.dumps(P("x", ("y",)))) == P("x", "y")


def test_a_mesh_in_another_order_holds_the_same_values() -> None:
    order = np.array(DEVICES)[[3, 1, 7, 0, 2, 6, 5, 4]]
    place = NamedSharding(Mesh(order, ("z",)), P("z"))
    x = verax.device_put(VALUES, place)
    assert np.array_equal(np.asarray(x), VALUES)
    first = next(s for s in x.addressable_shards if s.device == DEVICES[3])
    assert first.index == (slice(0, 1), slice(None))
    doubled = verax.jit(lambda x: x * 2)(x)
    assert np.array_equal(np.asarray(doubled), 2 * VALUES)
    assert doubled.sharding == place


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: sharded("z"), ValueError, "Resource axis: z .*'x', 'y'"),
        (lambda: sharded("x", "x"), ValueError, "axis 'x'.*twice"),
        (lambda: NamedSharding(MESH, wrong(("x",))), TypeError, "PartitionSpec"),
        (lambda: P(3), TypeError, "not 3"),
        (lambda: Mesh(np.array(DEVICES), ("a", "b")), ValueError, "one name for each"),
        (
            lambda: Mesh(np.array(DEVICES[:1] * 2), ("a",)),
            ValueError,
            "each device only once",
        ),
        (lambda: verax.make_mesh((3, 3), ("a", "b")), ValueError, "takes 9 devices"),
        (lambda: SingleDeviceSharding(wrong("cpu")), TypeError, "verax.devices"),
        (
            lambda: verax.device_put(np.ones((6, 4)), sharded("x")),
            ValueError,
            "dimension 0.*6 is not a multiple of 4.*'x'",
        ),
        (
            lambda: verax.device_put(np.ones(8), sharded(None, "x")),
            ValueError,
            "at least 2.* of rank 1",
        ),
        (lambda: verax.device_put(VALUES, "cpu"), ValueError, "not 'cpu'"),
        (lambda: verax.device_put("x", DEVICES[0]), TypeError, "not an array"),
        (lambda: verax.device_put(VALUES, P("x")), ValueError, "needs a mesh"),
    ],
)
def test_wrong_places(make: object, error: type[Exception], message: str) -> None:
    assert callable(make)
    with pytest.raises(error, match=message):
        make()


def test_creation_takes_devices_and_shardings() -> None:
    assert vnp.zeros(3, device=DEVICES[4]).devices() == {DEVICES[4]}
    assert vnp.asarray(VALUES, device=sharded("x")).sharding == sharded("x")


def test_updates_and_copies_stay() -> None:
    x = verax.device_put(VALUES, DEVICES[2])
    assert x.at[0].set(1.0).devices() == {DEVICES[2]}
    assert x[1:3].devices() == {DEVICES[2]}
    assert x[vnp.array([0, 2])].devices() == {DEVICES[2]}
    assert vnp.zeros((8, 4)).at[:].set(x).devices() == {DEVICES[2]}
    assert x.copy().devices() == {DEVICES[2]}
