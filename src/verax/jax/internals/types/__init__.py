"""Classes of `jax._src` that libraries look for."""
