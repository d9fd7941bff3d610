"""Floor 0: variables and literals, the operands of equations.

One idea: a variable is a number and a type, a literal is a value and a type, and both
are small values without a program around them, so that the printer can know them
while it knows equations and jaxprs by their shape only::

    variable(0, ShapedArray((8,), float32))                # a:f32[8]
    scalar_literal(np.float32(3), ShapedArray((), float32))    # 3.0:f32[]
"""

from functools import lru_cache

import numpy as np
from attrs import field, frozen

from verax.ir.avals import ShapedArray
from verax.ir.scalars import scalar_text


@frozen(repr=False)
class Var:
    """A variable: the how-manieth of its jaxpr, and its type."""

    index: int
    aval: ShapedArray

    def __repr__(self) -> str:
        return f"{letters(self.index)}:{self.aval}"


@lru_cache(maxsize=1 << 16)
def variable(index: int, aval: ShapedArray) -> Var:
    """`Var(index, aval)`, shared between programs."""
    return Var(index, aval)


def letters(index: int) -> str:
    """The printed name of variable `index`: a to z, then ba, bb, ...

    >>> letters(0), letters(25), letters(26)
    ('a', 'z', 'ba')
    """
    name = ""
    while True:
        index, digit = divmod(index, 26)
        name = chr(ord("a") + digit) + name
        if index == 0:
            return name


@frozen(eq=False)
class Identity:
    """An object compared by identity: the key of an array constant."""

    held: object

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Identity) and other.held is self.held

    def __hash__(self) -> int:
        return id(self.held)


@frozen(repr=False)
class Literal:
    """A constant operand: scalars are compared by their bits, arrays by identity.

    `value` is a NumPy scalar array, or any array object for larger constants (a
    NumPy array, or an array of the runtime which stays on its device).
    """

    value: object = field(eq=False)
    aval: ShapedArray
    key: bytes | Identity

    def __repr__(self) -> str:
        """The scalar; an array stays unread, since it may be large or far away."""
        if isinstance(self.key, Identity):
            return f"const:{self.aval}"
        return f"{scalar_text(self.key, self.aval.dtype)}:{self.aval}"


def scalar_literal(value: np.ndarray | np.generic, aval: ShapedArray) -> Literal:
    """The literal of a zero-dimensional NumPy value of `aval`'s dtype."""
    return Literal(value, aval, value.tobytes())


def array_literal(value: object, aval: ShapedArray) -> Literal:
    """The literal of an array constant, kept by reference and unique by identity."""
    return Literal(value, aval, Identity(value))


type Atom = Var | Literal
