"""Sets against NumPy."""

from typing import Any

import numpy as np
import pytest

import verax

jnp: Any = verax.numpy
RANDOM = np.random.default_rng(2)
N = RANDOM.integers(0, 4, (4, 5)).astype(np.int32)


def same(found: Any, wanted: Any) -> None:
    assert found.shape == np.shape(wanted)
    np.testing.assert_array_equal(np.asarray(found), wanted)


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


def test_differences_of_sets_have_the_dtype_of_the_first() -> None:
    x = np.array([3, 1, 2], np.int8)
    found = jnp.setdiff1d(x, np.array([1.0, 2.5], np.float32))
    assert (found.dtype, found.tolist()) == (np.dtype("int8"), [2, 3])
