"""`jax._src.ad_util`."""

from verax.jax.overlays.ad import (
    add_jaxvals as add_jaxvals,
    add_jaxvals_p as add_jaxvals_p,
    zeros_like_aval as zeros_like_aval,
)
from verax.jax.primitives import Primitive
from verax.rules.rows.row import Zero as Zero
from verax.rules.values.constants import aval_of

stop_gradient_p = Primitive("stop_gradient")


def p2tz(primal_value: object) -> Zero:
    """The zero tangent of a value."""
    return Zero(aval_of(primal_value).tangent())
