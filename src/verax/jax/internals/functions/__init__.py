"""Functions of `jax._src` that libraries call."""
