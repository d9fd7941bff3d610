"""Floor 0: tells whether a jaxpr is well formed: scope, numbering, arity and types.

One idea: the type rules come in as an argument, so this floor needs none of them, and a
test can check at every border between transformations::

    check_jaxpr(jaxpr, infer)    # silent, or IllTyped with the equation and its line
"""

from collections.abc import Callable, Sequence

from attrs import frozen

from verax.ir.atoms import Atom, Literal, Var
from verax.ir.avals import ShapedArray
from verax.ir.effects import Effect
from verax.ir.jaxpr import Eqn, Jaxpr, Source
from verax.ir.records import ReprMixin

type Typing = Callable[..., Sequence[ShapedArray]]
"""Gives the result types for (primitive, params, *operand types), or raises."""


class IllTyped(TypeError):
    """A jaxpr breaks a rule of the language; the message names the equation."""

    __module__ = "verax.errors"


def check_jaxpr(jaxpr: Jaxpr, typing: Typing) -> None:
    """Raise unless `jaxpr` and all jaxprs inside it are well formed.

    Variables are numbered by their definition (constvars, inputs, then results), every
    operand is defined above with that type, results have the types that `typing` gives,
    and nested jaxprs have no constvars.

    Raises:
        IllTyped: one of these does not hold.
    """
    Checker(typing, set()).program(jaxpr)


@frozen(repr=False)
class Checker(ReprMixin):
    """The type rules, and the jaxprs that are known to be well formed."""

    typing: Typing
    passed: set[Jaxpr]

    def program(self, jaxpr: Jaxpr) -> None:
        """Check one jaxpr; a complaint names the equation."""
        if jaxpr in self.passed:
            return
        scope: list[Var] = []
        define(scope, (*jaxpr.constvars, *jaxpr.invars), "the inputs: ")
        for number, eqn in enumerate(jaxpr.eqns):
            try:
                read(scope, eqn.invars)
                self.equation(eqn)
                define(scope, eqn.outvars)
            except IllTyped as error:
                place = f"equation {number}, {eqn!r}{at_line(eqn.source)}"
                raise IllTyped(f"{place}: {error}") from error
        read(scope, jaxpr.outvars, "the outputs: ")
        self.passed.add(jaxpr)

    def equation(self, eqn: Eqn) -> None:
        """Check params, nested jaxprs and result types."""
        wanted = eqn.primitive.params
        if not isinstance(eqn.params, wanted):
            found = type(eqn.params).__name__
            raise IllTyped(f"params are {found}, not {wanted.__name__}")
        for number, inner in enumerate(eqn.params.subjaxprs()):
            self.nested(number, inner)
        for effect in eqn.effects:
            if not isinstance(effect, Effect):
                raise IllTyped(
                    f"{effect!r} is not an effect: it needs a name and an order"
                )
        try:
            given = self.typing(
                eqn.primitive, eqn.params, *[a.aval for a in eqn.invars]
            )
        except (TypeError, ValueError) as error:
            raise IllTyped(f"the operands do not fit: {error}") from error
        written = [v.aval for v in eqn.outvars]
        if written != list(given):
            raise IllTyped(
                f"the results have types {listed(written)}, but the type rule gives "
                f"{listed(given)}"
            )

    def nested(self, number: int, jaxpr: Jaxpr) -> None:
        """Check the jaxpr of index `number` inside an equation."""
        try:
            if jaxpr.constvars:
                raise IllTyped("only the outermost jaxpr may have constvars")
            self.program(jaxpr)
        except IllTyped as error:
            raise IllTyped(f"in its jaxpr {number}, {error}") from error


def define(scope: list[Var], variables: Sequence[Var], where: str = "") -> None:
    """Add variables to the scope; each must have the next number."""
    for var in variables:
        if var.index != len(scope):
            raise IllTyped(
                f"{where}{var} has number {var.index}, but {len(scope)} is next"
            )
        scope.append(var)


def read(scope: Sequence[Var], atoms: Sequence[Atom], where: str = "") -> None:
    """Check that each operand is in scope, or a literal of its type."""
    for atom in atoms:
        if isinstance(atom, Literal):
            check_literal(atom, where)
        elif atom.index >= len(scope):
            raise IllTyped(f"{where}{atom} is not defined above")
        elif scope[atom.index] != atom:
            raise IllTyped(f"{where}{atom} is read, but defined as {scope[atom.index]}")


def check_literal(literal: Literal, where: str) -> None:
    """Check that a scalar has the bytes of its dtype and an array the right shape."""
    if isinstance(literal.key, bytes):
        if len(literal.key) != literal.aval.size * literal.aval.dtype.itemsize:
            raise IllTyped(
                f"{where}a literal of type {literal.aval} has {len(literal.key)} bytes"
            )
        return
    shape = getattr(literal.value, "shape", literal.aval.shape)
    if tuple(shape) != literal.aval.shape:
        raise IllTyped(
            f"{where}a constant of shape {shape} does not have the type {literal.aval}"
        )


def at_line(source: Source) -> str:
    """The line of the user, if it is known."""
    return "" if source.code is None else f" (from {source})"


def listed(avals: Sequence[ShapedArray]) -> str:
    return f"({', '.join(map(repr, avals))})"
