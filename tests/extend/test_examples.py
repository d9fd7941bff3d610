"""The worked extensions of docs/examples, held to what they are made to be."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from docs.examples.recurrence import Kernel, pullback, recurrence, recurrence_p
from docs.examples.taylor import DERIVED, TAYLOR, taylor
from verax import Array, lax
from verax.verify import check_function, check_primitive

DECAYS = np.linspace(0.1, 0.9, 6, dtype=np.float32).reshape(2, 3)
INPUTS = np.arange(6, dtype=np.float32).reshape(2, 3)


def test_recurrence_keeps_every_law() -> None:
    check_primitive(recurrence_p, cases=20, seed=1).raise_if_broken()


@pytest.mark.parametrize("kernel", ["host", "loop"])
@pytest.mark.parametrize("reverse", [False, True])
def test_recurrence_is_its_loop(kernel: Kernel, reverse: bool) -> None:
    def f(a: Any, b: Any) -> Array:
        return recurrence(a, b, reverse=reverse, kernel=kernel)

    want = np.zeros_like(INPUTS)
    state = np.zeros(2, np.float32)
    for t in (2, 1, 0) if reverse else (0, 1, 2):
        state = DECAYS[:, t] * state + INPUTS[:, t]
        want[:, t] = state
    np.testing.assert_allclose(f(DECAYS, INPUTS), want, rtol=1e-6)
    np.testing.assert_allclose(verax.jit(f)(DECAYS, INPUTS), want, rtol=1e-6)
    rows = verax.jit(verax.vmap(f, (1, None), 1))(DECAYS.T, INPUTS[0])
    np.testing.assert_allclose(rows[:, 0], want[0], rtol=1e-6)


def test_recurrence_pullbacks_agree() -> None:
    a, b, g = map(vnp.asarray, (DECAYS, INPUTS, np.cos(INPUTS)))
    _, pulled = verax.vjp(recurrence, a, b)
    for derived, by_hand in zip(pulled(g), pullback(a, b, g), strict=True):
        np.testing.assert_allclose(derived, by_hand, rtol=1e-6)


def test_recurrence_refuses_other_shapes() -> None:
    with pytest.raises(TypeError, match="one shape and one float dtype"):
        recurrence(vnp.ones(3), vnp.ones(4))


def looped(x: Any) -> Any:
    _, ys = lax.scan(lambda c, a: (vnp.sin(c) * a + x, c * c), x, vnp.arange(3.0))
    return ys.sum()


def counted(x: Any) -> Any:
    def step(carry: Any) -> Any:
        i, y = carry
        return i + 1, y * x + vnp.cos(y)

    return lax.while_loop(lambda carry: carry[0] < 3, step, (0, x))[1]


def solved(x: Any) -> Array:
    matrix = vnp.array([[2.0, x], [x * x, x + 1]])
    return vnp.linalg.inv(matrix).sum() + vnp.linalg.det(matrix)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "exp": vnp.exp,
    "log": vnp.log,
    "sqrt": vnp.sqrt,
    "sin": vnp.sin,
    "cosh": verax.jit(vnp.cosh),
    "tanh": vnp.tanh,
    "rational": lambda x: (x - 3) / (1 + x * x),
    "power": lambda x: x**3.5,
    "lgamma": lax.lgamma,
    "softplus": verax.nn.softplus,
    "branches": lambda x: lax.cond(x > 0, lambda y: y * x, vnp.sin, x),
    "scan": looped,
    "while": counted,
    "linear algebra": solved,
    "an own primitive": lambda x: recurrence(
        x * vnp.arange(1.0, 4.0), vnp.stack([x, x * x, vnp.exp(x)])
    ).sum(),
}


def by_nesting(f: Callable[..., Any], x: Array, order: int) -> list[float]:
    """Coefficients by jvp of jvp."""

    def slope(g: Callable[..., Any]) -> Callable[..., Any]:
        return lambda t: verax.jvp(g, (t,), (vnp.ones_like(t),))[1]

    found = []
    for k in range(order + 1):
        found.append(float(f(x)) / math.factorial(k))
        f = slope(f)
    return found


@pytest.mark.parametrize("table", [TAYLOR, DERIVED], ids=["closed", "derived"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_taylor_is_nested_jvp(name: str, table: Any) -> None:
    f, order = FUNCTIONS[name], 3
    with verax.enable_x64(True):
        x = vnp.array(0.7)
        curve: list[Any] = [(1.0,), *[(None,)] * (order - 1)]
        value, found = taylor(f, (x,), curve, table)
        want = by_nesting(f, x, order)
    np.testing.assert_allclose([value, *found], want, rtol=1e-9)


def test_taylor_composes() -> None:
    def second(x: Any) -> Any:
        return taylor(lambda y: vnp.tanh(y) * vnp.sin(y), (x,), [(1.0,), (None,)])[1][1]

    def plain(x: Any) -> Any:
        return verax.grad(verax.grad(lambda y: vnp.tanh(y) * vnp.sin(y)))(x) / 2

    xs = vnp.linspace(-1.0, 1.0, 5)
    for f in (second, verax.grad(second)):
        g = plain if f is second else verax.grad(plain)
        np.testing.assert_allclose(
            verax.jit(verax.vmap(f))(xs), verax.vmap(g)(xs), rtol=1e-4, atol=1e-5
        )
    laws = ["eager", "compiled", "jvp", "vjp", "vmap"]
    check_function(second, 0.5, cases=4, laws=laws, seed=1).raise_if_broken()


def test_taylor_through_a_loop_does_not_grow() -> None:
    def size(length: int) -> int:
        def f(x: Any) -> Any:
            steps = vnp.arange(float(length))
            return lax.scan(lambda c, a: (vnp.sin(c) + a, c), x, steps)[0]

        program = verax.make_jaxpr(lambda x: taylor(f, (x,), [(1.0,), (None,)]))(0.1)
        return len(str(program).splitlines())

    assert size(3) == size(300)


def test_taylor_of_trees_and_constants() -> None:
    def f(tree: Any) -> Any:
        return {"sum": tree["x"] + tree["y"], "fixed": vnp.ones(2)}

    curve = ({"x": vnp.ones(2), "y": None},)
    value, (first,) = taylor(f, ({"x": vnp.zeros(2), "y": vnp.ones(2)},), [curve])
    assert value["sum"].tolist() == [1.0, 1.0]
    assert first["sum"].tolist() == [1.0, 1.0]
    assert first["fixed"].tolist() == [0.0, 0.0]
