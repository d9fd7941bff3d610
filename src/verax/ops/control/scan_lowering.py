"""Floor 2: `scan` compiled: one StableHLO loop, whatever the length.

One idea: the loop carries a counter, the carries and the arrays under construction;
each step reads its rows and writes its results in place::

    %n:3 = "stablehlo.while"(%zero, %carry, %ys) ...
"""

from collections.abc import Callable, Sequence
from typing import Protocol

from verax.ir.avals import ShapedArray, SymbolicSize
from verax.ir.dtypes import int32
from verax.ir.effects import is_ordered
from verax.ir.jaxpr import Jaxpr
from verax.ops.calls.subjaxprs import stored_shape
from verax.rules.rows.emitter import Emitter, Operand, compared, i64s

COUNTER = ShapedArray((), int32)
type Op = Callable[..., tuple[Operand, ...]]


class Loop(Protocol):
    """What the compiled form reads of the params."""

    @property
    def jaxpr(self) -> Jaxpr: ...
    @property
    def length(self) -> int: ...
    @property
    def reverse(self) -> bool: ...
    @property
    def unroll(self) -> int: ...
    def parts[T](self, xs: Sequence[T]) -> tuple[list[T], list[T], list[T]]: ...
    def results[T](self, xs: Sequence[T]) -> tuple[list[T], list[T]]: ...


def lower_scan(
    e: Emitter, p: Loop, operands: Sequence[Operand], outs: Sequence[ShapedArray]
) -> Sequence[Operand]:
    """A loop of `unroll` steps at a time, and what is left over after it."""
    consts, carry, xs = p.parts(operands)
    ys = [empty(e, aval) for aval in p.results(outs)[1]]
    # Of a symbolic length it is not known what would be left over.
    symbolic = isinstance(p.length, SymbolicSize)
    at_once = 1 if symbolic else max(p.unroll, 1)
    trips = p.length // at_once if symbolic or at_once < p.length else 0

    def steps(first: Operand | int, count: int, state: list[Operand]) -> list[Operand]:
        carry, ys = p.results(state)
        for k in range(count):
            i = row_of_step(e, p, first, k)
            rows = [read_row(e, x, i) for x in xs]
            carry, found = p.results(e.inline(p.jaxpr, [*consts, *carry, *rows]))
            ys = [write_row(e, y, row, i) for y, row in zip(ys, found, strict=True)]
        return [*carry, *ys]

    state = [*carry, *ys]
    if trips:
        op = e.threaded if is_ordered(p.jaxpr.effects) else e.op
        state = looped(e, op, trips * at_once, at_once, state, steps)
    return steps(trips * at_once, p.length - trips * at_once, state)


class Steps(Protocol):
    """Writes some steps from a given one on; the state after them."""

    def __call__(
        self, first: Operand | int, count: int, state: list[Operand]
    ) -> list[Operand]: ...


def looped(
    e: Emitter, op: Op, limit: int, at_once: int, state: list[Operand], steps: Steps
) -> list[Operand]:
    """The steps before `limit`, as a loop that `op` writes."""

    def more(xs: Sequence[Operand]) -> Sequence[Operand]:
        return (compared(e, xs[0], "LT", e.constant(limit, COUNTER)),)

    def body(xs: Sequence[Operand]) -> Sequence[Operand]:
        after = steps(xs[0], at_once, list(xs[1:]))
        return [
            *e.op("stablehlo.add", (xs[0], e.constant(at_once, COUNTER)), (COUNTER,)),
            *after,
        ]

    types = (COUNTER, *[x.aval for x in state])
    regions = ((types, more), (types, body))
    start = (e.constant(0, COUNTER), *state)
    return list(op("stablehlo.while", start, types, regions)[1:])


def row_of_step(e: Emitter, p: Loop, first: Operand | int, k: int) -> Operand:
    """The row of step `first + k`."""
    if isinstance(first, int):
        i = first + k
        return e.constant(p.length - 1 - i if p.reverse else i, COUNTER)
    if p.reverse:
        last = e.constant(p.length - 1 - k, COUNTER)
        return e.op("stablehlo.subtract", (last, first), (COUNTER,))[0]
    if k == 0:
        return first
    return e.op("stablehlo.add", (first, e.constant(k, COUNTER)), (COUNTER,))[0]


def starts(e: Emitter, x: Operand, i: Operand) -> list[Operand]:
    """Where the window of row `i` begins."""
    zero = e.constant(0, COUNTER)
    return [i, *[zero] * (len(stored_shape(x.aval)) - 1)]


def read_row(e: Emitter, x: Operand, i: Operand) -> Operand:
    """Row `i` of an array."""
    rest = x.aval.shape[1:]
    (part,) = e.op(
        "stablehlo.dynamic_slice",
        (x, *starts(e, x, i)),
        (x.aval.with_shape((1, *rest)),),
        slice_sizes=i64s((1, *stored_shape(x.aval)[1:])),
    )
    return e.op("stablehlo.reshape", (part,), (x.aval.with_shape(rest),))[0]


def write_row(e: Emitter, y: Operand, row: Operand, i: Operand) -> Operand:
    """`y` with row `i` replaced."""
    shape = (1, *row.aval.shape)
    part = e.broadcast(row, shape, tuple(range(1, len(shape))))
    return e.op(
        "stablehlo.dynamic_update_slice", (y, part, *starts(e, y, i)), (y.aval,)
    )[0]


def empty(e: Emitter, aval: ShapedArray) -> Operand:
    """The array of all rows, before the first step."""
    return e.constant(0, aval)
