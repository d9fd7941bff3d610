"""`jax.experimental`: names that verax has elsewhere."""

from verax.api.host.callbacks import io_callback as io_callback
