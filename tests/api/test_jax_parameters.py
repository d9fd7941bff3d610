"""Parameters and members that JAX has, where they belong to no larger subject."""

import pickle
from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from verax import P
from verax.ir.jaxpr import NO_PARAMS, NoParams
from verax.rules.programs.derived import composite


def test_specs_are_put_together() -> None:
    front: Any = ("x",)
    spec = P("x", None) + P("y")
    assert spec == P("x", None, "y") == front + P(None, "y")
    assert P(None) + front == P(None, "x")
    assert (spec.index("y"), spec.count(None)) == (2, 1)
    assert P(("x",), "y").index("x") == 0
    assert spec.update(partitions=(None,)) == P(None)
    assert spec.update() == P("x", None, "y", unreduced=set(), reduced=frozenset())
    assert spec.unreduced == spec.reduced == frozenset()
    assert spec.unreduced_kind is None
    with pytest.raises(ValueError, match="cannot overlap with unreduced axes"):
        P("y", unreduced={"y"})
    with pytest.raises(TypeError, match="a set as reduced"):
        P("y", reduced=("x",))  # type: ignore[arg-type]  # the fault under test


def test_the_memory_of_a_device() -> None:
    space = verax.memory.Space
    x = verax.device_put(np.arange(3), space.Device)
    assert x.tolist() == [0, 1, 2]
    assert not x.committed
    assert verax.device_put({"a": x}, {"a": space.Any})["a"] is x
    there = verax.device_put(x, space.Host)
    assert there.sharding.memory_kind == "pinned_host"
    assert there.tolist() == [0, 1, 2]
    assert pickle.loads(pickle.dumps(space.Host)) is space.Host  # ours


@pytest.mark.parametrize("how", verax.Inline)
def test_where_a_function_is_written_out(how: verax.Inline) -> None:
    inner = verax.jit(vnp.sin, inline=how)
    jaxpr = verax.make_jaxpr(lambda x: inner(x) * 2)(1.0)
    first = "sin" if how is verax.Inline.JAX_EARLY else "jit"
    assert [str(eqn.primitive) for eqn in jaxpr.eqns] == [first, "mul"]
    with pytest.raises(TypeError, match="as inline"):
        verax.jit(vnp.sin, inline="xla_late")  # type: ignore[call-overload]


def test_arrays_of_others_by_position() -> None:
    x = np.arange(3, dtype=np.float32)
    place = verax.sharding.SingleDeviceSharding(verax.devices()[0])
    for given in (None, verax.devices()[0], place):
        actual = verax.dlpack.from_dlpack(x, given, True)
        assert actual.tolist() == [0, 1, 2]
        assert actual.committed == (given is not None)
    assert verax.dlpack.from_dlpack(external_array=x, copy=None).shape == (3,)


def test_shardings_of_results_of_segment_functions_need_a_mesh() -> None:
    ids = vnp.array([0, 1])
    assert verax.ops.segment_sum(vnp.ones(2), ids, out_sharding=None).shape == (2,)
    with pytest.raises(
        ValueError, match=r"segment_max got P\('x',\), which needs a mesh"
    ):
        verax.ops.segment_max(vnp.ones(2), ids, out_sharding=P("x"))


def test_custom_gradient_is_a_decorator() -> None:
    @verax.custom_gradient()
    def f(x: Any) -> Any:
        return x * x, lambda ct: 10 * ct

    assert float(verax.grad(f)(2.0)) == 10
    with pytest.raises(NotImplementedError, match="remat=True"):
        verax.custom_gradient(remat=True)


def test_structs_stand_for_references() -> None:
    struct = verax.ShapeDtypeStruct((2,), vnp.float32, is_ref=False)
    assert (struct.is_ref, struct.manual_axis_type) == (False, None)
    assert struct.update(shape=(3,)).shape == (3,)
    assert struct.update(is_ref=True) != struct
    double = verax.make_jaxpr(lambda x: x[...] * 2)(struct.update(is_ref=True))
    assert str(double.in_avals[0]) == "Ref{f32[2]}"
    other: Any = 1
    with pytest.raises(TypeError, match="must be a verax"):
        verax.ShapeDtypeStruct((2,), vnp.float32, manual_axis_type=other)


def test_the_former_name_of_a_process() -> None:
    with pytest.warns(UserWarning, match="process_index"):
        assert verax.local_devices(host_id=0) == verax.local_devices()


def test_keywords_of_jax() -> None:
    closed = verax.make_jaxpr(vnp.sin)(1.0)
    actual = verax.core.eval_jaxpr(
        closed.jaxpr, closed.consts, 0.0, propagate_source_info=False
    )
    assert float(actual[0]) == 0
    doubled = verax.custom_batching.sequential_vmap(f=lambda x: 2 * x)
    assert verax.vmap(doubled)(vnp.arange(2)).tolist() == [0, 2]
    loops = verax.vmap(doubled), lambda xs: verax.lax.map(doubled, xs)
    one, other = [verax.make_jaxpr(f)(vnp.arange(2)) for f in loops]
    assert str(one) == str(other)


def test_jaxprs_are_interpreted_as_in_jax() -> None:
    def interpreted(closed: Any, *args: Any) -> list[Any]:
        jaxpr = closed.jaxpr
        known = dict(zip(jaxpr.constvars, closed.consts, strict=True))
        known |= zip(jaxpr.invars, args, strict=True)

        def read(atom: Any) -> Any:
            literal = isinstance(atom, verax.core.Literal)
            return atom.val if literal else known[atom]

        for eqn in jaxpr.eqns:
            found = eqn.primitive.bind(*map(read, eqn.invars), **eqn.params)
            outs = found if eqn.primitive.multiple_results else [found]
            known |= zip(eqn.outvars, outs, strict=True)
        return [read(atom) for atom in jaxpr.outvars]

    def f(x: Any) -> Any:
        table = np.arange(3, dtype=np.float32)
        total = verax.jit(lambda y: vnp.sum(y * 2 + table, axis=0))(x)
        last, sums = verax.lax.scan(lambda c, a: (c + a, c), 0.0, x)
        return total, last, sums, vnp.arange(3)

    x = vnp.array([1.0, 2.0, 3.0])
    closed = verax.make_jaxpr(f)(x)
    for run in (interpreted, verax.jit(interpreted, static_argnums=0)):
        for found, due in zip(run(closed, x), f(x), strict=True):
            np.testing.assert_array_equal(found, due)


def test_what_bind_returns() -> None:
    x = vnp.array([3.0, 1.0, 2.0])
    assert verax.lax.sin_p.bind(x).shape == (3,)
    assert verax.lax.sin_p.bind(NO_PARAMS, x)[0].shape == (3,)
    kind = {"dimension": 0, "is_stable": True, "num_keys": 1}
    assert verax.lax.sort_p.bind(x, **kind)[0].tolist() == [1, 2, 3]
    two_p = composite("two", NoParams, lambda p, x: (x, -x))
    with pytest.raises(TypeError, match="2 results; give its row multiple_results"):
        two_p.bind(x)
    two_p = composite("two", NoParams, lambda p, x: (x, -x), multiple_results=True)
    assert len(two_p.bind(x)) == 2


def test_constants_of_closed_jaxprs_by_keyword() -> None:
    table = np.arange(3, dtype=np.float32)
    closed = verax.make_jaxpr(lambda c, x: (c + table, x))(vnp.ones(3), 1.0)
    assert len(closed.consts) == 1

    def f(x: Any) -> Any:
        return verax.lax.scan(lambda c, y: (c, y), x, vnp.ones(2))

    eqn = verax.make_jaxpr(f)(vnp.ones(3)).eqns[-1]
    params = {**eqn.params, "jaxpr": closed}
    actual = eqn.primitive.bind(vnp.zeros(3), vnp.ones(2), **params)
    assert [x.tolist() for x in actual] == [[0, 2, 4], [1, 1]]


def test_members_of_equations() -> None:
    closed = verax.make_jaxpr(lambda x: verax.jit(vnp.sum)(x))(vnp.ones(3))
    (eqn,) = closed.eqns
    params: Any = eqn.params
    assert set(params) == set(params.keys()) == set(dict(params))
    assert params["name"] == "sum"
    assert "jaxpr" in params
    with pytest.raises(KeyError):
        params["nothing"]
    assert params.get("nothing", 3) == 3
    assert params.get("name") == "sum"
    assert dict(params.items()) == dict(params)
    assert list(params.values()) == [params[name] for name in params]
    inner = params["jaxpr"]
    assert inner.jaxpr is inner
    assert inner.consts == inner.literals == ()
    other = eqn.replace(params={"name": "g"}, outvars=list(eqn.outvars))
    assert (other.params["name"], other.params["jaxpr"]) == ("g", inner)
    assert eqn.replace(params=NO_PARAMS).params is NO_PARAMS
    assert other.outvars == eqn.outvars
    assert eqn.source_info is eqn.source
    with pytest.raises(TypeError):
        eqn.replace(name="g")  # type: ignore[call-arg]  # on purpose


def test_a_sharding_is_a_constraint_in_a_trace() -> None:
    mesh = verax.make_mesh((1,), ("x",), (verax.sharding.AxisType.Auto,))
    place = verax.NamedSharding(mesh, P("x"))
    for call in (
        lambda x: x.to_device(place),
        lambda x: vnp.asarray(x, device=place),
        lambda x: vnp.ones(2, device=place),
    ):
        assert "sharding_constraint" in str(verax.make_jaxpr(call)(vnp.ones(2)))
    device = verax.devices()[0]
    assert verax.jit(lambda x: x.to_device(device) + 1)(1) == 2
    assert vnp.ones(2).to_device(device).committed
    with pytest.raises(NotImplementedError, match="stream"):
        verax.jit(lambda x: x.to_device(device, stream=1))(1)


def test_pullbacks_and_exports_say_what_they_take() -> None:
    _, pull = verax.vjp(lambda x, y: {"a": x["b"] * y}, {"b": 1.0}, 2.0)
    assert pull.in_tree == verax.tree_util.tree_structure(({"b": 0}, 0))
    assert pull.out_tree == verax.tree_util.tree_structure({"a": 0})
    exported = verax.export.export(verax.jit(lambda x, y: x + y))(1.0, 2.0)
    assert exported.in_shardings_jax() == exported.in_shardings_hlo == (None, None)
    assert exported.out_shardings_jax(None) == exported.out_shardings_hlo == (None,)
    assert exported.ordered_effects == exported.unordered_effects == ()


def test_shardings_of_results_of_updates_need_a_mesh() -> None:
    x = vnp.ones(2)
    assert x.at[0].get(out_sharding=None) == 1
    for call in (x.at[0].get, lambda **kw: x.at[0].set(2.0, **kw)):
        with pytest.raises(ValueError, match=r"got P\('x',\), which needs a mesh"):
            call(out_sharding=P("x"))
