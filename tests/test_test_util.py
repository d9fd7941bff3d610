"""`verax.test_util`: derivatives against differences."""

import ml_dtypes
import numpy as np
import pytest

import verax
import verax.numpy as vnp
from verax import Array
from verax.test_util import check_grads, check_jvp, check_vjp


@verax.custom_jvp
def bent(x: Array) -> Array:
    return vnp.sin(x)


@bent.defjvp
def bent_jvp(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    return bent(*primals), 1.1 * vnp.cos(*primals) * tangents[0]


@pytest.mark.slow
def test_right_derivatives_pass() -> None:
    check_grads(lambda x: vnp.exp(x) * x, (1.0 + 2.0j,), 2)
    check_grads(vnp.tanh, (vnp.array([0.3, 0.4], vnp.bfloat16),), 1)
    check_grads(verax.jit(vnp.arctan2), (vnp.array([0.3, 0.4]), 2.0), 3)
    with verax.enable_x64(True):
        check_grads(vnp.sin, (vnp.array([1.0, 2.0]),), 3, rtol=1e-7)


def test_pytrees_and_leaves_that_are_no_floats_pass() -> None:
    def f(d: dict[str, Array]) -> dict[str, Array]:
        return {"a": vnp.dot(d["w"], d["b"]).sum(), "i": d["n"] + 1}

    check_grads(f, ({"w": vnp.ones((2, 3)), "b": vnp.arange(3.0), "n": 3},), 2)


@pytest.mark.parametrize("mode", ["fwd", "rev"])
def test_wrong_derivatives_are_found(mode: str) -> None:
    with pytest.raises(AssertionError, match="is off"):
        check_grads(bent, (1.0,), 1, (mode,))


def test_a_derivative_wrong_in_second_order_is_found() -> None:
    @verax.custom_jvp
    def f(x: Array) -> Array:
        return x * x

    @f.defjvp
    def rule(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
        (x,), (t,) = primals, tangents
        return x * x, 2.0 * verax.lax.stop_gradient(x) * t

    check_grads(f, (3.0,), 1)
    with pytest.raises(AssertionError, match="jvp of the jvp"):
        check_grads(f, (3.0,), 2, ("fwd",))
    with pytest.raises(AssertionError, match="vjp of the vjp"):
        check_grads(f, (3.0,), 2, ("rev",))


def test_a_wrong_value_is_found() -> None:
    with pytest.raises(AssertionError, match="the value"):
        check_jvp(vnp.sin, lambda xs, ts: verax.jvp(vnp.cos, xs, ts), (1.0,))
    with pytest.raises(AssertionError, match="the value"):
        check_vjp(vnp.sin, lambda *xs: verax.vjp(vnp.cos, *xs), (1.0,))


def test_wrong_calls_are_said() -> None:
    with pytest.raises(ValueError, match="order is 0"):
        check_grads(vnp.sin, (1.0,), 0)
    with pytest.raises(ValueError, match="'fwd' and 'rev'"):
        check_grads(vnp.sin, (1.0,), 1, "forward")


def test_tolerances_by_dtype_hold_for_their_dtypes_only() -> None:
    near = {"float32": 0.5, vnp.float64: 0.5}
    check_grads(bent, (vnp.float32(1.0),), 1, atol=near, rtol=near)
    with pytest.raises(AssertionError, match="is off"):
        check_grads(bent, (vnp.float32(1.0),), 1, rtol={vnp.float64: 0.5})
    with pytest.raises(AssertionError, match="is off"):
        check_grads(vnp.sin, (vnp.float32(1.0),), 1, atol=0, rtol={"float32": 1e-12})


def test_tolerances_of_dtypes_that_arrays_do_not_have() -> None:
    # JAX's own tests pass tolerances for every dtype that ml_dtypes has.
    tolerances = {np.dtype(ml_dtypes.int1): 0.0, np.float32: 0.1}
    check_grads(vnp.sin, (1.0,), 1, ["rev"], tolerances, tolerances)
    with pytest.raises(TypeError):
        check_grads(vnp.sin, (1.0,), 1, ["rev"], {"nonsense": 0.1})


def test_slopes_that_change_fast_pass() -> None:
    check_grads(lambda x: vnp.exp(20.0 * x), (0.1,), 1)
    check_grads(lambda x: vnp.where(x > 1.003, 0.0, x), (1.0,), 1)


def test_infinities_on_both_sides_have_the_slope_zero() -> None:
    x = vnp.array([0.3, 0.4])
    check_grads(lambda x: vnp.where(x > 0.35, x, -vnp.inf), (x,), 2)
    with pytest.raises(AssertionError, match="is off"):
        check_jvp(lambda x: x + vnp.inf, lambda xs, ts: (xs[0] + vnp.inf, ts[0]), (x,))
