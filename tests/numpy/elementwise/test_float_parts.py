"""Parts of floats: fractions and spacing, at infinity too."""

from typing import Any

import numpy as np

import verax

jnp: Any = verax.numpy


def test_functions_at_infinity() -> None:
    x = np.array([np.inf, -np.inf, -1.5], np.float32)
    fraction, whole = jnp.modf(x)
    assert fraction.tolist() == [0, 0, -0.5]
    assert whole.tolist() == [np.inf, -np.inf, -1]
    assert np.isnan(jnp.spacing(x[:2].astype(np.float16))).all()
