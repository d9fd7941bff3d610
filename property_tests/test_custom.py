"""Rules of the user's own are kept by transformations, in every order of up to three.

The bodies have other derivatives than the rules: the derivative of who loses a rule is
zero. The rules are those of a plain function, with which everything is compared.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from hypothesis import given, settings, strategies as st

import verax
import verax.numpy as vnp
from verax.checkpoint_policies import dots_saveable, everything_saveable
from verax.lax import stop_gradient

type Scalar = Callable[[Any], Any]


def plain(x: Any) -> Any:
    return vnp.sin(x) * x


@verax.custom_jvp
def pushed(x: Any) -> Any:
    return stop_gradient(plain(x))


@pushed.defjvp
def pushed_jvp(primals: Any, tangents: Any) -> Any:
    (x,), (t,) = primals, tangents
    return pushed(x), (vnp.cos(x) * x + vnp.sin(x)) * t


@verax.custom_vjp
def pulled(x: Any) -> Any:
    return stop_gradient(plain(x))


pulled.defvjp(
    lambda x: (plain(x), x), lambda x, ct: ((vnp.cos(x) * x + vnp.sin(x)) * ct,)
)


@verax.custom_gradient
def given_pullback(x: Any) -> Any:
    return plain(x), lambda ct: (vnp.cos(x) * x + vnp.sin(x)) * ct


def linear(x: Any) -> Any:
    """The plain function as sin(x) times x, linear in the latter."""
    call = verax.custom_derivatives.linear_call
    return call(lambda r, x: vnp.sin(r) * x, lambda r, ct: vnp.sin(r) * ct, x, x)


def captured(x: Any) -> Any:
    """The plain function with rules that close over its argument.

    The body is honest here: what is captured is differentiated as the body says.
    """

    @verax.custom_jvp
    def scaled(y: Any) -> Any:
        return y * vnp.sin(x)

    @scaled.defjvp
    def scaled_jvp(primals: Any, tangents: Any) -> Any:
        return scaled(*primals), vnp.sin(x) * tangents[0]

    return scaled(x)


@verax.custom_batching.custom_vmap
def batched(x: Any) -> Any:
    return plain(x)


@batched.def_vmap
def batched_rule(axis_size: int, in_batched: list[bool], x: Any) -> Any:
    return plain(x), in_batched[0]


def stacked(fun: Scalar) -> Scalar:
    """A function of the same value and derivatives, by way of vmap."""

    def mapped(x: Any) -> Any:
        weights = vnp.array([0.25, 0.75])
        ys = verax.vmap(fun)(x * vnp.ones(2))
        return (weights * ys).sum()

    return mapped


def half_stacked(fun: Scalar) -> Scalar:
    """vmap over a stack in which the function itself is not batched."""

    def mapped(x: Any) -> Any:
        return (verax.vmap(lambda a: a * fun(x))(vnp.array([0.5, 0.5]))).sum()

    return mapped


FORWARD: Mapping[str, Callable[[Scalar], Scalar]] = {
    "jvp": lambda fun: lambda x: verax.jvp(fun, (x,), (1.0,))[1],
    "linearize": lambda fun: lambda x: verax.linearize(fun, x)[1](1.0),
}
ORDERS: Mapping[str, Callable[[Scalar], Scalar]] = {
    "jit": verax.jit,
    "grad": verax.grad,
    "vjp": lambda fun: lambda x: verax.vjp(fun, x)[1](1.0)[0],
    "vmap": stacked,
    "half": half_stacked,
    "checkpoint": verax.checkpoint,
    "saved": lambda fun: verax.checkpoint(fun, policy=everything_saveable),
    "dots": lambda fun: verax.checkpoint(fun, policy=dots_saveable),
    **FORWARD,
}
FUNCTIONS: Mapping[str, Scalar] = {
    "custom_jvp": pushed,
    "custom_vjp": pulled,
    "custom_gradient": given_pullback,
    "linear_call": linear,
    "captured": captured,
    "custom_vmap": batched,
}
REVERSE_ONLY = frozenset({"custom_vjp", "custom_gradient"})


def allowed(name: str, chain: list[str]) -> list[str]:
    """The chain without forward mode before reverse mode, where no rule says it."""
    if name not in REVERSE_ONLY:
        return chain
    backward = [i for i, link in enumerate(chain) if link in ("grad", "vjp")]
    first = backward[0] if backward else len(chain)
    return [link for i, link in enumerate(chain) if i > first or link not in FORWARD]


@settings(deadline=None)
@given(
    st.sampled_from(sorted(FUNCTIONS)),
    st.lists(st.sampled_from(sorted(ORDERS)), min_size=1, max_size=3),
    st.sampled_from((-1.3, 0.0, 0.4, 2.0)),
    st.booleans(),
)
def test_rules_are_kept(name: str, chain: list[str], x: float, jit: bool) -> None:
    fun: Scalar = FUNCTIONS[name]
    like: Scalar = plain
    for link in allowed(name, chain):
        fun, like = ORDERS[link](fun), ORDERS[link](like)
    actual = verax.jit(fun)(x) if jit else fun(x)
    np.testing.assert_allclose(actual, like(x), 1e-4, 1e-4)


def test_batched_tangent_programs_are_transposed_by_the_rule() -> None:
    """The linear equation of a rule is batched before its transpose is asked for."""
    xs = vnp.array([-1.3, 0.4, 2.0])
    for fun in (pulled, given_pullback):
        _, tangent = verax.linearize(verax.vmap(fun), xs)
        cts = vnp.arange(6.0).reshape(2, 3)
        ts = vnp.zeros((2, 3))
        (actual,) = verax.linear_transpose(verax.vmap(tangent), ts)(cts)
        slopes = np.cos(xs) * xs + np.sin(xs)
        np.testing.assert_allclose(actual, cts * slopes, 1e-5)


def test_cotangents_that_are_the_same_in_all_lanes_are_added_up() -> None:
    """The cotangent of what lanes share is summed, also where lanes do not differ."""

    @verax.custom_vjp
    def product(w: Any, x: Any) -> Any:
        return (w * x).sum()

    def backward(kept: None, ct: Any) -> Any:
        return vnp.array([1.0, 2.0, 3.0]), vnp.zeros(3)

    product.defvjp(lambda w, x: (product(w, x), None), backward)
    lanes = verax.vmap(product, (None, 0))
    actual = verax.grad(lambda w: lanes(w, vnp.ones((5, 3))).sum())(vnp.ones(3))
    assert actual.tolist() == [5.0, 10.0, 15.0]


def test_policies_see_into_calls() -> None:
    """A policy is asked about the equations of calls, whose operands may be numbers."""

    @verax.jit
    def inner(x: Any, y: Any) -> tuple[Any, float]:
        return vnp.sin(x) * y, 3.0

    def outer(x: Any) -> Any:
        actual, three = inner(x, 2.0)
        return actual * three

    for policy in (everything_saveable, dots_saveable):
        kept = verax.checkpoint(outer, policy=policy)
        np.testing.assert_allclose(verax.grad(kept)(0.5), 6 * np.cos(0.5), 1e-6)
