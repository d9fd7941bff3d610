"""Floor 2: loops with a memory plan: `checkpointed_scan` and `bounded_while`.

One idea: to everything but reverse mode these are `scan` and `while`; taken apart in
what is known and what is linear, or transposed, they are written as a nest of loops
which stores few carries and computes the others again (see `blocks`)::

    c:f32[] = bounded_while[body_jaxpr={ ... } cond_jaxpr={ ... } blocks=(8, 8) ...] a
"""

from collections.abc import Sequence
from itertools import repeat
from math import prod

import numpy as np

from verax.ir.jaxpr import Jaxpr
from verax.ops.calls.subjaxprs import blank, inlined, waiting
from verax.ops.control.loop_nests import BlockedLoop, counted
from verax.ops.control.scan import scanning
from verax.ops.control.scan_params import CheckpointedScanParams
from verax.ops.control.scan_partial_eval import Bind
from verax.ops.control.while_ import looping, split_while
from verax.ops.control.while_params import BoundedWhileParams
from verax.ops.structure.joining import concatenate
from verax.ops.structure.shape import reshape
from verax.ops.structure.slicing import slice_in_dim
from verax.rules.programs.calling import pull
from verax.rules.rows.builder import program
from verax.rules.rows.infer import chosen, knowns, merged, unknowns
from verax.rules.rows.row import Engine, Known, Row, Rows, Split, Tangent
from verax.rules.values.array import Array


def nest_of_scan(p: CheckpointedScanParams) -> Jaxpr:
    """The loop over rows as a nest; blocks with room for more steps skip these."""
    over = prod(p.blocks) - p.length
    step, goes_on = p.jaxpr, None
    if over:
        step, goes_on = counted(p.jaxpr, p.num_consts, p.num_carry, p.length)
    carry = p.num_carry + bool(over)
    nest = BlockedLoop(
        step, p.num_consts, carry, p.blocks, goes_on, p.reverse, p.unroll
    ).nest()
    first = over if p.reverse else 0
    begun = [np.int32(0)] if over else []

    def blocked(x: Array) -> Array:
        if over:
            extra = blank(x.aval.with_shape((over, *x.shape[1:])))
            x = concatenate((extra, x) if p.reverse else (x, extra), 0)
        return reshape(x, (*p.blocks, *x.shape[1:]))

    def flat(y: Array) -> Array:
        depth = len(p.blocks)
        y = reshape(y, (p.length + over, *y.shape[depth:]))
        return slice_in_dim(y, first, first + p.length) if over else y

    def body(*args: Array) -> Sequence[object]:
        consts, start, xs = p.parts(args)
        outs = inlined(nest, [*consts, *begun, *start, *map(blocked, xs)])
        after, ys = outs[carry - p.num_carry : carry], outs[carry:]
        return [*after, *map(flat, ys)]

    consts, start, xs = p.parts(p.jaxpr.in_avals)
    stacked = [x.stacked(p.length) for x in xs]
    return program([*consts, *start, *stacked], body)


def nest_of_while(p: BoundedWhileParams) -> Jaxpr:
    """The loop as a nest of loops that skip what comes after its end."""
    for_cond, for_body = p.cond_nconsts, p.body_nconsts
    fixed = p.cond_jaxpr.in_avals[:for_cond]
    types = [*fixed, *p.body_jaxpr.in_avals]
    step = program(types, lambda *xs: inlined(p.body_jaxpr, xs[for_cond:]))

    def more(*xs: Array) -> Sequence[object]:
        return inlined(p.cond_jaxpr, [*xs[:for_cond], *xs[for_cond + for_body :]])

    return BlockedLoop(
        step, for_cond + for_body, len(p.carry), p.blocks, program(types, more)
    ).nest()


def split_nest(engine: Engine, nest: Jaxpr, args: Sequence[Known]) -> Split:
    """What is known now, with some carries; the rest later."""
    first, second, mask = engine.split(nest, unknowns(args))
    outs = inlined(first, knowns(args))
    count = len(mask) - sum(mask)

    def finish(
        residuals: Sequence[Array], operands: Sequence[Array]
    ) -> Sequence[Array]:
        return inlined(second, [*residuals, *operands])

    return Split(
        tuple(merged(mask, repeat(None), outs[:count])),
        tuple(outs[count:]),
        finish,
    )


def is_derivative(linear: Sequence[bool], args: Sequence[Known]) -> bool:
    """Whether what waits are tangents, so that the nest will be run backwards."""
    return all(chosen(unknowns(args), linear))


def transpose_nest(
    engine: Engine, nest: Jaxpr, cts: Sequence[Tangent], args: Sequence[Known]
) -> Sequence[Tangent | None]:
    """The nest, run backwards."""
    return pull(engine, nest, inlined_call, cts, args)


def inlined_call(jaxpr: Jaxpr, *args: Array) -> Sequence[Array]:
    return inlined(jaxpr, args)


def split_scan(
    engine: Engine, bind: Bind, p: CheckpointedScanParams, args: Sequence[Known]
) -> Split:
    """Tangents wait for the nest to run backwards, all else for the loop itself."""
    if is_derivative(p.linear, args):
        return split_nest(engine, nest_of_scan(p), args)
    return waiting(args, len(p.jaxpr.outvars), lambda *xs: bind(p, *xs))


def split_bounded(
    engine: Engine, bind: Bind, p: BoundedWhileParams, args: Sequence[Known]
) -> Split:
    """Tangents wait for the nest to run backwards, all else for the loop itself."""
    if is_derivative(p.linear, args):
        return split_nest(engine, nest_of_while(p), args)
    return split_while(engine, bind, p, args)


checkpointed_scan_p: Row[CheckpointedScanParams] = scanning(
    "checkpointed_scan",
    CheckpointedScanParams,
    split_scan,
    lambda engine, bind, p, cts, args: transpose_nest(
        engine, nest_of_scan(p), cts, args
    ),
)
bounded_while_p: Row[BoundedWhileParams] = looping(
    "bounded_while",
    BoundedWhileParams,
    split_bounded,
    lambda engine, bind, p, cts, args: transpose_nest(
        engine, nest_of_while(p), cts, args
    ),
)

ROWS: Rows = (checkpointed_scan_p, bounded_while_p)
