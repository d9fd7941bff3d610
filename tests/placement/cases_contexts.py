"""Meshes in force, abstract meshes, `shard_map` over some axes: eight devices."""

import copy
import pickle
from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from verax import lax
from verax.sharding import (
    AbstractDevice,
    AbstractMesh,
    AxisType,
    Mesh,
    NamedSharding,
    PartitionSpec as P,
)

MESH = verax.make_mesh((4, 2), ("x", "y"))
AUTO = MESH.update(axis_types=(AxisType.Auto,) * 2)
AUTO_X = (AxisType.Auto,)
VALUES = np.arange(32, dtype=np.float32).reshape(8, 4)


def test_a_mesh_is_in_force_within_the_block() -> None:
    assert verax.get_mesh().empty
    with verax.set_mesh(MESH):
        assert verax.get_mesh() == MESH
        assert verax.get_abstract_mesh() == MESH.abstract_mesh
        other = verax.make_mesh((2,), ("z",))
        with verax.set_mesh(other):
            assert verax.get_mesh() == other
        with verax.set_mesh(None):
            assert verax.get_mesh().empty
        assert verax.get_mesh() == MESH
    assert verax.get_abstract_mesh().empty


def test_a_mesh_can_be_set_for_the_thread() -> None:
    verax.set_mesh(MESH)
    try:
        assert verax.get_mesh() == MESH
    finally:
        verax.set_mesh(None)
    assert verax.get_mesh().empty


def test_specs_take_the_mesh_in_force() -> None:
    @verax.jit
    def constrained(x: Any) -> Any:
        return lax.with_sharding_constraint(x, P("x", "y"))

    with verax.set_mesh(AUTO):
        assert verax.device_put(VALUES, P("y")).sharding == NamedSharding(AUTO, P("y"))
        assert constrained(VALUES).sharding == NamedSharding(AUTO, P("x", "y"))
    turned = verax.make_mesh((2, 4), ("x", "y"), (AxisType.Auto,) * 2)
    with verax.set_mesh(turned):
        assert constrained(VALUES).sharding == NamedSharding(turned, P("x", "y"))
    with pytest.raises(ValueError, match="set_mesh"):
        verax.device_put(VALUES, P("y"))


def test_shard_map_takes_the_mesh_in_force() -> None:
    total = verax.shard_map(lambda x: lax.psum(x, "x"), in_specs=P("x"), out_specs=P())
    with pytest.raises(ValueError, match="context mesh cannot be empty"):
        total(VALUES)
    for size in (4, 2):
        with verax.set_mesh(verax.make_mesh((size,), ("x",))):
            expected = VALUES.reshape(size, 8 // size, 4).sum(0)
            assert np.array_equal(total(VALUES), expected)


def test_wrong_calls_of_set_mesh() -> None:
    with pytest.raises(ValueError, match="takes a verax Mesh"):
        verax.set_mesh(MESH.abstract_mesh)
    with pytest.raises(ValueError, match="while a function is traced"):
        verax.make_jaxpr(lambda x: (verax.set_mesh(MESH), x)[1])(1.0)
    with pytest.raises(ValueError, match="while a function is traced"):
        verax.make_jaxpr(lambda x: (verax.get_mesh(), x)[1])(1.0)
    with pytest.raises(ValueError, match="contains manual axes"):
        verax.set_mesh(MESH.update(axis_types=(AxisType.Manual,) * 2))
    with pytest.raises(ValueError, match="Number of axis names should match"):
        AbstractMesh((2,), ("x",), (AxisType.Explicit,) * 2)


def test_axes_are_manual_inside_shard_map() -> None:
    seen = []

    def f(x: Any) -> Any:
        seen.append(verax.get_abstract_mesh())
        return x

    verax.shard_map(f, mesh=MESH, in_specs=P("x"), out_specs=P("x"))(VALUES)
    assert seen[0].manual_axes == ("x", "y")
    assert seen[0].are_all_axes_manual
    verax.shard_map(f, mesh=MESH, in_specs=P("x"), out_specs=P("x"), axis_names={"x"})(
        VALUES
    )
    assert (seen[1].manual_axes, seen[1].explicit_axes) == (("x",), ("y",))
    with pytest.raises(ValueError, match="inside shard_map"):
        verax.shard_map(
            lambda x: lax.with_sharding_constraint(x, P("x")),
            mesh=MESH,
            in_specs=P("x"),
            out_specs=P("x"),
        )(VALUES)


def test_shard_map_over_some_axes() -> None:
    mesh = MESH.update(axis_types=(AxisType.Auto,) * 2)

    def body(x: Any) -> Any:
        assert x.shape == (2, 4)
        inner = lax.with_sharding_constraint(x, P(None, "y"))
        return lax.psum(vnp.sin(inner), "x")

    f = verax.shard_map(body, in_specs=P("x"), out_specs=P(), axis_names={"x"})
    expected = np.sin(VALUES).reshape(4, 2, 4).sum(0)
    with verax.set_mesh(mesh):
        placed = verax.device_put(VALUES, P("x", "y"))
        for run in (f, verax.jit(f)):
            assert np.allclose(run(VALUES), expected, atol=1e-6)
            assert np.allclose(run(placed), expected, atol=1e-6)
        gradient = verax.grad(lambda x: f(x).sum())(VALUES)
        assert np.allclose(gradient, np.cos(VALUES), atol=1e-6)
        over = verax.vmap(f)(np.stack([VALUES, VALUES + 1]))
        assert np.allclose(over[0], expected, atol=1e-6)
        with pytest.raises(ValueError, match="refers to 'y'"):
            verax.shard_map(body, in_specs=P("y"), out_specs=P(), axis_names={"x"})(
                VALUES
            )
        with pytest.raises(ValueError, match="to be a subset of"):
            verax.shard_map(body, in_specs=P(), out_specs=P(), axis_names={"z"})(VALUES)


def test_shard_map_inside_shard_map() -> None:
    def inner(z: Any) -> Any:
        return lax.psum(z, "y") + lax.axis_index("x")

    def outer(x: Any) -> Any:
        return verax.shard_map(inner, in_specs=P("y"), out_specs=P())(x)

    f = verax.shard_map(
        outer, mesh=MESH, in_specs=P("x"), out_specs=P("x"), axis_names={"x"}
    )
    x = np.arange(16.0, dtype=np.float32)
    parts = x.reshape(4, 2, 2).sum(1) + np.arange(4)[:, None]
    assert np.array_equal(f(x), parts.ravel())
    assert np.array_equal(verax.jit(f)(x), parts.ravel())


def test_smap_maps_one_axis() -> None:
    with verax.set_mesh(MESH):
        f = verax.smap(lambda x: x * 2, in_axes=1, out_axes=0, axis_name="y")
        expected = np.concatenate([VALUES[:, :2], VALUES[:, 2:]]) * 2
        assert np.array_equal(f(VALUES), expected)
        both = verax.smap(
            lambda x, y: (x + y, lax.psum(x, "x")),
            in_axes=(0, None),
            out_axes=(0, None),
            axis_name="x",
        )
        sums, total = both(VALUES, np.float32(1))
        assert np.array_equal(sums, VALUES + 1)
        assert np.array_equal(total, VALUES.reshape(4, 2, 4).sum(0))
    with pytest.raises(TypeError, match="one name"):
        verax.smap(lambda x: x, in_axes=0, out_axes=0, axis_name=("x",))  # type: ignore[call-overload]  # on purpose
    by_types = verax.smap(lambda x: x, out_axes=0, axis_name="x")
    with verax.set_mesh(AUTO), pytest.raises(TypeError, match=r"only along .*Explicit"):
        by_types(VALUES)


def test_abstract_meshes_stand_for_devices() -> None:
    mesh = AbstractMesh((4, 2), ("x", "y"))
    place = NamedSharding(mesh, P("x"))
    assert place.shard_shape((8, 2)) == (2, 2)
    assert place.replicated_axes == {"y"}
    with pytest.raises(ValueError, match="no devices"):
        _ = place.device_set
    for kind, put in (
        (AxisType.Auto, lax.with_sharding_constraint),
        (AxisType.Explicit, verax.reshard),
    ):
        own = NamedSharding(mesh.update(axis_types=(kind,) * 2), P("x"))
        out = verax.jit(lambda x, put=put, own=own: put(x, own))(VALUES)
        devices = MESH.update(axis_types=(kind,) * 2)
        assert out.sharding.is_equivalent_to(NamedSharding(devices, P("x")), 2)
    total = verax.shard_map(
        lambda x: lax.psum(x, "x"), mesh=mesh, in_specs=P("x"), out_specs=P()
    )
    assert np.array_equal(verax.jit(total)(VALUES), VALUES.reshape(4, 2, 4).sum(0))
    with pytest.raises(ValueError, match="with a `NamedSharding` as input to `shard_"):
        total(VALUES)
    reverse = verax.make_mesh((8,), ("z",), devices=verax.devices()[::-1])
    with verax.set_mesh(reverse):
        actual = total(VALUES).sharding.mesh
        assert actual.device_ids.ravel().tolist() == list(range(8))[::-1]
    with verax.sharding.use_abstract_mesh(mesh):
        assert verax.get_abstract_mesh().axis_names == ("x", "y")
        assert verax.device_put(VALUES, P("x")).sharding == NamedSharding(MESH, P("x"))
    many = verax.sharding.use_abstract_mesh(AbstractMesh((64,), ("x",)))
    with many, pytest.raises(ValueError, match=r"has 64 devices, but .* only 8"):
        verax.device_put(np.ones(64), P("x"))
    assert pickle.loads(pickle.dumps(mesh)) == mesh
    assert copy.deepcopy(mesh) is mesh


def test_abstract_meshes_are_over_the_devices_of_the_arguments() -> None:
    halves = verax.devices()[:4], verax.devices()[4:], verax.devices()[4:][::-1]
    meshes = [verax.make_mesh((4,), ("x",), AUTO_X, devices=own) for own in halves]
    axes = meshes[0].abstract_mesh
    place = NamedSharding(axes, P("x"))

    def sums(part: Any) -> Any:
        return lax.psum(part.sum(0), "x")

    def total(x: Any) -> Any:
        mapped = verax.shard_map(sums, mesh=axes, in_specs=P("x"), out_specs=P())
        return lax.with_sharding_constraint(x, place), mapped(x)

    compiled = verax.jit(total)
    for mesh in meshes:
        x = verax.device_put(VALUES, NamedSharding(mesh, P()))
        for run in (compiled, total):
            held, summed = run(x)
            assert held.sharding == NamedSharding(mesh, P("x"))
            assert summed.devices() == set(mesh.devices.flat)
            assert np.array_equal(held, VALUES)
            assert np.array_equal(summed, VALUES.sum(0))
    lowered = compiled.lower(VALUES)
    moved = lowered.compile(device_assignment=halves[1])
    assert moved(VALUES)[1].devices() == set(halves[1])


def test_abstract_meshes_that_do_not_fit_the_devices_are_refused() -> None:
    two, four = [verax.make_mesh((n,), ("x",), AUTO_X) for n in (2, 4)]
    place = NamedSharding(two.abstract_mesh, P("x"))

    def constrained(x: Any) -> Any:
        return lax.with_sharding_constraint(x, place)

    x = verax.device_put(VALUES, NamedSharding(four, P("x")))
    with pytest.raises(ValueError, match="size: 2 does not match the device assignm"):
        verax.jit(constrained)(x)
    with pytest.raises(ValueError, match=r"of the target sharding, \(\('x', 2\),\)"):
        constrained(x)
    with pytest.raises(ValueError, match=r"requires the input .* be a `verax.Array`"):
        constrained(VALUES)
    with pytest.raises(TypeError, match="on the input must be a `NamedSharding`"):
        constrained(vnp.ones(2))
    mapped = verax.shard_map(
        lambda x: x, mesh=two.abstract_mesh, in_specs=P("x"), out_specs=P("x")
    )
    with pytest.raises(ValueError, match="does not match the mesh shape passed to sha"):
        mapped(x)


def test_jitted_functions_run_on_the_mesh_in_force() -> None:
    double = verax.jit(lambda x: x * 2)
    few = verax.make_mesh((2,), ("x",), AUTO_X)
    with verax.set_mesh(AUTO):
        for x in (VALUES, vnp.asarray(VALUES)):
            out = double(x)
            assert out.sharding == NamedSharding(AUTO, P())
            assert np.array_equal(out, VALUES * 2)
        split = verax.device_put(VALUES, P("x"))
        assert double(split).sharding.is_equivalent_to(split.sharding, 2)
        assert vnp.sin(verax.device_put(VALUES, verax.devices()[3])).shape == (8, 4)
        for place in (verax.devices()[0], NamedSharding(few, P("x"))):
            x = verax.device_put(VALUES, place)
            for call in (double, double.lower):
                with pytest.raises(ValueError, match=r"x of .* and jit's context mesh"):
                    call(x)
    assert double(VALUES).devices() == {verax.devices()[0]}


def test_programs_on_other_devices_share_their_modules() -> None:
    def doubled(x: Any) -> Any:
        return x * 2 + lax.rsqrt(x + 7)

    compiled, meshes = verax.jit(doubled), []
    for own in (verax.devices()[:4], verax.devices()[4:]):
        meshes.append(verax.make_mesh((4,), ("x",), AUTO_X, devices=own))
    arrays = [verax.device_put(VALUES, NamedSharding(m, P("x"))) for m in meshes]
    arrays += [verax.device_put(VALUES, own) for own in verax.devices()[2:4]]
    before = verax.monitoring.metrics()["lowerings"]
    outs = [compiled(x) for x in arrays]
    written = verax.monitoring.metrics()["lowerings"] - before
    assert written == 2  # over four devices, and on one
    for x, out in zip(arrays, outs, strict=True):
        assert out.sharding == x.sharding
        assert np.array_equal(out, outs[0])


def test_members_of_meshes() -> None:
    assert MESH.shape_tuple == (("x", 4), ("y", 2))
    assert MESH.are_all_axes_explicit
    assert AUTO.are_all_axes_auto
    assert not MESH.are_all_axes_manual
    assert MESH.local_devices == list(MESH.devices.flat)
    assert MESH.local_mesh == MESH
    assert not MESH.is_multi_process
    assert MESH.update(axis_names=("a", "b")).axis_names == ("a", "b")
    assert MESH.update(axis_types=(AxisType.Manual,) * 2) != MESH
    device = MESH.abstract_mesh.abstract_device
    assert device == AbstractDevice("cpu", None, "cpu")
    assert Mesh(None, ()).empty
    manual = MESH.abstract_mesh.update_axis_types({"x": AxisType.Manual})
    assert manual.manual_axes == ("x",)
    assert manual.update(axis_sizes=(2, 4)).size == 8
    assert str(manual) == (
        "AbstractMesh('x': 4, 'y': 2, axis_types=(Manual, Explicit), "
        "device_kind=cpu, num_cores=None, platform=cpu)"
    )
