"""Floor 3: where a pattern occurs in a program.

One idea: matching is unification with backtracking: a variable of the pattern may
stand for one atom of the program, wherever it occurs, and the operands of a
commutative primitive may come in both orders::

    pattern    { lambda ; x y. let a = mul x y; b = add a y in (b,) }
    program    { lambda ; p q. let r = mul q p; s = add p r in (s,) }     x = q, y = p

Types and params are not looked at first; the pattern is then traced again on the types
that were found, and must be there to the last param.
"""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from attrs import frozen

from verax.ir.jaxpr import NO_PARAMS, Atom, Eqn, Jaxpr, Literal, Primitive, Var
from verax.ir.records import ReprMixin
from verax.rules.rows.traits import traits_of
from verax.rules.values.memo import kept_with
from verax.rules.values.state import current_context
from verax.transforms.engine.engine import literal_value
from verax.transforms.patterns.rewrite_rules import (
    Operand,
    Pattern,
    Rewrite,
    retraced,
    skeletons_of,
    sources,
)

type Bound = Mapping[int, Atom]
"""Which atoms of the program the variables of the pattern stand for."""


class Program:
    """A program, with what matching looks up: makers of variables, places of names."""

    def __init__(self, jaxpr: Jaxpr) -> None:
        self.jaxpr = jaxpr
        self.made: dict[int, tuple[int, Eqn, int]] = {}
        self.places: dict[Primitive, list[int]] = {}
        for place, eqn in enumerate(jaxpr.eqns):
            self.places.setdefault(eqn.primitive, []).append(place)
            for number, var in enumerate(eqn.outvars):
                self.made[var.index] = place, eqn, number

    def operand(self, atom: Atom) -> Operand:
        """What a guard sees of an atom."""
        if isinstance(atom, Literal):
            value = None if atom.aval.shape else literal_value(atom).reshape(-1)[0]
            return Operand(atom.aval, value, None, tuple)
        made = self.made.get(atom.index)
        if made is None:
            return Operand(atom.aval, None, None, tuple)
        eqn = made[1]
        return Operand(
            atom.aval,
            None,
            eqn,
            lambda: tuple([self.operand(a) for a in eqn.invars]),
        )


@frozen(eq=False, repr=False)
class Match(ReprMixin):
    """A rule at a place: what its variables stand for, and the results to replace.

    `place` is the number of the first equation that goes, before which the
    replacement is written.
    """

    rule: Rewrite
    place: int
    operands: tuple[Atom, ...]
    params: tuple[tuple[str, object], ...]
    results: tuple[Var, ...]


def matches(rule: Rewrite, program: Program, place: int) -> Iterator[Match]:
    """The ways in which the rule's pattern ends in the equation at `place`."""
    eqn = program.jaxpr.eqns[place]
    for skeleton in skeletons_of(rule):
        if skeleton.anchor.primitive is not eqn.primitive:
            continue
        for bound in occurrences(skeleton, program, eqn, exact=False):
            found = verified(rule, program, skeleton, eqn, bound)
            if found is not None:
                yield found


def verified(
    rule: Rewrite, program: Program, skeleton: Pattern, eqn: Eqn, bound: Bound
) -> Match | None:
    """The match, if the pattern on the types and params found there is there."""
    operands = tuple(
        [bound[v.index] for v in skeleton.jaxpr.invars if v.index in bound]
    )
    if len(operands) < len(skeleton.jaxpr.invars):
        return None
    params = read_params(rule, program, skeleton, bound)
    if params is None:
        return None
    avals = tuple([a.aval for a in operands])
    context = current_context()
    pattern = kept_with(rule, retraced, context, rule, avals, params)
    if pattern is None or pattern.anchor.primitive is not eqn.primitive:
        return None
    given = {v.index: a for v, a in zip(pattern.jaxpr.invars, operands, strict=True)}
    exact = next(occurrences(pattern, program, eqn, exact=True, given=given), None)
    if exact is None:
        return None
    if rule.where is not None:
        views = [program.operand(a) for a in operands]
        if not rule.where(*views, **dict(params)):
            return None
    results = [exact[v.index] for v in pattern.outputs]
    found = tuple([a for a in results if isinstance(a, Var)])
    place = min([program.made[v.index][0] for v in found])
    first = program.jaxpr.eqns[place].outvars[0].index
    if any(isinstance(a, Var) and a.index >= first for a in operands):
        return None
    return Match(rule, place, operands, params, found)


def read_params(
    rule: Rewrite, program: Program, skeleton: Pattern, bound: Bound
) -> tuple[tuple[str, object], ...] | None:
    """The values of the rule's params in the equations that were found."""
    found: list[tuple[str, object]] = []
    for name in rule.params:
        places = sources(rule, skeleton, name)
        if not places:
            return None
        eqn, key = places[0]
        made = bound[eqn.outvars[0].index]
        assert isinstance(made, Var)
        found.append((name, getattr(program.made[made.index][1].params, key, None)))
    return tuple(found)


def occurrences(
    pattern: Pattern,
    program: Program,
    eqn: Eqn,
    *,
    exact: bool,
    given: Bound | None = None,
) -> Iterator[Bound]:
    """The bindings under which the pattern is there and its anchor is `eqn`."""
    unifier = Unifier(pattern, program, exact)
    for bound in unifier.equations(pattern.anchor, eqn, given or {}):
        yield from unifier.roots(bound, pattern.outputs)


@frozen(eq=False, repr=False)
class Unifier(ReprMixin):
    """Finds bindings; `exact` compares types, params and literals too."""

    pattern: Pattern
    program: Program
    exact: bool

    def roots(self, bound: Bound, outputs: Sequence[Var]) -> Iterator[Bound]:
        """Bindings with every output of the pattern found somewhere."""
        missing = [v for v in outputs if v.index not in bound]
        if not missing:
            yield bound
            return
        wanted = self.pattern.made[missing[0].index][0]
        for place in self.program.places.get(wanted.primitive, ()):
            eqn = self.program.jaxpr.eqns[place]
            for more in self.equations(wanted, eqn, bound):
                yield from self.roots(more, outputs)

    def equations(self, wanted: Eqn, eqn: Eqn, bound: Bound) -> Iterator[Bound]:
        """Bindings under which an equation of the pattern is one of the program."""
        if wanted.primitive is not eqn.primitive:
            return
        if len(wanted.invars) != len(eqn.invars):
            return
        if len(wanted.outvars) != len(eqn.outvars):
            return
        if self.exact and wanted.params != eqn.params:
            return
        if eqn.params is not NO_PARAMS and eqn.effects:
            return
        results = zip(wanted.outvars, eqn.outvars, strict=True)
        more = {**bound, **{ours.index: theirs for ours, theirs in results}}
        yield from self.operands(wanted.invars, eqn.invars, more)
        if traits_of(eqn.primitive).commutative:
            yield from self.operands(wanted.invars, eqn.invars[::-1], more)

    def operands(
        self, wanted: Sequence[Atom], atoms: Sequence[Atom], bound: Bound
    ) -> Iterator[Bound]:
        """Bindings under which operands are the same, one after the other."""
        if not wanted:
            yield bound
            return
        for more in self.atom(wanted[0], atoms[0], bound):
            yield from self.operands(wanted[1:], atoms[1:], more)

    def atom(self, wanted: Atom, atom: Atom, bound: Bound) -> Iterator[Bound]:
        """Bindings under which an atom of the pattern is one of the program."""
        if self.exact and wanted.aval.strong() is not atom.aval.strong():
            return
        if isinstance(wanted, Literal):
            if isinstance(atom, Literal) and self.equal(wanted, atom):
                yield bound
            return
        known = bound.get(wanted.index)
        if known is not None:
            if known == atom:
                yield bound
            return
        made = self.pattern.made.get(wanted.index)
        if made is None:
            yield {**bound, wanted.index: atom}
            return
        there = self.program.made.get(atom.index) if isinstance(atom, Var) else None
        if there is not None and there[2] == made[1]:
            yield from self.equations(made[0], there[1], bound)

    def equal(self, wanted: Literal, atom: Literal) -> bool:
        """Whether two literals have the same value; any two scalars at first."""
        if self.exact:
            return wanted.key == atom.key
        if wanted.aval.shape or atom.aval.shape:
            return wanted.key == atom.key
        return bool(np.all(literal_value(wanted) == literal_value(atom))) or (
            wanted.aval.dtype != atom.aval.dtype
        )
