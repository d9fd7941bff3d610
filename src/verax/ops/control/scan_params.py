"""Floor 2: the params of a `scan`, the order of its operands, and its loop.

Operands are constants, carries and arrays of rows, in this order, and results are
carries and arrays of rows::

    consts, carry, xs = p.parts(operands)
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, Self

from attrs import evolve, frozen

from verax.ir.avals import ShapedArray, SymbolicSize
from verax.ir.dtypes import int32
from verax.ir.effects import is_ordered
from verax.ir.jaxpr import Jaxpr, Params
from verax.ir.walk import source
from verax.ops.calls.call import stored_shape
from verax.ops.calls.keeping import Types
from verax.rules.rows.emitter import Emitter, Operand, compared, i64s
from verax.rules.rows.infer import Mask

GROUPS = ("ft_in", "ft_out")


@frozen(eq=False, repr=False)
class ScanParams(Params):
    """The body, from constants, carries and rows to carries and rows.

    `length` counts the steps, last row first if `reverse`; `unroll` steps are written
    after each other in the compiled loop. `linear` marks operands in which the results
    are known to be linear.
    """

    jaxpr: Jaxpr
    length: int
    linear: Mask
    num_carry: int
    num_consts: int
    reverse: bool
    unroll: int

    @classmethod
    def from_keywords(cls, fields: Mapping[str, Any]) -> Self:
        """Params by keyword; `ft_in` and `ft_out` may have the operands in groups.

        `ft_in` is what JAX's scan has instead of the counts: its `unpack()` returns
        constants, carries and rows. Which operands are linear is not known then.
        """
        if "ft_in" not in fields:
            return super().from_keywords(fields)
        consts, carry, xs = [len(group) for group in fields["ft_in"].unpack()]
        named = {n: value for n, value in fields.items() if n not in GROUPS}
        counts = {"num_consts": consts, "num_carry": carry}
        flags = {"linear": (False,) * (consts + carry + xs)}
        return super().from_keywords({**flags, **named, **counts})

    def passed_on(self, i: int) -> int | None:
        """See `Passing.passed_on`: of a carry that each step returns as it takes it."""
        place = self.num_consts + i
        kept = i < self.num_carry and source(self.jaxpr, self.jaxpr.outvars[i]) == place
        return place if kept else None

    def handing_out(self, bodies: Sequence[Jaxpr], kept: Sequence[Types]) -> Self:
        """See `Keeping.handing_out`: values leave as rows."""
        return evolve(self, jaxpr=bodies[0])

    def taking_back(self, bodies: Sequence[Jaxpr], kept: Sequence[Types]) -> Self:
        """See `Keeping.taking_back`: values come as rows."""
        linear = (*self.linear, *[False] * len(kept[0]))
        return evolve(self, jaxpr=bodies[0], linear=linear)

    def parts[T](self, xs: Sequence[T]) -> tuple[list[T], list[T], list[T]]:
        """Operands: constants, carries, arrays of rows."""
        middle = self.num_consts + self.num_carry
        return (
            list(xs[: self.num_consts]),
            list(xs[self.num_consts : middle]),
            list(xs[middle:]),
        )

    def results[T](self, xs: Sequence[T]) -> tuple[list[T], list[T]]:
        """Results: carries, arrays of rows."""
        return list(xs[: self.num_carry]), list(xs[self.num_carry :])


@frozen(eq=False, repr=False)
class CheckpointedScanParams(ScanParams):
    """A loop that is run backwards as a nest of loops of the lengths `blocks`."""

    blocks: tuple[int, ...]


def in_turns[T](counts: Sequence[int], xs: Sequence[T]) -> list[T]:
    """(constants, carries, rows, their tangents) with each tangent by its primal."""
    parts = cut(counts, xs)
    return [x for i in range(3) for x in (*parts[i], *parts[i + 3])]


def in_order[T](counts: Sequence[int], xs: Sequence[T]) -> list[T]:
    """The inverse of `in_turns`."""
    a, c, x, ta, tc, tx = counts
    parts = cut((a, ta, c, tc, x, tx), xs)
    return [x for i in (0, 2, 4, 1, 3, 5) for x in parts[i]]


def cut[T](counts: Sequence[int], xs: Sequence[T]) -> list[list[T]]:
    """`xs` in pieces of these lengths."""
    source = iter(xs)
    return [[next(source) for _ in range(count)] for count in counts]


# -----------------------------------------------------------------------------
# `scan` compiled: one StableHLO loop, whatever the length.
#
# The loop carries a counter, the carries and the arrays under construction;
# each step reads its rows and writes its results in place::
#
#     %n:3 = "stablehlo.while"(%zero, %carry, %ys) ...


COUNTER = ShapedArray((), int32)
type Op = Callable[..., tuple[Operand, ...]]


class Loop(Protocol):
    """The params of a loop, as the compiled form reads them."""

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
            carry, result = p.results(e.inline(p.jaxpr, [*consts, *carry, *rows]))
            ys = [write_row(e, y, row, i) for y, row in zip(ys, result, strict=True)]
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
    """The start of the window of row `i`."""
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
