"""Layers make parameters of the announced shapes, and compute what they say."""

from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from verax.example_libraries import stax
from verax.example_libraries.stax import Layer

IMAGES = np.linspace(-1, 1, 2 * 6 * 7 * 3, dtype=np.float32).reshape(2, 6, 7, 3)


def run(layer: Layer, x: Any, **kwargs: Any) -> tuple[Any, Any, Any]:
    """The announced shape, the parameters and the result of a layer."""
    init, apply = layer
    shape, params = init(verax.random.key(0), x.shape)
    return shape, params, apply(params, x, **kwargs)


@pytest.mark.parametrize(
    "layer",
    [
        stax.Dense(5),
        stax.Conv(4, (2, 3), (2, 1), "SAME"),
        stax.Conv(4, (3, 3)),
        stax.GeneralConv(("NCHW", "OIHW", "NCHW"), 2, (3, 2)),
        stax.ConvTranspose(4, (3, 3), (2, 2), "SAME"),
        stax.MaxPool((2, 2), (2, 3), "SAME"),
        stax.SumPool((3, 1), spec="NCHW"),
        stax.AvgPool((2, 2), padding="SAME", spec="CHWN"),
        stax.AvgPool((2, 2), padding=[(0, 0), (1, 0), (0, 1), (0, 0)]),
        stax.BatchNorm(),
        stax.BatchNorm(axis=-1, scale=False),
        stax.BatchNorm(axis=(0, -1), center=False),
        stax.Flatten,
        stax.Identity,
        stax.LeakyRelu,
        stax.shape_dependent(lambda shape: stax.Dense(2 * shape[-1])),
    ],
)
def test_the_shape_is_that_of_the_result(layer: Layer) -> None:
    shape, params, result = run(layer, IMAGES)
    assert result.shape == shape
    grads = verax.grad(lambda p: vnp.sum(layer[1](p, IMAGES)))(params)
    assert [g.shape for g in verax.tree.leaves(grads)] == [
        p.shape for p in verax.tree.leaves(params)
    ]


def test_dense_and_convolution_compute_products() -> None:
    _, (W, b), result = run(stax.Dense(5), IMAGES)
    np.testing.assert_allclose(result, IMAGES @ np.asarray(W) + b, atol=1e-5)
    _, (W, b), result = run(stax.Conv(4, (1, 1)), IMAGES)
    np.testing.assert_allclose(result, IMAGES @ np.asarray(W)[0, 0] + b, atol=1e-5)


def test_pools() -> None:
    x = np.arange(5.0, dtype=np.float32).reshape(1, 5, 1)
    pools = [pool((2,), (2,), "SAME") for pool in (stax.MaxPool, stax.SumPool)]
    highest, total = [run(pool, x)[2].ravel().tolist() for pool in pools]
    assert highest == [1, 3, 4]
    assert total == [1, 5, 4]
    # Padding does not count in a mean.
    mean = run(stax.AvgPool((2,), (2,), "SAME"), x)[2]
    assert mean.ravel().tolist() == [0.5, 2.5, 4]


def test_batch_norm() -> None:
    _, (beta, gamma), result = run(stax.BatchNorm(), IMAGES)
    assert beta.tolist() == [0] * 3
    assert gamma.tolist() == [1] * 3
    np.testing.assert_allclose(np.mean(result, (0, 1, 2)), 0, atol=1e-5)
    np.testing.assert_allclose(np.std(result, (0, 1, 2)), 1, atol=1e-3)


def test_branches_and_their_joins() -> None:
    both = stax.parallel(stax.Identity, stax.Exp)
    joined = stax.serial(stax.FanOut(2), both, stax.FanInConcat())
    shape, _, result = run(joined, IMAGES)
    assert shape == result.shape == (2, 6, 7, 6)
    np.testing.assert_allclose(result[..., 3:], np.exp(IMAGES), rtol=1e-5)
    _, _, result = run(stax.serial(stax.FanOut(3), stax.FanInSum), IMAGES)
    np.testing.assert_allclose(result, 3 * IMAGES)


def test_dropout_keeps_the_mean_and_needs_a_key() -> None:
    x = vnp.ones((100, 100))
    _, _, result = run(stax.Dropout(0.8), x, rng=verax.random.key(1))
    assert sorted(set(np.unique(result).tolist())) == [0, 1.25]
    assert abs(float(vnp.mean(result)) - 1) < 0.02
    # A network gives each of its layers a key of its own.
    twice = stax.parallel(stax.Dropout(0.5), stax.Dropout(0.5))
    _, apply = stax.serial(stax.FanOut(2), twice)
    first, second = apply([(), ((), ())], x, rng=verax.random.key(1))
    assert bool(vnp.any(first != second))
    _, _, same = run(stax.Dropout(0.8, mode="test"), x, rng=verax.random.key(1))
    assert bool(vnp.all(same == 1))
    with pytest.raises(ValueError, match="needs a key"):
        run(stax.Dropout(0.8), x)


def test_a_network_learns() -> None:
    init, apply = stax.serial(stax.Dense(16), stax.Tanh, stax.Dense(1))
    x = np.linspace(-1, 1, 64, dtype=np.float32)[:, None]
    _, params = init(verax.random.key(0), x.shape)

    def loss(params: Any) -> Any:
        return vnp.mean(vnp.square(apply(params, x) - vnp.sin(x)))

    @verax.jit
    def step(params: Any) -> Any:
        return verax.tree.map(
            lambda p, g: p - 0.2 * g, params, verax.grad(loss)(params)
        )

    first = loss(params)
    for _ in range(200):
        params = step(params)
    assert loss(params) < 0.1 * first
