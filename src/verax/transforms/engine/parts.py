"""Floor 3: ways through an equation's programs that have parts of values and no state.

One idea: what such a transformation says is what a program makes of the parts that it
takes, and how a value comes by all of its parts; that loops and branches get them in
the types that are due is the same for all::

    class Following(OfParts): ...
    outs = thread_of(eqn.primitive)(Following(jaxprs), eqn.params, values)
"""

from abc import abstractmethod
from collections.abc import Callable, Sequence

from attrs import frozen

from verax.ir.avals import Shape
from verax.ir.jaxpr import Jaxpr
from verax.ir.records import ReprMixin
from verax.ops.elementwise.convert import convert
from verax.rules.rows.bodies import Parts, Role, Types, Values, flat, grouped
from verax.rules.rows.builder import program
from verax.rules.values.array import Array


@frozen(eq=False, repr=False)
class OfParts(ReprMixin):
    """A `Through` without state; subclasses have `outputs`, `fill` and these two."""

    jaxprs: tuple[Jaxpr, ...]

    @abstractmethod
    def run(self, number: int, types: Sequence[Types]) -> Callable[[Values], Values]:
        """What makes the parts of a program's outputs from those of its inputs."""

    @abstractmethod
    def full(self, parts: Parts, width: int) -> Parts:
        """All `width` parts of a value that a carry or a common result has."""

    def enter(self, role: Role) -> Sequence[object]:
        """See `Through.enter`."""
        return ()

    def program(
        self,
        number: int,
        role: Role,
        types: Sequence[Types],
        due: Sequence[Types | None],
    ) -> Jaxpr:
        """See `Through.program`."""
        run = self.run(number, types)

        def body(*xs: Array) -> list[Array]:
            pairs = zip(run(grouped(types, xs)), due, strict=True)
            return flat([x if t is None else self.as_due(x, t) for x, t in pairs])

        return program(flat(types), body)

    def as_due(self, parts: Parts, due: Types) -> Parts:
        """The parts in the types that a carry or a common result has."""
        pairs = zip(self.full(parts, len(due)), due, strict=True)
        return tuple(
            [
                None if x is None or t is None else convert(x, t.dtype, t.weak_type)
                for x, t in pairs
            ]
        )

    def tells(self, number: int) -> bool:
        """See `Through.tells`."""
        return False

    def leave(self, role: Role, state: Sequence[Array], lanes: Shape = ()) -> None:
        """There is no state."""
