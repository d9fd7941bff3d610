"""Floor 2: series and continued fractions in lowerings, by loops.

One idea: the loop runs until no element changes any more, and what an element has
reached is then kept::

    state = loop(e, start, step, operands)
"""

from collections.abc import Callable, Sequence
from typing import Any

from verax.ir.avals import ShapedArray
from verax.ir.dtypes import float32
from verax.ir.jaxpr import NoParams
from verax.ir.limits import finfo
from verax.ops.elementwise.arith import abs as magnitude, mul
from verax.ops.elementwise.bits import bitwise_and
from verax.ops.elementwise.compare import gt, lt
from verax.ops.elementwise.convert import convert
from verax.ops.elementwise.select import select
from verax.ops.reductions.reduce import reduce_or
from verax.ops.structure.create import full_like
from verax.rules.programs.while_lowering import lowered, repeat
from verax.rules.rows.emitter import Emitter, Operand
from verax.rules.values.array import Array

STEPS = 10_000
"""So often a loop runs at most; it ends as soon as all elements have converged.

Incomplete functions take some nine roots of their parameters: enough for a million."""
TINY, LARGE = 1e-30, 1e30
MARGIN = 3.0
"""Factors of a fraction are one to within rounding errors, which are a few."""
type Loop = tuple[Operand, ...]


def large(change: Array, total: Array, margin: float = 1.0) -> Array:
    """Whether a change still counts; NaN does not."""
    eps = margin * float(finfo(total.dtype).eps)
    return gt(magnitude(change), mul(magnitude(total), eps))


def not_zero(x: Array) -> Array:
    return select(lt(magnitude(x), TINY), full_like(x, TINY), x)


def proceeds(*state: Array) -> Array:
    """Whether an element has not converged, and there are steps left."""
    n, going = state[0], state[-1]
    axes = tuple(range(going.ndim))
    left = lt(n, float(STEPS))
    return (
        reduce_or(bitwise_and(going, left), axes) if axes else bitwise_and(going, left)
    )


def loop(
    e: Emitter,
    start: Callable[..., Sequence[Array]],
    step: Callable[..., Sequence[Array]],
    operands: Sequence[Operand],
) -> Loop:
    """The state when all elements have converged."""
    return repeat(e, lowered(e, operands, start), proceeds, step)


def in_float32(lower: Callable[..., Sequence[Operand]]) -> Any:
    """A lowering that computes smaller floats in float32."""

    def wider(
        e: Emitter, p: NoParams, xs: Sequence[Operand], outs: Sequence[ShapedArray]
    ) -> Sequence[Operand]:
        dtype = outs[0].dtype
        if finfo(dtype).bits >= 32:
            return lower(e, xs)
        full = [lowered(e, (x,), as_float32)[0] for x in xs]
        return lowered(e, lower(e, full), lambda y: (convert(y, dtype),))

    return wider


def as_float32(x: Array) -> tuple[Array]:
    return (convert(x, float32),)
