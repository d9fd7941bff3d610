"""Floor 2: typed random keys: arrays of dtype `key<fry>`.

One idea: a key is stored as one uint64 of two words, in NumPy and on the device alike,
so what moves elements moves keys, keys are equal where their words are, and each row
here is a raw function of the generator on those words::

    k:key<fry>[] = random_seed[impl=fry] 0
    b:u32[3] = random_bits[impl=fry bit_width=32 shape=(3,)] k
"""

from collections.abc import Sequence
from random import Random

import numpy as np

from verax.ir.avals import Shape, ShapedArray
from verax.ir.dtypes import KEY_WORDS, Impl, KeyDType, is_integer, uint32
from verax.ops.elementwise.compare import eq
from verax.ops.elementwise.convert import convert
from verax.ops.random import threefry, threefry_host
from verax.ops.random.generators import (
    GENERATORS,
    OF_HALVES,
    BitsParams,
    KeyParams,
    SplitParams,
    batch_first,
    batch_fold_in,
    batch_in_place,
    drawing,
    dtype_of,
    from_words,
    generator,
    keys_aval,
    on_words,
    to_words,
)
from verax.ops.reductions.reduce import reduce_and
from verax.ops.structure.shape import broadcast_in_dim
from verax.rules.families.elementwise import common_shape
from verax.rules.rows.row import Axis, Rows, Sample, Traits, no_flops
from verax.rules.values.array import Array
from verax.rules.values.constants import INTEGER, aval_of
from verax.rules.values.sizes import as_sizes

type Batched = tuple[Sequence[Array], Sequence[Axis]]


def seed_typing(p: KeyParams, avals: Sequence[ShapedArray]) -> Sequence[ShapedArray]:
    (x,) = avals
    if not is_integer(x.dtype):
        raise TypeError(f"random_seed takes integers, not {x}")
    return (ShapedArray(x.shape, dtype_of(p.impl)),)


def wrap_typing(p: KeyParams, avals: Sequence[ShapedArray]) -> Sequence[ShapedArray]:
    (x,), dtype = avals, dtype_of(p.impl)
    count = len(dtype.word_shape)
    if x.dtype != uint32 or x.shape[x.ndim - count :] != dtype.word_shape:
        raise TypeError(
            "random_wrap takes uint32 words of shape "
            f"(..., {', '.join(map(str, dtype.word_shape))}) for "
            f"keys of dtype {dtype}, not {x}"
        )
    return (ShapedArray(x.shape[: x.ndim - count], dtype),)


def unwrap_typing(p: KeyParams, avals: Sequence[ShapedArray]) -> Sequence[ShapedArray]:
    x = keys_aval("random_unwrap", p, avals[0])
    return (ShapedArray((*x.shape, *dtype_of(p.impl).word_shape), uint32),)


def split_typing(p: SplitParams, avals: Sequence[ShapedArray]) -> Sequence[ShapedArray]:
    x = keys_aval("random_split", p, avals[0])
    return (x.with_shape((*x.shape, *p.shape)),)


def fold_in_typing(p: KeyParams, avals: Sequence[ShapedArray]) -> Sequence[ShapedArray]:
    x, data = keys_aval("random_fold_in", p, avals[0]), avals[1]
    if data.dtype != uint32:
        raise TypeError(f"random_fold_in takes uint32 data, not {data}")
    return (x.with_shape(common_shape("random_fold_in", avals)),)


def bits_typing(p: BitsParams, avals: Sequence[ShapedArray]) -> Sequence[ShapedArray]:
    x = keys_aval("random_bits", p, avals[0])
    if p.bit_width not in threefry.DTYPES:
        raise ValueError(
            f"random_bits: the width must be 8, 16, 32 or 64, not {p.bit_width}"
        )
    return (ShapedArray((*x.shape, *p.shape), threefry.DTYPES[p.bit_width]),)


def draw_shape(random: Random) -> Shape:
    return tuple(random.choice((0, 1, 2, 3)) for _ in range(random.randint(0, 2)))


def draw_impl(random: Random) -> str:
    return random.choice(tuple(GENERATORS))


def draw_drawing(random: Random) -> str:
    """A generator, or one in halves."""
    return random.choice((*GENERATORS, *OF_HALVES))


def draw_seed(random: Random) -> Sample[KeyParams]:
    dtype = random.choice(INTEGER.samples())
    return Sample(
        KeyParams(draw_impl(random)), (ShapedArray(draw_shape(random), dtype),)
    )


def draw_words(random: Random) -> Sample[KeyParams]:
    impl = draw_impl(random)
    shape = (*draw_shape(random), *KEY_WORDS[impl])
    return Sample(KeyParams(impl), (ShapedArray(shape, uint32),))


def draw_keys(random: Random, impl: str) -> tuple[ShapedArray, ...]:
    return (ShapedArray(draw_shape(random), dtype_of(impl)),)


def draw_unwrap(random: Random) -> Sample[KeyParams]:
    impl = draw_impl(random)
    return Sample(KeyParams(impl), draw_keys(random, impl))


def draw_split(random: Random) -> Sample[SplitParams]:
    impl = draw_drawing(random)
    return Sample(SplitParams(impl, draw_shape(random)), draw_keys(random, impl))


def draw_bits(random: Random) -> Sample[BitsParams]:
    impl, width = draw_drawing(random), random.choice((8, 16, 32, 64))
    return Sample(BitsParams(impl, width, draw_shape(random)), draw_keys(random, impl))


def draw_fold_in(random: Random) -> Sample[KeyParams]:
    shape = draw_shape(random)
    own, data = (random.choice((shape, ())) for _ in range(2))
    impl = draw_impl(random)
    avals = ShapedArray(own, dtype_of(impl)), ShapedArray(data, uint32)
    return Sample(KeyParams(impl), avals)


random_seed_p = on_words(
    "random_seed",
    KeyParams,
    seed_typing,
    lambda p, xs: from_words(generator(p.impl).seed(xs[0]), p.impl),
    batch_in_place,
    draw_seed,
)
random_wrap_p = on_words(
    "random_wrap",
    KeyParams,
    wrap_typing,
    lambda p, xs: from_words(xs[0], p.impl),
    batch_first,
    draw_words,
    traits=Traits(flops=no_flops, view=True),
)
random_unwrap_p = on_words(
    "random_unwrap",
    KeyParams,
    unwrap_typing,
    lambda p, xs: to_words(xs[0], p.impl),
    batch_in_place,
    draw_unwrap,
    traits=Traits(flops=no_flops, view=True),
)
random_split_p = on_words(
    "random_split",
    SplitParams,
    split_typing,
    lambda p, xs: from_words(
        generator(p.impl).split(to_words(xs[0], p.impl), p.shape), p.impl
    ),
    batch_first,
    draw_split,
    lambda p, xs: threefry_host.split(xs[0], p.shape),
)
random_fold_in_p = on_words(
    "random_fold_in",
    KeyParams,
    fold_in_typing,
    lambda p, xs: from_words(
        generator(p.impl).fold_in(to_words(xs[0], p.impl), xs[1]), p.impl
    ),
    batch_fold_in,
    draw_fold_in,
    lambda p, xs: threefry_host.fold_in(*xs),
)
random_bits_p = on_words(
    "random_bits",
    BitsParams,
    bits_typing,
    lambda p, xs: generator(p.impl).random_bits(
        to_words(xs[0], p.impl), p.bit_width, p.shape
    ),
    batch_first,
    draw_bits,
    lambda p, xs: threefry_host.random_bits(xs[0], p.bit_width, p.shape),
    traits=Traits(makes_nans=False),
)


def impl_of(name: str, keys: object) -> Impl:
    """The generator of typed keys.

    Raises:
        TypeError: `keys` holds no keys.
    """
    dtype = aval_of(keys).dtype
    if not isinstance(dtype, KeyDType):
        raise TypeError(
            f"{name} takes typed keys, not {aval_of(keys)}; make them with "
            "verax.random.key or verax.random.wrap_key_data"
        )
    return dtype.impl


def random_seed(seeds: object, impl: Impl = "fry") -> Array:
    """Keys from integers, one each; a Python integer counts with its low bits.

    Raises:
        TypeError: `seeds` holds no integers.
        ValueError: there is no such generator.
    """
    if isinstance(seeds, int) and not isinstance(seeds, bool | np.generic):
        return random_wrap(generator(impl).seed(seeds), impl)
    return random_seed_p.call(KeyParams(impl), seeds)


def random_wrap(base: object, impl: Impl = "fry") -> Array:
    """Typed keys from their words: uint32[..., 2] makes key<fry>[...].

    Raises:
        TypeError: `base` has another dtype or last dimension.
        ValueError: there is no such generator.
    """
    return random_wrap_p.call(KeyParams(impl), base)


def random_unwrap(keys: object) -> Array:
    """The words of typed keys: key<fry>[...] makes uint32[..., 2].

    Raises:
        TypeError: `keys` holds no typed keys.
    """
    return random_unwrap_p.call(KeyParams(impl_of("random_unwrap", keys)), keys)


def random_split(keys: object, shape: Sequence[int]) -> Array:
    """New keys of `shape` from each key.

    Raises:
        TypeError: `keys` holds no typed keys.
    """
    sizes = as_sizes("random_split", "shape", shape)
    params = SplitParams(drawing(impl_of("random_split", keys)), sizes)
    return random_split_p.call(params, keys)


def random_fold_in(keys: object, msgs: object) -> Array:
    """A new key from each key and each integer of `msgs`, of the same shape or scalar.

    Raises:
        TypeError: `keys` holds no typed keys, or `msgs` no integers.
    """
    params = KeyParams(impl_of("random_fold_in", keys))
    return random_fold_in_p.call(params, keys, as_uint32(msgs))


def as_uint32(data: object) -> object:
    """Integers as uint32, negative ones modulo 2**32."""
    if isinstance(data, int) and not isinstance(data, bool | np.generic):
        return np.uint32(data & 0xFFFFFFFF)
    if not is_integer(aval_of(data).dtype):
        raise TypeError(f"random_fold_in takes integers, not {aval_of(data)}")
    return convert(data, uint32)


def random_bits(keys: object, bit_width: int, shape: Sequence[int]) -> Array:
    """Random unsigned integers of 8, 16, 32 or 64 bits: `shape` of them from each key.

    Raises:
        TypeError: `keys` holds no typed keys.
        ValueError: the width is another.
    """
    sizes = as_sizes("random_bits", "shape", shape)
    params = BitsParams(drawing(impl_of("random_bits", keys)), bit_width, sizes)
    return random_bits_p.call(params, keys)


ROWS: Rows = (
    random_seed_p,
    random_wrap_p,
    random_unwrap_p,
    random_split_p,
    random_fold_in_p,
    random_bits_p,
)


def same_keys(x: Array, y: Array) -> Array:
    """Whether the keys are the same, each with each.

    The operands have one shape, or one of them has no dimensions.

    Raises:
        TypeError: the shapes disagree.
    """
    one, other = random_unwrap(x), random_unwrap(y)
    rank = one.ndim - x.ndim
    if one.ndim > other.ndim == rank:
        other = broadcast_in_dim(other, one.shape, last_axes(one.ndim, rank))
    if other.ndim > one.ndim == rank:
        one = broadcast_in_dim(one, other.shape, last_axes(other.ndim, rank))
    return reduce_and(eq(one, other), last_axes(one.ndim, rank))


def last_axes(ndim: int, count: int) -> tuple[int, ...]:
    """The last `count` of `ndim` axes."""
    return tuple(range(ndim - count, ndim))
