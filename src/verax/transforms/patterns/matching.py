"""Floor 3: where a pattern occurs in a program.

One idea: matching is unification with backtracking: a variable of the pattern may
stand for one atom of the program, wherever it occurs, and the operands of a
commutative primitive may come in both orders::

    pattern    { lambda ; x y. let a = mul x y; b = add a y in (b,) }
    program    { lambda ; p q. let r = mul q p; s = add p r in (s,) }     x = q, y = p

Types and params are not looked at first; the pattern is then traced again on the types
that were found, and must be there to the last param.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
from attrs import frozen

from verax.ir.jaxpr import NO_PARAMS, Atom, Eqn, Jaxpr, Literal, Primitive, Source, Var
from verax.ir.records import ReprMixin
from verax.ir.walk import map_eqns, map_subjaxprs, read
from verax.rules.rows.builder import Builder
from verax.rules.rows.row import Engine, traits_of
from verax.rules.values.memo import kept_with
from verax.rules.values.state import current_context
from verax.transforms.engine.engine import literal_value
from verax.transforms.engine.partial_eval import dce
from verax.transforms.patterns.rewrite_rules import (
    Args,
    Operand,
    Pattern,
    Rewrite,
    RewriteError,
    replacement_of,
    retraced,
    skeletons_of,
    sources,
)

type Bound = Mapping[int, Atom]
"""The atoms of the program for the variables of the pattern."""


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
        """A guard's view of an atom."""
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
    if rule.whole:
        quiet = not eqn.effects
        if quiet and allows(rule, program, eqn.invars, {"params": eqn.params}):
            params = (("params", eqn.params),)
            yield Match(rule, place, tuple(eqn.invars), params, tuple(eqn.outvars))
        return
    for skeleton in skeletons_of(rule):
        if skeleton.anchor.primitive is not eqn.primitive:
            continue
        for bound in occurrences(skeleton, program, eqn, exact=False):
            result = verified(rule, program, skeleton, eqn, bound)
            if result is not None:
                yield result


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
    function = skeleton.function
    pattern = kept_with(rule, retraced, context, rule, function, avals, params)
    if pattern is None or pattern.anchor.primitive is not eqn.primitive:
        return None
    given = {v.index: a for v, a in zip(pattern.jaxpr.invars, operands, strict=True)}
    exact = next(occurrences(pattern, program, eqn, exact=True, given=given), None)
    if exact is None:
        return None
    if not allows(rule, program, operands, dict(params)):
        return None
    results = [exact[v.index] for v in pattern.outputs]
    out = tuple([a for a in results if isinstance(a, Var)])
    place = min([program.made[v.index][0] for v in out])
    first = program.jaxpr.eqns[place].outvars[0].index
    if any(isinstance(a, Var) and a.index >= first for a in operands):
        return None
    return Match(rule, place, operands, params, out)


def allows(
    rule: Rewrite, program: Program, operands: Sequence[Atom], params: Args
) -> bool:
    """Whether the rule's guard has nothing against these operands."""
    if rule.where is None:
        return True
    return bool(rule.where(*[program.operand(a) for a in operands], **params))


def read_params(
    rule: Rewrite, program: Program, skeleton: Pattern, bound: Bound
) -> tuple[tuple[str, object], ...] | None:
    """The values of the rule's params in the equations that were found."""
    out: list[tuple[str, object]] = []
    for name in rule.params:
        places = sources(rule, skeleton, name)
        if not places:
            return None
        eqn, key = places[0]
        made = bound[eqn.outvars[0].index]
        assert isinstance(made, Var)
        out.append((name, getattr(program.made[made.index][1].params, key, None)))
    return tuple(out)


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
        expected = self.pattern.made[missing[0].index][0]
        for place in self.program.places.get(expected.primitive, ()):
            eqn = self.program.jaxpr.eqns[place]
            for more in self.equations(expected, eqn, bound):
                yield from self.roots(more, outputs)

    def equations(self, expected: Eqn, eqn: Eqn, bound: Bound) -> Iterator[Bound]:
        """Bindings under which an equation of the pattern is one of the program."""
        if expected.primitive is not eqn.primitive:
            return
        if len(expected.invars) != len(eqn.invars):
            return
        if len(expected.outvars) != len(eqn.outvars):
            return
        if self.exact and expected.params != eqn.params:
            return
        if eqn.params is not NO_PARAMS and eqn.effects:
            return
        results = zip(expected.outvars, eqn.outvars, strict=True)
        more = {**bound, **{ours.index: theirs for ours, theirs in results}}
        yield from self.operands(expected.invars, eqn.invars, more)
        if traits_of(eqn.primitive).commutative:
            yield from self.operands(expected.invars, eqn.invars[::-1], more)

    def operands(
        self, expected: Sequence[Atom], atoms: Sequence[Atom], bound: Bound
    ) -> Iterator[Bound]:
        """Bindings under which operands are the same, one after the other."""
        if not expected:
            yield bound
            return
        for more in self.atom(expected[0], atoms[0], bound):
            yield from self.operands(expected[1:], atoms[1:], more)

    def atom(self, expected: Atom, atom: Atom, bound: Bound) -> Iterator[Bound]:
        """Bindings under which an atom of the pattern is one of the program."""
        if self.exact and expected.aval.strong() is not atom.aval.strong():
            return
        if isinstance(expected, Literal):
            if isinstance(atom, Literal) and self.equal(expected, atom):
                yield bound
            return
        known = bound.get(expected.index)
        if known is not None:
            if known == atom:
                yield bound
            return
        made = self.pattern.made.get(expected.index)
        if made is None:
            yield {**bound, expected.index: atom}
            return
        there = self.program.made.get(atom.index) if isinstance(atom, Var) else None
        if there is not None and there[2] == made[1]:
            yield from self.equations(made[0], there[1], bound)

    def equal(self, expected: Literal, atom: Literal) -> bool:
        """Whether two literals have the same value; any two scalars at first."""
        if self.exact:
            return expected.key == atom.key
        if expected.aval.shape or atom.aval.shape:
            return expected.key == atom.key
        return bool(np.all(literal_value(expected) == literal_value(atom))) or (
            expected.aval.dtype != atom.aval.dtype
        )


# -----------------------------------------------------------------------------
# Rewriting a program with rules until none applies.
#
# A pass looks for matches in the program as it is and writes it once, with the
# replacements before the equations that go; passes follow each other until nothing
# changes, and a program that comes back is a cycle of rules::
#
#     rewritten(engine, jaxpr, (double_negation,))
#
# What a pattern's equations computed stays where something else reads it, and goes
# otherwise. Jaxprs inside are rewritten first, each once.


PASSES = 100


class RewriteLoop(RewriteError):
    """Rules go on forever; the message names those that do."""

    __module__ = "verax.rewrites"


@frozen(repr=False)
class Use(ReprMixin):
    """A rule and the line of the user's at which it applies."""

    rule: str
    file: str
    line: int


def use_of(program: Program, match: Match) -> Use:
    """The rule of a match, and the line of its last equation."""
    last = max([program.made[v.index][0] for v in match.results])
    source = program.jaxpr.eqns[last].source
    return Use(match.rule.name, source.file, source.line)


def rewritten(
    engine: Engine,
    jaxpr: Jaxpr,
    rules: Sequence[Rewrite],
    passes: int = PASSES,
    uses: frozenset[Use] | None = None,
) -> Jaxpr:
    """The program after every rule that applies, those of nested jaxprs included.

    Where several rules apply to one equation, the first in `rules` is taken. With
    `uses`, rules apply in these ways only. Contract:
    inputs, output types and effects are kept, and values as far as the rules keep them.

    Raises:
        RewriteLoop: the rules do not come to an end within `passes` passes.
        RewriteError: a rule is wrong: see `Rewrite`.
    """
    return Rewriter(engine, rules, passes, uses).program(jaxpr)


class Rewriter:
    """The rules by the primitive in which their patterns end, and what is done."""

    def __init__(
        self,
        engine: Engine,
        rules: Sequence[Rewrite],
        passes: int,
        uses: frozenset[Use] | None = None,
    ) -> None:
        self.engine = engine
        self.passes = passes
        self.uses = uses
        self.done: dict[Jaxpr, Jaxpr] = {}
        self.rules: Mapping[Primitive, list[Rewrite]] = {}
        by_primitive: dict[Primitive, list[Rewrite]] = {}
        for rule in rules:
            if not isinstance(rule, Rewrite):
                raise TypeError(
                    f"a rule must be made with verax.rewrites.rewrite, not {rule!r}"
                )
            for primitive in dict.fromkeys(
                [skeleton.anchor.primitive for skeleton in skeletons_of(rule)]
            ):
                by_primitive.setdefault(primitive, []).append(rule)
        self.rules = by_primitive

    def program(self, jaxpr: Jaxpr) -> Jaxpr:
        """A jaxpr with the rules applied until none does."""
        entry = self.done.get(jaxpr)
        if entry is not None:
            return entry
        now = map_eqns(jaxpr, self.inside)
        seen: dict[Jaxpr, int] = {now: 0}
        fired: list[Counter[str]] = []
        while chosen := self.choose(now):
            fired.append(Counter([match.rule.name for match in chosen]))
            now = self.passed(now, chosen)
            if now in seen:
                raise loop(fired[seen[now] :], "the program repeats")
            if len(fired) >= self.passes:
                late = fired[len(fired) // 2 :]
                raise loop(late, f"not finished after {self.passes} passes")
            seen[now] = len(fired)
        self.done[jaxpr] = self.done[now] = now
        return now

    def passed(self, jaxpr: Jaxpr, chosen: Sequence[Match]) -> Jaxpr:
        """A jaxpr after one pass."""
        return map_eqns(self.write(jaxpr, chosen), self.inside)

    def inside(self, eqn: Eqn) -> Eqn:
        """An equation with the jaxprs that it holds rewritten."""
        if eqn.params is NO_PARAMS:
            return eqn
        params = map_subjaxprs(eqn.params, self.program)
        if params is eqn.params:
            return eqn
        return Eqn(eqn.primitive, params, eqn.invars, eqn.outvars, eqn.source)

    def choose(self, jaxpr: Jaxpr) -> list[Match]:
        """Matches that do not replace the same result twice, in program order."""
        program = Program(jaxpr)
        taken: set[Var] = set()
        chosen: list[Match] = []
        for place, eqn in enumerate(jaxpr.eqns):
            for match in self.at(program, place, eqn):
                if taken.isdisjoint(match.results):
                    taken.update(match.results)
                    chosen.append(match)
                    break
        return chosen

    def at(self, program: Program, place: int, eqn: Eqn) -> Iterator[Match]:
        """Every match that ends in one equation, by the order of the rules."""
        for rule in self.rules.get(eqn.primitive, ()):
            for match in matches(rule, program, place):
                if self.uses is None or use_of(program, match) in self.uses:
                    yield match

    def write(self, jaxpr: Jaxpr, chosen: Sequence[Match]) -> Jaxpr:
        """The program with the replacements, and without what nothing reads."""
        here: dict[int, list[Match]] = {}
        for match in chosen:
            here.setdefault(match.place, []).append(match)
        replaced = {var.index for match in chosen for var in match.results}
        builder = Builder("rewrite")
        env = dict(enumerate(builder.input_atoms(jaxpr.in_avals)))
        for place, eqn in enumerate(jaxpr.eqns):
            for match in here.get(place, ()):
                self.replace(builder, match, eqn, env)
            if all(v.index in replaced for v in eqn.outvars) and eqn.outvars:
                continue
            outs = builder.copy(eqn, read(eqn.invars, env))
            for var, out in zip(eqn.outvars, outs, strict=True):
                env.setdefault(var.index, out)
        result, _ = builder.close(read(jaxpr.outvars, env))
        used = (True,) * len(jaxpr.outvars)
        return dce(self.engine, result, used, keep=len(jaxpr.invars))[0]

    def replace(
        self, builder: Builder, match: Match, eqn: Eqn, env: dict[int, Atom]
    ) -> None:
        """Write a replacement; its results stand for those of the pattern."""
        atoms = read(match.operands, env)
        # Scalars are shown to the rule as values; a captured array is an operand.
        args = tuple(
            [a if type(a) is Literal and not a.aval.shape else a.aval for a in atoms]
        )
        expected = tuple([v.aval for v in match.results])
        context, rule = current_context(), match.rule
        template = kept_with(
            rule,
            replacement_of,
            context,
            self.engine,
            rule,
            args,
            match.params,
            expected,
        )
        live = [a for a, x in zip(atoms, args, strict=True) if a is not x]
        source = eqn.source.derived(f"rewrite({match.rule.name})")
        outs = builder.inline(template, live, source=source)
        for var, out in zip(match.results, outs, strict=True):
            env[var.index] = out


def loop(fired: Sequence[Counter[str]], why: str) -> RewriteLoop:
    """The error that names the rules of a cycle, the busiest first."""
    total: Counter[str] = Counter()
    for one in fired:
        total.update(one)
    names = ", ".join([name for name, _ in total.most_common()])
    return RewriteLoop(
        f"these rewrite rules do not terminate ({why}): {names}. A rule must not "
        "apply to the output of itself or of another rule; restrict one with where="
    )


class Places(Rewriter):
    """A rewriter that changes nothing, and keeps every match with its equations."""

    def __init__(self, engine: Engine, rules: Sequence[Rewrite]) -> None:
        super().__init__(engine, rules, passes=1)
        self.places: list[tuple[Use, tuple[Eqn, ...]]] = []

    def choose(self, jaxpr: Jaxpr) -> list[Match]:
        """No match at all; those that there are have been kept."""
        program = Program(jaxpr)
        for place, eqn in enumerate(jaxpr.eqns):
            for match in self.at(program, place, eqn):
                self.places.append((use_of(program, match), matched(jaxpr, match)))
        return []


# -----------------------------------------------------------------------------
# Rewriting that says what it does, step by step.
#
# The rewriter already goes from pass to pass and from match to match, so one
# that keeps what it sees is the same rewriter::
#
#     rewriter = Steps(engine, rules, passes)
#     after = rewriter.program(jaxpr)
#     rewriter.steps[0].rule, rewriter.steps[0].before, rewriter.steps[0].after


type Watch = Callable[[Jaxpr, Sequence["Step"]], Jaxpr]


@frozen(eq=False, repr=False)
class Step(ReprMixin):
    """One rule, applied at one place.

    Attributes:
        rule: its name.
        number: in which pass over its program; the first is 1.
        inside: the equations around the place, outermost first; empty at the top.
        before: the equations that the rule matched.
        after: those that compute the same now; none where it is an operand.
    """

    __module__ = "verax.rewrites"

    rule: str
    number: int
    inside: tuple[Eqn, ...]
    before: tuple[Eqn, ...]
    after: tuple[Eqn, ...]

    @property
    def source(self) -> Source:
        """The user's line."""
        return self.before[-1].source

    def __str__(self) -> str:
        """The step in a few lines."""
        around = "".join([f" in {eqn.primitive.name}" for eqn in self.inside])
        place = f" at {self.source.file}:{self.source.line}" if self.source.line else ""
        lines = [f"pass {self.number}{around}: {self.rule}{place}"]
        lines += [f"  - {eqn!r}" for eqn in self.before]
        lines += [f"  + {eqn!r}" for eqn in self.after] or ["  + (an operand)"]
        return "\n".join(lines)


def unwatched(jaxpr: Jaxpr, steps: Sequence[Step]) -> Jaxpr:
    """The program, as nobody watches."""
    return jaxpr


class Steps(Rewriter):
    """A rewriter that keeps its steps.

    After each pass over the outermost program `watch` sees the program and the steps
    that were taken since it last did, and may give the program other sources.
    """

    def __init__(
        self,
        engine: Engine,
        rules: Sequence[Rewrite],
        passes: int,
        watch: Watch = unwatched,
    ) -> None:
        super().__init__(engine, rules, passes)
        self.watch = watch
        self.steps: list[Step] = []
        self.seen = 0
        self.around: list[Eqn] = []
        self.counts: list[int] = []

    def program(self, jaxpr: Jaxpr) -> Jaxpr:
        """See `Rewriter.program`."""
        self.counts.append(0)
        try:
            out = super().program(jaxpr)
        finally:
            self.counts.pop()
        return out if self.counts else self.watched(out)

    def passed(self, jaxpr: Jaxpr, chosen: Sequence[Match]) -> Jaxpr:
        """See `Rewriter.passed`."""
        if len(self.counts) == 1:
            jaxpr = self.watched(jaxpr)
        self.counts[-1] += 1
        return super().passed(jaxpr, chosen)

    def watched(self, jaxpr: Jaxpr) -> Jaxpr:
        """Watches what becomes of a program that has changed."""
        new = self.steps[self.seen :]
        self.seen = len(self.steps)
        return self.watch(jaxpr, new) if new else jaxpr

    def inside(self, eqn: Eqn) -> Eqn:
        """See `Rewriter.inside`."""
        self.around.append(eqn)
        try:
            return super().inside(eqn)
        finally:
            self.around.pop()

    def write(self, jaxpr: Jaxpr, chosen: Sequence[Match]) -> Jaxpr:
        """See `Rewriter.write`."""
        self.current = jaxpr
        return super().write(jaxpr, chosen)

    def replace(
        self, builder: Builder, match: Match, eqn: Eqn, env: dict[int, Atom]
    ) -> None:
        """See `Rewriter.replace`."""
        start = len(builder.eqns)
        super().replace(builder, match, eqn, env)
        self.steps.append(
            Step(
                match.rule.name,
                self.counts[-1],
                tuple(self.around),
                matched(self.current, match),
                tuple(builder.eqns[start:]),
            )
        )


def matched(jaxpr: Jaxpr, match: Match) -> tuple[Eqn, ...]:
    """The equations between the operands of a match and its results."""
    operands = {a.index for a in match.operands if isinstance(a, Var)}
    expected = {v.index for v in match.results} - operands
    out: list[Eqn] = []
    for eqn in reversed(jaxpr.eqns):
        if not expected.isdisjoint([v.index for v in eqn.outvars]):
            out.append(eqn)
            reads = [a.index for a in eqn.invars if isinstance(a, Var)]
            expected.update([index for index in reads if index not in operands])
    return tuple(out[::-1])
