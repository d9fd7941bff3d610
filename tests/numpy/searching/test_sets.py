"""Sets against NumPy."""

from typing import Any

import numpy as np
import pytest

import verax

jnp: Any = verax.numpy
RANDOM = np.random.default_rng(2)
N = RANDOM.integers(0, 4, (4, 5)).astype(np.int32)


def same(result: Any, expected: Any) -> None:
    assert result.shape == np.shape(expected)
    np.testing.assert_array_equal(np.asarray(result), expected)


@pytest.mark.parametrize("axis", [None, 0, 1])
def test_unique(axis: Any) -> None:
    actual = jnp.unique(N % 2, True, True, True, axis=axis)
    for x, y in zip(actual, np.unique(N % 2, True, True, True, axis=axis), strict=True):
        same(x, y)


def test_unique_of_a_given_size() -> None:
    x = jnp.asarray([3, 1, 1, 2, 3])
    actual = verax.jit(lambda x: jnp.unique(x, True, True, True, size=5))(x)
    expected = [1, 2, 3, 1, 1], [1, 3, 0, 1, 1], [2, 0, 0, 1, 2], [2, 1, 2, 0, 0]
    for values, numbers in zip(actual, expected, strict=True):
        assert values.tolist() == numbers
    assert jnp.unique(x, size=2).tolist() == [1, 2]
    assert jnp.unique(x, size=4, fill_value=-7).tolist() == [1, 2, 3, -7]
    with pytest.raises(TypeError, match="size"):
        verax.jit(jnp.unique)(x)


def test_nan_is_one_value_unless_asked() -> None:
    x = np.array([np.nan, 1, np.nan], np.float32)
    assert jnp.unique(x).shape == (2,)
    assert jnp.unique(x, equal_nan=False).shape == (3,)


@pytest.mark.slow
@pytest.mark.parametrize("size", [0, 1, 7, 60])
@pytest.mark.parametrize(
    "name", ["union1d", "intersect1d", "setdiff1d", "setxor1d", "isin"]
)
def test_sets(name: Any, size: Any) -> None:
    x, y = RANDOM.integers(0, 9, size), RANDOM.integers(3, 14, size)
    expected = getattr(np, name)(x, y)
    same(getattr(jnp, name)(x, y), expected)
    if name != "isin" and expected.size:
        sized = verax.jit(lambda x, y: getattr(jnp, name)(x, y, size=expected.size))
        same(sized(x, y), expected)


def test_intersection_indices() -> None:
    x, y = np.array([3, 1, 1, 2]), np.array([2, 3, 3])
    actual = jnp.intersect1d(x, y, return_indices=True)
    for values, expected in zip(actual, ([2, 3], [3, 0], [0, 1]), strict=True):
        assert values.tolist() == expected


def test_differences_of_sets_have_the_dtype_of_the_first() -> None:
    x = np.array([3, 1, 2], np.int8)
    actual = jnp.setdiff1d(x, np.array([1.0, 2.5], np.float32))
    assert (actual.dtype, actual.tolist()) == (np.dtype("int8"), [2, 3])
