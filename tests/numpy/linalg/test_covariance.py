"""Covariances and correlations against NumPy."""

from typing import Any

import numpy as np
import pytest

import verax
from tests.numpy.against import agree, error_of, typed

jnp: Any = verax.numpy
N = np.array([1, 2, 3], np.int32)
X = np.arange(6, dtype=np.float32).reshape(2, 3) ** 2


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"rowvar": False},
        {"bias": True},
        {"ddof": 0},
        {"fweights": N},
        {"aweights": np.array([0.1, 0.2, 0.3], np.float32)},
        {"fweights": N, "aweights": np.array([0.1, 0.2, 0.3], np.float32)},
        {
            "fweights": N,
            "aweights": np.array([0.1, 0.2, 0.3], np.float32),
            "ddof": 0,
        },
    ],
)
def test_cov(options: dict[str, Any]) -> None:
    agree(lambda x: jnp.cov(x, **options), lambda x: np.cov(x, **options), X)


def test_cov_of_other_operands() -> None:
    agree(jnp.cov, np.cov, X[1])
    agree(jnp.cov, np.cov, X, X + N)
    agree(jnp.cov, np.cov, X + 1j * X**2)
    assert typed(jnp.cov(N)) == ("float32", 1.0)
    assert jnp.cov(N, dtype="float16").dtype == "float16"
    assert jnp.cov(np.zeros((0, 3), np.float32)).shape == (0, 0)
    assert "matrices" in error_of(lambda: jnp.cov(np.zeros((2, 2, 2))), ValueError)
    assert "integers" in error_of(lambda: jnp.cov(X, fweights=X[0]), TypeError)
    assert "observations" in error_of(lambda: jnp.cov(X, fweights=N[:2]), ValueError)


def test_corrcoef() -> None:
    agree(jnp.corrcoef, np.corrcoef, X)
    agree(jnp.corrcoef, np.corrcoef, X[0], X[1])
    agree(jnp.corrcoef, np.corrcoef, X + 1j * X[::-1])
    assert float(jnp.corrcoef(N)) == 1
