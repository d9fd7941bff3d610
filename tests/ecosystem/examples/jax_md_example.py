"""JAX MD: a periodic box of soft spheres, minimised and then run at a temperature."""

import jax
import jax.numpy as jnp
from jax_md import energy, minimize, simulate, space


def main() -> None:
    key = jax.random.key(0)
    displacement, shift = space.periodic(4.0)
    positions = jax.random.uniform(key, (16, 2)) * 4
    soft = energy.soft_sphere_pair(displacement)
    print(float(soft(positions)))
    start, descend = minimize.fire_descent(soft, shift)
    state, descend = start(positions), jax.jit(descend)
    for _ in range(20):
        state = descend(state)
    print(float(soft(state.position)))
    start, step = simulate.nvt_nose_hoover(soft, shift, 1e-3, 0.1)
    state, step = start(key, positions), jax.jit(step)
    for _ in range(5):
        state = step(state)
    print(float(soft(state.position)), state.position[:2].tolist())
    print(float(jnp.abs(jax.grad(soft)(positions)).sum()))


if __name__ == "__main__":
    main()
