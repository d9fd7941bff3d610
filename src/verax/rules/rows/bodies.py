"""Floor 1: how transformations pass through an equation that holds programs.

A row with programs has the column `thread`. It says which operands feed which program,
which results are carried from step to step, and how the params are made again. What
becomes of one program, the transformation says, as a `Through`::

    def thread(through: Through, p: ScanParams, values: Values) -> Values: ...

Each value is a tuple of parts there. Beside the values goes a state: scalars that each
program may change, such as an error, which loops carry and choices return.
"""

from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from typing import Protocol

from attrs import define

from verax.ir.avals import Shape, ShapedArray
from verax.ir.jaxpr import Jaxpr, Params, Primitive
from verax.ir.records import ReprMixin
from verax.rules.values.array import Array

type Parts = tuple[Array | None, ...]
"""The parts of one value; None is a part that is known to be zero or absent. A value
that the transformation does not touch is its own single part: `(x,)`."""
type Types = tuple[ShapedArray | None, ...]
type Values = Sequence[Parts]


class Role(Enum):
    """The number of runs of an equation's program.

    CALL: once. BRANCH: once or not at all. STEP: any number of times, on what it has
    returned. TEST: before each step and at the end, to say whether there is another.

    >>> [role.name for role in Role]
    ['CALL', 'BRANCH', 'STEP', 'TEST']
    """

    __module__ = "verax.extend"

    CALL = "call"
    BRANCH = "branch"
    STEP = "step"
    TEST = "test"


class Through(Protocol):
    """A transformation of the programs of one equation.

    Programs are named by their numbers: their places among `params.subjaxprs()`.
    """

    __module__: str = "verax.extend"

    def outputs(self, number: int, types: Sequence[Types]) -> Sequence[Types]:
        """The types of the parts of a program's outputs, from those of its inputs."""
        ...

    def fill(self, parts: Parts, width: int) -> Parts:
        """All `width` parts of a value, as arrays."""
        ...

    def enter(self, role: Role) -> Sequence[object]:
        """The state with which the programs in this role begin."""
        ...

    def program(
        self,
        number: int,
        role: Role,
        types: Sequence[Types],
        due: Sequence[Types | None],
    ) -> Jaxpr:
        """The program from parts and state to parts, of the types `due`, and state.

        A type that is None there is that of `outputs`. A test that does not tell
        anything returns no state.
        """
        ...

    def tells(self, number: int) -> bool:
        """Whether a program in the role TEST changes the state."""
        ...

    def leave(self, role: Role, state: Sequence[Array], lanes: Shape = ()) -> None:
        """Take over the state with which the equation ends.

        A choice for each element of a batch has one for each, in arrays of the shape
        `lanes`.
        """
        ...


@define(eq=False, repr=False)
class OfWholeValues(ReprMixin):
    """A `Through` that leaves values as they are; subclasses say what the state is."""

    jaxprs: tuple[Jaxpr, ...]

    def outputs(self, number: int, types: Sequence[Types]) -> Sequence[Types]:
        return [(aval,) for aval in self.jaxprs[number].out_avals]

    def fill(self, parts: Parts, width: int) -> Parts:
        return parts

    def tells(self, number: int) -> bool:
        return False


type ThreadRule[P] = Callable[[Through, P, Values], Values]


def thread_of(primitive: Primitive) -> "ThreadRule[Params] | None":
    """The `thread` column of a primitive, if its row has one."""
    rule = getattr(primitive, "thread", None)
    return rule


def plain(parts: Sequence[object]) -> bool:
    """Whether a value is untouched."""
    return len(parts) == 1


def types_of(parts: Parts) -> Types:
    """The types of the parts."""
    return tuple([None if x is None else x.aval for x in parts])


def flat[T](values: Iterable[tuple[T | None, ...]]) -> list[T]:
    """All parts that are there, in order."""
    return [x for parts in values for x in parts if x is not None]


def grouped[T](types: Iterable[Types], xs: Iterable[T]) -> list[tuple[T | None, ...]]:
    """The inverse of `flat`."""
    rest = iter(xs)
    return [tuple([None if t is None else next(rest) for t in ts]) for ts in types]


def thread_call(
    through: Through,
    values: Values,
    bind: Callable[..., Sequence[Array]],
) -> Values:
    """The `thread` rule of a row that runs its only program once, on its operands.

    `bind(jaxpr, *operands)` is the equation with another program.
    """
    types = list(map(types_of, values))
    due = through.outputs(0, types)
    state = through.enter(Role.CALL)
    jaxpr = through.program(0, Role.CALL, types, due)
    outs = bind(jaxpr, *flat(values), *state)
    count = len(flat(due))
    through.leave(Role.CALL, outs[count:])
    return grouped(due, outs[:count])


def whole(values: Iterable[Array]) -> list[Parts]:
    """Values that no transformation has touched."""
    return [(x,) for x in values]
