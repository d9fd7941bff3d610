"""Windows for signals against NumPy."""

from typing import Any

import numpy as np
import pytest

import verax
from tests.numpy.against import agree, error_of

jnp: Any = verax.numpy


@pytest.mark.parametrize("name", ["bartlett", "blackman", "hamming", "hanning"])
@pytest.mark.parametrize("size", [0, 1, 2, 7])
def test_windows(name: str, size: int) -> None:
    actual = getattr(jnp, name)(size)
    assert actual.dtype == "float32"
    np.testing.assert_allclose(actual, getattr(np, name)(size), 1e-6, 1e-7)
    assert "negative" in error_of(lambda: getattr(jnp, name)(-1), ValueError)


@pytest.mark.parametrize("size", [0, 1, 2, 7])
def test_kaiser(size: int) -> None:
    agree(lambda b: jnp.kaiser(size, b), lambda b: np.kaiser(size, b), np.float32(2))
    assert jnp.kaiser(size, 2).dtype == "float32"
