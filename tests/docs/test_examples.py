"""The worked extensions of docs/examples, held to what they are made to be."""

import doctest
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from docs.examples import (
    inversion,
    recurrence as recurrence_module,
)
from docs.examples.inversion import (
    INVERSES,
    NotInvertible,
    elementwise,
    inverse,
    with_log_det,
)
from docs.examples.recurrence import Kernel, pullback, recurrence, recurrence_p
from verax import Array, lax
from verax.extend import MissingRule
from verax.verify import check_function, check_primitive

DECAYS = np.linspace(0.1, 0.9, 6, dtype=np.float32).reshape(2, 3)
INPUTS = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.mark.slow
def test_recurrence_keeps_every_law() -> None:
    check_primitive(recurrence_p, cases=12, seed=1).raise_if_broken()


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


RANDOM = np.random.default_rng(0)
SQUARE = RANDOM.normal(size=(4, 4)).astype(np.float32)
LAYERS = 0.3 * RANDOM.normal(size=(3, 2, 2)).astype(np.float32)
POINT = vnp.asarray(RANDOM.normal(size=4).astype(np.float32))


def coupling(x: Any, weights: Any = LAYERS[0]) -> Any:
    a, b = x[..., :2], x[..., 2:]
    moved = b * vnp.exp(vnp.tanh(a @ weights)) + a @ weights
    return vnp.concatenate([a, moved], -1)[..., ::-1]


def layers(x: Any) -> Any:
    def layer(x: Any, weights: Any) -> Any:
        return vnp.sinh(coupling(x, weights) / 2), None

    return lax.scan(layer, x, vnp.asarray(LAYERS))[0]


def halves(x: Any) -> Any:
    first, second = vnp.split(x, 2)
    return vnp.concatenate((second * vnp.exp(first), 2 * first))


def rows(x: Any) -> Any:
    return lax.map(lambda row: vnp.tanh(row) * 2, x.reshape(2, 2))


FLOWS: dict[str, Callable[..., Any]] = {
    "affine": lambda x: 3 * x - 1,
    "subtracted": lambda x: 1 / (5 - x),
    "matrix on the right": lambda x: x @ SQUARE,
    "matrix on the left": lambda x: SQUARE @ x,
    "squashed": lambda x: verax.nn.sigmoid((x + 3) ** 3 / 50),
    "moved about": lambda x: vnp.roll(x, 1).reshape(2, 2).T.reshape(4) / (-2),
    "coupling": coupling,
    "halves": halves,
    "inner function": verax.jit(coupling),
    "loop over layers": layers,
    "loop over rows": rows,
    "running sums": lambda x: vnp.cumsum(verax.checkpoint(vnp.sinh)(x)),
    "running sums from the end": lambda x: lax.cumsum(2 * x, reverse=True),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", FLOWS)
def test_inverse_and_its_determinant(name: str) -> None:
    flow = FLOWS[name]
    y, log_det = verax.jit(with_log_det(flow))(POINT)
    x, back = verax.jit(inverse(flow, POINT))(y)
    np.testing.assert_allclose(x, POINT, rtol=1e-4, atol=1e-5)
    jacobian = np.asarray(verax.jacobian(flow)(POINT), np.float64).reshape(4, 4)
    want = np.linalg.slogdet(jacobian)[1]
    np.testing.assert_allclose([log_det, -back], [want, want], rtol=1e-4)


def test_inverse_composes() -> None:
    def density(weights: Any, y: Any) -> Any:
        x, log_det = inverse(lambda x: coupling(x, weights), POINT)(y)
        return -vnp.sum(x * x) / 2 + log_det

    ys = vnp.stack([POINT, 2 * POINT])
    slopes = verax.jit(verax.vmap(verax.grad(density), (None, 0)))(LAYERS[0], ys)
    direct = vnp.stack([verax.jacfwd(density)(LAYERS[0], y) for y in ys])
    np.testing.assert_allclose(slopes, direct, rtol=1e-4, atol=1e-5)
    laws = ["eager", "compiled", "jvp", "vjp", "vmap"]
    report = check_function(density, LAYERS[0], POINT, cases=3, laws=laws, seed=1)
    report.raise_if_broken()


@pytest.mark.parametrize(
    ("f", "error", "text"),
    [
        (lambda x: x + vnp.exp(x), NotInvertible, "two unknowns meet.*add at"),
        (lambda x: x[:2], NotInvertible, "an input that nothing uses"),
        (lambda x: (x, x), NotInvertible, "determined twice"),
        (lambda x: vnp.concatenate([x, x[:1]]), NotInvertible, "determined twice"),
        (lambda x: vnp.ones(4), NotInvertible, "determined twice"),
        (lambda x: x**2, NotInvertible, "the same for x and -x"),
        (vnp.cos, MissingRule, "cos has no rule in the table 'inverses'.*met at"),
    ],
)
def test_what_has_no_inverse(f: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        inverse(f, POINT)(f(POINT))


def test_inverse_takes_what_the_function_gives() -> None:
    for wrong in ((1.0, 2.0), vnp.ones(3)):
        with pytest.raises(TypeError, match="the inverse takes what the function"):
            inverse(lambda x: 2 * x, 1.0)(wrong)


def test_a_rule_more_inverts_more() -> None:
    table = INVERSES | {lax.cos_p: elementwise(lambda known, y: vnp.arccos(y))}
    x, log_det = inverse(vnp.cos, 0.5, table)(vnp.cos(0.5))
    np.testing.assert_allclose([x, log_det], [0.5, -np.log(np.sin(0.5))], rtol=1e-5)


@pytest.mark.parametrize("module", [inversion, recurrence_module])
def test_examples_of_docstrings(module: ModuleType) -> None:
    result = doctest.testmod(module)
    assert result.attempted
    assert not result.failed
