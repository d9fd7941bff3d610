"""Eager derivatives of functions with rules of their own compile nothing."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from property_tests.levels import crossed
from verax import nn
from verax.custom_batching import custom_vmap
from verax.custom_derivatives import linear_call
from verax.rules.values.array import Array
from verax.rules.values.state import STATE
from verax.scipy import special

type Function = Callable[[Array], Array]


@verax.custom_jvp
def pushed(x: Array) -> Any:
    return vnp.maximum(x, 0)


pushed.defjvp(lambda p, t: (pushed(*p), vnp.where(p[0] > 0, t[0], 0)))


@verax.custom_vjp
def pulled(x: Array) -> Array:
    return vnp.sin(x)


pulled.defvjp(lambda x: (vnp.sin(x), x), lambda x, ct: (vnp.cos(x) * ct,))


@custom_vmap
def mapped(x: Array) -> Array:
    return vnp.sin(x) * 2


@mapped.def_vmap
def mapped_rule(size: int, batched: Any, x: Array) -> Any:
    return vnp.sin(x) * 2, batched[0]


@verax.custom_gradient
def graded(x: Array) -> Any:
    return x * x, lambda ct: (ct * 2 * x,)


def linear(x: Array) -> Any:
    return linear_call(lambda r, y: y * r, lambda r, ct: ct * r, x * 0 + 2.0, x)


def total(f: Function) -> Function:
    return lambda x: f(x).sum()


FUNCTIONS: Mapping[str, Function] = {
    "custom_jvp": pushed,
    "custom_vjp": pulled,
    "custom_vmap": mapped,
    "custom_gradient": graded,
    "linear_call": linear,
    "checkpoint": verax.checkpoint(lambda x: vnp.sin(vnp.sin(x))),
    "nested": lambda x: pushed(pulled(mapped(x))),
    "relu": nn.relu,
    "softmax": nn.softmax,
    "gelu": nn.gelu,
    "logsumexp": lambda x: special.logsumexp(x)[None],
}
REVERSE_ONLY = ("custom_vjp", "custom_gradient", "nested")
TRANSFORMED: Mapping[str, Callable[[Function, Array], Any]] = {
    "call": lambda f, x: f(x),
    "grad": lambda f, x: verax.grad(total(f))(x),
    "value_and_grad": lambda f, x: verax.value_and_grad(total(f))(x),
    "vmap": lambda f, x: verax.vmap(f)(vnp.stack([x, x])),
    "vmap of grad": lambda f, x: verax.vmap(verax.grad(total(f)))(vnp.stack([x, x])),
    "grad of vmap": lambda f, x: verax.grad(
        lambda x: verax.vmap(f)(vnp.stack([x, x])).sum()
    )(x),
    "grad of grad": lambda f, x: verax.grad(lambda x: verax.grad(total(f))(x).sum())(x),
    "grad of checkpoint": lambda f, x: verax.grad(total(verax.checkpoint(f)))(x),
    "jacrev": lambda f, x: verax.jacrev(f)(x),
    "jvp": lambda f, x: verax.jvp(f, (x,), (x,)),
    "linearize": lambda f, x: verax.linearize(f, x)[1](x),
    "jacfwd": lambda f, x: verax.jacfwd(f)(x),
}
FORWARD = ("jvp", "linearize", "jacfwd")


@contextmanager
def nothing_compiled() -> Iterator[None]:
    """A block that compiles nothing, but on a device, where operations are programs."""
    before = verax.metrics()["compiles"]
    yield
    assert STATE.accelerated or verax.metrics()["compiles"] == before


@pytest.mark.slow
@pytest.mark.parametrize(("name", "how"), crossed(FUNCTIONS, TRANSFORMED, 8))
def test_eager_rules_compile_nothing(name: str, how: str) -> None:
    if name in REVERSE_ONLY and how in FORWARD:
        pytest.skip("custom_vjp functions have no forward mode")
    f, transformed = FUNCTIONS[name], TRANSFORMED[how]
    x = vnp.array([0.5, -1.0, 2.0])
    with nothing_compiled():
        actual = transformed(f, x)
    due = verax.jit(lambda x: transformed(f, x))(x)
    for a, b in zip(*map(verax.tree_util.tree_leaves, (actual, due)), strict=True):
        assert (a.dtype, a.weak_type) == (b.dtype, b.weak_type)
        np.testing.assert_allclose(a, b, 1e-5, 1e-6)


def test_what_jit_was_asked_for_is_compiled_in_rules_too() -> None:
    f = verax.jit(lambda x: vnp.sin(x) * 17.0)

    @verax.custom_jvp
    def g(x: Array) -> Array:
        return f(x)

    g.defjvp(lambda p, t: (f(*p), f(*p) * t[0]))
    before = verax.metrics()["compiles"]
    verax.grad(g)(0.5)
    assert verax.metrics()["compiles"] > before


def test_captured_values_and_constants_of_rules_are_what_they_were() -> None:
    table = np.arange(3.0, dtype=np.float32)

    def outer(scale: Array, x: Array) -> Any:
        @verax.custom_jvp
        def f(x: Array) -> Any:
            return scale * x + table

        f.defjvp(lambda p, t: (f(*p), t[0] * (10 + table)))
        return f(x).sum()

    scale, x = vnp.float32(2.0), vnp.ones(3)
    with nothing_compiled():
        by_scale, by_x = verax.grad(outer, (0, 1))(scale, x)
    np.testing.assert_allclose(by_scale, 3.0)
    np.testing.assert_allclose(by_x, 10 + table)


def test_rules_run_where_their_operands_are() -> None:
    device = verax.devices()[0]
    x = verax.device_put(vnp.array([0.5, -1.0]), device)
    with nothing_compiled():
        actual = verax.grad(lambda x: pushed(x).sum())(x)
    np.testing.assert_array_equal(actual, [1.0, 0.0])
    assert actual.devices() == {device}


def test_calls_of_rules_say_so_as_text() -> None:
    jaxpr = verax.make_jaxpr(lambda x: verax.jvp(pushed, (x,), (x,)))(1.0)
    assert "name=jvp_pushed" in str(jaxpr)
    assert "asked=False" in str(jaxpr)


def test_keywords_without_a_position_are_refused_outside_traces_too() -> None:
    def f(x: Any, y: Any, *, z: Any = None) -> Any:
        return x * y

    forms: list[Any] = [verax.custom_jvp(f), verax.custom_vjp(f)]
    forms[0].defjvp(lambda p, t: (p[0], t[0]))
    forms[1].defvjp(lambda x, y: (x, None), lambda r, ct: (ct, ct))
    forms.append(verax.custom_batching.custom_vmap(f))
    forms[2].def_vmap(lambda n, flags, x, y: (x * y, True))
    for form in forms:
        assert float(form(2.0, y=3.0)) == 6.0
        with pytest.raises(TypeError, match="resolved to positions: z"):
            form(2.0, 3.0, z=1.0)
        with pytest.raises(TypeError, match="missing a required argument: 'y'"):
            form(2.0)
