"""Chex: a dataclass that is a pytree, assertions that hold, and some that do not."""

import chex
import jax
import jax.numpy as jnp


@chex.dataclass(frozen=True)
class State:
    position: chex.Array
    time: float


@jax.jit
@chex.assert_max_traces(n=1)
def advance(state):
    chex.assert_shape(state.position, (2,))
    chex.assert_type(state.position, jnp.float32)
    return state.replace(position=state.position * 2, time=state.time + 1)


def main() -> None:
    state = State(position=jnp.ones(2), time=1.0)
    for _ in range(3):
        state = advance(state)
    print(state.position.tolist(), float(state.time))
    print(jax.tree.map(lambda leaf: float(leaf.sum()), state))
    chex.assert_trees_all_close(state, advance(advance(state)), rtol=10)
    chex.assert_tree_all_finite(state)
    for check in (
        lambda: chex.assert_rank(state.position, 2),
        lambda: chex.assert_trees_all_equal(state, advance(state)),
        lambda: advance(State(position=jnp.ones(3), time=1.0)),
    ):
        try:
            check()
        except AssertionError as error:
            print(type(error).__name__)


if __name__ == "__main__":
    main()
