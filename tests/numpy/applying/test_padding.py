"""Padding against NumPy."""

from typing import Any

import numpy as np
import pytest

import verax
from tests.numpy.against import agree, error_of

jnp: Any = verax.numpy
RANDOM = np.random.default_rng(2)
M = RANDOM.normal(size=(3, 4)).astype(np.float32)


@pytest.mark.parametrize("width", [1, (1, 2), ((1, 2), (0, 3)), 7], ids=str)
@pytest.mark.parametrize(
    "mode",
    [
        "constant",
        "edge",
        "wrap",
        "reflect",
        "symmetric",
        "linear_ramp",
        "maximum",
        "mean",
        "median",
    ],
)
def test_pad(mode: Any, width: Any) -> None:
    agree(
        lambda x: jnp.pad(x, width, mode=mode), lambda x: np.pad(x, width, mode=mode), M
    )


def test_pad_options() -> None:
    for options in (
        {"constant_values": ((1, 2), (3, 4))},
        {"mode": "mean", "stat_length": 2},
        {"mode": "reflect", "reflect_type": "odd"},
        {"mode": "linear_ramp", "end_values": 5.0},
    ):
        agree(
            lambda x, o=options: jnp.pad(x, ((1, 2), (2, 1)), **o),
            lambda x, o=options: np.pad(x, ((1, 2), (2, 1)), **o),
            M,
        )
    assert jnp.pad(jnp.asarray(M), {1: (1, 2)}).shape == (3, 7)
    text = error_of(lambda: jnp.pad(M, 1, mode="foo"), NotImplementedError)
    assert "Unimplemented padding mode" in text
    assert "negative" in error_of(lambda: jnp.pad(M, -1), ValueError)
    assert "unsupported keyword arguments" in error_of(
        lambda: jnp.pad(M, 1, mode="edge", constant_values=1), ValueError
    )
