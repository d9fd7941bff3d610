"""Floor 1: the family of running reductions, and the scan that differentiates them.

One idea: a running reduction folds each element into the one before it. Compiled, that
is one loop over rows in place, which on CPU beats every other form (a window per
element costs 3 to 15 times as much, log-many steps cost more to compile). The fold so
far goes along in double precision, which costs next to nothing beside the memory; long
dimensions are folded in two levels, so that there are fewer and longer steps::

    cumsum_p = running("cumsum", np.add, stablehlo("add"), zero, ...)
"""

from collections.abc import Callable, Sequence
from random import Random

from attrs import evolve, frozen

from verax.ir.avals import Shape, ShapedArray
from verax.ir.dtypes import DType, float32, int32, is_float, is_integer
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

LONGEST = 4096


@frozen(eq=False, repr=False)
class ScanParams(Params):
    """Along which dimension, and whether from its end."""

    axis: int
    reverse: bool = False


@frozen(repr=False)
class Step(ReprMixin):
    """The fold of one row into the next, in StableHLO, and its start."""

    combine: Combine
    identity: Callable[[DType], Scalar]
    exact: bool

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
) -> Row[ScanParams]:
    """A row that folds each element into the fold of those before it.

    `evaluate(x)` is NumPy's running fold along dimension 0; `combine` lowers one step
    on rows, and `identity(dtype)` is its neutral element. A step rounds unless `exact`.
    """
    step = Step(combine, identity, exact)
    row: Row[ScanParams] = Row(
        name,
        ScanParams,
        typing=lambda p, avals: scan_typing(name, accepts, p, avals),
        evaluate=lambda engine, p, xs: (along(evaluate, wide(xs[0]), p),),
        jvp=jvp,
        transpose=transpose,
        batch=one_batched(lambda p, size, x, axis: batch_scan(row, p, x, axis)),
        lower=lambda e, p, xs, outs: (lower_scan(e, p, xs[0], step),),
        draw=lambda random: draw_scan(random, accepts),
        domains=(domain,),
        traits=Traits(Work.STORED, each_operand, quick_in_numpy=True),
        sharding=same_places(
            lambda p, x: [i for i in range(x.ndim) if i != p.axis],
            "Input should be unsharded over the axis being reduced, which is dimension",
        ),
    )
    return row


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


def lower_scan(e: Emitter, p: ScanParams, x: Operand, step: Step) -> Operand:
    """A loop over the rows of the dimension, which goes to the front for it.

    Small floats are folded as float32: two levels would round them twice.
    """
    shape, axis, dtype = x.aval.shape, p.axis, x.aval.dtype
    if surely_less(shape[axis], 2):
        return x
    small = is_float(dtype) and dtype.itemsize < 4
    x = converted(e, x, float32) if small else x
    order = (axis, *(i for i in range(len(shape)) if i != axis))
    rows = transposed(e, x, order)
    fold = two_levels if surely_less(LONGEST, shape[axis]) else loop
    result = fold(e, rows, step, p.reverse)
    y = transposed(e, result, tuple(order.index(i) for i in range(len(shape))))
    return converted(e, y, dtype)


def loop(e: Emitter, x: Operand, step: Step, reverse: bool) -> Operand:
    """Fold each row into those before it, in place; the fold so far is carried."""
    n, rest = x.aval.shape[0], x.aval.shape[1:]
    counter = ShapedArray((), int32)
    row = x.aval.with_shape((1, *rest))
    total = row.with_dtype(step.working(row.dtype))
    zeros = [e.constant(0, counter) for _ in rest]
    first, end = (n - 2, -1) if reverse else (1, n)

    def more(xs: Sequence[Operand]) -> Sequence[Operand]:
        return (compared(e, xs[0], "NE", e.constant(end, counter)),)

    def fold(xs: Sequence[Operand]) -> Sequence[Operand]:
        i, before, y = xs
        sizes = i64s((1, *rest))
        (here,) = e.op(
            "stablehlo.dynamic_slice", (y, i, *zeros), (row,), slice_sizes=sizes
        )
        folded = step.combine(e, before, converted(e, here, total.dtype))
        new = converted(e, folded, row.dtype)
        (y,) = e.op("stablehlo.dynamic_update_slice", (y, new, i, *zeros), (x.aval,))
        forward = e.constant(-1 if reverse else 1, counter)
        (i,) = e.op("stablehlo.add", (i, forward), (counter,))
        return i, folded, y

    start = sliced(e, x, n - 1, n) if reverse else sliced(e, x, 0, 1)
    types = (counter, total, x.aval)
    return e.op(
        "stablehlo.while",
        (e.constant(first, counter), converted(e, start, total.dtype), x),
        types,
        ((types, more), (types, fold)),
    )[2]


def two_levels(e: Emitter, x: Operand, step: Step, reverse: bool) -> Operand:
    """Blocks side by side, then what comes before each block.

    Their size is no power of two: transposing such takes twice as long.
    """
    n, rest = x.aval.shape[0], x.aval.shape[1:]
    size = (1 << ((n - 1).bit_length() + 1) // 2) // 4 + 16
    count = -(-n // size)
    missing = count * size - n
    tail, start = tuple(range(2, 2 + len(rest))), step.identity(x.aval.dtype)
    full = padded(e, x, start, 0, missing)
    blocks = reshaped(e, full, (count, size, *rest))
    inside = loop(e, transposed(e, blocks, (1, 0, *tail)), step, reverse)
    edge = 0 if reverse else size - 1
    totals = reshaped(e, sliced(e, inside, edge, edge + 1), (count, *rest))
    totals = loop(e, totals, step, reverse)
    shifted = (
        padded(e, totals, start, -1, 1) if reverse else padded(e, totals, start, 1, -1)
    )
    spread = e.broadcast(shifted, inside.aval.shape, (1, *tail))
    joined = transposed(e, step.combine(e, spread, inside), (1, 0, *tail))
    return sliced(e, reshaped(e, joined, (count * size, *rest)), 0, n)


def padded(e: Emitter, x: Operand, value: Scalar, low: int, high: int) -> Operand:
    """`x` with rows of `value` before and after; negative numbers cut rows off."""
    if low == high == 0:
        return x
    none = (0,) * (x.aval.ndim - 1)
    return e.op(
        "stablehlo.pad",
        (x, e.constant(value, x.aval.with_shape(()))),
        (x.aval.with_shape((x.aval.shape[0] + low + high, *x.aval.shape[1:])),),
        edge_padding_low=i64s((low, *none)),
        edge_padding_high=i64s((high, *none)),
        interior_padding=i64s((0, *none)),
    )[0]


def reshaped(e: Emitter, x: Operand, shape: Shape) -> Operand:
    return e.op("stablehlo.reshape", (x,), (x.aval.with_shape(shape),))[0]


def sliced(e: Emitter, x: Operand, start: int, limit: int) -> Operand:
    """The rows from `start` up to `limit`."""
    if (start, limit) == (0, x.aval.shape[0]):
        return x
    rest = x.aval.shape[1:]
    return e.op(
        "stablehlo.slice",
        (x,),
        (x.aval.with_shape((limit - start, *rest)),),
        start_indices=i64s((start, *(0 for _ in rest))),
        limit_indices=i64s((limit, *rest)),
        strides=i64s((1,) * x.aval.ndim),
    )[0]
