"""Diagonals, meshes and index grids against NumPy."""

from typing import Any

import numpy as np
import pytest

import verax

jnp: Any = verax.numpy


def check(result: Any, expected: Any) -> None:
    assert result.shape == np.shape(expected)
    np.testing.assert_allclose(np.asarray(result), expected, 1e-5, 1e-5)


@pytest.mark.parametrize("k", [-9, -2, -1, 0, 1, 3])
def test_diagonals(k: Any) -> None:
    x = np.arange(12.0).reshape(3, 4)
    check(jnp.diag(x, k), np.diag(x, k))
    check(jnp.diag(np.arange(3.0), k), np.diag(np.arange(3.0), k))
    check(jnp.eye(3, 4, k), np.eye(3, 4, k))
    check(jnp.tri(3, 4, k), np.tri(3, 4, k))
    check(jnp.tril(x, k), np.tril(x, k))
    check(jnp.triu(x, k), np.triu(x, k))


@pytest.mark.parametrize("indexing", ["xy", "ij"])
@pytest.mark.parametrize("sparse", [True, False])
def test_meshgrid(indexing: Any, sparse: Any) -> None:
    vectors = np.arange(3.0), np.arange(4.0), np.arange(2.0)
    actual = jnp.meshgrid(*vectors, indexing=indexing, sparse=sparse)
    expected = np.meshgrid(*vectors, indexing=indexing, sparse=sparse)
    for x, y in zip(actual, expected, strict=True):
        check(x, y)


def test_grids() -> None:
    check(jnp.mgrid[0:3, 1:2:5j], np.mgrid[0:3, 1:2:5j])
    for x, y in zip(jnp.ogrid[0:3, 0:2], np.ogrid[0:3, 0:2], strict=True):
        check(x, y)
    check(jnp.indices((2, 3)), np.indices((2, 3)))
    check(jnp.vander(np.arange(4.0), 3), np.vander(np.arange(4.0), 3))
    actual = jnp.fromfunction(lambda i, j: 10 * i + j, (2, 3))
    check(actual, np.fromfunction(lambda i, j: 10 * i + j, (2, 3)))
    for x, y in zip(jnp.tril_indices(3, 1), np.tril_indices(3, 1), strict=True):
        check(x, y)


def test_gradient_of_diag() -> None:
    x = np.ones((2, 2), np.float32)
    check(verax.grad(lambda x: jnp.sum(jnp.diag(x, 1)))(x), [[0, 1], [0, 0]])
