"""Every step that rewrite rules take, as a value.

One idea: which rule fired, where, what was there before and what after, is what one
wants to see of a rewrite that does too much or nothing at all::

    history = trace(f, stable())(x)
    history.steps[0].rule, history.after
    print(history)
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, overload

from attrs import frozen

from verax.api.tracing.apply import ENGINE
from verax.api.tracing.structs import struct_avals
from verax.api.tracing.trace import trace as trace_function
from verax.api.tracing.wrapping import describe_arguments, function_name, wraps
from verax.backend import pytrees
from verax.explorer.exploration import Exploration, exploration_of
from verax.explorer.pipeline import ProgramStages
from verax.explorer.recording import Recording, Story
from verax.explorer.rows.row import EQUATION, Mark, mark_of
from verax.ir.jaxpr import ClosedJaxpr, Eqn, Jaxpr
from verax.ir.records import ReprMixin
from verax.rewrites.applying import apply
from verax.rules.rows.leaks import leaked
from verax.transforms.patterns.matching import PASSES, Step, Steps
from verax.transforms.patterns.rewrite_rules import Rewrite
from verax.transforms.public import hoist, opened


@frozen(eq=False, repr=False)
class RewriteTrace(ReprMixin):
    """A program before and after rewrite rules, and every step between.

    It prints as the list of its steps.
    """

    __module__ = "verax.rewrites"

    title: str
    before: ClosedJaxpr
    after: ClosedJaxpr
    steps: tuple[Step, ...]
    stages: ProgramStages
    groups: tuple[tuple[Step, ...], ...]

    def __str__(self) -> str:
        count = len(self.steps)
        steps = f"{count} step" if count == 1 else f"{count} steps"
        size, now = len(self.before.eqns), len(self.after.eqns)
        head = f"{self.title}: {steps}, {size} equations before and {now} after"
        return "\n".join([head, *map(str, self.steps)])

    def __repr__(self) -> str:
        return str(self)

    def explore(self) -> Exploration:
        """The program after each pass, as `verax.explore` shows it, with the steps."""
        rows: list[tuple[int, int]] = []
        texts: list[str] = []
        for number, group in enumerate(self.groups):
            for step in group:
                for place in self.rows_of(number, step):
                    rows.append(place)
                    texts.append(str(step))
        story = Story("rewrite", str(self).splitlines()[0], tuple(rows), tuple(texts))
        return exploration_of(self.title, self.stages.stages, story)

    def rows_of(self, stage: int, step: Step) -> list[tuple[int, int]]:
        """The rows that a step took away, and those that it wrote."""
        old, new = self.stages.stages[stage].rows, self.stages.stages[stage + 1].rows
        gone = marks_of(step.before)
        origin = {eqn.source.origin for eqn in step.after}
        written = marks_of(step.after)
        out = [(stage, i) for i, row in enumerate(old) if row.mark in gone]
        return out + [
            (stage + 1, i)
            for i, row in enumerate(new)
            if row.kind == EQUATION
            and row.before in written
            and row.source.origin in origin
        ]

    def _repr_html_(self) -> str:
        """Shows it in a notebook."""
        return self.explore()._repr_html_()


def marks_of(eqns: Sequence[Eqn]) -> set[Mark | None]:
    """The marks of equations."""
    out: set[Mark | None] = {mark_of(eqn.source) for eqn in eqns}
    return out - {None}


@overload
def trace(
    program: Jaxpr | ClosedJaxpr,
    rules: Rewrite | Iterable[Rewrite],
    *,
    passes: int = PASSES,
) -> RewriteTrace: ...
@overload
def trace(
    program: Callable[..., object],
    rules: Rewrite | Iterable[Rewrite],
    *,
    passes: int = PASSES,
) -> Callable[..., RewriteTrace]: ...
def trace(
    program: Callable[..., object] | Jaxpr | ClosedJaxpr,
    rules: Rewrite | Iterable[Rewrite],
    *,
    passes: int = PASSES,
) -> Any:
    """Records what `apply(rules)` does to a program, step by step.

    Args:
        program: a jaxpr, or a function.
        rules: the rules; where several hold at one place, the first is taken.
        passes: the largest number of passes over the whole program.

    Returns:
        a `RewriteTrace`; of a function, a function of its arguments, which may be
        `ShapeDtypeStruct`s, to one.

    Raises:
        RewriteLoop: the rules never come to an end.
        TypeError: one of them is not a rule.

    >>> import verax.numpy as vnp
    >>> from verax.rewrites import stable, trace
    >>> history = trace(lambda x: vnp.log(1.0 + x), stable())(1e-8)
    >>> [step.rule for step in history.steps]
    ['log_of_one_plus']
    """
    chosen = apply(rules, passes=passes)
    if isinstance(program, Jaxpr | ClosedJaxpr):
        return traced_rewrite(opened(program), chosen.rules, passes, "a program")

    @wraps(program)
    def traced(*args: object, **kwargs: object) -> RewriteTrace:
        leaves, tree = pytrees.flatten((args, kwargs))
        describe = describe_arguments(program, tree)
        avals = struct_avals(leaves, describe)
        out = trace_function(program, tree, avals, "rewrites.trace", describe=describe)
        if out.captured:
            raise leaked(out.captured[0])
        name = function_name(program)
        return traced_rewrite(out.jaxpr, chosen.rules, passes, name)

    return traced


def traced_rewrite(
    jaxpr: Jaxpr, rules: Sequence[Rewrite], passes: int, title: str
) -> RewriteTrace:
    """The rewrite of a program, with its steps and stages."""
    recording = Recording()
    recording.name(jaxpr, title)
    first = recording.whole(jaxpr)
    groups: list[tuple[Step, ...]] = []

    def watch(program: Jaxpr, steps: Sequence[Step]) -> Jaxpr:
        groups.append(tuple(steps))
        names = ", ".join(dict.fromkeys([step.rule for step in steps]))
        record = recording.add(
            f"rewrite {len(groups)}", program, names, [recording.records[-1]]
        )
        record.keeps_inputs = True
        return record.marked

    rewriter = Steps(ENGINE, rules, passes, watch)
    after = rewriter.program(first.marked)
    stages = ProgramStages(recording)
    stages.add_all()
    return RewriteTrace(
        title,
        hoist(jaxpr),
        hoist(after),
        tuple(rewriter.steps),
        stages,
        tuple(groups),
    )
