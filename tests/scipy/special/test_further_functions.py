"""The further functions of `verax.scipy.special`, against SciPy in both precisions."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.special

import verax
import verax.numpy as vnp
from property_tests.levels import NIGHTLY, by_turns
from verax.scipy import special

INFINITE = [0.0, np.inf, -np.inf, np.nan]
LINE = np.array(
    [-9.0, -4.0, -1.5, -0.3, -1e-5, 1e-5, 0.3, 1.0, 1.5, 4.0, 6.9, 7.1, 50.0]
)
POSITIVE = np.array([1e-5, 0.1, 0.5, 0.99, 1.0, 1.01, 2.0, 2.01, 3.9, 4.1, 12.0, 60.0])
UNARY: dict[str, np.ndarray] = {
    "dawsn": np.concatenate([LINE, INFINITE]),
    "erfcinv": np.array([0.0, 1e-30, 0.2, 1.0, 1.7, 2.0, -0.1, 2.1, np.nan]),
    "erfcx": np.concatenate([LINE, INFINITE]),
    "exp1": np.concatenate([POSITIVE, [0.0, np.inf, np.nan]]),
    "expi": np.concatenate([LINE, INFINITE, [45.0, 80.0]]),
    "loggamma": np.concatenate([POSITIVE, INFINITE[1:], [-1.0, -0.5]]),
    "ndtri": np.array([0.0, 1e-30, 0.1, 0.14, 0.5, 0.9, 1.0, -0.1, 1.1, np.nan]),
    "spence": np.concatenate([POSITIVE, [0.0, -1.0, np.nan]]),
}


def close(result: Any, want: Any, tolerance: float, small: float = 0.0) -> None:
    np.testing.assert_allclose(np.asarray(result), want, tolerance, small)


def compare(name: str, *args: Any, tolerance: float = 1e-12) -> None:
    ours, theirs = getattr(special, name), getattr(scipy.special, name)
    with np.errstate(all="ignore"), verax.enable_x64(True):
        close(ours(*args), theirs(*args), tolerance, 1e-300)
    narrow = [np.asarray(x).astype(np.float32) for x in args]
    actual = ours(*narrow)
    assert actual.dtype == np.float32
    with np.errstate(all="ignore"):
        want = theirs(*[x.astype(np.float64) for x in narrow])
        close(actual, want.astype(np.float32), 3e-5, 1e-37)
        close(verax.jit(ours)(*narrow), np.asarray(actual), 2e-5, 2e-6)


@pytest.mark.slow
@pytest.mark.parametrize("name", UNARY)
def test_unary(name: str) -> None:
    compare(name, UNARY[name])


def test_slopes_at_special_points() -> None:
    slopes: list[tuple[Callable[..., Any], float, float]] = [
        (special.dawsn, 0.0, 1.0),
        (special.erfcx, 0.0, -2 / math.sqrt(math.pi)),
        (special.ndtri, 0.5, math.sqrt(2 * math.pi)),
        (special.spence, 1.0, -1.0),
        (lambda x: special.sici(x)[0], 0.0, 1.0),
        (lambda x: special.fresnel(x)[1], 0.0, 1.0),
        (lambda x: special.fresnel(x)[0], 5.0, math.sin(12.5 * math.pi)),
        (lambda x: special.sici(x)[1], 5.0, math.cos(5) / 5),
        (special.erfcx, 1e4, -1 / math.sqrt(math.pi) * 1e-8),
        (special.dawsn, 1e4, -0.5e-8),
    ]
    for function, x, want in slopes:
        assert float(verax.grad(function)(x)) == pytest.approx(want, 1e-5)


def test_pairs() -> None:
    x = np.concatenate([LINE, [0.0, np.inf, np.nan]])
    with verax.enable_x64(True), np.errstate(all="ignore"):
        for name in ("sici", "fresnel"):
            at = abs(x) if name == "sici" else x
            actual, want = getattr(special, name)(at), getattr(scipy.special, name)(at)
            for one, other in zip(actual, want, strict=True):
                close(one, other, 1e-11)
        close(special.sici(-2.0)[0], -scipy.special.sici(2.0)[0], 1e-12)


@pytest.mark.slow
def test_binary() -> None:
    n, x = np.meshgrid([0.0, 1.0, 2.0, 5.0, 30.0], [*POSITIVE, 0.0, np.inf, -1.0])
    compare("expn", n[:-1], x[:-1])
    assert np.isnan(np.asarray(special.expn(n[-1], x[-1]))).all()
    h, a = np.meshgrid(
        [0.0, 0.1, 1.0, 3.0, -2.0, 6.0], [0.0, 0.2, 1.0, 1.5, -3.0, np.inf]
    )
    compare("owens_t", h, a)
    z, m = np.meshgrid(
        [-3.0, -2.5, -0.5, 0.5, 1.0, 2.7], [-2.0, -1.0, 0.0, 0.5, 1, 2, 4]
    )
    compare("poch", z, m)
    many, k = np.meshgrid(np.arange(-1.0, 12.0), np.arange(-1.0, 7.0))
    compare("comb", many, k)
    again = special.comb(many[1:, 2:], k[1:, 2:], repetition=True)
    want = scipy.special.comb(many[1:, 2:], k[1:, 2:], repetition=True)
    close(again, want, 1e-5)
    with verax.enable_x64(True):
        for name in ("owens_t", "poch"):
            verax.test_util.check_grads(
                getattr(special, name), (4.3, 1.7), 1, rtol=1e-5
            )
        slope = verax.grad(special.expn, 1)
        close(slope(3.0, 0.7), -scipy.special.expn(2, 0.7), 1e-12)


def test_faddeeva() -> None:
    random = np.random.default_rng(0)
    z = (random.normal(size=200) + 1j * random.normal(size=200)) * np.geomspace(
        0.1, 9, 200
    )
    z = np.concatenate([z[z.imag > -4], [0.0, 3.0, 2j, 1e9, 1e9j, 0.5117j, 1.5351]])
    with verax.enable_x64(True), np.errstate(all="ignore"):
        want = scipy.special.wofz(z)
        close(special.wofz(z), want, 1e-12)
        near = z[abs(z) < 5]
        got = verax.jvp(special.wofz, (near,), (np.ones_like(near),))[1]
        close(got, -2 * near * scipy.special.wofz(near) + 2j / math.sqrt(math.pi), 1e-9)
        close(special.erfcx(near), scipy.special.erfcx(near), 1e-12)
        close(special.loggamma(z), scipy.special.loggamma(z), 1e-10, 1e-12)
    assert special.wofz(1.0).dtype == np.complex64


@pytest.mark.slow
def test_hypergeometric() -> None:
    a, b, x = np.meshgrid(
        [0.5, 1.0, 2.3, -2.0], [0.5, 3.0, 5.5], [-100, -5, 0, 0.3, 30, 61.0]
    )
    with verax.enable_x64(True), np.errstate(all="ignore"):
        close(special.hyp1f1(a, b, x), scipy.special.hyp1f1(a, b, x), 1e-11)
        grid = (
            [0.5, 1.0, -2.0],
            [0.5, 1.2],
            [1.9, 6.1],
            [-50, -0.9, 0, 0.3, 0.89, 0.97, 1],
        )
        args = np.meshgrid(*grid)
        close(special.hyp2f1(*args), scipy.special.hyp2f1(*args), 1e-9)
        whole = special.hyp2f1(0.5, 0.5, 1.0, 0.99)
        close(whole, scipy.special.hyp2f1(0.5, 0.5, 1.0, 0.99), 1e-9)
        assert np.isposinf(np.asarray(special.hyp2f1(0.5, 0.5, 1.5, 1.5)))
        verax.test_util.check_grads(
            special.hyp1f1, (0.7, 1.3, 2.1), 1, ("rev",), rtol=1e-5
        )
        verax.test_util.check_grads(
            special.hyp2f1, (0.7, 1.3, 2.1, 0.4), 1, ("rev",), rtol=1e-5
        )


@pytest.mark.slow
def test_harmonics() -> None:
    z = np.linspace(-20, 20, 21)
    n, m = np.meshgrid(np.arange(6), np.arange(-6, 7))
    theta = np.linspace(0, math.pi, n.size).reshape(n.shape)
    with verax.enable_x64(True):
        actual = special.bessel_jn(z, v=4, n_iter=70)
        close(actual, [scipy.special.jn(v, z) for v in range(5)], 1e-11, 1e-13)
        for polar in (theta, theta + 4):
            y = special.sph_harm_y(n, m, polar, 0.7)
            close(y, scipy.special.sph_harm_y(n, m, polar, 0.7), 1e-11, 1e-13)
        cut = verax.jit(lambda t: special.sph_harm_y(3, 2, t, 0.7, n_max=5))(theta)
        close(cut, scipy.special.sph_harm_y(3, 2, theta, 0.7), 1e-11, 1e-13)
        verax.test_util.check_grads(
            lambda z: special.bessel_jn(z, v=2), (np.array([0.5, 3.0]),), 1, rtol=1e-5
        )
        verax.test_util.check_grads(
            lambda t: vnp.abs(special.sph_harm_y(4, 2, t, 0.3)), (0.8,), 1, rtol=1e-5
        )


@pytest.mark.slow
@pytest.mark.parametrize("last", by_turns([0, 1, 7, 60], 2, NIGHTLY))
def test_bessel_functions_of_every_size(last: int) -> None:
    z = np.array([-300, -40, -24.9, -1e-30, 0, 1e-9, 1e-3, 0.5, 8, 25.1, 59, 61, 1e4])
    want = [scipy.special.jv(v, z) for v in range(last + 1)]
    with verax.enable_x64(True):
        close(special.bessel_jn(z, v=last), want, 1e-9, 1e-13)
    z = z[:-1].astype(np.float32)
    want = [scipy.special.jv(v, z.astype(float)) for v in range(last + 1)]
    close(special.bessel_jn(z, v=last, n_iter=2), want, 1e-4, 1e-6)
    ends = np.array([np.inf, -np.inf, np.nan], np.float32)
    assert np.isnan(np.asarray(special.bessel_jn(ends, v=last))).all()


@pytest.mark.parametrize("name", ["xlogy", "xlog1py"])
def test_second_derivatives_of_entropies_at_zero(name: str) -> None:
    function = getattr(special, name)
    verax.test_util.check_grads(function, (0.0, 3.0), 2, atol=0.01, rtol=0.01)
    slope = 1 / (3.0 + (name == "xlog1py"))
    assert float(verax.grad(verax.grad(function, 1), 0)(0.0, 3.0)) == np.float32(slope)


def test_bernoulli_and_wrong_calls() -> None:
    with verax.enable_x64(True):
        actual = np.asarray(special.bernoulli(12))
        close(actual, scipy.special.bernoulli(12), 1e-9, 1e-12)
    wrong: list[tuple[type[Exception], Any]] = [
        (ValueError, lambda: special.bernoulli(-1)),
        (ValueError, lambda: special.bessel_jn(1.0, v=-1)),
        (ValueError, lambda: special.sph_harm_y(1, 0, 0.1, 0.1, diff_n=1)),
        (TypeError, lambda: special.dawsn(1j)),
        (TypeError, lambda: special.ndtri(1j)),
        (TypeError, lambda: special.expi("1")),  # type: ignore[arg-type]  # a test
        (ValueError, lambda: special.owens_t(np.ones(2), np.ones(3))),
    ]
    for error, call in wrong:
        with pytest.raises(error):
            call()


def test_cosine_integral_of_negative_numbers() -> None:
    x = np.array([-1.0, -7.5], np.float32)
    actual = np.asarray(special.sici(x)[1])
    np.testing.assert_allclose(actual, scipy.special.sici(x)[1], 1e-6)


@pytest.mark.slow
def test_extremes() -> None:
    """What overflowed, cancelled or lost its digits on the way."""
    cases = (
        (special.betaln, scipy.special.betaln, (1.0, 1e30)),
        (special.beta, scipy.special.beta, (np.inf, 2.0)),
        (special.rel_entr, scipy.special.rel_entr, (1e30, 1e-30)),
        (special.kl_div, scipy.special.kl_div, (27.1, 27.05)),
        (special.log_ndtr, scipy.special.log_ndtr, (4.75,)),
        (special.fresnel, scipy.special.fresnel, (1e30,)),
        (special.boxcox1p, scipy.special.boxcox1p, (1e-30, 1e-30)),
        (special.gammainc, scipy.special.gammainc, (16.67, 0.1056)),
        (special.betainc, scipy.special.betainc, (0.5, 1e30, 0.5)),
        (special.betainc, scipy.special.betainc, (5.636, 0.0021, 0.004)),
        (special.gammaln, scipy.special.gammaln, (1.33,)),
        (special.gammaln, scipy.special.gammaln, (1.0,)),
    )
    for ours, theirs, args in cases:
        xs = [np.float32(x) for x in args]
        want = theirs(*[np.float64(x) for x in xs])
        for actual in (ours(*xs), verax.jit(ours)(*xs)):
            np.testing.assert_allclose(np.asarray(actual), want, 2e-5, 1e-35)
    assert float(special.i0(np.float16(12.25))) == pytest.approx(24064, rel=1e-2)


@pytest.mark.slow
@pytest.mark.parametrize("x", [-1.5, 0.5, 1.5, 30.0])
def test_the_gradient_of_a_hypergeometric_series_that_ends(x: float) -> None:
    # F(-2, 1; 3; x) = 1 - 2x/3 + x²/6; cotangents grew to infinity behind its end.
    slope = verax.grad(lambda x: special.hyp2f1(-2.0, 1.0, 3.0, x))(x)
    assert float(slope) == pytest.approx(x / 3 - 2 / 3, rel=1e-5)
    slope = verax.grad(lambda x: special.hyp2f1(1.0, -2.0, 3.0, x))(x)
    assert float(slope) == pytest.approx(x / 3 - 2 / 3, rel=1e-5)
