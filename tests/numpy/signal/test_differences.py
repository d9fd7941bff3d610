"""Differences, integrals and unwrapped angles against NumPy."""

from typing import Any

import numpy as np
import pytest

import verax
from tests.numpy.against import agree, error_of

jnp: Any = verax.numpy


def test_unwrap() -> None:
    signal = np.array([0, 2, 7, 1, -9], np.float32)
    agree(jnp.unwrap, np.unwrap, signal)
    agree(
        lambda x: jnp.unwrap(x, discont=4.0, axis=0),
        lambda x: np.unwrap(x, discont=4.0, axis=0),
        np.stack([signal, signal * 3], 1),
    )
    for period in (4, 5):
        whole = np.array([0, 2, 7, 1, 5, 2], np.int32)
        agree(
            lambda x, n=period: jnp.unwrap(x, period=n),
            lambda x, n=period: np.unwrap(x, period=n),
            whole,
        )
    assert jnp.unwrap(np.zeros(0, np.float32)).shape == (0,)
    assert "real" in error_of(lambda: jnp.unwrap(signal * 1j), ValueError)


def test_trapezoid_of_nothing() -> None:
    assert jnp.trapezoid(np.zeros((2, 0))).tolist() == [0, 0]
    assert jnp.trapezoid(np.zeros((0, 2)), axis=0).tolist() == [0, 0]


@pytest.mark.parametrize("places", [0.5, np.array([0.0, 1.0, 3.0, 3.5], np.float32)])
def test_gradient_with_parabolas_at_the_edges(places: Any) -> None:
    x = np.array([[1.0, 4.0, 2.0, 8.0], [0.0, 1.0, 4.0, 9.0]], np.float32)
    for order in (1, 2):
        np.testing.assert_allclose(
            jnp.gradient(x, places, axis=1, edge_order=order),
            np.gradient(x, places, axis=1, edge_order=order),
            1e-6,
        )
    assert "edge_order" in error_of(lambda: jnp.gradient(x, edge_order=3), ValueError)
    assert "3 elements" in error_of(
        lambda: jnp.gradient(x, axis=0, edge_order=2), ValueError
    )


@pytest.mark.parametrize(
    ("shape", "steps", "axis"),
    [
        ((3, 4, 5), (), 0),
        ((3, 4, 5), (5,), 1),
        ((3, 4, 5), (3, 3, 5), 1),
        ((2, 3, 4, 5), (2, 1, 3, 5), 2),
        ((4,), (3,), -1),
    ],
)
def test_steps_of_trapezoid_broadcast_as_in_numpy(
    shape: tuple[int, ...], steps: tuple[int, ...], axis: int
) -> None:
    draw = np.random.default_rng(0).normal
    y: Any = draw(size=shape)
    dx: Any = draw(size=steps)
    with verax.numpy_rank_promotion("raise"):
        actual = jnp.trapezoid(y, dx=dx, axis=axis)
    np.testing.assert_allclose(actual, np.trapezoid(y, dx=dx, axis=axis), 1e-5, 1e-5)


def test_polyfit_and_reduceat_without_rank_promotion() -> None:
    x, y = np.arange(6.0), np.random.default_rng(0).normal(size=(6, 5))
    with verax.numpy_rank_promotion("raise"):
        _, spread = jnp.polyfit(x, y, 1, cov=True)
        added = jnp.frompyfunc(lambda a, b: a + b, 2, 1)
        actual = added.reduceat(y, jnp.array([0, 2, 5]))
    assert spread.shape == (2, 2, 5)
    np.testing.assert_allclose(actual, np.add.reduceat(y, [0, 2, 5]), 1e-5)
