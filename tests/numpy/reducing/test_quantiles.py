"""Quantiles of weighted elements against NumPy, and quantiles of no elements."""

from functools import partial
from typing import Any

import numpy as np
import pytest

import verax
from tests.numpy.against import error_of

jnp: Any = verax.numpy


def test_quantiles_of_weighted_elements() -> None:
    x = np.array([[3.0, 1.0, 2.0, 5.0], [4.0, 0.0, 7.0, 7.0]], np.float32)
    weights = np.array([1.0, 3.0, 0.0, 2.0], np.float32)
    q = np.array([0.0, 0.5, 0.51, 0.9, 1.0], np.float32)
    options: dict[str, Any] = {"axis": 1, "method": "inverted_cdf"}
    expected = np.quantile(x, q, weights=weights, **options)
    actual = jnp.quantile(x, q, weights=weights, **options)
    np.testing.assert_array_equal(actual, expected)
    traced = verax.jit(lambda x, w: jnp.quantile(x, q, weights=w, **options))
    np.testing.assert_array_equal(traced(x, weights), expected)
    percent = jnp.percentile(x, 50, weights=weights, keepdims=True, **options)
    assert percent.tolist() == [[1], [0]]
    everywhere = np.broadcast_to(weights, x.shape)
    np.testing.assert_array_equal(
        jnp.quantile(x, q, weights=everywhere, method="inverted_cdf"),
        np.quantile(x, q, weights=everywhere, method="inverted_cdf"),
    )
    holed = np.where(x == 5, np.nan, x)
    assert np.isnan(jnp.quantile(holed, 0.5, weights=weights, **options)[0])
    assert float(jnp.nanquantile(holed, 0.9, weights=weights, **options)[0]) == 3
    np.testing.assert_array_equal(
        jnp.quantile(x, q, **options), np.quantile(x, q, **options)
    )
    assert "inverted_cdf" in error_of(
        lambda: jnp.quantile(x, 0.5, weights=weights, axis=1),
        NotImplementedError,
    )
    assert "weights have shape" in error_of(
        lambda: jnp.quantile(x, 0.5, weights=weights, method="inverted_cdf"), ValueError
    )


NONE = np.zeros((2, 0, 3), np.float32)


@pytest.mark.parametrize("wrap", [lambda f: f, verax.jit])
def test_quantiles_of_no_elements_are_nan_or_an_error(wrap: Any) -> None:
    for name, *q in (("nanmedian",), ("nanquantile", 0.5), ("nanpercentile", 50)):
        f = getattr(jnp, name)
        actual = wrap(lambda x, f=f, q=q: f(x, *q, axis=1))(NONE)
        assert actual.shape == (2, 3), name
        assert actual.dtype == np.float32, name
        assert np.isnan(actual).all(), name
        one = wrap(lambda x, f=f, q=q: f(x, *q, keepdims=True))(NONE.astype(np.int8))
        assert one.shape == (1, 1, 1), name
        assert np.isnan(one).all(), name
        rate = wrap(verax.grad(lambda x, f=f, q=q: f(x, *q, axis=1).sum()))(NONE)
        assert rate.shape == NONE.shape, name
    # As in NumPy, the shares have no dimension where there is nothing to share.
    assert wrap(lambda x: jnp.nanquantile(x, jnp.float32([0.1, 0.2])))(NONE).shape == ()
    text = error_of(lambda: wrap(lambda x: jnp.median(x, axis=1))(NONE), ValueError)
    assert "nanmedian" in text
    for name in ("quantile", "percentile"):
        f = getattr(jnp, name)
        text = error_of(partial(wrap(partial(f, q=0.5)), NONE), TypeError)
        assert f"{name}: an array of shape (2, 0, 3) has no elements" in text
        assert f(NONE, np.zeros(0, np.float32), axis=1).shape == (0, 2, 3)
    # Where nothing is left over, nothing is missing.
    for name, *q in (("median",), ("quantile", 0.5), ("nanpercentile", 50)):
        f = getattr(jnp, name)
        assert wrap(lambda x, f=f, q=q: f(x, *q, axis=0))(NONE).shape == (0, 3)


def test_complex_numbers_have_no_quantiles() -> None:
    x = np.ones(3, np.complex64)
    for call in (
        lambda: jnp.median(x),
        lambda: jnp.quantile(x, 0.5),
        lambda: jnp.nanpercentile(x, 50),
    ):
        assert "complex numbers have no order" in error_of(call, ValueError)
