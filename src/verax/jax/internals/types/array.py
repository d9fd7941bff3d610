"""`jax._src.array`: the class of arrays with values."""

from verax.backend.arrays.concrete import ConcreteArray as ArrayImpl

__all__ = ["ArrayImpl"]
