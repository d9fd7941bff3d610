"""Floor 0: which primitives a printed program means, unless the reader says.

One idea: floor 0 knows no primitive, `verax.wiring` knows all of them, and puts them
here, once, as it puts the functions behind the methods of arrays::

    Library.primitives["sin"]
"""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import ClassVar

from verax.ir.avals import ShapedArray
from verax.ir.jaxpr import Primitive

type Typing = Callable[..., Sequence[ShapedArray]]
"""Gives the result types for (primitive, params, *operand types), or raises."""


class Library:
    """The primitives by name, and their type rules: empty until verax is imported."""

    primitives: ClassVar[Mapping[str, Primitive]] = MappingProxyType({})
    typing: ClassVar[Typing | None] = None
