"""`jax._src.pjit`: the primitive of calls that are compiled."""

from verax.ops.calls.call import jit_p as jit_p
