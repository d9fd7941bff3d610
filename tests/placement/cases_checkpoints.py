"""Checkpoints of arrays on a mesh, restored on others."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from verax.experimental import checkpoint
from verax.experimental.checkpoint import leaves
from verax.sharding import (
    AxisType,
    NamedSharding,
    PartitionSpec as P,
    SingleDeviceSharding,
)

MESH = verax.make_mesh((4, 2), ("x", "y"))
OTHER = verax.make_mesh((2, 4), ("x", "y"))
VALUES = np.arange(64, dtype=np.float32).reshape(8, 8)
SPECS = [P(), P("x"), P("x", "y"), P(("x", "y")), P(None, "y"), P(("y", "x"), None)]


@pytest.mark.parametrize("saved", SPECS, ids=str)
def test_what_is_saved_on_one_mesh_is_restored_on_another(
    saved: P, tmp_path: Path
) -> None:
    x = verax.device_put(VALUES, NamedSharding(MESH, saved))
    checkpoint.save(tmp_path / "x", x)
    for mesh in (MESH, OTHER):
        for spec in SPECS:
            place = NamedSharding(mesh, spec)
            like = verax.ShapeDtypeStruct(x.shape, x.dtype, sharding=place)
            actual = checkpoint.restore(tmp_path / "x", like)
            assert actual.sharding == place
            assert actual.committed
            np.testing.assert_array_equal(actual, VALUES)
    actual = checkpoint.restore(tmp_path / "x")
    assert actual.devices() == {verax.devices()[0]}
    assert not actual.committed


def test_each_part_is_written_once(tmp_path: Path) -> None:
    x = verax.device_put(VALUES, NamedSharding(MESH, P("x")))
    checkpoint.save(tmp_path / "x", {"x": x, "same": x[:, 0]})
    (folder,) = tmp_path.glob("x/values-*")
    with np.load(folder / "process-0.npz") as files:
        parts = [files[name] for name in files if name.startswith("1:")]
    assert [part.shape for part in parts] == [(2, 8)] * 4
    np.testing.assert_array_equal(np.concatenate(parts), VALUES)


def test_leaves_go_where_like_and_then_sharding_say(tmp_path: Path) -> None:
    tree = {"a": vnp.arange(8.0), "b": vnp.arange(8.0), "c": vnp.arange(8.0)}
    checkpoint.save(tmp_path / "x", tree)
    device = verax.devices()[3]
    split = NamedSharding(MESH, P("x"))
    like: dict[str, Any] = {**tree, "a": verax.device_put(tree["a"], device)}
    like["b"] = np.zeros(8, np.float32)
    actual = checkpoint.restore(tmp_path / "x", like, sharding=split)
    assert actual["a"].sharding == SingleDeviceSharding(device)
    assert isinstance(actual["b"], np.ndarray)
    assert actual["c"].sharding == split
    places = {"a": split, "b": device, "c": None}
    actual = checkpoint.restore(tmp_path / "x", sharding=places)
    assert [x.sharding for x in actual.values()] == [
        split,
        SingleDeviceSharding(device),
        SingleDeviceSharding(verax.devices()[0]),
    ]


def test_keys_lie_on_a_mesh_too(tmp_path: Path) -> None:
    place = NamedSharding(MESH, P("x"))
    keys = verax.device_put(verax.random.split(verax.random.key(1), 8), place)
    checkpoint.save(tmp_path / "x", keys)
    actual = checkpoint.restore(tmp_path / "x", keys)
    assert actual.sharding == place
    assert actual.dtype == keys.dtype
    np.testing.assert_array_equal(
        verax.random.key_data(actual), verax.random.key_data(keys)
    )


@pytest.mark.parametrize("shape", [(0,), (0, 8), (8, 0), (4, 0, 2)])
def test_arrays_without_elements_lie_on_a_mesh(
    shape: tuple[int, ...], tmp_path: Path
) -> None:
    for kind in ("float32", "bfloat16", "int4"):
        x = verax.device_put(vnp.zeros(shape, kind), NamedSharding(MESH, P("x")))
        checkpoint.save(tmp_path / "x", {"x": x}, overwrite=True)
        actual = checkpoint.restore(tmp_path / "x", {"x": x})["x"]
        assert (actual.shape, actual.dtype) == (x.shape, x.dtype)
        assert actual.sharding == x.sharding
        assert checkpoint.restore(tmp_path / "x")["x"].shape == shape


def test_terms_of_a_sum_are_added_before_they_are_written(tmp_path: Path) -> None:
    mesh = verax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Explicit,) * 2)
    whole = verax.device_put(VALUES, NamedSharding(mesh, P("x")))
    place = NamedSharding(mesh, P(None, "y", unreduced={"x"}))
    products = verax.device_put(whole, place)
    last = vnp.einsum(
        "ij,ij->", whole, whole, out_sharding=NamedSharding(mesh, P(unreduced={"x"}))
    )
    for x in (products, last):
        checkpoint.save(tmp_path / "x", {"x": x}, overwrite=True)
        actual = checkpoint.restore(tmp_path / "x")["x"]
        np.testing.assert_array_equal(actual, np.asarray(x))
        again = checkpoint.restore(tmp_path / "x", {"x": x})["x"]
        assert again.sharding == x.sharding
        np.testing.assert_array_equal(again, np.asarray(x))
    assert float(last) == (VALUES * VALUES).sum()


def test_only_terms_are_moved_before_they_are_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    moved: list[object] = []

    def move(x: object, place: object) -> object:
        moved.append(x)
        return verax.device_put(x, place)

    monkeypatch.setattr(leaves, "device_put", move)
    spread = verax.device_put(VALUES, NamedSharding(MESH, P("x")))
    tree = {"spread": spread, "alone": vnp.ones(3), "keys": verax.random.key(0)}
    checkpoint.save(tmp_path / "x", tree)
    assert moved == []
