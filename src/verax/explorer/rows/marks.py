"""Marks on the equations of a program, by which their descendants know them (floor 6).

A rewrite gives each equation the source of the one that it came from, so a source that
carries a mark says which one that was, however many rewrites later::

    marked, _ = Marker(owner).program(jaxpr)
    batched.eqns[3].source.mark is marked.eqns[1].source.mark
"""

from collections.abc import Iterator
from types import CodeType
from typing import ClassVar

from attrs import frozen
from pyrsistent import pvector

from verax.ir.jaxpr import NO_PARAMS, Eqn, Jaxpr, Source, equation
from verax.ir.walk import map_subjaxprs


class Mark:
    """One equation of a program; `owner` stands for the program."""

    __slots__ = ("owner",)

    def __init__(self, owner: object) -> None:
        self.owner = owner


@frozen(eq=False, repr=False)
class MarkedSource(Source):
    """A source that says which equation of a marked program it is the source of."""

    __module__ = "verax.explorer.rows.marks"

    mark: Mark | None = None

    def derived(self, transformation: str) -> "MarkedSource":
        """The same line and mark, one transformation later."""
        origin = self.origin
        later = f"{transformation}({origin})" if origin else transformation
        return MarkedSource(self.code, self.instruction, later, self.mark)


@frozen(repr=False, eq=False)
class MarkedJaxpr(Jaxpr):
    """A program whose equations are marked.

    Memos keep what they make of it with it, as for a program that holds closures: an
    equal program without marks, or with others, is none of theirs.
    """

    __module__ = "verax.explorer.rows.marks"

    transient: ClassVar[bool] = True


def mark_of(source: Source) -> Mark | None:
    """The mark of a source, if it has one."""
    return source.mark if isinstance(source, MarkedSource) else None


class Marker:
    """Marks one program; equal programs inside it share their marks.

    Rewrites treat equal programs as one, so that each of them would not be told apart
    from the others afterwards. Who reads the marks knows in which equation a program
    stands.
    """

    def __init__(self, owner: object) -> None:
        self.owner = owner
        self.known: dict[Jaxpr, Jaxpr] = {}

    def program(self, jaxpr: Jaxpr) -> Jaxpr:
        """The same program, with marks of this marker alone."""
        found = self.known.get(jaxpr)
        if found is None:
            eqns = pvector([self.equation(eqn) for eqn in jaxpr.eqns])
            found = MarkedJaxpr(jaxpr.constvars, jaxpr.invars, eqns, jaxpr.outvars)
            self.known[jaxpr] = found
        return found

    def equation(self, eqn: Eqn) -> Eqn:
        """One equation, marked."""
        params, source = eqn.params, eqn.source
        if params is not NO_PARAMS:
            params = map_subjaxprs(params, self.program)
        place: tuple[CodeType | None, int, str] = (
            source.code,
            source.instruction,
            source.origin,
        )
        marked = MarkedSource(*place, Mark(self.owner))
        return equation(eqn.primitive, params, eqn.invars, eqn.outvars, marked)


def all_sources(jaxpr: Jaxpr, seen: set[int] | None = None) -> Iterator[Source]:
    """The sources of all equations, each program inside once."""
    seen = set() if seen is None else seen
    if id(jaxpr) in seen:
        return
    seen.add(id(jaxpr))
    for eqn in jaxpr.eqns:
        yield eqn.source
        if eqn.params is not NO_PARAMS:
            for inner in eqn.params.subjaxprs():
                yield from all_sources(inner, seen)
