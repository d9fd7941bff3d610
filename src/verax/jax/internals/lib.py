"""`jax._src.lib`: the error that programs end with."""

from verax.errors import JaxRuntimeError as XlaRuntimeError

__all__ = ["XlaRuntimeError"]
