"""`jax._src.state`: types and effects of references, by the names of JAX."""

from verax.ir.avals import AbstractRef as AbstractRef
from verax.ir.effects import Effect, RefEffect as RefEffect

__all__ = ["AbstractRef", "ReadEffect", "RefEffect", "WriteEffect"]


class ReadEffect(Effect):
    """The effect of reading a reference."""


class WriteEffect(Effect):
    """The effect of writing to a reference."""


def register_discharge_rule(primitive: object) -> object:
    """Take a rule that is never asked: references are discharged by the rows."""
    return lambda rule: rule
