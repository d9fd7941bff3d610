"""Gymnax: a batch of episodes of CartPole and of a grid world, as one program."""

import gymnax
import jax
import jax.numpy as jnp


def rollout(name, key):
    environment, params = gymnax.make(name)

    def step(carry, key):
        observation, state = carry
        choose, act = jax.random.split(key)
        action = environment.action_space(params).sample(choose)
        observation, state, reward, _, _ = environment.step(act, state, action, params)
        return (observation, state), reward

    carry = environment.reset(key, params)
    (observation, _), rewards = jax.lax.scan(step, carry, jax.random.split(key, 20))
    return observation, rewards.sum()


def main() -> None:
    keys = jax.random.split(jax.random.key(0), 4)
    for name in ("CartPole-v1", "Pendulum-v1", "Catch-bsuite"):
        run = jax.jit(jax.vmap(lambda key, name=name: rollout(name, key)))
        observations, rewards = run(keys)
        print(name, observations.shape, rewards.tolist())
        print(float(jnp.abs(observations).sum()))


if __name__ == "__main__":
    main()
