"""Variational inference with automatic derivatives: a Gaussian is fitted to another.

Kucukelbir et al., "Automatic differentiation variational inference", 2017: samples of
the approximation are functions of its parameters, so the bound has a gradient.
"""

from functools import partial

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from verax import random
from verax.rules.values.array import Array
from verax.scipy.stats import multivariate_normal, norm

type Parameters = tuple[Array, Array]

MEAN = np.array([0.5, -1.0], np.float32)
COVARIANCE = np.array([[0.6, 0.2], [0.2, 0.4]], np.float32)


def log_density(x: Array) -> Array:
    return multivariate_normal.logpdf(x, MEAN, COVARIANCE)


def bound(parameters: Parameters, key: Array) -> Array:
    """One sample of the evidence lower bound."""
    mean, log_scale = parameters
    sample = mean + vnp.exp(log_scale) * random.normal(key, mean.shape)
    own = norm.logpdf(sample, mean, vnp.exp(log_scale)).sum()
    return log_density(sample) - own


def loss(parameters: Parameters, key: Array, count: int) -> Array:
    keys = random.split(key, count)
    return -vnp.mean(verax.vmap(partial(bound, parameters))(keys))


@partial(verax.jit, static_argnames=("count", "steps"))
def fitted(key: Array, count: int, steps: int) -> tuple[Parameters, Array]:
    start = vnp.zeros(2), vnp.zeros(2)

    def step(parameters: Parameters, key: Array) -> tuple[Parameters, Array]:
        value, slope = verax.value_and_grad(loss)(parameters, key, count)
        moved = verax.tree_util.tree_map(lambda p, g: p - 0.05 * g, parameters, slope)
        return moved, value

    return verax.lax.scan(step, start, random.split(key, steps))


@pytest.mark.slow
def test_a_gaussian_is_fitted() -> None:
    (mean, log_scale), losses = fitted(random.key(1), 64, 400)
    np.testing.assert_allclose(mean, MEAN, atol=0.1)
    # The best independent scales are those of the precision's diagonal.
    scales = 1 / np.sqrt(np.diag(np.linalg.inv(COVARIANCE)))
    np.testing.assert_allclose(np.exp(log_scale), scales, atol=0.1)
    assert losses[-20:].mean() < losses[:20].mean()


def test_samples_of_the_approximation_can_be_drawn_and_sliced() -> None:
    def first_coordinates(key: Array) -> Array:
        draws = verax.vmap(lambda key: random.normal(key, (2,)))(random.split(key, 8))
        return draws[:, 0]

    key = random.key(0)
    np.testing.assert_allclose(
        verax.jit(first_coordinates)(key), first_coordinates(key), 1e-5
    )


def test_a_step_written_without_a_loop_compiles() -> None:
    slope = verax.jit(verax.grad(loss), static_argnums=2)
    mean, log_scale = slope((vnp.zeros(2), vnp.zeros(2)), random.key(3), 10)
    assert np.all(np.isfinite(mean))
    assert np.all(np.isfinite(log_scale))
