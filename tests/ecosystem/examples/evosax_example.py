"""evosax: CMA-ES and a simple evolution strategy on a quadratic."""

import jax
import jax.numpy as jnp
from evosax.algorithms import CMA_ES, Open_ES


def main() -> None:
    key = jax.random.key(0)
    strategy = CMA_ES(population_size=8, solution=jnp.zeros(2))
    params = strategy.default_params
    state = strategy.init(key, jnp.zeros(2), params)

    @jax.jit
    def generation(state, key):
        asked, told = jax.random.split(key)
        population, state = strategy.ask(asked, state, params)
        fitness = ((population - 1) ** 2).sum(1)
        state, _ = strategy.tell(told, population, fitness, state, params)
        return state, fitness.min()

    state, best = jax.lax.scan(generation, state, jax.random.split(key, 10))
    print(state.mean.tolist(), best.tolist())
    gradient = Open_ES(population_size=8, solution={"w": jnp.zeros(3)})
    params = gradient.default_params
    state = gradient.init(key, {"w": jnp.zeros(3)}, params)
    population, state = jax.jit(gradient.ask)(key, state, params)
    fitness = (population["w"] ** 2).sum(1)
    state, _ = jax.jit(gradient.tell)(key, population, fitness, state, params)
    print(gradient.get_mean(state)["w"].tolist())


if __name__ == "__main__":
    main()
