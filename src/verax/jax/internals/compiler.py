"""`jax._src.compiler`."""
