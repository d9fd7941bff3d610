"""Floor 2: generators that hash a counter: Philox of two sizes, Threefry of four words.

One idea: a hash of a few words of counter under the words of a key makes new keys and
bits alike; where the place of an element stands in the counter tells them apart::

    PHILOX4.random_bits(key, 32, (3,))       # key:u32[2]  ->  u32[3]

Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011. The numbers are
those of jax 0.12 under the same names.
"""

from collections.abc import Callable, Sequence

import numpy as np
from attrs import frozen

from verax.ir.avals import Shape
from verax.ir.dtypes import uint32
from verax.ir.records import ReprMixin
from verax.ops.elementwise.arith import add, mul
from verax.ops.elementwise.bits import bitwise_xor, mulhi
from verax.ops.elementwise.convert import convert
from verax.ops.random import threefry
from verax.ops.random.threefry4 import threefry4x32
from verax.ops.structure.joining import concatenate
from verax.ops.structure.shape import broadcast, broadcast_in_dim, expand_dims
from verax.ops.structure.slicing import index_in_dim
from verax.rules.values.array import Array
from verax.rules.values.constants import aval_of
from verax.rules.values.sizes import as_sizes

type Words = Sequence[Array]

FACTORS = (0xD2511F53, 0xCD9E8D57)
STEPS = (0x9E3779B9, 0xBB67AE85)
ROUNDS = 10
FACTOR_OF_TWO = 0xD256D193


def philox2(key: Words, counter: Words) -> Words:
    """Philox of two words of counter under one word of key, elementwise."""
    (k,), (a, b) = key, counter
    for _ in range(ROUNDS):
        high, low = mulhi(a, np.uint32(FACTOR_OF_TWO)), mul(a, np.uint32(FACTOR_OF_TWO))
        a, b = bitwise_xor(bitwise_xor(high, b), k), low
        k = add(k, np.uint32(STEPS[0]))
    return a, b


def philox4(key: Words, counter: Words) -> Words:
    """Philox of four words of counter under two words of key, elementwise."""
    (k0, k1), (a, b, c, d) = key, counter
    first, second = (np.uint32(factor) for factor in FACTORS)
    for _ in range(ROUNDS):
        high, low = mulhi(a, first), mul(a, first)
        above, below = mulhi(c, second), mul(c, second)
        a, b = bitwise_xor(bitwise_xor(above, b), k0), below
        c, d = bitwise_xor(bitwise_xor(high, d), k1), low
        k0, k1 = add(k0, np.uint32(STEPS[0])), add(k1, np.uint32(STEPS[1]))
    return a, b, c, d


def first_and_last(words: Words) -> tuple[Array, Array]:
    """The low and the high half of 64 bits: the first two words."""
    return words[1], words[0]


def every_other(words: Words) -> tuple[Array, Array]:
    """The low and the high half of 64 bits: all words, those of each half mixed."""
    return bitwise_xor(words[1], words[3]), bitwise_xor(words[0], words[2])


@frozen(repr=False)
class Counting(ReprMixin):
    """The functions of a generator, from its hash.

    Raw keys have `words` words in their last dimension, counters `places`. A seed is
    hashed as a counter, or as the key if `seeds_key`; `halves` make 64 bits of a hash.
    """

    hashed: Callable[[Words, Words], Words]
    words: int
    places: int
    seeds_key: bool = False
    halves: Callable[[Words], tuple[Array, Array]] = first_and_last

    def seed(self, value: object) -> Array:
        """The raw keys of integers.

        Raises:
            TypeError: `value` holds no integers.
        """
        pair = parts(threefry.seed(value), 2)
        zero = blank(pair[0])
        key, counter = [zero] * self.words, [zero] * self.places
        if self.seeds_key:
            key[:2] = pair
        else:
            counter[:2] = pair
        return joined(self.hashed(key, counter)[: self.words])

    def under(self, key: Array, shape: Shape, last: bool) -> Words:
        """The hash of each place of a shape, in the last words of counters or not."""
        front = key.ndim - 1
        full = (*key.shape[:-1], *shape)
        dims = tuple(range(len(full)))
        keys = [broadcast_in_dim(k, full, dims[:front]) for k in self.parts(key)]
        pair = [
            broadcast_in_dim(x, full, dims[front:]) if x.shape else broadcast(x, full)
            for x in threefry.counter(shape)
        ]
        rest = [blank(keys[0])] * (self.places - 2)
        return self.hashed(keys, [*rest, *pair] if last else [*pair, *rest])

    def parts(self, key: Array) -> Words:
        """The words of raw keys.

        Raises:
            TypeError: they are of another generator.
        """
        if key.dtype != uint32 or key.shape[-1:] != (self.words,):
            raise TypeError(
                f"raw keys must be uint32[..., {self.words}], not {key.aval}"
            )
        return parts(key, self.words)

    def split(self, key: Array, shape: Sequence[int]) -> Array:
        """New raw keys: those of shape (*s, n) give keys of shape (*s, *shape, n)."""
        sizes = as_sizes("random_split", "shape", shape)
        return joined(self.under(key, sizes, last=True)[: self.words])

    def fold_in(self, key: Array, data: object) -> Array:
        """The raw keys that `key` and the uint32 `data` make."""
        keys = self.parts(key)
        shape = max(keys[0].shape, aval_of(data).shape, key=len)
        keys = [spread(k, shape) for k in keys]
        zero = blank(keys[0])
        counter = [*[zero] * (self.places - 1), spread(convert(data, uint32), shape)]
        return joined(self.hashed(keys, counter)[: self.words])

    def random_bits(self, key: Array, bit_width: int, shape: Sequence[int]) -> Array:
        """Random unsigned integers of `bit_width` bits; (*s, n) gives (*s, *shape).

        Raises:
            ValueError: `bit_width` is not 8, 16, 32 or 64.
        """
        if bit_width not in threefry.DTYPES:
            raise ValueError(
                f"random_bits: the width must be 8, 16, 32 or 64, not {bit_width}"
            )
        sizes = as_sizes("random_bits", "shape", shape)
        out = self.under(key, sizes, last=False)
        if bit_width == 64:
            return threefry.doubled(*self.halves(out))
        mixed = out[0]
        for word in out[1:]:
            mixed = bitwise_xor(mixed, word)
        return mixed if bit_width == 32 else convert(mixed, threefry.DTYPES[bit_width])


def parts(x: Array, count: int) -> Words:
    """The elements along the last dimension."""
    return [index_in_dim(x, i, x.ndim - 1, False) for i in range(count)]


def joined(words: Words) -> Array:
    """Words in a new last dimension."""
    last = words[0].ndim
    return concatenate([expand_dims(x, (last,)) for x in words], last)


def blank(x: Array) -> Array:
    """Zeros beside words."""
    return broadcast(np.uint32(0), x.shape)


def spread(x: Array, shape: Shape) -> Array:
    """One word as many, or as many as there are."""
    return x if x.shape == shape else broadcast(x, shape)


PHILOX2 = Counting(philox2, 1, 2)
PHILOX4 = Counting(philox4, 2, 4)
THREEFRY4 = Counting(threefry4x32, 4, 4, seeds_key=True, halves=every_other)
