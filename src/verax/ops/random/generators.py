"""Floor 2: what rows on typed keys share: generators, stored words, batching.

One idea: a row on keys is a raw function of a generator on uint32 words, between two
bitcasts, so a generator is a record of four functions::

    THREEFRY.bits(words, 32, (3,))       # words:u32[2]  ->  u32[3]
"""

from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum
from math import prod
from random import Random
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np
from attrs import evolve, frozen

from verax.ir.avals import Shape, ShapedArray
from verax.ir.dtypes import (
    KEY_WORDS,
    STORED,
    DType,
    DTypeLike,
    Impl,
    KeyDType,
    as_dtype,
    complex128,
    float64,
    is_extended,
    stored_dtype,
    uint8,
    uint16,
    uint32,
    uint64,
)
from verax.ir.jaxpr import NO_PARAMS, Jaxpr, Params
from verax.ir.meshes import Splits, says_nothing
from verax.ir.records import ReprMixin
from verax.ops.elementwise.arith import add, complex_p, imag_p, real_p
from verax.ops.elementwise.bits import bitwise_xor
from verax.ops.elementwise.compare import lt
from verax.ops.elementwise.convert import BitcastParams, bitcast_convert_type_p, convert
from verax.ops.random import counting, threefry
from verax.ops.random.counting import philox4
from verax.ops.random.threefry import doubled, low_and_high, threefry2x32
from verax.ops.structure.create import IotaParams, iota_p
from verax.ops.structure.joining import concatenate
from verax.ops.structure.reshard import sharded
from verax.ops.structure.shape import broadcast_in_dim, expand_dims, move_axis, reshape
from verax.ops.structure.slicing import index_in_dim, slice_in_dim
from verax.rules.families.linear import zero_jvp
from verax.rules.rows.builder import program
from verax.rules.rows.eager_costs import large
from verax.rules.rows.emitter import Emitter, Operand, apart
from verax.rules.rows.row import (
    NO_TRAITS,
    Axis,
    Engine,
    NDArray,
    Row,
    Rows,
    Sample,
    Traits,
    TypeRule,
)
from verax.rules.rows.type_shardings import connected, stacked_along
from verax.rules.values.array import Array
from verax.rules.values.constants import aval_of
from verax.rules.values.memo import pure
from verax.rules.values.sizes import as_sizes, without
from verax.rules.values.state import STATE

# -----------------------------------------------------------------------------
# Random bits by XLA's generators, Philox and Threefry on a running counter.
#
# The state is a key and a counter of 64 bits each, as four words of 32; one key is one
# operation of the compiler, a stack of keys the same rounds written out::
#
#     state, bits = rng_bit_generator(key, (3,))       # key: uint32[4]
#
# Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011. The default is
# Philox on every platform.


DTYPES = (uint8, uint16, uint32, uint64)


class RandomAlgorithm(IntEnum):
    """A generator; the default one is Philox."""

    __module__ = "verax.lax"

    RNG_DEFAULT = 0
    RNG_THREE_FRY = 1
    RNG_PHILOX = 2


@frozen(eq=False, repr=False)
class GeneratorParams(Params):
    """The shape and dtype of the bits, and the generator, "philox" or "three_fry"."""

    shape: Shape
    dtype: DType
    algorithm: str


def generator_typing(
    p: GeneratorParams, avals: Sequence[ShapedArray]
) -> Sequence[ShapedArray]:
    (key,) = avals
    if key.dtype != uint32 or key.shape[-1:] != (4,):
        raise TypeError(f"rng_bit_generator takes keys uint32[..., 4], not {key}")
    if p.dtype not in DTYPES:
        raise TypeError(
            f"rng_bit_generator: dtype must be one of {', '.join(map(str, DTYPES))}, "
            f"not {p.dtype}"
        )
    return key, ShapedArray((*key.shape[:-1], *p.shape), p.dtype)


def halved(sizes: Shape) -> tuple[int, Shape]:
    """The dimension that Threefry's pairs of words fill, and the shape of the pairs.

    As in XLA it is the first even one, or the first of the largest, rounded up.
    """
    even = [i for i, size in enumerate(sizes) if size % 2 == 0]
    place = even[0] if even else sizes.index(max(sizes))
    half = -(-sizes[place] // 2)
    return place, (*sizes[:place], half, *sizes[place + 1 :])


def counters(start: Array, count: int) -> Array:
    """The `count` counters from each start, in a last dimension."""
    front = tuple(range(start.ndim))
    full = (*start.shape, count)
    places = iota_p.call(IotaParams(uint64, full, start.ndim))
    return add(broadcast_in_dim(start, full, front), places)


def by_philox(key: Array, start: Array, p: GeneratorParams) -> tuple[Array, int]:
    """Bits of four words for each counter, row by row; how many counters it took.

    Above the 64 bits that count are the 64 of the key, into which they carry.
    """
    wide = p.dtype == uint64
    total = prod(p.shape) * (2 if wide else 1)
    count = -(-total // 4)
    own = counters(start, count)
    front = tuple(range(start.ndim))
    keys = broadcast_in_dim(key, own.shape, front)
    first = broadcast_in_dim(start, own.shape, front)
    carried = add(keys, convert(lt(own, first), uint64))
    words = philox4(low_and_high(keys), (*low_and_high(own), *low_and_high(carried)))
    last = start.ndim + 1
    table = concatenate([expand_dims(x, (last,)) for x in words], last)
    line = reshape(table, (*start.shape, count * 4))
    line = slice_in_dim(line, 0, total, axis=start.ndim)
    if wide:
        pairs = reshape(line, (*start.shape, total // 2, 2))
        line = bitcast_convert_type_p.call(BitcastParams(uint64), pairs)
    return reshape(line, (*start.shape, *p.shape)), count


def by_threefry(key: Array, start: Array, p: GeneratorParams) -> tuple[Array, int]:
    """Bits of two words for each counter; how many counters it took."""
    wide = p.dtype == uint64
    rank = start.ndim
    sizes = p.shape or (1,)
    place, half = halved(sizes)
    shape = p.shape if wide else half
    own = counters(start, prod(shape))
    keys = broadcast_in_dim(key, own.shape, tuple(range(rank)))
    words = threefry2x32(*low_and_high(keys), *low_and_high(own))
    if wide:
        return reshape(doubled(*words), (*start.shape, *p.shape)), prod(shape)
    after = rank + place + 1
    parts = [expand_dims(reshape(x, (*start.shape, *half)), (after,)) for x in words]
    full = (*start.shape, *half[:place], 2 * half[place], *half[place + 1 :])
    table = reshape(concatenate(parts, after), full)
    table = slice_in_dim(table, 0, sizes[place], axis=rank + place)
    return reshape(table, (*start.shape, *p.shape)), prod(shape)


def generated(key: Array, p: GeneratorParams) -> tuple[Array, Array]:
    """The next states of keys of shape (*s, 4), and bits of shape (*s, *p.shape)."""
    front, last = key.shape[:-1], key.ndim - 1
    words = [reshape(slice_in_dim(key, i, i + 1, axis=last), front) for i in range(4)]
    start = doubled(words[2], words[3])
    draw = by_philox if p.algorithm == "philox" else by_threefry
    bits, count = draw(doubled(words[0], words[1]), start, p)
    after = low_and_high(add(start, convert(np.uint32(count), uint64)))
    states = [expand_dims(x, (last,)) for x in (*words[:2], *after)]
    return concatenate(states, last), convert(bits, p.dtype)


@pure(256)
def written_out(p: GeneratorParams, aval: ShapedArray) -> Jaxpr:
    """`generated` as a program."""
    return program((aval,), lambda key: generated(key, p))


def evaluate_generator(
    engine: Engine, p: GeneratorParams, xs: Sequence[NDArray]
) -> Sequence[NDArray]:
    return engine.evaluate(written_out(p, ShapedArray(xs[0].shape, uint32)), xs)


def lower_generator(
    e: Emitter, p: GeneratorParams, xs: Sequence[Operand], outs: Sequence[ShapedArray]
) -> Sequence[Operand]:
    """One operation on one key whose state is two words of 64 bits."""
    if xs[0].aval.ndim > 1:
        return e.inline(written_out(p, xs[0].aval), xs)
    pairs, state = ShapedArray((2, 2), uint32), ShapedArray((2,), uint64)
    words = e.op("stablehlo.reshape", xs, (pairs,))
    (key,) = e.op("stablehlo.bitcast_convert", words, (state,))
    algorithm = f"#stablehlo<rng_algorithm {p.algorithm.upper()}>"
    after, bits = e.op(
        "stablehlo.rng_bit_generator", (key,), (state, outs[1]), rng_algorithm=algorithm
    )
    words = e.op("stablehlo.bitcast_convert", (after,), (pairs,))
    return *e.op("stablehlo.reshape", words, outs[:1]), bits


def batch_generator(
    p: GeneratorParams, args: Sequence[Array], axes: Sequence[Axis]
) -> tuple[Sequence[Array], Sequence[Axis]]:
    (axis,) = axes
    assert axis is not None
    return rng_bit_generator_p.bind(p, move_axis(args[0], axis, 0)), (0, 0)


def draw_generator(random: Random) -> Sample[GeneratorParams]:
    front, shape = (
        tuple(random.choice((0, 1, 3)) for _ in range(random.randint(0, 2)))
        for _ in range(2)
    )
    algorithm = random.choice(("philox", "three_fry"))
    params = GeneratorParams(shape, random.choice(DTYPES), algorithm)
    return Sample(params, (ShapedArray((*front, 4), uint32),))


rng_bit_generator_p: Row[GeneratorParams] = Row(
    "rng_bit_generator",
    GeneratorParams,
    typing=generator_typing,
    evaluate=evaluate_generator,
    jvp=zero_jvp(lambda: rng_bit_generator_p),
    batch=lambda engine, p, size, xs, axes: batch_generator(p, xs, axes),
    lower=lower_generator,
    draw=draw_generator,
    costly=large,
    multiple_results=True,
)


def rng_bit_generator(
    key: object,
    shape: Sequence[int],
    dtype: DTypeLike = np.uint32,
    algorithm: int = RandomAlgorithm.RNG_DEFAULT,
    *,
    out_sharding: object = None,
) -> tuple[Array, Array]:
    """The next state of a generator, and random bits of `shape` and `dtype`.

    Under `vmap` each key has the bits that it has alone.

    Args:
        key: uint32[4] or uint64[2]: a key and a counter. A stack of keys (..., 4) gives
            bits for each.
        shape: the shape of the bits, for each key.
        dtype: the dtype of the bits, unsigned of 8 to 64 bits; by default uint32.
        algorithm: a `lax.RandomAlgorithm`: Philox, which is the default one too, or
            Threefry.
        out_sharding: how the bits are split over an explicit mesh; None leaves it to
            the compiler.

    Returns:
        The state to go on with, of the shape and dtype of `key`, and the bits.

    Raises:
        TypeError: `key` has another type, or `dtype` is not unsigned.
        ValueError: there is no such algorithm.

    >>> import verax, numpy as np
    >>> state, bits = verax.lax.rng_bit_generator(np.zeros(4, np.uint32), (2,))
    >>> bits
    Array([1713891541, 3781805453], dtype=uint32)
    """
    sizes = as_sizes("rng_bit_generator", "shape", shape)
    three_fry = RandomAlgorithm(algorithm) == RandomAlgorithm.RNG_THREE_FRY
    name = "three_fry" if three_fry else "philox"
    params = GeneratorParams(sizes, as_dtype(dtype), name)
    aval = aval_of(key)
    wide = aval.dtype == uint64 and aval.shape[-1:] == (2,)
    if wide:
        words = bitcast_convert_type_p.call(BitcastParams(uint32), key)
        key = reshape(words, (*aval.shape[:-1], 4))
    state, bits = rng_bit_generator_p.bind(params, key)
    if wide:
        pairs = reshape(state, (*aval.shape, 2))
        state = bitcast_convert_type_p.call(BitcastParams(uint64), pairs)
    if not says_nothing(out_sharding):
        bits = sharded("rng_bit_generator", out_sharding, lambda x: x, bits)
    return state, bits


ROWS: Rows = (rng_bit_generator_p,)


# -----------------------------------------------------------------------------
# Random keys of four words, whose bits the compiler's generator makes.
#
# Two threefry keys side by side are the state of a Philox counter, so drawing
# is one operation, and splitting is that of threefry (`rbg`) or drawing too (`urbg`)::
#
#     key = seed(0)                            # uint32[4]
#     random_bits(key, 32, (5,))
#
# The streams are those of `jax.random` under "rbg" and "unsafe_rbg". Under `vmap` each
# key has the stream that it has alone.


# Draws of four words for each key of the unsafe kind: a hash of few rounds.
STRIDE = 10


def seed(value: object) -> Array:
    """The raw keys of integers: the words of their threefry keys, twice."""
    half = threefry.seed(value)
    return concatenate((half, half), half.ndim - 1)


def halves(key: Array) -> tuple[Array, Array]:
    """The two threefry keys in each raw key.

    Raises:
        TypeError: `key` is not uint32[..., 4].
    """
    if key.shape[-1:] != (4,):
        raise TypeError(f"raw rbg keys must be uint32[..., 4], not {key.aval}")
    last = key.ndim - 1
    return slice_in_dim(key, 0, 2, axis=last), slice_in_dim(key, 2, 4, axis=last)


def split(key: Array, shape: Sequence[int]) -> Array:
    """New raw keys: those of shape (*s, 4) give keys of shape (*s, *shape, 4)."""
    first, second = (threefry.split(half, shape) for half in halves(key))
    return concatenate((first, second), first.ndim - 1)


def split_in_halves(key: Array, shape: Sequence[int]) -> Array:
    """`split` without `threefry_partitionable`."""
    first, second = (threefry.split_in_halves(half, shape) for half in halves(key))
    return concatenate((first, second), first.ndim - 1)


def fold_in(key: Array, data: object) -> Array:
    """The raw keys that `key` and the uint32 `data` make."""
    first, second = (threefry.fold_in(half, data) for half in halves(key))
    return concatenate((first, second), first.ndim - 1)


def drawn(key: Array, width: int, shape: Shape) -> Array:
    """Bits of the default generator."""
    params = GeneratorParams(shape, threefry.DTYPES[width], "philox")
    return rng_bit_generator_p.bind(params, key)[1]


def random_bits(key: Array, bit_width: int, shape: Sequence[int]) -> Array:
    """Random unsigned integers of `bit_width` bits; (*s, 4) gives (*s, *shape).

    Raises:
        ValueError: `bit_width` is not 8, 16, 32 or 64.
    """
    if bit_width not in threefry.DTYPES:
        raise ValueError(
            f"random_bits: the width must be 8, 16, 32 or 64, not {bit_width}"
        )
    return drawn(key, bit_width, as_sizes("random_bits", "shape", shape))


def unsafe_split(key: Array, shape: Sequence[int]) -> Array:
    """New raw keys, each the first of ten draws."""
    sizes = as_sizes("random_split", "shape", shape)
    front, count = key.shape[:-1], prod(sizes)
    table = drawn(key, 32, (STRIDE * count, 4))
    firsts = slice_in_dim(table, 0, STRIDE * count, STRIDE, len(front))
    return reshape(firsts, (*front, *sizes, 4))


def unsafe_fold_in(key: Array, data: object) -> Array:
    """`key`, mixed with the last of ten draws from the key that `data` seeds."""
    own = seed(data)
    words = index_in_dim(drawn(own, 32, (STRIDE, 4)), STRIDE - 1, own.ndim - 1, False)
    shape = key.shape if key.ndim > 1 else (*aval_of(data).shape, 4)
    return bitwise_xor(*[stacked(x, shape) for x in (key, words)])


def stacked(x: Array, shape: Shape) -> Array:
    """One raw key as many, or as many as there are."""
    return x if x.shape == shape else broadcast_in_dim(x, shape, (len(shape) - 1,))


# -----------------------------------------------------------------------------
# What rows on typed keys share: generators, stored words, batching.


# Shapes of the words of a key that are dimensions of their own already.
WHOLE = ((2,), (4,))
type Batched = tuple[Sequence[Array], Sequence[Axis]]


@frozen(repr=False)
class Generator(ReprMixin):
    """A generator of random bits, as functions of raw keys of shape (*s, *key_shape).

    `random_bits(key, width, shape)` and `split(key, shape)` put `shape` after s. The
    `tag` is its short name.
    """

    __module__ = "verax.extend.random"
    transient: ClassVar[bool] = False

    key_shape: Shape
    seed: Callable[[Any], Any]
    split: Callable[[Any, Shape], Any]
    random_bits: Callable[[Any, int, Shape], Any]
    fold_in: Callable[[Any, Any], Any]
    name: str = "<unnamed>"
    tag: str = "?"


THREEFRY = Generator(
    KEY_WORDS["fry"],
    threefry.seed,
    threefry.split,
    threefry.random_bits,
    threefry.fold_in,
    "threefry2x32",
    "fry",
)
RBG = Generator(
    KEY_WORDS["rbg"],
    seed,
    split,
    random_bits,
    fold_in,
    "rbg",
    "rbg",
)
UNSAFE_RBG = Generator(
    KEY_WORDS["urbg"],
    seed,
    unsafe_split,
    random_bits,
    unsafe_fold_in,
    "unsafe_rbg",
    "urbg",
)


def by_counting(functions: counting.Counting, name: str, tag: str) -> Generator:
    """A generator that hashes a counter."""
    return Generator(
        KEY_WORDS[tag],
        functions.seed,
        functions.split,
        functions.random_bits,
        functions.fold_in,
        name,
        tag,
    )


PHILOX2 = by_counting(counting.PHILOX2, "philox2x32", "phx2")
PHILOX4 = by_counting(counting.PHILOX4, "philox4x32", "phx4")
THREEFRY4 = by_counting(counting.THREEFRY4, "threefry4x32", "fry4")
GENERATORS: Mapping[str, Generator] = MappingProxyType(
    {
        kind.tag: kind
        for kind in (THREEFRY, RBG, UNSAFE_RBG, PHILOX2, PHILOX4, THREEFRY4)
    }
)
TAGS: Mapping[str, str] = MappingProxyType(
    {kind.name: tag for tag, kind in GENERATORS.items()}
)


# What makes keys and bits of the keys of some generators unless
# `threefry_partitionable` is set: the name stands in the equations.
IN_HALVES: Mapping[str, str] = MappingProxyType(
    {"fry": "fry_halves", "rbg": "rbg_halves"}
)
OF_HALVES: Mapping[str, Generator] = MappingProxyType(
    {
        "fry_halves": evolve(
            THREEFRY,
            split=threefry.split_in_halves,
            random_bits=threefry.random_bits_in_halves,
        ),
        "rbg_halves": evolve(RBG, split=split_in_halves),
    }
)


def drawing(impl: Impl) -> Impl:
    """What makes keys and bits of the keys of a generator, as it is configured."""
    if STATE.threefry_partitionable or not isinstance(impl, str):
        return impl
    return IN_HALVES.get(impl, impl)


def generator(impl: Impl) -> Generator:
    """The generator of that short name; a generator itself.

    Raises:
        ValueError: there is none.
    """
    if isinstance(impl, Generator):
        return impl
    assert isinstance(impl, str)
    entry = GENERATORS.get(impl) or OF_HALVES.get(impl)
    if entry is None:
        raise ValueError(
            f"unrecognized PRNG implementation {impl!r}; use one of "
            f"{', '.join(GENERATORS)}"
        )
    return entry


@frozen(eq=False, repr=False)
class KeyParams(Params):
    """The generator."""

    impl: Impl


@frozen(eq=False, repr=False)
class SplitParams(Params):
    """The generator, and the shape of the new keys that each key makes."""

    impl: Impl
    shape: Shape


@frozen(eq=False, repr=False)
class BitsParams(Params):
    """The generator, the width of integers, the shape of those that each key makes."""

    impl: Impl
    bit_width: int
    shape: Shape


type Named = KeyParams | SplitParams | BitsParams


def dtype_of(impl: Impl) -> KeyDType:
    """The dtype of the keys of a generator."""
    entry = generator(impl)
    return KeyDType(entry.tag if isinstance(impl, str) else impl, entry.key_shape)


def keys_aval(name: str, p: Named, aval: ShapedArray) -> ShapedArray:
    """`aval`, or an error that says how to get keys of the generator."""
    if aval.dtype != dtype_of(p.impl):
        raise TypeError(
            f"{name} takes keys of dtype {dtype_of(p.impl)}, not {aval}; make them "
            "with verax.random.key or verax.random.wrap_key_data"
        )
    return aval


def stored(aval: ShapedArray) -> ShapedArray:
    """The type of the array that stands for a key array; other types stay."""
    if not isinstance(aval.dtype, KeyDType):
        return aval
    return ShapedArray(
        (*aval.shape, *aval.dtype.element_shape), stored_dtype(aval.dtype)
    )


def to_words(x: Array, impl: Impl) -> Array:
    """The uint32 words of stored keys, in the last dimensions."""
    shape = generator(impl).key_shape
    if prod(shape) not in STORED:
        return x
    if x.dtype == uint64:
        words = bitcast_convert_type_p.call(BitcastParams(uint32), x)
    elif x.dtype == complex128:
        halves = [
            bitcast_convert_type_p.call(
                BitcastParams(uint32), part_p.call(NO_PARAMS, x)
            )
            for part_p in (real_p, imag_p)
        ]
        words = concatenate(halves, x.ndim)
    else:
        words = x
    return reshape(words, (*x.shape, *shape)) if shape not in WHOLE else words


def from_words(words: Array, impl: Impl) -> Array:
    """Keys as they are stored, from their words."""
    shape = generator(impl).key_shape
    front, count = words.shape[: words.ndim - len(shape)], prod(shape)
    if count == 1:
        return reshape(words, front)
    if count not in STORED:
        return words
    if shape not in WHOLE:
        words = reshape(words, (*front, count))
    if count == 2:
        return bitcast_convert_type_p.call(BitcastParams(uint64), words)
    last = words.ndim - 1
    halves = [
        bitcast_convert_type_p.call(
            BitcastParams(float64), slice_in_dim(words, i, i + 2, axis=last)
        )
        for i in (0, 2)
    ]
    return complex_p.call(NO_PARAMS, *halves)


def on_words[P: Named](
    name: str,
    params: type[P],
    typing: TypeRule[P],
    compute: Callable[[P, Sequence[Array]], Array],
    batch: Callable[[Row[P], P, int, Sequence[Array], Sequence[Axis]], Batched],
    draw: Callable[[Random], Sample[P]],
    on_host: Callable[[P, Sequence[NDArray]], NDArray] | None = None,
    traits: Traits = NO_TRAITS,
) -> Row[P]:
    """A row that means `compute(params, stored operands)`.

    `on_host` computes the same in NumPy, for threefry, where that is quicker than to
    evaluate a program of many small equations. A row that has it hashes, so its result
    is kept apart from what uses it: see `HashParams`.
    """

    @pure(512)
    def written(p: P, *avals: ShapedArray) -> Jaxpr:
        return program(avals, lambda *xs: (compute(p, xs),))

    def lower(
        e: Emitter, p: P, xs: Sequence[Operand], outs: Sequence[ShapedArray]
    ) -> Sequence[Operand]:
        plain = [evolve(x, aval=stored(x.aval)) for x in xs]
        out = e.inline(written(p, *[x.aval for x in plain]), plain)
        if on_host is not None:
            out = apart(e, out)
        return (evolve(out[0], aval=outs[0]),)

    row: Row[P] = Row(
        name,
        params,
        typing=typing,
        evaluate=lambda engine, p, xs: (
            (on_host(p, xs),)
            if on_host is not None and p.impl == "fry"
            else engine.evaluate(
                written(p, *[ShapedArray(x.shape, x.dtype) for x in xs]), xs
            )
        ),
        jvp=zero_jvp(lambda: row),
        traits=traits,
        batch=lambda engine, p, size, xs, axes: batch(row, p, size, xs, axes),
        lower=lower,
        draw=draw,
        costly=large,
        sharding=keys_in_front,
    )
    return row


def keys_in_front(
    p: object, avals: Sequence[ShapedArray], outs: Sequence[ShapedArray]
) -> Sequence[Splits]:
    """The dimensions of keys come first; those of words or samples are whole."""
    kept = max([x.ndim for x in (*avals, *outs) if is_extended(x.dtype)])
    return connected(
        avals,
        [stacked_along(aval.ndim, kept) for aval in avals],
        [stacked_along(out.ndim, kept) for out in outs],
    )


def batch_first[P: Named](
    row: Row[P], p: P, size: int, args: Sequence[Array], axes: Sequence[Axis]
) -> Batched:
    """The batch dimension of the one operand goes first, and that of the result is."""
    (x,), (axis,) = args, axes
    assert axis is not None
    return row.bind(p, move_axis(x, axis, 0)), (0,)


def batch_in_place[P: Named](
    row: Row[P], p: P, size: int, args: Sequence[Array], axes: Sequence[Axis]
) -> Batched:
    """The batch dimension of the one operand is that of the result."""
    return row.bind(p, *args), axes


def batch_fold_in(
    row: Row[KeyParams],
    p: KeyParams,
    size: int,
    args: Sequence[Array],
    axes: Sequence[Axis],
) -> Batched:
    """Both operands in the shape of the result, except for unbatched scalars."""
    shapes = [
        without(x.shape, () if axis is None else (axis,))
        for x, axis in zip(args, axes, strict=True)
    ]
    full = (size, *max(shapes, key=len))
    moved = []
    for x, axis, shape in zip(args, axes, shapes, strict=True):
        if axis is None and not shape:
            moved.append(x)
        elif axis is None:
            moved.append(broadcast_in_dim(x, full, tuple(range(1, len(full)))))
        else:
            front = move_axis(x, axis, 0)
            dims = tuple(range(front.ndim))
            moved.append(
                front if front.shape == full else broadcast_in_dim(front, full, dims)
            )
    return row.bind(p, *moved), (0,)
