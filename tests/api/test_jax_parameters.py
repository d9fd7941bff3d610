"""Parameters and members that JAX has, where they belong to no larger subject."""

import pickle
from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from verax import P


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
    with pytest.raises(ValueError, match="got unreduced="):
        P("y", unreduced={"x"})
    with pytest.raises(TypeError, match="a set as reduced"):
        P("y", reduced=("x",))  # type: ignore[arg-type]  # the fault under test


def test_the_memory_of_a_device() -> None:
    space = verax.memory.Space
    x = verax.device_put(np.arange(3), space.Device)
    assert x.tolist() == [0, 1, 2]
    assert not x.committed
    assert verax.device_put({"a": x}, {"a": space.Any})["a"] is x
    with pytest.raises(NotImplementedError, match="memory of their devices"):
        verax.device_put(x, space.Host)
    assert pickle.loads(pickle.dumps(space.Host)) is space.Host  # ours


@pytest.mark.parametrize("how", verax.Inline)
def test_where_a_function_is_written_out(how: verax.Inline) -> None:
    inner = verax.jit(vnp.sin, inline=how)
    jaxpr = verax.make_jaxpr(lambda x: inner(x) * 2)(1.0)
    early = how in (verax.Inline.JAX_EARLY, verax.Inline.JAX_LATE)
    assert [str(eqn.primitive) for eqn in jaxpr.eqns] == [
        "sin" if early else "jit",
        "mul",
    ]
    with pytest.raises(TypeError, match="as inline"):
        verax.jit(vnp.sin, inline="xla_late")  # type: ignore[call-overload]


def test_arrays_of_others_by_position() -> None:
    x = np.arange(3, dtype=np.float32)
    place = verax.sharding.SingleDeviceSharding(verax.devices()[0])
    for given in (None, verax.devices()[0], place):
        found = verax.dlpack.from_dlpack(x, given, True)
        assert found.tolist() == [0, 1, 2]
        assert found.committed == (given is not None)
    assert verax.dlpack.from_dlpack(external_array=x, copy=None).shape == (3,)


def test_results_of_segment_functions_take_no_sharding() -> None:
    ids = vnp.array([0, 1])
    assert verax.ops.segment_sum(vnp.ones(2), ids, out_sharding=None).shape == (2,)
    with pytest.raises(ValueError, match="does not take out_sharding"):
        verax.ops.segment_max(vnp.ones(2), ids, out_sharding=P("x"))  # type: ignore[arg-type]


def test_custom_gradient_is_a_decorator() -> None:
    @verax.custom_gradient()
    def f(x: Any) -> Any:
        return x * x, lambda ct: 10 * ct

    assert float(verax.grad(f)(2.0)) == 10
    with pytest.raises(NotImplementedError, match="with_logs=True"):
        verax.custom_gradient(with_logs=True)


def test_structs_stand_for_no_references() -> None:
    struct = verax.ShapeDtypeStruct((2,), vnp.float32, is_ref=False)
    assert (struct.is_ref, struct.manual_axis_type) == (False, None)
    assert struct.update(shape=(3,)).shape == (3,)
    with pytest.raises(ValueError, match="is_ref=False, not True"):
        verax.ShapeDtypeStruct((2,), vnp.float32, is_ref=True)


def test_the_former_name_of_a_process() -> None:
    with pytest.warns(UserWarning, match="process_index"):
        assert verax.local_devices(host_id=0) == verax.local_devices()


def test_keywords_of_jax() -> None:
    closed = verax.make_jaxpr(vnp.sin)(1.0)
    found = verax.core.eval_jaxpr(
        closed.jaxpr, closed.consts, 0.0, propagate_source_info=False
    )
    assert float(found[0]) == 0
    doubled = verax.custom_batching.sequential_vmap(f=lambda x: 2 * x)
    assert verax.vmap(doubled)(vnp.arange(2)).tolist() == [0, 2]
