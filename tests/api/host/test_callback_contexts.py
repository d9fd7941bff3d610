"""Functions of the user's see his context variables and his NumPy error state.

Whatever is done to the program around a callback, it is called as if it stood where the
program is called; what it sets stays set, as under jax.
"""

import contextvars
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from verax import lax
from verax.experimental import io_callback

type Fun = Callable[[Any], Any]

GIVEN = contextvars.ContextVar("GIVEN", default="nothing")
SET = contextvars.ContextVar("SET", default="nothing")
SCALAR = verax.ShapeDtypeStruct((), np.float32)
X = np.float32(2)
XS = np.ones(2, np.float32)

seen: list[tuple[str, str, int]] = []


def note(x: Any) -> Any:
    seen.append((GIVEN.get(), np.geterr()["divide"], threading.get_ident()))
    SET.set("set inside")
    return np.asarray(x)


def pure(x: Any) -> Any:
    return verax.pure_callback(note, SCALAR, x, vmap_method="sequential")


def shown(x: Any) -> Any:
    verax.debug.callback(note, x)
    return x * 2


def effect(x: Any) -> Any:
    return io_callback(note, SCALAR, x)


def with_derivative(fun: Fun) -> Fun:
    """`fun`, whose derivative calls it too."""
    ruled: Any = verax.custom_jvp(lambda x: fun(x))

    def rule(primals: Any, tangents: Any) -> Any:
        return ruled(*primals), tangents[0] * fun(lax.stop_gradient(primals[0]))

    ruled.defjvp(rule)
    actual: Fun = ruled
    return actual


def scanned(fun: Fun) -> Fun:
    return lambda x: lax.scan(lambda c, _: (fun(c), None), x, None, length=2)[0]


def branching(fun: Fun) -> Fun:
    """Asks, while it is traced for a derivative, for the value of the callback."""
    return lambda x: x * 2 if fun(x) > -1 else x


WAYS: dict[str, Callable[[Fun], Any]] = {
    "eager": lambda f: f(X),
    "vmap": lambda f: verax.vmap(f)(XS),
    "jit": lambda f: verax.jit(f)(X),
    "disabled": lambda f: without_jit(f),
    "jit of vmap": lambda f: verax.jit(verax.vmap(f))(XS),
    "cond": lambda f: lax.cond(True, f, f, X),
    "scan": lambda f: scanned(f)(X),
    "vmap of scan": lambda f: verax.vmap(scanned(f))(XS),
    "map": lambda f: lax.map(f, XS),
    "placed": lambda f: f(verax.device_put(X, verax.devices()[0])),
}
DERIVATIVES: dict[str, Callable[[Fun], Any]] = {
    "grad": lambda f: verax.grad(f)(X),
    "jvp": lambda f: verax.jvp(f, (X,), (X,)),
    "vmap of grad": lambda f: verax.vmap(verax.grad(f))(XS),
    "grad of jit": lambda f: verax.grad(verax.jit(f))(X),
    "jit of grad": lambda f: verax.jit(verax.grad(f))(X),
    "grad of checkpoint": lambda f: verax.grad(verax.checkpoint(f))(X),
    "linearize": lambda f: verax.linearize(f, X)[1](X),
    "grad of scan": lambda f: verax.grad(scanned(f))(X),
    "grad of a branch": lambda f: verax.grad(branching(f))(X),
    "second derivative": lambda f: verax.grad(verax.grad(f))(X),
}


def without_jit(fun: Fun) -> Any:
    with verax.disable_jit():
        return verax.jit(fun)(X)


def check(run: Callable[[], object]) -> None:
    """Run it in a context of the user's, and see whether the callback was there."""

    def inside() -> None:
        GIVEN.set("given")
        seen.clear()
        with np.errstate(divide="raise"):
            verax.block_until_ready(run())
            verax.effects_barrier()
            assert np.geterr()["divide"] == "raise"
        assert set(seen) == {("given", "raise", threading.get_ident())}
        assert SET.get() == "set inside"

    contextvars.copy_context().run(inside)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("fun", [pure, shown, effect])
def test_a_callback_is_called_in_the_context_of_the_call(fun: Fun, way: str) -> None:
    check(lambda: WAYS[way](fun))


@pytest.mark.parametrize("way", DERIVATIVES)
@pytest.mark.parametrize("fun", [pure, shown, effect])
def test_so_it_is_under_derivatives(fun: Fun, way: str) -> None:
    if fun is effect and way == "grad of a branch":
        pytest.skip("Python cannot branch on the value of an effect that is to come")
    check(lambda: DERIVATIVES[way](fun if fun is shown else with_derivative(fun)))


def test_an_error_that_numpy_raises_in_a_callback_is_the_users() -> None:
    def divided(x: Any) -> Any:
        return np.float32(1) / np.asarray(x)

    def fun(x: Any) -> Any:
        return verax.pure_callback(divided, SCALAR, x, vmap_method="sequential")

    zeros = vnp.zeros(2)
    with np.errstate(divide="raise"):
        with pytest.raises(RuntimeError, match="divide by zero"):
            verax.vmap(fun)(zeros)
        assert vnp.isinf(1 / zeros).all(), "verax's own arithmetic reports nothing"
    with np.errstate(divide="ignore"):
        assert vnp.isinf(verax.vmap(fun)(zeros)).all()


def test_a_constant_callback_is_not_called_by_the_rewriting() -> None:
    calls = []

    def fun(x: Any) -> Any:
        calls.append(1)
        return np.asarray(x)

    step = verax.jit(lambda x: x + verax.pure_callback(fun, SCALAR, np.float32(3)))
    step.lower(X)
    assert not calls
    assert step(X) == 5
