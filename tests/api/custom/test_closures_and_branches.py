"""Rules that read values of the traces around them, or branch on those they get."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as jnp
from verax import lax
from verax.custom_derivatives import SymbolicZero, custom_vjp_primal_tree_values
from verax.dtypes import float0
from verax.errors import TracerBoolConversionError


def scaled(x: Any, factor: float) -> Callable[[Any], Any]:
    """y -> x * y, whose derivative in y is said to be `factor * x`."""

    @verax.custom_jvp
    def g(y: Any) -> Any:
        return x * y

    @g.defjvp
    def g_jvp(primals: Any, tangents: Any) -> Any:
        (y,), (t,) = primals, tangents
        return g(y), factor * x * t

    return g


def scaled_back(x: Any, factor: float) -> Callable[[Any], Any]:
    """The same in reverse mode."""
    g = verax.custom_vjp(lambda y: x * y)
    g.defvjp(lambda y: (g(y), None), lambda _, ct: (factor * x * ct,))
    return g


@pytest.mark.parametrize("make", [scaled, scaled_back])
def test_what_a_function_closes_over_is_differentiated(make: Any) -> None:
    # JAX raises an UnexpectedTracerError; the derivative in x is that of x * y.
    f = lambda x: make(x, 10.0)(2.0 * x)  # noqa: E731
    assert float(verax.grad(f)(3.0)) == 2.0 * 3.0 + 10.0 * 3.0 * 2.0
    assert float(verax.jit(verax.grad(f))(3.0)) == 66.0
    np.testing.assert_allclose(
        verax.vmap(verax.grad(f))(jnp.array([1.0, 3.0])), [22, 66]
    )


@pytest.mark.parametrize("make", [scaled, scaled_back])
def test_a_function_without_active_arguments_is_differentiated_itself(
    make: Any,
) -> None:
    assert float(verax.grad(lambda x: make(x, 10.0)(2.0))(3.0)) == 2.0


def test_a_rule_that_nobody_needs_may_be_wrong() -> None:
    def sample(key: Any) -> Any:
        @verax.custom_jvp
        def f(x: Any) -> Any:
            return x + verax.random.uniform(key)

        @f.defjvp
        def f_jvp(primals: Any, tangents: Any) -> Any:
            return f(primals), tangents  # they are tuples

        return f(np.float32(2.0))

    keys = verax.random.split(verax.random.key(0), 3)
    assert verax.vmap(sample)(keys).shape == (3,)
    assert verax.jit(verax.vmap(sample))(keys).shape == (3,)


@pytest.mark.parametrize("make", [scaled, scaled_back])
def test_rules_may_close_over_what_vmap_maps(make: Any) -> None:
    def h(z: Any) -> Any:
        return verax.vmap(lambda x: make(x, 10.0)(z))(jnp.arange(3.0)).sum()

    assert float(verax.grad(h)(3.0)) == 30.0
    each = verax.vmap(lambda x: verax.grad(make(x, 10.0))(3.0))
    np.testing.assert_allclose(each(jnp.arange(3.0)), [0, 10, 20])


def test_tracers_in_arguments_that_rules_are_not_about() -> None:
    @partial(verax.custom_jvp, nondiff_argnums=(0,))
    def g(h: Any, x: Any) -> Any:
        return h(x)

    @g.defjvp
    def g_jvp(h: Any, primals: Any, tangents: Any) -> Any:
        return g(h, *primals), 2.0 * tangents[0]

    f = lambda x: g(lambda y: x + y, x)  # noqa: E731
    out, tangent = verax.jvp(f, (2.0,), (1.0,))
    assert (float(out), float(tangent)) == (4.0, 3.0)

    @partial(verax.custom_vjp, nondiff_argnums=(0,))
    def s(xs: Any, y: Any) -> Any:
        return xs[0] * y

    s.defvjp(lambda xs, y: (s(xs, y), y), lambda xs, y, ct: (jnp.cos(y) * ct,))
    both = verax.jit(lambda x, y: s((x,), y))
    assert float(both(2.0, 3.0)) == 6.0
    np.testing.assert_allclose(verax.grad(both, 1)(2.0, 3.0), np.cos(3.0), rtol=1e-6)
    np.testing.assert_allclose(verax.grad(both, 0)(2.0, 3.0), 3.0, rtol=1e-6)


def branching() -> Any:
    """A function all of whose rules branch on the argument."""

    @verax.custom_vjp
    def f(x: Any) -> Any:
        return jnp.sin(x) if x > 0 else jnp.cos(x)

    def forward(x: Any) -> Any:
        return f(x), {"x": x * 1.0, "name": 3}

    def backward(residuals: Any, ct: Any) -> Any:
        return (2 * ct if residuals["x"] > 0 else residuals["name"] * ct,)

    f.defvjp(forward, backward)
    return f


def test_backward_rules_branch_on_residuals() -> None:
    f = branching()
    assert [float(verax.grad(f)(x)) for x in (2.0, -2.0)] == [2.0, 3.0]
    assert float(verax.grad(lambda x: f(3.0 * x))(-1.0)) == 9.0
    assert float(verax.vjp(f, -1.0)[1](5.0)[0]) == 15.0
    assert float(verax.grad(verax.grad(lambda x: x * f(x)))(2.0)) == 4.0
    # vmap maps y only.
    per_y = verax.vmap(lambda x, y: verax.grad(f)(x) * y, (None, 0))
    np.testing.assert_allclose(per_y(-1.0, jnp.ones(2)), [3.0, 3.0])


def test_backward_rules_cannot_branch_on_what_is_only_traced() -> None:
    f = branching()
    with pytest.raises(TracerBoolConversionError):
        verax.jit(verax.grad(f))(1.0)
    with pytest.raises(TracerBoolConversionError):
        verax.vmap(verax.grad(f))(jnp.ones(2))
    g = verax.custom_vjp(lambda x: x)
    g.defvjp(lambda x: (x, x), lambda x, ct: (ct if ct > 0 else x,))
    with pytest.raises(TracerBoolConversionError):
        verax.grad(g)(1.0)


@pytest.mark.parametrize("part", [(None, None), None, 0.0, (0.0, 3.0)])
def test_one_cotangent_or_none_may_stand_for_a_subtree(part: Any) -> None:
    f = verax.custom_vjp(lambda x: x[0])
    f.defvjp(lambda x: (f(x), None), lambda _, ct: ((ct, part),))
    first, (second, third) = verax.grad(f)((1.0, (2.0, None)))
    assert (float(first), float(second), third) == (1.0, 0.0, None)


def test_cotangents_of_another_structure_are_refused() -> None:
    f = verax.custom_vjp(lambda x: x[0])
    f.defvjp(lambda x: (f(x), None), lambda _, ct: ((ct, ct, ct),))
    with pytest.raises(TypeError, match="the cotangent of argument 0"):
        verax.grad(f)((1.0, 2.0))


def test_symbolic_zeros_of_another_type_are_refused() -> None:
    f = verax.custom_vjp(lambda x, y: (x, y))

    def forward(x: Any, y: Any) -> Any:
        return f(*custom_vjp_primal_tree_values((x, y))), None

    def backward(_: None, cts: Any) -> Any:
        x, y = cts
        assert isinstance(x, SymbolicZero)
        return (y * 0, x) if y.shape == x.shape else (None, x)

    f.defvjp(forward, backward, symbolic_zeros=True)
    out = lambda x, y: f(x, y)[1].sum()  # noqa: E731
    with pytest.raises(ValueError, match="Consider just returning a None here"):
        verax.grad(out, (0, 1))(jnp.ones(1), jnp.ones(2))
    verax.grad(out, (0, 1))(jnp.ones(2), jnp.ones(2))


def test_zeros_of_float0_are_those_of_numpy() -> None:
    made: list[object] = [
        jnp.zeros((2,), float0),
        jnp.ones((2,), float0),
        jnp.full((2,), 3, float0),
        verax.jit(lambda: jnp.zeros((2,), float0))(),
    ]
    for x in made:
        assert isinstance(x, np.ndarray)
        assert (x.shape, x.dtype) == ((2,), float0)


def test_a_closed_program_brings_its_constants() -> None:
    closed = verax.make_jaxpr(lambda x: x + jnp.arange(3.0))(1.0)
    (out,) = verax.core.eval_jaxpr(closed, [], 2.0)
    np.testing.assert_allclose(out, [2, 3, 4])
    (out,) = verax.core.eval_jaxpr(closed, closed.consts, 2.0)
    np.testing.assert_allclose(out, [2, 3, 4])


def test_map_of_batches_of_no_rows_is_sequential() -> None:
    assert lax.map(lambda x: x + 1, jnp.arange(3), batch_size=0).tolist() == [1, 2, 3]
    with pytest.raises(ValueError, match="batch_size"):
        lax.map(lambda x: x + 1, jnp.arange(3), batch_size=-1)
