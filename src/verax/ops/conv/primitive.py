"""Floor 2: `conv_general_dilated`, a convolution with all that it can have.

One idea: a convolution is a product over windows, linear in each operand, and both of
its adjoints are convolutions again, in which strides and dilations change places::

    z = conv(x, k)      dx = conv(dz, reversed k),   dk = conv(x, dz)

`to_lhs` and `to_rhs` are these adjoints; `windows.geometry` has the padding they need.
"""

from collections.abc import Hashable, Sequence
from math import prod
from random import Random

import numpy as np
from attrs import evolve

from verax.ir.avals import Shape, ShapedArray, larger_size
from verax.ir.dtypes import (
    DType,
    float16,
    float32,
    float64,
    is_bool,
    is_complex,
    is_float,
    is_integer,
    is_signed,
    numpy_dtype,
)
from verax.ir.meshes import Splits
from verax.ops.contraction.dot import rank_of, swapped, working_dtype
from verax.ops.contraction.precision import is_default, precision_attribute
from verax.ops.conv import kernels
from verax.ops.conv.params import ConvDimensionNumbers, ConvParams, geometry_of
from verax.ops.structure.create import zeros
from verax.ops.structure.joining import rev
from verax.ops.structure.shape import inverse, move_axis, reshape
from verax.ops.windows.geometry import (
    adjoint_padding,
    dilated,
    pads_text,
    window_counts,
    windows_of,
)
from verax.rules.families.elementwise import whole_bytes
from verax.rules.families.linear import jvp_bilinear, transpose_bilinear
from verax.rules.rows.eager_costs import large
from verax.rules.rows.emitter import Emitter, Operand, i64, i64s, transposed
from verax.rules.rows.kernels import Kernel
from verax.rules.rows.row import (
    Avals,
    Axis,
    Domain,
    Engine,
    NDArray,
    Row,
    Rows,
    Sample,
    Traits,
    Work,
)
from verax.rules.rows.type_shardings import connected
from verax.rules.values.array import Array
from verax.rules.values.constants import ANYTHING
from verax.rules.values.sizes import ShapeError, draw_size

# -----------------------------------------------------------------------------
# What a convolution means: its type, its value in NumPy, its StableHLO.
#
# All windows of the array side by side are a matrix, so a convolution is a
# product of matrices, one for each group of features or batches::
#
#     evaluate_conv(params, x, k)     # (places, window) times (window, features)


# Types for which XLA has a fast convolution on CPUs.
FAST = (float16, float32)
# Whether an infinity of the kernel meets the zeros of the padding is up to XLA.
FINITE = Domain(-100, 100)


def conv_typing(p: ConvParams, avals: Sequence[ShapedArray]) -> Sequence[ShapedArray]:
    if len(avals) != 2:
        raise TypeError(f"conv_general_dilated takes two operands, not {len(avals)}")
    x, k = avals
    check_parameters(p, x, k)
    dims = p.dimension_numbers
    (batch, feature), (out_feature, in_feature) = (
        [x.shape[i] for i in dims.lhs_spec[:2]],
        [k.shape[i] for i in dims.rhs_spec[:2]],
    )
    groups, parts = p.feature_group_count, p.batch_group_count
    if feature != in_feature * groups or out_feature % groups:
        raise ShapeError(wrong_features(p, x, k))
    if batch % parts or out_feature % parts:
        raise TypeError(
            f"conv_general_dilated: batch_group_count={parts} must divide the batch "
            f"size {batch} of {x} and the {out_feature} output features of {k}"
        )
    sizes = (batch // parts, out_feature, *window_counts(geometry_of(p, *shapes(x, k))))
    weak = x.weak_type and k.weak_type and p.preferred_element_type is None
    shape = tuple(sizes[i] for i in inverse(dims.out_spec))
    return (ShapedArray(shape, conv_dtype(p, x.dtype, k.dtype), weak),)


def shapes(*avals: ShapedArray) -> tuple[Shape, ...]:
    return tuple(aval.shape for aval in avals)


def wrong_features(p: ConvParams, x: ShapedArray, k: ShapedArray) -> str:
    """The error for a kernel that does not fit the features of the operand."""
    dims, groups = p.dimension_numbers, p.feature_group_count
    feature = x.shape[dims.lhs_spec[1]]
    has = (
        f"conv_general_dilated: the operand {x} has {feature} features in dimension "
        f"{dims.lhs_spec[1]}"
    )
    if feature % groups:
        return f"{has}, which feature_group_count={groups} must divide"
    rest = ""
    if groups > 1:
        has += f", in {groups} groups"
        rest = f" and a multiple of {groups} in its dimension {dims.rhs_spec[0]}"
    return (
        f"{has}, so the kernel must have {feature // groups} in its dimension "
        f"{dims.rhs_spec[1]}{rest}, not {k}"
    )


def check_parameters(p: ConvParams, x: ShapedArray, k: ShapedArray) -> None:
    """Raise unless there is one positive number of each sort per spatial dimension."""
    every = list(range(x.ndim))
    dims = p.dimension_numbers
    if x.ndim != k.ndim or x.ndim < 2 or any(sorted(spec) != every for spec in dims):
        raise ShapeError(
            "conv_general_dilated takes operands with the same number of dimensions, "
            f"at least two, each listed in the dimension numbers, not {x} and {k} "
            f"with {dims}"
        )
    named = {
        "window_strides": p.window_strides,
        "lhs_dilation": p.lhs_dilation,
        "rhs_dilation": p.rhs_dilation,
    }
    for name, values in named.items():
        if len(values) != x.ndim - 2 or any(value < 1 for value in values):
            raise ValueError(
                f"conv_general_dilated: {name} must have a positive number for each "
                f"of the {x.ndim - 2} spatial dimensions of {x}, not {values}"
            )
    if len(p.padding) != x.ndim - 2:
        raise ValueError(
            "conv_general_dilated: padding must have a pair for each of the "
            f"{x.ndim - 2} spatial dimensions of {x}, not {p.padding}"
        )
    if p.feature_group_count < 1 or p.batch_group_count < 1:
        raise ValueError(
            "conv_general_dilated: feature_group_count and batch_group_count must be "
            f"at least 1, not {p.feature_group_count} and {p.batch_group_count}"
        )
    if p.feature_group_count > 1 and p.batch_group_count > 1:
        raise ValueError(
            "conv_general_dilated: feature_group_count and batch_group_count must not "
            "both exceed 1"
        )


def conv_dtype(p: ConvParams, x: DType, k: DType) -> DType:
    """The operands' dtype, or what was preferred, which is no narrower."""
    if x != k or not ANYTHING.holds(x):
        raise TypeError(
            f"conv_general_dilated takes operands of the same dtype, not {x} and {k}; "
            "convert one (verax.lax.convert_element_type)"
        )
    expected = p.preferred_element_type
    if expected is not None and rank_of(expected)[3] < rank_of(x)[3]:
        raise TypeError(
            f"preferred_element_type={expected} is narrower than {x}, the dtype of the "
            "operands; convert them, or the result"
        )
    if expected is not None and not is_summed_in(x, expected):
        raise TypeError(
            f"preferred_element_type={expected} is of another kind than {x}, the dtype "
            "of the operands; convert them, or the result"
        )
    return expected or x


def is_summed_in(x: DType, wide: DType) -> bool:
    """Whether products of `x` may be summed in `wide`, a dtype of its kind.

    Integers are summed in floats too, those with a sign in no dtype without one, and
    booleans in any dtype.
    """
    if is_integer(x):
        kept = is_signed(wide) or (is_integer(wide) and not is_signed(x))
        return is_float(wide) or kept
    return is_bool(x) or (is_float(wide) if is_float(x) else is_complex(wide))


def evaluate_conv(p: ConvParams, lhs: NDArray, rhs: NDArray) -> NDArray:
    """A product of matrices for each group: windows times the kernel."""
    dims, groups = p.dimension_numbers, p.feature_group_count * p.batch_group_count
    out = numpy_dtype(conv_dtype(p, lhs.dtype, rhs.dtype))
    working = working_dtype(out, lhs.dtype, rhs.dtype)
    if is_bool(lhs.dtype):
        working = np.dtype(np.int32)
    x = lhs.transpose(dims.lhs_spec).astype(working)
    k = rhs.transpose(dims.rhs_spec).astype(working)
    geometry = geometry_of(p, lhs.shape, rhs.shape)
    places = window_counts(geometry)
    size = (x.shape[0] // p.batch_group_count, k.shape[0], *places)
    if not prod(size) or not k.size or not x.size:
        return np.zeros(size, out).transpose(inverse(dims.out_spec))
    windows = windows_of(x, geometry, 0)
    if p.feature_group_count > 1:
        windows = windows.reshape((x.shape[0], groups, -1, *windows.shape[2:]))
        windows = np.moveaxis(windows, 1, 0)
    else:
        windows = windows.reshape((groups, -1, *windows.shape[1:]))
    # (group, batch, feature, places, window) to (group, batch and places, the rest)
    count = len(places)
    order = (0, 1, *range(3, 3 + count), 2, *range(3 + count, 3 + 2 * count))
    rows = windows.transpose(order).reshape((groups, size[0] * prod(places), -1))
    kernel = k.reshape((groups, k.shape[0] // groups, -1))
    product = np.matmul(rows, kernel.transpose((0, 2, 1)))
    product = product.reshape((groups, size[0], *places, -1))
    last = product.ndim - 1
    result = product.transpose((1, 0, last, *range(2, last))).reshape(size)
    typed: NDArray = result.astype(out)
    return typed.transpose(inverse(dims.out_spec))


def spec_text(letters: str, spec: Shape) -> str:
    """One operand as `#stablehlo.conv` names its dimensions."""
    names = {place: letter for place, letter in zip(spec[:2], letters, strict=True)}
    names |= {place: str(i) for i, place in enumerate(spec[2:])}
    return f"[{', '.join(names[i] for i in range(len(spec)))}]"


def lower_conv(
    e: Emitter, p: ConvParams, operands: Sequence[Operand], outs: Sequence[ShapedArray]
) -> Sequence[Operand]:
    """One `stablehlo.convolution`; zeros where there is nothing to add up."""
    if not outs[0].size or not all(x.aval.size for x in operands):
        return (e.constant(0, outs[0]),)
    if p.preferred_element_type is not None:
        operands = [whole_bytes(e, x) for x in operands]
    dims = p.dimension_numbers
    text = (
        f"#stablehlo.conv<{spec_text('bf', dims.lhs_spec)}x"
        f"{spec_text('oi', dims.rhs_spec)}->{spec_text('bf', dims.out_spec)}>"
    )
    return e.op(
        "stablehlo.convolution",
        operands,
        outs,
        window_strides=i64s(p.window_strides),
        padding=pads_text(p.padding),
        lhs_dilation=i64s(p.lhs_dilation),
        rhs_dilation=i64s(p.rhs_dilation),
        dimension_numbers=text,
        feature_group_count=i64(p.feature_group_count),
        batch_group_count=i64(p.batch_group_count),
        precision_config=precision_attribute(p.precision),
    )


def orders_on_cpu(
    p: ConvParams, x: ShapedArray, k: ShapedArray
) -> tuple[ConvDimensionNumbers, list[Shape]] | None:
    """Dimension numbers with channels last, and the orders of axes that lead there.

    None where XLA has no library for the convolution.
    """
    count = x.ndim - 2
    plain = x.dtype in FAST and k.dtype in FAST and p.batch_group_count == 1
    if not plain or count not in range(1, 4):
        return None
    spatial = tuple(range(1, count + 1))
    last = ConvDimensionNumbers(
        (0, count + 1, *spatial),
        (count + 1, count, *range(count)),
        (0, count + 1, *spatial),
    )
    there = zip(p.dimension_numbers, last, strict=True)
    return last, [tuple([spec[i] for i in inverse(own)]) for spec, own in there]


def copied_on_cpu(p: ConvParams, avals: Sequence[ShapedArray]) -> tuple[int, ...]:
    """The operands that XLA is given in another order of axes on a CPU."""
    x, k = avals
    found = orders_on_cpu(p, x, k)
    orders = [] if found is None else found[1][:2]
    same = tuple(range(x.ndim))
    return tuple([i for i, order in enumerate(orders) if order != same])


def lower_conv_on_cpu(
    e: Emitter, p: ConvParams, operands: Sequence[Operand], outs: Sequence[ShapedArray]
) -> Sequence[Operand]:
    """The same on arrays with channels last, the only ones that XLA is fast with.

    It transposes the operands of others itself, but only in the main function of a
    program: what is in a loop, or in a function, would be 30 times as slow.
    """
    x, k = operands
    (out,) = outs
    found = orders_on_cpu(p, x.aval, k.aval)
    if found is None:
        return lower_conv(e, p, operands, outs)
    last, orders = found
    x, k = transposed(e, x, orders[0]), transposed(e, k, orders[1])
    turned = evolve(p, dimension_numbers=last)
    aval = out.with_shape(out.shape[i] for i in orders[2])
    (y,) = lower_conv(e, turned, (x, k), (aval,))
    return (transposed(e, y, inverse(orders[2])),)


def draw_conv(random: Random) -> Sample[ConvParams]:
    """Any order of dimensions, strides, dilations, padding, one sort of groups."""
    count = random.choice((0, 1, 1, 2))
    groups, parts = random.choice(((1, 1), (1, 1), (2, 1), (3, 1), (1, 2)))

    def size(*likely: int) -> int:
        return draw_size(random, likely)

    def small() -> Shape:
        return tuple(random.choice((1, 1, 2, 3)) for _ in range(count))

    batch, inner = size(1, 2, 3) * parts, size(1, 2, 3)
    features = size(1, 2, 3) * groups * parts
    sizes = [size(2, 3, 4, 5) for _ in range(count)]
    windows = [size(1, 2, 2, 3) for _ in range(count)]

    padding = tuple((random.randint(-1, 2), random.randint(0, 2)) for _ in sizes)
    specs = []
    for _ in range(3):
        order = list(range(count + 2))
        random.shuffle(order)
        specs.append(tuple(order))
    dims = ConvDimensionNumbers(*specs)
    dtype = random.choice(ANYTHING.samples())
    wide = dtype.itemsize < 4 and ANYTHING.holds(dtype) and random.random() < 0.4
    preferred = np.dtype(np.int32 if is_integer(dtype) else np.float32)
    params = ConvParams(
        *(small(), padding, small(), small(), dims, groups, parts, None),
        preferred if wide and dtype.kind != "b" else None,
    )
    lhs, rhs = (batch, inner * groups, *sizes), (features, inner, *windows)
    avals = [
        ShapedArray(tuple(shape[i] for i in inverse(spec)), dtype)
        for shape, spec in ((lhs, dims.lhs_spec), (rhs, dims.rhs_spec))
    ]
    return Sample(params, tuple(avals))


# -----------------------------------------------------------------------------
# `conv_general_dilated`, a convolution with all that it can have.


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
    out = conv_general_dilated_p.call(back, ct, kernel)
    if p.batch_group_count > 1:
        out = regrouped(out, dims.lhs_spec[1], dims.lhs_spec[0], groups)
    return out


def to_rhs(engine: Engine, p: ConvParams, ct: Array, k: ShapedArray, x: Array) -> Array:
    """The cotangent of the kernel: the array against cotangents, batches summed."""
    dims = p.dimension_numbers
    if not ct.size or not k.size or not x.size:
        return zeros(k)
    if is_transposed(p):
        return to_rhs_of_transposed(engine, p, ct, k, x)
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


def is_transposed(p: ConvParams) -> bool:
    """Whether it spreads the array with steps of one, as `conv_transpose` does."""
    groups = p.feature_group_count * p.batch_group_count
    return groups == 1 and max(p.lhs_dilation, default=1) > 1 == max(p.window_strides)


def to_rhs_of_transposed(
    engine: Engine, p: ConvParams, ct: Array, k: ShapedArray, x: Array
) -> Array:
    """`to_rhs` as windows of the cotangent, reversed, against the array.

    The elements of the array lie apart in these windows, so that nothing is multiplied
    by the zeros between them. From z[o] = sum x[m] k[w], o = m d + low - w, follows::

        dk[w] = sum x[m] dz[m d + low - w]

    Windows of the array, with its zeros, take 40 times as long on a CPU.
    """
    dims = p.dimension_numbers
    pads = []
    for n, size, w, (low, _), base, spread in zip(
        [x.shape[i] for i in dims.lhs_spec[2:]],
        [ct.shape[i] for i in dims.out_spec[2:]],
        [k.shape[i] for i in dims.rhs_spec[2:]],
        p.padding,
        p.lhs_dilation,
        p.rhs_dilation,
        strict=True,
    ):
        before = dilated(w, spread) - 1 - low
        pads.append((before, dilated(n, base) + dilated(w, spread) - 1 - before - size))
    back = ConvParams(
        window_strides=p.rhs_dilation,
        padding=tuple(pads),
        lhs_dilation=p.window_strides,
        rhs_dilation=p.lhs_dilation,
        dimension_numbers=ConvDimensionNumbers(
            (dims.out_spec[1], dims.out_spec[0], *dims.out_spec[2:]),
            (dims.lhs_spec[1], dims.lhs_spec[0], *dims.lhs_spec[2:]),
            dims.rhs_spec,
        ),
        precision=p.precision,
    )
    out = conv_general_dilated_p.call(back, ct, alike_typed(engine, ct, x))
    return rev(out, dims.rhs_spec[2:])


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
    array = conv_general_dilated_p.call(params, x, k)
    return (split_axis(array, dims.out_spec[1], size),), (dims.out_spec[1],)


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
    array = conv_general_dilated_p.call(p, x, rhs)
    return (split_axis(array, out, size),), (out,)


def batch_rhs(
    p: ConvParams, lhs: Array, rhs: Array, axis: int
) -> tuple[Sequence[Array], Sequence[Axis]]:
    """Elements as output features; within the groups of these, if there are groups."""
    dims, size = p.dimension_numbers, rhs.shape[axis]
    groups = p.feature_group_count * p.batch_group_count
    feature, out = dims.rhs_spec[0], dims.out_spec[1]
    if groups == 1:
        k = merge_axis(rhs, axis, feature)
        array = conv_general_dilated_p.call(p, lhs, k)
        return (split_axis(array, out, size),), (out,)
    moved = move_axis(rhs, axis, feature)
    shape = moved.shape
    parts = move_axis(split_axis(moved, feature + 1, groups), feature + 1, feature)
    merged = (*shape[:feature], size * shape[feature + 1], *shape[feature + 2 :])
    array = conv_general_dilated_p.call(p, lhs, reshape(parts, merged))
    own = shape[feature + 1] // groups
    whole = array.shape
    split = reshape(array, (*whole[:out], groups, size, own, *whole[out + 1 :]))
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


def conv_together(
    p: ConvParams, ins: Avals, outs: Avals
) -> Sequence[Sequence[Hashable | None]]:
    """Batch, features of the result, and those that are summed over."""
    dims = p.dimension_numbers
    labels: list[list[Hashable | None]] = [[None] * a.ndim for a in (*ins, *outs)]
    if p.batch_group_count == 1:
        labels[0][dims.lhs_spec[0]] = labels[2][dims.out_spec[0]] = "batch"
    if p.feature_group_count == p.batch_group_count == 1:
        labels[1][dims.rhs_spec[0]] = labels[2][dims.out_spec[1]] = "feature"
        labels[0][dims.lhs_spec[1]] = labels[1][dims.rhs_spec[1]] = "summed"
    return labels


def conv_flops(p: ConvParams, ins: Avals, outs: Avals) -> float:
    """Two operations for each multiplication, those with padding included."""
    kernel = ins[1]
    features = kernel.shape[p.dimension_numbers[1][0]]
    return 2 * outs[0].size * kernel.size / larger_size(1, features)


def convolve_in_groups(p: ConvParams, x: Array, k: Array) -> Array:
    """The kernel of the row."""
    return kernels.convolve(conv_general_dilated_p.call, p, x, k)


def sums_in(p: ConvParams, dtype: DType) -> ConvParams | None:
    """The convolution of narrower operands with sums and results of `dtype`.

    None where a precision was requested.
    """
    if not is_default(p.precision):
        return None
    return evolve(p, preferred_element_type=dtype)


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
    kernel=Kernel(
        dict.fromkeys((float32, float64), convolve_in_groups),
        suits=kernels.suits,
        least=1,
    ),
    draw=draw_conv,
    domains=(FINITE, FINITE),
    costly=large,
    sharding=conv_splits,
    traits=Traits(
        Work.WHOLE,
        conv_flops,
        accumulate=sums_in,
        copied=copied_on_cpu,
        together=conv_together,
    ),
)


ROWS: Rows = (conv_general_dilated_p,)
