"""Flax and Optax: a small transformer in training, everything under `jit`."""

import flax.linen as nn
import jax
import optax


class Block(nn.Module):
    heads: int = 4

    @nn.compact
    def __call__(self, x):
        mask = nn.make_causal_mask(x[..., 0])
        x = x + nn.MultiHeadDotProductAttention(self.heads)(
            nn.LayerNorm()(x), mask=mask
        )
        hidden = nn.gelu(nn.Dense(4 * x.shape[-1])(nn.LayerNorm()(x)))
        return x + nn.Dense(x.shape[-1])(hidden)


class Model(nn.Module):
    words: int = 32
    width: int = 32
    depth: int = 4

    @nn.compact
    def __call__(self, tokens):
        x = nn.Embed(self.words, self.width)(tokens)
        places = self.param("places", nn.initializers.normal(0.02), (16, self.width))
        x = x + places[: tokens.shape[1]]
        for _ in range(self.depth):
            x = Block()(x)
        return nn.Dense(self.words)(nn.LayerNorm()(x))


def main() -> None:
    model = Model()
    tokens = jax.random.randint(jax.random.key(1), (8, 16), 0, model.words)
    params = jax.jit(model.init)(jax.random.key(0), tokens)
    schedule = optax.warmup_cosine_decay_schedule(0.0, 3e-3, 5, 50)
    optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(schedule))
    state = jax.jit(optimizer.init)(params)

    @jax.jit
    def step(params, state, tokens):
        def loss(params):
            logits = model.apply(params, tokens[:, :-1])
            return optax.losses.softmax_cross_entropy_with_integer_labels(
                logits, tokens[:, 1:]
            ).mean()

        value, gradients = jax.value_and_grad(loss)(params)
        updates, state = optimizer.update(gradients, state, params)
        return optax.apply_updates(params, updates), state, value

    for _ in range(5):
        params, state, value = step(params, state, tokens)
        print("loss", float(value))


if __name__ == "__main__":
    main()
