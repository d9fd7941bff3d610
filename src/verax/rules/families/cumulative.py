"""Floor 1: the family of running reductions, and the scan that differentiates them.

One idea: a running reduction folds each element into the one before it. Compiled, that
is one loop over the dimension, which on CPU beats every other form (a window per
element costs 3 to 15 times as much, log-many steps cost more to compile). The fold so
far goes along in double precision, which costs next to nothing beside the memory. On a
CPU eight rows go side by side, or eight parts of one; elsewhere, where each step is a
call, long dimensions are folded in two levels, so that there are fewer of them::

    cumsum_p = running("cumsum", np.add, stablehlo("add"), zero, ...)
"""

from collections.abc import Callable, Sequence
from math import prod
from random import Random
from typing import Final

from attrs import evolve, frozen

from verax.ir.avals import Shape, ShapedArray
from verax.ir.dtypes import (
    DType,
    bfloat16,
    float16,
    float32,
    float64,
    int32,
    int64,
    is_float,
    is_integer,
    uint32,
    uint64,
)
from verax.ir.jaxpr import Params
from verax.ir.records import ReprMixin
from verax.rules.families.linear import one_batched
from verax.rules.families.reducer import Combine, Scalar, doubled, wide
from verax.rules.rows.emitter import (
    Emitter,
    Operand,
    compared,
    converted,
    i64s,
    transposed,
)
from verax.rules.rows.kernels import Kernel
from verax.rules.rows.row import (
    REALS,
    Domain,
    JvpRule,
    NDArray,
    Row,
    Sample,
    Traits,
    TransposeRule,
    Work,
    each_operand,
)
from verax.rules.rows.type_shardings import same_places
from verax.rules.values.array import Array
from verax.rules.values.constants import Kind
from verax.rules.values.sizes import beside, draw_shape, surely_less

LONGEST: Final = 4096
"""A longer dimension is folded in parts."""
SEVERAL: Final = 1 << 10
"""So many elements are folded in blocks where the fold has no more digits than they."""
LEAST: Final = 1 << 10
"""Elements from which rows side by side gain more than their loops cost."""
FOLDED: Final = (bfloat16, float16, float32, float64, int32, int64, uint32, uint64)
"""The dtypes that XLA's loops for a CPU compute without a detour."""
LANES: Final = 8
"""So many folds side by side hide that each step waits for the one before."""


@frozen(eq=False, repr=False)
class ScanParams(Params):
    """Along which dimension, and whether from its end."""

    axis: int
    reverse: bool = False


type Operands = Sequence[Operand]
"""Arrays of one type, whose rows are folded together; the last is the result's."""


@frozen(repr=False)
class Step(ReprMixin):
    """The fold of one row into the next, in StableHLO, and its start.

    Attributes:
        combine: the fold of two folds, which need not be of one operand.
        identity: what changes no fold, for each operand.
        exact: it does not round.
        light: it is cheap enough to be computed twice, to fold in parts.
        in_blocks: folds in double precision are rounded less often in blocks.
    """

    combine: Callable[[Emitter, Operands, Operands], Operands]
    identity: Callable[[DType], Sequence[Scalar]]
    exact: bool = False
    light: bool = True
    in_blocks: bool = True

    def working(self, dtype: DType) -> DType:
        """The dtype of the fold so far."""
        return dtype if self.exact else doubled(dtype)


def running(
    name: str,
    evaluate: Callable[[NDArray], NDArray],
    combine: Combine,
    identity: Callable[[DType], Scalar],
    *,
    accepts: Kind,
    jvp: JvpRule[ScanParams],
    transpose: TransposeRule[ScanParams] | None = None,
    domain: Domain = REALS,
    exact: bool = False,
    light: bool = True,
) -> Row[ScanParams]:
    """A row that folds each element into the fold of those before it.

    `evaluate(x)` is NumPy's running fold along dimension 0; `combine` lowers one step
    on rows, and `identity(dtype)` is its neutral element. A step rounds unless `exact`,
    and takes long unless `light`.
    """
    step = Step(
        lambda e, xs, ys: (combine(e, *xs, *ys),),
        lambda dtype: (identity(dtype),),
        exact,
        light,
    )
    row: Row[ScanParams] = Row(
        name,
        ScanParams,
        typing=lambda p, avals: scan_typing(name, accepts, p, avals),
        evaluate=lambda engine, p, xs: (along(evaluate, wide(xs[0]), p),),
        jvp=jvp,
        transpose=transpose,
        batch=one_batched(lambda p, size, x, axis: batch_scan(row, p, x, axis)),
        lower=lambda e, p, xs, outs: (lower_scan(e, p, xs, step),),
        kernel=loops_of(step, FOLDED, LEAST),
        draw=lambda random: draw_scan(random, accepts),
        domains=(domain,),
        traits=Traits(Work.STORED, each_operand, quick_in_numpy=True),
        sharding=same_places(
            lambda p, x: [i for i in range(x.ndim) if i != p.axis],
            "Input should be unsharded over the axis being reduced, which is dimension",
        ),
    )
    return row


def loops_of(step: Step, dtypes: Sequence[DType], least: int) -> Kernel:
    """The kernel of a row whose fold has these steps."""
    return Kernel(
        dict.fromkeys(dtypes, lambda e, p, xs, outs: (lower_on_cpu(e, p, xs, step),)),
        suits=lambda p, avals: avals[0].shape[p.axis] > 1,
        least=least,
        lowers=True,
    )


def scan_typing(
    name: str, accepts: Kind, p: ScanParams, avals: Sequence[ShapedArray]
) -> Sequence[ShapedArray]:
    """The operand's own type."""
    (x,) = avals
    accepts.check(name, x.dtype)
    if not 0 <= p.axis < x.ndim:
        raise ValueError(f"{name}: {x} has no dimension {p.axis}")
    return (x,)


def along(evaluate: Callable[[NDArray], NDArray], x: NDArray, p: ScanParams) -> NDArray:
    """`evaluate` along the dimension and in the direction of the params."""
    rows = x.swapaxes(p.axis, 0)
    if rows.shape[0] == 0:
        return x
    values = evaluate(rows[::-1])[::-1] if p.reverse else evaluate(rows)
    return values.swapaxes(0, p.axis)


def batch_scan(
    row: Row[ScanParams], p: ScanParams, x: Array, axis: int
) -> tuple[Array, int]:
    (place,) = beside((p.axis,), axis)
    return row.call(evolve(p, axis=place), x), axis


def draw_scan(random: Random, accepts: Kind) -> Sample[ScanParams]:
    """Short dimensions, and now and then one that is folded in two levels.

    Of such, tests take no derivatives: long products are too large or too small.
    """
    shape = draw_shape(random, 1, 3, (1, 2, 3, 5, 8))
    params = ScanParams(random.randrange(len(shape)), random.random() < 0.4)
    dtypes = accepts.samples()
    if random.random() < 0.97:
        return Sample(params, (ShapedArray(shape, random.choice(dtypes)),))
    exact = [d for d in dtypes if is_integer(d)]
    x = ShapedArray((LONGEST + random.randint(1, 200),), random.choice(exact or dtypes))
    return Sample(evolve(params, axis=0), (x,), (Domain(-2, 2, smooth=False),))


def lower_scan(e: Emitter, p: ScanParams, xs: Operands, step: Step) -> Operand:
    """A loop over the rows of the dimension, which goes to the front for it.

    Small floats are folded as float32: two levels would round them twice.
    """
    shape, axis, dtype = xs[-1].aval.shape, p.axis, xs[-1].aval.dtype
    if surely_less(shape[axis], 2):
        return xs[-1]
    small = is_float(dtype) and dtype.itemsize < 4
    order = (axis, *(i for i in range(len(shape)) if i != axis))
    rows = [transposed(e, converted(e, x, float32) if small else x, order) for x in xs]
    if len(rows) == 1 and surely_less(LONGEST, shape[axis]):
        result = two_levels(e, rows[0], step, p.reverse)
    else:
        result = loop(e, rows, step, p.reverse)
    y = transposed(e, result, tuple(order.index(i) for i in range(len(shape))))
    return converted(e, y, dtype)


def lower_on_cpu(e: Emitter, p: ScanParams, xs: Operands, step: Step) -> Operand:
    """Loops over the dimension where it is, over several rows at a time.

    XLA makes machine code of such loops, without a call in each step.
    """
    shape, n = xs[0].aval.shape, xs[0].aval.shape[p.axis]
    before, after = prod(shape[: p.axis]), prod(shape[p.axis + 1 :])
    whole = (before, n) if after == 1 else (before, n, after)
    runs = [reshaped(e, x, whole) for x in xs]
    few = max(before, after) < LANES
    fold = in_parts if few and n >= LONGEST and step.light else over_runs
    return reshaped(e, fold(e, runs, step, p.reverse), shape)


def in_parts(e: Emitter, xs: Operands, step: Step, reverse: bool) -> Operand:
    """Each run in parts, with the fold of the parts before it to begin with."""
    count, n, *rest = xs[0].aval.shape
    size = -(-n // LANES)
    missing = size * LANES - n
    low, edge = (missing, -1) if reverse else (0, 1)
    identity = step.identity(xs[0].aval.dtype)
    rows = []
    for i, (x, start) in enumerate(zip(xs, identity, strict=True), 1):
        if i < len(xs):  # what changes the fold so far has none to change at first
            others = sliced(e, x, 0, n - 1, 1) if reverse else sliced(e, x, 1, n, 1)
            x = extended(e, others, start, 1, not reverse)
        full = extended(e, x, start, missing, reverse)
        rows.append(reshaped(e, full, (count * LANES, size, *rest)))
    totals, _ = fold_rows(e, rows, step, reverse, Rows(count * LANES))
    ends = [reshaped(e, x, (count, LANES, *rest)) for x in totals]
    before = over_runs(e, ends, step, reverse)
    before = padded(e, before, identity[-1], edge, -edge, 1)
    first = before.aval.with_shape((count * LANES, 1, *rest))
    starts = [e.constant(start, first) for start in identity[:-1]]
    starts.append(reshaped(e, before, first.shape))
    y = over_runs(e, rows, step, reverse, starts)
    whole = reshaped(e, y, (count, size * LANES, *rest))
    return sliced(e, whole, low, low + n, 1)


def extended(
    e: Emitter, x: Operand, value: Scalar, count: int, in_front: bool
) -> Operand:
    """`x` with more elements of `value` along dimension 1: a pad goes one by one."""
    if count == 0:
        return x
    first, n, *rest = x.aval.shape
    more = e.constant(value, x.aval.with_shape((first, count, *rest)))
    parts = (more, x) if in_front else (x, more)
    out = x.aval.with_shape((first, n + count, *rest))
    return e.op("stablehlo.concatenate", parts, (out,), dimension="1 : i64")[0]


def over_runs(
    e: Emitter, xs: Operands, step: Step, reverse: bool, starts: Operands = ()
) -> Operand:
    """Folds along dimension 1, each from its start if there are such.

    Several rows go side by side: all of them in place, or some after the others into
    another array, for XLA copies what a loop within a loop both reads and writes. The
    last may go with some before them again.
    """
    aval = xs[-1].aval
    count = aval.shape[0]
    lanes = min(count, -(-LANES // prod(aval.shape[2:])))
    if lanes == count:
        rows = Rows(lanes, starts=starts, into=xs[-1])
        return fold_rows(e, xs, step, reverse, rows)[1][0]
    counter = ShapedArray((), int32)
    types = (counter, aval)

    def more(state: Operands) -> Operands:
        return (compared(e, state[0], "LT", e.constant(count, counter)),)

    def fold(state: Operands) -> Operands:
        at, y = state
        rows = Rows(lanes, at, starts, y)
        (after,) = e.op("stablehlo.add", (at, e.constant(lanes, counter)), (counter,))
        return after, *fold_rows(e, xs, step, reverse, rows)[1]

    regions, zero = ((types, more), (types, fold)), e.constant(0, counter)
    return e.op("stablehlo.while", (zero, e.constant(0, aval)), types, regions)[1]


@frozen(repr=False)
class Rows(ReprMixin):
    """Which rows are folded side by side, from what, and into what.

    Attributes:
        count: so many rows.
        at: the first of them; None for row 0.
        starts: what each row's fold begins with, if not with its own first element.
        into: the array that is written. Where it is the one that is read, the loop
            writes it in place.
    """

    count: int
    at: Operand | None = None
    starts: Operands = ()
    into: Operand | None = None


def fold_rows(
    e: Emitter, xs: Operands, step: Step, reverse: bool, rows: Rows
) -> tuple[Operands, Operands]:
    """The folds of whole rows, and the array with those up to each element if any."""
    _, n, *rest = xs[0].aval.shape
    row = xs[0].aval.with_shape((rows.count, 1, *rest))
    total = row.with_dtype(step.working(row.dtype))
    counter, sizes = ShapedArray((), int32), i64s(row.shape)
    zero = e.constant(0, counter)
    at, tail = zero if rows.at is None else rows.at, [zero for _ in rest]

    def read(sources: Operands, i: Operand) -> Operands:
        place, here = (at, i, *tail), list[Operand]()
        for x in sources:
            out = x.aval.with_shape(row.shape)
            (part,) = e.op(
                "stablehlo.dynamic_slice", (x, *place), (out,), slice_sizes=sizes
            )
            here.append(converted(e, part, total.dtype))
        return here

    def written(ys: Operands, fold: Operands, i: Operand) -> Operands:
        new = converted(e, fold[-1], row.dtype)
        update = "stablehlo.dynamic_update_slice"
        return [e.op(update, (y, new, at, i, *tail), (y.aval,))[0] for y in ys]

    def more(state: Operands) -> Operands:
        return (compared(e, state[0], "NE", e.constant(end, counter)),)

    def advance(state: Operands) -> Operands:
        i, folds, ys = state[0], state[1 : depth + 1], state[depth + 1 :]
        here = read([*xs[:-1], ys[0]] if rows.into is xs[-1] else xs, i)
        if block:
            folds = fold_in_blocks(e, step, block, i, folds, here)
        else:
            folds = step.combine(e, folds, here)
        (after,) = e.op("stablehlo.add", (i, e.constant(forward, counter)), (counter,))
        return after, *folds, *written(ys, folds[: len(xs)], i)

    first, end, forward = (n - 1, -1, -1) if reverse else (0, n, 1)
    block = block_of(step, row.dtype, n)
    place = e.constant(first, counter)
    fold: Operands
    fold = inner = read(xs, place)
    before: Operands = read(rows.starts, zero)
    if before:
        fold = step.combine(e, before, inner)
    elif block:
        before = [e.constant(start, total) for start in step.identity(total.dtype)]
    carried = [*fold, *before, *inner] if block else [*fold]
    depth = len(carried)
    ys = written([] if rows.into is None else [rows.into], fold, place)
    start = (e.constant(first + forward, counter), *carried, *ys)
    types = tuple([one.aval for one in start])
    _, *others = e.op(
        "stablehlo.while", start, types, ((types, more), (types, advance))
    )
    return others[: len(xs)], others[depth:]


def block_of(step: Step, dtype: DType, n: int) -> int:
    """How many elements are folded by themselves; 0 where a fold has digits to spare.

    So numbers in double precision are rounded the square root of `n` times.
    """
    spare = step.exact or step.working(dtype) != dtype or not is_float(dtype)
    few = spare or not step.in_blocks or not surely_less(SEVERAL, n)
    return 0 if few else 1 << n.bit_length() // 2


def fold_in_blocks(
    e: Emitter, step: Step, block: int, i: Operand, folds: Operands, here: Operands
) -> Operands:
    """The fold so far, that before the block, and that of the block, with one more."""
    size = len(here)
    fold, before, inner = folds[:size], folds[size : 2 * size], folds[2 * size :]
    (rest,) = e.op("stablehlo.and", (i, e.constant(block - 1, i.aval)), (i.aval,))
    begins = compared(e, rest, "EQ", e.constant(0, i.aval))

    def chosen(xs: Operands, ys: Operands) -> Operands:
        return [
            e.op("stablehlo.select", (begins, x, y), (x.aval,))[0]
            for x, y in zip(xs, ys, strict=True)
        ]

    before = chosen(fold, before)
    inner = chosen(here, step.combine(e, inner, here))
    return *step.combine(e, before, inner), *before, *inner


def loop(e: Emitter, xs: Operands, step: Step, reverse: bool) -> Operand:
    """Fold each row into those before it, in place."""
    whole = [reshaped(e, x, (1, *x.aval.shape)) for x in xs]
    (_, (y,)) = fold_rows(e, whole, step, reverse, Rows(1, into=whole[-1]))
    return reshaped(e, y, xs[-1].aval.shape)


def two_levels(e: Emitter, x: Operand, step: Step, reverse: bool) -> Operand:
    """Blocks side by side, then what comes before each block.

    Their size is no power of two: transposing such takes twice as long.
    """
    n, rest = x.aval.shape[0], x.aval.shape[1:]
    (start,) = step.identity(x.aval.dtype)
    size = (1 << ((n - 1).bit_length() + 1) // 2) // 4 + 16
    count = -(-n // size)
    missing = count * size - n
    tail = tuple(range(2, 2 + len(rest)))
    full = padded(e, x, start, 0, missing)
    blocks = reshaped(e, full, (count, size, *rest))
    inside = loop(e, [transposed(e, blocks, (1, 0, *tail))], step, reverse)
    edge = 0 if reverse else size - 1
    totals = reshaped(e, sliced(e, inside, edge, edge + 1), (count, *rest))
    totals = loop(e, [totals], step, reverse)
    shifted = (
        padded(e, totals, start, -1, 1) if reverse else padded(e, totals, start, 1, -1)
    )
    spread = e.broadcast(shifted, inside.aval.shape, (1, *tail))
    (whole,) = step.combine(e, (spread,), (inside,))
    joined = transposed(e, whole, (1, 0, *tail))
    return sliced(e, reshaped(e, joined, (count * size, *rest)), 0, n)


def padded(
    e: Emitter, x: Operand, value: Scalar, low: int, high: int, axis: int = 0
) -> Operand:
    """`x` with rows of `value` before and after; negative numbers cut rows off."""
    if low == high == 0:
        return x
    shape = list(x.aval.shape)
    shape[axis] += low + high
    none = [0] * x.aval.ndim
    return e.op(
        "stablehlo.pad",
        (x, e.constant(value, x.aval.with_shape(()))),
        (x.aval.with_shape(shape),),
        edge_padding_low=i64s([*none[:axis], low, *none[axis + 1 :]]),
        edge_padding_high=i64s([*none[:axis], high, *none[axis + 1 :]]),
        interior_padding=i64s(none),
    )[0]


def reshaped(e: Emitter, x: Operand, shape: Shape) -> Operand:
    return e.op("stablehlo.reshape", (x,), (x.aval.with_shape(shape),))[0]


def sliced(e: Emitter, x: Operand, start: int, limit: int, axis: int = 0) -> Operand:
    """The rows from `start` up to `limit`."""
    shape = list(x.aval.shape)
    if (start, limit) == (0, shape[axis]):
        return x
    starts, limits = [0] * x.aval.ndim, list(shape)
    starts[axis], limits[axis], shape[axis] = start, limit, limit - start
    return e.op(
        "stablehlo.slice",
        (x,),
        (x.aval.with_shape(shape),),
        start_indices=i64s(starts),
        limit_indices=i64s(limits),
        strides=i64s([1] * x.aval.ndim),
    )[0]
