"""Initializers: variances by fans, facts from jax, dtypes, errors."""

from typing import Any

import numpy as np
import pytest

from verax import random
from verax.nn import initializers

KEY = random.key(5)
ANY: Any = initializers


def test_constants() -> None:
    assert np.asarray(initializers.zeros(KEY, (2, 3))).tolist() == [[0] * 3] * 2
    assert initializers.ones(KEY, (2,), np.float16).dtype == np.float16
    half = initializers.constant(0.5)(KEY, (2,), np.float32)
    assert np.asarray(half).tolist() == [0.5, 0.5]


@pytest.mark.parametrize(
    ("name", "variance"),
    [
        ("glorot_uniform", 2 / 700),
        ("glorot_normal", 2 / 700),
        ("xavier_uniform", 2 / 700),
        ("xavier_normal", 2 / 700),
        ("lecun_uniform", 1 / 300),
        ("lecun_normal", 1 / 300),
        ("he_uniform", 2 / 300),
        ("he_normal", 2 / 300),
        ("kaiming_uniform", 2 / 300),
        ("kaiming_normal", 2 / 300),
    ],
)
def test_variance(name: str, variance: float) -> None:
    weights = np.asarray(getattr(initializers, name)()(KEY, (300, 400)))
    assert weights.dtype == np.float32
    assert abs(weights.var() / variance - 1) < 0.03
    assert abs(weights.mean()) < 5 * np.sqrt(variance / weights.size)


def test_fans_of_a_convolution() -> None:
    make = initializers.variance_scaling(1.0, "fan_out", "normal", in_axis=-2)
    weights = np.asarray(make(KEY, (3, 3, 16, 64)))
    assert abs(weights.var() * 9 * 64 - 1) < 0.1
    batched = initializers.he_normal(batch_axis=0)(KEY, (10, 30, 40))
    assert abs(np.asarray(batched).var() * 30 / 2 - 1) < 0.1
    mean = initializers.variance_scaling(1.0, "fan_geo_avg", "uniform")
    assert abs(np.asarray(mean(KEY, (100, 400))).var() * 200 - 1) < 0.1


def test_plain_distributions() -> None:
    uniform = np.asarray(initializers.uniform(0.5)(KEY, (1000,)))
    assert 0 <= uniform.min() < uniform.max() < 0.5
    normal = np.asarray(initializers.normal(0.5)(KEY, (4000,)))
    assert abs(normal.std() - 0.5) < 0.03
    cut = np.asarray(initializers.truncated_normal(1.0, lower=-1.0)(KEY, (1000,)))
    assert -1 < cut.min() < cut.max() < 2


@pytest.mark.parametrize("kind", ["truncated_normal", "normal", "uniform"])
def test_complex(kind: Any) -> None:
    make = initializers.variance_scaling(1.0, "fan_in", kind, dtype=np.complex64)
    weights = np.asarray(make(KEY, (100, 200)))
    assert weights.dtype == np.complex64
    assert abs((np.abs(weights) ** 2).mean() * 100 - 1) < 0.05


def test_small_dtypes_and_empty_weights() -> None:
    assert initializers.he_normal(dtype=np.float16)(KEY, (2, 3)).dtype == np.float16
    assert initializers.he_normal()(KEY, (0, 3)).shape == (0, 3)


def test_errors() -> None:
    with pytest.raises(ValueError, match="Must be at least 2D"):
        initializers.he_normal()(KEY, (3,))
    with pytest.raises(ValueError, match="mode"):
        ANY.variance_scaling(1.0, "fan", "normal")(KEY, (2, 3))
    with pytest.raises(ValueError, match="distribution"):
        ANY.variance_scaling(1.0, "fan_in", "cauchy")(KEY, (2, 3))
    with pytest.raises(ValueError, match="weights"):
        initializers.normal()(KEY, (2, 3), np.int32)
    assert initializers.constant(2.5)(KEY, (2,), np.int32).tolist() == [2, 2]


@pytest.mark.slow
def test_orthogonal_weights() -> None:
    for shape, axis in (((4, 6), -1), ((2, 3, 4), 0), ((5, 2), -1)):
        init = initializers.orthogonal(2.0, column_axis=axis)
        actual = np.moveaxis(np.asarray(init(random.key(1), shape)), axis, -1)
        flat = actual.reshape(-1, actual.shape[-1]) / 2
        wide = flat if flat.shape[0] < flat.shape[1] else flat.T
        np.testing.assert_allclose(wide @ wide.T, np.eye(len(wide)), atol=1e-5)
    assert initializers.orthogonal()(random.key(1), (0, 3)).shape == (0, 3)
    delta = np.asarray(initializers.delta_orthogonal()(random.key(1), (3, 2, 4)))
    np.testing.assert_allclose(delta[1] @ delta[1].T, np.eye(2), atol=1e-5)
    assert not delta[[0, 2]].any()
    with pytest.raises(ValueError, match="at least two dimensions"):
        initializers.orthogonal()(random.key(1), (3,))
    with pytest.raises(ValueError, match="at least as many outputs"):
        initializers.delta_orthogonal()(random.key(1), (3, 4, 2))
