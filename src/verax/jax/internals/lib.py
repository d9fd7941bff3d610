"""`jax._src.lib`: the error that programs end with, the version of jaxlib."""

from verax.backend.xla.compile_options import JAXLIB as version
from verax.errors import JaxRuntimeError as XlaRuntimeError

__all__ = ["XlaRuntimeError", "version"]
