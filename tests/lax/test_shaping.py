"""Joins, splits, shapes and polynomials of `verax.lax`."""

from typing import Any

import numpy as np
import pytest

import verax.numpy as vnp
from verax import lax


def test_lax_joins_and_splits() -> None:
    x = vnp.arange(6).reshape(2, 3)
    assert lax.broadcast_shapes((2, 1), (3,), ()) == (2, 3)
    assert lax.dtype(1.0) == lax.dtype(np.float64) == lax.dtype(float) == "float32"
    assert lax.stack([x, x], -1).shape == (2, 3, 2)
    assert [part.tolist() for part in lax.unstack(x, 1)] == [[0, 3], [1, 4], [2, 5]]
    assert lax.tile(x, (2, 1)).tolist() == np.tile(np.asarray(x), (2, 1)).tolist()
    assert [p.tolist() for p in lax.split(x, (1, 2), 1)] == [
        [[0], [3]],
        [[1, 2], [4, 5]],
    ]
    assert lax.broadcast_like(x[0], x).tolist() == [[0, 1, 2]] * 2
    wrong: list[tuple[Any, str]] = [
        (lambda: lax.stack([]), "the same shape"),
        (lambda: lax.stack([x, x[0]]), "the same shape"),
        (lambda: lax.split(x, (1, 1), 1), "add up"),
        (lambda: lax.tile(x, (2,)), "repetitions"),
        (
            lambda: lax.broadcast_shapes((2,), (3,)),
            r"Incompatible shapes for broadcasting: \(2,\), \(3,\)",
        ),
    ]
    for function, text in wrong:
        with pytest.raises(ValueError, match=text):
            function()


def test_lax_index_take() -> None:
    x = vnp.arange(6).reshape(2, 3)
    rows, columns = vnp.array([0, 1]), vnp.array([2, -3])
    assert lax.index_take(x, (rows, columns), (0, 1)).tolist() == [2, 3]
    assert lax.index_take(x, (vnp.array([-1, 5]),), (1,)).tolist() == [[2, 5], [2, 5]]


def test_lax_polynomial() -> None:
    assert float(lax.polynomial(3.0, [1.0, 5.0, 2.0])) == 34
    x = vnp.arange(4.0)
    assert lax.polynomial(x, [1.0, np.float32(2), x]).tolist() == [1, 4, 13, 34]
    assert lax.polynomial(x, []).tolist() == [0, 0, 0, 0]
    assert lax.polynomial(x, [7.0]).tolist() == [7, 7, 7, 7]
