"""Floor 2: threefry on the host: few counters as Python integers, many in place.

One idea: a hash is a hundred small operations, so the price of one counts: for a few
counters Python's integers are the cheapest, for more NumPy without copies::

    hashed(k0, k1, x0, x1)      # two arrays of uint32
"""

from math import prod

import numpy as np

from verax.ir.avals import Shape
from verax.rules.rows.row import NDArray

ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
TURNS = tuple(
    tuple((np.uint32(r), np.uint32(32 - r)) for r in group) for group in ROTATIONS
)
PARITY = 0x1BD11BDA
WORD = 0xFFFFFFFF
# Counters up to which Python's integers win.
FEW = 4
LOW, HALF = np.uint64(WORD), np.uint64(32)


def one_hash(k0: int, k1: int, a: int, b: int) -> tuple[int, int]:
    """The hash of one counter under one key, in integers of any width."""
    keys = (k0, k1, k0 ^ k1 ^ PARITY)
    a, b = (a + k0) & WORD, (b + k1) & WORD
    for group in range(5):
        for turn in ROTATIONS[group % 2]:
            a = (a + b) & WORD
            b = a ^ ((b << turn | b >> (32 - turn)) & WORD)
        a = (a + keys[(group + 1) % 3]) & WORD
        b = (b + keys[(group + 2) % 3] + group + 1) & WORD
    return a, b


def hashed(k0: NDArray, k1: NDArray, a: NDArray, b: NDArray) -> tuple[NDArray, NDArray]:
    """The hash of counters (a, b) under keys (k0, k1), uint32 that broadcast."""
    shape = np.broadcast_shapes(k0.shape, k1.shape, a.shape, b.shape)
    if prod(shape) <= FEW:
        lines = [np.broadcast_to(x, shape).ravel().tolist() for x in (k0, k1, a, b)]
        result = [one_hash(*words) for words in zip(*lines, strict=True)]
        table = np.array(result, np.uint32).reshape(*shape, 2)
        return table[..., 0], table[..., 1]
    first, second, moved = (np.empty(shape, np.uint32) for _ in range(3))
    keys = (k0, k1, k0 ^ k1 ^ np.uint32(PARITY))
    np.add(a, k0, out=first)
    np.add(b, k1, out=second)
    for group in range(5):
        for left, right in TURNS[group % 2]:
            np.add(first, second, out=first)
            np.left_shift(second, left, out=moved)
            np.right_shift(second, right, out=second)
            np.bitwise_or(second, moved, out=second)
            np.bitwise_xor(second, first, out=second)
        np.add(first, keys[(group + 1) % 3], out=first)
        np.add(second, keys[(group + 2) % 3] + np.uint32(group + 1), out=second)
    return first, second


def key_words(keys: NDArray) -> tuple[NDArray, NDArray]:
    """The two words of keys that are stored as uint64."""
    return (keys & LOW).astype(np.uint32), (keys >> HALF).astype(np.uint32)


def over(keys: NDArray, shape: Shape) -> tuple[NDArray, NDArray]:
    """The hashes of the places of `shape` under each key: (*keys, *shape)."""
    count = prod(shape)
    high = np.uint32(0)
    if count > 1 << 32:
        places = np.arange(count, dtype=np.uint64).reshape(shape)
        low, above = key_words(places)
    else:
        low, above = np.arange(count, dtype=np.uint32).reshape(shape), np.asarray(high)
    spread = keys.reshape(keys.shape + (1,) * len(shape))
    return hashed(*key_words(spread), above, low)


def stored(first: NDArray, second: NDArray) -> NDArray:
    """Keys as uint64 of their two words."""
    return np.asarray(first.astype(np.uint64) | (second.astype(np.uint64) << HALF))


def split(keys: NDArray, shape: Shape) -> NDArray:
    """New keys of `shape` from each stored key."""
    return stored(*over(keys, shape))


def fold_in(keys: NDArray, data: NDArray) -> NDArray:
    """The stored keys that keys and uint32 make."""
    return stored(*hashed(*key_words(keys), np.zeros((), np.uint32), data))


def random_bits(keys: NDArray, width: int, shape: Shape) -> NDArray:
    """Random unsigned integers: `shape` of them from each stored key."""
    high, low = over(keys, shape)
    if width == 64:
        return stored(low, high)
    return np.asarray((high ^ low).astype(f"u{width // 8}", copy=False))
