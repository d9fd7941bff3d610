"""Ragged products, scatter_apply, shapes of convolutions, small names."""

from typing import Any, cast

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from verax import lax

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(6, 3)).astype(np.float32)
Y = RANDOM.normal(size=(2, 3, 2)).astype(np.float32)
SIZES = np.array([2, 3], np.int32)
MATRIX = (((1,), (1,)), ((), ()))


def test_ragged_rows() -> None:
    numbers = lax.RaggedDotDimensionNumbers(MATRIX, (0,), (0,))
    found = lax.ragged_dot_general(X, Y, SIZES, numbers)
    np.testing.assert_allclose(found, lax.ragged_dot(X, Y, SIZES), rtol=1e-6)
    slope = verax.grad(lambda y: lax.ragged_dot_general(X, y, SIZES, numbers).sum())(Y)
    wanted = np.stack([X[:2].sum(0), X[2:5].sum(0)])[..., None].repeat(2, -1)
    np.testing.assert_allclose(slope, wanted, rtol=1e-5)


def test_ragged_contraction_has_groups_in_front() -> None:
    numbers = lax.RaggedDotDimensionNumbers((((0,), (0,)), ((), ())), (0,), ())
    z = RANDOM.normal(size=(6, 4)).astype(np.float32)
    found = lax.ragged_dot_general(X, z, SIZES, numbers)
    wanted = np.stack([X[:2].T @ z[:2], X[2:5].T @ z[2:5]])
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


def test_sizes_of_groups_for_each_element_of_a_batch() -> None:
    numbers = lax.RaggedDotDimensionNumbers((((2,), (2,)), ((0,), (0,))), (1,), (1,))
    x = RANDOM.normal(size=(2, 5, 3)).astype(np.float32)
    y = RANDOM.normal(size=(2, 2, 3, 2)).astype(np.float32)
    sizes = np.array([[1, 2], [2, 2]], np.int32)
    found = lax.ragged_dot_general(x, y, sizes, numbers)
    for i in range(2):
        wanted = lax.ragged_dot(x[i], y[i], sizes[i])
        np.testing.assert_allclose(found[i], wanted, rtol=1e-5, atol=1e-6)
    with pytest.raises(TypeError, match="ragged_dot_general takes"):
        lax.ragged_dot_general(x, y, sizes[:1], numbers)


def test_scatter_apply_counts_duplicates() -> None:
    z = np.arange(12, dtype=np.float32).reshape(4, 3)
    rows = lax.ScatterDimensionNumbers((1,), (0,), (0,))

    def apply(z: Any) -> Any:
        places = np.array([[0], [0], [9]])
        return lax.scatter_apply(
            z, places, lambda v: 2 * v + 1, rows, update_shape=(3, 3)
        )

    wanted = z.copy()
    wanted[0] = 2 * (2 * z[0] + 1) + 1
    np.testing.assert_array_equal(apply(z), wanted)
    np.testing.assert_array_equal(verax.jit(apply)(z), wanted)


def test_shapes_of_convolutions() -> None:
    names = ("NHWC", "HWIO", "NHWC")
    x, kernel = np.zeros((2, 9, 8, 3), np.float32), np.zeros((3, 4, 3, 5), np.float32)
    for pad in ("SAME", "VALID"):
        conv = lax.conv_general_dilated(x, kernel, (2, 1), pad, dimension_numbers=names)
        shape = lax.conv_general_shape_tuple(x.shape, kernel.shape, (2, 1), pad, names)
        assert conv.shape == shape
        turned = lax.conv_transpose(x, kernel, (2, 1), pad, dimension_numbers=names)
        assert turned.shape == lax.conv_transpose_shape_tuple(
            x.shape, kernel.shape, (2, 1), pad, names
        )
    with pytest.raises(ValueError, match="take more than"):
        lax.conv_shape_tuple((1, 1, 2), (1, 1, 1), (1,), [(-2, -2)])


def test_accuracy_is_a_mode() -> None:
    assert lax.exp(1.0, accuracy=lax.AccuracyMode.HIGHEST) == lax.exp(1.0)
    with pytest.raises(NotImplementedError, match="nobody has bounded"):
        lax.tanh(1.0, accuracy=lax.Tolerance(ulps=2))


def test_composite_is_a_call_by_name() -> None:
    scaled = lax.composite(lambda x, factor: x * factor, "my.scaled")
    assert float(scaled(2.0, factor=3.0)) == 6.0
    text = str(verax.make_jaxpr(lambda x: scaled(x, factor=3.0))(2.0))
    assert "my.scaled" in text
    assert float(verax.grad(lambda x: scaled(x, factor=3.0))(2.0)) == 3.0


def test_a_shape_may_be_one_integer() -> None:
    sizes: list[Any] = [3, np.int32(3), vnp.asarray(3)]
    for n in sizes:
        assert lax.full(n, 1.0).shape == (3,)
        assert lax.full_like(vnp.ones(2), 1, shape=n).shape == (3,)
        assert lax.broadcasted_iota(int, n, 0).tolist() == [0, 1, 2]
        assert lax.reshape(vnp.ones((3, 1)), n).shape == (3,)
    assert lax.full((), 1.0).shape == ()
    with pytest.raises(TypeError, match="shape is a sequence of integers"):
        lax.full(cast(Any, "3"), 1.0)
    with pytest.raises(TypeError, match="shape is a sequence of integers"):
        lax.full(cast(Any, 3.0), 1.0)
    with pytest.raises(ValueError, match="negative"):
        lax.full(-3, 1.0)
