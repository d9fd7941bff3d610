"""Floor 2: collectives: operations between the elements of a named axis.

One idea: an element sees only itself, and a collective names the axis along which it
meets the others; the transformation that runs over the axis (`vmap(axis_name=)`) knows
where the others are, so its batch rule is a reduction, a transposition or a gather::

    b:f32[] = psum[axes=(i,) sizes=(3,)] a      # under vmap: reduce_sum over the batch
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from attrs import evolve

from verax.ir.avals import Shape, ShapedArray
from verax.ir.dtypes import is_bool
from verax.ir.meshes import Layout, Split
from verax.ops.elementwise.arith import mul
from verax.ops.elementwise.convert import convert
from verax.ops.indexing.dynamic_slice import dynamic_slice_in_dim
from verax.ops.parallel.meeting import (
    CollectiveParams,
    ExchangeParams,
    GatherAxisParams,
    Groups,
    LowerAmong,
    PermuteParams,
    all_gather,
    all_reduce,
    all_to_all,
    meeting,
    own_index,
    permuted,
    reduce_scatter,
    unbound,
)
from verax.ops.parallel.parts import (
    PartsParams,
    backwards,
    gather_axis_typing,
    gathered_rows,
    in_state,
    permute_parts_p,
    permuted_rows,
    reduce_scatter_typing,
    rows_at,
    same_type,
    scatter_parts_p,
    scattered_rows,
)
from verax.ops.parallel.sharding_constraint import sharding_constraint
from verax.ops.reductions.reduce import reduce_sum
from verax.ops.structure.casts import cast, retyped_along
from verax.ops.structure.create import iota
from verax.ops.structure.shape import at_front, batched_at, move_axis, reshape
from verax.rules.families.linear import linear, one_linear
from verax.rules.rows.row import (
    NO_TRAITS,
    Axis,
    BatchRule,
    Engine,
    Narrow,
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
# Collectives: operations between the elements of a named axis.


type Batched = tuple[Sequence[Array], Sequence[Axis]]

INT32 = np.dtype(np.int32)


def named(engine: Engine, p: CollectiveParams) -> bool:
    """Whether the dimension that is added now is one that `p` names."""
    return engine.axis is not None and engine.axis.name in p.axes


def parts_of[P: CollectiveParams](engine: Engine, p: P) -> PartsParams[P] | None:
    """A collective of the parts that a mesh makes; None if the batch is no such parts.

    Those are the parts of a `shard_map` over all axes of a mesh.
    """
    axis = engine.axis
    if axis is None or axis.name is None or axis.parts is None or p.groups:
        return None
    known = {axis.name, *p.axes} <= set(axis.parts.names)
    if not known or len(p.axes) > 1:
        return None
    return PartsParams(p, axis.parts, (axis.name,))


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


def unmapped_values(p: CollectiveParams, *args: object) -> Any:
    """Outside the named axis there is no value."""
    raise unbound(p.axes)


def collective[P: CollectiveParams](
    name: str,
    params: type[P],
    typing: TypeRule[P],
    transpose: Callable[[P, Array, ShapedArray], Array],
    batch: BatchRule[P],
    lower: LowerAmong[P],
    shift: Callable[[P], P] | None = None,
    parts: Row[PartsParams[P]] | None = None,
    traits: Traits = NO_TRAITS,
) -> Row[P]:
    """The row of a collective: linear, and meaningless outside the named axis.

    `batch` is its rule for an axis that it names, without groups; `lower` that for the
    devices of a mesh; `shift` moves the dimensions in the params by one, if there are
    any. `parts` is the row of stacks whose rows the devices of a mesh have.
    """

    def batch_any(
        engine: Engine, p: P, size: int, args: Sequence[Array], axes: Sequence[Axis]
    ) -> Batched:
        if parts is not None and (known := parts_of(engine, p)) is not None:
            return (parts.call(known, at_front(args[0], axes[0], size)),), (0,)
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
    traits=Traits(flops=each_operand, narrow=Narrow.SUM),
)


# ------------------------------------------------------------------------ all_gather


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
    stack = at_front(args[0], axes[0], size)
    y, parts = gathered_rows(p, stack), parts_of(engine, p)
    if parts is not None:
        # Or a compiler would send what is computed of the parts, once for each.
        splits: list[Split] = [None] * y.ndim
        splits[p.dimension] = ()
        y = sharding_constraint(y, Layout(parts.mesh, tuple(splits)))
    return (y,), (None,)


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
    return (scattered_rows(p, at_front(args[0], axes[0], size)),), (p.dimension,)


reduce_scatter_p: Row[GatherAxisParams] = collective(
    "reduce_scatter",
    GatherAxisParams,
    reduce_scatter_typing,
    transpose_reduce_scatter,
    batch_reduce_scatter,
    lambda e, p, x, groups, out: reduce_scatter(e, x, groups, p.dimension, out),
    shifted,
    scatter_parts_p,
    traits=Traits(flops=each_operand, narrow=Narrow.SUM),
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
    return (permuted_rows(p, at_front(args[0], axes[0], size)),), (0,)


ppermute_p: Row[PermuteParams] = collective(
    "ppermute",
    PermuteParams,
    same_type,
    lambda p, ct, x: ppermute_p.call(backwards(p), ct),
    batch_ppermute,
    lambda e, p, x, groups, out: permuted(e, x, groups, p.pairs),
    parts=permute_parts_p,
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
