"""`jax.experimental.hijax`: what class bodies say of types that verax does not have."""

from collections.abc import Callable
from typing import Any

from verax.ir.avals import ShapedArray as AbstractValue

__all__ = ["AbstractValue", "aval_method", "aval_property", "register_hitype"]


def aval_method[F: Callable[..., Any]](f: F) -> F:
    """A method that values of the type would have."""
    return f


def aval_property(fget: Callable[..., Any]) -> property:
    """A property that values of the type would have."""
    return property(fget)


def register_hitype(kind: type, to_type: Callable[..., Any]) -> None:
    """Say which values have the type: none are traced."""
