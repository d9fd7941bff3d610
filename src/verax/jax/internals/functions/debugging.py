"""`jax._src.debugging`: printing and calling back, by the names inside JAX."""

from verax.api.host.debugging import (
    debug_callback as debug_callback,
    debug_print as debug_print,
)
