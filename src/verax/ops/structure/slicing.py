"""Floor 2: parts of arrays at places known while tracing, and padding.

One idea: adjoints side by side, for what slice cuts out pad puts back::

    slice(x, (1,), (3,))                      adjoint: pad(ct, 0, [(1, n - 3, 0)])
    pad(x, v, [(1, 2, 0)])                    adjoint: slice(ct, (1,), (n + 1,))
"""

import builtins
from collections.abc import Mapping, Sequence
from random import Random
from types import MappingProxyType
from typing import Final

import numpy as np
from attrs import frozen

from verax.ir.avals import Shape, ShapedArray, bit_width, larger_size, smaller_size
from verax.ir.dtypes import (
    FLOATING,
    SIGNED,
    DType,
    uint8,
    uint16,
    uint32,
    uint64,
)
from verax.ir.jaxpr import Params
from verax.ir.memos import memoised
from verax.ir.meshes import Splits
from verax.ops.elementwise.select import select
from verax.ops.structure.create import zeros
from verax.ops.structure.shape import at_front, broadcast_in_dim, draw_aval, squeeze
from verax.rules.families.linear import linear, one_batched, one_linear
from verax.rules.rows.emitter import Emitter, Operand, i64s
from verax.rules.rows.kernels import Kernel
from verax.rules.rows.row import (
    Axis,
    Engine,
    Known,
    Linear,
    Rows,
    Sample,
    Tangent,
    Traits,
    Work,
    no_flops,
)
from verax.rules.rows.type_shardings import connected, in_place
from verax.rules.values.array import Array
from verax.rules.values.constants import aval_of
from verax.rules.values.memo import pure
from verax.rules.values.operands import alike
from verax.rules.values.sizes import ShapeError, as_axis, as_integers, slice_count

type Padding = tuple[tuple[int, int, int], ...]

type Slices = tuple[builtins.slice, ...]


@frozen(eq=False, repr=False)
class SliceParams(Params):
    """From start up to limit in steps of stride (None: 1), in each dimension."""

    start_indices: Shape
    limit_indices: Shape
    strides: Shape | None

    def places(self) -> list[tuple[int, int, int]]:
        """Start, limit and stride, dimension by dimension."""
        strides = self.strides or (1,) * len(self.start_indices)
        return list(zip(self.start_indices, self.limit_indices, strides, strict=True))


slice_params = memoised(SliceParams)


def slice_typing(p: SliceParams, avals: Sequence[ShapedArray]) -> Sequence[ShapedArray]:
    (x,) = avals
    strides = (1,) * x.ndim if p.strides is None else p.strides
    if not len(p.start_indices) == len(p.limit_indices) == len(strides) == x.ndim:
        raise ShapeError(
            f"slice takes a start, a limit and a stride for each dimension of {x}, not "
            f"{p.start_indices}, {p.limit_indices} and {p.strides}"
        )
    places = zip(p.start_indices, p.limit_indices, x.shape, strict=True)
    if any(not 0 <= start <= limit <= size for start, limit, size in places):
        raise TypeError(
            f"slice takes 0 <= start <= limit <= size in each dimension of {x}, not "
            f"{p.start_indices} to {p.limit_indices}"
        )
    if any(stride < 1 for stride in strides):
        raise TypeError(f"slice takes positive strides, not {strides}")
    return (x.with_shape([slice_count(*place) for place in p.places()]),)


@pure()
def slices(
    starts: Shape, limits: Shape, strides: Shape | None
) -> tuple[builtins.slice, ...]:
    """The slices in NumPy's form."""
    steps = (1,) * len(starts) if strides is None else strides
    return tuple(map(builtins.slice, starts, limits, steps))


def transpose_slice(p: SliceParams, ct: Array, x: ShapedArray) -> Array:
    config = []
    for (start, limit, stride), size in zip(p.places(), x.shape, strict=True):
        end = limit
        if stride != 1:
            count = slice_count(start, limit, stride)
            last = start + larger_size(count - 1, 0) * stride
            end = last + smaller_size(count, 1)
        config.append((start, size - end, stride - 1))
    return pad(ct, 0.0, config)


def batch_slice(p: SliceParams, size: int, x: Array, axis: int) -> tuple[Array, int]:
    starts = inserted(p.start_indices, axis, 0)
    limits = inserted(p.limit_indices, axis, size)
    strides = None if p.strides is None else inserted(p.strides, axis, 1)
    return slice_p.call(SliceParams(starts, limits, strides), x), axis


def inserted[T](values: Sequence[T], place: int, value: T) -> tuple[T, ...]:
    """`values` with one more at `place`.

    >>> inserted((1, 2), 0, 5)
    (5, 1, 2)
    """
    return (*values[:place], value, *values[place:])


def draw_slice(random: Random) -> Sample[SliceParams]:
    aval = draw_aval(random, (1, 3, 5, 6))
    starts = [random.randint(0, n) for n in aval.shape]
    limits = [
        random.randint(start, n) for start, n in zip(starts, aval.shape, strict=True)
    ]
    steps = tuple(random.randint(1, 3) for _ in starts)
    strides = None if random.random() < 0.4 else steps
    return Sample(SliceParams(tuple(starts), tuple(limits), strides), (aval,))


def slice_splits(
    p: SliceParams, avals: Sequence[ShapedArray], outs: Sequence[ShapedArray]
) -> Sequence[Splits]:
    """Dimensions stay split; a single element is whole."""
    if outs[0].size == 1:
        return [((),) * outs[0].ndim]
    return in_place(p, avals, outs)


slice_p = linear(
    "slice",
    SliceParams,
    typing=slice_typing,
    evaluate=lambda p, x: x[slices(p.start_indices, p.limit_indices, p.strides)],
    transpose=one_linear(transpose_slice),
    batch=one_batched(batch_slice),
    lower=lambda e, p, xs, outs: e.op(
        "stablehlo.slice",
        xs,
        outs,
        start_indices=i64s(p.start_indices),
        limit_indices=i64s(p.limit_indices),
        strides=i64s([stride for _, _, stride in p.places()]),
    ),
    draw=draw_slice,
    sharding=slice_splits,
    traits=Traits(Work.LIGHT, no_flops, makes_nans=False, reads_part=True),
)


@frozen(eq=False, repr=False)
class PadParams(Params):
    """(low, high, interior) for each dimension; a negative edge cuts."""

    padding_config: Padding


def padded(size: int, edges: tuple[int, int, int]) -> int:
    """The size of a padded dimension.

    >>> padded(3, (1, -1, 2))
    7
    """
    low, high, interior = edges
    return low + high + size + larger_size(size - 1, 0) * interior


def pad_typing(p: PadParams, avals: Sequence[ShapedArray]) -> Sequence[ShapedArray]:
    x, value = avals
    if value.shape or value.dtype != x.dtype:
        raise ShapeError(
            f"pad: padding_value must be a scalar of dtype {x.dtype}, not {value}"
        )
    if len(p.padding_config) != x.ndim:
        raise ShapeError(
            "pad: padding_config must have (low, high, interior) for each dimension of "
            f"{x}, not {p.padding_config}"
        )
    shape = [
        padded(n, edges) for n, edges in zip(x.shape, p.padding_config, strict=True)
    ]
    if any(i < 0 for _, _, i in p.padding_config):
        raise ValueError(
            "pad: interior padding in padding_config must be nonnegative, not "
            f"{p.padding_config}"
        )
    if any(n < 0 for n in shape):
        raise ValueError(
            f"pad: Dimension size after padding is not at least 0: {p.padding_config} "
            f"turns {x} into shape {shape}"
        )
    return (ShapedArray(shape, x.dtype, x.weak_type and value.weak_type),)


def evaluate_pad(p: PadParams, x: np.ndarray, value: np.ndarray) -> np.ndarray:
    """Operand elements lie `interior + 1` apart; those outside the result are cut."""
    shape, source, target = pad_slices(x.shape, p.padding_config)
    result = np.empty(shape, x.dtype)
    result[...] = value
    result[target] = x[source]
    return result


@pure(1 << 10)
def pad_slices(
    shape: tuple[int, ...], config: tuple[tuple[int, int, int], ...]
) -> tuple[tuple[int, ...], Slices, Slices]:
    """The shape of the result, which elements it takes, and where they stand in it."""
    sizes = tuple([padded(n, edges) for n, edges in zip(shape, config, strict=True)])
    source, target = [], []
    for n, (low, _, interior), size in zip(shape, config, sizes, strict=True):
        step = interior + 1
        first = max(0, -(low // step))
        last = min(n, -((low - size) // step))
        source.append(builtins.slice(first, max(first, last)))
        start = low + first * step
        target.append(builtins.slice(start, start + max(last - first, 0) * step, step))
    return sizes, tuple(source), tuple(target)


def unpad(p: PadParams, ct: Array) -> Array:
    """The elements of a padded array that come from the operand."""
    edges = [(-low, -high, 0) for low, high, _ in p.padding_config]
    cut = pad(ct, 0.0, edges)
    steps = [interior + 1 for _, _, interior in p.padding_config]
    return slice(cut, (0,) * ct.ndim, cut.shape, steps)


def transpose_pad(
    engine: Engine, p: PadParams, cts: Sequence[Tangent], args: Sequence[Known]
) -> Sequence[Tangent | None]:
    """The padding value takes what lies on no element, and nothing is subtracted."""
    ct, (x, value) = cts[0], args
    assert isinstance(ct, Array)
    operand = unpad(p, ct) if isinstance(x, Linear) else None
    if not isinstance(value, Linear):
        return operand, None
    inner = pad(broadcast_in_dim(np.False_, x.aval.shape, ()), True, p.padding_config)
    outside = select(inner, ct, 0.0)
    return operand, engine.core.reduce_sum(outside, tuple(range(ct.ndim)))


def batch_pad(
    engine: Engine,
    p: PadParams,
    size: int,
    args: Sequence[Array],
    axes: Sequence[Axis],
) -> tuple[Sequence[Array], Sequence[Axis]]:
    """A batched value fills the result, under the operand padded with `True`."""
    (x, value), (axis, value_axis) = args, axes
    if value_axis is None:
        assert axis is not None
        config = inserted(p.padding_config, axis, (0, 0, 0))
        return pad_p.bind(PadParams(config), x, value), (axis,)
    front = at_front(x, axis, size)
    config = ((0, 0, 0), *p.padding_config)
    body = pad(front, zeros(front.aval.with_shape(())), config)
    outside = pad(broadcast_in_dim(np.False_, front.shape[1:], ()), True, config[1:])
    dims = tuple(range(1, body.ndim))
    chosen = broadcast_in_dim(outside, body.shape, dims)
    return (select(chosen, broadcast_in_dim(value, body.shape, (0,)), body),), (0,)


def draw_pad(random: Random) -> Sample[PadParams]:
    aval = draw_aval(random)
    config = []
    for n in aval.shape:
        interior = random.randint(0, 2)
        full = padded(n, (0, 0, interior))
        low = random.randint(-full, 2)
        config.append((low, random.randint(-(full + low), 2), interior))
    params = PadParams(tuple(config))
    return Sample(params, (aval, ShapedArray((), aval.dtype)))


def pad_splits(
    p: PadParams, avals: Sequence[ShapedArray], outs: Sequence[ShapedArray]
) -> Sequence[Splits]:
    """Dimensions stay split; XLA ends the process over parts that it cuts or stretches.

    (`spmd_partitioner.cc: Check failed` where the first part has no element left.)
    """
    plain = [min(edges) >= 0 and not edges[2] for edges in p.padding_config]
    labels = [i if flag else None for i, flag in enumerate(plain)]
    return connected(avals, [labels, []], [labels])


def lower_pad(
    e: Emitter, p: PadParams, xs: Sequence[Operand], outs: Sequence[ShapedArray]
) -> Sequence[Operand]:
    low, high, interior = (
        zip(*p.padding_config, strict=True) if outs[0].ndim else [()] * 3
    )
    return e.op(
        "stablehlo.pad",
        xs,
        outs,
        edge_padding_low=i64s(low),
        edge_padding_high=i64s(high),
        interior_padding=i64s(interior),
    )


WORDS: Final[Mapping[int, DType]] = MappingProxyType(
    {8: uint8, 16: uint16, 32: uint32, 64: uint64}
)
"""Numbers of so many bits."""
SEVERAL: Final = 1 << 16
"""Elements from which it pays that a loop has vectors."""


def alternates(p: PadParams) -> bool:
    """Whether a row of the result has padding on both sides, or inside.

    XLA's loop for a CPU then asks of each element where it comes from, and what is
    computed on the way is computed for one element at a time.
    """
    *_, (low, high, interior) = ((0, 0, 0), *p.padding_config)
    return interior > 0 or (low > 0 and high > 0)


def lower_pad_as_bits(
    e: Emitter, p: PadParams, xs: Sequence[Operand], outs: Sequence[ShapedArray]
) -> Sequence[Operand]:
    """Pad the bits, in a loop with vectors: it has more to do than to move elements.

    A million of them take 0.12 ms for 0.35.
    """
    word = WORDS[bit_width(outs[0].dtype)]
    bits = [
        e.op("stablehlo.bitcast_convert", (x,), (x.aval.with_dtype(word),)) for x in xs
    ]
    made = lower_pad(e, p, [x for (x,) in bits], [outs[0].with_dtype(word)])
    return e.op("stablehlo.bitcast_convert", made, outs)


pad_p = linear(
    "pad",
    PadParams,
    typing=pad_typing,
    evaluate=evaluate_pad,
    transpose=transpose_pad,
    batch=batch_pad,
    lower=lower_pad,
    kernel=Kernel(
        dict.fromkeys(
            [dtype for dtype in (*SIGNED, *FLOATING) if bit_width(dtype) in WORDS],
            lower_pad_as_bits,
        ),
        suits=lambda p, avals: alternates(p),
        least=SEVERAL,
        lowers=True,
    ),
    draw=draw_pad,
    sharding=pad_splits,
    traits=Traits(flops=no_flops),
)


def slice(
    operand: object,
    start_indices: Sequence[int],
    limit_indices: Sequence[int],
    strides: Sequence[int] | None = None,
) -> Array:
    """From start up to limit in steps of stride, in each dimension.

    Nothing counts from the end, and nothing may lie outside.

    Args:
        operand: an array.
        start_indices: the first element in each dimension, not negative.
        limit_indices: the end in each dimension, which is not part of the slice.
        strides: the steps in each dimension, at least 1; None for 1.

    Returns:
        An array of the dtype of `operand`, with ceil((limit - start) / stride) elements
        in each dimension.

    Raises:
        TypeError: not 0 <= start <= limit <= size, or a stride below 1.

    >>> import verax.numpy as vnp
    >>> from verax import lax
    >>> x = vnp.arange(12).reshape(3, 4)
    >>> lax.slice(x, (1, 0), (3, 4), (1, 3))
    Array([[ 4,  7],
           [ 8, 11]], dtype=int32)
    """
    starts = as_integers("slice", "start_indices", start_indices)
    limits = as_integers("slice", "limit_indices", limit_indices)
    steps = None if strides is None else as_integers("slice", "strides", strides)
    if steps is not None and all(step == 1 for step in steps):
        steps = None if len(steps) == len(starts) else steps
    whole = steps is None and starts == (0,) * len(limits)
    if whole and isinstance(operand, Array) and limits == operand.shape:
        return operand
    return slice_p.call(slice_params(starts, limits, steps), operand)


def slice_in_dim(
    operand: object,
    start_index: int | None,
    limit_index: int | None,
    stride: int = 1,
    axis: int = 0,
) -> Array:
    """`slice` along one dimension; negative indices count from its end.

    Args:
        operand: an array.
        start_index: the first element; None for 0.
        limit_index: the end, which is not part of the slice; None for the size.
        stride: the step, at least 1; 1 by default.
        axis: the dimension to work along; 0 by default.

    Returns:
        An array like `operand`, with ceil((limit - start) / stride) elements along
        `axis`.

    Raises:
        ValueError: there is no such dimension.
        TypeError: the limit lies before the start, or a stride is below 1.

    >>> import verax.numpy as vnp
    >>> from verax import lax
    >>> x = vnp.arange(8).reshape(2, 4)
    >>> lax.slice_in_dim(x, -3, None, 2, axis=1)
    Array([[1, 3],
           [5, 7]], dtype=int32)
    """
    shape = aval_of(operand).shape
    place = as_axis("slice_in_dim", axis, len(shape))
    size = shape[place]
    given = (
        0 if start_index is None else start_index,
        size if limit_index is None else limit_index,
    )
    start, limit = [
        i + size if i < 0 else i
        for i in as_integers("slice_in_dim", "the indices", given)
    ]
    starts, limits, strides = [0] * len(shape), list(shape), [1] * len(shape)
    starts[place], limits[place], strides[place] = start, limit, stride
    return slice(operand, starts, limits, strides)


def index_in_dim(
    operand: object, index: int, axis: int = 0, keepdims: bool = True
) -> Array:
    """The element at `index` along one dimension, which is kept by default.

    Args:
        operand: an array.
        index: a Python integer; a negative one counts from the end. For one that is
            known only when the program runs, see `dynamic_index_in_dim`.
        axis: the dimension to work along; 0 by default.
        keepdims: whether `axis` stays, with size 1.

    Returns:
        An array like `operand`, of size 1 along `axis` or without it.

    Raises:
        IndexError: the index lies outside.
        ValueError: there is no such dimension.

    >>> import verax.numpy as vnp
    >>> from verax import lax
    >>> x = vnp.arange(6).reshape(2, 3)
    >>> lax.index_in_dim(x, -1)
    Array([[3, 4, 5]], dtype=int32)
    >>> lax.index_in_dim(x, -1, axis=1, keepdims=False)
    Array([2, 5], dtype=int32)
    """
    shape = aval_of(operand).shape
    place = as_axis("index_in_dim", axis, len(shape))
    (i,) = as_integers("index_in_dim", "index", (index,))
    if not -shape[place] <= i < shape[place]:
        raise IndexError(
            f"index_in_dim: index {i} is out of bounds for size {shape[place]} of "
            f"dimension {place}"
        )
    start = i % shape[place]
    part = slice_in_dim(operand, start, start + 1, axis=place)
    return part if keepdims else squeeze(part, (place,))


def pad(
    operand: object,
    padding_value: object,
    padding_config: Sequence[tuple[int, int, int]],
) -> Array:
    """`operand` with (low, high, interior) padding in each dimension.

    Args:
        operand: an array.
        padding_value: the scalar to put in, of the dtype of `operand`.
        padding_config: for each dimension how many elements to put before the first,
            after the last, and between any two. A negative low or high cuts elements
            off, after interior padding.

    Returns:
        An array of the dtype of `operand`, with
        low + n + max(0, n - 1) * interior + high elements in each dimension.

    Raises:
        TypeError: the padding value is not a scalar of the operand's dtype.
        ValueError: interior is negative, or more is cut off than there is.

    >>> import verax.numpy as vnp
    >>> from verax import lax
    >>> x = vnp.array([1, 2, 3])
    >>> lax.pad(x, 0, [(2, 0, 1)])
    Array([0, 0, 1, 0, 2, 0, 3], dtype=int32)
    >>> lax.pad(x, 9, [(-1, 1, 0)])
    Array([2, 3, 9], dtype=int32)
    """
    config = []
    for edges in padding_config:
        triple = as_integers("pad", "padding_config", edges)
        if len(triple) != 3:
            raise ShapeError(
                f"pad: padding_config must hold (low, high, interior), not {edges}"
            )
        config.append(triple)
    x, value = alike(operand, padding_value)
    nothing = config == [(0, 0, 0)] * aval_of(x).ndim
    fits = aval_of(value).shape == () and aval_of(value).dtype == aval_of(x).dtype
    if nothing and fits and isinstance(x, Array):
        return x
    return pad_p.call(PadParams(tuple(config)), x, value)


ROWS: Rows = (slice_p, pad_p)
