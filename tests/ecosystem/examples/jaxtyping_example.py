"""jaxtyping: shapes checked by beartype, while tracing too, and a pytree's names."""

import jax
import jax.numpy as jnp
from beartype import beartype
from jaxtyping import Array, Float, Int, PyTree, TypeCheckError, jaxtyped


@jaxtyped(typechecker=beartype)
def total(x: Float[Array, "rows columns"]) -> Float[Array, "rows"]:
    return x.sum(1)


@jaxtyped(typechecker=beartype)
def leaves(tree: PyTree[Int[Array, "n"]]) -> int:
    return len(jax.tree.leaves(tree))


def main() -> None:
    print(total(jnp.ones((2, 3))).tolist(), jax.jit(total)(jnp.ones((2, 3))).tolist())
    print(jax.vmap(total)(jnp.ones((4, 2, 3))).shape)
    print(leaves({"a": jnp.arange(3), "b": (jnp.arange(3),)}))
    for wrong in (
        lambda: total(jnp.ones(3)),
        lambda: total(jnp.ones((2, 3), int)),
        lambda: jax.jit(total)(jnp.ones(3)),
        lambda: leaves([jnp.ones(2)]),
    ):
        try:
            wrong()
        except TypeCheckError as error:
            print(type(error).__name__)


if __name__ == "__main__":
    main()
