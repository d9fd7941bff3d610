"""Arrays joined between brackets, masks as indices: `c_`, `r_` and their kin."""

from typing import Any

import numpy as np

import verax
from tests.numpy.against import error_of, typed

jnp: Any = verax.numpy


def test_joining_between_brackets() -> None:
    a, b = np.array([1, 2]), np.array([3, 4])
    x, y = jnp.asarray(a), jnp.asarray(b)
    assert jnp.c_[x, y].tolist() == np.c_[a, b].tolist()
    assert jnp.c_[1:3, y].tolist() == np.c_[1:3, b].tolist()
    assert jnp.c_[1, 2].tolist() == [[1, 2]]
    assert typed(jnp.r_[1, 2:5, jnp.array([6.0])]) == ("float32", [1, 2, 3, 4, 6])
    for key in ("0,2", "0,2,0", "1,3,0", "-1", "1,2,-1"):
        assert jnp.r_[key, x, y].tolist() == np.r_[key, a, b].tolist(), key
    assert jnp.r_["r", x].tolist() == [[1, 2]]
    assert jnp.r_["c", x].tolist() == [[1], [2]]
    assert jnp.r_[[1, 2], 3].tolist() == [1, 2, 3]
    assert jnp.r_[0:1:3j].tolist() == [0, 0.5, 1]
    assert jnp.r_[-2:].shape == (0,)
    assert "first" in error_of(lambda: jnp.r_[1, "0", 2], ValueError)
    assert "directive" in error_of(lambda: jnp.r_["x", 2], ValueError)


def test_mask_indices_and_iterable() -> None:
    actual = jnp.mask_indices(3, jnp.tril, 1)
    expected = np.mask_indices(3, np.tril, 1)
    assert [x.tolist() for x in actual] == [x.tolist() for x in expected]
    assert jnp.mask_indices(3, jnp.tril, size=2)[0].tolist() == [0, 1]
    assert jnp.iterable(jnp.ones(3))
    assert not jnp.iterable(3)
    assert not jnp.iterable(jnp.ones(()))
