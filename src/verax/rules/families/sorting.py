"""Floor 1: how sorts are lowered: order as integers, comparators, packed places.

One idea: XLA sorts one array of integers several times as fast as it runs a comparator
of floats, so floats go through it as integers of the same order, and what travels with
a key is gathered afterwards by the places that were sorted with it::

    sort(x:f32[n])       x as i32, sorted, back as f32
    sort(k, v, w)        (k as i32) << 32 | place, sorted; gather k, v, w
"""

from collections.abc import Sequence

import numpy as np

from verax.ir.avals import ShapedArray, iinfo
from verax.ir.dtypes import (
    DType,
    float32,
    int8,
    int16,
    int32,
    int64,
    is_bool,
    is_complex,
    is_float,
    is_unsigned,
    numpy_dtype,
    real_dtype,
    uint64,
)
from verax.rules.families.elementwise import SMALL, whole_bytes
from verax.rules.rows.emitter import (
    Emitter,
    Operand,
    Region,
    compared,
    converted,
    flag,
    i64,
    i64s,
    ints,
)
from verax.rules.values.sizes import kept

SAME_WIDTH = {1: int8, 2: int16, 4: int32, 8: int64}


def one(
    e: Emitter, name: str, operands: Sequence[Operand], out: ShapedArray, **text: str
) -> Operand:
    return e.op(f"stablehlo.{name}", operands, (out,), (), **text)[0]


def nan_bits(dtype: DType) -> int:
    """The bits of the usual NaN of a float dtype of 16 bits or more."""
    integer = SAME_WIDTH[dtype.itemsize]
    return int(np.array(np.nan, numpy_dtype(dtype)).view(integer)) & int(
        iinfo(integer).max
    )


def ordered(e: Emitter, x: Operand, *, signed_zeros: bool) -> Operand:
    """Integers in the order of the floats `x`: NaN last, -0.0 before 0.0 or equal."""
    dtype = SAME_WIDTH[x.aval.dtype.itemsize]
    bits = one(e, "bitcast_convert", (x,), x.aval.with_dtype(dtype))
    nan = e.constant(nan_bits(x.aval.dtype), bits.aval)
    bits = one(e, "select", (compared(e, x, "NE", x), nan, bits), bits.aval)
    if not signed_zeros:
        zero = compared(e, x, "EQ", e.constant(0, x.aval))
        bits = one(e, "select", (zero, e.constant(0, bits.aval), bits), bits.aval)
    return mirrored(e, bits)


def mirrored(e: Emitter, bits: Operand) -> Operand:
    """Negative integers in reverse order; its own inverse."""
    negative = compared(e, bits, "LT", e.constant(0, bits.aval))
    mask = e.constant(int(iinfo(bits.aval.dtype).max), bits.aval)
    turned = one(e, "xor", (bits, mask), bits.aval)
    return one(e, "select", (negative, turned, bits), bits.aval)


def sort_by_first(
    e: Emitter, operands: Sequence[Operand], dimension: int, stable: bool
) -> tuple[Operand, ...]:
    """Sort integers or booleans in the first operand, the others with it."""
    return sort_op(
        e, operands, dimension, stable, lambda xs: (compared(e, xs[0], "LT", xs[1]),)
    )


def sort_op(
    e: Emitter,
    operands: Sequence[Operand],
    dimension: int,
    stable: bool,
    before: Region,
) -> tuple[Operand, ...]:
    scalars = [x.aval.with_shape(()) for x in operands for _ in range(2)]
    return e.op(
        "stablehlo.sort",
        operands,
        [x.aval for x in operands],
        ((scalars, before),),
        dimension=i64(dimension),
        is_stable=flag(stable),
    )


def lower_sort(
    e: Emitter,
    operands: Sequence[Operand],
    dimension: int,
    stable: bool,
    keys: int,
) -> tuple[Operand, ...]:
    """The operands sorted by the first `keys` of them along `dimension`."""
    if any(x.aval.dtype in SMALL for x in operands):
        wide = [whole_bytes(e, x) for x in operands]
        result = lower_sort(e, wide, dimension, stable, keys)
        pairs = zip(result, operands, strict=True)
        return tuple([converted(e, y, x.aval.dtype) for y, x in pairs])
    key = operands[0]
    dtype = key.aval.dtype
    if keys > 1 or is_complex(dtype):
        return sort_op(
            e, operands, dimension, stable, lambda xs: (lexicographic(e, xs, keys),)
        )
    if len(operands) == 1:
        return (sort_one(e, key, dimension, stable),)
    if not is_float(dtype) and len(operands) == 2:
        return sort_by_first(e, operands, dimension, stable)
    if is_float(dtype):
        key = ordered(e, widened(e, key), signed_zeros=False)
    if is_bool(dtype):
        key = converted(e, key, int8)
    return gather_sorted(e, operands, places_of(e, key, dimension), dimension)


def widened(e: Emitter, x: Operand) -> Operand:
    """Floats of 8 bits as float32: their formats have no common order of bits."""
    return converted(e, x, float32) if x.aval.dtype.itemsize == 1 else x


def sort_one(e: Emitter, x: Operand, dimension: int, stable: bool) -> Operand:
    """One array sorted; among equal floats -0.0 stands before 0.0."""
    if not is_float(x.aval.dtype):
        return sort_by_first(e, (x,), dimension, stable)[0]
    wide = widened(e, x)
    key = ordered(e, wide, signed_zeros=True)
    (result,) = sort_by_first(e, (key,), dimension, False)
    y = one(e, "bitcast_convert", (mirrored(e, result),), wide.aval)
    return converted(e, y, x.aval.dtype)


def places_of(e: Emitter, key: Operand, dimension: int) -> Operand:
    """The origins of the sorted keys, in order; equal keys stay in order.

    Keys of up to 32 bits stand above their places in one integer, so that one array is
    sorted and no two elements are equal. That has a sign only if keys have one, or the
    largest keys would become its negative values.
    """
    place = ShapedArray(key.aval.shape, int32)
    if key.aval.dtype.itemsize > 4:
        index = one(e, "iota", (), place, iota_dimension=i64(dimension))
        return sort_by_first(e, (key, index), dimension, True)[1]
    dtype = uint64 if is_unsigned(key.aval.dtype) else int64
    wide = ShapedArray(key.aval.shape, dtype)
    above = converted(e, key, dtype)
    above = one(e, "shift_left", (above, e.constant(32, wide)), wide)
    index = one(e, "iota", (), wide, iota_dimension=i64(dimension))
    packed = one(e, "or", (above, index), wide)
    (out,) = sort_by_first(e, (packed,), dimension, False)
    return converted(e, out, int32)


def gather_sorted(
    e: Emitter, operands: Sequence[Operand], places: Operand, dimension: int
) -> tuple[Operand, ...]:
    """Each operand at `places` along `dimension`."""
    rank = places.aval.ndim
    others = ints(kept(rank, (dimension,)))
    batching = (
        f"operand_batching_dims = {others}, start_indices_batching_dims = {others}, "
        if rank > 1
        else ""
    )
    numbers = (
        f"#stablehlo.gather<collapsed_slice_dims = [{dimension}], {batching}"
        f"start_index_map = [{dimension}], index_vector_dim = {rank}>"
    )
    return tuple(
        one(
            e,
            "gather",
            (x, places),
            x.aval,
            dimension_numbers=numbers,
            slice_sizes=i64s((1,) * rank),
            indices_are_sorted="false",
        )
        for x in operands
    )


def lexicographic(e: Emitter, xs: Sequence[Operand], keys: int) -> Operand:
    """Whether one tuple of scalars stands before another, by its first `keys`."""
    pairs = [
        pair
        for i in range(keys)
        for pair in zip(parts(e, xs[2 * i]), parts(e, xs[2 * i + 1]), strict=True)
    ]
    out: Operand | None = None
    for x, y in reversed(pairs):
        kind = "TOTALORDER" if is_float(x.aval.dtype) else ""
        less = compared(e, x, "LT", y, kind)
        if out is not None:
            same = compared(e, x, "EQ", y, kind)
            rest = one(e, "and", (same, out), less.aval)
            less = one(e, "or", (less, rest), less.aval)
        out = less
    assert out is not None
    return out


def parts(e: Emitter, x: Operand) -> tuple[Operand, ...]:
    """The parts that compare a scalar: one zero, one NaN; real, then imaginary."""
    dtype = x.aval.dtype
    if is_complex(dtype):
        part = x.aval.with_dtype(real_dtype(dtype))
        return (
            *parts(e, one(e, "real", (x,), part)),
            *parts(e, one(e, "imag", (x,), part)),
        )
    if not is_float(dtype):
        return (x,)
    x = widened(e, x)
    zero, nan = e.constant(0, x.aval), e.constant(np.nan, x.aval)
    y = one(e, "select", (compared(e, x, "EQ", zero), zero, x), x.aval)
    return (one(e, "select", (compared(e, x, "NE", x), nan, y), x.aval),)
