"""Floor 3: rewriting a program with rules until none applies.

One idea: a pass looks for matches in the program as it is and writes it once, with the
replacements before the equations that go; passes follow each other until nothing
changes, and a program that comes back is a cycle of rules::

    rewritten(engine, jaxpr, (double_negation,))

What a pattern's equations computed stays where something else reads it, and goes
otherwise. Jaxprs inside are rewritten first, each once.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from verax.ir.jaxpr import NO_PARAMS, Atom, Eqn, Jaxpr, Literal, Primitive, Var
from verax.ir.walk import map_eqns, map_subjaxprs, read
from verax.rules.rows.builder import Builder
from verax.rules.rows.row import Engine
from verax.rules.values.memo import kept_with
from verax.rules.values.state import current_context
from verax.transforms.engine.dce import dce
from verax.transforms.patterns.matching import Match, Program, matches
from verax.transforms.patterns.rewrite_rules import (
    Rewrite,
    RewriteError,
    replacement_of,
    skeletons_of,
)

PASSES = 100


class RewriteLoop(RewriteError):
    """Rules go on forever; the message names those that do."""

    __module__ = "verax.rewrites"


def rewritten(
    engine: Engine, jaxpr: Jaxpr, rules: Sequence[Rewrite], passes: int = PASSES
) -> Jaxpr:
    """The program after every rule that applies, those of nested jaxprs included.

    Where several rules apply to one equation, the first in `rules` is taken. Contract:
    inputs, output types and effects are kept, and values as far as the rules keep them.

    Raises:
        RewriteLoop: the rules do not come to an end within `passes` passes.
        RewriteError: a rule is wrong: see `Rewrite`.
    """
    return Rewriter(engine, rules, passes).program(jaxpr)


class Rewriter:
    """The rules by the primitive in which their patterns end, and what is done."""

    def __init__(self, engine: Engine, rules: Sequence[Rewrite], passes: int) -> None:
        self.engine = engine
        self.passes = passes
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
        found = self.done.get(jaxpr)
        if found is not None:
            return found
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
            yield from matches(rule, program, place)

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
        wanted = tuple([v.aval for v in match.results])
        context, rule = current_context(), match.rule
        template = kept_with(
            rule,
            replacement_of,
            context,
            self.engine,
            rule,
            args,
            match.params,
            wanted,
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
