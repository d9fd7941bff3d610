"""Explicit mesh axes: where programs run, and what they say of it; eight devices."""

from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from verax import lax
from verax.experimental.serialize_executable import deserialize_and_load, serialize
from verax.sharding import AxisType, NamedSharding, PartitionSpec as P, reshard

MESH = verax.make_mesh((2, 4), ("x", "y"))
VALUES = np.arange(64, dtype=np.float32).reshape(8, 8) / 8


def split(*spec: Any) -> verax.Array:
    place = NamedSharding(MESH, P(*spec))
    actual: verax.Array = verax.device_put(VALUES, place)
    return actual


def test_results_lie_on_the_meshes_of_their_types() -> None:
    x = split("x")
    line = verax.make_mesh((8,), ("z",))
    turned = NamedSharding(verax.make_mesh((4, 2), ("x", "y")), P("y", None))
    over = NamedSharding(line, P("z", None))

    def both(x: Any) -> Any:
        return x * 2, verax.device_put(x * 2, over) + 1

    near, far = verax.jit(both)(x)
    assert near.sharding == NamedSharding(MESH, P("x", None))
    assert far.sharding == over
    for place in (over, turned):
        for actual in (
            reshard(x, place),
            verax.jit(lambda x, p=place: reshard(x, p))(x),
        ):
            assert actual.sharding == place
            for part in actual.addressable_shards:
                assert np.array_equal(part.data, VALUES[part.index])
    ct = verax.jit(verax.grad(lambda x: (reshard(x, over) ** 2).sum()))(x)
    assert ct.sharding == NamedSharding(MESH, P("x", None))
    assert np.array_equal(ct, 2 * VALUES)
    few = NamedSharding(verax.make_mesh((2,), ("x",)), P("x"))
    with pytest.raises(ValueError, match="incompatible devices for jitted comp"):
        verax.jit(lambda x: verax.device_put(x, few))(x)


def test_compiled_programs_take_what_is_not_committed() -> None:
    x = split("x")
    compiled = verax.jit(lambda x: x * 2).lower(x).compile()
    data = serialize(compiled)
    for program in (compiled, deserialize_and_load(*data)):
        for given in (x, VALUES, vnp.asarray(VALUES)):
            actual = program(given)
            assert actual.sharding == NamedSharding(MESH, P("x", None))
            assert np.array_equal(actual, VALUES * 2)
        with pytest.raises(ValueError, match="input shardings that disagree"):
            program(split("y"))


def test_types_of_whole_values_are_over_the_mesh_in_force() -> None:
    x = verax.device_put(VALUES, NamedSharding(MESH, P()))
    assert verax.typeof(x).sharding.mesh.axis_names == ()
    with verax.set_mesh(MESH):
        actual = verax.typeof(x).sharding
        assert actual == NamedSharding(MESH.abstract_mesh, P(None, None))
        whole = vnp.zeros((8, 8), out_sharding=actual)
        assert whole.sharding.is_fully_replicated
    auto = MESH.update(axis_types=(AxisType.Auto,) * 2)
    with verax.set_mesh(auto):
        assert verax.typeof(x).sharding.mesh == auto.abstract_mesh
        said = verax.typeof(x).sharding
        assert vnp.zeros((8, 8), out_sharding=said).tolist() == [[0.0] * 8] * 8
        assert vnp.dot(x, x, out_sharding=said).shape == (8, 8)
    with pytest.raises(AttributeError, match="typeof"):
        verax.jit(lambda x: x.sharding)(x)


def test_constraints_are_for_the_axes_of_the_compiler() -> None:
    x, place = split("x"), NamedSharding(MESH, P("x"))
    for run in (lambda f: f, verax.jit):
        with pytest.raises(ValueError, match="can only refer to Auto axes"):
            run(lambda x: lax.with_sharding_constraint(x, place))(x)
        kept = run(lambda x: lax.with_sharding_constraint(x, place.update(spec=P())))(x)
        assert verax.typeof(kept) is verax.typeof(x)
        with verax.set_mesh(MESH):
            assert run(lambda x: lax.with_sharding_constraint(x, P("x")))(x) is not None
            with pytest.raises(AssertionError, match="acts as an assert"):
                run(lambda x: lax.with_sharding_constraint(x, P()))(x)


def test_nothing_is_left_to_the_compiler_without_axes_of_its_own() -> None:
    free = P(P.UNCONSTRAINED)
    for kind in (AxisType.Explicit, AxisType.Manual):
        mesh = verax.make_mesh((2, 4), ("x", "y"), (kind,) * 2)
        for place in (mesh, mesh.abstract_mesh):
            with pytest.raises(ValueError, match=r"cannot contain `P.UNCONSTRAINED`"):
                NamedSharding(place, free)
    mixed = (AxisType.Explicit, AxisType.Auto)
    assert NamedSharding(verax.make_mesh((2, 4), ("x", "y"), mixed), free).spec == free


def test_types_may_leave_out_axes_of_size_1() -> None:
    mesh = verax.make_mesh((2, 1), ("x", "y"))
    place = NamedSharding(mesh, P("x", "y"))
    whole = verax.device_put(VALUES, NamedSharding(mesh, P("x")))

    def seen(x: Any) -> Any:
        types.append(str(x.aval))
        return lax.with_sharding_constraint(x * 2, P("x", "y")) + whole

    def parts(x: Any) -> Any:
        types.append(str(x.aval))
        return lax.pcast(lax.psum(x, "x"), "y", to="varying")

    mapped = verax.shard_map(parts, in_specs=P("x", "y"), out_specs=P())
    for option, due in ((True, "[8@x,8]"), (False, "[8@x,8@y]")):
        types: list[str] = []
        with verax.set_mesh(mesh), verax.remove_size_one_mesh_axis_from_type(option):
            x = verax.device_put(VALUES, place)
            assert x.sharding == place
            assert str(verax.typeof(x)) == types_of(due)
            out = verax.jit(seen)(x)
            assert out.sharding.spec == (P("x", None) if option else P("x", "y"))
            assert np.array_equal(out, 3 * VALUES)
            each = verax.vmap(lambda x: x + 1, spmd_axis_name=("x", "y"))
            column = verax.device_put(VALUES, P(("x", "y")))
            assert np.array_equal(each(column), VALUES + 1)
            assert types == [types_of(due)]
            if option:
                assert np.array_equal(mapped(x), VALUES[:4] + VALUES[4:])
                assert types[1] == "f32[4,8]{V:x}"
            else:
                with pytest.raises(ValueError, match="pcast from='varying'"):
                    mapped(x)


def types_of(dims: str) -> str:
    """The text of a type of floats."""
    return f"f32{dims}"
