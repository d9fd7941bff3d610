"""Distributions: shapes, dtypes, empty arrays, parameters, moments."""

from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from verax import random

KEY = random.key(5)
SAMPLERS = (
    "uniform",
    "normal",
    "gumbel",
    "exponential",
    "laplace",
    "logistic",
    "cauchy",
    "maxwell",
)
FLOATS = (np.float16, vnp.bfloat16, np.float32)


@pytest.mark.slow
@pytest.mark.parametrize("name", SAMPLERS)
@pytest.mark.usefixtures("little_effort")
def test_shapes_and_dtypes(name: str) -> None:
    sample = getattr(random, name)
    assert sample(KEY).shape == ()
    for shape in ((0,), (2, 0, 3), (3, 2), 4):
        for dtype in FLOATS:
            actual = sample(KEY, shape, dtype)
            assert actual.shape == (shape if isinstance(shape, tuple) else (shape,))
            assert actual.dtype == np.dtype(dtype)
            assert not actual.weak_type


# Name, parameters, mean and variance.
MOMENTS: list[tuple[str, tuple[Any, ...], float, float]] = [
    ("uniform", (), 0.5, 1 / 12),
    ("normal", (), 0.0, 1.0),
    ("gumbel", (), np.euler_gamma, np.pi**2 / 6),
    ("exponential", (), 1.0, 1.0),
    ("laplace", (), 0.0, 2.0),
    ("logistic", (), 0.0, np.pi**2 / 3),
    ("maxwell", (), 2 * np.sqrt(2 / np.pi), 3 - 8 / np.pi),
    ("rayleigh", (2.0,), 2 * np.sqrt(np.pi / 2), 4 * (2 - np.pi / 2)),
    ("triangular", (0.0, 1.0, 3.0), 4 / 3, 7 / 18),
    ("pareto", (5.0,), 5 / 4, 5 / 48),
    ("wald", (1.0,), 1.0, 1.0),
    ("truncated_normal", (-1.0, 1.0), 0.0, 0.2911),
    ("bernoulli", (0.3,), 0.3, 0.21),
    ("geometric", (0.25,), 4.0, 12.0),
    ("lognormal", (0.5,), np.exp(0.125), (np.exp(0.25) - 1) * np.exp(0.25)),
]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "parameters", "mean", "variance"), MOMENTS)
def test_moments(
    name: str, parameters: tuple[Any, ...], mean: float, variance: float
) -> None:
    count = 20000
    draw = verax.jit(lambda k: getattr(random, name)(k, *parameters, shape=(count,)))
    samples = np.asarray(draw(KEY)).astype(np.float64)
    assert abs(samples.mean() - mean) < 5 * np.sqrt(variance / count)
    assert abs(samples.var() / variance - 1) < 0.15


def test_parameters_broadcast() -> None:
    p = np.array([0.0, 1.0], np.float32)
    flips = np.asarray(random.bernoulli(KEY, p, (50, 2)))
    assert not flips[:, 0].any()
    assert flips[:, 1].all()
    low = np.array([0, 100], np.int32)
    drawn = np.asarray(random.randint(KEY, (50, 2), low, low + 3))
    assert ((drawn >= low) & (drawn < low + 3)).all()
    low32 = low.astype(np.float32)
    spread = np.asarray(random.uniform(KEY, (50, 2), minval=low32, maxval=low32 + 1))
    assert ((spread >= low32) & (spread <= low32 + 1)).all()
    both = random.truncated_normal(KEY, np.array([-1.0, 3.0]), 4.0)
    assert both.shape == (2,)


def test_randint_edges() -> None:
    full = np.asarray(random.randint(KEY, (2000,), 0, 256, np.uint8))
    assert full.dtype == np.uint8
    assert full.min() == 0
    assert full.max() == 255
    assert np.asarray(random.randint(KEY, (4,), 5, 5)).tolist() == [5] * 4
    assert np.asarray(random.randint(KEY, (4,), 5, 2)).tolist() == [5] * 4
    wide = np.asarray(random.randint(KEY, (100,), 0, 2**32, np.uint32))
    assert wide.max() > 2**31
    tracer = verax.jit(lambda k, n: random.randint(k, (9,), 0, n))(KEY, 10)
    known = random.randint(KEY, (9,), 0, 10)
    np.testing.assert_array_equal(np.asarray(tracer), np.asarray(known))


def test_permutations_are_permutations() -> None:
    x = np.arange(24, dtype=np.int32).reshape(4, 6)
    rows = np.asarray(random.permutation(KEY, x))
    assert sorted(rows[:, 0].tolist()) == [0, 6, 12, 18]
    np.testing.assert_array_equal(rows - rows[:, :1], np.tile(np.arange(6), (4, 1)))
    free = np.asarray(random.permutation(KEY, x, axis=-1, independent=True))
    np.testing.assert_array_equal(np.sort(free, axis=-1), x)
    assert random.permutation(KEY, 0).shape == (0,)
    floats = random.permutation(KEY, np.array([1.5, 2.5], np.float32))
    assert floats.dtype == np.float32


def test_choice_shapes() -> None:
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    assert random.choice(KEY, x).shape == (4,)
    assert random.choice(KEY, x, (2, 5), axis=1).shape == (3, 2, 5)
    assert random.choice(KEY, x, (2,), False, axis=-1).shape == (3, 2)
    assert random.choice(KEY, 5, (0,)).shape == (0,)
    p = np.array([0.0, 1.0, 0.0], np.float32)
    assert (np.asarray(random.choice(KEY, 3, (20,), p=p)) == 1).all()


@pytest.mark.slow
def test_categorical_follows_its_probabilities() -> None:
    p = np.array([0.1, 0.6, 0.3], np.float32)
    drawn = np.asarray(random.categorical(KEY, np.log(p), shape=(20000,)))
    assert drawn.dtype == np.int32
    np.testing.assert_allclose(np.bincount(drawn) / 20000, p, atol=0.02)


def test_gradient_through_a_sample() -> None:
    slope = verax.grad(lambda s: (random.normal(KEY, (3,)) * s).sum())(2.0)
    expected = np.asarray(random.normal(KEY, (3,))).sum()
    np.testing.assert_allclose(np.asarray(slope), expected, 1e-5)
    low = verax.grad(lambda x: random.uniform(KEY, (), minval=x, maxval=2.0))(1.0)
    u = float(random.uniform(KEY))
    np.testing.assert_allclose(float(low), 1 - u, 1e-5)
