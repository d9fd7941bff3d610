"""Haiku: modules with state, an unrolled LSTM and the graph of a function."""

import haiku as hk
import jax
import jax.numpy as jnp


def network(x):
    normal = hk.BatchNorm(True, True, 0.9)(x, is_training=True)
    return hk.nets.MLP([8, 1])(normal) + hk.get_parameter("b", [1], init=jnp.ones)


def recurrent(x):
    core = hk.LSTM(3)
    return hk.dynamic_unroll(core, x, core.initial_state(2))[0]


def main() -> None:
    key = jax.random.PRNGKey(0)
    inputs = jax.random.normal(key, (3, 4))
    transformed = hk.transform_with_state(network)
    params, state = transformed.init(key, inputs)
    print({name: jax.tree.map(jnp.shape, value) for name, value in params.items()})
    out, state = jax.jit(transformed.apply)(params, state, key, inputs)
    print(out.tolist(), sorted(state))

    def loss(params):
        return (transformed.apply(params, state, key, inputs)[0] ** 2).sum()

    print(jax.tree.map(lambda g: float(jnp.abs(g).sum()), jax.grad(loss)(params)))
    unrolled = hk.without_apply_rng(hk.transform(recurrent))
    sequence = jnp.ones((5, 2, 4))
    params = unrolled.init(key, sequence)
    print(float(jax.jit(unrolled.apply)(params, sequence).sum()))
    graph = hk.experimental.to_dot(lambda x: jnp.sin(x) + 1)(jnp.ones(3))
    print(graph.split()[0], "sin" in graph)


if __name__ == "__main__":
    main()
