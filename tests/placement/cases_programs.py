"""Computation follows data: eager operations and compiled programs on eight devices."""

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from verax.lax import with_sharding_constraint
from verax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec as P

DEVICES = verax.devices()
MESH = verax.make_mesh((4, 2), ("x", "y"), (AxisType.Auto,) * 2)
VALUES = np.arange(32, dtype=np.float32).reshape(8, 4) / 7


def sharded(*spec: object) -> NamedSharding:
    return NamedSharding(MESH, P(*spec))


def put(*spec: object) -> Any:
    return verax.device_put(VALUES, sharded(*spec))


def test_committed_arrays_take_computation_along() -> None:
    x = verax.device_put(VALUES, DEVICES[3])
    for y in (x + 1, vnp.sin(x), x @ x.T, x.sum(), verax.jit(lambda x: x * 2)(x)):
        assert y.devices() == {DEVICES[3]}
        assert y.committed
    assert (vnp.ones((8, 4)) + x).devices() == {DEVICES[3]}
    assert np.array_equal(verax.jit(lambda x, y: x + y)(1.0, x), VALUES + 1)


def test_different_devices_are_an_error_that_names_both() -> None:
    x = verax.device_put(VALUES, DEVICES[1])
    y = {"w": verax.device_put(VALUES, DEVICES[2])}

    def add(x: Any, y: Any) -> Any:
        return x + y["w"]

    expected = r"x of add .* device ids \[1\] .* y\['w'\] of add .* device ids \[2\]"
    with pytest.raises(ValueError, match=expected):
        verax.jit(add)(x, y)
    with pytest.raises(ValueError, match=r"ids \[1\].*ids \[2\]"):
        add(x, y)
    number = verax.device_put(1.0, DEVICES[5])
    with pytest.raises(
        ValueError, match=r"with shape float32\[\] and device ids \[5\]"
    ):
        verax.jit(vnp.add)(x, number)
    with pytest.raises(
        ValueError, match=r"ids \[1\].*captured array|captured array.*ids"
    ):
        verax.jit(lambda y: x + y["w"])(y)


def test_default_device_in_a_block_and_for_good() -> None:
    with verax.default_device(DEVICES[5]):
        x = vnp.zeros(3)
        assert x.devices() == {DEVICES[5]}
        made = [x + 1, vnp.asarray([1]), vnp.arange(3), verax.random.key(1)]
        made += [verax.jit(lambda: vnp.ones(2))(), verax.jit(vnp.sin)(1.0)]
        assert all(y.devices() == {DEVICES[5]} and not y.committed for y in made)
        assert (verax.device_put(1.0, DEVICES[1]) + x).devices() == {DEVICES[1]}
    assert x.devices() == {DEVICES[5]}
    assert (x + 1).devices() == verax.jit(vnp.sin)(x).devices() == {DEVICES[0]}
    verax.config.update("jax_default_device", DEVICES[6])
    try:
        assert vnp.ones(1).devices() == {DEVICES[6]}
    finally:
        verax.config.update("jax_default_device", None)
    assert vnp.ones(1).devices() == {DEVICES[0]}
    with pytest.raises(TypeError, match="default_device"):
        verax.config.update("default_device", 3)


def test_jit_with_a_device_moves_everything() -> None:
    double = verax.jit(lambda x: x * 2, device=DEVICES[2])
    for x in (1.0, VALUES, verax.device_put(VALUES, DEVICES[7]), put("x")):
        assert double(x).devices() == {DEVICES[2]}
        assert np.array_equal(double(x), 2 * np.asarray(x, np.float32))
    assert verax.jit(lambda x: x, backend="cpu")(1.0).devices() == {DEVICES[0]}
    with pytest.raises(ValueError, match="can't specify both"):
        verax.jit(lambda x: x, device=DEVICES[0], backend="cpu")


PROGRAMS: list[tuple[Callable[..., Any], bool]] = [
    (lambda x: x * 3 - x, True),
    (lambda x: (x * 7).astype(vnp.int32) % 5, True),
    (lambda x: vnp.where(x > 1, x, -x), True),
    (lambda x: x.T.reshape(2, 16), True),
    (lambda x: vnp.concatenate([x, x[::-1]]), True),
    (lambda x: (x * 7).astype(vnp.int32).sum(axis=0), True),
    (lambda x: x.max(axis=1), True),
    (lambda x: vnp.sort(x, axis=0), True),
    (lambda x: x[vnp.array([3, 1])], True),
    (lambda x: x.sum(), False),
    (lambda x: x @ x.T, False),
    (lambda x: vnp.cumsum(x, axis=0), False),
    (lambda x: verax.lax.fori_loop(0, 3, lambda i, y: vnp.sin(y) + i, x), False),
    (lambda x: verax.jit(lambda y: vnp.exp(y) @ y.T)(x), False),
    (lambda x: verax.grad(lambda y: vnp.tanh(y @ y.T).sum())(x), False),
    (lambda x: verax.vmap(lambda row: vnp.outer(row, row).sum(0))(x), False),
    (lambda x: verax.random.normal(verax.random.key(3), (8, 2)) + x[:, :2], False),
]


@pytest.mark.parametrize("spec", [("x", "y"), (("y", "x"),), ()], ids=repr)
def test_programs_give_what_they_give_on_one_device(spec: Any) -> None:
    every = verax.jit(lambda x: [program(x) for program, _ in PROGRAMS])
    expected, given = every(VALUES), every(put(*spec))
    for number, (_, exact) in enumerate(PROGRAMS):
        assert given[number].devices() == set(DEVICES)
        if exact:
            assert np.array_equal(given[number], expected[number]), number
        else:
            close = np.allclose(given[number], expected[number], rtol=1e-5, atol=1e-5)
            assert close, number


def test_eager_operations_on_sharded_arrays_stay_sharded() -> None:
    x = put("x", "y")
    assert (x + 1).sharding == vnp.sin(x).sharding == sharded("x", "y")
    assert np.array_equal(x + x, VALUES + VALUES)
    assert np.array_equal(x[2:4], VALUES[2:4])
    assert np.array_equal(x.at[0].set(5.0)[0], [5.0] * 4)
    assert [row.tolist() for row in x] == VALUES.tolist()
    assert float(x[1, 1]) == float(VALUES[1, 1])


def test_in_and_out_shardings() -> None:
    rows, columns = sharded("x"), sharded(None, "y")
    f = verax.jit(lambda x, w: x @ w, in_shardings=(rows, None), out_shardings=columns)
    w = np.ones((4, 2), np.float32)
    out = f(VALUES, w)
    assert out.sharding == columns
    np.testing.assert_allclose(out, VALUES @ w, rtol=1e-6)
    assert f(put("x"), w).sharding == columns
    text = f.lower(VALUES, w).as_text()
    assert 'sdy.mesh @mesh = <["x"=4, "y"=2]>' in text
    assert 'tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}' in text
    assert (
        '-> (tensor<8x2xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"y"}]>})'
        in text
    )
    with pytest.raises(ValueError, match="committed to"):
        f(put("y"), w)
    with pytest.raises(ValueError, match=r"dimension 0.*not a multiple"):
        f(np.ones((6, 4)), w)
    with pytest.raises(ValueError, match="prefix"):
        verax.jit(lambda x: x, in_shardings=(rows, rows))(VALUES)
    with pytest.raises(ValueError, match="does not support kwargs"):
        verax.jit(lambda x: x, in_shardings=rows)(x=VALUES)


def test_shardings_are_prefixes_of_trees() -> None:
    rows = sharded("x")
    f = verax.jit(
        lambda tree, z: {"a": (tree["b"] * z, tree["c"])},
        in_shardings=(rows, None),
        out_shardings={"a": (None, rows)},
    )
    out = f({"b": VALUES, "c": VALUES}, 2.0)["a"]
    assert out[1].sharding == rows
    assert np.array_equal(out[0], 2 * VALUES)


def test_specs_within_a_mesh() -> None:
    with MESH:
        f = verax.jit(lambda x: x + 1, in_shardings=P("x"), out_shardings=P("y"))
        assert f(VALUES).sharding == sharded("y")
        assert verax.device_put(VALUES, P("x")).sharding == sharded("x")
        g = verax.jit(lambda x: with_sharding_constraint(x * 2, P("x", "y")))
        assert g(VALUES).sharding == sharded("x", "y")
    with pytest.raises(RuntimeError, match="requires a non-empty mesh"):
        g(VALUES)


def test_constraints_survive_every_transformation() -> None:
    place = sharded("y", "x")

    def f(x: Any) -> Any:
        return vnp.sin(with_sharding_constraint(x * x, place)).sum()

    assert "sharding_constraint" in str(verax.make_jaxpr(verax.grad(f))(VALUES))
    expected = 2 * VALUES * np.cos(VALUES * VALUES)
    np.testing.assert_allclose(verax.grad(f)(VALUES), expected, rtol=1e-4, atol=1e-5)
    jitted = verax.jit(verax.grad(f))(VALUES)
    assert jitted.devices() == set(DEVICES)
    np.testing.assert_allclose(jitted, expected, rtol=1e-4, atol=1e-5)
    stack = np.stack([VALUES, VALUES + 1])
    many = verax.jit(verax.vmap(verax.grad(f)))(stack)
    np.testing.assert_allclose(many[0], expected, rtol=1e-4, atol=1e-5)
    tangent = verax.jvp(f, (VALUES,), (VALUES,))[1]
    np.testing.assert_allclose(tangent, (expected * VALUES).sum(), rtol=1e-3)


def test_vmap_may_name_the_axes_of_its_dimension() -> None:
    def f(x: Any) -> Any:
        return with_sharding_constraint(x, sharded("y"))

    text = str(verax.make_jaxpr(verax.vmap(f, spmd_axis_name="x"))(VALUES))
    assert "splits=((x,), (y,))" in text
    out = verax.jit(verax.vmap(f, spmd_axis_name="x"))(VALUES)
    assert out.sharding == sharded("x", "y")
    inner = verax.vmap(verax.jit(f), spmd_axis_name=("x",), in_axes=1, out_axes=1)
    assert "splits=((y,), (x,))" in str(verax.make_jaxpr(inner)(VALUES))
    with pytest.raises(ValueError, match="twice"):
        verax.jit(verax.vmap(f, spmd_axis_name="y"))(VALUES)


def test_constraints_outside_a_trace_move_arrays() -> None:
    out = with_sharding_constraint({"a": vnp.asarray(VALUES)}, sharded("x"))["a"]
    assert out.sharding == sharded("x")
    with pytest.raises(ValueError, match="not a multiple"):
        with_sharding_constraint(np.ones(3), sharded("x"))


def test_shardings_of_a_jit_inside_a_jit_are_constraints() -> None:
    inner = verax.jit(
        lambda x: x + 1, in_shardings=sharded("x"), out_shardings=sharded("y")
    )
    out = verax.jit(lambda x: inner(x) * 2)(VALUES)
    assert out.sharding == sharded("y")
    np.testing.assert_allclose(out, (VALUES + 1) * 2, rtol=1e-6)


def test_captured_arrays_keep_their_sharding() -> None:
    w = put("x", "y")
    f = verax.jit(lambda x: x + w)
    text = f.lower(1.0).as_text()
    assert '[{"x"}, {"y"}]' in text
    assert "stablehlo.constant" not in text
    out = f(1.0)
    assert out.sharding == sharded("x", "y")
    np.testing.assert_allclose(out, VALUES + 1)


def test_constraints_that_do_not_split_evenly() -> None:
    place = NamedSharding(MESH, P(("x", "y")))

    def f(x: Any) -> Any:
        return vnp.cumsum(vnp.sin(with_sharding_constraint(x, place)))

    x = np.arange(7, dtype=np.float32)
    assert np.allclose(verax.jit(f)(x), np.cumsum(np.sin(x)), atol=1e-5)
    gradient = verax.jit(verax.grad(lambda x: f(x)[-1]))(x)
    assert np.allclose(gradient, np.cos(x), atol=1e-5)
    with pytest.raises(ValueError, match="should evenly divide the shape"):
        with_sharding_constraint(x, place)


def test_outputs_that_cannot_be_split_evenly_are_whole() -> None:
    x = put("x")
    out = verax.jit(lambda x: x[:7] * 2)(x)
    assert np.array_equal(out, VALUES[:7] * 2)
    out.sharding.shard_shape(out.shape)


def test_donation_of_sharded_arrays() -> None:
    x = put("x", "y")
    f = verax.jit(lambda x: x + 1, donate_argnums=0)
    y = f(x)
    assert x.is_deleted()
    np.testing.assert_allclose(y, VALUES + 1)
    with pytest.raises(RuntimeError, match=r"deleted|donated"):
        f(x)


@pytest.mark.parametrize("unused", [False, True])
@pytest.mark.parametrize("captured", [False, True])
def test_later_calls_take_what_lies_right_and_place_the_rest(
    unused: bool, captured: bool
) -> None:
    added = put("y") if captured else np.float32(0)

    def f(x: Any, y: Any) -> Any:
        return {"sum": (x if unused else x + y) + added, "last": x}

    right, spelled = put("x"), put(("x",), None)
    flat = verax.jit(f, in_shardings=(sharded("x"), None))
    other = [right, put(), VALUES, vnp.asarray(VALUES), 2.0, np.float32(3), 4]
    for _ in range(3):
        for y in other:
            for x in (right, spelled):
                out = flat(x, y)
                due = VALUES if unused else VALUES + np.asarray(y)
                np.testing.assert_allclose(out["sum"], due + np.asarray(added))
                assert out["last"].sharding.is_equivalent_to(x.sharding, 2)
                assert out["last"].committed
    single = verax.jit(lambda x: x * 2)
    for _ in range(3):
        y = single(right)
        assert y.sharding == right.sharding
        np.testing.assert_array_equal(single(y), VALUES * 4)
    right.delete()
    with pytest.raises(RuntimeError, match="deleted"):
        single(right)


def test_stages_show_shardings() -> None:
    struct = verax.ShapeDtypeStruct((8, 4), np.float32, sharding=sharded("x"))
    compiled = verax.jit(lambda x: (x, x.sum())).lower(struct).compile()
    assert compiled.input_shardings == ((sharded("x"),), {})
    assert compiled.output_shardings == (sharded("x"), sharded())
    assert np.array_equal(compiled(VALUES)[0], VALUES)
    plain = verax.jit(lambda x: x).lower(1.0).compile()
    assert plain.output_shardings.device_set == {DEVICES[0]}


def test_compiled_functions_say_where_arguments_must_be() -> None:
    plain = verax.jit(lambda x, unused: x + 1).lower(VALUES, 0).compile()
    away = verax.device_put(VALUES, DEVICES[1])
    with pytest.raises(ValueError, match=r"argument x .* committed to .*id=1.*id=0"):
        plain(away, 0)
    assert np.array_equal(plain(VALUES, verax.device_put(0, DEVICES[1])), VALUES + 1)
    with verax.default_device(DEVICES[2]):
        uncommitted = vnp.asarray(VALUES) * 1
    assert uncommitted.devices() == {DEVICES[2]}
    for _ in range(2):
        assert plain(uncommitted, 0).devices() == {DEVICES[0]}
    struct = verax.ShapeDtypeStruct((8, 4), np.float32, sharding=sharded("x"))
    split = verax.jit(lambda x: x + 1).lower(struct).compile()
    assert split.input_formats[0][0].sharding == sharded("x")
    assert split.output_formats.sharding == sharded("x")
    for x in (VALUES, uncommitted, verax.device_put(VALUES, sharded("x"))):
        assert np.array_equal(split(x), VALUES + 1)
    for place in (sharded("y"), DEVICES[0]):
        with pytest.raises(ValueError, match=r"mismatches: .* not to NamedSharding"):
            split(verax.device_put(VALUES, place))


def test_the_device_given_to_jit_is_where_everything_goes() -> None:
    doubled = verax.jit(lambda x: x * 2, device=DEVICES[1])
    compiled = doubled.lower(VALUES).compile()
    for x in (put("x"), verax.device_put(VALUES, DEVICES[2]), VALUES):
        for run in (doubled, compiled):
            assert run(x).devices() == {DEVICES[1]}
            assert np.array_equal(run(x), VALUES * 2)
    with MESH, pytest.raises(ValueError, match="backend or device is also specified"):
        doubled(VALUES + 1)
    held = verax.jit(
        lambda x: with_sharding_constraint(x, sharded("x")), device=DEVICES[0]
    )
    with pytest.raises(
        ValueError, match=r"explicit output sharding with device ids \[0"
    ):
        held(VALUES)


def test_constraints_to_one_device_say_where_programs_run() -> None:
    place = verax.sharding.SingleDeviceSharding(DEVICES[2])

    def held(x: Any) -> Any:
        return with_sharding_constraint(x * 2, place)

    assert verax.jit(held)(VALUES).sharding == place
    assert verax.jit(verax.vmap(held))(VALUES).sharding == place
    with pytest.raises(ValueError, match="Received incompatible devices"):
        verax.jit(held)(verax.device_put(VALUES, DEVICES[1]))
    with pytest.raises(ValueError, match=r"spmd_axis_name .* a SingleDeviceSharding"):
        verax.vmap(held, spmd_axis_name="x")(VALUES)


def test_a_mesh_within_a_trace_has_the_size_of_that_around() -> None:
    two = verax.make_mesh((2,), ("x",), devices=DEVICES[:2])

    def inner(x: Any) -> Any:
        with two:
            return x + 1

    assert np.array_equal(verax.jit(inner)(VALUES), VALUES + 1)
    with MESH, pytest.raises(ValueError, match="cannot change the size of the mesh"):
        verax.jit(inner)(VALUES)


def test_programs_over_several_devices_as_bytes() -> None:
    table, whole = put("x"), np.arange(4, dtype=np.float32)
    fun = verax.jit(lambda x, k: ((x + table) * whole, x.sum(), k), donate_argnums=0)
    struct = verax.ShapeDtypeStruct((8, 4), np.float32, sharding=sharded("x", "y"))
    stage = fun.lower(struct, 1).compile()
    due = stage(VALUES, 2)
    data = stage.serialize()
    for actual in (verax.stages.deserialize(data), verax.stages.deserialize(data)):
        assert actual.input_shardings == stage.input_shardings
        assert actual.output_shardings == stage.output_shardings
        outs = actual(VALUES, 2)
        assert [out.sharding for out in outs] == [out.sharding for out in due]
        for out, expected in zip(outs, due, strict=True):
            assert np.array_equal(out, expected)
        x = put("x", "y")
        actual(x, 2)
        assert x.is_deleted()
        data = actual.serialize()
    with pytest.raises(ValueError, match="on 8 different devices, but there are 2"):
        verax.stages.deserialize(data, execution_devices=DEVICES[:2])


def test_loaded_programs_run_on_other_devices() -> None:
    table = np.arange(4, dtype=np.float32)
    one = verax.jit(lambda x: x * table).lower(VALUES).compile().serialize()
    actual = verax.stages.deserialize(one, execution_devices=[DEVICES[6]])
    assert actual(VALUES).devices() == {DEVICES[6]}
    assert np.array_equal(actual(VALUES), VALUES * table)
    with pytest.raises(ValueError, match="committed to"):
        actual(verax.device_put(VALUES, DEVICES[1]))
    three = verax.device_put(VALUES, DEVICES[3])
    data = verax.jit(lambda x: x * table).lower(three).compile().serialize()
    for given, device in ((None, DEVICES[0]), ([DEVICES[3]], DEVICES[3])):
        actual = verax.stages.deserialize(data, execution_devices=given)
        assert actual(VALUES).devices() == {device}
    two = verax.make_mesh((2,), ("x",), (AxisType.Auto,), devices=DEVICES[:2])
    x = verax.device_put(VALUES, NamedSharding(two, P(None, "x")))
    held = verax.device_put(VALUES, NamedSharding(two, P("x")))
    data = verax.jit(lambda x: x * 2 - held).lower(x).compile().serialize()
    moved = verax.stages.deserialize(data, execution_devices=[DEVICES[7], DEVICES[5]])
    assert np.array_equal(moved(VALUES), VALUES * 2 - VALUES)
    assert moved(VALUES).devices() == {DEVICES[5], DEVICES[7]}
    again = verax.stages.deserialize(moved.serialize())
    assert again(VALUES).devices() == set(DEVICES[:2])


def test_compiling_for_other_devices() -> None:
    lowered = verax.jit(lambda x: x * 2).lower(VALUES)
    compiled = lowered.compile(device_assignment=(DEVICES[3],))
    assert compiled(VALUES).devices() == {DEVICES[3]}
    two = verax.make_mesh((2,), ("x",), (AxisType.Auto,), devices=DEVICES[:2])
    struct = verax.ShapeDtypeStruct(
        (8, 4), np.float32, sharding=NamedSharding(two, P(None, "x"))
    )
    split = verax.jit(lambda x: x * 2).lower(struct)
    moved = split.compile(device_assignment=(DEVICES[5], DEVICES[4]))
    assert np.array_equal(moved(VALUES), VALUES * 2)
    assert moved(VALUES).devices() == {DEVICES[4], DEVICES[5]}
    assert moved.input_shardings[0][0].mesh.device_ids.tolist() == [5, 4]
    with pytest.raises(ValueError, match="runs on 2 different devices, but got 1"):
        split.compile(device_assignment=DEVICES[:1])


def test_one_function_runs_wherever_its_arguments_are() -> None:
    traced = []

    @verax.jit
    def f(x: Any) -> Any:
        traced.append(x.shape)
        return x * 2

    places = [*DEVICES[:3], sharded("x"), sharded("y")]
    for place in (*places, *places):
        x = verax.device_put(VALUES, place)
        assert f(x).sharding.device_set == x.devices()
        assert np.array_equal(f(x), VALUES * 2)
    assert f(VALUES).devices() == {DEVICES[0]}
    assert len(traced) == 1, "places are part of programs, not of traces"


def test_two_meshes_of_the_same_devices_in_one_program() -> None:
    flat = verax.make_mesh((8,), ("z",), (AxisType.Auto,))
    x = verax.device_put(VALUES, sharded("x"))
    y = verax.device_put(VALUES, NamedSharding(flat, P("z")))
    assert np.array_equal(verax.jit(lambda x, y: x + y)(x, y), VALUES + VALUES)
    small = verax.make_mesh((2,), ("x",), (AxisType.Auto,), devices=DEVICES[:2])
    z = verax.device_put(VALUES, NamedSharding(small, P("x")))
    with pytest.raises(
        ValueError, match=r"ids \[0, 1, .*, 7\].* ids \[0, 1\] .*different"
    ):
        verax.jit(lambda x, z: x + z)(x, z)


@pytest.mark.parametrize("kind", [AxisType.Auto, AxisType.Explicit])
def test_other_devices_in_other_orders_share_modules_and_no_values(kind: Any) -> None:
    """A module says where devices stand in a mesh: orders differ, devices need not."""
    f = verax.jit(lambda x, y: (vnp.sin(x) @ y.T, 3 * x))
    due = [np.sin(VALUES) @ (2 * VALUES).T, 3 * VALUES]
    orders = [[0, 1, 2, 3], [3, 2, 1, 0], [4, 5, 6, 7], [5, 4, 7, 6], [2, 0, 3, 1]]
    chosen = [np.array(DEVICES)[order].reshape(2, 2) for order in orders]
    meshes = [Mesh(devices, ("x", "y"), (kind, kind)) for devices in chosen]
    for mesh, other in itertools.product(meshes, repeat=2):
        if mesh is not other and kind is AxisType.Explicit:
            continue  # types are over one mesh
        if {d.id for d in mesh.devices.flat} == {d.id for d in other.devices.flat}:
            x = verax.device_put(VALUES, NamedSharding(mesh, P("x")))
            y = verax.device_put(2 * VALUES, NamedSharding(other, P("y")))
            for actual, expected in zip(f(x, y), due, strict=True):
                np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-5)
                assert actual.devices() == x.devices()


def test_lowering_is_the_same_every_time() -> None:
    def text() -> str:
        return verax.jit(lambda x: vnp.sin(x) @ x.T).lower(put("x")).as_text()

    first = text()
    verax.clear_caches()
    assert text() == first


def test_explain_names_places() -> None:
    f = verax.jit(lambda x: x * 2)
    f(VALUES)
    x = verax.device_put(VALUES, DEVICES[2])
    report = f.explain(x)
    assert [str(actual) for actual in report.differences] == [
        "x: on cpu:2, previously on the default device"
    ]
    assert [answer.hit for answer in report.caches] == [False, False, True, False, None]
    assert report.verdict == "miss: the function is lowered and compiled."
    f(x)
    assert f.explain(x).hit
    split = f.explain(put("x", None))
    (actual,) = split.differences
    assert actual.kind == "place"
    assert actual.now.startswith(
        "sharded as NamedSharding(mesh=Mesh('x': 4, 'y': 2, axis_types=(Auto, "
        "Auto)), spec=P('x'"
    )
    f(put("x", None))
    report = f.explain(put("x", None))
    assert report.hit
    assert report.memory is not None
    assert report.memory.arguments == VALUES.nbytes // 4  # on each device


def test_explain_names_commitment() -> None:
    f = verax.jit(lambda x: x * 2)
    with verax.default_device(DEVICES[5]):
        loose = vnp.ones(3)
    f(loose)
    (actual,) = f.explain(verax.device_put(loose, DEVICES[5])).differences
    assert (
        str(actual) == "x: committed to its devices, previously not committed to them"
    )


def test_explain_takes_fixed_shardings_and_types() -> None:
    f = verax.jit(lambda x: x + 1, in_shardings=sharded("x"), out_shardings=sharded())
    struct = verax.ShapeDtypeStruct((8, 4), np.float32)
    assert not f.explain(struct).hit
    f(VALUES)
    assert f.explain(struct).hit
    assert f.explain(VALUES).hit
    g = verax.jit(lambda x: x + 1)
    g(put("x", None))
    same = verax.ShapeDtypeStruct((8, 4), np.float32, sharding=sharded("x", None))
    assert g.explain(same).hit
    assert not g.explain(struct).hit


def test_integers_of_two_bits_are_not_sent_between_cpu_devices() -> None:
    for dtype, fails in ((vnp.int2, True), (vnp.uint2, True), (vnp.int4, False)):
        x = verax.device_put(np.array([1, 0, 1, 1], dtype), sharded("x"))
        gather = verax.jit(lambda x: x[::-1], out_shardings=sharded())
        if fails:
            with pytest.raises(verax.errors.CompileError, match="two bits on 8 CPU"):
                gather(x)
        else:
            assert gather(x).tolist() == [1, 1, 0, 1]
