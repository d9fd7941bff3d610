"""Sorting, searching, sets and histograms against NumPy."""

from typing import Any

import numpy as np
import pytest

import verax

jnp: Any = verax.numpy

RANDOM = np.random.default_rng(2)
X = RANDOM.normal(size=(4, 5)).astype(np.float32)
N = RANDOM.integers(0, 4, (4, 5)).astype(np.int32)


def same(found: Any, wanted: Any) -> None:
    assert found.shape == np.shape(wanted)
    np.testing.assert_array_equal(np.asarray(found), wanted)


@pytest.mark.parametrize("axis", [None, 0, -1])
def test_sort(axis: Any) -> None:
    same(jnp.sort(X, axis), np.sort(X, axis))
    same(jnp.sort(X, axis, descending=True), -np.sort(-X, axis))
    same(jnp.argsort(N, axis), np.argsort(N, axis, stable=True))
    same(jnp.argsort(N, axis, descending=True), np.argsort(-N, axis, stable=True))


def test_lexsort_and_partition() -> None:
    same(jnp.lexsort((N[0], N[1])), np.lexsort((N[0], N[1])))
    assert float(jnp.partition(X[0], 2)[2]) == float(np.sort(X[0])[2])
    with pytest.raises(ValueError, match="out of bounds"):
        jnp.partition(X[0], 7)


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("size", [0, 1, 2, 7, 8])
def test_searchsorted(side: Any, size: Any) -> None:
    line = np.sort(RANDOM.integers(0, 6, size)).astype(np.float32)
    queries = np.array([[-1, 0, 3], [3.5, 9, np.nan]], np.float32)
    same(jnp.searchsorted(line, queries, side), np.searchsorted(line, queries, side))


@pytest.mark.parametrize("right", [False, True])
def test_digitize(right: Any) -> None:
    edges = np.array([0.0, 1.0, 2.0], np.float32)
    x = np.array([-1, 0, 0.5, 1, 2, 3], np.float32)
    same(jnp.digitize(x, edges, right), np.digitize(x, edges, right))
    same(jnp.digitize(x, edges[::-1], right), np.digitize(x, edges[::-1], right))


@pytest.mark.parametrize("axis", [None, 0, 1])
def test_unique(axis: Any) -> None:
    found = jnp.unique(N % 2, True, True, True, axis=axis)
    for x, y in zip(found, np.unique(N % 2, True, True, True, axis=axis), strict=True):
        same(x, y)


def test_unique_of_a_given_size() -> None:
    x = jnp.asarray([3, 1, 1, 2, 3])
    found = verax.jit(lambda x: jnp.unique(x, True, True, True, size=5))(x)
    wanted = [1, 2, 3, 1, 1], [1, 3, 0, 1, 1], [2, 0, 0, 1, 2], [2, 1, 2, 0, 0]
    for values, numbers in zip(found, wanted, strict=True):
        assert values.tolist() == numbers
    assert jnp.unique(x, size=2).tolist() == [1, 2]
    assert jnp.unique(x, size=4, fill_value=-7).tolist() == [1, 2, 3, -7]
    with pytest.raises(TypeError, match="size"):
        verax.jit(jnp.unique)(x)


def test_nan_is_one_value_unless_asked() -> None:
    x = np.array([np.nan, 1, np.nan], np.float32)
    assert jnp.unique(x).shape == (2,)
    assert jnp.unique(x, equal_nan=False).shape == (3,)


@pytest.mark.parametrize("size", [0, 1, 7, 60])
@pytest.mark.parametrize(
    "name", ["union1d", "intersect1d", "setdiff1d", "setxor1d", "isin"]
)
def test_sets(name: Any, size: Any) -> None:
    x, y = RANDOM.integers(0, 9, size), RANDOM.integers(3, 14, size)
    wanted = getattr(np, name)(x, y)
    same(getattr(jnp, name)(x, y), wanted)
    if name != "isin" and wanted.size:
        sized = verax.jit(lambda x, y: getattr(jnp, name)(x, y, size=wanted.size))
        same(sized(x, y), wanted)


def test_intersection_indices() -> None:
    x, y = np.array([3, 1, 1, 2]), np.array([2, 3, 3])
    found = jnp.intersect1d(x, y, return_indices=True)
    for values, wanted in zip(found, ([2, 3], [3, 0], [0, 1]), strict=True):
        assert values.tolist() == wanted


def test_bincount() -> None:
    assert jnp.bincount(np.array([0, -1, 3, 9]), length=4).tolist() == [2, 0, 0, 1]
    assert jnp.bincount(np.array([0, 3]), minlength=6).tolist() == [1, 0, 0, 1, 0, 0]
    weighted = jnp.bincount(np.array([1, 1]), weights=np.array([0.5, 2.0], np.float32))
    assert weighted.tolist() == [0, 2.5]
    with pytest.raises(TypeError, match="length"):
        verax.jit(jnp.bincount)(np.array([0, 1]))


def test_histogram() -> None:
    for arguments in ({}, {"range": (-1, 1)}, {"bins": np.array([-1.0, 0, 2])}):
        found, edges = jnp.histogram(X, **arguments)
        counts, wanted = np.histogram(X, **arguments)
        same(found, counts)
        np.testing.assert_allclose(np.asarray(edges), wanted, 1e-5, 1e-6)
    found, _ = jnp.histogram(X, density=True)
    np.testing.assert_allclose(found, np.histogram(X, density=True)[0], 1e-4)
