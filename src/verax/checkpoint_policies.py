"""Policies for what `verax.checkpoint` may keep, under JAX's names (floor 6).

One idea: a policy is a function of a primitive, its operand types and its params.

    >>> from verax.checkpoint_policies import nothing_saveable
    >>> import verax
    >>> nothing_saveable(verax.lax.sin_p)
    False
"""

from verax.api.custom.checkpoint import (
    dots_saveable as checkpoint_dots,
    dots_saveable as dots_saveable,
    dots_with_no_batch_dims_saveable as checkpoint_dots_with_no_batch_dims,
    dots_with_no_batch_dims_saveable as dots_with_no_batch_dims_saveable,
    everything_saveable as everything_saveable,
    nothing_saveable as nothing_saveable,
    offload_dot_with_no_batch_dims as offload_dot_with_no_batch_dims,
    save_and_offload_only_these_names as save_and_offload_only_these_names,
    save_any_names_but_these as save_any_names_but_these,
    save_anything_except_these_names as save_anything_except_these_names,
    save_from_both_policies as save_from_both_policies,
    save_only_these_names as save_only_these_names,
)
from verax.api.memory.policies import budget as budget

__all__ = [
    "budget",
    "checkpoint_dots",
    "checkpoint_dots_with_no_batch_dims",
    "dots_saveable",
    "dots_with_no_batch_dims_saveable",
    "everything_saveable",
    "nothing_saveable",
    "offload_dot_with_no_batch_dims",
    "save_and_offload_only_these_names",
    "save_any_names_but_these",
    "save_anything_except_these_names",
    "save_from_both_policies",
    "save_only_these_names",
]
