"""Floor 2: `conv_general_dilated`, a convolution with all that it can have.

One idea: a convolution is a product over windows, linear in each operand, and both of
its adjoints are convolutions again, in which strides and dilations change places::

    z = conv(x, k)      dx = conv(dz, reversed k),   dk = conv(x, dz)

`to_lhs` and `to_rhs` are these adjoints; `windows.geometry` has the padding they need.
"""

from collections.abc import Hashable, Sequence

from attrs import evolve

from verax.ir.avals import ShapedArray
from verax.ir.meshes import Splits
from verax.ops.contraction.dot import swapped
from verax.ops.conv.dimensions import ConvDimensionNumbers
from verax.ops.conv.impl import (
    FINITE,
    ConvParams,
    conv_typing,
    draw_conv,
    evaluate_conv,
    geometry_of,
    lower_conv,
    lower_conv_on_cpu,
)
from verax.ops.structure.create import zeros
from verax.ops.structure.joining import rev
from verax.ops.structure.shape import move_axis, reshape
from verax.ops.windows.params import adjoint_padding, dilated
from verax.rules.families.bilinear import jvp_bilinear, transpose_bilinear
from verax.rules.rows.eager_costs import large
from verax.rules.rows.row import Axis, Engine, Row, Rows
from verax.rules.rows.traits import Avals, Traits, Work
from verax.rules.rows.type_shardings import connected
from verax.rules.values.array import Array


def split_axis(x: Array, axis: int, count: int) -> Array:
    """Dimension `axis` as two: `count` groups, and the elements of each."""
    shape = x.shape
    inner = shape[axis] // count
    return reshape(x, (*shape[:axis], count, inner, *shape[axis + 1 :]))


def merge_axis(x: Array, source: int, target: int) -> Array:
    """Dimension `source` as groups of dimension `target`, counted without it."""
    moved = move_axis(x, source, target)
    shape = moved.shape
    merged = shape[target] * shape[target + 1]
    return reshape(moved, (*shape[:target], merged, *shape[target + 2 :]))


def regrouped(x: Array, source: int, target: int, count: int) -> Array:
    """The `count` groups of dimension `source` as groups of dimension `target`."""
    parts = split_axis(x, source, count)
    return merge_axis(parts, source, target)


def alike_typed(engine: Engine, ct: Array, other: Array) -> Array:
    """The other operand in the dtype of the cotangent, which sums may have had."""
    return engine.core.convert(other, ct.dtype, other.aval.weak_type)


def to_lhs(engine: Engine, p: ConvParams, ct: Array, x: ShapedArray, k: Array) -> Array:
    """The cotangent of the array: cotangents against the reversed kernel."""
    dims, groups = p.dimension_numbers, p.feature_group_count * p.batch_group_count
    if not ct.size or not k.size or not x.size:
        return zeros(x)
    geometry = geometry_of(p, x.shape, k.shape)
    kernel = rev(alike_typed(engine, ct, k), dims.rhs_spec[2:])
    if groups > 1:
        kernel = regrouped(kernel, dims.rhs_spec[0], dims.rhs_spec[1], groups)
    flipped = (dims.rhs_spec[1], dims.rhs_spec[0], *dims.rhs_spec[2:])
    back = ConvParams(
        window_strides=p.lhs_dilation,
        padding=adjoint_padding(geometry),
        lhs_dilation=p.window_strides,
        rhs_dilation=p.rhs_dilation,
        dimension_numbers=ConvDimensionNumbers(dims.out_spec, flipped, dims.lhs_spec),
        feature_group_count=groups,
        precision=p.precision,
    )
    found = conv_general_dilated_p.call(back, ct, kernel)
    if p.batch_group_count > 1:
        found = regrouped(found, dims.lhs_spec[1], dims.lhs_spec[0], groups)
    return found


def to_rhs(engine: Engine, p: ConvParams, ct: Array, k: ShapedArray, x: Array) -> Array:
    """The cotangent of the kernel: the array against cotangents, batches summed."""
    dims = p.dimension_numbers
    if not ct.size or not k.size or not x.size:
        return zeros(k)
    numbers = ConvDimensionNumbers(*((s[1], s[0], *s[2:]) for s in dims))
    places = [ct.shape[i] for i in dims.out_spec[2:]]
    geometry = geometry_of(p, x.shape, k.shape)
    pads = []
    for places_, (n, w, stride, pad, base, spread) in zip(
        places, zip(*geometry, strict=True), strict=True
    ):
        reach = dilated(places_, stride) + dilated(w, spread) - 1
        pads.append((pad[0], reach - dilated(n, base) - pad[0]))
    back = ConvParams(
        window_strides=p.rhs_dilation,
        padding=tuple(pads),
        lhs_dilation=p.lhs_dilation,
        rhs_dilation=p.window_strides,
        dimension_numbers=ConvDimensionNumbers(
            numbers.lhs_spec, numbers.out_spec, numbers.rhs_spec
        ),
        feature_group_count=p.batch_group_count,
        batch_group_count=p.feature_group_count,
        precision=swapped(p.precision),
    )
    return conv_general_dilated_p.call(back, alike_typed(engine, ct, x), ct)


def batch_conv(
    engine: Engine,
    p: ConvParams,
    size: int,
    args: Sequence[Array],
    axes: Sequence[Axis],
) -> tuple[Sequence[Array], Sequence[Axis]]:
    """Elements are more batches, more output features, or groups of features."""
    (lhs, rhs), (left, right) = args, axes
    if size == 0:
        return (nothing(p, args, axes),), (0,)
    if right is None:
        assert left is not None
        return batch_lhs(p, lhs, rhs, left)
    if left is None:
        return batch_rhs(p, lhs, rhs, right)
    dims = p.dimension_numbers
    k = merge_axis(rhs, right, dims.rhs_spec[0])
    if p.batch_group_count > 1:
        x = merge_axis(lhs, left, dims.lhs_spec[0])
        params = evolve(p, batch_group_count=size * p.batch_group_count)
    else:
        x = merge_axis(lhs, left, dims.lhs_spec[1])
        params = evolve(p, feature_group_count=size * p.feature_group_count)
    found = conv_general_dilated_p.call(params, x, k)
    return (split_axis(found, dims.out_spec[1], size),), (dims.out_spec[1],)


def nothing(p: ConvParams, args: Sequence[Array], axes: Sequence[Axis]) -> Array:
    """The result of a batch without elements."""
    avals = [
        x.aval
        if axis is None
        else x.aval.with_shape((*x.shape[:axis], *x.shape[axis + 1 :]))
        for x, axis in zip(args, axes, strict=True)
    ]
    (out,) = conv_typing(p, avals)
    return zeros(out.with_shape((0, *out.shape)))


def batch_lhs(
    p: ConvParams, lhs: Array, rhs: Array, axis: int
) -> tuple[Sequence[Array], Sequence[Axis]]:
    """Elements as batches; within the groups of these, if there are groups."""
    dims, size = p.dimension_numbers, lhs.shape[axis]
    batch, out = dims.lhs_spec[0], dims.out_spec[0]
    if p.batch_group_count == 1:
        x = merge_axis(lhs, axis, batch)
    else:
        moved = move_axis(lhs, axis, batch)
        shape = moved.shape
        parts = split_axis(moved, batch + 1, p.batch_group_count)
        inside = move_axis(parts, batch + 1, batch)
        x = reshape(
            inside, (*shape[:batch], size * shape[batch + 1], *shape[batch + 2 :])
        )
    found = conv_general_dilated_p.call(p, x, rhs)
    return (split_axis(found, out, size),), (out,)


def batch_rhs(
    p: ConvParams, lhs: Array, rhs: Array, axis: int
) -> tuple[Sequence[Array], Sequence[Axis]]:
    """Elements as output features; within the groups of these, if there are groups."""
    dims, size = p.dimension_numbers, rhs.shape[axis]
    groups = p.feature_group_count * p.batch_group_count
    feature, out = dims.rhs_spec[0], dims.out_spec[1]
    if groups == 1:
        k = merge_axis(rhs, axis, feature)
        found = conv_general_dilated_p.call(p, lhs, k)
        return (split_axis(found, out, size),), (out,)
    moved = move_axis(rhs, axis, feature)
    shape = moved.shape
    parts = move_axis(split_axis(moved, feature + 1, groups), feature + 1, feature)
    merged = (*shape[:feature], size * shape[feature + 1], *shape[feature + 2 :])
    found = conv_general_dilated_p.call(p, lhs, reshape(parts, merged))
    own = shape[feature + 1] // groups
    whole = found.shape
    split = reshape(found, (*whole[:out], groups, size, own, *whole[out + 1 :]))
    front = move_axis(split, out + 1, out)
    return (reshape(front, (*whole[:out], size, groups * own, *whole[out + 1 :])),), (
        out,
    )


def conv_splits(
    p: ConvParams, avals: Sequence[ShapedArray], outs: Sequence[ShapedArray]
) -> Sequence[Splits]:
    """Batch and output features stay split; space and input features are whole.

    XLA computes wrong sums over space in parts that are smaller than the padding.
    """
    x, k = avals
    dims = p.dimension_numbers
    labels: list[list[Hashable]] = [[None] * a.ndim for a in (x, k, outs[0])]
    single = p.feature_group_count == p.batch_group_count == 1
    if p.batch_group_count == 1:
        labels[0][dims.lhs_spec[0]] = labels[2][dims.out_spec[0]] = "batch"
    if single:
        labels[1][dims.rhs_spec[0]] = labels[2][dims.out_spec[1]] = "feature"
    return connected(avals, labels[:2], labels[2:])


def conv_flops(p: ConvParams, ins: Avals, outs: Avals) -> float:
    """Two operations for each multiplication, those with padding included."""
    kernel = ins[1]
    features = kernel.shape[p.dimension_numbers[1][0]]
    return 2.0 * outs[0].size * kernel.size / max(1, features)


conv_general_dilated_p: Row[ConvParams] = Row(
    "conv_general_dilated",
    ConvParams,
    typing=conv_typing,
    evaluate=lambda engine, p, xs: (evaluate_conv(p, *xs),),
    jvp=lambda engine, p, xs, ts: jvp_bilinear(
        engine, conv_general_dilated_p, p, xs, ts
    ),
    transpose=lambda engine, p, cts, xs: transpose_bilinear(
        engine, p, cts[0], xs, to_lhs, to_rhs
    ),
    batch=batch_conv,
    lower=lower_conv,
    lower_on={"cpu": lower_conv_on_cpu},
    draw=draw_conv,
    domains=(FINITE, FINITE),
    costly=large,
    sharding=conv_splits,
    traits=Traits(Work.WHOLE, conv_flops),
)


ROWS: Rows = (conv_general_dilated_p,)
