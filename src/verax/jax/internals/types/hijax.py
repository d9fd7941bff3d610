"""`jax.experimental.hijax`: what class bodies say of methods of types, and effects."""

from collections.abc import Callable
from typing import Any

from verax.ir.avals import AbstractRef as AbstractRef, ShapedArray as AbstractValue
from verax.jax.internals.types.effects import (
    control_flow_allowed_effects as control_flow_allowed_effects,
)
from verax.jax.overlays.ad import is_undefined_primal as is_undefined_primal

__all__ = [
    "AbstractRef",
    "AbstractValue",
    "aval_method",
    "aval_property",
    "control_flow_allowed_effects",
    "is_undefined_primal",
]


def aval_method[F: Callable[..., Any]](f: F) -> F:
    """A method that values of a type have."""
    return f


def aval_property(fget: Callable[..., object]) -> property:
    """A property that values of a type have."""
    return property(fget)
