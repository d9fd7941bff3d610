"""What takes a sharding lies so, eagerly and in programs; values kept from removal."""

from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from verax import lax
from verax.sharding import AxisType, NamedSharding, PartitionSpec as P

MESH = verax.make_mesh((1,), ("x",), (AxisType.Auto,))
PLACE = NamedSharding(MESH, P("x"))
CALLS = {
    "broadcast": lambda s: lax.broadcast(1.5, (4, 2), out_sharding=s),
    "broadcast_in_dim": lambda s: lax.broadcast_in_dim(
        vnp.arange(4), (4, 3), (0,), out_sharding=s
    ),
    "broadcasted_iota": lambda s: lax.broadcasted_iota(
        "int32", (4, 3), 1, out_sharding=s
    ),
    "empty": lambda s: lax.empty((4,), "float32", out_sharding=s),
    "full": lambda s: lax.full((4, 2), 3, sharding=s),
    "full_like": lambda s: lax.full_like(np.zeros((4, 2)), 3, sharding=s),
    "reshape": lambda s: lax.reshape(vnp.arange(8), (4, 2), out_sharding=s),
}


@pytest.mark.parametrize("name", CALLS)
def test_results_lie_as_they_should(name: str) -> None:
    call: Any = CALLS[name]
    plain, spread = call(None), call(PLACE)
    assert spread.sharding == PLACE
    assert plain.dtype == spread.dtype
    assert np.array_equal(plain, spread)
    assert np.array_equal(verax.jit(lambda: call(PLACE))(), plain)
    assert "sharding_constraint" in str(verax.make_jaxpr(lambda: call(PLACE))())
    assert "sharding_constraint" not in str(verax.make_jaxpr(lambda: call(None))())
    with verax.set_mesh(MESH):
        assert call(P("x")).sharding.is_equivalent_to(PLACE, plain.ndim)
    with pytest.raises(ValueError, match="needs a mesh"):
        call(P("x"))


def test_what_is_sunk_is_not_dead() -> None:
    def f(x: Any) -> Any:
        lax.dce_sink({"a": vnp.sin(x), "b": (x * 2,)})
        return x + 1

    jaxpr = verax.make_jaxpr(f)(1.0)
    kept = verax.transforms.dce(jaxpr, [True])
    names = [eqn.primitive.name for eqn in kept.eqns]
    assert names.count("dce_sink") == 2
    assert "sin" in names
    assert f(1.0) == verax.jit(f)(1.0) == 2
    assert verax.grad(f)(1.0) == verax.jit(verax.grad(f))(1.0) == 1
    assert verax.vmap(f)(vnp.ones(2)).tolist() == [2, 2]
    assert verax.jit(verax.vmap(verax.grad(f)))(vnp.ones(2)).tolist() == [1, 1]
    assert verax.grad(verax.checkpoint(f))(1.0) == 1
    _, ys = lax.scan(lambda c, x: (c, f(x)), 0, vnp.arange(3.0))
    assert ys.tolist() == [1, 2, 3]
    assert f(np.float32(1)) == 2


def test_the_compiler_keeps_what_goes_to_the_host() -> None:
    def f(x: Any, keep: bool) -> Any:
        lax.dce_sink(vnp.sin(x), prevent_mlir_dce=keep)
        return x + 1

    for keep in (True, False):
        compiled = verax.jit(f, static_argnums=1).lower(vnp.ones(3), keep).compile()
        assert ("sine" in compiled.as_text()) == keep
        assert compiled(vnp.ones(3)).tolist() == [2, 2, 2]
