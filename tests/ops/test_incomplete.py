"""Incomplete gamma and beta functions, Bessel functions: ends of domains, accuracy."""

from collections.abc import Callable

import numpy as np
import pytest
import scipy.special

import verax
from verax import lax

INF, NAN = np.inf, np.nan
A = np.array([0, 1, 0, -1, 1, 1, INF, INF, NAN, 1], np.float32)
X = np.array([1, 0, 0, 1, -1, INF, 1, INF, 1, NAN], np.float32)
RANDOM = np.random.default_rng(0)
MANY_A, MANY_B = RANDOM.uniform(0.1, 30, (2, 500)).astype(np.float32)
MANY_X = RANDOM.uniform(0.01, 40, 500).astype(np.float32)


def eager(function: Callable[..., object], *xs: object) -> object:
    return function(*xs)


def jit(function: Callable[..., object], *xs: object) -> object:
    return verax.jit(function)(*xs)


RUNS = pytest.mark.parametrize("run", [eager, jit])


@RUNS
def test_ends(run: Callable[..., object]) -> None:
    wanted = {
        lax.igamma: [1, 0, NAN, NAN, NAN, 1, 0, NAN, NAN, NAN],
        lax.igammac: [0, 1, NAN, NAN, NAN, 0, 1, NAN, NAN, NAN],
        lax.igamma_grad_a: [NAN, 0, NAN, NAN, NAN, 0, NAN, NAN, NAN, NAN],
        lax.random_gamma_grad: [NAN, 0] + [NAN] * 8,
    }
    for function, want in wanted.items():
        np.testing.assert_array_equal(np.asarray(run(function, A, X)), want)


@RUNS
def test_ends_of_beta(run: Callable[..., object]) -> None:
    a = np.array([1, 1, 1, 1, 0, 1, INF, 1, -1, 0, INF, INF, 0, 1, INF], np.float32)
    b = np.array([1, 1, 1, 1, 1, 0, 1, INF, 1, 0, 1, 1, 1, 0, 1], np.float32)
    x = np.array([0, 1, -1, 2, *[0.5] * 6, 1, 0, 0, 1, 1.5], np.float32)
    want = [0, 1, NAN, NAN, 1, 0, 0, 1, NAN, NAN, 1, 0, 0, 1, NAN]
    np.testing.assert_array_equal(np.asarray(run(lax.betainc, a, b, x)), want)


def test_compiled_accuracy() -> None:
    for function, want in (
        (lax.igamma, scipy.special.gammainc),
        (lax.igammac, scipy.special.gammaincc),
    ):
        found = np.asarray(verax.jit(function)(MANY_A, MANY_X))
        np.testing.assert_allclose(found, want(MANY_A, MANY_X), atol=1e-5)
    x = MANY_X / 40
    found = np.asarray(verax.jit(lax.betainc)(MANY_A, MANY_B, x))
    want_beta = scipy.special.betainc(MANY_A, MANY_B, x)
    np.testing.assert_allclose(found, want_beta, atol=5e-5)


@RUNS
def test_slopes_by_the_parameter(run: Callable[..., object]) -> None:
    a, x, h = MANY_A.astype(float), MANY_X.astype(float), 1e-5
    difference = (
        scipy.special.gammainc(a + h, x) - scipy.special.gammainc(a - h, x)
    ) / (2 * h)
    found = np.asarray(run(lax.igamma_grad_a, MANY_A, MANY_X))
    np.testing.assert_allclose(found, difference, atol=2e-5)
    density = np.exp((a - 1) * np.log(x) - x - scipy.special.gammaln(a))
    sample = np.asarray(run(lax.random_gamma_grad, MANY_A, MANY_X))
    np.testing.assert_allclose(sample * density, -difference, atol=2e-5)


@RUNS
def test_slopes_by_the_parameter_are_zero_at_both_ends(
    run: Callable[..., object],
) -> None:
    a = np.array([0.5, 1.0, 2.5, 7.0], np.float32)
    for end in (0.0, INF):
        found = np.asarray(run(lax.igamma_grad_a, a, np.full(4, end, np.float32)))
        assert found.tolist() == [0.0] * 4


@RUNS
def test_bessel(run: Callable[..., object]) -> None:
    x = np.array([0, -0.0, 1, -2, 8, 8.5, 300, 1e30, INF, -INF, NAN], np.float32)
    for function, want in (
        (lax.bessel_i0e, scipy.special.i0e),
        (lax.bessel_i1e, scipy.special.i1e),
    ):
        np.testing.assert_allclose(np.asarray(run(function, x)), want(x), rtol=5e-6)


@RUNS
def test_empty_operands(run: Callable[..., object]) -> None:
    none = np.zeros((0,), np.float32)
    assert np.asarray(run(lax.igamma, none, none)).shape == (0,)


def test_underived_parameters_say_so() -> None:
    with pytest.raises(ValueError, match="betainc in a"):
        verax.grad(lax.betainc)(2.0, 3.0, 0.4)
