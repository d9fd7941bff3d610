"""Under a trace, derivatives and batching write where they are used, or not at all."""

from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from verax.ir.jaxpr import NO_PARAMS, Jaxpr, NoParams
from verax.ir.reports.check import check_jaxpr
from verax.rules.rows.infer import infer
from verax.rules.rows.row import MissingRule, Row

X = vnp.linspace(0.1, 0.9, 4)


def jaxpr_of(f: Any, *args: Any) -> Jaxpr:
    actual: Jaxpr = verax.make_jaxpr(f)(*args).jaxpr
    check_jaxpr(actual, infer)
    return actual


opaque_p: Row[NoParams] = Row(
    "opaque",
    NoParams,
    typing=lambda p, avals: avals,
    evaluate=lambda engine, p, xs: (xs[0] * 2.0,),
)


def opaque(x: Any) -> Any:
    """Twice `x`, by a primitive without a derivative."""
    return opaque_p.call(NO_PARAMS, x)


@pytest.mark.parametrize(
    "transform",
    [
        verax.grad,
        verax.jacrev,
        verax.jacfwd,
        verax.hessian,
        lambda f: lambda x: verax.linearize(f, x)[1](1.0),
        lambda f: lambda x: verax.jvp(f, (x,), (1.0,))[1],
        lambda f: lambda x: verax.vjp(f, x)[1](1.0)[0],
        lambda f: verax.grad(verax.grad(f)),
    ],
)
def test_a_failed_derivative_leaves_nothing_behind(transform: Any) -> None:
    def tried(x: Any) -> Any:
        try:
            return transform(lambda x: opaque(vnp.sin(vnp.cos(x))))(x)
        except MissingRule:
            return x + 1.0

    assert jaxpr_of(tried, 0.5) == jaxpr_of(lambda x: x + 1.0, 0.5)
    assert float(verax.jit(tried)(0.5)) == 1.5


@pytest.mark.parametrize(
    ("derivative", "x"),
    [
        (verax.grad(lambda x: vnp.sin(x * x)), 0.5),
        (verax.grad(verax.grad(lambda x: vnp.tanh(x) * x)), 0.5),
        (lambda x: verax.jvp(lambda x: vnp.tanh(x) * x, (x,), (x,))[1], X),
        (verax.grad(lambda x: verax.jvp(vnp.sin, (x,), (x * x,))[1]), 0.5),
        (verax.grad(lambda x: verax.grad(lambda y: vnp.sin(x * y) * y)(x * 2.0)), 0.5),
        (verax.jacfwd(verax.jacrev(lambda x: vnp.exp(x) * x)), X),
        (verax.vmap(verax.grad(lambda x: vnp.log(x) ** 2)), X),
        (verax.grad(lambda x: verax.vmap(lambda y: x * y)(X).sum()), 0.5),
    ],
)
def test_traced_and_not_traced_agree(derivative: Any, x: Any) -> None:
    eager = derivative(x)
    np.testing.assert_allclose(verax.jit(derivative)(x), eager, rtol=1e-5)
    jaxpr_of(derivative, x)


def test_constants_as_arguments() -> None:
    """An argument that is a literal of the trace, a scalar or an array."""

    def f(s: Any) -> Any:
        of_scalar = verax.grad(lambda a, b: vnp.sin(a) * b)(2.0, s)
        of_array = verax.grad(lambda a, b: (vnp.sin(a) * b).sum())(X, s)
        return of_scalar, of_array, verax.vmap(lambda a, b: a * b)(X, X * s)

    traced, eager = verax.jit(f)(3.0), f(3.0)
    for a, b in zip(traced, eager, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)
    jaxpr_of(f, 3.0)


def test_a_pullback_may_be_called_again() -> None:
    def f(x: Any) -> Any:
        _, pull = verax.vjp(lambda x: vnp.sin(x) * x, x)
        return pull(1.0)[0] + 2.0 * pull(1.0)[0] + pull(x)[0]

    np.testing.assert_allclose(verax.jit(f)(0.5), f(0.5), rtol=1e-6)


def test_weak_and_strong_operands_keep_their_types() -> None:
    def f(x: Any) -> Any:
        strong = verax.grad(lambda y: y * 2.0)(x + np.float32(1))
        weak = verax.grad(lambda y: y * 2.0)(1.0)
        return strong, weak, verax.vmap(lambda y: y + 1)(vnp.stack([x, x]))

    avals = jaxpr_of(f, 0.5).out_avals
    assert [aval.weak_type for aval in avals] == [False, True, True]


def test_effects_of_a_failed_derivative_are_taken_back() -> None:
    def inner(x: Any) -> Any:
        verax.debug.print("inner {}", x)
        return opaque(x)

    def tried(x: Any) -> Any:
        try:
            return verax.grad(inner)(x)
        except MissingRule:
            return x

    jaxpr = jaxpr_of(tried, 0.5)
    assert not jaxpr.effects
    assert len(jaxpr.eqns) == 0
