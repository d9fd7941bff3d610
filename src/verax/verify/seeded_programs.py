"""Floor 6: programs and values from a seed alone, without Hypothesis.

One idea: a seed is a program on every machine and in every process, so a long search
can be cut into pieces, and a failure is one number; steps are then taken away for as
long as the failure stays::

    seed_case(pool, 1234)                       # the same case, always
"""

from collections.abc import Callable, Iterator, Sequence
from random import Random

import numpy as np
from attrs import evolve

from verax.ir.avals import ShapedArray
from verax.ir.dtypes import float0, is_bool, is_inexact, is_integer, stored_dtype
from verax.ir.limits import iinfo
from verax.rules.rows.row import Domain, NDArray
from verax.verify.cases.case import Case
from verax.verify.cases.growing import Pool, Step, random_steps
from verax.verify.random_programs import DEPTH, build
from verax.verify.strategies import (
    PLAIN,
    filled,
    generic,
    meeting,
    nearby,
    special_points,
)

SPECIAL = 0.15
"""How often an element is a special point where derivatives are not the subject."""
FEW = 0.2
"""How often an array has few different elements, which meet those of other operands."""


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
