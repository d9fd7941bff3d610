"""Quax: low-rank updates of a layer, jitted and trained; units, bands and zeros."""

import equinox as eqx
import jax
import jax.numpy as jnp
import quax
from quax.examples import lora, structured_matrices, unitful, zero


@eqx.filter_jit
def apply(layer, x):
    return layer(x)


def main() -> None:
    key = jax.random.key(0)
    plain = eqx.nn.Linear(4, 3, key=key)
    weight = lora.LoraArray(plain.weight, rank=2, key=key)
    layer = eqx.tree_at(lambda layer: layer.weight, plain, weight)
    x = jnp.arange(4.0)
    print(apply(plain, x).tolist(), quax.quaxify(apply)(layer, x).tolist())
    layer = lora.loraify(eqx.nn.Linear(4, 4, key=key), rank=2, key=key)

    @eqx.filter_jit
    @eqx.filter_grad
    def gradient(layer, x):
        return quax.quaxify(layer)(x).sum()

    gradients = jax.tree.leaves(gradient(layer, jnp.ones(4)))
    print([float(jnp.abs(leaf).sum()) for leaf in gradients])
    length = unitful.Unitful(jnp.array(2.0), {unitful.meters: 1})
    print(quax.quaxify(lambda a: a * a)(length))
    diagonal = structured_matrices.TridiagonalMatrix(*map(jnp.ones, (2, 3, 2)))
    print(quax.quaxify(jax.jit(lambda a, b: a @ b))(diagonal, jnp.arange(3.0)).tolist())
    nothing = zero.Zero((3,), jnp.float32)
    product = quax.quaxify(jnp.multiply)(nothing, jnp.arange(3.0))
    print(type(product).__name__, product.shape)


if __name__ == "__main__":
    main()
