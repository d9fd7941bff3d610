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
from attrs import frozen

from verax.ir.avals import ShapedArray
from verax.ir.dtypes import int32
from verax.ir.jaxpr import Jaxpr
from verax.ir.records import ReprMixin
from verax.ops.calls.call import blank, inlined, waiting
from verax.ops.calls.checkpoint import CheckpointParams, checkpoint_p
from verax.ops.control.any_lane import any_lane
from verax.ops.control.cond import cond_p
from verax.ops.control.cond_params import CondParams
from verax.ops.control.scan import scan_p, scanning
from verax.ops.control.scan_params import CheckpointedScanParams, ScanParams, cut
from verax.ops.control.scan_rules import Bind
from verax.ops.control.while_ import looping, split_while
from verax.ops.control.while_params import BoundedWhileParams
from verax.ops.elementwise.arith import add
from verax.ops.elementwise.compare import lt
from verax.ops.elementwise.convert import convert
from verax.ops.structure.joining import concatenate
from verax.ops.structure.shape import reshape
from verax.ops.structure.slicing import slice_in_dim
from verax.rules.programs.derived import pull
from verax.rules.rows.builder import program
from verax.rules.rows.infer import chosen, knowns, merged, unknowns
from verax.rules.rows.row import Engine, Known, Row, Rows, Split, Tangent
from verax.rules.values.array import Array

# -----------------------------------------------------------------------------
# A loop as a nest of loops, each step of which is computed again.
#
# A loop of n = b1 b2 ... bd steps is a loop over b1 blocks, each a loop over b2 blocks,
# and so on; with every block under `checkpoint`, reverse mode stores the carries with
# which blocks begin, b1 + b2 + ... + bd at a time, and computes each step d times
# again::
#
#     100 steps, blocks (10, 10):   20 carries,  3 evaluations of each step
#     100 steps, blocks (5, 5, 4):  14 carries,  4 evaluations of each step
#     100 steps, blocks (100,):    100 carries,  2 evaluations of each step
#
# Griewank, "Achieving logarithmic growth of temporal and spatial complexity in reverse
# automatic differentiation" (1992) has the idea.


COUNTER = ShapedArray((), int32)


@frozen(repr=False)
class BlockedLoop(ReprMixin):
    """A loop on constants, carries and rows, to be written as a nest.

    `step` gives carries and a row of results; `goes_on` tells from constants and
    carries whether there is another step, and None says that there always is.
    """

    step: Jaxpr
    consts: int
    carry: int
    blocks: tuple[int, ...]
    goes_on: Jaxpr | None = None
    reverse: bool = False
    unroll: int = 1

    def cut[T](self, xs: Sequence[T]) -> list[list[T]]:
        """Operands: constants, carries, rows."""
        rows = len(xs) - self.consts - self.carry
        return cut((self.consts, self.carry, rows), xs)

    def nest(self, level: int = 0) -> Jaxpr:
        """The loop from this level inwards; rows begin with the sizes of the blocks."""
        if level == len(self.blocks):
            return self.step
        last = level == len(self.blocks) - 1
        inner = self.guarded(again(self.nest(level + 1)), not last)
        consts, carry, rows = self.cut(inner.in_avals)
        size = self.blocks[level]
        params = ScanParams(
            inner,
            size,
            (False,) * len(inner.invars),
            self.carry,
            self.consts,
            self.reverse,
            self.unroll if last else 1,
        )
        stacked = [x.stacked(size) for x in rows]
        types = [*consts, *carry, *stacked]
        return program(types, lambda *xs: scan_p.bind(params, *xs))

    def guarded(self, block: Jaxpr, outer: bool) -> Jaxpr:
        """The block, unless the loop has ended: then the carries as they are.

        Outside of the single step, batch elements of a vmap are asked together, so that
        a block is skipped once all of them have ended.
        """
        if self.goes_on is None:
            return block
        goes_on = self.goes_on
        skipped = program(block.in_avals, lambda *xs: self.skip(block, xs))

        def body(*xs: Array) -> Sequence[object]:
            consts, carry, _ = self.cut(xs)
            (more,) = inlined(goes_on, [*consts, *carry])
            index = convert(any_lane(more) if outer else more, int32)
            return cond_p.bind(CondParams((skipped, block)), index, *xs)

        return program(block.in_avals, body)

    def skip(self, block: Jaxpr, xs: Sequence[Array]) -> Sequence[object]:
        """The results of a block that is not run."""
        rows = block.out_avals[self.carry :]
        return [*self.cut(xs)[1], *map(blank, rows)]


def again(block: Jaxpr) -> Jaxpr:
    """The block, whose derivative stores its operands only."""
    params = CheckpointParams("block", False, False, None, block)
    return program(block.in_avals, lambda *xs: checkpoint_p.bind(params, *xs))


def counted(step: Jaxpr, consts: int, carry: int, length: int) -> tuple[Jaxpr, Jaxpr]:
    """The step with a counter as first carry, and whether that is below `length`."""
    fixed, begun, rows = cut(
        (consts, carry, len(step.invars) - consts - carry), step.in_avals
    )

    def body(*xs: Array) -> Sequence[object]:
        after = inlined(step, [*xs[:consts], *xs[consts + 1 :]])
        return [add(xs[consts], np.int32(1)), *after]

    more = program(
        [*fixed, COUNTER, *begun], lambda *xs: [lt(xs[consts], np.int32(length))]
    )
    return program([*fixed, COUNTER, *begun, *rows], body), more


# -----------------------------------------------------------------------------
# Loops with a memory plan: `checkpointed_scan` and `bounded_while`.


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
    """Splits a nest into what is known now, with some carries, and the rest."""
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
