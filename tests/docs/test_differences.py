"""What `docs/differences.md` says of points where verax differs from JAX on purpose."""

from functools import partial
from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from verax import lax
from verax.test_util import check_grads


def test_no_64_bit_dtypes_while_x64_is_off() -> None:
    assert vnp.promote_types(np.int32, np.float64) == np.float32
    assert vnp.result_type(np.int32, np.float64) == np.float32
    with verax.enable_x64():
        assert vnp.promote_types(np.int32, np.float64) == np.float64


def test_scalars_adopt_the_dtype_of_arrays_in_lax() -> None:
    assert lax.add(vnp.ones(2, vnp.int8), 1).dtype == np.int8
    with pytest.raises(TypeError, match=r"1\.5 does not fit int8"):
        lax.add(vnp.ones(2, vnp.int8), 1.5)


def test_integers_that_do_not_fit_are_errors() -> None:
    with pytest.raises(OverflowError, match="1000 too large to convert to int8"):
        vnp.ones(2, vnp.int8) + 1000


def test_derivatives_where_there_is_none() -> None:
    assert float(verax.grad(vnp.abs)(0.0)) == 0
    assert float(verax.grad(lambda x: vnp.power(x, 0.0))(0.0)) == 0
    assert float(verax.grad(vnp.hypot)(0.0, 0.0)) == 0


def test_gradients_keep_the_weak_type_of_their_input() -> None:
    assert verax.grad(lambda x: vnp.maximum(x, 0.0) ** 2.5)(2.0).weak_type
    assert not verax.grad(lambda x: x**2.5)(np.float32(2)).weak_type


def test_outputs_are_arrays() -> None:
    value, tangent = verax.jvp(lambda x: x, (1.0,), (2.0,))
    assert isinstance(value, verax.Array)
    assert isinstance(tangent, verax.Array)


def test_effects_happen_as_often_as_written(capsys: pytest.CaptureFixture[str]) -> None:
    def shown(x: Any) -> Any:
        verax.debug.print("{}", x)
        return vnp.sin(vnp.sin(x))

    def branch(x: Any) -> Any:
        return lax.cond(x > 1, shown, lambda x: x, x)

    verax.grad(verax.checkpoint(shown))(1.0)
    verax.vmap(branch)(vnp.arange(3.0))
    verax.effects_barrier()
    assert capsys.readouterr().out.splitlines() == ["1.0", "2.0"]


def test_static_values_compare_by_type_inside_containers() -> None:
    traced: list[type] = []

    @partial(verax.jit, static_argnums=0)
    def f(static: tuple[float]) -> float:
        traced.append(type(static[0]))
        return 0.0

    for value in ((1,), (True,), (1.0,), (1,)):
        f(value)
    assert traced == [int, bool, float]


def test_eigh_has_no_gradient_where_it_does_not_read() -> None:
    def vectors(x: Any) -> Any:
        return lax.linalg.eigh(x, symmetrize_input=False)[1][0]

    slopes = verax.grad(vectors)(vnp.array([[1.0, 2.0], [2.0, 5.0]]))
    assert slopes[0, 1] == 0
    assert slopes[1, 0] != 0


def test_wide_matrices_have_derivatives_of_pivoted_factors() -> None:
    def total(x: Any) -> Any:
        return verax.scipy.linalg.qr(x, pivoting=True)[1].sum()

    with verax.enable_x64():
        x = vnp.array([[1.0, 2.0, 3.0], [0.0, 1.0, 2.0]])
        check_grads(total, (x,), order=1, modes=["fwd", "rev"])


def test_arrays_with_a_value_may_say_an_axis() -> None:
    axis: Any = vnp.array(0)
    assert vnp.argsort(vnp.arange(3), axis=axis).tolist() == [0, 1, 2]
