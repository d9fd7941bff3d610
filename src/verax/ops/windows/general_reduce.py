"""Floor 2: `reduce` by any computation, over several arrays at once.

One idea: the computation is a jaxpr of two scalars for each array. It is associative,
so neighbours can be folded pairwise, in log n steps: that gives the value in NumPy, and
the derivative as that of a tree of calls::

    y, z = reduce[jaxpr={ lambda ; a b c d. let ... } dimensions=(0,)] x w x0 w0
"""

from collections.abc import Callable, Sequence
from math import prod
from random import Random

import numpy as np
from attrs import evolve, frozen

from verax.ir.avals import Shape, ShapedArray
from verax.ir.dtypes import float32, float64, int32, is_inexact
from verax.ir.jaxpr import Jaxpr, Params
from verax.ir.meshes import Splits
from verax.ir.records import ReprMixin
from verax.ops.calls.call import call, inlined
from verax.ops.calls.callbacks import refuse_callbacks
from verax.ops.elementwise.arith import add, mul
from verax.ops.elementwise.bits import bitwise_or
from verax.ops.elementwise.compare import ge, ne
from verax.ops.elementwise.select import select
from verax.ops.structure.create import ones
from verax.ops.structure.joining import concatenate
from verax.ops.structure.shape import (
    at_front,
    batched_alike,
    broadcast_in_dim,
    reshape,
    transpose,
)
from verax.ops.structure.slicing import index_in_dim, slice_in_dim
from verax.rules.rows.builder import program
from verax.rules.rows.emitter import Emitter, Operand, i64s
from verax.rules.rows.infer import dense, filled, nonzeros
from verax.rules.rows.row import (
    Axis,
    Domain,
    Engine,
    NDArray,
    Row,
    Rows,
    Sample,
    Tangent,
    Traits,
    Zero,
    each_operand,
)
from verax.rules.rows.type_shardings import connected
from verax.rules.values.array import Array
from verax.rules.values.sizes import beside, draw_shape, kept, without

type Arrays = Sequence[Array]
type Apply = Callable[[Arrays, Arrays], Arrays]


@frozen(eq=False, repr=False)
class FoldParams(Params):
    """The fold of two elements, as a jaxpr of scalars; the dimensions that go."""

    jaxpr: Jaxpr
    dimensions: Shape


def check_fold(name: str, jaxpr: Jaxpr, avals: Sequence[ShapedArray]) -> int:
    """The number of arrays folded; raise unless all types fit the computation."""
    count = len(avals) // 2
    if len(avals) != 2 * count or not count:
        raise TypeError(
            f"{name} takes at least one array, and one initial value for each"
        )
    arrays, inits = avals[:count], avals[count:]
    if len({x.shape for x in arrays}) != 1:
        raise TypeError(
            f"{name} takes arrays of the same shape, not {', '.join(map(str, arrays))}"
        )
    for x, init in zip(arrays, inits, strict=True):
        if init.shape or init.dtype != x.dtype:
            raise TypeError(
                f"{name}: the initial value must be a scalar of dtype {x.dtype}, that "
                f"of its array {x}, not {init}"
            )
    due = tuple(x.with_shape(()).strong() for x in arrays)
    made = tuple(x.strong() for x in jaxpr.out_avals)
    if jaxpr.in_avals != (*due, *due) or made != due:
        raise TypeError(
            f"{name}: the computation must take two scalars of each of the types "
            f"{', '.join(map(str, due))} and return one of each, not from "
            f"{jaxpr.in_avals} to {jaxpr.out_avals}"
        )
    refuse_callbacks(name, jaxpr)
    return count


def fold_typing(p: FoldParams, avals: Sequence[ShapedArray]) -> Sequence[ShapedArray]:
    count = check_fold("reduce", p.jaxpr, avals)
    rank = avals[0].ndim
    inside = sorted(set(p.dimensions) & set(range(rank)))
    if not inside or list(p.dimensions) != inside:
        raise ValueError(
            f"reduce takes at least one distinct dimension of {avals[0]}, in order, "
            f"not {p.dimensions}"
        )
    return [
        x.with_shape(without(x.shape, p.dimensions)).strong() for x in avals[:count]
    ]


def evaluate_on(
    engine: Engine, jaxpr: Jaxpr, size: int, args: Sequence[NDArray]
) -> list[NDArray]:
    """A jaxpr of scalars on vectors of `size` elements, in NumPy."""
    batched, axes = engine.batch(jaxpr, size, (0,) * len(args))
    outs = engine.evaluate(batched, args)
    return [
        np.broadcast_to(y, (size,)) if axis is None else y
        for y, axis in zip(outs, axes, strict=True)
    ]


def fold_rows(
    engine: Engine, jaxpr: Jaxpr, xs: Sequence[NDArray], inits: Sequence[NDArray]
) -> list[NDArray]:
    """Arrays (n, m) folded over n, neighbours first, in NumPy."""
    n, m = xs[0].shape
    starts = [np.broadcast_to(init, (m,)) for init in inits]
    if n == 0:
        return starts
    rows = list(xs)
    while n > 1:
        half = n // 2
        size = half * m
        pairs = [x[i : 2 * half : 2].reshape(size) for i in (0, 1) for x in rows]
        made = evaluate_on(engine, jaxpr, size, pairs)
        rows = [
            np.concatenate((y.reshape(half, m), x[2 * half :]))
            for y, x in zip(made, rows, strict=True)
        ]
        n -= half
    return evaluate_on(engine, jaxpr, m, [*starts, *(x.reshape(m) for x in rows)])


def evaluate_fold(
    engine: Engine, p: FoldParams, args: Sequence[NDArray]
) -> Sequence[NDArray]:
    count = len(args) // 2
    shape = args[0].shape
    stay = kept(len(shape), p.dimensions)
    sizes = [shape[i] for i in stay]
    n = prod(shape[i] for i in p.dimensions)
    rows = [
        x.transpose((*p.dimensions, *stay)).reshape((n, prod(sizes)))
        for x in args[:count]
    ]
    return [y.reshape(sizes) for y in fold_rows(engine, p.jaxpr, rows, args[count:])]


def applied(engine: Engine, jaxpr: Jaxpr, size: int, args: Arrays) -> list[Array]:
    """A jaxpr of scalars on vectors of `size` elements, as a call."""
    batched, axes = engine.batch(jaxpr, size, (0,) * len(args))
    strong = [engine.core.convert(x, x.dtype) if x.aval.weak_type else x for x in args]
    outs = call("computation", batched, *strong)
    return [
        broadcast_in_dim(y, (size,), ()) if axis is None else y
        for y, axis in zip(outs, axes, strict=True)
    ]


def fold_tree(engine: Engine, jaxpr: Jaxpr, xs: Arrays, inits: Arrays) -> list[Array]:
    """Arrays (n, m) folded over n, then after `inits` of m elements, as equations."""
    n, m = xs[0].shape
    if n == 0:
        return list(inits)
    rows = list(xs)
    while n > 1:
        half = n // 2
        even = [slice_in_dim(x, 0, 2 * half) for x in rows]
        pairs = [
            reshape(index_in_dim(reshape(x, (half, 2, m)), i, 1, False), (half * m,))
            for i in (0, 1)
            for x in even
        ]
        made = [reshape(y, (half, m)) for y in applied(engine, jaxpr, half * m, pairs)]
        if n % 2:
            rest = [slice_in_dim(x, n - 1, n) for x in rows]
            made = [concatenate(both, 0) for both in zip(made, rest, strict=True)]
        rows = made
        n -= half
    last = [reshape(x, (m,)) for x in rows]
    return applied(engine, jaxpr, m, [*inits, *last])


def dual(engine: Engine, jaxpr: Jaxpr) -> tuple[Jaxpr, tuple[int, ...]]:
    """The computation on values and, for the inexact ones, tangents beside them.

    Gives a jaxpr of two groups (values, tangents), and which values have a tangent.
    """
    count = len(jaxpr.outvars)
    flags = [is_inexact(a.dtype) for a in jaxpr.out_avals]
    active = tuple(i for i, flag in enumerate(flags) if flag)
    pushed, mask = engine.jvp(jaxpr, (*flags, *flags))
    scalars = [a.with_shape(()).strong() for a in jaxpr.out_avals]
    group = [*scalars, *(scalars[i] for i in active)]

    def body(*xs: Array) -> Sequence[Array]:
        first, second = xs[: len(group)], xs[len(group) :]
        values = [*first[:count], *second[:count]]
        outs = inlined(pushed, [*values, *first[count:], *second[count:]])
        out = filled(mask, outs[count:], scalars)
        return [*outs[:count], *[dense(engine, out[i]) for i in active]]

    return program((*group, *group), body), active


def tangents_of_fold(
    engine: Engine, jaxpr: Jaxpr, xs: Arrays, inits: Arrays, ts: Arrays, t0s: Arrays
) -> dict[int, Array]:
    """The tangents of folded arrays (n, m), by number of the array.

    `inits` are scalars; `ts` and `t0s` are the tangents of the inexact ones.
    """
    both, active = dual(engine, jaxpr)
    m = xs[0].shape[1]
    starts = [broadcast_in_dim(x, (m,), ()) for x in (*inits, *t0s)]
    outs = fold_tree(engine, both, [*xs, *ts], starts)
    return dict(zip(active, outs[len(xs) :], strict=True))


def inexact(engine: Engine, ts: Sequence[Tangent]) -> list[Array]:
    """The tangents of inexact values, zeros written out."""
    return [dense(engine, t) for t in ts if is_inexact(t.aval.dtype)]


def jvp_by_rows(
    engine: Engine,
    jaxpr: Jaxpr,
    ys: Arrays,
    primals: Arrays,
    tangents: Sequence[Tangent],
    rows: Callable[[Array, Array], Array],
) -> tuple[Arrays, Sequence[Tangent]]:
    """The jvp of folds with the results `ys`, side by side.

    `rows(operand, initial value)` gives the array (n, m) of what m folds take.
    """
    count = len(ys)
    if not any(nonzeros(tangents)):
        return ys, [Zero(y.aval.tangent()) for y in ys]
    inits = primals[count:]
    ts, t0s = inexact(engine, tangents[:count]), inexact(engine, tangents[count:])
    xs = [rows(*both) for both in zip(primals[:count], inits, strict=True)]
    moved = [rows(*both) for both in zip(ts, t0s, strict=True)]
    out = tangents_of_fold(engine, jaxpr, xs, inits, moved, t0s)
    return ys, [
        reshape(out[i], y.shape) if i in out else Zero(y.aval.tangent())
        for i, y in enumerate(ys)
    ]


def jvp_fold(
    engine: Engine, p: FoldParams, primals: Arrays, tangents: Sequence[Tangent]
) -> tuple[Arrays, Sequence[Tangent]]:
    ys = reduce_p.bind(p, *primals)

    def rows(x: Array, init: Array) -> Array:
        return in_rows(x, p.dimensions)

    return jvp_by_rows(engine, p.jaxpr, ys, primals, tangents, rows)


def in_rows(x: Array, dimensions: Shape) -> Array:
    """An array (n, m): n runs over `dimensions`, m over the others."""
    stay = kept(x.ndim, dimensions)
    n, m = (prod(x.shape[i] for i in places) for places in (dimensions, stay))
    return reshape(transpose(x, (*dimensions, *stay)), (n, m))


def batch_fold(
    engine: Engine, p: FoldParams, size: int, args: Arrays, axes: Sequence[Axis]
) -> tuple[Arrays, Sequence[Axis]]:
    """The batch dimension stays; where initial values are batched, a tree folds."""
    count = len(args) // 2
    if all(axis is None for axis in axes[count:]):
        moved, place = batched_alike(args[:count], axes[:count], size)
        gone = beside(p.dimensions, place)
        out = place - sum(i < place for i in gone)
        result = reduce_p.bind(evolve(p, dimensions=gone), *moved, *args[count:])
        return result, (out,) * count
    fronts = [at_front(x, axis, size) for x, axis in zip(args, axes, strict=True)]
    shape = without(fronts[0].shape[1:], p.dimensions)
    rows = [in_rows(x, beside(p.dimensions, 0)) for x in fronts[:count]]
    starts = [
        reshape(broadcast_in_dim(x, (size, prod(shape)), (0,)), (size * prod(shape),))
        for x in fronts[count:]
    ]
    outs = fold_tree(engine, p.jaxpr, rows, starts)
    # Where nothing is folded, the initial values come out, which may be weak.
    strong = [engine.core.convert(y, y.aval.dtype) for y in outs]
    return [reshape(y, (size, *shape)) for y in strong], (0,) * count


def lower_fold(
    e: Emitter, p: FoldParams, operands: Sequence[Operand], outs: Sequence[ShapedArray]
) -> Sequence[Operand]:
    """One `stablehlo.reduce` of several operands."""
    return e.op(
        "stablehlo.reduce",
        operands,
        outs,
        (fold_region(e, p.jaxpr),),
        dimensions=i64s(p.dimensions),
    )


def fold_region(
    e: Emitter, jaxpr: Jaxpr
) -> tuple[Sequence[ShapedArray], Callable[[Sequence[Operand]], Sequence[Operand]]]:
    """The computation as a region of an operation.

    Raises:
        NotImplementedError: it reads an array, which no region of a fold can.
    """
    if jaxpr.used_consts:
        array = jaxpr.used_consts[0].literal.aval
        raise NotImplementedError(
            f"the computation of a reduction reads an array of type {array} at a place "
            "that depends on its arguments; a compiled reduction cannot. Reduce with "
            "lax.scan or lax.associative_scan, or compute what is read beforehand"
        )
    return jaxpr.in_avals, lambda xs: e.inline(jaxpr, xs)


def computation(
    body: Callable[..., Sequence[Array]], avals: Sequence[ShapedArray]
) -> Jaxpr:
    """The jaxpr of `body` on two elements of each of the types, strong scalars."""
    return program((*avals, *avals), body)


def first_largest(x: Array, i: Array, y: Array, j: Array) -> Sequence[Array]:
    """The larger of two elements, the first of equal ones, and its place."""
    chosen = bitwise_or(ge(x, y), ne(x, x))
    return select(chosen, x, y), select(chosen, i, j)


AROUND = Domain(-4, 4)


@frozen(repr=False)
class Monoid(ReprMixin):
    """A computation for tests, the types of what it folds, and where values lie.

    Initial values are neutral: how often they take part is up to XLA. So is the order
    of factors, by which products may get too small on their way: factors are not tiny.
    """

    jaxpr: Jaxpr
    avals: tuple[ShapedArray, ...]
    neutral: tuple[float, ...]
    values: tuple[Domain, ...] = (AROUND, AROUND)

    def avals_of(self, shape: Shape) -> tuple[ShapedArray, ...]:
        """The types of arrays of that shape, and of initial values."""
        return (*(a.with_shape(shape) for a in self.avals), *self.avals)

    def domains(self) -> tuple[Domain, ...]:
        """The domains of arrays, and of initial values."""
        inits = [Domain(value, value) for value in self.neutral]
        return (*self.values[: len(inits)], *inits)


def draw_monoid(random: Random) -> Monoid:
    scalar = ShapedArray((), random.choice((float32, float64)))
    index = ShapedArray((), int32)
    kind = random.choice(("add", "mul", "largest", "affine", "beside"))
    if kind == "largest":
        avals = scalar, index
        return Monoid(computation(first_largest, avals), avals, (-100, 0))
    if kind == "beside":
        # A result may be weak, as Python numbers are, and need no operand.
        one = scalar.with_dtype(scalar.dtype, weak_type=True)
        jaxpr = computation(lambda x, a, y, b: (add(x, y), ones(one)), (scalar, scalar))
        return Monoid(jaxpr, (scalar, scalar), (0, 1), (AROUND, Domain(1, 1)))
    factors = (Domain(0.25, 4, special=(0.0, -1.0, -2.5)),) * 2
    if kind == "affine":
        # Affine maps under composition: associative, not commutative.
        jaxpr = computation(affine, (scalar, scalar))
        return Monoid(jaxpr, (scalar, scalar), (1, 0), factors)
    if kind == "mul":
        product = computation(lambda x, y: (mul(x, y),), (scalar,))
        return Monoid(product, (scalar,), (1,), factors)
    return Monoid(computation(lambda x, y: (add(x, y),), (scalar,)), (scalar,), (0,))


def affine(a: Array, b: Array, c: Array, d: Array) -> Sequence[Array]:
    """The map x -> c (a x + b) + d by its two numbers."""
    return mul(a, c), add(mul(b, c), d)


def draw_fold(random: Random) -> Sample[FoldParams]:
    monoid = draw_monoid(random)
    shape = draw_shape(random, 1, 3)
    sure = random.randrange(len(shape))
    dims = tuple(i for i in range(len(shape)) if i == sure or random.random() < 0.5)
    params = FoldParams(monoid.jaxpr, dims)
    return Sample(params, monoid.avals_of(shape), monoid.domains())


def fold_splits(
    p: FoldParams, avals: Sequence[ShapedArray], outs: Sequence[ShapedArray]
) -> Sequence[Splits]:
    """The dimensions that stay are split as they were; XLA folds the others whole."""
    kept = [i for i in range(avals[0].ndim) if i not in p.dimensions]
    ins = [[i if i in kept else None for i in range(aval.ndim)] for aval in avals]
    return connected(avals, ins, [kept] * len(outs))


reduce_p: Row[FoldParams] = Row(
    "reduce",
    FoldParams,
    typing=fold_typing,
    evaluate=evaluate_fold,
    jvp=jvp_fold,
    batch=batch_fold,
    lower=lower_fold,
    draw=draw_fold,
    sharding=fold_splits,
    multiple_results=True,
    traits=Traits(flops=each_operand),
)

ROWS: Rows = (reduce_p,)
