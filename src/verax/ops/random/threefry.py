"""Floor 2: random bits by threefry2x32, a hash of a counter under a key.

One idea: a bit is a pure function of key and place, so keys are values that are split,
and arrays of bits are one elementwise row on a counter; the stream is that of
`jax.random` with partitionable threefry::

    key = seed(0)                            # uint32[2]
    random_bits(key, 32, (5,))               # [4070199207 4202968722 ...]

Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011.
"""

from collections.abc import Sequence
from math import prod
from random import Random

import numpy as np
from attrs import frozen

from verax.ir.avals import Shape, ShapedArray
from verax.ir.dtypes import (
    DType,
    is_integer,
    numpy_dtype,
    uint8,
    uint16,
    uint32,
    uint64,
)
from verax.ir.jaxpr import Jaxpr, Params
from verax.ops.elementwise.arith import add
from verax.ops.elementwise.bits import (
    bitwise_or,
    bitwise_xor,
    shift_left,
    shift_right_logical,
)
from verax.ops.elementwise.compare import lt
from verax.ops.elementwise.convert import BitcastParams, bitcast_convert_type_p, convert
from verax.ops.elementwise.select import select
from verax.ops.random import threefry_host
from verax.ops.random.threefry_host import PARITY, ROTATIONS
from verax.ops.structure.create import IotaParams, iota_p
from verax.ops.structure.joining import concatenate
from verax.ops.structure.shape import broadcast, broadcast_in_dim, expand_dims, reshape
from verax.ops.structure.slicing import slice_in_dim
from verax.rules.families.elementwise import batch_elementwise, common_shape
from verax.rules.families.linear import zero_jvp
from verax.rules.rows.builder import program
from verax.rules.rows.eager_costs import large
from verax.rules.rows.emitter import Emitter, Operand, apart
from verax.rules.rows.row import Row, Rows, Sample
from verax.rules.rows.type_shardings import axis_by_axis
from verax.rules.values.array import Array
from verax.rules.values.constants import aval_of
from verax.rules.values.memo import pure
from verax.rules.values.sizes import as_sizes, surely_less
from verax.rules.values.state import STATE

type Word = Array | np.uint32
ZERO = np.uint32(0)
DTYPES = {8: uint8, 16: uint16, 32: uint32, 64: uint64}


@frozen(eq=False, repr=False)
class HashParams(Params):
    """Whether XLA shall fuse nothing with the hash.

    LLVM takes a time exponential in the rounds that it finds in one loop, so a hash is
    a loop of its own: by itself if `apart`, else whoever uses it takes care of it.
    """

    apart: bool


def threefry_typing(
    p: HashParams, avals: Sequence[ShapedArray]
) -> Sequence[ShapedArray]:
    if len(avals) != 4 or any(aval.dtype != uint32 for aval in avals):
        raise TypeError(
            "threefry2x32 takes four uint32 arrays (two words of key, two of counter), "
            f"not {', '.join(map(str, avals))}"
        )
    out = ShapedArray(common_shape("threefry2x32", avals), uint32)
    return out, out


def rounds(k0: Array, k1: Array, a: Array, b: Array) -> tuple[Array, Array]:
    """The hash in operations on words: 20 rounds, a part of the key after each 4."""
    keys = (k0, k1, bitwise_xor(bitwise_xor(k0, k1), np.uint32(PARITY)))
    a, b = add(a, k0), add(b, k1)
    for group in range(5):
        for rotation in ROTATIONS[group % 2]:
            a = add(a, b)
            left = shift_left(b, np.uint32(rotation))
            right = shift_right_logical(b, np.uint32(32 - rotation))
            b = bitwise_xor(a, bitwise_or(left, right))
        a = add(a, keys[(group + 1) % 3])
        b = add(b, add(keys[(group + 2) % 3], np.uint32(group + 1)))
    return a, b


@pure(256)
def composed(*avals: ShapedArray) -> Jaxpr:
    """`rounds` as a program."""
    return program(avals, rounds)


def lower_threefry(
    e: Emitter, p: HashParams, xs: Sequence[Operand], outs: Sequence[ShapedArray]
) -> Sequence[Operand]:
    """A function that all calls of these types share.

    Its rounds are written out: on CPU they run five times as fast as a loop.
    """
    words = e.call(composed(*[x.aval for x in xs]), xs, "threefry2x32")
    return [
        e.broadcast(y, out.shape, ()) if y.aval != out else y
        for y, out in zip(apart(e, words) if p.apart else words, outs, strict=True)
    ]


def draw_threefry(random: Random) -> Sample[HashParams]:
    shape = tuple(random.choice((0, 1, 3)) for _ in range(random.randint(0, 2)))
    avals = [
        ShapedArray(() if random.random() < 0.4 else shape, uint32) for _ in range(4)
    ]
    return Sample(HashParams(random.random() < 0.7), tuple(avals))


threefry2x32_p: Row[HashParams] = Row(
    "threefry2x32",
    HashParams,
    typing=threefry_typing,
    evaluate=lambda engine, p, xs: threefry_host.hashed(*xs),
    jvp=zero_jvp(lambda: threefry2x32_p),
    batch=lambda engine, p, size, xs, axes: alike(
        *batch_elementwise(engine, threefry2x32_p, p, size, xs, axes)
    ),
    lower=lower_threefry,
    draw=draw_threefry,
    costly=large,
    multiple_results=True,
    sharding=axis_by_axis,
)


APART, FUSED = HashParams(True), HashParams(False)


def alike(
    outs: Sequence[Array], axes: Sequence[int | None]
) -> tuple[Sequence[Array], Sequence[int | None]]:
    """The batch axis of the first result, for all."""
    return outs, (axes[0],) * len(outs)


def threefry2x32(k0: object, k1: object, x0: object, x1: object) -> tuple[Array, Array]:
    """The hash of counters (x0, x1) under the key (k0, k1), all uint32, elementwise.

    Nothing is fused with it.

    Raises:
        TypeError: an operand is not uint32, or has another shape than the rest.
    """
    a, b = threefry2x32_p.bind(APART, k0, k1, x0, x1)
    return a, b


def words(key: Array) -> tuple[Array, Array]:
    """The two words of each raw key, which stand in the last dimension."""
    if key.shape[-1:] != (2,) or key.dtype != uint32:
        raise TypeError(f"raw threefry keys must be uint32[..., 2], not {key.aval}")
    last = key.ndim - 1
    first, second = (
        reshape(slice_in_dim(key, i, i + 1, axis=last), key.shape[:-1])
        for i in range(2)
    )
    return first, second


def joined(first: Array, second: Array) -> Array:
    """Raw keys from their words."""
    last = (first.ndim,)
    return concatenate(
        (expand_dims(first, last), expand_dims(second, last)), first.ndim
    )


def counter(shape: Shape) -> tuple[Word, Word]:
    """The high and low words of the place of each element, in row-major order."""
    n = prod(shape)
    if not shape:
        return np.uint32(0), np.uint32(0)
    if not surely_less(1 << 32, n):
        places = iota_p.call(IotaParams(uint32, (n,), 0))
        return np.uint32(0), reshape(places, shape)
    low, high = low_and_high(iota_p.call(IotaParams(uint64, (n,), 0)))
    return reshape(high, shape), reshape(low, shape)


def half_of_64() -> Array:
    """32 as a uint64, whether x64 is on or not."""
    return convert(np.uint32(32), uint64)


def low_and_high(x: Array) -> tuple[Array, Array]:
    """The two words of each uint64, the low one first."""
    return convert(x, uint32), convert(shift_right_logical(x, half_of_64()), uint32)


def doubled(low: Array, high: Array) -> Array:
    """The uint64 of two words each."""
    return bitwise_or(
        convert(low, uint64), shift_left(convert(high, uint64), half_of_64())
    )


def spread(x: Word, shape: Shape, dims: Shape) -> Word:
    """Words in a larger shape; one word alone stays as it is."""
    return broadcast_in_dim(x, shape, dims) if x.shape else x


def hashed(key: Array, shape: Shape) -> tuple[Array, Array]:
    """The hash of a counter over `shape` under each key, for rows to keep apart."""
    k0, k1 = words(key)
    high, low = counter(shape)
    full = (*k0.shape, *shape)
    front, back = tuple(range(k0.ndim)), tuple(range(k0.ndim, len(full)))
    keys = [spread(k, full, front) for k in (k0, k1)]
    counters = [spread(x, full, back) for x in (high, low)]
    first, second = threefry2x32_p.bind(FUSED, *keys, *counters)
    return first, second


def dtype_of_width(bit_width: int) -> DType:
    """The dtype of random bits.

    Raises:
        ValueError: the width is not 8, 16, 32 or 64.
    """
    dtype = DTYPES.get(bit_width)
    if dtype is None:
        raise ValueError(
            f"random_bits: the width must be 8, 16, 32 or 64, not {bit_width}"
        )
    return dtype


def random_bits(key: Array, bit_width: int, shape: Sequence[int]) -> Array:
    """Random unsigned integers of `bit_width` bits from raw keys.

    Keys of shape (*s, 2) give bits of shape (*s, *shape).

    Raises:
        TypeError: `key` is not uint32[..., 2].
        ValueError: `bit_width` is not 8, 16, 32 or 64.
    """
    dtype = dtype_of_width(bit_width)
    high, low = hashed(key, as_sizes("random_bits", "shape", shape))
    if bit_width == 64:
        return doubled(low, high)
    mixed = bitwise_xor(high, low)
    return mixed if bit_width == 32 else convert(mixed, dtype)


def split(key: Array, shape: Sequence[int]) -> Array:
    """New raw keys: those of shape (*s, 2) give keys of shape (*s, *shape, 2).

    Raises:
        TypeError: `key` is not uint32[..., 2].
    """
    return joined(*hashed(key, as_sizes("random_split", "shape", shape)))


# Before its hash could be split over devices, JAX put the first half of all words and
# the second in the two words of the counters: a place's bits depend on how many there
# are. `threefry_partitionable` chooses; programs of that time have these streams.


def hashed_in_halves(key: Array, count: int) -> Array:
    """`count` words for each key: those of the first half of counters, then the others.

    Raises:
        NotImplementedError: there are more than 32 bits can count.
    """
    if surely_less((1 << 32) - 1, count):
        raise NotImplementedError(
            "threefry without threefry_partitionable makes less than 2**32 words at "
            f"once, not {count}"
        )
    keys = words(key)
    rank, half = keys[0].ndim, (count + 1) // 2
    places = iota_p.call(IotaParams(uint32, (half,), 0))
    end = convert(count, uint32)
    later = iota_p.call(IotaParams(uint32, (2 * half,), 0))
    later = slice_in_dim(later, half, 2 * half)
    later = select(lt(later, broadcast(end, (half,))), later, broadcast(ZERO, (half,)))
    full = (*keys[0].shape, half)
    repeated = [broadcast_in_dim(k, full, tuple(range(rank))) for k in keys]
    counters = [broadcast_in_dim(x, full, (rank,)) for x in (places, later)]
    halves = threefry2x32_p.bind(FUSED, *repeated, *counters)
    return slice_in_dim(concatenate(halves, rank), 0, count, axis=rank)


def random_bits_in_halves(key: Array, bit_width: int, shape: Sequence[int]) -> Array:
    """`random_bits` without `threefry_partitionable`.

    Raises:
        TypeError: `key` is not uint32[..., 2].
        ValueError: `bit_width` is not 8, 16, 32 or 64.
        NotImplementedError: there are more words than 32 bits can count.
    """
    dtype = dtype_of_width(bit_width)
    sizes = as_sizes("random_bits", "shape", shape)
    size, rank = prod(sizes), key.ndim - 1
    if bit_width == 64:
        line = hashed_in_halves(key, 2 * size)
        first, second = (
            slice_in_dim(line, i * size, (i + 1) * size, axis=rank) for i in (0, 1)
        )
        line = doubled(second, first)
    else:
        line = hashed_in_halves(key, -(-size * bit_width // 32))
        if bit_width < 32:
            parts = bitcast_convert_type_p.call(BitcastParams(dtype), line)
            line = reshape(parts, (*line.shape[:-1], prod(parts.shape[-2:])))
            line = slice_in_dim(line, 0, size, axis=rank)
    return reshape(line, (*key.shape[:-1], *sizes))


def split_in_halves(key: Array, shape: Sequence[int]) -> Array:
    """`split` without `threefry_partitionable`.

    Raises:
        TypeError: `key` is not uint32[..., 2].
        NotImplementedError: there are more words than 32 bits can count.
    """
    sizes = as_sizes("random_split", "shape", shape)
    line = hashed_in_halves(key, 2 * prod(sizes))
    return reshape(line, (*key.shape[:-1], *sizes, 2))


def fold_in(key: Array, data: object) -> Array:
    """The raw keys that `key` and the uint32 `data`, of the same shape or scalar, make.

    Raises:
        TypeError: `key` is not uint32[..., 2], or `data` not uint32.
    """
    k0, k1 = words(key)
    return joined(*threefry2x32_p.bind(FUSED, k0, k1, np.uint32(0), data))


def seed(value: object) -> Array:
    """The raw keys of integers: the high and the low 32 bits of each.

    A Python integer counts with its low 64 bits while x64 is on, else its low 32.

    Raises:
        TypeError: `value` holds no integers.
    """
    if isinstance(value, int) and not isinstance(value, bool | np.generic):
        high = (value >> 32) & 0xFFFFFFFF if STATE.enable_x64 else 0
        pair = np.array((high, value & 0xFFFFFFFF), np.uint32)
        return concatenate((pair[:1], pair[1:]), 0)
    aval = aval_of(value)
    if not is_integer(aval.dtype):
        raise TypeError(f"seeds must be integers, not {aval}")
    if numpy_dtype(aval.dtype).itemsize < 8:
        return joined(broadcast(np.uint32(0), aval.shape), convert(value, uint32))
    first, second = low_and_high(convert(value, uint64))
    return joined(second, first)


ROWS: Rows = (threefry2x32_p,)
