"""`jax._src.state`: types and effects of references, by the names of JAX."""

from verax.ir.avals import AbstractRef as AbstractRef
from verax.ir.effects import Effect

__all__ = ["AbstractRef", "ReadEffect", "TransformedRef", "WriteEffect"]


class Never(type):
    """The type of classes that nothing is an instance of."""

    def __instancecheck__(cls, x: object) -> bool:
        return False


class ReadEffect(Effect):
    """The effect of reading a reference."""


class WriteEffect(Effect):
    """The effect of writing to a reference."""


class TransformedRef(metaclass=Never):
    """A part of a reference; there are none: parts are read and written at once."""


def register_discharge_rule(primitive: object) -> object:
    """Take a rule that is never asked: references are discharged by the rows."""
    return lambda rule: rule
