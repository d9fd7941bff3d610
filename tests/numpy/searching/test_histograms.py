"""Counts and histograms against NumPy."""

from typing import Any

import numpy as np
import pytest

import verax
from tests.numpy.against import error_of

jnp: Any = verax.numpy
RANDOM = np.random.default_rng(2)
X = RANDOM.normal(size=(4, 5)).astype(np.float32)


def same(result: Any, expected: Any) -> None:
    assert result.shape == np.shape(expected)
    np.testing.assert_array_equal(np.asarray(result), expected)


def test_bincount() -> None:
    assert jnp.bincount(np.array([0, -1, 3, 9]), length=4).tolist() == [2, 0, 0, 1]
    assert jnp.bincount(np.array([0, 3]), minlength=6).tolist() == [1, 0, 0, 1, 0, 0]
    weighted = jnp.bincount(np.array([1, 1]), weights=np.array([0.5, 2.0], np.float32))
    assert weighted.tolist() == [0, 2.5]
    with pytest.raises(TypeError, match="length"):
        verax.jit(jnp.bincount)(np.array([0, 1]))


def test_histogram() -> None:
    for arguments in ({}, {"range": (-1, 1)}, {"bins": np.array([-1.0, 0, 2])}):
        actual, edges = jnp.histogram(X, **arguments)
        counts, expected = np.histogram(X, **arguments)
        same(actual, counts)
        np.testing.assert_allclose(np.asarray(edges), expected, 1e-5, 1e-6)
    actual, _ = jnp.histogram(X, density=True)
    np.testing.assert_allclose(actual, np.histogram(X, density=True)[0], 1e-4)


def test_histograms_of_several_dimensions() -> None:
    points = np.random.default_rng(0).normal(size=(40, 3)).astype(np.float32)
    x, y = points[:, 0], points[:, 1]
    weights = np.arange(40, dtype=np.float32)
    cases: list[dict[str, Any]] = [
        {"bins": 4},
        {"bins": [2, np.array([-1.0, 0.0, 2.0], np.float32)]},
        {"bins": np.array([-1.0, 0.0, 0.5, 2.0], np.float32)},
        {"bins": 3, "range": [(-1, 1), (0, 2)]},
        {"bins": 3, "weights": weights, "density": True},
    ]
    for options in cases:
        actual = jnp.histogram2d(x, y, **options)
        for mine, expected in zip(actual, np.histogram2d(x, y, **options), strict=True):
            np.testing.assert_allclose(mine, expected, 1e-5, 1e-6)
    counts, edges = jnp.histogramdd(points, bins=(2, 3, 4))
    expected, lines = np.histogramdd(points, bins=(2, 3, 4))
    np.testing.assert_array_equal(counts, expected)
    for mine, line in zip(edges, lines, strict=True):
        np.testing.assert_allclose(mine, line, 1e-5, 1e-6)
    assert jnp.histogram2d(x, y, 2)[0].dtype == "int32"
    assert "bins" in error_of(lambda: jnp.histogramdd(points, [2, 2]), ValueError)
    assert "matrix" in error_of(lambda: jnp.histogramdd(x), ValueError)


def test_histogram_counts_whole_numbers() -> None:
    values = np.arange(25, dtype=np.float32)
    counts, edges = jnp.histogram(values, bins=5, range=(0, 25))
    assert counts.tolist() == [5] * 5
    assert edges.tolist() == [0, 5, 10, 15, 20, 25]


def test_bincount_of_unsigned_numbers() -> None:
    assert jnp.bincount(np.array([1, 2, 0], np.uint8), minlength=5).tolist() == [
        *(1, 1, 1, 0, 0)
    ]
    assert jnp.bincount(np.zeros(0, np.uint8)).shape == (0,)
