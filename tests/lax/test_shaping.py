"""Joins, splits, shapes and polynomials of `verax.lax`."""

from typing import Any

import numpy as np
import pytest

import verax
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
        (lambda: lax.split(x, (1, 1), 1), "Sum of sizes 2 must be equal to dim"),
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


def primitives_of(jaxpr: Any) -> list[str]:
    return [eqn.primitive.name for eqn in jaxpr.eqns]


def test_the_gradient_of_a_split_is_one_concatenation() -> None:
    x = vnp.arange(5.0)

    def loss(x: verax.Array) -> verax.Array:
        first, second, rest = lax.split(x, (2, 0, 3))
        return (first**2).sum() + second.sum() + (3 * rest).sum()

    names = primitives_of(verax.make_jaxpr(verax.grad(loss))(x))
    assert names.count("concatenate") == 1
    assert "pad" not in names
    assert verax.grad(loss)(x).tolist() == [0, 2, 3, 3, 3]
    assert verax.hessian(loss)(x).tolist() == np.diag([2, 2, 0, 0, 0]).tolist()


def test_the_gradient_of_one_part_is_a_pad() -> None:
    x = vnp.ones((2, 4))
    back = verax.grad(lambda x: (lax.split(x, (1, 2, 1), 1)[1] ** 2).sum())
    names = primitives_of(verax.make_jaxpr(back)(x))
    assert "pad" in names
    assert "concatenate" not in names
    assert verax.jit(back)(x).tolist() == [[0, 2, 2, 0]] * 2


def test_numpy_splits_by_the_primitive_where_parts_follow_each_other() -> None:
    x = vnp.arange(6.0)
    assert primitives_of(verax.make_jaxpr(lambda x: vnp.split(x, 3))(x)) == ["split"]
    assert primitives_of(verax.make_jaxpr(lambda x: vnp.roll(x, 2))(x)) == [
        "split",
        "concatenate",
    ]
    assert [part.tolist() for part in vnp.split(x, [4, 1])] == [
        part.tolist() for part in np.split(np.asarray(x), [4, 1])
    ]
    assert lax.split(x, (6,))[0] is x
