"""Floor 2: random keys of four words, whose bits the compiler's generator makes.

One idea: two threefry keys side by side are the state of a Philox counter, so drawing
is one operation, and splitting is that of threefry (`rbg`) or drawing too (`urbg`)::

    key = seed(0)                            # uint32[4]
    random_bits(key, 32, (5,))

The streams are those of `jax.random` under "rbg" and "unsafe_rbg". Under `vmap` each
key has the stream that it has alone.
"""

from collections.abc import Sequence
from math import prod

from verax.ir.avals import Shape
from verax.ops.elementwise.bits import bitwise_xor
from verax.ops.random import threefry
from verax.ops.random.rng_bit_generator import GeneratorParams, rng_bit_generator_p
from verax.ops.structure.joining import concatenate
from verax.ops.structure.shape import broadcast_in_dim, reshape
from verax.ops.structure.slicing import index_in_dim, slice_in_dim
from verax.rules.values.array import Array
from verax.rules.values.constants import aval_of
from verax.rules.values.sizes import as_sizes

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
