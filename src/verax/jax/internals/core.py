"""`jax._src.core`."""

from verax.jax.overlays.core import *  # noqa: F403
from verax.jax.overlays.core import (
    trace_ctx as trace_ctx,
    trace_state_clean as trace_state_clean,
)
