"""`jax._src.checkify`: the exceptions, by the names that JAX has for them."""

from verax.rules.programs.host import (
    BatchedError,
    DivisionByZeroError,
    FailedCheckError,
    JaxException,
    NaNError,
    OOBError,
)

__all__ = [
    "BatchedError",
    "DivisionByZeroError",
    "FailedCheckError",
    "JaxException",
    "NaNError",
    "OOBError",
]
