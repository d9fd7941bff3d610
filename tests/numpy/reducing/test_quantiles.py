"""Quantiles of weighted elements against NumPy."""

from typing import Any

import numpy as np

import verax
from tests.numpy.against import error_of

jnp: Any = verax.numpy


def test_quantiles_of_weighted_elements() -> None:
    x = np.array([[3.0, 1.0, 2.0, 5.0], [4.0, 0.0, 7.0, 7.0]], np.float32)
    weights = np.array([1.0, 3.0, 0.0, 2.0], np.float32)
    q = np.array([0.0, 0.5, 0.51, 0.9, 1.0], np.float32)
    options: dict[str, Any] = {"axis": 1, "method": "inverted_cdf"}
    wanted = np.quantile(x, q, weights=weights, **options)
    found = jnp.quantile(x, q, weights=weights, **options)
    np.testing.assert_array_equal(found, wanted)
    traced = verax.jit(lambda x, w: jnp.quantile(x, q, weights=w, **options))
    np.testing.assert_array_equal(traced(x, weights), wanted)
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
        lambda: jnp.quantile(x, 0.5, weights=weights, axis=1), ValueError
    )
    assert "weights have shape" in error_of(
        lambda: jnp.quantile(x, 0.5, weights=weights, method="inverted_cdf"), ValueError
    )
