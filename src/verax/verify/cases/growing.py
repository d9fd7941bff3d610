"""Floor 6: programs under construction: steps that use the values at hand.

One idea: a program is a list of steps (which row, which seed, which steps inside it),
so a shorter list is a smaller program, in the bodies of loops as outside::

    grow(values, pool, [Step(3, 0), Step(40, 5, (Step(17, 2),))])
"""

from collections.abc import Sequence
from random import Random

import numpy as np
from attrs import evolve, field, frozen

from verax.ir.avals import ShapedArray
from verax.ir.dtypes import (
    bool_,
    complex64,
    complex128,
    float32,
    float64,
    int32,
    int64,
    is_bool,
    is_inexact,
    numpy_dtype,
)
from verax.ir.jaxpr import (
    NO_PARAMS,
    Atom,
    Literal,
    NoParams,
    Params,
    array_literal,
    scalar_literal,
)
from verax.ir.records import ReprMixin
from verax.rules.rows.builder import Builder, Tracer, renumber
from verax.rules.rows.infer import inferred
from verax.rules.rows.row import REALS, Domain, Row, SomeRow, SomeSample
from verax.rules.values.array import Array
from verax.verify.cases.nested import DRAWS, Grown
from verax.verify.cases.tolerance import widened

TRIES = 40
"""So many calls of a row are drawn in search of one that takes values at hand."""
NESTED_TRIES = 3
"""The same for rows with bodies, which draw their types from what is at hand."""
COMMON = frozenset({bool_, int32, float32, float64, complex128})
RARE = 0.15
"""The share of equations with other dtypes: fewer kinds of values meet oftener."""
CONSTANT = 0.05
"""The share of operands that are arrays or numbers of the program."""
USUAL = 1e15
"""Numbers of programs are seldom larger."""
WEAK = frozenset({int32, int64, float32, float64, complex64, complex128})
"""The dtypes of Python numbers: what programs compute with weak values is of these."""
LARGEST = 64
"""Programs stay small: no value has more elements."""


@frozen(repr=False)
class Step(ReprMixin):
    """One equation: the row by its place in the pool, what decides the call, bodies.

    `inside` are the steps of the bodies, which rows without bodies leave alone.
    """

    row: int
    seed: int
    inside: tuple["Step", ...] = ()


@frozen(repr=False)
class Pool(ReprMixin):
    """The rows that programs are made of: those without bodies, then the others."""

    leaves: tuple[SomeRow, ...]
    nested: tuple[SomeRow, ...] = ()

    def row(self, place: int) -> SomeRow:
        rows = (*self.leaves, *self.nested)
        return rows[place % len(rows)]


def pool_of(rows: Sequence[SomeRow]) -> Pool:
    """The rows in a pool, those with bodies in the order of their draws."""
    return Pool(
        tuple([row for row in rows if row not in DRAWS]),
        tuple([row for row in DRAWS if row in rows]),
    )


def random_steps(random: Random, pool: Pool, most: int, depth: int) -> tuple[Step, ...]:
    """Up to `most` steps, with bodies in bodies up to `depth`."""
    return tuple(
        [random_step(random, pool, depth) for _ in range(random.randint(1, most))]
    )


def random_step(random: Random, pool: Pool, depth: int) -> Step:
    first = len(pool.leaves)
    seed = random.randrange(1 << 12)
    if not pool.nested or depth == 0 or random.random() < 0.7:
        return Step(random.randrange(first), seed)
    inside = random_steps(random, pool, INSIDE, depth - 1)
    return Step(first + random.randrange(len(pool.nested)), seed, inside)


INSIDE = 3
"""Steps of a body, at most."""


@frozen(eq=False, repr=False)
class Values(ReprMixin):
    """The values that a growing program can use: tracers, with their domains."""

    builder: Builder
    wide: bool
    known: list[Tracer] = field(factory=list)
    unused: dict[Atom, Tracer] = field(factory=dict)
    domains: list[Domain] = field(factory=list)

    def find(self, random: Random, aval: ShapedArray, domain: Domain) -> Tracer | None:
        """A value of the type, if there is one and the operand takes any number."""
        if is_inexact(aval.dtype) and not anything(domain):
            return None
        result = [x for x in self.known if x.aval == aval]
        # Results that nothing uses yet come first: programs become deep, not wide.
        fresh = [x for x in result if x.atom in self.unused]
        pool = fresh if fresh and random.random() < 0.7 else result
        return random.choice(pool) if pool else None

    def input(self, aval: ShapedArray, domain: Domain = REALS) -> Tracer:
        """A new input of the program."""
        tracer: Tracer = self.builder.input(aval)
        self.known.append(tracer)
        self.domains.append(domain)
        return tracer

    def operand(
        self, random: Random, aval: ShapedArray, domain: Domain
    ) -> Tracer | Literal:
        """A value for an operand: one at hand, or a constant, or a new input."""
        out = self.find(random, aval, domain) if random.random() < 0.9 else None
        if out is not None:
            return out
        free = is_inexact(aval.dtype) and anything(domain)
        if free and random.random() < CONSTANT:
            return constant_of(random, aval)
        return self.input(aval, domain)

    def apply(
        self, row: SomeRow, params: Params, operands: Sequence[Tracer | Literal]
    ) -> None:
        """Write an equation; its results are values at hand."""
        for operand in operands:
            if isinstance(operand, Tracer):
                self.unused.pop(operand.atom, None)
        for out in self.builder.bind(row, params, operands):
            assert isinstance(out, Tracer)
            self.known.append(out)
            self.unused[out.atom] = out


def constant_of(random: Random, aval: ShapedArray) -> Literal:
    """A literal of the type, which a program holds."""
    steps = np.arange(1, aval.size + 1).reshape(aval.shape) * 0.25 - 0.5
    value = (steps + random.randint(-1, 1)).astype(numpy_dtype(aval.dtype))
    return array_literal(value, aval) if aval.shape else scalar_literal(value, aval)


def anything(domain: Domain) -> bool:
    """Whether an operand may be any number of a usual size, and has a derivative.

    If not, it must be an input: those are drawn from the domain off its kinks, and can
    be left out of a derivative. A computed value may meet a kink by no chance: a window
    of padding alone sums to 0, where `cbrt` has no derivative.
    """
    free = domain.low <= -USUAL and domain.high >= USUAL
    return domain.smooth and free and not domain.kinks


@frozen(eq=False, repr=False)
class GrownBody(ReprMixin):
    """A body, see `nested.Body`; `own` are its inputs, others it takes from around."""

    values: Values
    own: tuple[Tracer, ...]
    pool: Pool
    steps: tuple[Step, ...]

    def apply(self, row: Row[NoParams], *operands: object) -> Array:
        """One equation of one result, which no other equation uses."""
        return self.values.builder.bind(row, NO_PARAMS, operands)[0]

    def grow(self) -> None:
        """Write the equations of the steps."""
        grow(self.values, self.pool, self.steps)

    def result(self, random: Random, aval: ShapedArray) -> Tracer:
        """A value of the type: mostly a computed one, else a further input."""
        out = self.values.find(random, aval, REALS)
        return self.values.input(aval) if out is None else out

    def results(self, random: Random) -> list[Tracer]:
        """Up to three values, which may be inputs, or twice the same."""
        fresh, known = list(self.values.unused.values()), self.values.known
        pool = fresh if fresh and random.random() < 0.8 else known
        count = random.choice((1, 2, 1, 3, 0))
        return [random.choice(pool) for _ in range(count)] if pool else []

    def finish(self, outs: Sequence[object]) -> Grown:
        """The body of these results; inputs from around come before its own."""
        builder, own = self.values.builder, {x.atom for x in self.own}
        jaxpr, _ = builder.finish(outs)
        pairs = list(zip(builder.inputs, self.values.domains, strict=True))
        around = [(v, domain) for v, domain in pairs if v not in own]
        mine = [v for v in builder.inputs if v in own]
        return Grown(
            renumber(jaxpr, [*[v for v, _ in around], *mine]),
            tuple([v.aval for v, _ in around]),
            tuple([domain for _, domain in around]),
        )


@frozen(eq=False, repr=False)
class GrownNest(ReprMixin):
    """A nest in which bodies grow, see `nested.Nest`: pool, steps, outside."""

    pool: Pool
    steps: tuple[Step, ...]
    wide: bool = False
    around: tuple[ShapedArray, ...] = ()

    def body(self, avals: Sequence[ShapedArray]) -> GrownBody:
        """A new body with inputs of these types."""
        values = Values(Builder("a body"), self.wide)
        own = tuple([values.input(aval) for aval in avals])
        return GrownBody(values, own, self.pool, self.steps)

    def at_hand(self) -> Sequence[ShapedArray]:
        """The types of the values of the program around."""
        return self.around


def drawn(
    row: SomeRow,
    random: Random,
    pool: Pool,
    inside: tuple[Step, ...],
    around: tuple[ShapedArray, ...] = (),
    wide: bool = False,
) -> SomeSample:
    """A call of a row as its own draw makes it, or with bodies grown from steps."""
    if row in DRAWS:
        return DRAWS[row](random, GrownNest(pool, inside, wide, around))
    assert row.draw is not None
    return row.draw(random)


def grow(values: Values, pool: Pool, steps: Sequence[Step]) -> None:
    """Write the equations of the steps, one after the other."""
    for step in steps:
        add_step(values, pool, step)


def add_step(values: Values, pool: Pool, step: Step) -> None:
    """Write one equation: of several calls, the one that takes most values at hand."""
    row, random = pool.row(step.row), Random(step.seed)
    best: tuple[bool, int, SomeSample] | None = None
    rare = random.random() < RARE
    for _ in range(NESTED_TRIES if row in DRAWS else TRIES):
        sample = suitable(values, pool, step, random)
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
    pairs = zip(sample.avals, domains_of(row, sample), strict=True)
    operands = [values.operand(random, aval, domain) for aval, domain in pairs]
    values.apply(row, sample.params, operands)


def common(sample: SomeSample) -> bool:
    """Whether all operands have the dtypes that most programs are made of."""
    return all(aval.dtype in COMMON for aval in sample.avals)


def suitable(
    values: Values, pool: Pool, step: Step, random: Random
) -> SomeSample | None:
    """A call of the row that suits the program, or None."""
    row = pool.row(step.row)
    around = tuple([x.aval for x in values.known])
    sample = drawn(row, random, pool, step.inside, around, values.wide)
    if values.wide:
        sample = widened(row, sample)
    avals = (*sample.avals, *inferred(row, sample.params, *sample.avals))
    if any(aval.size > LARGEST for aval in avals):
        return None
    if values.wide and any(narrow(aval) for aval in avals):
        return None
    return sample


def narrow(aval: ShapedArray) -> bool:
    """Whether the type is inexact, but not in double precision."""
    return is_inexact(aval.dtype) and aval.dtype not in (float64, complex128)


def domains_of(row: SomeRow, sample: SomeSample) -> tuple[Domain, ...]:
    """One domain per operand: those of the sample, or of the row, the last repeated."""
    given = sample.domains or row.domains or (REALS,)
    missing = len(sample.avals) - len(given)
    return (*given, *(given[-1],) * missing)[: len(sample.avals)]


def weakened(row: SomeRow, sample: SomeSample, random: Random) -> SomeSample:
    """The call with weak types for some operands, if its row takes that."""
    avals = tuple(
        [
            a.with_dtype(a.dtype, True)
            if not is_bool(a.dtype) and random.random() < 0.6 and a.dtype in WEAK
            else a
            for a in sample.avals
        ]
    )
    try:
        inferred(row, sample.params, *avals)
    except (TypeError, ValueError):
        return sample
    return evolve(sample, avals=avals)
