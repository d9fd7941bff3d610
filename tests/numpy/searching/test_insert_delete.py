"""Elements taken out of arrays against NumPy."""

from typing import Any

import numpy as np
import pytest

import verax
from tests.numpy.against import error_of

jnp: Any = verax.numpy


def test_trim_zeros_of_a_matrix() -> None:
    x = np.zeros((4, 5), np.float32)
    x[1, 2] = x[2, 3] = 1
    for options in ({}, {"trim": "f"}, {"trim": "b"}, {"axis": 0}, {"axis": (-1,)}):
        np.testing.assert_array_equal(
            jnp.trim_zeros(x, **options), np.trim_zeros(x, **options)
        )
    assert jnp.trim_zeros(np.zeros((2, 3))).shape == (0, 0)
    traced = verax.jit(jnp.trim_zeros)
    assert "trim_zeros" in error_of(lambda: traced(x), TypeError)


@pytest.mark.parametrize("axis", [None, 0, -1])
def test_delete_at_traced_places(axis: int | None) -> None:
    x = np.arange(24, dtype=np.float32).reshape(4, 6)
    places = np.array([1, -1, 2], np.int32)
    drop = verax.jit(lambda i: jnp.delete(x, i, axis, assume_unique_indices=True))
    np.testing.assert_array_equal(drop(places), np.delete(x, places, axis))
    np.testing.assert_array_equal(drop(np.int32(2)), np.delete(x, 2, axis))
    message = error_of(lambda: verax.jit(lambda i: jnp.delete(x, i))(places), TypeError)
    assert "assume_unique_indices" in message
