"""Flax NNX: a stateful model and its optimizer trained under `nnx.jit`."""

import jax
import jax.numpy as jnp
import optax
from flax import nnx


class Model(nnx.Module):
    def __init__(self, rngs):
        self.first = nnx.Linear(3, 8, rngs=rngs)
        self.norm = nnx.BatchNorm(8, rngs=rngs)
        self.dropout = nnx.Dropout(0.1, rngs=rngs)
        self.last = nnx.Linear(8, 1, rngs=rngs)

    def __call__(self, x):
        return self.last(self.dropout(nnx.relu(self.norm(self.first(x)))))


@nnx.jit
def step(model, optimizer, inputs, targets):
    def loss(model):
        return ((model(inputs) - targets) ** 2).mean()

    value, gradient = nnx.value_and_grad(loss)(model)
    optimizer.update(model, gradient)
    return value


def main() -> None:
    model = Model(nnx.Rngs(0))
    optimizer = nnx.Optimizer(model, optax.adam(1e-2), wrt=nnx.Param)
    inputs = jax.random.normal(jax.random.key(1), (16, 3))
    targets = inputs.sum(1, keepdims=True)
    for number in range(30):
        value = step(model, optimizer, inputs, targets)
        if number % 10 == 0:
            print("loss", float(value))
    model.eval()
    print(model(inputs[:2]).tolist())
    graph, params, rest = nnx.split(model, nnx.Param, ...)
    print(jax.tree.map(jnp.shape, nnx.to_pure_dict(params)))
    print(nnx.merge(graph, params, rest)(inputs[:2]).tolist())

    @nnx.split_rngs(splits=3)
    @nnx.vmap
    def many(rngs):
        return nnx.Linear(2, 2, rngs=rngs)

    print(many(nnx.Rngs(1)).kernel.shape)


if __name__ == "__main__":
    main()
