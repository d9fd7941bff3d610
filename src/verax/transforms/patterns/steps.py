"""Floor 3: rewriting that says what it does, step by step.

One idea: the rewriter already goes from pass to pass and from match to match, so one
that keeps what it sees is the same rewriter::

    rewriter = Steps(engine, rules, passes)
    after = rewriter.program(jaxpr)
    rewriter.steps[0].rule, rewriter.steps[0].before, rewriter.steps[0].after
"""

from collections.abc import Callable, Sequence

from attrs import frozen

from verax.ir.jaxpr import Atom, Eqn, Jaxpr, Source, Var
from verax.ir.records import ReprMixin
from verax.rules.rows.builder import Builder
from verax.rules.rows.row import Engine
from verax.transforms.patterns.matching import Match
from verax.transforms.patterns.rewrite_rules import Rewrite
from verax.transforms.patterns.rewriting import Rewriter

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
            found = super().program(jaxpr)
        finally:
            self.counts.pop()
        return found if self.counts else self.watched(found)

    def passed(self, jaxpr: Jaxpr, chosen: Sequence[Match]) -> Jaxpr:
        """See `Rewriter.passed`."""
        if len(self.counts) == 1:
            jaxpr = self.watched(jaxpr)
        self.counts[-1] += 1
        return super().passed(jaxpr, chosen)

    def watched(self, jaxpr: Jaxpr) -> Jaxpr:
        """What `watch` makes of a program that has changed."""
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
    wanted = {v.index for v in match.results} - operands
    found: list[Eqn] = []
    for eqn in reversed(jaxpr.eqns):
        if not wanted.isdisjoint([v.index for v in eqn.outvars]):
            found.append(eqn)
            reads = [a.index for a in eqn.invars if isinstance(a, Var)]
            wanted.update([index for index in reads if index not in operands])
    return tuple(found[::-1])
