"""Functions applied along axes and to every element, against NumPy."""

from typing import Any

import numpy as np

import verax
from tests.numpy.against import agree, error_of

jnp: Any = verax.numpy
RANDOM = np.random.default_rng(2)
X = RANDOM.normal(size=(2, 3, 4)).astype(np.float32)


def test_mapping() -> None:
    for axis in (0, 1, 2):
        agree(
            lambda x, i=axis: jnp.apply_along_axis(lambda v: v[:2] * 2, i, x),
            lambda x, i=axis: np.apply_along_axis(lambda v: v[:2] * 2, i, x),
            X,
        )
    signature = "(m,n),(n)->(m)"
    product = jnp.vectorize(lambda a, b: a @ b, signature=signature)
    expected = np.vectorize(lambda a, b: a @ b, signature=signature)
    agree(product, expected, X, X[0, 0])
    assert "signature" in error_of(
        lambda: jnp.vectorize(len, signature="x"), ValueError
    )
