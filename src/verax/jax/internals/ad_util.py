"""`jax._src.ad_util`."""

from verax.jax.primitives import Primitive

stop_gradient_p = Primitive("stop_gradient")
