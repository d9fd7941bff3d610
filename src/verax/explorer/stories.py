"""Pages that tell a story: a path through the rows, step by step (floor 6).

A report about a program knows how to trace it again; under a recording that gives the
stages, in which the report marks its rows::

    verax.debug.find_nans(f)(x).explore()
    verax.jit(f).explain(x).explore()
"""

from collections.abc import Sequence
from typing import Any

from verax.api.explain.report import Explanation
from verax.api.stages.stages import Traced
from verax.api.tracing.trace import Traced as TracedFunction
from verax.explorer.exploration import Exploration, exploration_of, of_arrays
from verax.explorer.pipeline import Pipeline, ProgramStages
from verax.explorer.recording import Recording, Story
from verax.explorer.rows.jaxpr import programs
from verax.explorer.rows.row import CONSTANT, EQUATION, HEAD, INPUT, Row
from verax.ir.jaxpr import Jaxpr
from verax.ir.walk import Path
from verax.transforms.nans import Finding, report

type Place = tuple[int, int]


def page_of(subject: Finding | Explanation) -> Exploration:
    """The page of a report.

    Raises:
        ValueError: the report does not know the call.
    """
    if subject.again is None:
        raise ValueError(
            "this report does not keep the arguments of the call, so it cannot be "
            "explored: ask verax.debug.find_nans(f)(*args), or explain outside of "
            "disable_jit"
        )
    if isinstance(subject, Finding):
        return page_of_finding(subject, subject.again)
    return page_of_explanation(subject, subject.again)


def page_of_finding(finding: Finding, again: Any) -> Exploration:
    """The program that was searched, with the way to the equation from its line."""
    recording = Recording()
    with recording.watching():
        traced: TracedFunction = again()
    record = recording.whole(traced.jaxpr)
    stages = ProgramStages(recording)
    stages.add_all()
    path: list[Place] = []
    if finding.path:
        row = row_at(stages.rows, record.jaxpr, finding.path)
        path = ancestry(stages, len(stages.stages) - 1, row)
    title, *lines = report(finding)
    texts = [row_text(stages.stages[s].rows[r], stages, s) for s, r in path]
    story = Story("nan", title, tuple(path), (*texts, *lines))
    return exploration_of(finding.function, stages.stages, story)


def page_of_explanation(explanation: Explanation, again: Any) -> Exploration:
    """The program of the call, with the arguments that differ from earlier calls."""
    recording = Recording()
    with recording.watching():
        stage: Traced = again()
        flat = of_arrays(stage)
        pipeline = Pipeline(recording, flat)
        pipeline.explored(compile=False)
    level = pipeline.whole.level
    rows = pipeline.stages[level].rows
    names = stage.interface.names()
    inputs = [i for i, row in enumerate(rows) if row.kind == INPUT and row.inside < 0]
    path: list[Place] = []
    texts: list[str] = []
    for difference in explanation.differences:
        for name, number in zip(names, inputs, strict=False):
            if name.removeprefix("argument ").startswith(difference.where):
                path.append((level, number))
                texts.append(f"{difference} ({difference.advice})")
    for number, row in enumerate(rows):
        if row.kind == CONSTANT:
            path.append((level, number))
            texts.append(row.note)
    rest = [text for text in str(explanation).splitlines() if text]
    story = Story("explain", explanation.verdict, tuple(path), (*texts, *rest))
    return exploration_of(stage.fun_name, pipeline.stages, story)


def row_at(rows: Sequence[Row], jaxpr: Jaxpr, path: Path) -> int:
    """The row of the equation at a path of `verax.ir.walk`."""
    scope = -1
    for number, which in zip(path[:-1:2], path[1::2], strict=True):
        params = jaxpr.eqns[number].params
        jaxpr = tuple(params.subjaxprs())[which]
        bodies = [id(body) for _, body in programs(params)]
        holder = rows_in(rows, scope, EQUATION)[number]
        scope = rows_in(rows, holder, HEAD)[bodies.index(id(jaxpr))]
    return rows_in(rows, scope, EQUATION)[path[-1]]


def rows_in(rows: Sequence[Row], scope: int, kind: int) -> list[int]:
    """The rows of a kind in a program, in order."""
    return [i for i, row in enumerate(rows) if row.inside == scope and row.kind == kind]


def ancestry(stages: ProgramStages, stage: int, row: int) -> list[Place]:
    """The rows that a row was made from, from the first stage on, and itself."""
    out = [(stage, row)]
    here = [row]
    while stage and here:
        rows = stages.stages[stage].rows
        here = list(dict.fromkeys([i for r in here for i in rows[r].origins]))
        stage -= 1
        out += [(stage, i) for i in here]
    return out[::-1]


def row_text(row: Row, stages: ProgramStages, stage: int) -> str:
    """A row as a line of a story."""
    source = row.source
    place = f" ({source.file}:{source.line})" if source.line else ""
    equals = " = " if row.left else ""
    name = stages.stages[stage].name
    return f"{name}: {row.left}{equals}{row.op} {row.right}{place}".rstrip()
