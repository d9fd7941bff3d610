"""Floor 0: variables and literals, the operands of equations.

One idea: a variable is a number and a type, a literal is a value and a type, and both
are small values without a program around them, so that the printer can use them while
it sees equations and jaxprs only by their shape::

    variable(0, ShapedArray((8,), float32))                # a:f32[8]
    scalar_literal(np.float32(3), ShapedArray((), float32))    # 3.0:f32[]
"""

from typing import ClassVar, final

import numpy as np
from attrs import define, field, frozen

from verax.ir.avals import ShapedArray
from verax.ir.memos import holds
from verax.ir.promotion import scalar_text
from verax.ir.records import ReprMixin


@define(eq=False, repr=False)
class VarFields:
    """The fields of a variable, while it is being made; see `equation`."""

    transient: ClassVar[bool] = False

    index: int
    aval: ShapedArray


@final
@frozen(repr=False)
class Var(VarFields):
    """A variable: its index in the jaxpr, and its type."""

    __module__ = "verax.ir"

    def __repr__(self) -> str:
        return f"{letters(self.index)}:{self.aval}"

    def __hash__(self) -> int:
        # Variables of one program differ in their numbers.
        return self.index


class OfType(dict[int, tuple[Var]]):
    """The variables of one type by number, each as the results of an equation."""

    def __init__(self, table: "Results", aval: ShapedArray) -> None:
        super().__init__()
        self.table = table
        self.aval = aval

    def __missing__(self, index: int) -> tuple[Var]:
        made = VarFields(index, self.aval)
        made.__class__ = Var
        self.table.count()
        return self.setdefault(index, (made,))  # type: ignore[arg-type]  # its class is Var now


class Results(dict[ShapedArray, OfType]):
    """`RESULTS[aval][index]` is `(variable(index, aval),)`, shared between programs.

    Most equations have one result, so this tuple is what they hold: an object less for
    each, which the garbage collector need not visit. Two look-ups by identity and by a
    small number take less time than a cache that is keyed by both. All are forgotten
    when there are too many; two that are made at the same time are equal.
    """

    def __init__(self, limit: int) -> None:
        super().__init__()
        self.limit = limit
        self.made = 0

    def __missing__(self, aval: ShapedArray) -> OfType:
        return self.setdefault(aval, OfType(self, aval))

    def count(self) -> None:
        """Note that there is one more."""
        self.made += 1
        if self.made > self.limit:
            self.made = 0
            self.clear()


RESULTS = Results(1 << 17)


def variable(index: int, aval: ShapedArray) -> Var:
    """`Var(index, aval)`, shared between programs."""
    return RESULTS[aval][index][0]


def results(first: int, avals: tuple[ShapedArray, ...]) -> tuple[Var, ...]:
    """The variables of these types, numbered from `first` on."""
    if len(avals) == 1:
        return RESULTS[avals[0]][first]
    return tuple([RESULTS[aval][first + i][0] for i, aval in enumerate(avals)])


def results_like(first: int, outvars: tuple[Var, ...]) -> tuple[Var, ...]:
    """The variables of the types of `outvars`, numbered from `first` on."""
    if len(outvars) == 1:
        return RESULTS[outvars[0].aval][first]
    return tuple([RESULTS[v.aval][first + i][0] for i, v in enumerate(outvars)])


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


@frozen(eq=False, repr=False)
class Identity(ReprMixin):
    """An object compared by identity: the key of an array constant."""

    held: object

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Identity) and other.held is self.held

    def __hash__(self) -> int:
        return id(self.held)


@final
@frozen(repr=False)
class Literal:
    """A constant operand: scalars are compared by their bits, arrays by identity.

    `value` is a NumPy scalar array, or any array object for larger constants (a
    NumPy array, or an array of the runtime which stays on its device).
    """

    __module__ = "verax.ir"

    value: object = field(eq=False)
    aval: ShapedArray
    key: bytes | Identity

    @property
    def val(self) -> object:
        """`value`, under JAX's name."""
        return self.value

    @property
    def transient(self) -> bool:
        """Whether the constant is an array, which a memo must not keep alive."""
        return type(self.key) is Identity and holds(self.key.held)

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
