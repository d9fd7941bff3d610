"""Floor 6: random bits, and uniform floats made of them.

One idea: the mantissa of a float in [1, 2) is filled with random bits and 1 is
subtracted, so that all results are equally spaced and exact::

    uniform(key, (3,))             # shift, or, bitcast, sub
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from verax.ir.avals import Shape
from verax.ir.dtypes import (
    DType,
    DTypeLike,
    canonical,
    is_unsigned,
    numpy_dtype,
    uint8,
    uint16,
    uint32,
    uint64,
)
from verax.ir.limits import finfo
from verax.numpy.arguments.arguments import (
    ArrayLike,
    as_shape,
    chosen_dtype,
    constant_of,
)
from verax.ops.elementwise import arith
from verax.ops.elementwise.arith import add, mul, sub
from verax.ops.elementwise.bits import bitwise_or, shift_right_logical
from verax.ops.elementwise.convert import BitcastParams, bitcast_convert_type_p, convert
from verax.ops.random.keys import random_bits
from verax.ops.structure.reshard import call_sharded
from verax.random.compiled import compiled, drawn
from verax.random.samplers import Sizes, asked, parameter
from verax.rules.values.array import Array
from verax.rules.values.memo import pure
from verax.rules.values.state import STATE

WORDS = {8: uint8, 16: uint16, 32: uint32, 64: uint64}


def unsigned_dtype(name: str, dtype: DTypeLike | None) -> DType:
    """The unsigned dtype that a caller asks for, or the default one.

    Raises:
        ValueError: it is not an unsigned dtype.
    """
    found = chosen_dtype(name, dtype) or canonical(np.uint64, STATE.enable_x64)
    if not is_unsigned(found):
        raise ValueError(
            f"dtype argument to {name} must be an unsigned int dtype, not {found}"
        )
    return found


def bits(
    key: ArrayLike,
    shape: Sizes = (),
    dtype: DTypeLike | None = None,
    *,
    out_sharding: object = None,
) -> Array:
    """Random unsigned integers of all values, uint32 unless `dtype` says otherwise.

    Raises:
        TypeError: `key` is not a key.
        ValueError: `dtype` is not unsigned, or `key` is several keys.

    >>> import verax
    >>> verax.random.bits(verax.random.key(0), (2,))
    Array([4070199207, 4202968722], dtype=uint32)
    """
    if out_sharding is not None:
        return call_sharded(bits, locals())
    typed, found, sizes = asked("bits", key, shape, dtype, kind=unsigned_dtype)
    return random_bits(typed, found.itemsize * 8, sizes)


def unit(key: Array, shape: Shape, dtype: DType) -> Array:
    """Uniform floats in [0, 1), multiples of the precision of `dtype`."""
    return drawn(unit_of, key, shape=shape, dtype=dtype)


def unit_of(key: Array, shape: Shape, dtype: DType) -> Array:
    """`unit` by random bits."""
    width, amount, one, as_float = mantissa_parts(dtype)
    found, word = random_bits(key, width, shape), WORDS[dtype.itemsize * 8]
    if width != dtype.itemsize * 8:
        found = convert(found, word)
    found = shift_right_logical(found, constant_of(amount, word))
    found = bitwise_or(found, constant_of(one, word))
    return sub(bitcast_convert_type_p.call(as_float, found), 1.0)


@pure(64)
def mantissa_parts(dtype: DType) -> tuple[int, int, int, BitcastParams]:
    """How many bits to draw, how far to shift them, the bits of 1, and the way back."""
    width, mantissa = dtype.itemsize * 8, finfo(dtype).nmant
    # Too few bits of a bfloat16 would be left after a shift of 16.
    drawn = 8 if mantissa < 8 else width
    one = np.ones((), numpy_dtype(dtype)).view(numpy_dtype(WORDS[width]))
    return drawn, drawn - mantissa, int(one), BitcastParams(dtype)


def is_constant(x: Any) -> bool:
    """Whether a bound is one number that is known now."""
    return isinstance(x, np.ndarray) and not x.ndim


def scaled(found: Array, low: Any, high: Any) -> Array:
    """Uniform floats in [low, high) from those in [0, 1), bounds of their dtype."""
    if is_constant(low) and is_constant(high):
        with np.errstate(all="ignore"):
            span: Any = np.asarray(high - low, high.dtype)
    else:
        span = sub(high, low)
    if not (is_constant(span) and span == 1):
        found = mul(found, span)
    return arith.max(low, add(found, low))


def uniform(
    key: ArrayLike,
    shape: Sizes = (),
    dtype: DTypeLike | None = None,
    minval: ArrayLike = 0.0,
    maxval: ArrayLike = 1.0,
    *,
    out_sharding: object = None,
) -> Array:
    """Uniform floats in [minval, maxval); the bounds broadcast to `shape`.

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
    typed, found, sizes = asked("uniform", key, shape, dtype, minval, maxval)
    low, high = (parameter(x, found, sizes) for x in (minval, maxval))
    samples = unit(typed, sizes, found)
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
    *parameters: Any,
) -> Array:
    """The sampler `name`, a formula of uniform samples in [0, 1) and the parameters."""
    if out_sharding is not None:
        return call_sharded(from_uniform, locals(), name)
    typed, found, sizes = asked(name, key, shape, dtype, *parameters)
    operands = [parameter(x, found, sizes) for x in parameters]
    return compiled(formula, unit(typed, sizes, found), *operands)
