"""Rematerialisation under JAX's names (floor 6).

This module only gives names; the work is done in `verax.api`.

    >>> from verax.ad_checkpoint import checkpoint_name
    >>> float(checkpoint_name(1.0, "x"))
    1.0
"""

from verax import checkpoint_policies
from verax.api.custom.checkpoint import checkpoint, checkpoint_name
from verax.api.inspect.make_jaxpr import print_saved_residuals, saved_residuals
from verax.ops.calls.checkpoint import Offloadable, Recompute, Saveable

remat = checkpoint

__all__ = [
    "Offloadable",
    "Recompute",
    "Saveable",
    "checkpoint",
    "checkpoint_name",
    "checkpoint_policies",
    "print_saved_residuals",
    "remat",
    "saved_residuals",
]
