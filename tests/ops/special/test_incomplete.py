"""Incomplete gamma and beta functions, Bessel functions: ends of domains, accuracy."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import scipy.special

import verax
import verax.numpy as vnp
from property_tests.levels import NIGHTLY, by_turns
from verax import lax

INF, NAN = np.inf, np.nan
A = np.array([0, 1, 0, -1, 1, 1, INF, INF, NAN, 1], np.float32)
X = np.array([1, 0, 0, 1, -1, INF, 1, INF, 1, NAN], np.float32)
RANDOM = np.random.default_rng(0)
MANY_A, MANY_B = RANDOM.uniform(0.1, 30, (2, 500)).astype(np.float32)
MANY_X = RANDOM.uniform(0.01, 40, 500).astype(np.float32)
TABLE = Path(__file__).parents[2] / "goldens" / "incomplete_gamma.txt"
"""Points around all places where one method ends and the other begins."""
GAMMA = (lax.igamma, lax.igammac, lax.igamma_grad_a, lax.random_gamma_grad)


def eager(function: Callable[..., object], *xs: object) -> object:
    return function(*xs)


def jit(function: Callable[..., object], *xs: object) -> object:
    return verax.jit(function)(*xs)


RUNS = pytest.mark.parametrize("run", [eager, jit])


def close(result: object, want: np.ndarray) -> None:
    """Equal but for rounding errors of a few dozen operations in the dtype."""
    array = np.asarray(result)
    single = array.dtype == np.float32
    rtol, atol = (6e-6, 2e-6) if single else (1e-12, 1e-40)
    np.testing.assert_allclose(array, want, rtol, atol)
    if single:  # the tails have digits, too
        np.testing.assert_allclose(array, want, 5e-4, 1e-33)


@pytest.mark.slow
@RUNS
def test_ends(run: Callable[..., object]) -> None:
    expected = {
        lax.igamma: [1, 0, NAN, NAN, NAN, 1, 0, NAN, NAN, NAN],
        lax.igammac: [0, 1, NAN, NAN, NAN, 0, 1, NAN, NAN, NAN],
        lax.igamma_grad_a: [NAN, 0, NAN, NAN, NAN, 0, NAN, NAN, NAN, NAN],
        lax.random_gamma_grad: [NAN, 0] + [NAN] * 8,
    }
    for function, want in expected.items():
        np.testing.assert_array_equal(np.asarray(run(function, A, X)), want)


@RUNS
def test_ends_of_beta(run: Callable[..., object]) -> None:
    a = np.array([1, 1, 1, 1, 0, 1, INF, 1, -1, 0, INF, INF, 0, 1, INF], np.float32)
    b = np.array([1, 1, 1, 1, 1, 0, 1, INF, 1, 0, 1, 1, 1, 0, 1], np.float32)
    x = np.array([0, 1, -1, 2, *[0.5] * 6, 1, 0, 0, 1, 1.5], np.float32)
    want = [0, 1, NAN, NAN, 1, 0, 0, 1, NAN, NAN, 1, 0, 0, 1, NAN]
    np.testing.assert_array_equal(np.asarray(run(lax.betainc, a, b, x)), want)


@pytest.mark.slow
def test_compiled_accuracy() -> None:
    for function, want in (
        (lax.igamma, scipy.special.gammainc),
        (lax.igammac, scipy.special.gammaincc),
    ):
        actual = np.asarray(verax.jit(function)(MANY_A, MANY_X))
        np.testing.assert_allclose(actual, want(MANY_A, MANY_X), atol=1e-5)
    x = MANY_X / 40
    actual = np.asarray(verax.jit(lax.betainc)(MANY_A, MANY_B, x))
    want_beta = scipy.special.betainc(MANY_A, MANY_B, x)
    np.testing.assert_allclose(actual, want_beta, atol=5e-5)


@pytest.mark.slow
@RUNS
@pytest.mark.parametrize("dtype", by_turns(["float32", "float64"], 2, NIGHTLY))
def test_table_of_incomplete_gamma_functions(
    run: Callable[..., object], dtype: str
) -> None:
    a, x, *expected = np.loadtxt(TABLE).T
    with verax.enable_x64(dtype == "float64"):
        for function, want in zip(GAMMA, expected, strict=True):
            close(run(function, a.astype(dtype), x.astype(dtype)), want)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_beta_where_the_sides_meet(dtype: str) -> None:
    sizes = [0.25, 0.75, 1, 1.5, 3, 7, 11.5, 20]
    parts = [1e-12, 0.25, 0.9, 0.996, 1, 1.004, 1.1, 2]
    a, b, part = map(np.ravel, np.meshgrid(sizes, sizes, parts))
    x = np.minimum((a + 1) / (a + b + 2) * part, 63 / 64).astype(dtype)
    a, b = a.astype(dtype), b.astype(dtype)
    with verax.enable_x64(dtype == "float64"):
        actual = np.asarray(verax.jit(lax.betainc)(a, b, x))
    want = scipy.special.betainc(*(v.astype(np.float64) for v in (a, b, x)))
    rtol, atol = (1e-4, 2e-5) if dtype == "float32" else (1e-12, 0.0)
    np.testing.assert_allclose(actual, want, rtol, atol)


@pytest.mark.slow
@pytest.mark.parametrize("function", [lax.igamma, lax.igammac])
def test_large_parameters_take_as_many_steps_as_they_need(
    function: Callable[..., object],
) -> None:
    """The loops stopped after 2,000."""
    a = np.array([2.5e3, 1e6, 1e6, 1e6], np.float32)
    x = np.array([2.4e3, 0.999e6, 1e6, 1.001e6], np.float32)
    below = scipy.special.gammainc(a.astype(float), x.astype(float))
    want = below if function is lax.igamma else 1 - below
    np.testing.assert_allclose(np.asarray(verax.jit(function)(a, x)), want, atol=2e-5)


@pytest.mark.slow
@RUNS
def test_slopes_by_the_parameter(run: Callable[..., object]) -> None:
    a, x, h = MANY_A.astype(float), MANY_X.astype(float), 1e-5
    difference = (
        scipy.special.gammainc(a + h, x) - scipy.special.gammainc(a - h, x)
    ) / (2 * h)
    actual = np.asarray(run(lax.igamma_grad_a, MANY_A, MANY_X))
    np.testing.assert_allclose(actual, difference, atol=2e-5)
    density = np.exp((a - 1) * np.log(x) - x - scipy.special.gammaln(a))
    sample = np.asarray(run(lax.random_gamma_grad, MANY_A, MANY_X))
    np.testing.assert_allclose(sample * density, -difference, atol=2e-5)


@RUNS
def test_slopes_by_the_parameter_are_zero_at_both_ends(
    run: Callable[..., object],
) -> None:
    a = np.array([0.5, 1.0, 2.5, 7.0], np.float32)
    for end in (0.0, INF):
        actual = np.asarray(run(lax.igamma_grad_a, a, np.full(4, end, np.float32)))
        assert actual.tolist() == [0.0] * 4


@RUNS
def test_bessel(run: Callable[..., object]) -> None:
    x = np.array([0, -0.0, 1, -2, 8, 8.5, 300, 1e30, INF, -INF, NAN], np.float32)
    for function, want in (
        (lax.bessel_i0e, scipy.special.i0e),
        (lax.bessel_i1e, scipy.special.i1e),
    ):
        np.testing.assert_allclose(np.asarray(run(function, x)), want(x), rtol=5e-6)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_compiled_bessel_functions_to_the_last_digits(dtype: str) -> None:
    far = [8 - 1e-6, 8 + 1e-6, 50, 300, 1e5, 1e15, 1e20, 1e-3, 1e-8]
    x = np.concatenate([np.linspace(-20, 20, 641), far]).astype(dtype)
    with verax.enable_x64(dtype == "float64"):
        for function, want in (
            (lax.bessel_i0e, scipy.special.i0e),
            (lax.bessel_i1e, scipy.special.i1e),
        ):
            actual = np.asarray(verax.jit(function)(x))
            exact = want(x.astype(np.float64))
            np.testing.assert_allclose(actual, exact, 32 * np.finfo(dtype).eps, 0)


@RUNS
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_empty_operands(run: Callable[..., object], dtype: str) -> None:
    none = vnp.zeros((0,), dtype)
    for function in (lax.igamma, lax.bessel_i1e):
        operands = (none, none) if function is lax.igamma else (none,)
        actual = run(function, *operands)
        assert isinstance(actual, verax.Array)
        assert (actual.shape, str(actual.dtype)) == ((0,), dtype)


def test_underived_parameters_say_so() -> None:
    with pytest.raises(ValueError, match="betainc with respect to a"):
        verax.grad(lax.betainc)(2.0, 3.0, 0.4)
