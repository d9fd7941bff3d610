"""`verax.flatten_util`: pytrees as vectors, and back."""

from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from verax.flatten_util import ravel_pytree


def test_leaves_of_several_dtypes_come_back() -> None:
    tree = {"a": np.arange(3), "b": vnp.ones((2, 2)), "c": 1.0, "d": (True, 2.0j)}
    flat, unravel = ravel_pytree(tree)
    assert flat.shape == (10,)
    assert flat.dtype == vnp.complex64
    again = unravel(flat)
    assert again["a"].dtype == np.int32
    assert again["d"][0].dtype == bool
    verax.tree.map(np.testing.assert_array_equal, again, tree)


def test_gradients_pass_through_vectors() -> None:
    def loss(tree: dict[str, Any]) -> verax.Array:
        return (ravel_pytree(tree)[0] ** 2).sum()

    slopes = verax.grad(loss)({"a": vnp.ones(2), "b": 3.0})
    assert slopes["a"].tolist() == [2.0, 2.0]
    assert float(slopes["b"]) == 6.0


def test_the_way_back_is_a_value() -> None:
    flat, unravel = ravel_pytree([vnp.ones(2), 1.0])
    other = ravel_pytree([vnp.zeros(2), 2.0])[1]
    assert unravel == other
    assert hash(unravel) == hash(other)
    apply = verax.jit(lambda way, x: way(x)[0], static_argnums=0)
    assert apply(unravel, flat).tolist() == [1.0, 1.0]


def test_no_leaves_are_a_vector_of_none() -> None:
    flat, unravel = ravel_pytree({})
    assert flat.shape == (0,)
    assert flat.dtype == vnp.float32
    assert unravel(flat) == {}


def test_one_dtype_for_all_leaves_takes_any() -> None:
    unravel = ravel_pytree([vnp.ones(2), vnp.ones(1)])[1]
    assert unravel(vnp.ones(3, vnp.bfloat16))[0].dtype == vnp.bfloat16


def test_other_vectors_are_refused() -> None:
    unravel = ravel_pytree([vnp.ones(2), 1])[1]
    with pytest.raises(ValueError, match="vector of 3 elements"):
        unravel(vnp.ones(4))
    with pytest.raises(TypeError, match="expected dtype float32, to which"):
        unravel(vnp.ones(3, int))
