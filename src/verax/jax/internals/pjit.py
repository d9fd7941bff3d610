"""`jax._src.pjit`: the primitive of calls that are compiled."""

from verax.jax.internals.types.sharding_impls import (
    UNSPECIFIED as UNSPECIFIED,
    UnspecifiedValue as UnspecifiedValue,
)
from verax.ops.calls.call import jit_p as jit_p
from verax.sharding import auto_axes as auto_axes, explicit_axes as explicit_axes

pjit_p = jit_p
