"""Exported functions for several devices; eight devices, of which they take four."""

from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from verax import export, lax
from verax.sharding import (
    AbstractMesh,
    AxisType,
    Mesh,
    NamedSharding,
    PartitionSpec as P,
    reshard,
)

DEVICES = np.array(verax.devices(), object)
HERE = Mesh(DEVICES[:4], ("a",))
THERE = Mesh(DEVICES[4:], ("z",))
X = np.arange(32, dtype=np.float32).reshape(8, 4) / 8


def waves(x: Any, y: Any) -> Any:
    return vnp.sin(x @ y.T) + 1


def exported_waves() -> export.Exported:
    ins = NamedSharding(HERE, P("a")), NamedSharding(HERE, P(None, "a"))
    outs = NamedSharding(HERE, P(None, "a"))
    jitted = verax.jit(waves, in_shardings=ins, out_shardings=outs)
    return export.export(jitted)(X, X)


def there(x: Any, *spec: Any) -> verax.Array:
    placed: verax.Array = verax.device_put(x, NamedSharding(THERE, P(*spec)))
    return placed


@pytest.fixture(scope="module", params=["exported", "read back"])
def four(request: pytest.FixtureRequest) -> export.Exported:
    fresh = exported_waves()
    if request.param == "exported":
        return fresh
    return export.deserialize(fresh.serialize(vjp_order=2))


def test_it_says_where_arguments_and_results_lie(four: export.Exported) -> None:
    assert four.nr_devices == 4
    mesh = Mesh(DEVICES[2:6], ("a",))
    first, second = four.in_shardings_jax(mesh)
    assert first == NamedSharding(mesh, P("a"))
    assert second == NamedSharding(mesh, P(None, "a"))
    abstract = AbstractMesh((4,), ("a",), axis_types=(AxisType.Auto,))
    assert four.out_shardings_jax(abstract) == (NamedSharding(abstract, P(None, "a")),)
    with pytest.raises(ValueError, match="was exported for a mesh with the axes"):
        four.in_shardings_jax(THERE)


def test_it_runs_on_any_mesh_of_as_many_devices(four: export.Exported) -> None:
    x = there(X, "z")
    for call in (
        four.call,
        verax.jit(four.call),
        verax.jit(lambda *xs: four.call(*xs)),
    ):
        result = call(x, x)
        np.testing.assert_allclose(result, waves(X, X), rtol=1e-5)
        assert result.sharding.device_set == set(DEVICES[4:])
        assert result.addressable_shards[0].data.shape == (8, 2)


def test_derivatives_are_those_on_one_device(four: export.Exported) -> None:
    def loss(f: Any) -> Any:
        return lambda x: (f(x, x) * vnp.arange(8.0)).sum()

    x = there(X, None, "z")
    once, due = verax.grad(loss(four.call)), verax.grad(loss(waves))
    np.testing.assert_allclose(once(x), due(X), rtol=1e-4, atol=1e-4)
    twice = verax.grad(lambda x: once(x).sum())
    np.testing.assert_allclose(
        verax.jit(twice)(x),
        verax.grad(lambda x: due(x).sum())(X),
        rtol=1e-3,
        atol=1e-2,
    )


def test_batches_go_through_one_element_at_a_time(four: export.Exported) -> None:
    x = np.stack([X, X + 1])
    result = verax.vmap(lambda x: four.call(x, x))(there(x, None, "z"))
    due = np.stack([waves(X, X), waves(X + 1, X + 1)])
    np.testing.assert_allclose(result, due, rtol=1e-4)


def test_an_export_calls_another(four: export.Exported) -> None:
    outer = export.export(verax.jit(lambda x: four.call(x, x) + four.call(x, 2 * x)))
    both = outer(verax.device_put(X, NamedSharding(HERE, P("a"))))
    assert both.nr_devices == 4
    due = waves(X, X) + waves(X, 2 * X)
    np.testing.assert_allclose(both.call(there(X, "z")), due, rtol=1e-4)


def test_another_number_of_devices_is_an_error(four: export.Exported) -> None:
    with pytest.raises(ValueError, match="is called in a context with 1 devices"):
        four.call(X, X)
    eight = verax.device_put(X, NamedSharding(Mesh(DEVICES, ("e",)), P("e")))
    with pytest.raises(ValueError, match="is called in a context with 8 devices"):
        four.call(eight, eight)


def test_one_for_a_single_device_runs_on_a_mesh() -> None:
    one = export.export(verax.jit(lambda x: x.sum(0)))(X)
    assert one.nr_devices == 1
    assert one.in_shardings_jax(THERE) == (None,)
    np.testing.assert_allclose(one.call(there(X, "z")), X.sum(0))


def test_the_devices_of_an_export_need_not_be_there() -> None:
    mesh = AbstractMesh((16,), ("a",), axis_types=(AxisType.Auto,))
    jitted = verax.jit(lambda x: x + 1, in_shardings=NamedSharding(mesh, P("a")))
    big = export.export(jitted)(np.zeros(32, np.float32))
    assert big.nr_devices == 16
    with pytest.raises(ValueError, match="for 16 devices"):
        big.call(np.zeros(32, np.float32))


def test_types_keep_their_explicit_axes() -> None:
    mesh = verax.make_mesh((2, 4), ("x", "y"))
    x = verax.device_put(X, NamedSharding(mesh, P("x", "y")))
    fresh = export.export(verax.jit(lambda x: x * 2))(x)
    for one in (fresh, export.deserialize(fresh.serialize(vjp_order=1))):
        assert str(one.in_avals[0]) == str(one.out_avals[0]) == "f32[8@x,4@y]"
        result, grad = one.call(x), verax.grad(lambda x, f=one.call: f(x).sum())(x)
        assert result.sharding == grad.sharding == x.sharding
        np.testing.assert_array_equal(result, 2 * X)
        np.testing.assert_array_equal(grad, np.full_like(X, 2))
        elsewhere = reshard(x, NamedSharding(mesh, P("y", None)))
        np.testing.assert_array_equal(one.call(elsewhere), 2 * X)


def test_sums_that_are_not_made_stay_so() -> None:
    mesh = verax.make_mesh((4,), ("x",))
    x = verax.device_put(X, NamedSharding(mesh, P(None, "x")))
    y = verax.device_put(X.T, NamedSharding(mesh, P("x", None)))
    terms = NamedSharding(mesh, P(None, None, unreduced={"x"}))

    @verax.jit
    def product(x: Any, y: Any) -> Any:
        return vnp.einsum("ij,jk->ik", x, y, out_sharding=terms)

    one = export.deserialize(export.export(product)(x, y).serialize())
    assert str(one.out_avals[0]) == "f32[8,8]{U:x}"
    result = one.call(x, y)
    assert result.sharding == terms
    np.testing.assert_allclose(np.asarray(result), X @ X.T, rtol=1e-5)


def test_parts_meet_in_the_order_of_the_mesh() -> None:
    turned = Mesh(DEVICES[:4][::-1], ("a",))

    def part(x: Any) -> Any:
        whole = lax.psum(x * lax.axis_index("a"), "a")
        return whole + lax.ppermute(x, "a", [(i, (i + 1) % 4) for i in range(4)])

    mapped = verax.shard_map(part, mesh=turned, in_specs=P("a"), out_specs=P("a"))
    ring = verax.jit(mapped)
    one = export.export(ring)(verax.device_put(X, NamedSharding(turned, P("a"))))
    one = export.deserialize(one.serialize(vjp_order=1))
    x = there(X, "z")
    np.testing.assert_allclose(one.call(x), ring(X))
    grads = [
        verax.grad(lambda x, f=f: (f(x) * vnp.arange(4.0)).sum())(x)
        for f, x in ((one.call, x), (ring, X))
    ]
    np.testing.assert_allclose(*grads)


def test_the_interpreter_takes_the_first_devices() -> None:
    one = exported_waves()
    (result,) = one.run(X, X)
    np.testing.assert_allclose(result, waves(X, X), rtol=1e-5)


def test_symbolic_sizes_are_for_one_device() -> None:
    (n,) = export.symbolic_shape("n")
    struct = verax.ShapeDtypeStruct(
        (4, n), np.float32, sharding=NamedSharding(HERE, P("a"))
    )
    with pytest.raises(ValueError, match="symbolic sizes and runs on 4 devices"):
        export.export(verax.jit(lambda x: x + 1))(struct)
