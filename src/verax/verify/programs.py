"""Floor 6: random well-typed programs that compose rows of a table.

One idea: a program is a list of steps (which row, which seed), so a shorter list is a
smaller program, and a counterexample shrinks to the few equations that matter::

    build(rows, [Step(3, 0), Step(17, 5)])      # { lambda ; a:f32[3]. let ... }
"""

from collections.abc import Sequence
from random import Random
from typing import Any

from attrs import field, frozen
from hypothesis import strategies as st

from verax.ir.avals import ShapedArray
from verax.ir.dtypes import bool_, complex128, float32, float64, int32, is_inexact
from verax.ir.jaxpr import Atom, Jaxpr
from verax.rules.builder import Builder, Tracer, renumber
from verax.rules.infer import infer
from verax.rules.row import REALS, Domain, Row, Sample
from verax.verify.case import Case
from verax.verify.precision import double_precision
from verax.verify.strategies import SEEDS, domains_of, stack
from verax.verify.widen import widened

STEPS = 12
TRIES = 40
"""So many calls of a row are drawn in search of one that takes values at hand."""
COMMON = frozenset({bool_, int32, float32, float64, complex128})
RARE = 0.15
"""How often an equation may have other dtypes: fewer kinds of values meet oftener."""
LARGEST = 64
"""Programs stay small: no value has more elements."""


@frozen
class Step:
    """One equation: the row by its place in the table, and what decides the call."""

    row: int
    seed: int


@frozen
class Program:
    """A program, with the domains and smoothness of its inputs."""

    jaxpr: Jaxpr
    domains: tuple[Domain, ...]


@frozen(eq=False)
class Values:
    """What a program under construction can use: tracers, and domains of its inputs."""

    builder: Builder
    wide: bool
    known: list[Tracer] = field(factory=list)
    unused: dict[Atom, Tracer] = field(factory=dict)
    domains: list[Domain] = field(factory=list)

    def find(self, random: Random, aval: ShapedArray, domain: Domain) -> Tracer | None:
        """A value of the type, if there is one and the operand takes any number."""
        if is_inexact(aval.dtype) and not anything(domain):
            return None
        found = [x for x in self.known if x.aval == aval]
        # Results that nothing uses yet come first: programs become deep, not wide.
        fresh = [x for x in found if x.atom in self.unused]
        pool = fresh if fresh and random.random() < 0.7 else found
        return random.choice(pool) if pool else None

    def input(self, aval: ShapedArray, domain: Domain) -> Tracer:
        """A new input of the program."""
        tracer = self.builder.input(aval)
        self.known.append(tracer)
        self.domains.append(domain)
        return tracer


def anything(domain: Domain) -> bool:
    """Whether an operand may be any number, and has a derivative.

    If not, it must be an input: those are drawn from the domain, and can be left
    out of a derivative.
    """
    free = domain.low == REALS.low and domain.high == REALS.high
    return domain.smooth and free


def build(
    rows: Sequence[Row[Any]], steps: Sequence[Step], wide: bool = False
) -> Program:
    """The program of the steps; equations take values at hand where types allow.

    Its outputs are the results that no equation uses. `wide` asks for derivatives: in
    double precision, with new inputs for operands that have a domain.
    """
    builder = Builder("a random program")
    values = Values(builder, wide)
    with double_precision(wide):
        for step in steps:
            add_step(values, rows[step.row % len(rows)], Random(step.seed))
    outs = list(values.unused.values()) or values.known[-1:]
    jaxpr, _ = builder.finish(outs)
    # Inputs were added between equations; their numbers come first in a jaxpr.
    return Program(renumber(jaxpr, builder.inputs), tuple(values.domains))


def add_step(values: Values, row: Row[Any], random: Random) -> None:
    """Write one equation: of several calls, the one that takes most values at hand."""
    best: tuple[bool, int, Sample[Any]] | None = None
    rare = random.random() < RARE
    for _ in range(TRIES):
        sample = suitable(values, row, random)
        if sample is None or not (rare or best is None or common(sample)):
            continue
        pairs = zip(sample.avals, domains_of(row, sample), strict=True)
        matched = sum(values.find(random, a, d) is not None for a, d in pairs)
        usual = common(sample)
        if best is None or (usual, matched) > best[:2]:
            best = usual, matched, sample
        if matched == len(sample.avals) and (usual or rare):
            break
    if best is None:
        return
    sample = best[2]
    operands = []
    for aval, domain in zip(sample.avals, domains_of(row, sample), strict=True):
        found = values.find(random, aval, domain) if random.random() < 0.9 else None
        operands.append(values.input(aval, domain) if found is None else found)
    for operand in operands:
        values.unused.pop(operand.atom, None)
    for out in values.builder.bind(row, sample.params, operands):
        assert isinstance(out, Tracer)
        values.known.append(out)
        values.unused[out.atom] = out


def common(sample: Sample[Any]) -> bool:
    """Whether all operands have the dtypes that most programs are made of."""
    return all(aval.dtype in COMMON for aval in sample.avals)


def suitable(values: Values, row: Row[Any], random: Random) -> Sample[Any] | None:
    """A call of the row that suits the program, or None."""
    assert row.draw is not None
    sample: Sample[Any] = row.draw(random)
    if values.wide:
        sample = widened(row, sample)
    avals = (*sample.avals, *infer(row, sample.params, *sample.avals))
    if any(aval.size > LARGEST for aval in avals):
        return None
    if values.wide and any(narrow(aval) for aval in avals):
        return None
    return sample


def narrow(aval: ShapedArray) -> bool:
    """Whether the type is inexact, but not in double precision."""
    return is_inexact(aval.dtype) and aval.dtype not in (float64, complex128)


def composable(rows: Sequence[Row[Any]], *columns: str) -> tuple[Row[Any], ...]:
    """The rows of which programs can be made: they can be drawn, with these columns."""
    return tuple(
        row
        for row in rows
        if row.draw is not None
        and row.evaluate is not None
        and all(getattr(row, column) is not None for column in columns)
    )


def steps(rows: Sequence[Row[Any]], most: int = STEPS) -> st.SearchStrategy[list[Step]]:
    """Lists of steps, the shortest first."""
    one = st.builds(Step, st.integers(0, len(rows) - 1), st.integers(0, 1 << 12))
    return st.lists(one, min_size=1, max_size=most)


def programs(
    rows: Sequence[Row[Any]],
    *,
    depth: int = 1,
    wide: bool = False,
    most: int = STEPS,
) -> st.SearchStrategy[Case]:
    """Random programs of the rows, of up to `most` equations, as cases for laws."""

    @st.composite
    def drawn(draw: st.DrawFn) -> Case:
        program = build(rows, draw(steps(rows, most)), wide)
        inputs = zip(program.jaxpr.in_avals, program.domains, strict=True)
        stacks = [
            draw(stack(aval, domain, depth, place, wide))
            for place, (aval, domain) in enumerate(inputs)
        ]
        smooth = tuple([domain.smooth for domain in program.domains])
        return Case(program.jaxpr, tuple(stacks), draw(SEEDS), smooth)

    return drawn()
