"""Optax: a regression with AdamW, a schedule, clipped gradients and a frozen part."""

import jax
import jax.numpy as jnp
import optax


def main() -> None:
    inputs = jax.random.normal(jax.random.key(0), (64, 3))
    targets = inputs @ jnp.array([1.0, -2.0, 0.5]) + 0.25
    schedule = optax.warmup_cosine_decay_schedule(0.0, 0.1, 10, 100)
    trained = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(schedule))
    optimizer = optax.multi_transform(
        {"trained": trained, "frozen": optax.set_to_zero()},
        {"weight": "trained", "bias": "trained", "scale": "frozen"},
    )
    params = {"weight": jnp.zeros(3), "bias": jnp.zeros(()), "scale": jnp.ones(())}
    state = optimizer.init(params)

    def loss(params):
        predicted = (inputs @ params["weight"] + params["bias"]) * params["scale"]
        return optax.losses.huber_loss(predicted, targets).mean()

    @jax.jit
    def step(params, state):
        value, gradient = jax.value_and_grad(loss)(params)
        updates, state = optimizer.update(gradient, state, params)
        return optax.apply_updates(params, updates), state, value

    for number in range(100):
        params, state, value = step(params, state)
        if number % 25 == 0:
            print("loss", float(value))
    print({name: value.tolist() for name, value in sorted(params.items())})
    print("schedule", float(schedule(5)), float(schedule(50)))


if __name__ == "__main__":
    main()
