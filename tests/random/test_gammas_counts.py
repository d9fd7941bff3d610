"""Gamma and its relatives, counts and vectors: the numbers of jax 0.12, slopes."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import verax
from verax import random

KEY = random.key(42)
P = np.array([0.5, 2.0, 8.0], np.float32)
COV = np.array([[2.0, 0.3], [0.3, 1.0]], np.float32)
COUNTS = np.array([5.0, 100.0, 1000.0], np.float32)

type Draw = Callable[[], Any]

# JAX: gamma(key(42), P) and so on, as the hexadecimal bytes of the result.
FLOATS: dict[str, tuple[Draw, str]] = {
    "gamma": (lambda: random.gamma(KEY, P), "3bdc7f3f49d38b3f376e3141"),
    "gamma_approximate": (
        lambda: random.gamma(KEY, P, method="approximate"),
        "85e13e3e310de93f222f6641",
    ),
    "loggamma": (lambda: random.loggamma(KEY, P), "00180fba14f8b43dbffb1940"),
    "beta": (lambda: random.beta(KEY, P, 2.0), "0fc98c3e04bc093f35c66c3f"),
    "chisquare": (lambda: random.chisquare(KEY, P), "ce4f173f64c5293fab624541"),
    "f": (lambda: random.f(KEY, P, 5.0), "260a013d353d9c3dee3bdf3e"),
    "t": (lambda: random.t(KEY, P), "3a42dd3ec34870c0384fdd3f"),
    "dirichlet": (lambda: random.dirichlet(KEY, P), "99499b3df6b9a93d8f5f573f"),
    "generalized_normal": (
        lambda: random.generalized_normal(KEY, 1.5, (3,)),
        "2dd460bf401c53be508a943f",
    ),
    "ball": (lambda: random.ball(KEY, 3), "fc94a53e573e7b3d2873953c"),
    "binomial": (
        lambda: random.binomial(KEY, COUNTS, P / 10),
        "000000000000504100404844",
    ),
    "multinomial": (
        lambda: random.multinomial(KEY, 10, P / P.sum()),
        "000000000000803f00001041",
    ),
    "orthogonal": (
        lambda: random.orthogonal(KEY, 2),
        "6024c3bdd1d57e3fd1d57e3f6924c33d",
    ),
    "multivariate_normal": (
        lambda: random.multivariate_normal(KEY, P[:2], COV),
        "5981eb3eeed41c40",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", FLOATS)
@pytest.mark.usefixtures("little_effort")
def test_floats(name: str) -> None:
    draw, bits = FLOATS[name]
    actual = np.asarray(draw()).ravel()
    expected = np.frombuffer(bytes.fromhex(bits), actual.dtype)
    # A cancellation before the last logarithm or sum loses digits of its own.
    np.testing.assert_allclose(actual, expected, rtol=3e-6)


@pytest.mark.slow
def test_poisson() -> None:
    rates = np.array([0.5, 3.0, 20.0], np.float32)
    assert np.asarray(random.poisson(KEY, rates)).tolist() == [1, 2, 15]
    actual = random.poisson(KEY, rates, method="approximate")
    assert np.asarray(actual).tolist() == [0, 4, 21]


@pytest.mark.slow
def test_gamma_is_one_function_under_transformations() -> None:
    keys = random.split(KEY, 3)
    rows = np.asarray(verax.vmap(random.gamma)(keys, P))
    for i in range(3):
        np.testing.assert_allclose(rows[i], random.gamma(keys[i], P[i]), rtol=1e-6)
    jitted = verax.jit(lambda k, a: random.gamma(k, a))(KEY, P)
    np.testing.assert_array_equal(jitted, random.gamma(KEY, P))


def test_gamma_slope_is_that_of_its_quantile() -> None:
    slopes = verax.vmap(verax.grad(lambda a: random.gamma(KEY, a)))(P)
    logs = verax.vmap(verax.grad(lambda a: random.loggamma(KEY, a)))(P)
    samples = np.asarray(verax.vmap(lambda a: random.gamma(KEY, a))(P))
    level = verax.lax.igamma(P, samples)
    step = np.float32(1e-2)
    for sign in (1, -1):
        # Moving along the slope keeps the level of the distribution function.
        moved = verax.lax.igamma(P + sign * step, samples + sign * step * slopes)
        np.testing.assert_allclose(moved, level, atol=3e-4)
    # Samples of a = 1/2 come from another key of the loop in the two spaces.
    np.testing.assert_allclose(logs[1:], (slopes / samples)[1:], rtol=1e-4)


@pytest.mark.slow
def test_special_parameters() -> None:
    nan = float("nan")
    actual = random.binomial(
        KEY, np.array([0, -1, np.inf], np.float32), np.full(3, 0.3, np.float32)
    )
    np.testing.assert_array_equal(actual, [0.0, nan, np.inf])
    assert not random.poisson(KEY, np.zeros(3, np.float32)).any()
    assert random.dirichlet(KEY, np.zeros((2, 0), np.float32)).shape == (2, 0)


def test_errors_say_what_to_do() -> None:
    with pytest.raises(ValueError, match="must be one of exact, approximate"):
        random.gamma(KEY, 1.0, method="fast")
    with pytest.raises(
        ValueError, match="poisson got incompatible shapes for broadcasting"
    ):
        random.poisson(KEY, np.ones(3), (2,))
    with pytest.raises(ValueError, match=r"a covariance of shape \(..., n, n\)"):
        random.multivariate_normal(KEY, P, COV)
    with pytest.raises(ValueError, match="alpha must have at least one dimension"):
        random.dirichlet(KEY, 1.0)
    with pytest.raises(TypeError, match="n must be an integer"):
        random.orthogonal(KEY, 1.5)  # type: ignore[arg-type]  # the error is the test
