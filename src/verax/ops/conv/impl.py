"""Floor 2: what a convolution means: its type, its value in NumPy, its StableHLO.

One idea: all windows of the array side by side are a matrix, so a convolution is a
product of matrices, one for each group of features or batches::

    evaluate_conv(params, x, k)     # (places, window) times (window, features)
"""

from collections.abc import Sequence
from math import prod
from random import Random

import numpy as np
from attrs import evolve, frozen

from verax.ir.avals import Shape, ShapedArray
from verax.ir.dtypes import DType, float16, float32, is_bool, is_integer, numpy_dtype
from verax.ir.jaxpr import Params
from verax.ops.contraction.dot import rank_of, working_dtype
from verax.ops.contraction.precision import DotPrecision, precision_attribute
from verax.ops.conv.dimensions import ConvDimensionNumbers
from verax.ops.structure.shape import inverse
from verax.ops.windows.params import (
    Geometry,
    Pads,
    pads_text,
    window_counts,
    windows_of,
)
from verax.rules.families.subbyte import whole_bytes
from verax.rules.rows.emitter import Emitter, Operand, i64, i64s, transposed
from verax.rules.rows.row import Domain, NDArray, Sample
from verax.rules.values.kinds import ANYTHING
from verax.rules.values.shape_samples import draw_size
from verax.rules.values.sizes import ShapeError


@frozen(eq=False, repr=False)
class ConvParams(Params):
    """Strides, padding, dilations, what each dimension is, groups, and the types."""

    window_strides: Shape
    padding: Pads
    lhs_dilation: Shape
    rhs_dilation: Shape
    dimension_numbers: ConvDimensionNumbers
    feature_group_count: int = 1
    batch_group_count: int = 1
    precision: DotPrecision = None
    preferred_element_type: DType | None = None


# Types for which XLA has a fast convolution on CPUs.
FAST = (float16, float32)
# Whether an infinity of the kernel meets the zeros of the padding is up to XLA.
FINITE = Domain(-100, 100)


def geometry_of(p: ConvParams, lhs: Shape, rhs: Shape) -> Geometry:
    """What the windows do in the spatial dimensions."""
    dims = p.dimension_numbers
    return (
        tuple(lhs[i] for i in dims.lhs_spec[2:]),
        tuple(rhs[i] for i in dims.rhs_spec[2:]),
        p.window_strides,
        p.padding,
        p.lhs_dilation,
        p.rhs_dilation,
    )


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
        raise ShapeError(
            f"conv_general_dilated takes a kernel for {feature} features in {groups} "
            f"groups, not {in_feature} input and {out_feature} output features of {k}"
        )
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


def check_parameters(p: ConvParams, x: ShapedArray, k: ShapedArray) -> None:
    """Raise unless there is one positive number of each sort per spatial dimension."""
    every = list(range(x.ndim))
    dims = p.dimension_numbers
    if x.ndim != k.ndim or x.ndim < 2 or any(sorted(spec) != every for spec in dims):
        raise TypeError(
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
    wanted = p.preferred_element_type
    if wanted is not None and rank_of(wanted)[3] < rank_of(x)[3]:
        raise TypeError(
            f"preferred_element_type={wanted} is narrower than {x}, the dtype of the "
            "operands; convert them, or the result"
        )
    return wanted or x


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
    found = product.transpose((1, 0, last, *range(2, last))).reshape(size)
    typed: NDArray = found.astype(out)
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


def lower_conv_on_cpu(
    e: Emitter, p: ConvParams, operands: Sequence[Operand], outs: Sequence[ShapedArray]
) -> Sequence[Operand]:
    """The same on arrays with channels last, the only ones that XLA is fast with.

    It transposes the operands of others itself, but only in the main function of a
    program: what is in a loop, or in a function, would be 30 times as slow.
    """
    x, k = operands
    (out,) = outs
    count = out.ndim - 2
    plain = x.aval.dtype in FAST and k.aval.dtype in FAST and p.batch_group_count == 1
    if not plain or count not in range(1, 4):
        return lower_conv(e, p, operands, outs)
    spatial = tuple(range(1, count + 1))
    last = ConvDimensionNumbers(
        (0, count + 1, *spatial),
        (count + 1, count, *range(count)),
        (0, count + 1, *spatial),
    )
    dims = p.dimension_numbers
    there = zip(dims, last, strict=True)
    orders = [tuple([spec[i] for i in inverse(own)]) for spec, own in there]
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
