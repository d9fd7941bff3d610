"""Floor 2: changes of dtype: by value, by bits, by precision.

One idea: a conversion between inexact dtypes is linear, and converts back under
transposition; the real part is what a complex number keeps as a real one::

    convert_element_type(np.float32(300), np.uint8)     # 255: floats saturate
"""

from collections.abc import Sequence
from random import Random

import numpy as np
from attrs import frozen

from verax.ir.avals import ShapedArray, bit_width, iinfo
from verax.ir.dtypes import (
    DType,
    DTypeLike,
    as_dtype,
    is_bool,
    is_complex,
    is_float,
    is_inexact,
    is_integer,
    is_signed,
    numpy_dtype,
    real_dtype,
)
from verax.ir.jaxpr import Params
from verax.ir.meshes import Splits, Terms
from verax.ops import base
from verax.rules.families.elementwise import SHAPES, parametric
from verax.rules.families.linear import zero_jvp
from verax.rules.rows.eager_costs import conversion, huge
from verax.rules.rows.emitter import Emitter, Operand, compared
from verax.rules.rows.row import (
    Axis,
    Domain,
    Engine,
    Narrow,
    NDArray,
    Row,
    Rows,
    Sample,
    Traits,
    Work,
    Zero,
    no_flops,
)
from verax.rules.rows.type_shardings import (
    connected,
    linear_terms,
    stacked_along,
    whole_terms,
)
from verax.rules.values.array import Array
from verax.rules.values.constants import ANYTHING, FLOAT, KEY, kind_name
from verax.rules.values.memo import pure
from verax.rules.values.state import asked_dtype


@frozen(eq=False, repr=False)
class ConvertParams(Params):
    """The dtype of the result, and whether it is weak."""

    new_dtype: DType
    weak_type: bool = False


def convert_typing(
    p: ConvertParams, avals: Sequence[ShapedArray]
) -> Sequence[ShapedArray]:
    (x,) = avals
    if "other" in (kind_name(x.dtype), kind_name(p.new_dtype)):
        raise TypeError(
            f"convert_element_type takes arrays of numbers, not {x} to {p.new_dtype}"
        )
    if x.dtype != p.new_dtype and (KEY.holds(x.dtype) or KEY.holds(p.new_dtype)):
        raise ValueError(
            f"Cannot convert_element_type from {x.dtype} to {p.new_dtype}: use "
            "verax.random.key_data for the words of keys, and wrap_key_data for keys "
            "with these words"
        )
    return (ShapedArray(x.shape, p.new_dtype, p.weak_type),)


def evaluate_convert(p: ConvertParams, x: NDArray) -> NDArray:
    dtype = numpy_dtype(p.new_dtype)
    if is_bool(dtype):
        return np.asarray(x != 0)
    if is_complex(x.dtype) and not is_complex(dtype):
        x = x.real
    if is_integer(dtype) and is_float(x.dtype):
        return saturate(base.wide(x), dtype)
    if is_integer(x.dtype) and x.dtype.kind == "V":
        x = x.astype(np.int8)  # ml_dtypes has no casts between its own integers
    return x.astype(dtype)  # integers of four bits wrap round, like all others


def saturate(x: NDArray, dtype: np.dtype[np.generic]) -> NDArray:
    """Floats as integers: towards zero, to the nearest bound outside, 0 for NaN."""
    low, high, whole = limits_of(dtype)
    inside = (x > low) & (x < high)
    if inside.all():
        return x.astype(whole).astype(dtype)
    values = np.where(inside, x, 0).astype(whole).astype(dtype)
    below = np.where(x <= low, np.array(low).astype(dtype), values)
    return np.where(x >= high, np.array(high - 1, object).astype(dtype), below)


@pure()
def limits_of(dtype: np.dtype[np.generic]) -> tuple[int, int, type[np.generic]]:
    """The least integer, the first above the largest, and a wide type for both."""
    signed = is_signed(dtype)
    high: int = 2 ** (bit_width(dtype) - signed)
    return (-high, high, np.int64) if signed else (0, high, np.uint64)


def lower_convert(
    e: Emitter, p: ConvertParams, xs: Sequence[Operand], outs: Sequence[ShapedArray]
) -> Sequence[Operand]:
    (x,), (out,) = xs, outs
    if x.aval.dtype == p.new_dtype:
        return xs
    if is_bool(p.new_dtype):
        return (compared(e, x, "NE", e.constant(0, x.aval)),)
    if is_complex(x.aval.dtype) and not is_complex(p.new_dtype):
        part = x.aval.with_dtype(real_dtype(x.aval.dtype))
        (x,) = e.op("stablehlo.real", xs, (part,))
        if part.dtype == p.new_dtype:
            return (x,)
    return e.op("stablehlo.convert", (x,), (out,))


def draw_convert(random: Random) -> Sample[ConvertParams]:
    params = ConvertParams(random.choice(ANYTHING.samples()), random.random() < 0.2)
    aval = ShapedArray(
        random.choice(SHAPES),
        random.choice(ANYTHING.samples()),
        random.random() < 0.2,
    )
    return Sample(params, (aval,))


def convert_terms(p: ConvertParams, avals: Sequence[ShapedArray]) -> Terms:
    """Terms can be converted each if nothing is rounded down or wraps otherwise."""
    old, new = avals[0].dtype, p.new_dtype
    integers = is_integer(old) and is_integer(new) and new.itemsize <= old.itemsize
    linear = integers or (is_inexact(new) and not is_bool(old))
    return (linear_terms if linear else whole_terms)(p, avals)


convert_element_type_p = parametric(
    "convert_element_type",
    ConvertParams,
    evaluate_convert,
    typing=convert_typing,
    jvp=lambda p, x, y, t: (
        convert(t, p.new_dtype, p.weak_type)
        if is_inexact(p.new_dtype)
        else Zero(y.aval.tangent())
    ),
    transpose=lambda p, ct, x: convert(ct, x.aval.dtype, x.aval.weak_type),
    lower=lower_convert,
    params_of=lambda random, dtype: ConvertParams(dtype),
    terms=convert_terms,
    draw=draw_convert,
    costly=conversion,
    traits=Traits(Work.CHEAP, fma=True, makes_nans=False, additive=True),
)


@frozen(eq=False, repr=False)
class BitcastParams(Params):
    """The dtype as which the bits are read."""

    new_dtype: DType


def bitcast_typing(
    p: BitcastParams, avals: Sequence[ShapedArray]
) -> Sequence[ShapedArray]:
    (x,) = avals
    if x.dtype == p.new_dtype:
        return (x.strong(),)
    if not all(is_integer(d) or is_float(d) for d in (x.dtype, p.new_dtype)):
        raise TypeError(
            "bitcast_convert_type takes integers and real floats, not "
            f"{x.dtype} to {p.new_dtype}"
        )
    old = bit_width(x.dtype)
    new = bit_width(p.new_dtype)
    if old == new:
        return (ShapedArray(x.shape, p.new_dtype),)
    if new < old:
        return (ShapedArray((*x.shape, old // new), p.new_dtype),)
    if not x.shape or x.shape[-1] != new // old:
        raise ValueError(
            f"bitcast_convert_type to {p.new_dtype} needs a last dimension of size "
            f"{new // old}, whose elements make up one of {new} bits, not {x}"
        )
    return (ShapedArray(x.shape[:-1], p.new_dtype),)


def same_leading(
    p: BitcastParams, avals: Sequence[ShapedArray], outs: Sequence[ShapedArray]
) -> Sequence[Splits]:
    """The leading dimensions; those that elements become, or come from, are whole."""
    kept = min(avals[0].ndim, outs[0].ndim)
    places = [stacked_along(x.ndim, kept) for x in (*avals, *outs)]
    return connected(avals, places[:1], places[1:])


def evaluate_bitcast(p: BitcastParams, x: NDArray) -> NDArray:
    dtype = numpy_dtype(p.new_dtype)
    if x.dtype == dtype:
        return x
    old, new = bit_width(x.dtype), bit_width(dtype)
    if old == new >= 8:
        return x.view(dtype)
    octets = np.ascontiguousarray(x).reshape(*x.shape, 1).view(np.uint8)
    bits = np.unpackbits(octets, axis=-1, bitorder="little")[..., :old]
    if new < old:
        bits = bits.reshape(*x.shape, old // new, new)
    elif new > old:
        bits = bits.reshape(*x.shape[:-1], new)
    stored = np.zeros((*bits.shape[:-1], 8 * dtype.itemsize), np.uint8)
    stored[..., :new] = bits
    packed = np.packbits(stored, axis=-1, bitorder="little")
    if new < 8 and not dtype.name.startswith(("u", "float")):
        return base.from_bits(packed[..., 0].astype(np.uint64), dtype)
    return packed.view(dtype).reshape(bits.shape[:-1])


def batch_bitcast(
    engine: Engine,
    p: BitcastParams,
    size: int,
    args: Sequence[Array],
    axes: Sequence[Axis],
) -> tuple[Sequence[Array], Sequence[Axis]]:
    (x,), (axis,) = args, axes
    assert axis is not None
    old = bit_width(x.dtype)
    new = bit_width(p.new_dtype)
    if new > old and axis == x.ndim - 1:
        order = (axis, *range(axis))
        x, axis = engine.core.transpose(x, order), 0
    return bitcast_convert_type_p.bind(p, x), (axis,)


def draw_bitcast(random: Random) -> Sample[BitcastParams]:
    dtypes = [d for d in ANYTHING.samples() if is_integer(d) or is_float(d)]
    old, new = random.choice(dtypes), random.choice(dtypes)
    ratio = bit_width(new) // bit_width(old)
    shape = random.choice(SHAPES) + ((ratio,) if ratio > 1 else ())
    return Sample(BitcastParams(new), (ShapedArray(shape, old),))


bitcast_convert_type_p: Row[BitcastParams] = Row(
    "bitcast_convert_type",
    BitcastParams,
    typing=bitcast_typing,
    evaluate=lambda engine, p, xs: (evaluate_bitcast(p, xs[0]),),
    jvp=zero_jvp(lambda: bitcast_convert_type_p),
    batch=batch_bitcast,
    lower=lambda e, p, xs, outs: (
        xs
        if xs[0].aval.dtype == p.new_dtype
        else e.op("stablehlo.bitcast_convert", xs, outs)
    ),
    draw=draw_bitcast,
    domains=(Domain(smooth=False),),
    sharding=same_leading,
    traits=Traits(flops=no_flops, makes_nans=False, narrow=Narrow.WIDE),
)


@frozen(eq=False, repr=False)
class PrecisionParams(Params):
    """The format to which floats are rounded."""

    exponent_bits: int
    mantissa_bits: int


reduce_precision_p = parametric(
    "reduce_precision",
    PrecisionParams,
    lambda p, x: base.narrow(x, p.exponent_bits, p.mantissa_bits),
    jvp=lambda p, x, y, t: reduce_precision(t, p.exponent_bits, p.mantissa_bits),
    transpose=lambda p, ct, x: reduce_precision(ct, p.exponent_bits, p.mantissa_bits),
    lower=lambda e, p, xs, outs: e.op(
        "stablehlo.reduce_precision",
        xs,
        outs,
        exponent_bits=f"{p.exponent_bits} : i32",
        mantissa_bits=f"{p.mantissa_bits} : i32",
    ),
    accepts=FLOAT,
    params_of=lambda random, dtype: PrecisionParams(
        random.randint(2, 11), random.randint(1, 52)
    ),
    domains=Domain(smooth=False),
    costly=huge,
    traits=Traits(makes_nans=False, additive=True),
)


def convert(x: object, dtype: DType, weak_type: bool = False) -> Array:
    """x with exactly this dtype and weakness; x itself if it has them."""
    if isinstance(x, Array):
        aval = x.aval
        if aval.dtype == dtype and aval.weak_type == weak_type:
            return x
    return convert_element_type_p.call(ConvertParams(dtype, weak_type), x)


def convert_element_type(operand: object, new_dtype: DTypeLike) -> Array:
    """The elements as numbers of another dtype, of the same shape and not weak.

    Floats become integers towards zero and saturate (NaN is 0), integers wrap, complex
    numbers lose their imaginary part, and whatever is not zero is true.

    Args:
        operand: an array or scalar of numbers or booleans.
        new_dtype: a dtype of numbers or its name; one of 64 bits means that of 32
            unless x64 is on.

    Returns:
        An array of the shape of `operand` and of dtype `new_dtype`, not weak.

    Raises:
        TypeError: `new_dtype` is not a dtype of numbers.
        ValueError: it is an array.

    >>> import verax
    >>> x = np.array([300.7, -1.0, np.nan], np.float32)
    >>> convert_element_type(x, np.uint8)
    Array([255,   0,   0], dtype=uint8)
    """
    check_no_array(new_dtype)
    dtype = asked_dtype(new_dtype)
    if type(operand) is int and not -(2**31) <= operand < 2**31:
        operand = converted_int(operand, dtype)
    return convert(operand, dtype)


def check_no_array(dtype: object) -> None:
    """Raise ValueError for an array in the place of its dtype."""
    if isinstance(dtype, Array | np.ndarray):
        raise ValueError("an array is not a dtype; pass dtype=x.dtype")


def converted_int(value: int, dtype: DType) -> np.ndarray:
    """A Python int as a scalar of another dtype; to integers it wraps."""
    if is_integer(dtype):
        limits = iinfo(dtype)
        value = (value - limits.min) % (limits.max - limits.min + 1) + limits.min
    return np.asarray(value, numpy_dtype(dtype))


def bitcast_convert_type(operand: object, new_dtype: DTypeLike) -> Array:
    """The bits of the elements read as another dtype.

    To a narrower dtype, a last dimension with the parts (lowest first) is added; to a
    wider one, the last dimension is consumed.

    Args:
        operand: an array or scalar of integers or floats. For a wider dtype its last
            dimension has as many elements as make up one of the result.
        new_dtype: a dtype of integers or floats, or its name; the dtype of `operand`
            changes nothing.

    Returns:
        An array of dtype `new_dtype`, of the shape of `operand` with a last dimension
        more or less where the widths differ.

    Raises:
        TypeError: one dtype is boolean or complex, and the other is not the same.
        ValueError: the last dimension does not make whole elements.

    >>> import verax
    >>> bitcast_convert_type(np.float32(1), np.uint8)
    Array([  0,   0, 128,  63], dtype=uint8)
    """
    check_no_array(new_dtype)
    dtype = asked_dtype(as_dtype(new_dtype))
    return bitcast_convert_type_p.call(BitcastParams(dtype), operand)


def reduce_precision(operand: object, exponent_bits: int, mantissa_bits: int) -> Array:
    """Floats rounded to a format of so many bits, in their own dtype.

    Overflow gives infinities and subnormals of the format give zeros. A tangent is
    rounded in the same way.

    Args:
        operand: a float array or scalar.
        exponent_bits: the number of bits of the exponent, at least 1; 8 in float32 and
            bfloat16, 5 in float16.
        mantissa_bits: the number of bits after the leading one, at least 0; 23 in
            float32, 10 in float16, 7 in bfloat16.

    Returns:
        An array of the shape and dtype of `operand`.

    Raises:
        TypeError: `operand` does not hold real floats.
        ValueError: `exponent_bits` is not positive or `mantissa_bits` is negative.

    >>> import verax.numpy as vnp
    >>> from verax import lax
    >>> x = vnp.array([1.2345678, 70000.0, 1e-8])
    >>> lax.reduce_precision(x, exponent_bits=5, mantissa_bits=10)
    Array([1.234375,      inf, 0.      ], dtype=float32)
    """
    if exponent_bits < 1 or mantissa_bits < 0:
        raise ValueError(
            "reduce_precision takes at least one exponent bit and a nonnegative "
            f"number of mantissa bits, not {exponent_bits} and {mantissa_bits}"
        )
    params = PrecisionParams(int(exponent_bits), int(mantissa_bits))
    return reduce_precision_p.call(params, operand)


ROWS: Rows = (
    convert_element_type_p,
    bitcast_convert_type_p,
    reduce_precision_p,
)
