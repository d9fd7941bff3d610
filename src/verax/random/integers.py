"""Floor 6: random integers of a range, and random signs.

One idea: a number below `span` is made of twice as many random bits as its dtype has,
high h 2^n + l modulo span, so that the bias towards small numbers vanishes::

    randint(key, (3,), 0, 10)

With bounds that are known while tracing, all that depends on them alone is a constant.
"""

from typing import Any, TypeGuard

import numpy as np

from verax.ir.avals import Shape
from verax.ir.dtypes import (
    DType,
    DTypeLike,
    int32,
    is_integer,
    numpy_dtype,
)
from verax.ir.limits import iinfo
from verax.numpy.arguments.arguments import (
    ArrayLike,
    as_array,
    as_shape,
    constant_of,
    default_integer,
    stretched,
)
from verax.ops.elementwise import arith
from verax.ops.elementwise.arith import add, mul, rem, sub
from verax.ops.elementwise.bits import bitwise_and
from verax.ops.elementwise.compare import gt, le
from verax.ops.elementwise.convert import convert
from verax.ops.elementwise.select import select
from verax.ops.random.keys import random_bits, random_split
from verax.ops.structure.reshard import call_sharded
from verax.random.compiled import drawn
from verax.random.keys import pieces
from verax.random.raw_bits import WORDS
from verax.random.samplers import Sizes, asked, integer_dtype
from verax.rules.values.array import Array


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

    The bounds broadcast to `shape`; those outside the range of the dtype are clipped.

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
    typed, found, sizes = asked(
        "randint", key, shape, dtype, *bounded, kind=integer_dtype
    )
    sampled = int32 if iinfo(found).bits < 32 else found
    if is_known(minval) and is_known(maxval):
        bounds = iinfo(found)
        low = min(max(int(minval), bounds.min), bounds.max)
        high = min(max(int(maxval), bounds.min), bounds.max + 1)
        return convert(in_known_range(typed, sizes, sampled, low, high), found)
    low_array, high_array = (as_array("randint", x) for x in bounded)
    if sampled != found:
        low_array = clipped(low_array, iinfo(found).min, iinfo(found).max)
        high_array = clipped(high_array, iinfo(found).min, iinfo(found).max + 1)
    return convert(in_range(typed, sizes, sampled, low_array, high_array), found)


def is_known(x: object) -> TypeGuard[int | np.integer[Any]]:
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
    found = convert(offset, dtype)
    return add(found, constant_of(low, dtype)) if low else found


def clipped(x: Array, low: int, high: int) -> Array:
    """A bound as an int32 in the range of a smaller dtype."""
    found = convert(x, int32)
    return arith.min(arith.max(found, low), high)


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
    beyond: Any = None
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
