"""Generators of random bits of your own, as `jax.extend.random` has them (floor 6).

A generator is a record of functions of one raw key, an array of uint32; every function
of `verax.random` takes its keys::

    mine = define_prng_impl(key_shape=(4,), seed=..., split=..., random_bits=...,
                            fold_in=..., name="mine", tag="my")
    verax.random.normal(verax.random.key(0, impl=mine), (3,))

>>> import numpy as np
>>> threefry_2x32((np.uint32(1), np.uint32(2)), np.arange(3, dtype=np.uint32)).shape
(3,)
"""

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from verax import numpy as vnp
from verax.api.vmap import vmap
from verax.ir.avals import Shape
from verax.ir.dtypes import STORED, uint32
from verax.numpy.arguments.arguments import ArrayLike
from verax.ops.random import keys as key_ops
from verax.ops.random.generators import (
    RBG as rbg_prng_impl,
    THREEFRY as threefry_prng_impl,
    UNSAFE_RBG as unsafe_rbg_prng_impl,
    Generator,
)
from verax.ops.random.threefry import threefry2x32
from verax.random.keys import Impl, resolved
from verax.rules.values.array import Array
from verax.rules.values.state import STATE

__all__ = [
    "Generator",
    "define_prng_impl",
    "random_seed",
    "rbg_prng_impl",
    "seed_with_impl",
    "threefry_2x32",
    "threefry_prng_impl",
    "unsafe_rbg_prng_impl",
]


def mapped(fun: Callable[..., object], *depths: int) -> Callable[..., object]:
    """`fun` over the leading dimensions of its arguments, so many of each.

    The numbers are equal, or one of them is 0 and that argument is used again.
    """
    for _ in range(max(depths)):
        fun = vmap(fun, tuple([0 if depth else None for depth in depths]))
    return fun


def seeding(seed: Callable[[Array], Array]) -> Callable[[ArrayLike], object]:
    """`seed` for integers of any shape; those of Python count with their low bits."""

    def seed_all(seeds: ArrayLike) -> object:
        if isinstance(seeds, int):
            width = np.int64 if STATE.enable_x64 else np.int32
            seeds = vnp.asarray(np.asarray(seeds).astype(width))
        return mapped(seed, vnp.ndim(seeds))(seeds)

    return seed_all


def define_prng_impl(
    *,
    key_shape: Shape,
    seed: Callable[[Array], Array],
    split: Callable[[Array, Shape], Array],
    random_bits: Callable[[Array, int, Shape], Array],
    fold_in: Callable[[Array, Array], Array],
    name: str = "<unnamed>",
    tag: str = "?",
) -> Generator:
    """A generator from functions of one raw key, which is uint32 of shape `key_shape`.

    Args:
        seed: a key from an integer, a scalar array.
        split: keys of a shape, (*shape, *key_shape), from a key and the shape.
        random_bits: unsigned integers of a shape, from a key, their width (8, 16, 32 or
            64) and the shape.
        fold_in: a key from a key and an integer of dtype uint32.
        name: what messages call it.
        tag: what the dtype of its keys is called: `key<tag>`.

    Raises:
        ValueError: a key does not have 1, 2 or 4 words. (An array holds a key as one
            element, so that whatever moves elements moves keys.)

    >>> import numpy as np, verax, verax.numpy as vnp
    >>> counting = define_prng_impl(
    ...     key_shape=(1,),
    ...     seed=lambda s: s.astype("uint32").reshape(1),
    ...     split=lambda k, shape: vnp.arange(int(np.prod(shape)), dtype="uint32")
    ...     .reshape(*shape, 1) + k,
    ...     random_bits=lambda k, width, shape: vnp.full(shape, k[0], f"uint{width}"),
    ...     fold_in=lambda k, data: k + data,
    ...     tag="count",
    ... )
    >>> key = verax.random.key(5, impl=counting)
    >>> key.dtype, verax.random.bits(key, (2,), "uint8")
    (key<count>, Array([5, 5], dtype=uint8))
    """
    shape, rank = tuple(key_shape), len(key_shape)
    if prod(shape) not in STORED:
        raise ValueError(
            f"define_prng_impl: keys must have 1, 2 or 4 words, but key_shape={shape} "
            f"has {prod(shape)}"
        )

    def split_all(keys: Array, sizes: Shape) -> object:
        return mapped(lambda key: split(key, sizes), keys.ndim - rank)(keys)

    def bits_of_all(keys: Array, width: int, sizes: Shape) -> object:
        drawn = mapped(lambda key: random_bits(key, width, sizes), keys.ndim - rank)
        return drawn(keys)

    def fold_in_all(keys: Array, data: Array) -> object:
        return mapped(fold_in, keys.ndim - rank, vnp.ndim(data))(keys, data)

    return Generator(
        shape, seeding(seed), split_all, bits_of_all, fold_in_all, name, tag
    )


def random_seed(seeds: Any, impl: Impl) -> Array:
    """Typed keys of a generator from integers, one each.

    Raises:
        TypeError: `seeds` holds no integers.
    """
    offset = STATE.random_seed_offset
    moved = seeds + offset if offset else seeds
    return key_ops.random_seed(moved, resolved(impl))


def seed_with_impl(impl: Impl, seed: object) -> Array:
    """`random_seed`, with the generator first."""
    return random_seed(seed, impl)


def threefry_2x32(keypair: Sequence[ArrayLike] | Array, count: object) -> Array:
    """The hash of integers with a key: an array of uint32 of the shape of `count`.

    Args:
        keypair: the two words of a key, uint32.
        count: what is hashed, the first half of it with the second: uint32.

    Raises:
        TypeError: something is not uint32.
    """
    first, second = keypair
    words = [vnp.asarray(x) for x in (first, second, count)]
    if any([x.dtype != uint32 for x in words]):
        types = ", ".join([str(x.dtype) for x in words])
        raise TypeError(f"threefry_2x32 takes uint32 arguments, not {types}")
    flat = vnp.ravel(words[2])
    size, padding = flat.shape[0], flat.shape[0] % 2
    low, high = vnp.split(vnp.pad(flat, (0, padding)), 2)
    hashed = vnp.concatenate(threefry2x32(words[0], words[1], low, high))
    return vnp.reshape(hashed[:size], words[2].shape)
