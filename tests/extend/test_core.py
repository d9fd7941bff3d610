"""Programs under the names of `jax.extend`: walking, checking, types of batches."""

from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from verax.core import ShapedArray
from verax.extend import backend, core


def test_programs_inside_programs() -> None:
    f = verax.jit(lambda x: verax.lax.cond(x > 0, vnp.sin, vnp.cos, x))
    closed = verax.make_jaxpr(f)(1.0)
    (call,) = closed.jaxpr.eqns
    (inner,) = core.jaxprs_in_params(call.params)
    assert list(core.subjaxprs(closed.jaxpr)) == [inner]
    assert len(list(core.subjaxprs(inner))) == 2
    core.check_jaxpr(closed.jaxpr)
    assert core.jaxpr_as_fun(closed)(0.0)[0] == 1.0


def test_types_of_batches() -> None:
    aval = ShapedArray((2, 3), np.dtype("float32"))
    for axis in (0, 1, 2, -1):
        batch = core.unmapped_aval(5, axis, aval)
        assert batch.shape[axis] == 5
        assert core.mapped_aval(5, axis, batch) == aval
    assert core.mapped_aval(5, None, aval) == aval
    with pytest.raises(ValueError, match="does not have the size"):
        core.mapped_aval(5, 0, aval)


def test_where_a_program_is() -> None:
    assert core.valid_jaxtype(1.0)
    assert not core.valid_jaxtype("one")
    seen = []

    def f(x: verax.Array) -> verax.Array:
        seen.append(
            (
                core.unsafe_am_i_under_a_jit_DO_NOT_USE(),
                core.unsafe_get_axis_names_DO_NOT_USE(),
                core.nonempty_axis_env_DO_NOT_USE(),
            )
        )
        return x

    verax.vmap(f, axis_name="i")(vnp.ones(2))
    verax.jit(f)(vnp.ones(()))
    assert seen == [(True, ["i"], True), (True, [], False)]
    assert not core.unsafe_am_i_under_a_jit_DO_NOT_USE()


def test_clients() -> None:
    client = backend.get_backend()
    assert client.platform in backend.backends()
    assert backend.get_default_device() == verax.local_devices()[0]
    with verax.default_device(verax.devices()[-1]):
        assert backend.get_default_device() == verax.devices()[-1]
    with pytest.raises(RuntimeError, match="nowhere"):
        backend.get_backend("nowhere")


def test_new_equations() -> None:
    jaxpr = verax.make_jaxpr(lambda x: verax.jit(vnp.sin)(x) * 2)(1.0).jaxpr
    for eqn in jaxpr.eqns:
        again = core.new_jaxpr_eqn(
            list(eqn.invars), list(eqn.outvars), eqn.primitive, eqn.params, eqn.effects
        )
        assert again == eqn
    call, product = jaxpr.eqns
    with pytest.raises(TypeError, match="takes CallParams"):
        core.new_jaxpr_eqn(call.invars, call.outvars, call.primitive, product.params)
    noisy = verax.make_jaxpr(lambda x: verax.debug.print("{}", x))(1.0).jaxpr.eqns[0]
    with pytest.raises(ValueError, match="without"):
        core.new_jaxpr_eqn(
            call.invars, call.outvars, call.primitive, call.params, noisy.effects
        )


def test_concrete_values() -> None:
    assert core.concrete_or_error(int, np.float32(3)) == 3
    assert core.concrete_or_error(None, "x") == "x"

    def f(x: Any) -> Any:
        return x * core.concrete_or_error(float, x, "the scale")

    assert float(verax.grad(f)(3.0)) == 3.0
    with pytest.raises(verax.errors.ConcretizationTypeError, match="the scale"):
        verax.jit(f)(3.0)
