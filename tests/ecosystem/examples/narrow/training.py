"""Libraries for JAX in bfloat16 by one line: Flax with Optax, and Equinox.

The idea: the models are those of the libraries, untouched; `narrow` stands around the
loss or its gradient, and the curve is held against float32's::

    python -m verax.jax tests/ecosystem/examples/narrow/training.py
"""

import equinox as eqx
import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax

from verax.rewrites import narrow

STEPS = 300


class Model(nn.Module):
    """A small network of Flax's layers."""

    @nn.compact
    def __call__(self, x):
        x = nn.gelu(nn.Dense(64)(x))
        return nn.Dense(1)(nn.LayerNorm()(x))


def data(step: int) -> tuple[jax.Array, jax.Array]:
    """Points, and a function of them with noise."""
    a, b = jax.random.split(jax.random.key(step))
    x = jax.random.normal(a, (128, 8))
    return x, jnp.sin(x.sum(1, keepdims=True)) + 0.3 * jax.random.normal(b, (128, 1))


def flax_curve(change) -> np.ndarray:
    """The losses of Flax's model under Optax's Adam."""
    model, optimizer = Model(), optax.adam(1e-3)
    params = model.init(jax.random.key(0), data(0)[0])

    def loss(params, x, y):
        return ((model.apply(params, x) - y) ** 2).mean()

    gradient = change(jax.value_and_grad(loss))  # the line

    @jax.jit
    def step(params, state, x, y):
        value, grads = gradient(params, x, y)
        updates, state = optimizer.update(grads, state, params)
        return optax.apply_updates(params, updates), state, value

    state, losses = optimizer.init(params), []
    for i in range(STEPS):
        params, state, value = step(params, state, *data(i))
        losses.append(float(value))
    return np.array(losses)


def equinox_curve(change) -> np.ndarray:
    """The losses of Equinox's model, whose tree has functions among its leaves."""
    model = eqx.nn.MLP(8, 1, 64, 2, key=jax.random.key(0))

    def loss(model, x, y):
        return ((jax.vmap(model)(x) - y) ** 2).mean()

    gradient = eqx.filter_value_and_grad(change(loss))  # the line

    @eqx.filter_jit
    def step(model, x, y):
        value, grads = gradient(model, x, y)
        return eqx.apply_updates(model, jax.tree.map(lambda g: -1e-2 * g, grads)), value

    losses = []
    for i in range(STEPS):
        model, value = step(model, *data(i))
        losses.append(float(value))
    return np.array(losses)


def main() -> None:
    """Print by how much the curves differ."""
    for name, curve in (("flax", flax_curve), ("equinox", equinox_curve)):
        wide, short = curve(lambda f: f), curve(narrow)
        means = [np.convolve(c, np.ones(10) / 10, "valid") for c in (wide, short)]
        print(name, f"{100 * np.abs(means[1] / means[0] - 1).max():.2f} %")


if __name__ == "__main__":
    main()
