"""Users' own derivative rules, under JAX's names (floor 6).

This module only gives names; the work is done in `verax.api`.

    >>> from verax.custom_derivatives import custom_jvp
    >>> custom_jvp.__name__
    'custom_jvp'
"""

from verax.api.custom.arguments import (
    CustomVJPPrimal as CustomVJPPrimal,
    SymbolicZero as SymbolicZero,
    custom_vjp_primal_tree_values as custom_vjp_primal_tree_values,
    zero_from_primal as zero_from_primal,
)
from verax.api.custom.jvp import custom_jvp as custom_jvp
from verax.api.custom.vjp import (
    closure_convert as closure_convert,
    custom_gradient as custom_gradient,
    custom_vjp as custom_vjp,
    linear_call as linear_call,
)
from verax.ops.custom.jvp import custom_jvp_call_p as custom_jvp_call_p
from verax.ops.custom.vjp import custom_vjp_call_p as custom_vjp_call_p
