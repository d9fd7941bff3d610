"""`jax.interpreters.pxla`."""
