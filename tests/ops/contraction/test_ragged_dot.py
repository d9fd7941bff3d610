"""Ragged products: groups of rows, contracted groups, groups in a batch."""

import numpy as np
import pytest

import verax
from verax import lax

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(6, 3)).astype(np.float32)
Y = RANDOM.normal(size=(2, 3, 2)).astype(np.float32)
SIZES = np.array([2, 3], np.int32)
MATRIX = (((1,), (1,)), ((), ()))


def test_ragged_rows() -> None:
    numbers = lax.RaggedDotDimensionNumbers(MATRIX, (0,), (0,))
    actual = lax.ragged_dot_general(X, Y, SIZES, numbers)
    np.testing.assert_allclose(actual, lax.ragged_dot(X, Y, SIZES), rtol=1e-6)
    slope = verax.grad(lambda y: lax.ragged_dot_general(X, y, SIZES, numbers).sum())(Y)
    expected = np.stack([X[:2].sum(0), X[2:5].sum(0)])[..., None].repeat(2, -1)
    np.testing.assert_allclose(slope, expected, rtol=1e-5)


def test_ragged_contraction_has_groups_in_front() -> None:
    numbers = lax.RaggedDotDimensionNumbers((((0,), (0,)), ((), ())), (0,), ())
    z = RANDOM.normal(size=(6, 4)).astype(np.float32)
    actual = lax.ragged_dot_general(X, z, SIZES, numbers)
    expected = np.stack([X[:2].T @ z[:2], X[2:5].T @ z[2:5]])
    np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-6)


def test_sizes_of_groups_for_each_element_of_a_batch() -> None:
    numbers = lax.RaggedDotDimensionNumbers((((2,), (2,)), ((0,), (0,))), (1,), (1,))
    x = RANDOM.normal(size=(2, 5, 3)).astype(np.float32)
    y = RANDOM.normal(size=(2, 2, 3, 2)).astype(np.float32)
    sizes = np.array([[1, 2], [2, 2]], np.int32)
    actual = lax.ragged_dot_general(x, y, sizes, numbers)
    for i in range(2):
        expected = lax.ragged_dot(x[i], y[i], sizes[i])
        np.testing.assert_allclose(actual[i], expected, rtol=1e-5, atol=1e-6)
    with pytest.raises(
        TypeError, match=r"expected group_sizes to have shape .2, 2., got .1, 2."
    ):
        lax.ragged_dot_general(x, y, sizes[:1], numbers)


@pytest.mark.parametrize(
    ("ragged", "groups", "sizes", "words"),
    [
        ((1, 2), (1,), (2, 2), "exactly one lhs ragged dimension"),
        ((3,), (1,), (2, 2), "less than the number of axes of the lhs"),
        ((1,), (2,), (2, 2), "distinct from contracting and batch dimensions"),
        ((1,), (), (2, 2), "exactly one rhs group dimension"),
        ((2,), (1,), (2, 2), "zero group dimensions in the rhs"),
        ((1,), (1,), (2, 3), "expected rhs group dimension size to be 3, got 2"),
    ],
)
def test_what_does_not_fit_is_named(
    ragged: tuple[int, ...],
    groups: tuple[int, ...],
    sizes: tuple[int, ...],
    words: str,
) -> None:
    numbers = lax.RaggedDotDimensionNumbers(
        (((2,), (2,)), ((0,), (0,))), ragged, groups
    )
    x, y = np.ones((2, 5, 3), np.float32), np.ones((2, 2, 3, 2), np.float32)
    with pytest.raises(TypeError, match=words):
        lax.ragged_dot_general(x, y, np.ones(sizes, np.int32), numbers)
