"""Flax Linen: a convolutional network in training, an LSTM, attention and a summary."""

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax
from flax.training.train_state import TrainState


class Network(nn.Module):
    @nn.compact
    def __call__(self, x, train=True):
        x = nn.Conv(8, (3, 3))(x)
        x = nn.BatchNorm(use_running_average=not train)(x)
        x = nn.avg_pool(nn.relu(x), (2, 2), (2, 2))
        x = nn.Dropout(0.1, deterministic=not train)(x.reshape(x.shape[0], -1))
        return nn.Dense(10)(x)


class State(TrainState):
    batch_stats: dict


def sizes(tree):
    return jax.tree.map(lambda leaf: round(float(jnp.abs(leaf).sum()), 3), tree)


def train(key: jax.Array) -> None:
    network = Network()
    images = jax.random.normal(key, (16, 8, 8, 1))
    labels = jnp.arange(16) % 10
    variables = network.init({"params": key, "dropout": key}, images)
    print(jax.tree.map(jnp.shape, variables))
    state = State.create(
        apply_fn=network.apply,
        params=variables["params"],
        tx=optax.sgd(0.05),
        batch_stats=variables["batch_stats"],
    )

    @jax.jit
    def step(state, key):
        def loss(params):
            logits, updated = state.apply_fn(
                {"params": params, "batch_stats": state.batch_stats},
                images,
                rngs={"dropout": key},
                mutable=["batch_stats"],
            )
            losses = optax.softmax_cross_entropy_with_integer_labels(logits, labels)
            return losses.mean(), updated

        both = jax.value_and_grad(loss, has_aux=True)
        (value, updated), gradients = both(state.params)
        state = state.apply_gradients(grads=gradients)
        return state.replace(batch_stats=updated["batch_stats"]), value

    for number in range(10):
        state, value = step(state, jax.random.fold_in(key, number))
        print("loss", float(value))
    print(sizes(state.params["Conv_0"]), sizes(state.batch_stats))


def main() -> None:
    key = jax.random.key(0)
    train(key)
    sequence = jax.random.normal(key, (2, 6, 4))
    for layer in (
        nn.RNN(nn.LSTMCell(5)),
        nn.MultiHeadDotProductAttention(num_heads=2),
        nn.remat(nn.Dense)(3),
    ):
        variables = layer.init(key, sequence)
        print(float(layer.apply(variables, sequence).sum()))
    print(Network().tabulate(key, jnp.ones((1, 8, 8, 1)), False)[:40].strip())


if __name__ == "__main__":
    main()
