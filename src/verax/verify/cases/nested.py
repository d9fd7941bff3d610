"""Floor 6: calls of rows that hold jaxprs: loops, choices, calls with rules.

One idea: a row cannot draw a program, for it does not see the table; so these draws
stand here, by row, and are given a `Nest`, which grows bodies out of what there is::

    DRAWS[scan_p](Random(0), nest)      # Sample(ScanParams(jaxpr=...), ...)

What a body reads beside its own inputs becomes a constant of the loop, or an operand
of the call. Loops end: the counter of a `while` is compared in its last two bits.
"""

from collections.abc import Callable, Mapping, Sequence
from math import prod
from random import Random
from types import MappingProxyType
from typing import Protocol

import numpy as np
from attrs import frozen
from pyrsistent import pvector

from verax.ir.avals import Shape, ShapedArray
from verax.ir.dtypes import (
    DType,
    bool_,
    complex64,
    float32,
    float64,
    int32,
    is_inexact,
    numpy_dtype,
    uint8,
)
from verax.ir.jaxpr import Jaxpr, Literal, NoParams, scalar_literal
from verax.ir.records import ReprMixin
from verax.ops.calls.call import CallParams, jit_p
from verax.ops.calls.checkpoint import CheckpointParams, checkpoint_p
from verax.ops.control.checkpointed_loops import bounded_while_p, checkpointed_scan_p
from verax.ops.control.cond import cond_lanes_p, cond_p
from verax.ops.control.cond_params import CondLanesParams, CondParams, Platforms
from verax.ops.control.scan import scan_p
from verax.ops.control.scan_params import CheckpointedScanParams, ScanParams
from verax.ops.control.while_ import while_p
from verax.ops.control.while_params import BoundedWhileParams, WhileParams
from verax.ops.core import CORE
from verax.ops.custom.jvp import CustomJvpParams, TracedJvp, custom_jvp_call_p
from verax.ops.custom.vjp import CustomVjpParams, TracedVjp, custom_vjp_call_p
from verax.ops.custom.vmap import CustomVmapParams, custom_vmap_call_p
from verax.ops.elementwise.arith import add_p
from verax.ops.elementwise.bits import and_p
from verax.ops.elementwise.compare import lt_p
from verax.rules.programs.batched import batch_to
from verax.rules.programs.derived import standard
from verax.rules.rows.builder import Builder, Tracer, program, write_here
from verax.rules.rows.infer import Mask
from verax.rules.rows.row import (
    REALS,
    Domain,
    MissingRule,
    Row,
    Sample,
    SomeRow,
    SomeSample,
)
from verax.rules.values.array import Array
from verax.transforms.engine.engine import StandardEngine
from verax.verify.cases.tolerance import wide_aval

ENGINE = StandardEngine(standard, CORE)
"""Derives the rules of custom calls; the engine under test is another one."""

DTYPES: tuple[DType, ...] = (
    float32,
    float32,
    float32,
    int32,
    float64,
    bool_,
    complex64,
)
SHAPES: tuple[Shape, ...] = ((), (3,), (2, 3), (1,), (0,))
LENGTHS = (3, 1, 2, 0, 5)
COUNTERS: tuple[DType, ...] = (int32, uint8)
STEPS = 3
"""Steps of a `while` at most: its counter goes on while its last two bits are less."""


class Body(Protocol):
    """A program under construction inside of a call."""

    @property
    def own(self) -> Sequence[Tracer]: ...
    def apply(self, row: Row[NoParams], *operands: object) -> Array: ...
    def grow(self) -> None: ...
    def result(self, random: Random, aval: ShapedArray) -> Tracer: ...
    def results(self, random: Random) -> list[Tracer]: ...
    def finish(self, outs: Sequence[object]) -> "Grown": ...


class Nest(Protocol):
    """A nest of bodies, which grow one after the other from the steps of a program."""

    @property
    def wide(self) -> bool: ...
    def body(self, avals: Sequence[ShapedArray]) -> Body: ...
    def at_hand(self) -> Sequence[ShapedArray]: ...


@frozen(repr=False)
class Grown(ReprMixin):
    """A body, and the types and domains of the inputs that it has in front.

    Its inputs are what it reads from around, then its own.
    """

    jaxpr: Jaxpr
    avals: tuple[ShapedArray, ...]
    domains: tuple[Domain, ...]


type Draw = Callable[[Random, Nest], SomeSample]


def a_type(random: Random, nest: Nest) -> ShapedArray:
    """A type: of a value of the program around, or any."""
    known = nest.at_hand()
    if known and random.random() < 0.6:
        return random.choice(known)
    dtype = random.choice(DTYPES)
    weak = dtype in (float32, int32) and random.random() < 0.15
    aval = ShapedArray(random.choice(SHAPES), dtype, weak)
    return wide_aval(aval) if nest.wide else aval


def some_types(random: Random, nest: Nest, least: int, most: int) -> list[ShapedArray]:
    return [a_type(random, nest) for _ in range(random.randint(least, most))]


def results_of_types(
    random: Random, body: Body, avals: Sequence[ShapedArray]
) -> list[Tracer]:
    return [body.result(random, aval) for aval in avals]


def joined[T](*parts: Sequence[T]) -> tuple[T, ...]:
    return tuple([item for part in parts for item in part])


def free(count: int) -> tuple[Domain, ...]:
    """The domains of `count` operands that may be anything."""
    return (REALS,) * count


def draw_scan(random: Random, nest: Nest) -> Sample[ScanParams]:
    """A loop with carries, rows and constants; some unused, some handed on."""
    carry = some_types(random, nest, 0, 3)
    rows = some_types(random, nest, 0, 2)
    length = random.choice(LENGTHS)
    xs = [x.with_shape((length, *x.shape)) for x in rows]
    body = nest.body([*carry, *rows])
    body.grow()
    outs = [*results_of_types(random, body, carry), *body.results(random)]
    grown = body.finish(outs)
    count = len(grown.avals)
    params = ScanParams(
        grown.jaxpr,
        length,
        (False,) * (count + len(carry) + len(xs)),
        len(carry),
        count,
        random.random() < 0.4,
        random.choice((1, 1, 2, max(length, 1))),
    )
    avals = joined(grown.avals, carry, xs)
    return Sample(params, avals, (*grown.domains, *free(len(carry) + len(xs))))


def draw_checkpointed(random: Random, nest: Nest) -> Sample[CheckpointedScanParams]:
    """A loop with a plan that has room for its steps, and maybe for more."""
    plain = draw_scan(random, nest)
    p = plain.params
    plans = ((4,), (2, 2), (3, 1), (1, 3), (2, 1, 2), (3, 2))
    fitting = [blocks for blocks in plans if prod(blocks) >= p.length]
    params = CheckpointedScanParams(
        p.jaxpr,
        p.length,
        p.linear,
        p.num_carry,
        p.num_consts,
        p.reverse,
        p.unroll,
        blocks=random.choice(fitting),
    )
    return Sample(params, plain.avals, plain.domains)


def draw_while(random: Random, nest: Nest) -> Sample[WhileParams]:
    """A loop of at most three steps, which may end earlier by what it computes."""
    counter = ShapedArray((), random.choice(COUNTERS), random.random() < 0.3)
    carry = [counter, *some_types(random, nest, 0, 3)]
    body = nest.body(carry)
    body.grow()
    step = body.finish([advanced(body), *results_of_types(random, body, carry[1:])])
    test = nest.body(carry)
    if random.random() < 0.5:
        test.grow()
    more = test.finish([going_on(random, test)])
    params = WhileParams(
        step.jaxpr,
        len(step.avals),
        more.jaxpr,
        len(more.avals),
        sequential=random.random() < 0.2,
    )
    avals = joined(more.avals, step.avals, carry)
    domains = (*more.domains, *step.domains, *free(len(carry)))
    return Sample(params, avals, domains)


def draw_bounded(random: Random, nest: Nest) -> Sample[BoundedWhileParams]:
    """A loop with a plan that has room for all the steps that it may make."""
    plain = draw_while(random, nest)
    p = plain.params
    params = BoundedWhileParams(
        p.body_jaxpr,
        p.body_nconsts,
        p.cond_jaxpr,
        p.cond_nconsts,
        sequential=p.sequential,
        blocks=random.choice(((3,), (2, 2), (1, 3), (4,))),
        linear=(False,) * len(plain.avals),
    )
    return Sample(params, plain.avals, plain.domains)


def advanced(body: Body) -> object:
    """The counter, the first input of the body, one step later."""
    first = body.own[0]
    return body.apply(add_p, first, literal(1, first.aval))


def going_on(random: Random, body: Body) -> object:
    """Whether the counter allows a step, and maybe whether another value does."""
    first = body.own[0]
    limit = literal(random.choice((STEPS, 2, 1, 0, STEPS)), first.aval)
    going = body.apply(lt_p, body.apply(and_p, first, literal(3, first.aval)), limit)
    if random.random() < 0.5:
        return going
    other = body.result(random, ShapedArray((), bool_))
    return body.apply(and_p, going, other)


def literal(value: int, aval: ShapedArray) -> Literal:
    return scalar_literal(np.asarray(value, numpy_dtype(aval.dtype)), aval)


def draw_branches(
    random: Random, nest: Nest
) -> tuple[tuple[Jaxpr, ...], tuple[ShapedArray, ...], tuple[Domain, ...]]:
    """Branches of one type, with the types and domains of what they take."""
    avals, domains = some_types(random, nest, 0, 3), list[Domain]()
    domains += free(len(avals))
    expected: list[ShapedArray] | None = None
    made: list[Grown] = []
    for _ in range(random.choice((2, 1, 3, 2))):
        body = nest.body(avals)
        body.grow()
        outs = (
            body.results(random)
            if expected is None
            else results_of_types(random, body, expected)
        )
        expected = [x.aval for x in outs]
        made.append(body.finish(outs))
    read = joined(*[g.avals for g in made])
    branches = []
    for place, grown in enumerate(made):
        before = sum(len(g.avals) for g in made[:place])
        branches.append(on_more(grown, read, before, avals))
    own = joined(*[g.domains for g in made])
    return tuple(branches), (*read, *avals), (*own, *domains)


def on_more(
    grown: Grown, read: Sequence[ShapedArray], first: int, own: Sequence[ShapedArray]
) -> Jaxpr:
    """A branch that takes what all branches read; its own part starts at `first`."""
    mine = slice(first, first + len(grown.avals))
    return program(
        (*read, *own),
        lambda *xs: write_here(grown.jaxpr, *xs[mine], *xs[len(read) :]),
        "a branch",
    )


def index_domain(count: int) -> Domain:
    """Indices of branches; those out of bounds are clamped."""
    return Domain(0, count - 1, (-1.0, float(count), 2.0**31 - 1))


def draw_cond(random: Random, nest: Nest) -> Sample[CondParams]:
    """A choice of one to three branches, which read different things."""
    branches, avals, domains = draw_branches(random, nest)
    index = ShapedArray((), int32)
    return Sample(
        CondParams(
            branches,
            sequential=random.random() < 0.2,
            platforms=draw_platforms(random, len(branches)),
        ),
        (index, *avals),
        (index_domain(len(branches)), *domains),
    )


def draw_platforms(random: Random, count: int) -> Platforms | None:
    """Now and then a choice by the platform; here it is the same on all but one."""
    if random.random() < 0.8:
        return None
    here = random.randrange(count)
    return tuple([("tpu",) if i < here else None for i in range(count)])


def draw_lanes(random: Random, nest: Nest) -> Sample[CondLanesParams]:
    """A choice for each of several batch elements."""
    branches, avals, domains = draw_branches(random, nest)
    lanes = random.choice(((2,), (3,), (1,), (0,), (2, 1), (2, 2)))
    mapped = tuple([random.random() < 0.6 for _ in avals])
    operands = [
        a.with_shape((*lanes, *a.shape)) if flag else a
        for a, flag in zip(avals, mapped, strict=True)
    ]
    return Sample(
        CondLanesParams(branches, lanes, mapped),
        (ShapedArray(lanes, int32), *operands),
        (index_domain(len(branches)), *domains),
    )


def draw_body(random: Random, nest: Nest) -> Grown:
    """The function of a call."""
    own = some_types(random, nest, 0, 3)
    body = nest.body(own)
    body.grow()
    grown = body.finish(body.results(random))
    return Grown(grown.jaxpr, (*grown.avals, *own), (*grown.domains, *free(len(own))))


def draw_call(random: Random, nest: Nest) -> Sample[CallParams]:
    grown = draw_body(random, nest)
    return Sample(CallParams("f", grown.jaxpr), grown.avals, grown.domains)


def draw_checkpoint(random: Random, nest: Nest) -> Sample[CheckpointParams]:
    grown = draw_body(random, nest)
    again, barrier = random.random() < 0.3, random.random() < 0.7
    params = CheckpointParams("f", again, barrier, None, grown.jaxpr)
    return Sample(params, grown.avals, grown.domains)


def draw_custom_jvp(random: Random, nest: Nest) -> Sample[CustomJvpParams]:
    """A call with its own derivative as a rule; some of its inputs are captured."""
    grown = draw_body(random, nest)
    captured = random.randint(0, len(grown.avals)) if random.random() < 0.3 else 0
    active = derivable(grown)
    own = active[captured:]
    pushed, mask = ENGINE.jvp(grown.jaxpr, (*[False] * captured, *own))
    rule = TracedJvp(pushed, own, mask)
    params = CustomJvpParams("f", captured, grown.jaxpr, rule)
    return Sample(params, grown.avals, grown.domains)


def derivable(grown: Grown) -> Mask:
    """Flags of the inputs with tangents: inexact ones with honest derivatives."""
    pairs = zip(grown.avals, grown.domains, strict=True)
    return tuple([is_inexact(aval.dtype) and domain.smooth for aval, domain in pairs])


def draw_custom_vjp(random: Random, nest: Nest) -> Sample[CustomVjpParams]:
    """A call with its own pullback as a rule; without one, if reverse mode fails."""
    grown = draw_body(random, nest)
    jaxpr, active = grown.jaxpr, derivable(grown)
    try:
        first, second, mask, live = pullback(jaxpr, active)
    except (MissingRule, TypeError):
        # A while loop has no pullback; the function is a constant one in its place.
        jaxpr = Jaxpr((), jaxpr.invars, pvector(), ())
        first, second, mask, live = pullback(jaxpr, active)
    rule = TracedVjp(first, second, mask, live)
    return Sample(CustomVjpParams("f", 0, jaxpr, rule), grown.avals, grown.domains)


def pullback(jaxpr: Jaxpr, active: Mask) -> tuple[Jaxpr, Jaxpr, Mask, Mask]:
    """(forward, backward, which results are inexact, which operands get cotangents)."""
    forward, tangent, mask = ENGINE.linearize(jaxpr, active)
    saved = len(forward.outvars) - len(jaxpr.outvars)
    linear = (False,) * saved + (True,) * sum(active)
    back, live = ENGINE.transpose(tangent, linear, (True,) * sum(mask))
    # The rule is given cotangents of all inexact results; these need not all matter.
    builder = Builder("a pullback")
    known = builder.input_atoms(back.in_avals[:saved])
    cts, inexact = [], tuple([is_inexact(aval.dtype) for aval in jaxpr.out_avals])
    for aval, due, given in zip(jaxpr.out_avals, mask, inexact, strict=True):
        ct = builder.input_atom(aval.tangent()) if given else None
        cts += [ct] if due and ct is not None else []
    back, _ = builder.close(builder.inline(back, [*known, *cts]))
    flags = iter(live)
    return forward, back, inexact, tuple([flag and next(flags) for flag in active])


@frozen(cache_hash=True, repr=False)
class DerivedVmap(ReprMixin):
    """The batching rule that a function has anyway, as one of the user's own."""

    jaxpr: Jaxpr

    def batched(self, size: int, in_batched: Mask) -> tuple[Jaxpr, Mask]:
        """See `VmapRule.batched`."""
        axes = tuple([0 if flag else None for flag in in_batched])
        _, result = ENGINE.batch(self.jaxpr, size, axes)
        expected = tuple([None if axis is None else 0 for axis in result])
        jaxpr = batch_to(ENGINE, self.jaxpr, size, axes, expected)
        return jaxpr, tuple([axis is not None for axis in expected])


def draw_custom_vmap(random: Random, nest: Nest) -> Sample[CustomVmapParams]:
    grown = draw_body(random, nest)
    params = CustomVmapParams("f", 0, grown.jaxpr, DerivedVmap(grown.jaxpr))
    return Sample(params, grown.avals, grown.domains)


DRAWS: Mapping[SomeRow, Draw] = MappingProxyType(
    {
        jit_p: draw_call,
        cond_p: draw_cond,
        scan_p: draw_scan,
        while_p: draw_while,
        checkpoint_p: draw_checkpoint,
        custom_jvp_call_p: draw_custom_jvp,
        custom_vjp_call_p: draw_custom_vjp,
        custom_vmap_call_p: draw_custom_vmap,
        cond_lanes_p: draw_lanes,
        checkpointed_scan_p: draw_checkpointed,
        bounded_while_p: draw_bounded,
    }
)
"""Draws of rows with bodies; the plainest first."""
