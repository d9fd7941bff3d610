"""Optimizers of trees: they go to the minimum, and their first steps are as written."""

from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from verax.example_libraries import optimizers
from verax.example_libraries.optimizers import Optimizer

TARGET = {"w": np.array([[1.0, -2.0], [0.5, 3.0]], np.float32), "b": np.float32(0.5)}


def loss(params: Any) -> Any:
    return sum(vnp.sum(vnp.square(params[k] - TARGET[k])) for k in ("w", "b"))


def zeros() -> Any:
    return {"w": vnp.zeros((2, 2)), "b": vnp.zeros(())}


@pytest.mark.parametrize(
    ("optimizer", "steps"),
    [
        (optimizers.sgd(0.1), 100),
        (optimizers.momentum(0.05, 0.8), 200),
        (optimizers.nesterov(0.05, 0.8), 200),
        (optimizers.adagrad(0.5), 300),
        (optimizers.rmsprop(optimizers.exponential_decay(0.1, 50, 0.5)), 400),
        (optimizers.rmsprop_momentum(optimizers.constant(0.005), momentum=0.5), 1500),
        (optimizers.adam(0.1), 300),
        (optimizers.adamax(0.1), 400),
        (optimizers.sm3(0.5), 400),
    ],
    ids=[
        "sgd",
        "momentum",
        "nesterov",
        "adagrad",
        "rmsprop",
        "rmsprop_momentum",
        "adam",
        "adamax",
        "sm3",
    ],
)
def test_optimizers_find_a_minimum(optimizer: Optimizer, steps: int) -> None:
    init, update, params_of = optimizer

    def step(i: Any, state: Any) -> Any:
        return update(i, verax.grad(loss)(params_of(state)), state)

    state = verax.lax.fori_loop(0, steps, step, init(zeros()))
    assert loss(params_of(state)) < 1e-2
    assert params_of(state)["w"].shape == (2, 2)


def test_first_steps() -> None:
    x, g = np.float32(1.0), np.float32(0.5)
    for optimizer, expected in (
        (optimizers.sgd(0.1), 0.95),
        (optimizers.momentum(0.1, 0.9), 0.95),
        (optimizers.nesterov(0.1, 0.9), 1 - 0.1 * 0.95),
        (optimizers.adam(0.1), 0.9),
        (optimizers.adamax(0.1), 0.9),
        (optimizers.adagrad(0.1, 0.0), 0.9),
        (optimizers.rmsprop(0.1, 0.75), 0.8),
    ):
        state = optimizer.update_fn(0, g, optimizer.init_fn(x))
        assert np.allclose(optimizer.params_fn(state), expected, atol=1e-5)


def test_schedules() -> None:
    decay = optimizers.inverse_time_decay(1.0, 10, 1.0)
    assert np.allclose(decay(5), 1 / 1.5)
    stairs = optimizers.inverse_time_decay(1.0, 10, 1.0, staircase=True)
    assert np.allclose([stairs(9), stairs(10)], [1.0, 0.5])
    polynomial = optimizers.polynomial_decay(1.0, 10, 0.0, power=2.0)
    assert np.allclose([polynomial(5), polynomial(50)], [0.25, 0.0])
    pieces = optimizers.piecewise_constant([2, 4], [1.0, 0.1, 0.01])
    assert np.allclose([pieces(i) for i in (0, 2, 3, 9)], [1.0, 1.0, 0.1, 0.01])
    with pytest.raises(ValueError, match="one value more"):
        optimizers.piecewise_constant([1], [1.0])
    with pytest.raises(TypeError, match="step size"):
        optimizers.sgd(np.ones(2))


def test_states_are_trees_that_can_be_saved() -> None:
    init, update, params_of = optimizers.adam(0.1)
    state = init(zeros())
    copied = verax.tree.map(lambda x: x + 1, state)
    assert type(copied) is type(state)
    assert np.array_equal(params_of(copied)["w"], np.ones((2, 2)))
    again = optimizers.pack_optimizer_state(optimizers.unpack_optimizer_state(state))
    assert again.tree_def == state.tree_def
    assert again.subtree_defs == state.subtree_defs
    with pytest.raises(TypeError, match="structure"):
        update(0, {"w": 1.0}, state)
    with pytest.raises(TypeError, match="JoinPoint"):
        optimizers.pack_optimizer_state([1.0])


def test_clipped_gradients() -> None:
    grads = {"a": np.array([3.0, 0.0]), "b": np.array([4.0])}
    assert np.allclose(optimizers.l2_norm(grads), 5.0)
    clipped = optimizers.clip_grads(grads, 1.0)
    assert np.allclose(optimizers.l2_norm(clipped), 1.0, atol=1e-6)
    same = optimizers.clip_grads(grads, 10.0)
    assert np.array_equal(same["b"], grads["b"])
