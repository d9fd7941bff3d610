"""`shard_map` and `pmap` on eight devices."""

from functools import partial
from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from verax import lax
from verax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec as P

DEVICES = verax.devices()
MESH = verax.make_mesh((4, 2), ("x", "y"))
VALUES = np.arange(32, dtype=np.float32).reshape(8, 4) / 9


def test_parts_and_wholes() -> None:
    seen = []

    def double(x: Any) -> Any:
        seen.append(x.shape)
        return x * 2

    for spec in (P("x", "y"), P("y", "x"), P(("x", "y")), P(None, "y"), P()):
        f = verax.shard_map(double, mesh=MESH, in_specs=spec, out_specs=spec)
        out = f(VALUES)
        assert np.array_equal(out, VALUES * 2)
        assert out.sharding.is_equivalent_to(NamedSharding(MESH, spec), 2)
    assert (2, 2) in seen
    assert (8, 2) in seen


def test_collectives_between_devices() -> None:
    def f(x: Any, w: Any) -> Any:
        return lax.psum(x @ w, "y"), lax.axis_index("x") * vnp.ones(1, vnp.int32)

    mapped = verax.shard_map(
        f,
        mesh=MESH,
        in_specs=(P("x", "y"), P("y", None)),
        out_specs=(P("x"), P("x")),
    )
    w = np.ones((4, 3), np.float32)
    product, index = mapped(VALUES, w)
    np.testing.assert_allclose(product, VALUES @ w, rtol=1e-6)
    assert index.tolist() == [0, 1, 2, 3]
    gathered = verax.shard_map(
        lambda x: lax.all_gather(x, "x", tiled=True, to="invarying"),
        mesh=MESH,
        in_specs=P("x"),
        out_specs=P(),
    )
    assert np.array_equal(gathered(VALUES), VALUES)
    for groups in ([[0, 1], [2, 3]], [[0, 2], [1, 3]], [[3, 0], [2, 1]]):
        paired = verax.shard_map(
            lambda x, g=groups: lax.psum(x, "x", axis_index_groups=g),
            mesh=MESH,
            in_specs=P("x"),
            out_specs=P("x"),
        )
        rows = VALUES.reshape(4, 2, 4)
        group = [next(g for g in groups if i in g) for i in range(4)]
        expected = rows[np.array(group)].sum(1).reshape(8, 4)
        np.testing.assert_allclose(paired(VALUES), expected, rtol=1e-6)
        text = verax.jit(paired).lower(VALUES).compile().as_text()
        if groups[0] != [3, 0]:
            assert "all-reduce(" in text
            assert "all-gather(" not in text
    ring = verax.shard_map(
        lambda x: lax.ppermute(x, "x", [(i, (i + 1) % 4) for i in range(4)]),
        mesh=MESH,
        in_specs=P("x"),
        out_specs=P("x"),
    )
    assert np.array_equal(ring(VALUES), np.roll(VALUES, 2, axis=0))


def test_derivatives_and_batches() -> None:
    def loss(x: Any) -> Any:
        return lax.psum(vnp.sum(vnp.sin(x) * lax.pmean(x, "y")), ("x", "y"))

    def plain(x: Any) -> Any:
        left, right = x[:, :2], x[:, 2:]
        mean = (left + right) / 2
        return vnp.sum(vnp.sin(left) * mean) + vnp.sum(vnp.sin(right) * mean)

    f = verax.shard_map(loss, mesh=MESH, in_specs=P("x", "y"), out_specs=P())
    np.testing.assert_allclose(f(VALUES), plain(VALUES), rtol=1e-5)
    want = verax.grad(plain)(VALUES)
    np.testing.assert_allclose(verax.grad(f)(VALUES), want, rtol=1e-4, atol=1e-5)
    compiled = verax.jit(verax.grad(f))(VALUES)
    np.testing.assert_allclose(compiled, want, rtol=1e-4, atol=1e-5)
    stack = np.stack([VALUES, VALUES + 1])
    many = verax.vmap(f)(stack)
    np.testing.assert_allclose(many, [plain(x) for x in stack], rtol=1e-5)


def test_trees_decorators_and_meshes_around() -> None:
    with MESH:
        decorate = verax.shard_map(
            in_specs=({"a": P("x")}, P()), out_specs={"b": P("x")}
        )
        f = decorate(lambda tree, scale: {"b": tree["a"] * scale})

    assert np.array_equal(f({"a": VALUES}, 3.0)["b"], VALUES * np.float32(3))


def test_wrong_calls_of_shard_map() -> None:
    same: Any = {"mesh": MESH, "in_specs": P("x")}
    with pytest.raises(ValueError, match=r"may differ along x"):
        verax.shard_map(lambda x: x, out_specs=P(), **same)(VALUES)
    first = verax.shard_map(lambda x: x, out_specs=P(), check_vma=False, **same)
    assert np.array_equal(first(VALUES), VALUES[:2])
    with pytest.raises(ValueError, match=r"argument x.*not a multiple of 4"):
        verax.shard_map(lambda x: x, out_specs=P("x"), **same)(np.ones((6, 2)))
    with pytest.raises(ValueError, match="context mesh cannot be empty"):
        verax.shard_map(lambda x: x, in_specs=P(), out_specs=P())(VALUES)
    with pytest.raises(TypeError, match="PartitionSpec"):
        verax.shard_map(lambda x: x, mesh=MESH, in_specs="x", out_specs=P())(VALUES)
    with pytest.raises(ValueError, match="Resource axis: z"):
        verax.shard_map(lambda x: x, mesh=MESH, in_specs=P("z"), out_specs=P())(VALUES)


def test_pmap_gives_memory_up() -> None:
    """The example `params, state = pmap(update, donate_argnums=(0, 1))(...)`."""
    spread = NamedSharding(verax.make_mesh((8,), ("i",)), P("i"))

    def update(params: Any, state: Any) -> Any:
        return {"w": params["w"] - state}, state + 1

    step = verax.pmap(update, axis_name="i", donate_argnums=(0, 1))
    params = {"w": verax.device_put(np.ones((8, 2), np.float32), spread)}
    state = verax.device_put(np.ones((8, 2), np.float32), spread)
    new, count = step(params, state)
    assert np.array_equal(new["w"], np.zeros((8, 2)))
    assert params["w"].is_deleted()
    assert state.is_deleted()
    step(params=new, state=count)
    assert not new["w"].is_deleted()  # by position only
    assert not count.is_deleted()


def test_pmap() -> None:
    normal = verax.pmap(lambda x: x / lax.psum(x, "i"), axis_name="i")
    out = normal(VALUES)
    np.testing.assert_allclose(out, VALUES / VALUES.sum(0), rtol=1e-5)
    assert out.devices() == set(DEVICES)
    assert len({s.device for s in out.addressable_shards}) == 8
    few = verax.pmap(lambda x, y: x + y, in_axes=(1, None), devices=DEVICES[2:6])
    moved = few(VALUES, 1.0)
    assert np.array_equal(moved, VALUES.T + np.float32(1))
    assert moved.devices() == set(DEVICES[2:6])
    static = verax.pmap(lambda n, x: x * n, static_broadcasted_argnums=0)
    assert np.array_equal(static(3, VALUES), VALUES * np.float32(3))
    last = verax.pmap(lambda x, n: x * n, static_broadcasted_argnums=-1)
    assert np.array_equal(last(VALUES, 3), VALUES * np.float32(3))
    named = verax.pmap(lambda x, y, z: x + y * z)
    actual = named(VALUES, z=VALUES, y=VALUES)
    np.testing.assert_allclose(actual, VALUES + VALUES**2, rtol=1e-6)
    back = verax.pmap(lambda x: x, out_axes=1)(VALUES)
    assert np.array_equal(back, VALUES.T)
    slope = verax.grad(lambda x: verax.pmap(lambda v: v * v)(x).sum())(VALUES)
    np.testing.assert_allclose(slope, 2 * VALUES, rtol=1e-6)
    with pytest.raises(ValueError, match=r"maps 9 elements.*8 devices"):
        verax.pmap(lambda x: x)(np.ones(9))
    with pytest.raises(ValueError, match="must be non-empty, or None"):
        verax.pmap(lambda x: x, devices=[])


def test_arguments_and_results_lie_somewhere_along_each_dimension() -> None:
    free = P(P.UNCONSTRAINED, "m")
    for places in (free, NamedSharding(AUTO, free), ({"x": free},)):
        with pytest.raises(ValueError, match="Unconstrained dims are not allowed"):
            verax.jit(lambda x: x, in_shardings=places)
        with pytest.raises(ValueError, match="Unconstrained dims are not allowed"):
            verax.jit(lambda x: x, out_shardings=places)


def test_results_of_pmap_without_an_axis_are_those_of_the_first_device() -> None:
    f = verax.pmap(lambda x, y: (x, {"y": y}), in_axes=(0, None), out_axes=(None, 0))
    first, rest = f(VALUES, VALUES[0])
    assert np.array_equal(first, VALUES[0])
    assert first.sharding.is_fully_replicated
    assert np.array_equal(rest["y"], np.stack([VALUES[0]] * 8))
    assert verax.pmap(lambda x: x.sum(), out_axes=None)(VALUES) == VALUES[0].sum()


def test_stages_and_explanations_of_pmap() -> None:
    """They are those of `jit`, take types for arrays, and use no memory up."""
    scaled = verax.pmap(lambda x, y: x * y, in_axes=(0, None), donate_argnums=0)
    struct = verax.ShapeDtypeStruct(VALUES.shape, VALUES.dtype)
    assert scaled.eval_shape(struct, 2.0).shape == VALUES.shape
    assert "sdy.mesh" in scaled.lower(struct, 2.0).as_text()
    x = verax.device_put(
        VALUES, NamedSharding(Mesh(np.array(verax.devices()), ("_pmap",)), P("_pmap"))
    )
    assert not scaled.explain(x, 2.0).hit
    compiled = scaled.lower(x, 2.0).compile()
    assert not x.is_deleted()
    assert np.array_equal(scaled(x, 2.0), VALUES * np.float32(2))
    assert x.is_deleted()
    assert scaled.explain(VALUES, 2.0).hit
    report = str(scaled.explain(VALUES[:4], 2.0))
    assert "cases_mapping.py" in report
    assert "f32[4,4]" in report
    assert "miss: the function is traced, lowered and compiled." in report
    placed = verax.device_put(VALUES, x.sharding)
    two = verax.device_put(
        np.float32(2), NamedSharding(Mesh(np.array(verax.devices()), ("_pmap",)), P())
    )
    assert np.array_equal(compiled(placed, two), VALUES * np.float32(2))
    scaled.clear_cache()
    assert not scaled.explain(VALUES, 2.0).hit


def test_pmap_of_methods() -> None:
    class Model:
        by = 3.0

        @partial(verax.pmap, static_broadcasted_argnums=0)
        def scaled(self, x: Any) -> Any:
            return x * self.by

    assert np.array_equal(Model().scaled(VALUES), VALUES * np.float32(3))
    assert repr(Model.scaled) == "<pmap of scaled>"


def test_references_in_shard_map() -> None:
    mesh = verax.make_mesh((4,), ("i",), (AxisType.Auto,))
    ref, closed = verax.new_ref(vnp.zeros(8)), verax.new_ref(vnp.zeros(2))

    def body(ref: Any, x: Any) -> Any:
        ref[...] += x
        closed[...] += lax.psum(x, "i")
        own = verax.new_ref(x)
        own[0] = 0.0
        return verax.freeze(own)

    x = vnp.arange(8.0)
    f = verax.shard_map(body, mesh=mesh, in_specs=(P("i"), P("i")), out_specs=P("i"))
    assert f(ref, x).tolist() == [0, 1, 0, 3, 0, 5, 0, 7]
    verax.jit(f)(ref, x)
    held: Any = ref[...]
    assert held.tolist() == (2 * x).tolist()
    assert held.sharding.is_equivalent_to(NamedSharding(mesh, P("i")), 1)
    assert np.asarray(closed[...]).tolist() == [24, 32]
    explicit = mesh.update(axis_types=(AxisType.Explicit,))
    f = verax.shard_map(
        body, mesh=explicit, in_specs=(P("i"), P("i")), out_specs=P("i")
    )
    f(ref, x)
    assert np.asarray(ref[...]).tolist() == (3 * x).tolist()
    f = verax.shard_map(body, mesh=mesh, in_specs=(P(), P("i")), out_specs=P("i"))
    with pytest.raises(TypeError, match="which all devices have alike, cannot hold"):
        f(verax.new_ref(vnp.zeros(2)), x)


AUTO = verax.make_mesh((8,), ("m",), axis_types=(AxisType.Auto,))


@pytest.mark.parametrize("staged", [verax.jit, lambda f: f])
def test_derivatives_of_linear_maps_lie_on_the_mesh(staged: Any) -> None:
    f = staged(
        verax.shard_map(lambda x: 2 * x, mesh=AUTO, in_specs=P("m"), out_specs=P("m"))
    )
    x = np.arange(8, dtype=np.float32)
    gradient = verax.grad(lambda x: f(x).sum())(x)
    assert gradient.sharding == NamedSharding(AUTO, P("m"))
    assert verax.linearize(f, x)[1](x).sharding == NamedSharding(AUTO, P("m"))
    assert np.array_equal(gradient, np.full(8, 2.0))


def test_derivatives_of_constraints_lie_on_the_mesh() -> None:
    place = NamedSharding(AUTO, P("m"))
    f = lambda x: (lax.with_sharding_constraint(x, place) * 3).sum()  # noqa: E731
    assert verax.grad(f)(np.ones(8, np.float32)).sharding == place
    assert verax.grad(verax.jit(f))(np.ones(8, np.float32)).sharding == place
