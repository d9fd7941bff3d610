"""Bits packed into bytes and out of them, and views by bits, against NumPy."""

from typing import Any

import numpy as np
import pytest

import verax
from tests.numpy.against import agree, error_of

RANDOM = np.random.default_rng(2)
M = RANDOM.normal(size=(3, 4)).astype(np.float32)

jnp: Any = verax.numpy


def test_bits() -> None:
    bits = np.array([[1, 0, 1], [0, 0, 2]])
    for axis in (None, 0, 1, -1):
        for order in ("big", "little"):
            agree(
                lambda x, a=axis, o=order: jnp.packbits(x, a, o),
                lambda x, a=axis, o=order: np.packbits(x, a, o),
                bits,
            )
    assert jnp.packbits(1).tolist() == [128]
    assert jnp.packbits(np.zeros((2, 0), bool), axis=1).shape == (2, 0)
    words = np.array([[3, 200]], np.uint8)
    for count in (None, 10, 20, -10, 0):
        agree(
            lambda x, n=count: jnp.unpackbits(x, 1, n),
            lambda x, n=count: np.unpackbits(x, 1, n),
            words,
        )
    agree(
        lambda x: jnp.unpackbits(x, 0, None, "little"),
        lambda x: np.unpackbits(x, 0, None, "little"),
        words,
    )
    assert jnp.unpackbits(jnp.uint8(5)).tolist() == [0, 0, 0, 0, 0, 1, 0, 1]
    assert "uint8" in error_of(lambda: jnp.unpackbits(bits), TypeError)
    assert "integers" in error_of(lambda: jnp.packbits(bits * 1.0), TypeError)
    assert "big" in error_of(lambda: jnp.packbits(bits, bitorder="x"), ValueError)


@pytest.mark.parametrize("dtype", ["int32", "uint8", "float16", "uint16"])
def test_view(dtype: str) -> None:
    agree(lambda x: jnp.asarray(x).view(dtype), lambda x: x.view(dtype), M)


def test_view_complex() -> None:
    agree(lambda x: jnp.asarray(x).view("complex64"), lambda x: x.view("complex64"), M)
