"""Floor 6: random well-typed programs that compose rows of a table.

One idea: Hypothesis draws and shrinks the steps of a program, in bodies of loops and
branches too, and whatever the steps are, the program that they grow is well typed::

    build(pool_of(rows), [Step(3, 0), Step(17, 5)])   # { lambda ; a:f32[3]. let ... }
"""

from collections.abc import Callable, Iterator, Sequence
from random import Random

import numpy as np
from attrs import evolve, frozen
from hypothesis import strategies as st

from verax.ir.avals import ShapedArray, iinfo
from verax.ir.dtypes import float0, is_bool, is_inexact, is_integer, stored_dtype
from verax.ir.jaxpr import Jaxpr
from verax.ir.records import ReprMixin
from verax.rules.rows.builder import Builder, renumber
from verax.rules.rows.row import Domain, NDArray, SomeRow
from verax.verify.cases.case import Case, double_precision
from verax.verify.cases.growing import (
    INSIDE,
    Pool,
    Step,
    Values,
    grow,
    pool_of,
    random_steps,
)
from verax.verify.cases.nested import DRAWS
from verax.verify.strategies import (
    PLAIN,
    SEEDS,
    filled,
    generic,
    meeting,
    nearby,
    special_points,
    stack,
)

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


def composable(rows: Sequence[SomeRow], *columns: str) -> tuple[SomeRow, ...]:
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
    rows: Sequence[SomeRow],
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


# -----------------------------------------------------------------------------
# Programs and values from a seed alone, without Hypothesis.
#
# A seed is a program on every machine and in every process, so a long search
# can be cut into pieces, and a failure is one number; steps are then taken away for as
# long as the failure stays::
#
#     seed_case(pool, 1234)                       # the same case, always


SPECIAL = 0.15
"""The share of elements that are special points, beside the law of derivatives."""
FEW = 0.2
"""The share of arrays with few different elements, which meet those of others."""


def seed_steps(pool: Pool, seed: int, most: int, nesting: int = DEPTH) -> list[Step]:
    """The steps of a program, by its seed."""
    return list(random_steps(Random(seed), pool, most, nesting))


def seed_case(
    pool: Pool,
    seed: int,
    *,
    steps: Sequence[Step] | None = None,
    depth: int = 1,
    wide: bool = False,
    most: int = 8,
) -> Case:
    """A program with `depth` values per operand; `steps` replace those of the seed."""
    if steps is None:
        steps = seed_steps(pool, seed, most)
    program = build(pool, steps, wide)
    random = Random(seed + 1)
    inputs = zip(program.jaxpr.in_avals, program.domains, strict=True)
    stacks = [
        random_array(random, aval.with_shape((depth, *aval.shape)), domain, i, wide)
        for i, (aval, domain) in enumerate(inputs)
    ]
    smooth = tuple([domain.smooth for domain in program.domains])
    return Case(program.jaxpr, tuple(stacks), seed, smooth)


def random_array(
    random: Random, aval: ShapedArray, domain: Domain, place: int, wide: bool
) -> NDArray:
    """An array of the type within the domain; smooth points if `wide`."""
    dtype = stored_dtype(aval.dtype)
    if dtype == float0:
        return np.zeros(aval.shape, float0)
    if wide and is_inexact(aval.dtype):
        steps = [random.randrange(4096) for _ in range(8)]
        return generic(steps, aval, domain, place)
    pool = meeting(domain)
    if is_inexact(aval.dtype) and pool and random.random() < FEW:
        return filled([random.choice(pool) for _ in range(7)], aval.shape, dtype)
    return filled(
        [element(random, dtype, domain) for _ in range(11)], aval.shape, dtype
    )


def element(random: Random, dtype: np.dtype[np.generic], domain: Domain) -> float:
    """One element, or one part of a complex one."""
    if is_bool(dtype):
        return random.random() < 0.5
    low, high = domain.low, domain.high
    if is_integer(dtype):
        limits = iinfo(dtype)
        bottom = int(max(low, int(limits.min)))
        top = int(min(high, int(limits.max)))
        if random.random() < SPECIAL:
            special = [int(x) for x in domain.special if np.isfinite(x)]
            fit = [x for x in special if int(limits.min) <= x <= int(limits.max)]
            return random.choice((bottom, top, random.randint(bottom, top), *fit))
        return random.randint(max(bottom, min(-4, top)), min(top, max(4, bottom)))
    if random.random() < SPECIAL:
        pool = [x for x in special_points(dtype, domain) if low <= x <= high]
        return random.choice([*pool, *domain.special])
    plain = [x for x in PLAIN if low <= x <= high]
    if plain and random.random() < 0.3:
        return random.choice(plain)
    return random.uniform(*nearby(domain))


def shrunk(steps: Sequence[Step], fails: Callable[[list[Step]], bool]) -> list[Step]:
    """Fewer steps that still fail: each is taken away, or its bodies are, if it can."""
    best = list(steps)
    going = True
    while going:
        going = False
        for smaller in simpler(best):
            if fails(smaller):
                best, going = smaller, True
                break
    return best


def simpler(steps: Sequence[Step]) -> Iterator[list[Step]]:
    """The steps with one of them gone, here or inside."""
    for i, step in enumerate(steps):
        rest = list(steps)
        del rest[i]
        if rest:
            yield rest
        for inside in simpler(step.inside):
            yield [*steps[:i], evolve(step, inside=tuple(inside)), *steps[i + 1 :]]
