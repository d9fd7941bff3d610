"""What is close to what, also near unsigned numbers."""

from typing import Any

import numpy as np

import verax

jnp: Any = verax.numpy


def test_numbers_near_unsigned_ones() -> None:
    x = np.array([1, 3, 0], np.uint8)
    assert jnp.isclose(x, -1, rtol=1.0).tolist() == [False, False, True]
    assert not bool(jnp.allclose(x, -1, rtol=1.0))
    assert jnp.isclose(x, x + 1, atol=1.0).tolist() == [True] * 3
