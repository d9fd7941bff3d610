"""Derivatives of Python functions: values, structures, reuse, nesting."""

import copy
import pickle
from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp


def close(x: Any, y: Any, tolerance: float = 1e-5) -> None:
    np.testing.assert_allclose(np.asarray(x), np.asarray(y), tolerance, tolerance)


def test_grad_and_value_and_grad() -> None:
    def fun(x: Any) -> Any:
        return vnp.sin(x) * x

    value, slope = verax.value_and_grad(fun)(2.0)
    close(value, 2 * np.sin(2))
    close(slope, np.sin(2) + 2 * np.cos(2))
    close(verax.grad(fun)(2.0), slope, 0)


def test_argnums() -> None:
    def fun(x: Any, y: Any, z: Any) -> Any:
        return x * y + z**2

    close(verax.grad(fun)(2.0, 3.0, 4.0), 3)
    close(verax.grad(fun, argnums=-1)(2.0, 3.0, 4.0), 8)
    both = verax.grad(fun, argnums=(1, 0))(2.0, 3.0, 4.0)
    assert isinstance(both, tuple)
    close(both, (2, 3))


def test_trees_in_and_out() -> None:
    def fun(p: dict[str, Any], x: Any) -> Any:
        return (p["w"] @ x + p["rest"][0]).sum()

    p = {"w": vnp.ones((2, 3)), "rest": [vnp.zeros(2)]}
    slope = verax.grad(fun)(p, vnp.arange(3.0))
    assert verax.tree.structure(slope) == verax.tree.structure(p)
    close(slope["w"], [[0, 1, 2], [0, 1, 2]])
    close(slope["rest"][0], [1, 1])


def test_has_aux() -> None:
    def fun(x: Any) -> tuple[Any, dict[str, Any]]:
        return x**2, {"x": x + 1}

    slope, aux = verax.grad(fun, has_aux=True)(3.0)
    close(slope, 6)
    close(aux["x"], 4)
    (value, aux), slope = verax.value_and_grad(fun, has_aux=True)(3.0)
    close((value, aux["x"], slope), (9, 4, 6))


def test_keyword_arguments_are_constants() -> None:
    close(verax.grad(lambda x, *, scale: x * scale)(1.0, scale=5.0), 5)


def test_higher_derivatives() -> None:
    fun: Any = vnp.sin
    for expected in (np.cos, lambda x: -np.sin(x), lambda x: -np.cos(x), np.sin):
        fun = verax.grad(fun)
        close(fun(0.7), expected(0.7))


def test_jvp_and_float0() -> None:
    value, tangent = verax.jvp(lambda x, y: x * y, (2.0, 3.0), (1.0, 10.0))
    close((value, tangent), (6, 23))
    nothing = np.zeros((), verax.float0)
    value, tangent = verax.jvp(lambda x, n: x * n, (2.0, 3), (1.0, nothing))
    close((value, tangent), (6, 3))
    _, tangent = verax.jvp(lambda x: (x, 1), (2.0,), (1.0,))
    assert tangent[1].dtype == verax.float0


def test_linearize_is_reusable_and_runs_python_once() -> None:
    runs = []

    def fun(x: Any) -> Any:
        runs.append(1)
        return vnp.sin(x) * x

    value, push = verax.linearize(fun, 2.0)
    close([push(t) for t in (1.0, 2.0, 0.0)], [push(1.0) * t for t in (1, 2, 0)])
    assert len(runs) == 1
    close(value, 2 * np.sin(2))


def test_vjp_is_reusable_and_runs_python_once() -> None:
    runs = []

    def fun(x: Any, y: Any) -> tuple[Any, Any]:
        runs.append(1)
        return x * y, x + y

    (product, total), pull = verax.vjp(fun, 3.0, 4.0)
    close((product, total), (12, 7))
    close(pull((1.0, 0.0)), (4, 3))
    close(pull((0.0, 1.0)), (1, 1))
    assert len(runs) == 1


def test_vjp_with_aux_and_integers() -> None:
    value, pull, aux = verax.vjp(lambda x, n: (x * n, n), 2.0, 3, has_aux=True)
    close((value, aux), (6, 3))
    real, whole = pull(1.0)
    close(real, 3)
    assert whole.dtype == verax.float0


def test_jacobians_agree() -> None:
    def fun(x: Any) -> Any:
        return vnp.stack([x[0] * x[1], vnp.sin(x[2]), x[0] ** 2])

    x = vnp.array([1.0, 2.0, 3.0])
    expected = [[2, 1, 0], [0, 0, np.cos(3)], [2, 0, 0]]
    close(verax.jacfwd(fun)(x), expected)
    close(verax.jacrev(fun)(x), expected)
    close(verax.jacobian(fun)(x), expected)


def test_jacobians_of_trees() -> None:
    def fun(p: dict[str, Any]) -> dict[str, Any]:
        return {"sum": p["a"] + p["b"][0], "scaled": p["b"] * 2}

    p = {"a": vnp.float32(1), "b": vnp.arange(2.0)}
    for transform in (verax.jacfwd, verax.jacrev):
        actual = transform(fun)(p)
        close(actual["sum"]["a"], 1)
        close(actual["sum"]["b"], [1, 0])
        close(actual["scaled"]["a"], [0, 0])
        close(actual["scaled"]["b"], 2 * np.eye(2))


def test_hessian_in_every_order_of_modes() -> None:
    def fun(x: Any) -> Any:
        return (x**3).sum() * x[0]

    x = vnp.array([1.0, 2.0])
    expected = [[12.0, 12.0], [12.0, 12.0]]
    for outer in (verax.jacfwd, verax.jacrev):
        for inner in (verax.jacfwd, verax.jacrev):
            close(outer(inner(fun))(x), expected)
    close(verax.hessian(fun)(x), expected)
    close(verax.jit(verax.hessian(fun))(x), expected)


def test_gradients_by_complex_numbers_are_conjugated() -> None:
    # As in JAX: minus the gradient does not point downhill, its conjugate does.
    close(verax.grad(lambda z: (z * z.conj()).real)(3 + 4j), 6 - 8j)
    close(verax.grad(vnp.abs)(3 + 4j), 0.6 - 0.8j)


def test_holomorphic() -> None:
    close(verax.grad(lambda z: z**2, holomorphic=True)(1 + 2j), 2 + 4j)


def test_allow_int() -> None:
    slope = verax.grad(lambda n: n * 2.0, allow_int=True)(3)
    assert slope.dtype == verax.float0


def test_grad_closes_over_outer_tracers() -> None:
    def outer(x: Any) -> Any:
        return verax.grad(lambda y: x * y * y)(3.0) * x

    close(outer(vnp.float32(2)), 24)
    close(verax.grad(outer)(2.0), 24)
    close(verax.jit(verax.grad(outer))(2.0), 24)


def test_no_perturbation_confusion() -> None:
    close(verax.grad(lambda x: x * verax.grad(lambda y: x + y)(1.0))(1.0), 1)


def test_every_order_of_three() -> None:
    x = vnp.array([0.1, 0.4, 0.7, 1.0])
    expected = np.cos(np.asarray(x))
    close(verax.jit(verax.vmap(verax.grad(vnp.sin)))(x), expected)
    close(verax.vmap(verax.jit(verax.grad(vnp.sin)))(x), expected)
    close(verax.vmap(verax.grad(verax.jit(vnp.sin)))(x), expected)
    summed = verax.grad(lambda x: verax.vmap(verax.jit(vnp.sin))(x).sum())
    close(summed(x), expected)
    close(verax.grad(lambda x: verax.jit(verax.vmap(vnp.sin))(x).sum())(x), expected)
    close(verax.jit(summed)(x), expected)


def test_unused_and_constant() -> None:
    close(verax.grad(lambda x, y: y * 2.0)(1.0, 2.0), 0)
    close(verax.grad(lambda x: vnp.float32(3.0))(1.0), 0)
    assert verax.grad(lambda x: 3.0)(vnp.ones((2, 2))).shape == (2, 2)


def test_stop_gradient_is_a_constant() -> None:
    close(verax.grad(lambda x: x * verax.lax.stop_gradient(x))(3.0), 3)


def test_a_jitted_function_returns_a_transpose() -> None:
    @verax.jit
    def transposed(x: Any) -> Any:
        return verax.linear_transpose(lambda y: x * y, 1.0)

    at = transposed(3.0)
    assert at(2.0)[0] == 6.0
    assert verax.tree.leaves(at) == [3.0]
    assert str(verax.tree.structure(at)) == str(
        verax.tree.structure(transposed(vnp.float32(4)))
    )


def test_linear_transpose() -> None:
    matrix = vnp.arange(6.0).reshape(2, 3)
    transposed = verax.linear_transpose(lambda x: matrix @ x, vnp.zeros(3))
    (actual,) = transposed(vnp.ones(2))
    close(actual, np.asarray(matrix).sum(0))
    with pytest.raises(NotImplementedError, match="sin"):
        verax.linear_transpose(vnp.sin, 1.0)(1.0)


def test_gradients_have_the_types_of_their_inputs() -> None:
    for dtype in (vnp.float32, vnp.float16, vnp.bfloat16):
        x = vnp.ones(3, dtype)
        assert verax.grad(lambda x: (x * 2.5).sum())(x).dtype == x.dtype
    with verax.enable_x64():
        assert verax.grad(vnp.sin)(np.float64(1)).dtype == np.float64


def test_what_is_no_array_passes_through_the_auxiliary_output() -> None:
    def fun(x: Any) -> Any:
        return x**2, {"name": "square", "value": x, "kind": [Thing, None]}

    aux = {"name": "square", "value": 3.0, "kind": [Thing, None]}
    assert verax.grad(fun, has_aux=True)(3.0) == (6, aux)
    assert verax.value_and_grad(fun, has_aux=True)(3.0) == ((9, aux), 6)
    assert verax.jvp(fun, (3.0,), (1.0,), has_aux=True)[2] == aux
    assert verax.vjp(fun, 3.0, has_aux=True)[2] == aux
    assert verax.linearize(fun, 3.0, has_aux=True)[2] == aux
    assert verax.hessian(fun, has_aux=True)(3.0) == (2, aux)

    def inner(x: Any) -> Any:
        slope, aux = verax.grad(fun, has_aux=True)(x)
        assert aux["name"] == "square"
        return slope * aux["value"]

    assert float(verax.jit(inner)(3.0)) == 18
    assert verax.vmap(inner)(vnp.array([1.0, 3.0])).tolist() == [2, 18]


class Thing:
    """No array, no pytree."""


@pytest.mark.parametrize(
    "fun",
    [
        lambda x: x * x,
        lambda x: vnp.dot(x, x),
        lambda x: 1.0 / x,
        lambda x: x**2,
        lambda x: vnp.where(x > 0, x, -x),
    ],
)
def test_only_linear_functions_have_a_transpose(fun: Any) -> None:
    with pytest.raises(NotImplementedError, match="not linear"):
        verax.linear_transpose(fun, vnp.ones(3))(fun(vnp.ones(3)))


def test_copies_of_a_tracer_are_the_tracer() -> None:
    def fun(x: Any) -> Any:
        return copy.copy(x) + copy.deepcopy({"x": [x]})["x"][0]

    assert float(verax.jit(fun)(2.0)) == float(verax.grad(fun)(2.0)) + 2 == 4
    with pytest.raises(TypeError, match=r"pickle.*argument obj"):
        verax.jit(pickle.dumps)(2.0)


def test_auxiliary_outputs_that_do_not_depend_on_the_trace_stay_as_they_are() -> None:
    table = np.ones(2)
    fixed = (2.0, True, np.float32(3), table, vnp.ones(2))

    def f(x: Any) -> Any:
        return x * 2, (fixed, x * 3)

    for aux in (
        verax.vjp(f, 1.0, has_aux=True)[2],
        verax.jvp(f, (1.0,), (1.0,), has_aux=True)[2],
        verax.linearize(f, 1.0, has_aux=True)[2],
        verax.grad(f, has_aux=True)(1.0)[1],
        verax.value_and_grad(f, has_aux=True)(1.0)[0][1],
        verax.jacfwd(f, has_aux=True)(1.0)[1],
        verax.jacrev(f, has_aux=True)(1.0)[1],
    ):
        assert all(x is y for x, y in zip(aux[0], fixed, strict=True))
        assert aux[1] == 3
    gradient, aux = verax.jit(verax.grad(f, has_aux=True))(1.0)
    assert gradient == 2
    assert (aux[0][0], aux[0][3].tolist(), aux[1]) == (2, [1, 1], 3)
