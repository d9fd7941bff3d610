"""BlackJAX: NUTS after window adaptation, and a chain of random-walk Metropolis."""

import blackjax
import jax
import jax.numpy as jnp


def log_density(x):
    return -0.5 * jnp.sum(x**2)


def main() -> None:
    key = jax.random.key(0)
    warmup = blackjax.window_adaptation(blackjax.nuts, log_density)
    (state, parameters), _ = warmup.run(key, jnp.ones(2), 100)
    step = jax.jit(blackjax.nuts(log_density, **parameters).step)
    for number in range(5):
        state, info = step(jax.random.fold_in(key, number), state)
        print(state.position.tolist(), int(info.num_integration_steps))
    walk = blackjax.rmh(
        log_density, blackjax.mcmc.random_walk.normal(jnp.array([0.5, 0.5]))
    )

    @jax.jit
    def chain(key):
        keys = jax.random.split(key, 100)
        step = lambda state, key: (walk.step(key, state)[0], state.position)
        return jax.lax.scan(step, walk.init(jnp.zeros(2)), keys)[1]

    print(chain(key).mean(0).tolist())


if __name__ == "__main__":
    main()
