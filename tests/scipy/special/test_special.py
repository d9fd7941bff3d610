"""verax.scipy.special against SciPy, and gradients at the ends of domains."""

import math
from typing import Any

import numpy as np
import pytest
import scipy.special

import verax
from verax.scipy import special

LINE = np.array(
    [-30, -12, -7.5, -5, -3.3, -2.5, -1, -0.5, -0.1, 0, 0.1, 0.5, 1, 2, 3.3, 7.5, 30],
    np.float32,
)
UNIT = np.array([0, 1e-6, 0.1, 0.3, 0.5, 0.9, 0.999, 1], np.float32)
POSITIVE = np.array([0.1, 0.5, 1, 1.5, 2, 3.7, 10, 30], np.float32)
UNARY = {
    "expit": LINE,
    "erf": LINE,
    "erfc": LINE,
    "ndtr": LINE,
    "log_ndtr": LINE,
    "entr": LINE,
    "logit": UNIT,
    "erfinv": np.concatenate((-UNIT, UNIT)),
    "gammaln": POSITIVE,
    "digamma": POSITIVE,
    "gamma": np.concatenate((POSITIVE, [-0.5, -1.5, -2.25])).astype(np.float32),
    "factorial": POSITIVE,
}
BINARY = ("xlogy", "xlog1py", "rel_entr", "kl_div", "betaln", "beta", "boxcox")


@pytest.mark.parametrize("name", UNARY)
def test_unary(name: str) -> None:
    x = UNARY[name]
    expected = getattr(scipy.special, name)(x.astype(np.float64))
    actual = np.asarray(getattr(special, name)(x))
    assert actual.dtype == np.float32
    np.testing.assert_allclose(actual, expected, 2e-5, 1e-7)
    compiled = np.asarray(verax.jit(getattr(special, name))(x))
    np.testing.assert_allclose(compiled, actual, 2e-5, 1e-6)


@pytest.mark.parametrize("name", BINARY)
def test_binary(name: str) -> None:
    x, y = np.meshgrid(POSITIVE, POSITIVE[:-1])
    expected = getattr(scipy.special, name)(x.astype(np.float64), y)
    actual = np.asarray(getattr(special, name)(x, y))
    np.testing.assert_allclose(actual, expected, 5e-5, 1e-5)
    np.testing.assert_allclose(
        np.asarray(getattr(special, name)(POSITIVE, 2)),
        getattr(scipy.special, name)(POSITIVE.astype(np.float64), 2),
        5e-5,
        1e-5,
    )


@pytest.mark.parametrize("name", ["xlogy", "xlog1py", "rel_entr", "kl_div"])
def test_edges(name: str) -> None:
    edges = np.array([0, 1, -1, math.inf, math.nan, 2], np.float32)
    x, y = np.meshgrid(edges, edges)
    with np.errstate(all="ignore"):
        expected = getattr(scipy.special, name)(x.astype(np.float64), y)
    actual = np.asarray(getattr(special, name)(x, y))
    compiled = np.asarray(verax.jit(getattr(special, name))(x, y))
    inner = np.isfinite(x) & np.isfinite(y)
    np.testing.assert_allclose(actual[inner], expected[inner], 1e-5)
    np.testing.assert_array_equal(compiled[inner], actual[inner])


def test_gradients_at_the_ends() -> None:
    def slopes(function: Any, *x: float) -> Any:
        actual = verax.grad(function, tuple(range(len(x))))(*x)
        return tuple(float(t) for t in actual)

    assert slopes(special.xlogy, 0.0, 2.0) == (pytest.approx(math.log(2)), 0)
    assert slopes(special.xlogy, 0.0, 0.0) == (-math.inf, 0)
    assert slopes(special.xlog1py, 0.0, 0.0) == (0, 0)
    assert slopes(special.entr, 0.0) == (math.inf,)
    assert slopes(special.logit, 0.0) == (math.inf,)
    assert slopes(special.logit, 1.0) == (math.inf,)
    assert slopes(special.kl_div, 0.0, 2.0)[1] == 1
    assert slopes(special.log_ndtr, -30.0) == (pytest.approx(30.0332, 1e-4),)
    assert slopes(special.log_ndtr, 12.0) == (pytest.approx(2.1464e-32, 1e-3),)


def test_softmax_is_over_everything() -> None:
    x = LINE[:16].reshape(4, 4)
    np.testing.assert_allclose(
        np.asarray(special.softmax(x)), scipy.special.softmax(x), 1e-5
    )
    np.testing.assert_allclose(
        np.asarray(special.log_softmax(x, axis=1)),
        scipy.special.log_softmax(x, axis=1),
        1e-5,
        1e-6,
    )
    np.testing.assert_allclose(
        float(special.logsumexp(x)), scipy.special.logsumexp(x), 1e-6
    )


def test_further_functions() -> None:
    def close(result: Any, expected: Any) -> None:
        np.testing.assert_allclose(np.asarray(result), expected, 3e-5)

    close(special.polygamma(2, POSITIVE), scipy.special.polygamma(2, POSITIVE))
    q = POSITIVE + np.float32(1)
    close(special.zeta(q, 2.0), scipy.special.zeta(q.astype(np.float64), 2.0))
    close(special.zeta(q), scipy.special.zeta(q.astype(np.float64)))
    wide = POSITIVE + np.float32(2)
    close(special.multigammaln(wide, 3), scipy.special.multigammaln(wide, 3))
    close(special.boxcox1p(POSITIVE, 0.0), np.log1p(POSITIVE))
    signs = np.array([1.5, -0.5, -1.5, -2.5, 0.0, -0.0, -1.0], np.float32)
    found = np.asarray(special.gammasgn(signs)).tolist()
    assert found[:6] == [1, -1, 1, -1, 1, -1]
    assert math.isnan(found[6])


def test_dtypes_and_errors() -> None:
    assert special.expit(3).dtype == np.float32
    assert special.xlogy(np.float16(2), 3.0).dtype == np.float16
    assert special.ndtr(np.arange(3, dtype=np.int8)).dtype == np.float32
    with pytest.raises(TypeError, match="real"):
        special.entr(1j)
    with pytest.raises(TypeError, match="erf"):
        special.erf([1.0])  # type: ignore[arg-type]  # the point of the test
    with pytest.raises(NotImplementedError, match="exact"):
        special.factorial(3, exact=True)
    with pytest.raises(ValueError, match="series_order"):
        special.log_ndtr(1.0, 31)
    with pytest.raises(ValueError, match="broadcast"):
        special.xlogy(np.ones(2), np.ones(3))
