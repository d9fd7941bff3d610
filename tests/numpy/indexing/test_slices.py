"""`x[ds(i, n)]`: parts of static size at starts that may be traced."""

from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from verax import ds, tree_util

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
ROWS = np.array([0, 1, 1])


def both(function: Any, start: int) -> Any:
    """The result for a start that is traced; the same for one with a value."""
    eager = function(vnp.asarray(X), vnp.int32(start))
    jitted = verax.jit(function)(X, start)
    np.testing.assert_array_equal(eager, jitted)
    return jitted


@pytest.mark.parametrize("start", [0, 1, 5, -1, -2])
def test_blocks_are_read(start: int) -> None:
    first = min(start + 4 if start < 0 else start, 2)
    part = slice(first, first + 2)
    row = min(start + 3 if start < 0 else start, 2)
    for index, expected in (
        (lambda i: (..., ds(i, 2)), X[..., part]),
        (lambda i: (slice(None), 1, ds(i, 2)), X[:, 1, part]),
        (lambda i: (ROWS, slice(1, 3), ds(i, 2)), X[ROWS, 1:3, part]),
        (lambda i: (ROWS, None, ds(i, 1), ROWS), X[ROWS, None, row : row + 1, ROWS]),
        (lambda i: (None, ds(0, 1), ..., ds(i, 2), None), X[None, :1, ..., part, None]),
    ):
        actual = both(lambda x, i, index=index: x[index(i)], start)
        np.testing.assert_array_equal(actual, expected)


def test_several_starts_and_strides() -> None:
    actual = both(lambda x, i: x[ds(i, 1), ds(i, 2), ds(i - 1, 2, 2)], 1)
    np.testing.assert_array_equal(actual, X[1:, 1:, 0:3:2])
    assert both(lambda x, i: x[:, ds(i, 0)], 1).shape == (2, 0, 4)
    np.testing.assert_array_equal(vnp.asarray(X)[ds(1)], X[:1])
    np.testing.assert_array_equal(vnp.asarray(X)[0, ds(1, 5)], X[0, 1:])
    assert ds(None) == slice(None)
    assert ds(3) == ds(None, 3) == ds(0, 3)


def test_blocks_are_updated() -> None:
    expected = X.copy()
    expected[0, 1:3, ROWS] += 1
    expected[0, 1:3, 1] += 1  # it is named twice
    actual = both(lambda x, i: x.at[0, ds(i, 2), ROWS].add(1.0), 1)
    np.testing.assert_array_equal(actual, expected)
    expected = X.copy()
    expected[:, :, 1:3] = expected[:, :, 1:3] ** 2
    actual = both(lambda x, i: x.at[..., ds(i, 2)].power(2.0), 1)
    np.testing.assert_array_equal(actual, expected)
    actual = both(lambda x, i: x.at[..., ds(i, 2)].apply(vnp.square), 1)
    np.testing.assert_array_equal(actual, expected)


@pytest.mark.parametrize("start", [-1, 2])
def test_blocks_out_of_bounds(start: int) -> None:
    kept = both(lambda x, i: x.at[:, ds(i, 2)].set(0.0), start)
    np.testing.assert_array_equal(kept, X)
    moved = both(lambda x, i: x.at[:, ds(i, 2)].set(0.0, mode="clip"), start)
    expected = X.copy()
    expected[:, slice(0, 2) if start < 0 else slice(1, 3)] = 0
    np.testing.assert_array_equal(moved, expected)
    filled = both(
        lambda x, i: x.at[:, ds(i, 2)].get(mode="fill", fill_value=-1.0), start
    )
    assert filled.tolist() == np.full((2, 2, 4), -1).tolist()


def test_transformations() -> None:
    gradient = verax.grad(lambda x, i: (x[:, ds(i, 2)] ** 2).sum())(X, 1)
    np.testing.assert_array_equal(gradient[:, 1:], 2 * X[:, 1:])
    assert not np.any(gradient[:, 0])
    parts = verax.vmap(lambda i: vnp.asarray(X)[0, ds(i, 1)])(vnp.arange(3))
    np.testing.assert_array_equal(parts[:, 0], X[0])


def test_slices_are_trees() -> None:
    leaves, tree = tree_util.tree_flatten(ds(vnp.int32(3), 2, 5))
    assert [int(x) for x in leaves] == [3]
    assert tree.unflatten([4]) == ds(4, 2, 5)
    assert tree_util.tree_leaves(ds(1, 2)) == []


def test_wrong_slices() -> None:
    x = vnp.asarray(X)
    for error, index in (
        (TypeError, lambda i: ds(i, 4)),
        (TypeError, lambda i: ds(i, i)),
        (TypeError, lambda i: ds(i * 1.0, 1)),
        (TypeError, lambda i: ds(vnp.array([i, i]), 1)),
        (ValueError, lambda i: ds(i, 1, -1)),
        (ValueError, lambda i: ds(i, 1, i)),
        (ValueError, lambda i: ds(i, 1, 0)),
    ):
        with pytest.raises(error):
            verax.jit(lambda i, index=index: x[0, index(i)])(1)
    with pytest.raises(IndexError, match="Too many"):
        verax.jit(lambda i: x[0, 0, 0, ds(i, 1)])(0)
