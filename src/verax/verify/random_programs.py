"""Floor 6: random well-typed programs that compose rows of a table.

One idea: Hypothesis draws and shrinks the steps of a program, in bodies of loops and
branches too, and whatever the steps are, the program that they grow is well typed::

    build(pool_of(rows), [Step(3, 0), Step(17, 5)])   # { lambda ; a:f32[3]. let ... }
"""

from collections.abc import Sequence
from typing import Any

from attrs import frozen
from hypothesis import strategies as st

from verax.ir.jaxpr import Jaxpr
from verax.ir.records import ReprMixin
from verax.rules.rows.builder import Builder, renumber
from verax.rules.rows.row import Domain, Row
from verax.verify.cases.case import Case, double_precision
from verax.verify.cases.growing import INSIDE, Pool, Step, Values, grow, pool_of
from verax.verify.cases.nested import DRAWS
from verax.verify.strategies import SEEDS, stack

STEPS = 12
DEPTH = 2
"""Bodies in bodies; the program itself is not counted."""


@frozen(repr=False)
class Program(ReprMixin):
    """A program, with the domains and smoothness of its inputs."""

    jaxpr: Jaxpr
    domains: tuple[Domain, ...]


def build(pool: Pool, steps: Sequence[Step], wide: bool = False) -> Program:
    """The program of the steps; equations take values at hand where types allow.

    Its outputs are the results that no equation uses. `wide` asks for derivatives: in
    double precision, with new inputs for operands that have a domain.
    """
    builder = Builder("a random program")
    values = Values(builder, wide)
    with double_precision(wide):
        grow(values, pool, steps)
    outs = list(values.unused.values()) or values.known[-1:]
    jaxpr, _ = builder.finish(outs)
    # Inputs were added between equations; their numbers come first in a jaxpr.
    return Program(renumber(jaxpr, builder.inputs), tuple(values.domains))


def composable(rows: Sequence[Row[Any]], *columns: str) -> tuple[Row[Any], ...]:
    """The rows of which programs can be made: they can be drawn, with these columns."""
    return tuple(
        row
        for row in rows
        if (row.draw is not None or row in DRAWS)
        and row.evaluate is not None
        and all(row.has(column) for column in columns)
    )


def steps(
    pool: Pool, most: int = STEPS, depth: int = DEPTH
) -> st.SearchStrategy[list[Step]]:
    """Lists of steps, the shortest first; one in four has steps inside, to `depth`."""
    return st.lists(a_step(pool, depth), min_size=1, max_size=most)


def a_step(pool: Pool, depth: int) -> st.SearchStrategy[Step]:
    """One step: a row without bodies, or one with bodies of up to `INSIDE` steps."""
    first = len(pool.leaves)
    leaf = st.builds(Step, st.integers(0, max(first - 1, 0)), SEEDS)
    if depth == 0 or not pool.nested:
        return leaf
    rows = st.integers(first, first + len(pool.nested) - 1)
    bodies = st.lists(a_step(pool, depth - 1), min_size=1, max_size=INSIDE).map(tuple)
    nested = st.builds(Step, rows, SEEDS, bodies)
    return st.one_of(leaf, leaf, leaf, nested) if first else nested


def programs(
    rows: Sequence[Row[Any]],
    *,
    depth: int = 1,
    wide: bool = False,
    most: int = STEPS,
    nesting: int = DEPTH,
) -> st.SearchStrategy[Case]:
    """Random programs of the rows, of up to `most` equations, as cases for laws.

    Rows with bodies stand in bodies up to `nesting` times.
    """
    pool = pool_of(rows)

    @st.composite
    def drawn(draw: st.DrawFn) -> Case:
        program = build(pool, draw(steps(pool, most, nesting)), wide)
        inputs = zip(program.jaxpr.in_avals, program.domains, strict=True)
        stacks = [
            draw(stack(aval, domain, depth, place, wide))
            for place, (aval, domain) in enumerate(inputs)
        ]
        smooth = tuple([domain.smooth for domain in program.domains])
        return Case(program.jaxpr, tuple(stacks), draw(SEEDS), smooth)

    return drawn()
