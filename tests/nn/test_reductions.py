"""softmax, logsumexp and relatives: axes, masks, infinities, gradients."""

import math
from typing import Any, cast

import numpy as np
import pytest
import scipy.special

import verax
import verax.numpy as vnp
from verax import nn

RANDOM = np.random.default_rng(3)
X = RANDOM.normal(size=(3, 4, 5)).astype(np.float32) * 3
MASK = RANDOM.random((3, 4, 5)) > 0.4
MASK[1, 2] = False
AXES: tuple[Any, ...] = (-1, 0, (0, 2), None)


def close(x: Any, y: Any, tolerance: float = 2e-6) -> None:
    np.testing.assert_allclose(np.asarray(x), np.asarray(y), tolerance, tolerance)


@pytest.mark.parametrize("axis", AXES)
def test_values(axis: Any) -> None:
    close(nn.softmax(X, axis), scipy.special.softmax(X, axis))
    close(nn.log_softmax(X, axis), scipy.special.log_softmax(X, axis), 1e-5)
    close(nn.logsumexp(X, axis), scipy.special.logsumexp(X, axis))
    close(
        nn.logsumexp(X, axis, keepdims=True),
        scipy.special.logsumexp(X, axis, keepdims=True),
    )
    close(verax.jit(lambda x: nn.softmax(x, axis))(X), nn.softmax(X, axis))
    close(nn.logmeanexp(X, axis), np.log(np.exp(X).mean(axis)), 1e-5)


@pytest.mark.parametrize("axis", AXES)
def test_masks(axis: Any) -> None:
    low = np.where(MASK, X, -np.inf)
    with np.errstate(all="ignore"):
        expected = np.nan_to_num(scipy.special.softmax(low, axis))
        total = scipy.special.logsumexp(low, axis)
        logs = np.where(
            MASK, low - scipy.special.logsumexp(low, axis, keepdims=True), 0
        )
        mean = total - np.log(MASK.sum(axis))  # NaN over nothing
    actual = np.asarray(nn.softmax(X, axis, MASK))
    close(actual, expected)
    assert (actual[~MASK] == 0).all()
    close(nn.logsumexp(X, axis, where=MASK), total)
    actual = np.asarray(nn.log_softmax(X, axis, MASK))
    assert (actual[~MASK] == -np.inf).all()
    close(np.where(MASK, actual, 0), logs, 1e-5)
    close(nn.logmeanexp(X, axis, MASK), mean, 1e-5)


def test_large_and_infinite() -> None:
    big = np.array([1e4, 1e4, -1e4], np.float32)
    close(nn.softmax(big), [0.5, 0.5, 0])
    close(nn.logsumexp(big), 1e4 + math.log(2))
    none = np.array([-np.inf, -np.inf], np.float32)
    assert float(nn.logsumexp(none)) == -math.inf
    assert float(nn.logsumexp(np.array([np.inf, 0], np.float32))) == math.inf
    assert float(nn.logsumexp(np.zeros(0, np.float32))) == -math.inf
    half = np.array([-np.inf, 0], np.float32)
    close(nn.softmax(half), [0, 1])
    close(verax.grad(nn.logsumexp)(half), [0, 1])
    close(verax.grad(lambda x: nn.softmax(x)[1])(half), [0, 0])


def test_masked_elements_have_no_gradient() -> None:
    x = np.where(MASK, X, np.nan).astype(np.float32)

    def loss(function: Any) -> Any:
        def value(x: Any) -> Any:
            actual = function(x, -1, where=MASK)
            seen = np.isfinite(np.asarray(function(X, -1, where=MASK)))
            return verax.numpy.where(seen, actual, 0.0).sum()

        return value

    for function in (nn.softmax, nn.log_softmax, nn.logsumexp):
        slopes = np.asarray(verax.grad(loss(function))(x))
        assert (slopes[~MASK] == 0).all(), function
        assert np.isfinite(slopes).all(), function


def test_gradients() -> None:
    close(verax.grad(lambda x: nn.logsumexp(x))(X), scipy.special.softmax(X))
    y = scipy.special.softmax(X[0, 0])
    close(verax.jacrev(nn.softmax)(X[0, 0]), np.diag(y) - np.outer(y, y))
    close(verax.jacfwd(nn.softmax)(X[0, 0]), np.diag(y) - np.outer(y, y))
    expected = np.eye(5) - y[None, :]
    close(verax.jacrev(nn.log_softmax)(X[0, 0]), expected)


def test_weights_and_signs() -> None:
    b = RANDOM.normal(size=(4, 5)).astype(np.float32)
    b[0, 0] = 0
    expected, sign = scipy.special.logsumexp(X, 1, b=b, return_sign=True)
    actual, found_sign = nn.logsumexp(X, 1, b=b, return_sign=True)
    close(actual, expected, 1e-4)
    close(found_sign, sign)
    plain = np.asarray(nn.logsumexp(X, 1, b=b))
    close(plain, np.where(sign < 0, np.nan, expected), 1e-4)
    infinite = X.copy()
    infinite[:, 0, 0] = np.inf
    assert np.isfinite(np.asarray(nn.logsumexp(infinite, 1, b=abs(b)))).all()


def test_complex_logsumexp() -> None:
    z = (X + 1j * X[::-1]).astype(np.complex64)
    close(nn.logsumexp(z, 1), np.log(np.exp(z.astype(complex)).sum(1)), 1e-5)
    actual, sign = nn.logsumexp(z, 1, return_sign=True)
    close(np.exp(np.asarray(actual)) * sign, np.exp(z).sum(1), 1e-4)


def test_vmap_is_the_loop() -> None:
    close(verax.vmap(nn.softmax)(X), np.stack([nn.softmax(x) for x in X]))
    mapped = verax.vmap(lambda x: nn.logsumexp(x, 0), in_axes=2, out_axes=1)(X)
    close(mapped, nn.logsumexp(X, 0))


def test_few_equations() -> None:
    def count(function: Any) -> int:
        return len(verax.make_jaxpr(function)(X).jaxpr.eqns)

    assert count(nn.softmax) == 9
    assert count(nn.log_softmax) == 9
    assert count(lambda x: nn.logsumexp(x, -1)) == 10


def test_bad_arguments() -> None:
    for function in (nn.softmax, nn.log_softmax, nn.logsumexp, nn.logmeanexp):
        with pytest.raises(ValueError, match=r"dimension|axis"):
            function(X, 3)
        with pytest.raises(ValueError, match="boolean"):
            function(X, 0, where=np.ones(5, np.int32))
        with pytest.raises(TypeError, match=function.__name__):
            cast(Any, function)([1.0])


def test_small_floats_are_summed_in_float32() -> None:
    x = np.zeros(4096, np.float16)
    close(nn.logsumexp(x), np.float16(math.log(4096)), 1e-3)
    assert nn.softmax(x).dtype == np.float16


def test_sums_of_small_floats_do_not_overflow() -> None:
    """65,504 is the largest number of float16: the sum of 100,000 ones is beyond."""
    x = vnp.zeros(100_000, vnp.float16)
    for f in (lambda f: f, verax.jit):
        assert f(nn.softmax)(x)[0] == np.float16(1e-5)
        assert f(nn.log_softmax)(x)[0] == np.float16(-np.log(1e5))
        assert f(nn.logsumexp)(x) == np.float16(np.log(1e5))
        assert f(nn.softmax)(x).dtype == f(nn.log_softmax)(x).dtype == vnp.float16


@pytest.mark.parametrize("name", ["softmax", "log_softmax", "logsumexp"])
def test_results_are_not_weak(name: str) -> None:
    x = vnp.broadcast_to(vnp.asarray(0.5), (3,))
    assert x.weak_type
    for run in (lambda f: f, verax.jit):
        actual = run(getattr(verax.nn, name))(x)
        assert not actual.weak_type
    assert verax.grad(lambda x: getattr(verax.nn, name)(x).sum())(x).weak_type
