"""Rematerialisation under JAX's names (floor 6).

This module only gives names; the work is done in `verax.api`.

    >>> from verax.ad_checkpoint import checkpoint_name
    >>> float(checkpoint_name(1.0, "x"))
    1.0
"""

from verax import checkpoint_policies
from verax.api.custom.checkpoint import checkpoint, checkpoint_name

remat = checkpoint

__all__ = ["checkpoint", "checkpoint_name", "checkpoint_policies", "remat"]
