"""The stages of jit as classes, under the names of `jax.stages` (floor 6).

This module only gives names; the work is done in `verax.api`::

    traced = verax.jit(f).trace(x)            # Traced
    compiled = traced.lower().compile()       # Lowered, Compiled
    deserialize(compiled.serialize())(x)      # in another process
    verax.jit(f).warm(x)                      # Compilation, by a thread

>>> import verax
>>> isinstance(verax.jit(lambda x: x), Wrapped)
True
"""

from typing import Any, Protocol, runtime_checkable

from verax.api.stages.compilation import Compilation
from verax.api.stages.loading import deserialize
from verax.api.stages.stages import (
    Compiled,
    Lowered,
    OptionsByName as CompilerOptions,
    Traced,
)
from verax.api.tracing.structs import ArgInfo

__all__ = [
    "ArgInfo",
    "Compilation",
    "Compiled",
    "CompilerOptions",
    "Lowered",
    "Traced",
    "Wrapped",
    "deserialize",
]


@runtime_checkable
class Wrapped(Protocol):
    """A function that can be traced, lowered and compiled, such as those of `jit`."""

    def __call__(self, *args: object, **kwargs: object) -> Any:
        """The result; traced, lowered and compiled as needed."""
        ...

    def trace(self, *args: object, **kwargs: object) -> Traced:
        """The traced function for these arguments."""
        ...

    def lower(self, *args: object, **kwargs: object) -> Lowered:
        """The lowered function for these arguments."""
        ...
