"""Floor 6: what samplers share: how they are called, and how parameters meet samples.

One idea: every sampler is called with a key, a shape and a dtype, which one function
checks; what is left to say is how samples follow from them::

    typed, target, sizes = asked("t", key, shape, dtype, df)
    from_key(t_of, "t", key, shape, dtype, out_sharding, df)  # t_of(typed, df, ...)
"""

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeGuard

import numpy as np

from verax.api.jit import jit
from verax.api.tracing.apply import is_tracing
from verax.ir.avals import Shape, finfo, iinfo
from verax.ir.dtypes import (
    DType,
    DTypeLike,
    canonical,
    int32,
    is_float,
    is_inexact,
    is_integer,
    is_unsigned,
    numpy_dtype,
    uint8,
    uint16,
    uint32,
    uint64,
)
from verax.numpy.arguments.arguments import (
    ArrayLike,
    as_array,
    as_shape,
    broadcast_shapes_of,
    chosen_dtype,
    constant_of,
    default_float,
    default_integer,
    stretched,
)
from verax.ops.elementwise import arith
from verax.ops.elementwise.arith import add, mul, sub
from verax.ops.elementwise.bits import bitwise_and, bitwise_or, shift_right_logical
from verax.ops.elementwise.compare import gt, le
from verax.ops.elementwise.convert import BitcastParams, bitcast_convert_type_p, convert
from verax.ops.elementwise.remainder import rem
from verax.ops.elementwise.select import select
from verax.ops.random.keys import random_bits, random_split
from verax.ops.structure.reshard import call_sharded
from verax.ops.structure.shape import reshape
from verax.random.keys import one_key, pieces
from verax.rules.values.array import Array
from verax.rules.values.constants import aval_of
from verax.rules.values.memo import pure
from verax.rules.values.state import STATE

# -----------------------------------------------------------------------------
# The floating-point part of a sampler, compiled also when it runs eagerly.
#
# NumPy and XLA agree on integers and differ in the last digit of a logarithm, so what
# follows the random bits is a function of its own, which an eager call runs as a
# compiled program; a draw then has the same bits everywhere::
#
#     compiled(normal_of, symmetric(key, shape, dtype))
#     compiled(poisson_of, key, rate, shape=(3,))      # keywords are static
#     drawn(unit_of, key, shape=(3,), dtype=float32)   # a program once it pays
#
# A whole sampler gives the same bits either way, so it is compiled only where that
# pays: NumPy takes 0.1 ms for a small draw, a program 0.01 ms and its compilation 50
# ms.


@pure(256)
def program(
    function: Callable[..., Array], static: tuple[str, ...] = ()
) -> Callable[..., Array]:
    """`function` under jit, one object for each function."""
    return jit(function, static_argnames=static)


def compiled(
    function: Callable[..., Array], *operands: object, **static: object
) -> Array:
    """`function(*operands)`: as equations under a trace, else as a program."""
    if is_tracing():
        return function(*operands, **static)
    if static:
        return program(function, tuple(sorted(static)))(*operands, **static)
    return program(function)(*operands)


# Draws of a kind before it is compiled, and elements from which it is at once.
PATIENCE = 50
LARGE = 1 << 14


class Sampler:
    """A sampler with its static arguments, and how often it has run in NumPy."""

    def __init__(self, function: Callable[..., Array], static: dict[str, Any]) -> None:
        self.count = PATIENCE if math.prod(static["shape"]) >= LARGE else 0
        self.program = jit(partial(function, **static))


@pure(1 << 10)
def sampler(
    function: Callable[..., Array], static: tuple[tuple[str, object], ...]
) -> Sampler:
    """One object for each kind of draw."""
    return Sampler(function, dict(static))


def drawn(function: Callable[..., Array], *operands: object, **static: object) -> Array:
    """`function(*operands, **static)`, as a program where that pays.

    Its results have the same bits in NumPy and compiled; `shape` is among the keywords.
    """
    if is_tracing():
        return function(*operands, **static)
    out = sampler(function, tuple(static.items()))
    if out.count < PATIENCE:
        out.count += 1
        return function(*operands, **static)
    return out.program(*operands)


type Sizes = int | Sequence[int]
# From the name of a sampler and the dtype that a caller asks for, the dtype it has.
type Kind = Callable[[str, DTypeLike | None], DType]


def float_dtype(name: str, dtype: DTypeLike | None) -> DType:
    """The float dtype that a caller asks for, or the default one.

    Raises:
        ValueError: it is not a real floating dtype.
    """
    out = chosen_dtype(name, dtype)
    if out is None:
        return default_float()
    if not is_float(out):
        raise ValueError(f"dtype argument to `{name}` must be a float dtype, got {out}")
    return out


def inexact_dtype(name: str, dtype: DTypeLike | None) -> DType:
    """The float or complex dtype that a caller asks for, or the default float.

    Raises:
        ValueError: it is neither.
    """
    out = chosen_dtype(name, dtype) or default_float()
    if not is_inexact(out):
        raise ValueError(
            f"dtype argument to `{name}` must be a float or complex dtype, got {out}"
        )
    return out


def integer_dtype(name: str, dtype: DTypeLike | None) -> DType:
    """The integer dtype that a caller asks for, or the default one.

    Raises:
        TypeError: it is not an integer dtype.
    """
    out = chosen_dtype(name, dtype) or default_integer()
    if not is_integer(out):
        raise TypeError(f"{name}: dtype must be an integer type, not {out}")
    return out


def result_shape(name: str, shape: Sizes | None, *parameters: object) -> Shape:
    """The shape of the samples: `shape`, or that of the parameters together.

    Raises:
        ValueError: the parameters do not broadcast to `shape`.
    """
    if not parameters:
        return as_shape(name, shape)
    shapes = [aval_of(x).shape for x in parameters]
    if shape is None:
        return broadcast_shapes_of(name, shapes)
    sizes = as_shape(name, shape)
    if any(shapes) and broadcast_shapes_of(name, [sizes, *shapes]) != sizes:
        raise ValueError(
            f"{name}: parameters of shapes {', '.join(map(str, shapes))} do not "
            f"broadcast to the requested shape {sizes}"
        )
    return sizes


def asked(
    name: str,
    key: ArrayLike,
    shape: Sizes | None,
    dtype: DTypeLike | None,
    *parameters: object,
    kind: Kind = float_dtype,
) -> tuple[Array, DType, Shape]:
    """Checks what every sampler takes: its key, its dtype of a kind and its shape.

    Raises:
        TypeError: `key` is not a key.
        ValueError: `dtype` is of another kind, the parameters do not fit `shape`, or
            `key` is several keys.
    """
    typed = one_key(name, key)
    return typed, kind(name, dtype), result_shape(name, shape, *parameters)


def parameter(x: object, dtype: DType, shape: Shape) -> Any:
    """A parameter in `dtype`: a constant if it is one number, else in `shape`."""
    if isinstance(x, Array):
        return stretched(convert(x, dtype), shape) if x.shape else convert(x, dtype)
    if aval_of(x).shape:
        return stretched(np.asarray(x, numpy_dtype(dtype)), shape)
    return constant_of(x, dtype)


def from_key(
    draw: Callable[..., Array],
    name: str,
    key: ArrayLike,
    shape: Sizes | None,
    dtype: DTypeLike | None,
    out_sharding: object,
    *parameters: object,
    kind: Kind = float_dtype,
    **static: object,
) -> Array:
    """The sampler `name`, for which `draw` splits the key and takes the parameters."""
    if out_sharding is not None:
        return call_sharded(from_key, locals(), name)
    typed, target, sizes = asked(name, key, shape, dtype, *parameters, kind=kind)
    return compiled(draw, typed, *parameters, shape=sizes, dtype=target, **static)


# -----------------------------------------------------------------------------
# Random bits, and the uniform floats and integers made of them.
#
# The mantissa of a float in [1, 2) is filled with random bits and 1 is
# subtracted, so that all results are equally spaced and exact::
#
#     uniform(key, (3,))             # shift, or, bitcast, sub


WORDS = {8: uint8, 16: uint16, 32: uint32, 64: uint64}


def unsigned_dtype(name: str, dtype: DTypeLike | None) -> DType:
    """The unsigned dtype that a caller asks for, or the default one.

    Raises:
        ValueError: it is not an unsigned dtype.
    """
    out = chosen_dtype(name, dtype) or canonical(np.uint64, STATE.enable_x64)
    if not is_unsigned(out):
        raise ValueError(
            f"dtype argument to {name} must be an unsigned int dtype, not {out}"
        )
    return out


def bits(
    key: ArrayLike,
    shape: Sizes = (),
    dtype: DTypeLike | None = None,
    *,
    out_sharding: object = None,
) -> Array:
    """Random unsigned integers of all values.

    Args:
        key: one key, as `random.key` makes it.
        shape: the shape of the result, a size or several; by default one number.
        dtype: the dtype of the result, of unsigned integers; by default uint32, or
            uint64 with x64.
        out_sharding: how the result is split over an explicit mesh; None leaves it to
            the compiler.

    Returns:
        An array of `shape` and `dtype`.

    Raises:
        TypeError: `key` is not a key.
        ValueError: `dtype` is not unsigned, or `key` is several keys.

    >>> import verax
    >>> verax.random.bits(verax.random.key(0), (2,))
    Array([4070199207, 4202968722], dtype=uint32)
    """
    if out_sharding is not None:
        return call_sharded(bits, locals())
    typed, target, sizes = asked("bits", key, shape, dtype, kind=unsigned_dtype)
    return random_bits(typed, target.itemsize * 8, sizes)


def unit(key: Array, shape: Shape, dtype: DType) -> Array:
    """Uniform floats in [0, 1), multiples of the precision of `dtype`."""
    return drawn(unit_of, key, shape=shape, dtype=dtype)


def unit_of(key: Array, shape: Shape, dtype: DType) -> Array:
    """`unit` by random bits."""
    width, amount, one, as_float = mantissa_parts(dtype)
    array, word = random_bits(key, width, shape), WORDS[dtype.itemsize * 8]
    if width != dtype.itemsize * 8:
        array = convert(array, word)
    array = shift_right_logical(array, constant_of(amount, word))
    array = bitwise_or(array, constant_of(one, word))
    return sub(bitcast_convert_type_p.call(as_float, array), 1.0)


@pure(64)
def mantissa_parts(dtype: DType) -> tuple[int, int, int, BitcastParams]:
    """The bits to draw, how far to shift them, the bits of 1, and the way back."""
    width, mantissa = dtype.itemsize * 8, finfo(dtype).nmant
    # Too few bits of a bfloat16 would be left after a shift of 16.
    drawn = 8 if mantissa < 8 else width
    one = np.ones((), numpy_dtype(dtype)).view(numpy_dtype(WORDS[width]))
    return drawn, drawn - mantissa, int(one), BitcastParams(dtype)


def is_constant(x: object) -> TypeGuard[np.ndarray]:
    """Whether a bound is one number that is known now."""
    return isinstance(x, np.ndarray) and not x.ndim


def scaled(array: Array, low: object, high: object) -> Array:
    """Uniform floats in [low, high) from those in [0, 1), bounds of their dtype."""
    if is_constant(low) and is_constant(high):
        with np.errstate(all="ignore"):
            span: object = np.asarray(high - low, high.dtype)
    else:
        span = sub(high, low)
    if not (is_constant(span) and span == 1):
        array = mul(array, span)
    return arith.max(low, add(array, low))


def single_shape(minval: object, maxval: object) -> Shape:
    """The shape of a lower bound of one element, if the upper one has one, too."""
    low, high = aval_of(minval), aval_of(maxval)
    return low.shape if low.size == high.size == 1 else ()


def uniform(
    key: ArrayLike,
    shape: Sizes = (),
    dtype: DTypeLike | None = None,
    minval: ArrayLike = 0.0,
    maxval: ArrayLike = 1.0,
    *,
    out_sharding: object = None,
) -> Array:
    """Uniform floats in [minval, maxval).

    Args:
        key: one key, as `random.key` makes it.
        shape: the shape of the result, to which the bounds broadcast, by default one
            number; where it is (), a lower bound of one element gives the result its
            shape.
        dtype: the dtype of the result, real and floating; by default float32, or
            float64 with x64.
        minval: the lower bound, an array or scalar, by default 0.
        maxval: the upper bound, which is left out, by default 1.
        out_sharding: how the result is split over an explicit mesh; None leaves it to
            the compiler.

    Returns:
        An array of `shape` and `dtype`; between 0 and 1 the elements are multiples of
        the precision of the dtype.

    Raises:
        TypeError: `key` is not a key.
        ValueError: `dtype` is not floating, bounds do not fit `shape`, or `key` is
            several keys.

    >>> import verax
    >>> verax.random.uniform(verax.random.key(0), (2,))
    Array([0.947667 , 0.9785799], dtype=float32)
    """
    if out_sharding is not None:
        return call_sharded(uniform, locals())
    shape = as_shape("uniform", shape)
    one = () if shape else single_shape(minval, maxval)
    if one:
        out = uniform(key, (), dtype, reshape(minval, ()), reshape(maxval, ()))
        return reshape(out, one)
    typed, result, sizes = asked("uniform", key, shape, dtype, minval, maxval)
    low, high = (parameter(x, result, sizes) for x in (minval, maxval))
    samples = unit(typed, sizes, result)
    if is_constant(low) and is_constant(high) and low == 0 and high == 1:
        return samples
    return compiled(scaled, samples, low, high)


def from_uniform(
    formula: Callable[..., Array],
    name: str,
    key: ArrayLike,
    shape: Sizes | None,
    dtype: DTypeLike | None,
    out_sharding: object,
    *parameters: object,
) -> Array:
    """The sampler `name`, a formula of uniform samples in [0, 1) and the parameters."""
    if out_sharding is not None:
        return call_sharded(from_uniform, locals(), name)
    typed, target, sizes = asked(name, key, shape, dtype, *parameters)
    operands = [parameter(x, target, sizes) for x in parameters]
    return compiled(formula, unit(typed, sizes, target), *operands)


# -----------------------------------------------------------------------------
# Random integers of a range, and random signs.
#
# A number below `span` is made of twice as many random bits as its dtype has,
# high h 2^n + l modulo span, so that the bias towards small numbers vanishes::
#
#     randint(key, (3,), 0, 10)
#
# With bounds that are known while tracing, all that depends on them alone is a
# constant.


def randint(
    key: ArrayLike,
    shape: Sizes,
    minval: ArrayLike,
    maxval: ArrayLike,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: object = None,
) -> Array:
    """Uniform integers from minval up to but excluding maxval; minval if that is empty.

    Args:
        key: one key, as `random.key` makes it.
        shape: the shape of the result, to which the bounds broadcast.
        minval: the lower bound, an array or scalar; a bound outside the range of the
            dtype is clipped.
        maxval: the upper bound, which is left out.
        dtype: the dtype of the result, of integers; by default int32, or int64 with
            x64.
        out_sharding: how the result is split over an explicit mesh; None leaves it to
            the compiler.

    Returns:
        An array of `shape` and `dtype`.

    Raises:
        TypeError: `key` is not a key, or `dtype` is not an integer dtype.
        ValueError: bounds do not fit `shape`, or `key` is several keys.

    >>> import verax
    >>> verax.random.randint(verax.random.key(0), (3,), 0, 10)
    Array([9, 0, 2], dtype=int32)
    """
    if out_sharding is not None:
        return call_sharded(randint, locals())
    shape, bounded = as_shape("randint", shape), (minval, maxval)
    typed, target, sizes = asked(
        "randint", key, shape, dtype, *bounded, kind=integer_dtype
    )
    sampled = int32 if iinfo(target).bits < 32 else target
    if is_known(minval) and is_known(maxval):
        bounds = iinfo(target)
        low = min(max(int(minval), bounds.min), bounds.max)
        high = min(max(int(maxval), bounds.min), bounds.max + 1)
        return convert(in_known_range(typed, sizes, sampled, low, high), target)
    low_array, high_array = (as_array("randint", x) for x in bounded)
    if sampled != target:
        low_array = clipped(low_array, iinfo(target).min, iinfo(target).max)
        high_array = clipped(high_array, iinfo(target).min, iinfo(target).max + 1)
    return convert(in_range(typed, sizes, sampled, low_array, high_array), target)


def is_known(x: object) -> TypeGuard[int | np.integer]:
    """Whether a bound is an integer of Python or NumPy."""
    return isinstance(x, int | np.integer)


def both_halves(key: Array, shape: Shape, bits: int) -> tuple[Array, Array]:
    """Two independent arrays of random bits, in one draw from two keys."""
    high, low = pieces(random_bits(random_split(key, (2,)), bits, shape))
    return high, low


def in_known_range(
    key: Array, shape: Shape, dtype: DType, low: int, high: int
) -> Array:
    """Integers between constants."""
    return drawn(offsets, key, shape=shape, dtype=dtype, low=low, high=high)


def offsets(key: Array, shape: Shape, dtype: DType, low: int, high: int) -> Array:
    """`in_known_range` by random bits."""
    width = iinfo(dtype).bits
    word = WORDS[width]
    span = max(high - low, 1)
    first, second = both_halves(key, shape, width)
    if span == 1 << width:
        return add(convert(second, dtype), constant_of(low, dtype))
    factor = (1 << (width // 2)) % span
    factor = (factor * factor) % (1 << width) % span
    divisor = constant_of(span, word)
    offset = rem(second, divisor)
    if factor:
        high_part = mul(rem(first, divisor), constant_of(factor, word))
        offset = rem(add(high_part, offset), divisor)
    out = convert(offset, dtype)
    return add(out, constant_of(low, dtype)) if low else out


def clipped(x: Array, low: int, high: int) -> Array:
    """A bound as an int32 in the range of a smaller dtype."""
    array = convert(x, int32)
    return arith.min(arith.max(array, low), high)


def fitted(x: Array, dtype: DType) -> Array:
    """An integer bound in `dtype`, at the nearest end if it is outside."""
    own, new = iinfo(x.dtype), iinfo(dtype)
    if own.min < new.min:
        x = arith.max(x, constant_of(new.min, x.dtype))
    if own.max > new.max:
        x = arith.min(x, constant_of(new.max, x.dtype))
    return convert(x, dtype)


def as_bound(x: Array) -> Array:
    """A bound as an integer."""
    return x if is_integer(x.dtype) else convert(x, default_integer())


def in_range(key: Array, shape: Shape, dtype: DType, low: Array, high: Array) -> Array:
    """Integers between arrays."""
    low, high = as_bound(low), as_bound(high)
    width = iinfo(dtype).bits
    word = WORDS[width]
    beyond = None
    if iinfo(high.dtype).max > iinfo(dtype).max:
        beyond = gt(high, constant_of(iinfo(dtype).max, high.dtype))
    low, high = fitted(low, dtype), fitted(high, dtype)
    if low.shape != high.shape and low.shape and high.shape:
        low, high = stretched(low, shape), stretched(high, shape)
    span = convert(sub(high, low), word)
    span = select(le(high, low), constant_of(1, word), span)
    if beyond is not None:
        more = bitwise_and(stretched(beyond, gt(high, low).shape), gt(high, low))
        span = select(more, add(span, constant_of(1, word)), span)
    half = np.asarray(1 << (width // 2), numpy_dtype(word))
    factor = rem(half, span)
    factor = rem(mul(factor, factor), span)
    span, factor = (stretched(x, shape) if x.shape else x for x in (span, factor))
    first, second = both_halves(key, shape, width)
    offset = rem(add(mul(rem(first, span), factor), rem(second, span)), span)
    return add(stretched(low, shape) if low.shape else low, convert(offset, dtype))
