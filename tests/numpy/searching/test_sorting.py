"""Sorting, partitions, the largest elements and binary search against NumPy."""

from typing import Any

import numpy as np
import pytest

import verax
from tests.numpy.against import error_of
from verax.numpy.searching.sorting import FEW_PAIRS

jnp: Any = verax.numpy
RANDOM = np.random.default_rng(2)
X = RANDOM.normal(size=(4, 5)).astype(np.float32)
N = RANDOM.integers(0, 4, (4, 5)).astype(np.int32)


def same(result: Any, expected: Any) -> None:
    assert result.shape == np.shape(expected)
    np.testing.assert_array_equal(np.asarray(result), expected)


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


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("dtype", [np.float32, np.int32])
@pytest.mark.parametrize("copies", [1, 1000])
def test_few_pairs_are_compared_and_many_are_searched(
    side: Any, dtype: Any, copies: int
) -> None:
    line = np.array([-np.inf, -1, -0.0, 0, 0, 2, np.inf, np.nan, np.nan])
    queries = np.array([-np.inf, -3, -1, 0, -0.0, 1, 2, np.inf, np.nan])
    if dtype is np.int32:
        line, queries = line[1:6], queries[1:7]
    line, queries = line.astype(dtype), np.tile(queries.astype(dtype), copies)
    few = line.size * queries.size < FEW_PAIRS
    assert few == (copies == 1)
    expected = np.searchsorted(line, queries, side)
    same(jnp.searchsorted(line, queries, side), expected)
    search = verax.jit(jnp.searchsorted, static_argnames="side")
    same(search(line, queries, side=side), expected)


@pytest.mark.parametrize("right", [False, True])
def test_digitize(right: Any) -> None:
    edges = np.array([0.0, 1.0, 2.0], np.float32)
    x = np.array([-1, 0, 0.5, 1, 2, 3], np.float32)
    same(jnp.digitize(x, edges, right), np.digitize(x, edges, right))
    same(jnp.digitize(x, edges[::-1], right), np.digitize(x, edges[::-1], right))


def test_top_k_and_minmax() -> None:
    x = np.array([[1, 0, 1], [0, 0, 2]], np.int32)
    assert [v.tolist() for v in jnp.top_k(x, 2)] == [
        [[1, 1], [2, 0]],
        [[0, 2], [2, 0]],
    ]
    assert [v.tolist() for v in jnp.top_k(x, 2, axis=0, mode="smallest")] == [
        [[0, 0, 1], [1, 0, 2]],
        [[1, 0, 0], [0, 1, 1]],
    ]
    low = jnp.top_k(np.array([1, np.nan, 3, -np.inf], np.float32), 4, mode="smallest")
    assert low[1].tolist() == [3, 0, 2, 1]
    assert jnp.top_k(np.array([-128, 5], np.int8), 1, mode="smallest")[0] == -128
    assert "mode" in error_of(lambda: jnp.top_k(x, 1, mode="x"), ValueError)
    assert "no larger than size" in error_of(lambda: jnp.top_k(x, 9), ValueError)
    assert [int(v) for v in jnp.minmax(x)] == [0, 2]
    pair = jnp.minmax(x, axis=1, keepdims=True, initial=(5, -1))
    assert [v.tolist() for v in pair] == [[[0], [0]], [[1], [2]]]
    assert [int(v) for v in jnp.minmax(x, where=x > 0, initial=3)] == [1, 3]
