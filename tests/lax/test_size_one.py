"""Binary operations of `lax`: a dimension of size 1 goes with any size."""

from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from verax import lax

COLUMN = vnp.arange(3.0).reshape(3, 1) + 1
ROW = vnp.arange(4.0).reshape(1, 4) + 2
BINARY = (lax.add, lax.mul, lax.div, lax.max, lax.pow, lax.atan2, lax.igamma, lax.lt)


@pytest.mark.parametrize("f", BINARY, ids=lambda f: f.__name__)
def test_sizes_of_one_grow(f: Any) -> None:
    full = [np.broadcast_to(np.asarray(x), (3, 4)) for x in (COLUMN, ROW)]
    expected = f(*full)
    assert f(COLUMN, ROW).shape == (3, 4)
    np.testing.assert_array_equal(f(COLUMN, ROW), expected)
    np.testing.assert_allclose(verax.jit(f)(COLUMN, ROW), expected, rtol=1e-6)


@pytest.mark.parametrize("axes", [(0, None), (None, 1), (2, 0)])
def test_batches_of_them(axes: Any) -> None:
    stacks = [
        x if axis is None else vnp.stack([x, x + 1], axis)
        for x, axis in zip((COLUMN, ROW), axes, strict=True)
    ]
    actual = verax.vmap(lax.mul, axes)(*stacks)
    for i in range(2):
        x, y = (
            s if axis is None else vnp.take(s, i, axis)
            for s, axis in zip(stacks, axes, strict=True)
        )
        np.testing.assert_array_equal(actual[i], lax.mul(x, y))


def test_derivatives_have_the_shapes_of_the_operands() -> None:
    by_column, by_row = verax.grad(lambda x, y: lax.mul(x, y).sum(), (0, 1))(
        COLUMN, ROW
    )
    np.testing.assert_array_equal(by_column, np.full((3, 1), 14.0))
    np.testing.assert_array_equal(by_row, np.full((1, 4), 6.0))
    (ct,) = verax.linear_transpose(lambda x: lax.mul(x, ROW), COLUMN)(vnp.ones((3, 4)))
    np.testing.assert_array_equal(ct, np.full((3, 1), 14.0))


def test_a_derivative_by_selection() -> None:
    slope = verax.grad(lambda x: lax.max(x, ROW).sum())(COLUMN)
    np.testing.assert_array_equal(slope, [[0.0], [0.5], [1.5]])


def test_size_zero_and_errors() -> None:
    assert lax.add(vnp.ones((0, 1)), vnp.ones((1, 3))).shape == (0, 3)
    with pytest.raises(TypeError, match="same number of dimensions"):
        lax.add(COLUMN, vnp.ones(4))
    with pytest.raises(TypeError, match="dimension of size 1 goes"):
        lax.add(vnp.ones((2, 3)), vnp.ones((3, 3)))
    with pytest.raises(TypeError, match="same shape"):
        lax.select(COLUMN > 0, COLUMN, ROW)
