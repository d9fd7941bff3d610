"""Floor 2: collectives: operations between the elements of a named axis.

One idea: an element sees only itself, and a collective names the axis along which it
meets the others; the transformation that runs over the axis (`vmap(axis_name=)`) knows
where the others are, so its batch rule is a reduction, a transposition or a gather::

    b:f32[] = psum[axes=(i,) sizes=(3,)] a      # under vmap: reduce_sum over the batch
"""

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
from attrs import evolve, field, frozen

from verax.ir.avals import Shape, ShapedArray
from verax.ir.dtypes import int32, is_bool, uint32
from verax.ir.jaxpr import Params
from verax.ir.meshes import Axes
from verax.ir.records import QUIET
from verax.ops.elementwise.arith import mul
from verax.ops.elementwise.convert import convert
from verax.ops.indexing.dynamic_slice import dynamic_slice_in_dim
from verax.ops.indexing.gather import gather
from verax.ops.indexing.geometry import GatherDimensionNumbers
from verax.ops.reductions.reduce import reduce_sum
from verax.ops.structure.casts import cast, retyped_along, state_along
from verax.ops.structure.create import iota
from verax.ops.structure.shape import at_front, batched_at, move_axis, reshape
from verax.rules.families.linear import linear, one_linear
from verax.rules.rows.emitter import Emitter, Operand, i64, i64s
from verax.rules.rows.row import (
    NO_TRAITS,
    Axis,
    BatchRule,
    Engine,
    Row,
    Rows,
    Tangent,
    Traits,
    TypeRule,
    Zero,
    as_typed,
    each_operand,
    no_flops,
)
from verax.rules.values.array import Array

# -----------------------------------------------------------------------------
# How collectives lower in the program of one device among several.
#
# There the other devices run the same program on other parts, so that a collective is
# an operation of XLA between them. Elsewhere `vmap` has replaced it before anything
# lowers::
#
#     groups = meeting(e, ("x",), ())             # ((0, 1), (2, 3))
#     (total,) = all_reduce(e, x, groups)


type Groups = tuple[tuple[int, ...], ...]
type Results = tuple[Operand, ...]

CHANNEL: Final = "#stablehlo.channel_handle<handle = 1, type = 1>"
"""XLA numbers channels itself where it takes the program of a part into its own."""


def meeting(e: Emitter, axes: tuple[str, ...], groups: Groups) -> Groups:
    """The devices that meet along the axes, by position, or within groups of them.

    Raises:
        NameError: there is no such axis around.
    """
    out = e.meeting(axes)
    if out is None:
        raise unbound(axes)
    if not groups:
        return out
    return tuple([tuple([row[i] for i in group]) for row in out for group in groups])


def unbound(axes: Sequence[str]) -> NameError:
    """The error for a collective outside its axis."""
    names = ", ".join(map(repr, axes))
    return NameError(
        f"unbound axis name {names} in a collective: call it within a function mapped "
        "with that axis_name"
    )


def pairs_text(rows: Sequence[Sequence[int]]) -> str:
    """A matrix of numbers of devices as an attribute."""
    shape = f"{len(rows)}x{len(rows[0]) if rows else 2}"
    text = ", ".join([f"[{', '.join(map(str, row))}]" for row in rows])
    return f"dense<{f'[{text}]' if rows else ''}> : tensor<{shape}xi64>"


def all_reduce(e: Emitter, x: Operand, groups: Groups) -> Results:
    """The sum over each group."""
    scalar = x.aval.with_shape(())
    return e.op(
        "stablehlo.all_reduce",
        (x,),
        (x.aval,),
        [((scalar, scalar), lambda pair: e.op("stablehlo.add", pair, (scalar,)))],
        replica_groups=pairs_text(groups),
        channel_handle=CHANNEL,
        use_global_device_ids="unit",
    )


def all_gather(
    e: Emitter, x: Operand, groups: Groups, dimension: int, out: ShapedArray
) -> Results:
    """Joins what a group has along a dimension, which is new if `out` has it."""
    if out.ndim > x.aval.ndim:
        shape = x.aval.shape
        x = reshaped(e, x, (*shape[:dimension], 1, *shape[dimension:]))
    return e.op(
        "stablehlo.all_gather",
        (x,),
        (out,),
        all_gather_dim=i64(dimension),
        replica_groups=pairs_text(groups),
        channel_handle=CHANNEL,
        use_global_device_ids="unit",
    )


def reduce_scatter(
    e: Emitter, x: Operand, groups: Groups, dimension: int, out: ShapedArray
) -> Results:
    """The sum over each group, of which each has a part along a dimension."""
    shape = x.aval.shape
    part = shape[dimension] // len(groups[0])
    kept = x.aval.with_shape((*shape[:dimension], part, *shape[dimension + 1 :]))
    scalar = x.aval.with_shape(())
    (y,) = e.op(
        "stablehlo.reduce_scatter",
        (x,),
        (kept,),
        [((scalar, scalar), lambda pair: e.op("stablehlo.add", pair, (scalar,)))],
        scatter_dimension=i64(dimension),
        replica_groups=pairs_text(groups),
        channel_handle=CHANNEL,
        use_global_device_ids="unit",
    )
    return (reshaped(e, y, out.shape),)


def all_to_all(
    e: Emitter, x: Operand, groups: Groups, split: int, joined: int, out: ShapedArray
) -> Results:
    """Dimension `split` is dealt out to the group, which lines up along `joined`."""
    (y,) = e.op(
        "stablehlo.all_to_all",
        (x,),
        (x.aval,),
        split_dimension=i64(split),
        concat_dimension=i64(split),
        split_count=i64(len(groups[0])),
        replica_groups=pairs_text(groups),
        channel_handle=CHANNEL,
    )
    order = [i for i in range(out.ndim) if i != split]
    order.insert(joined, split)
    return e.op("stablehlo.transpose", (y,), (out,), permutation=i64s(order))


def permuted(
    e: Emitter, x: Operand, groups: Groups, pairs: Sequence[tuple[int, int]]
) -> Results:
    """The value of another member of the group: first of a pair to second."""
    out = [(row[a], row[b]) for row in groups for a, b in pairs]
    return e.op(
        "stablehlo.collective_permute",
        (x,),
        (x.aval,),
        source_target_pairs=pairs_text(out),
        channel_handle=CHANNEL,
    )


def own_index(e: Emitter, groups: Groups) -> Results:
    """The place of this device in its group."""
    table = np.zeros(sum(map(len, groups)), np.int32)
    for row in groups:
        table[list(row)] = range(len(row))
    (number,) = e.op("stablehlo.partition_id", (), (ShapedArray((), uint32),))
    out = e.op(
        "stablehlo.dynamic_slice",
        (e.constant(table, ShapedArray(table.shape, int32)), number),
        (ShapedArray((1,), int32),),
        slice_sizes=i64s((1,)),
    )
    return (reshaped(e, out[0], ()),)


def reshaped(e: Emitter, x: Operand, shape: tuple[int, ...]) -> Operand:
    """`x` in another shape; itself if that is its own."""
    if x.aval.shape == shape:
        return x
    return e.op("stablehlo.reshape", (x,), (x.aval.with_shape(shape),))[0]


# -----------------------------------------------------------------------------
# Collectives: operations between the elements of a named axis.


type Batched = tuple[Sequence[Array], Sequence[Axis]]

INT32 = np.dtype(np.int32)


@frozen(cache_hash=True, repr=False)
class CollectiveParams(Params):
    """The named axes, and how many elements lie along each.

    With `groups` of the numbers of elements, which are of equal size and make up the
    one axis, elements meet those of their group alone, and `sizes` counts these.
    """

    axes: tuple[str, ...]
    sizes: Shape
    groups: Groups = field(default=(), kw_only=True, metadata=QUIET)

    @property
    def named_axes(self) -> frozenset[str]:
        return frozenset(self.axes)


@frozen(cache_hash=True, repr=False)
class GatherAxisParams(CollectiveParams):
    """`dimension` is new and runs over the elements, or grows by them if `tiled`.

    Inside `shard_map`, the result is in the state `to` along the axes; see `casts`.
    """

    dimension: int
    tiled: bool
    to: str = field(default="varying", kw_only=True, metadata=QUIET)


@frozen(cache_hash=True, repr=False)
class ExchangeParams(CollectiveParams):
    """Dimension `split` is dealt out to the elements; they line up along `joined`."""

    split: int
    joined: int


@frozen(cache_hash=True, repr=False)
class PermuteParams(CollectiveParams):
    """Pairs (from, to) of elements; who gets nothing has zeros."""

    pairs: tuple[tuple[int, int], ...]


def named(engine: Engine, p: CollectiveParams) -> bool:
    """Whether the dimension that is added now is one that `p` names."""
    return engine.axis is not None and engine.axis.name in p.axes


def within_groups[P: CollectiveParams](
    rule: BatchRule[P], engine: Engine, p: P, size: int, x: Array, axis: Axis
) -> Batched:
    """The batch rule of a collective within groups: it is mapped over the groups.

    A batch of n elements becomes one of n / m groups, a dimension that the collective
    does not name, for which `p` is shifted, of m elements each, which it names.
    """
    order = np.array(p.groups, np.int32)
    count, m = order.shape
    rows = in_order(at_front(x, axis, size), order)
    rows = reshape(rows, (count, m, *rows.shape[1:]))
    (y,), (at,) = rule(engine, evolve(p, groups=()), m, (rows,), (1,))
    y = batched_at(y, at, 1, m)
    y = reshape(y, (size, *y.shape[2:]))
    back = np.argsort(order.ravel()).astype(np.int32).reshape(m, count)
    return (in_order(y, back),), (0,)


def in_order(x: Array, order: np.ndarray) -> Array:
    """The rows of `x` in another order, which is a matrix: with no gather if it can."""
    n, (rows, columns) = order.size, order.shape
    if np.array_equal(order.ravel(), np.arange(n)):
        return x
    if np.array_equal(order.T.ravel(), np.arange(n)):
        rest = x.shape[1:]
        return reshape(move_axis(reshape(x, (columns, rows, *rest)), 1, 0), (n, *rest))
    return rows_at(x, order.ravel())


def rows_at(x: Array, places: Array | np.ndarray) -> Array:
    """The rows of `x` at `places`, integers of any shape; zeros where there is none."""
    numbers = GatherDimensionNumbers(
        offset_dims=tuple(range(places.ndim, places.ndim + x.ndim - 1)),
        collapsed_slice_dims=(0,),
        start_index_map=(0,),
    )
    vectors = reshape(places, (*places.shape, 1))
    window = (1, *x.shape[1:])
    return gather(x, vectors, numbers, window, mode="fill", fill_value=0)


def unmapped_values(p: CollectiveParams, *args: object) -> Any:
    """Outside the named axis there is no value."""
    raise unbound(p.axes)


type LowerAmong[P] = Callable[[Emitter, P, Operand, Groups, ShapedArray], Results]
"""Lowers a collective among groups of devices."""


def collective[P: CollectiveParams](
    name: str,
    params: type[P],
    typing: TypeRule[P],
    transpose: Callable[[P, Array, ShapedArray], Array],
    batch: BatchRule[P],
    lower: LowerAmong[P],
    shift: Callable[[P], P] | None = None,
    traits: Traits = NO_TRAITS,
) -> Row[P]:
    """The row of a collective: linear, and meaningless outside the named axis.

    `batch` is its rule for an axis that it names, without groups; `lower` that for the
    devices of a mesh; `shift` moves the dimensions in the params by one, if there are
    any.
    """

    def batch_any(
        engine: Engine, p: P, size: int, args: Sequence[Array], axes: Sequence[Axis]
    ) -> Batched:
        if not named(engine, p):
            if shift is None:
                return (row.call(p, *args),), axes
            return (row.call(shift(p), at_front(args[0], axes[0], size)),), (0,)
        if not p.groups:
            return batch(engine, p, size, args, axes)
        moved = shift(p) if shift else p
        return within_groups(batch, engine, moved, size, args[0], axes[0])

    row: Row[P] = linear(
        name,
        params,
        typing=typing,
        evaluate=unmapped_values,
        transpose=one_linear(transpose),
        batch=batch_any,
        lower=lambda e, p, xs, outs: lower(
            e, p, xs[0], meeting(e, p.axes, p.groups), outs[0]
        ),
        draw=None,
        sharding=as_typed,
        traits=traits,
    )
    return row


# ------------------------------------------------------------------------------ psum


def same_type(
    p: CollectiveParams, avals: Sequence[ShapedArray]
) -> Sequence[ShapedArray]:
    return tuple(avals)


def in_state(aval: ShapedArray, axes: Axes, state: str) -> Axes:
    """The axes along which the type says that values are in a state."""
    return tuple([axis for axis in axes if state_along(aval, axis) == state])


def psum_typing(
    p: CollectiveParams, avals: Sequence[ShapedArray]
) -> Sequence[ShapedArray]:
    """Types of `psum`: what varied is the same for all; within groups it varies still.

    Raises:
        ValueError: cotangents of the operand are terms themselves.
    """
    (x,) = avals
    if reduced := in_state(x, p.axes, "reduced"):
        raise ValueError(
            f"psum cannot accept what is reduced, but got {x} along {reduced[0]!r}: "
            "take it to 'varying' first (pcast)"
        )
    known = (*in_state(x, p.axes, "varying"), *in_state(x, p.axes, "unreduced"))
    return (retyped_along(x, known, "invarying") if known and not p.groups else x,)


def transpose_psum(p: CollectiveParams, ct: Array, x: ShapedArray) -> Array:
    """The cotangent of each: that of all; of what types do not track, the sum."""
    if p.groups or x.explicit is None:
        return psum_p.call(p, ct)
    sizes = dict(zip(p.axes, p.sizes, strict=True))
    for state, dual in (("varying", "varying"), ("unreduced", "reduced")):
        axes = in_state(x, p.axes, state)
        ct = cast(ct, axes, x.explicit.mesh, dual)
        for axis in axes:
            del sizes[axis]
    if not sizes:
        return ct
    return psum_p.call(CollectiveParams(tuple(sizes), tuple(sizes.values())), ct)


def batch_psum(
    engine: Engine,
    p: CollectiveParams,
    size: int,
    args: Sequence[Array],
    axes: Sequence[Axis],
) -> Batched:
    """The sum over the batch; the same value everywhere counts once per element."""
    (x,), (axis,) = args, axes
    assert engine.axis is not None
    total = mul(x, x.dtype.type(size)) if axis is None else reduce_sum(x, (axis,))
    left = [
        (name, n)
        for name, n in zip(p.axes, p.sizes, strict=True)
        if name != engine.axis.name
    ]
    if left:
        names, sizes = zip(*left, strict=True)
        total = psum_p.call(CollectiveParams(names, sizes), total)
    return (total,), (None,)


psum_p: Row[CollectiveParams] = collective(
    "psum",
    CollectiveParams,
    psum_typing,
    transpose_psum,
    batch_psum,
    lambda e, p, x, groups, out: all_reduce(e, x, groups),
    traits=Traits(flops=each_operand),
)


# ------------------------------------------------------------------------ all_gather


def gathered_shape(p: GatherAxisParams, shape: Shape) -> Shape:
    if p.tiled:
        n = shape[p.dimension] * p.sizes[0]
        return (*shape[: p.dimension], n, *shape[p.dimension + 1 :])
    return (*shape[: p.dimension], p.sizes[0], *shape[p.dimension :])


def gather_axis_typing(
    p: GatherAxisParams, avals: Sequence[ShapedArray]
) -> Sequence[ShapedArray]:
    (x,) = avals
    if p.tiled:
        full = x.with_shape(gathered_shape(p, x.shape)).with_explicit(x.explicit)
    else:
        full = x.stacked(p.sizes[0], p.dimension)
    known = in_state(x, p.axes, "varying")
    return (retyped_along(full, known, p.to) if p.to != "varying" and known else full,)


def transpose_all_gather(p: GatherAxisParams, ct: Array, x: ShapedArray) -> Array:
    """The sum of the cotangents, of which each keeps its share.

    Of what all devices have alike, the share is that of the one cotangent.
    """
    if p.to != "invarying" or not in_state(x, p.axes, "varying"):
        return reduce_scatter_p.call(evolve(p, to="varying"), ct)
    assert x.explicit is not None
    index = axis_index_p.call(CollectiveParams(p.axes, p.sizes))
    place, same = (cast(y, p.axes, x.explicit.mesh) for y in (index, ct))
    size = x.shape[p.dimension] if p.tiled else 1
    own = dynamic_slice_in_dim(same, mul(place, INT32.type(size)), size, p.dimension)
    return own if p.tiled else reshape(own, x.shape)


def batch_all_gather(
    engine: Engine,
    p: GatherAxisParams,
    size: int,
    args: Sequence[Array],
    axes: Sequence[Axis],
) -> Batched:
    """The batch dimension becomes one of the result, which is the same everywhere."""
    y = move_axis(at_front(args[0], axes[0], size), 0, p.dimension)
    if p.tiled:
        y = merged(y, p.dimension)
    return (y,), (None,)


def merged(x: Array, dimension: int) -> Array:
    """Dimension `dimension` and the next as one."""
    n = x.shape[dimension] * x.shape[dimension + 1]
    return reshape(x, (*x.shape[:dimension], n, *x.shape[dimension + 2 :]))


def parted(x: Array, dimension: int, count: int) -> Array:
    """A dimension as two, the first of length `count`."""
    n = x.shape[dimension] // count
    return reshape(x, (*x.shape[:dimension], count, n, *x.shape[dimension + 1 :]))


def shifted(p: GatherAxisParams) -> GatherAxisParams:
    return evolve(p, dimension=p.dimension + 1)


all_gather_p: Row[GatherAxisParams] = collective(
    "all_gather",
    GatherAxisParams,
    gather_axis_typing,
    transpose_all_gather,
    batch_all_gather,
    lambda e, p, x, groups, out: all_gather(e, x, groups, p.dimension, out),
    shifted,
    traits=Traits(flops=no_flops, makes_nans=False),
)


# -------------------------------------------------------------------- reduce_scatter


def reduce_scatter_typing(
    p: GatherAxisParams, avals: Sequence[ShapedArray]
) -> Sequence[ShapedArray]:
    (x,) = avals
    d, shape = p.dimension, x.shape
    if p.tiled:
        own = (*shape[:d], shape[d] // p.sizes[0], *shape[d + 1 :])
        part = x.with_shape(own).with_explicit(x.explicit)
    else:
        part = x.element(d)
    terms = in_state(x, p.axes, "unreduced")
    return (retyped_along(part, terms, "varying") if terms else part,)


def transpose_reduce_scatter(p: GatherAxisParams, ct: Array, x: ShapedArray) -> Array:
    """All shares; of terms of a sum they are the same, and reduced."""
    terms = in_state(x, p.axes, "unreduced")
    return all_gather_p.call(evolve(p, to="reduced" if terms else "varying"), ct)


def batch_reduce_scatter(
    engine: Engine,
    p: GatherAxisParams,
    size: int,
    args: Sequence[Array],
    axes: Sequence[Axis],
) -> Batched:
    """The sum over the batch, of which each element keeps its part."""
    total = reduce_sum(at_front(args[0], axes[0], size), (0,))
    return (parted(total, p.dimension, size) if p.tiled else total,), (p.dimension,)


reduce_scatter_p: Row[GatherAxisParams] = collective(
    "reduce_scatter",
    GatherAxisParams,
    reduce_scatter_typing,
    transpose_reduce_scatter,
    batch_reduce_scatter,
    lambda e, p, x, groups, out: reduce_scatter(e, x, groups, p.dimension, out),
    shifted,
    traits=Traits(flops=each_operand),
)


# ------------------------------------------------------------------------ all_to_all


def exchange_typing(
    p: ExchangeParams, avals: Sequence[ShapedArray]
) -> Sequence[ShapedArray]:
    (x,) = avals
    return (x.element(p.split).stacked(p.sizes[0], p.joined),)


def batch_exchange(
    engine: Engine,
    p: ExchangeParams,
    size: int,
    args: Sequence[Array],
    axes: Sequence[Axis],
) -> Batched:
    """The batch dimension and the dimension that is dealt out change places."""
    x = at_front(args[0], axes[0], size)
    dealt = move_axis(x, p.split + 1, 0)
    return (move_axis(dealt, 1, p.joined + 1),), (0,)


def exchange_shifted(p: ExchangeParams) -> ExchangeParams:
    return evolve(p, split=p.split + 1, joined=p.joined + 1)


all_to_all_p: Row[ExchangeParams] = collective(
    "all_to_all",
    ExchangeParams,
    exchange_typing,
    lambda p, ct, x: all_to_all_p.call(evolve(p, split=p.joined, joined=p.split), ct),
    batch_exchange,
    lambda e, p, x, groups, out: all_to_all(e, x, groups, p.split, p.joined, out),
    exchange_shifted,
    traits=Traits(flops=no_flops, makes_nans=False),
)


# -------------------------------------------------------------------------- ppermute


def batch_ppermute(
    engine: Engine,
    p: PermuteParams,
    size: int,
    args: Sequence[Array],
    axes: Sequence[Axis],
) -> Batched:
    """Element i reads the batch where its pair says, or zeros out of bounds."""
    (x,), (axis,) = args, axes
    sources = np.full(size, size, np.int32)
    for source, target in p.pairs:
        sources[target] = source
    return (rows_at(at_front(x, axis, size), sources),), (0,)


def backwards(p: PermuteParams) -> PermuteParams:
    """The same pairs, the other way."""
    return evolve(p, pairs=tuple([(b, a) for a, b in p.pairs]))


ppermute_p: Row[PermuteParams] = collective(
    "ppermute",
    PermuteParams,
    same_type,
    lambda p, ct, x: ppermute_p.call(backwards(p), ct),
    batch_ppermute,
    lambda e, p, x, groups, out: permuted(e, x, groups, p.pairs),
    traits=Traits(flops=no_flops, makes_nans=False),
)


# ------------------------------------------------------------------------ axis_index


def batch_axis_index(
    engine: Engine,
    p: CollectiveParams,
    size: int,
    args: Sequence[Array],
    axes: Sequence[Axis],
) -> Batched:
    """The numbers of the elements."""
    if not named(engine, p):
        return (axis_index_p.call(p),), (None,)
    return (iota(INT32, size),), (0,)


def jvp_axis_index(
    engine: Engine,
    p: CollectiveParams,
    primals: Sequence[Array],
    tangents: Sequence[Tangent],
) -> tuple[Sequence[Array], Sequence[Tangent]]:
    y = axis_index_p.call(p)
    return (y,), (Zero(y.aval.tangent()),)


axis_index_p: Row[CollectiveParams] = Row(
    "axis_index",
    CollectiveParams,
    typing=lambda p, avals: (ShapedArray((), INT32),),
    evaluate=lambda engine, p, xs: unmapped_values(p),
    jvp=jvp_axis_index,
    batch=batch_axis_index,
    lower=lambda e, p, xs, outs: own_index(e, meeting(e, p.axes, p.groups)),
    traits=Traits(flops=no_flops),
)

ROWS: Rows = (
    psum_p,
    all_gather_p,
    reduce_scatter_p,
    all_to_all_p,
    ppermute_p,
    axis_index_p,
)


def psum(
    x: Array, axes: tuple[str, ...], sizes: Shape, groups: Groups | None = None
) -> Array:
    """The sum over all elements of the axes; booleans count as integers."""
    summed = convert(x, INT32) if is_bool(x.dtype) else x
    return psum_p.call(CollectiveParams(axes, sizes, groups=groups or ()), summed)
