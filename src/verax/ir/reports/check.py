"""Floor 0: tells whether a jaxpr is well formed: scope, numbering, arity and types.

One idea: the type rules come in as an argument, so this floor needs none of them, and a
test can check at every border between transformations::

    check_jaxpr(jaxpr, infer)    # silent, or IllTyped with the equation and its line
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol, runtime_checkable

from attrs import frozen

from verax.ir.atoms import Atom, Literal, Var
from verax.ir.avals import Shape, ShapedArray
from verax.ir.dtypes import DType
from verax.ir.effects import Effect
from verax.ir.jaxpr import ClosedJaxpr, Eqn, Jaxpr, Source, UsedConst
from verax.ir.records import ReprMixin
from verax.ir.walk import close

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
        expected = eqn.primitive.params
        if not isinstance(eqn.params, expected):
            name = type(eqn.params).__name__
            raise IllTyped(f"params are {name}, not {expected.__name__}")
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


# -----------------------------------------------------------------------------
# Which arrays a program has captured, how large, and where they are used.
#
# A jaxpr remembers its array constants and the first equation that reads each;
# this shows them to explain why a program is large::
#
#     print(captured_constants(verax.make_jaxpr(f)(x)))
#     #     bytes  type           first used at
#     # 4,194,304  f32[1024,1024] model.py:12 (loss)


class HasJaxpr(Protocol):
    """A trace, whose constants are still where the function used them."""

    @property
    def jaxpr(self) -> Jaxpr: ...


@runtime_checkable
class HasTrace(Protocol):
    """A stage of `jit` that knows its trace: `jit(f).trace(x)`."""

    @property
    def traced(self) -> HasJaxpr: ...


@frozen(eq=False, repr=False)
class CapturedConstant(ReprMixin):
    """One captured array: what it is, and the user's line that reads it first."""

    value: object
    aval: ShapedArray
    source: Source

    @property
    def shape(self) -> Shape:
        return self.aval.shape

    @property
    def dtype(self) -> DType:
        return self.aval.dtype

    @property
    def nbytes(self) -> int:
        """The bytes that the constant takes on a device."""
        return self.aval.size * self.aval.dtype.itemsize


@frozen(eq=False, repr=False)
class CapturedConstants:
    """The captured arrays of a program, the largest first; prints as a table."""

    __module__ = "verax.ir"

    items: tuple[CapturedConstant, ...]

    def __iter__(self) -> Iterator[CapturedConstant]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, index: int) -> CapturedConstant:
        return self.items[index]

    @property
    def nbytes(self) -> int:
        """The bytes of all of them."""
        return sum([item.nbytes for item in self.items])

    def __repr__(self) -> str:
        if not self.items:
            return "no captured constants"
        rows = [("bytes", "type", "first used at")]
        rows += [
            (f"{item.nbytes:,}", str(item.aval), line_of(item.source))
            for item in self.items
        ]
        sizes, types = (max(len(row[i]) for row in rows) for i in (0, 1))
        lines = [f"{a:>{sizes}}  {b:<{types}}  {c}" for a, b, c in rows]
        return "\n".join(lines)


def line_of(source: Source) -> str:
    """The line, or that only the outputs read the constant."""
    return "an output of the program" if source.code is None else str(source)


def captured_constants(program: Jaxpr | ClosedJaxpr | HasTrace) -> CapturedConstants:
    """The arrays that a program has closed over, nested programs included.

    `program` is a jaxpr, what `make_jaxpr` returns, or `jit(f).trace(x)`. Each object
    is listed once. Scalars are part of the program and not listed.

    Raises:
        TypeError: `program` is none of these.

    >>> from verax.ir.jaxpr import empty_jaxpr
    >>> captured_constants(empty_jaxpr((), ()))
    no captured constants
    """
    if not isinstance(program, Jaxpr | ClosedJaxpr):
        if not isinstance(program, HasTrace):
            raise TypeError(
                f"captured_constants takes a program, not {program!r:.60}; make one "
                "with verax.make_jaxpr(f)(*args) or verax.jit(f).trace(*args)"
            )
        program = program.traced.jaxpr
    jaxpr = close(program) if isinstance(program, ClosedJaxpr) else program
    out = [described(use) for use in jaxpr.used_consts]
    return CapturedConstants(tuple(sorted(out, key=lambda c: -c.nbytes)))


def described(use: UsedConst) -> CapturedConstant:
    return CapturedConstant(use.literal.value, use.literal.aval, use.source)
