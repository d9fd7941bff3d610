"""Floor 1: what has a type: the common base of arrays and tracers.

One idea: shape and dtype are read off the aval, which is the only state here::

    x.aval, x.shape, x.dtype, x.weak_type
"""

from typing import Final

from verax.ir.avals import Shape, ShapedArray
from verax.ir.dtypes import DType

# As many characters of an object may stand in a message about a leaf of a tree.
SHOWN: Final = 160


class Typed:
    """Something with an aval: a shape, a dtype and a weak type."""

    __slots__ = ("aval",)

    aval: ShapedArray

    @property
    def shape(self) -> Shape:
        """The sizes of the dimensions."""
        return self.aval.shape

    @property
    def dtype(self) -> DType:
        """The type of the elements."""
        return self.aval.dtype

    @property
    def weak_type(self) -> bool:
        """Whether the dtype gives way to others in promotion."""
        return self.aval.weak_type

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.aval.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return self.aval.size


def shown(x: object, limit: int = 60) -> str:
    """Any object as a string for messages, cut at `limit` characters.

    A message must appear even if the `repr` of the object fails.
    """
    try:
        text = repr(x)
    except Exception:
        return f"an object whose repr fails, of type {type(x).__name__}"
    return text if len(text) <= limit else f"{text[: limit - 3]}..."


def described(x: object) -> str:
    """An object and its class, for a message that says it should be another."""
    return f"{shown(x, SHOWN)} of type {type(x).__name__}"


def check_callable(name: str, fun: object) -> None:
    """Raise TypeError unless `fun`, which the function `name` takes, can be called."""
    if not callable(fun):
        raise TypeError(
            f"Expected a callable value: {name} takes a function, not {described(fun)}"
        )


class NotLinear(TypeError):
    """An operation was to be transposed in operands in which it is not linear."""


class NotAnArray(TypeError):
    """An operand that is not an array, scalar or tracer."""


class NotYetAnArray(NotAnArray, ValueError):
    """An operand that `verax.numpy.asarray` makes an array, by its `__jax_array__`."""


class ShardingTypeError(TypeError):
    """How explicit mesh axes split operands leaves open how they split a result."""

    __module__ = "verax.errors"


class UnsummedError(ShardingTypeError, NotImplementedError):
    """An operand is unreduced, of an operation that is not linear."""
