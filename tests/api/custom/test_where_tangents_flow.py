"""Rules of custom derivatives are called where a tangent flows, with what does not."""

from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from verax import lax
from verax.custom_derivatives import SymbolicZero, zero_from_primal


def never() -> Any:
    """The identity, with a rule that must not be called."""

    @verax.custom_jvp
    def f(x: Any) -> Any:
        return x

    @f.defjvp
    def rule(primals: Any, tangents: Any) -> Any:
        raise RuntimeError("differentiated")

    return f


@pytest.mark.parametrize("jitted", [False, True])
def test_no_tangent_no_rule(jitted: bool) -> None:
    f = never()
    wrap: Any = verax.jit if jitted else lambda fun: fun
    assert wrap(verax.grad(lambda x: x * f(vnp.array(2.0))))(1.0) == 2.0
    assert wrap(verax.grad(lambda x: x * f(lax.stop_gradient(x))))(3.0) == 3.0
    assert wrap(verax.grad(lambda x: x * f(vnp.argmax(x * vnp.ones(2)))))(1.0) == 0.0
    inner = verax.grad(lambda x, y: x * f(y))
    assert wrap(lambda y: inner(2.0, y))(5.0) == 5.0
    with pytest.raises(RuntimeError, match="differentiated"):
        wrap(verax.grad(lambda x: inner(2.0, x)))(5.0)
    with pytest.raises(RuntimeError, match="differentiated"):
        wrap(verax.grad(lambda x: x * f(x)))(1.0)


def test_a_rule_that_no_derivative_needs_in_another_rule() -> None:
    nd = never()

    @verax.custom_vjp
    def f(x: Any, y: Any) -> Any:
        return x * nd(y)

    f.defvjp(lambda x, y: (x * nd(y), nd(y)), lambda y, ct: (ct * y, None))
    assert verax.grad(lambda x: f(x, vnp.array(2.0)))(1.0) == 2.0


@pytest.mark.parametrize("mapped", [False, True])
@pytest.mark.parametrize("jitted", [False, True])
def test_constants_have_symbolic_zeros(mapped: bool, jitted: bool) -> None:
    @verax.custom_jvp
    def f(x: Any, y: Any) -> Any:
        return x * y

    def rule(primals: Any, tangents: Any) -> Any:
        (x, y), (t, u) = primals, tangents
        assert type(u) is SymbolicZero
        assert type(t) is not SymbolicZero
        return f(x, y), t * y

    f.defjvp(rule, symbolic_zeros=True)
    g = verax.vmap(f) if mapped else f
    x, y = vnp.arange(3.0), vnp.array([1.0, 2.0, 4.0])

    def total(x: Any) -> Any:
        return vnp.sum(g(x, y))

    slope = verax.jit(verax.grad(total)) if jitted else verax.grad(total)
    np.testing.assert_array_equal(slope(x), y)
    np.testing.assert_array_equal(verax.jvp(lambda x: g(x, y), (x,), (x,))[1], x * y)


def test_which_arguments_are_perturbed() -> None:
    seen = []

    @verax.custom_vjp
    def f(x: Any, y: Any) -> Any:
        return x * y

    def forward(x: Any, y: Any) -> Any:
        seen.append((x.perturbed, y.perturbed))
        return x.value * y.value, (x.value, y.value)

    f.defvjp(forward, lambda r, ct: (ct * r[1], ct * r[0]), symbolic_zeros=True)
    assert verax.grad(lambda x: f(x, vnp.array(3.0)))(2.0) == 3.0
    assert verax.grad(lambda x: f(x, lax.stop_gradient(x)))(2.0) == 2.0
    assert verax.grad(lambda y: verax.grad(lambda x: y * f(x, 3.0))(2.0))(1.0) == 3.0
    assert set(seen) == {(True, False)}


@pytest.mark.parametrize("forward_mode", [False, True])
def test_rules_that_capture_see_constants_in_compiled_code(forward_mode: bool) -> None:
    def slope(w: Any, x: Any, k: Any) -> Any:
        seen = []

        def forward(x: Any, k: Any) -> Any:
            seen.append((x.perturbed, k.perturbed))
            return w * x.value * k.value, k.value

        def pushed(primals: Any, tangents: Any) -> Any:
            (x, k), (t, u) = primals, tangents
            seen.append((type(t) is not SymbolicZero, type(u) is not SymbolicZero))
            return w * x * k, t * w * k

        f: Any = (verax.custom_jvp if forward_mode else verax.custom_vjp)(
            lambda x, k: w * x * k
        )
        if forward_mode:
            f.defjvp(pushed, symbolic_zeros=True)
        else:
            f.defvjp(forward, lambda k, ct: (ct * w * k, None), symbolic_zeros=True)
        actual = verax.grad(lambda x: f(x, k * 2.0))(x)
        assert seen == [(True, False)]
        return actual

    assert slope(3.0, 2.0, 5.0) == 30.0
    assert verax.jit(slope)(3.0, 2.0, 5.0) == 30.0
    assert verax.jit(verax.grad(slope))(3.0, 2.0, 5.0) == 10.0
    assert verax.jit(verax.grad(slope, argnums=2))(3.0, 2.0, 5.0) == 6.0
    np.testing.assert_array_equal(
        verax.vmap(slope, (0, None, None))(vnp.arange(2.0), 2.0, 5.0), [0.0, 10.0]
    )


def test_a_rule_that_branches_on_values_in_an_inner_gradient() -> None:
    @verax.custom_jvp
    def f(x: Any) -> Any:
        return x

    @f.defjvp
    def rule(primals: Any, tangents: Any) -> Any:
        (x,), (t,) = primals, tangents
        return f(x), t * (10.0 if x > 0 else -10.0)

    assert verax.grad(lambda y: verax.grad(lambda x: x * f(y))(1.0))(2.0) == 10.0
    assert verax.grad(lambda y: verax.grad(lambda x: x * f(y))(1.0))(-2.0) == -10.0
    assert verax.grad(lambda y: verax.grad(lambda x: y * f(x))(1.0))(2.0) == 10.0


@pytest.mark.parametrize("residual", [True, 3, 2.5, np.float32(2), None])
def test_scalars_among_residuals_stay_themselves(residual: Any) -> None:
    kinds = []

    @verax.custom_vjp
    def f(x: Any) -> Any:
        return x * 2

    def backward(saved: Any, ct: Any) -> Any:
        x, kept = saved
        kinds.append(type(kept))
        return (ct * x if kept is None or kept else ct,)

    f.defvjp(lambda x: (x * 2, (x, residual)), backward)
    xs = vnp.array([2.0, 5.0])
    assert verax.grad(f)(2.0) == 2.0
    assert verax.jit(verax.grad(f))(2.0) == 2.0
    assert verax.grad(verax.jit(f))(2.0) == 2.0
    np.testing.assert_array_equal(verax.vmap(verax.grad(f))(xs), xs)
    np.testing.assert_array_equal(verax.grad(lambda x: verax.vmap(f)(x).sum())(xs), xs)
    assert verax.grad(verax.grad(f))(2.0) == 1.0
    assert set(kinds) == {type(residual)}


def test_zero_from_primal_is_of_a_tree() -> None:
    zeros = zero_from_primal({"a": vnp.ones(2), "b": 3})
    np.testing.assert_array_equal(zeros["a"], [0.0, 0.0])
    assert zeros["b"].dtype == verax.dtypes.float0
    actual = zero_from_primal((1.0, [2]), symbolic_zeros=True)
    assert [type(x) for x in (actual[0], actual[1][0])] == [SymbolicZero] * 2
    assert actual[1][0].dtype == verax.dtypes.float0


def test_keyword_arguments_take_their_positions() -> None:
    def body(x: Any, y: Any = 2.0, *, scale: float = 3.0) -> Any:
        return x * y * scale

    f = verax.custom_jvp(body)
    f.defjvp(lambda p, t: (body(*p), 10.0 * t[0] * p[1]))
    assert f.jvp is not None
    assert verax.grad(lambda x: f(x))(1.0) == 20.0
    assert verax.grad(lambda x: f(y=5.0, x=x))(1.0) == 50.0
    with pytest.raises(TypeError, match="scale"):
        verax.grad(lambda x: f(x, scale=1.0))(1.0)


def test_what_a_function_with_rules_says_of_itself() -> None:
    f = verax.custom_jvp(lambda x, n: x, nondiff_argnums=(1,))
    assert (f.jvp, f.nondiff_argnums, f.symbolic_zeros) == (None, (1,), False)
    f.defjvp(lambda n, p, t: (p[0], t[0]), symbolic_zeros=True)
    assert f.symbolic_zeros
    g = verax.custom_vjp(lambda x: x)
    assert (g.fwd, g.bwd, g.optimize_remat) == (None, None, False)
    forward, backward = lambda x: (x, None), lambda r, ct: (ct,)  # a pair
    g.defvjp(forward, backward, optimize_remat=True)
    assert (g.fwd, g.bwd, g.optimize_remat) == (forward, backward, True)


@pytest.mark.parametrize("compiled", [False, True])
def test_what_references_hold_has_tangents(compiled: bool) -> None:
    """A rule that is traced at its call expects one for what was written before."""

    class Scale:
        by = 2.0

    scale = Scale()

    @verax.custom_jvp
    def h(a: Any, b: Any) -> Any:
        return a * b * scale.by

    @h.defjvp
    def rule(primals: Any, tangents: Any) -> Any:
        (a, b), (s, t) = primals, tangents
        return a * b * scale.by, (a * t + b * s) * scale.by

    @verax.custom_jvp
    def of_reference(ref: Any, x: Any) -> Any:
        return ref[...] * x * scale.by

    @of_reference.defjvp
    def other_rule(primals: Any, tangents: Any) -> Any:
        (ref, x), (s, t) = primals, tangents
        return ref[...] * x * scale.by, (ref[...] * t + s[...] * x) * scale.by

    def read(x: Any) -> Any:
        ref = verax.new_ref(vnp.float32(0.0))
        ref[...] = 3 * x
        return h(ref[...], x)

    def handed_on(x: Any) -> Any:
        ref = verax.new_ref(vnp.float32(0.0))
        ref[...] = 3 * x
        return of_reference(ref, x)

    for fun in (read, handed_on):
        f = verax.jit(fun) if compiled else fun
        assert verax.value_and_grad(f)(2.0) == (24.0, 24.0)
        assert verax.jvp(f, (2.0,), (1.0,)) == (24.0, 24.0)
        assert verax.grad(verax.grad(f))(2.0) == 12.0
