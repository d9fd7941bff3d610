"""Floor 2: a loop as a nest of loops, each step of which is computed again.

One idea: a loop of n = b1 b2 ... bd steps is a loop over b1 blocks, each a loop over b2
blocks, and so on; with every block under `checkpoint`, reverse mode stores the carries
with which blocks begin, b1 + b2 + ... + bd at a time, and computes each step d times
again::

    100 steps, blocks (10, 10):   20 carries,  3 evaluations of each step
    100 steps, blocks (5, 5, 4):  14 carries,  4 evaluations of each step
    100 steps, blocks (100,):    100 carries,  2 evaluations of each step

Griewank, "Achieving logarithmic growth of temporal and spatial complexity in reverse
automatic differentiation" (1992) has the idea.
"""

from collections.abc import Sequence

import numpy as np
from attrs import frozen

from verax.ir.avals import ShapedArray
from verax.ir.dtypes import int32
from verax.ir.jaxpr import Jaxpr
from verax.ir.records import ReprMixin
from verax.ops.calls.checkpoint import CheckpointParams, checkpoint_p
from verax.ops.calls.subjaxprs import blank, inlined
from verax.ops.control.any_lane import any_lane
from verax.ops.control.cond import cond_p
from verax.ops.control.cond_params import CondParams
from verax.ops.control.scan import scan_p
from verax.ops.control.scan_params import ScanParams, cut
from verax.ops.elementwise.arith import add
from verax.ops.elementwise.compare import lt
from verax.ops.elementwise.convert import convert
from verax.rules.rows.builder import program
from verax.rules.values.array import Array

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
        """What a block gives that is not run."""
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
