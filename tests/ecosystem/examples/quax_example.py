"""Quax: a linear layer with low-rank updates."""

import equinox as eqx
import jax
import jax.numpy as jnp
import quax
from quax.examples import lora


def main() -> None:
    key = jax.random.key(0)
    layer = lora.loraify(eqx.nn.Linear(4, 4, key=key), rank=2, key=key)
    print(quax.quaxify(layer)(jnp.ones(4)).tolist())

    @eqx.filter_jit
    @eqx.filter_grad
    def gradient(layer, x):
        return quax.quaxify(layer)(x).sum()

    gradients = jax.tree.leaves(gradient(layer, jnp.ones(4)))
    print([float(jnp.abs(leaf).sum()) for leaf in gradients])


if __name__ == "__main__":
    main()
