"""Keys of four words: the numbers of jax 0.12 under rbg and unsafe_rbg."""

from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from verax import lax, random
from verax.api.config.config import override
from verax.ops.random import generators as rbg, threefry
from verax.rules.values.array import Array

# JAX: the draws of LATE, fold_in(key(42), 7) and split(key(42), (1,)).
CARRIED = [
    *(2440199171, 2734589407, 1297845474, 626431447, 875035680, 2457449792),
    *(952865925, 536199321, 67759320, 265751716, 222428074, 2049345928),
]
FOLDED = [2104303640, 250182049, 1106406590, 1983638428]
SPLIT = [[2620864722, 2991908441, 282133475, 2589630650]]
IMPLS = ("rbg", "unsafe_rbg")
LATE = np.array([1, 2, 2**32 - 2, 2**32 - 1], np.uint32)


def words(keys: Any) -> Any:
    return np.asarray(random.key_data(keys)).tolist()


def test_streams_are_those_of_jax() -> None:
    key = random.key(42, impl="rbg")
    assert words(key) == [0, 42, 0, 42]
    half = np.asarray(random.key_data(random.split(random.key(42))))
    assert words(random.split(key)) == np.concatenate([half, half], 1).tolist()
    assert random.key_impl(key) == "rbg"
    assert (
        random.bits(random.wrap_key_data(LATE, impl="rbg"), (12,)).tolist() == CARRIED
    )
    unsafe = random.key(42, impl="unsafe_rbg")
    assert words(random.fold_in(unsafe, 7)) == FOLDED
    assert words(random.split(unsafe, (1,))) == SPLIT


def test_splits_take_each_tenth_draw() -> None:
    """JAX: split(key(42), (2, 3))."""
    table = [
        [2620864722, 2991908441, 282133475, 2589630650],
        [4105776319, 298289174, 864345282, 274752888],
        [3163845003, 1288433488, 2875901698, 4130285303],
        [121532186, 92310596, 2900603346, 2008188525],
        [1328550726, 2340856697, 2158919378, 1723337487],
        [3463793296, 2759598209, 3565056766, 1896687008],
    ]
    key = random.key(42, impl="unsafe_rbg")
    assert words(random.split(key, (2, 3))) == [table[:3], table[3:]]
    raw = random.key_data(key)
    assert rbg.unsafe_split(raw, (2,)).tolist() == table[:2]
    stacked = vnp.stack([raw, random.key_data(random.fold_in(key, 7))])
    pairs = rbg.unsafe_split(stacked, (2,))
    assert pairs.shape == (2, 2, 4)
    assert pairs[0].tolist() == table[:2]
    halves = [[1832780943, 270669613], [64467757, 2916123636]]
    assert threefry.split(random.key_data(random.key(42)), (2,)).tolist() == halves


@pytest.mark.parametrize("impl", IMPLS)
def test_keys_move_as_elements(impl: str) -> None:
    keys = random.split(random.key(1, impl=impl), (2, 3))
    assert keys.shape == (2, 3)
    raw = np.asarray(random.key_data(keys))
    assert raw.shape == (2, 3, 4)

    def moved(keys: Array) -> Array:
        turned = vnp.stack([keys.T, keys.T[::-1]]).reshape(-1)[3:8]
        return random.key_data(vnp.where(np.arange(5) > 2, turned, keys[0, 1]))

    expected = np.stack([raw.swapaxes(0, 1), raw.swapaxes(0, 1)[::-1]]).reshape(-1, 4)
    expected = np.where(np.arange(5)[:, None] > 2, expected[3:8], raw[0, 1])
    np.testing.assert_array_equal(moved(keys), expected)
    np.testing.assert_array_equal(verax.jit(moved)(keys), expected)


@pytest.mark.parametrize("impl", IMPLS)
def test_each_key_has_its_own_stream_under_vmap(impl: str) -> None:
    keys = random.split(random.key(1, impl=impl), 3)
    rows = verax.vmap(lambda k: random.bits(random.fold_in(k, 3), (5,)))(keys)
    for i in range(3):
        own = random.bits(random.fold_in(keys[i], 3), (5,))
        np.testing.assert_array_equal(rows[i], own)


def test_words_that_spell_a_nan_survive() -> None:
    data = np.array([1, 0x7FF00001, 1, 0xFFF80001], np.uint32)
    key = random.wrap_key_data(data, impl="rbg")
    twice = verax.jit(lambda k: random.key_data(vnp.stack([k, k])[::-1]))(key)
    np.testing.assert_array_equal(twice, np.stack([data, data]))
    chosen = lax.cond(True, lambda k: k, lambda k: k, key)
    assert words(chosen) == data.tolist()


def test_default_generator() -> None:
    with override("default_prng_impl", "rbg"):
        assert random.key_impl(random.key(0)) == "rbg"
        assert random.PRNGKey(0).shape == (4,)
        assert verax.jit(lambda: random.key_data(random.key(0)))().shape == (4,)
    assert verax.jit(lambda: random.key_data(random.key(0)))().shape == (2,)
    assert random.uniform(random.PRNGKey(0, impl="rbg")).shape == ()
    with pytest.raises(ValueError, match="unrecognized PRNG implementation 'mersenne'"):
        random.key(0, impl="mersenne")


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint32])
@pytest.mark.parametrize("algorithm", list(lax.RandomAlgorithm))
def test_generators_compiled_and_not(
    algorithm: lax.RandomAlgorithm, dtype: type
) -> None:
    def draw(key: Any) -> Any:
        return lax.rng_bit_generator(key, (3, 5), dtype, algorithm)

    for a, b in zip(draw(LATE), verax.jit(draw)(LATE), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("shape", [(5, 3, 1), (3, 5, 1), (3, 3, 2, 3), ()])
def test_pairs_of_words_fill_any_dimension(shape: tuple[int, ...]) -> None:
    """The first even one, or the first of the largest; XLA's own bits are the truth."""

    def draw(key: Any) -> Any:
        algorithm = lax.RandomAlgorithm.RNG_THREE_FRY
        return lax.rng_bit_generator(key, shape, np.uint32, algorithm)

    for a, b in zip(draw(LATE), verax.jit(draw)(LATE), strict=True):
        np.testing.assert_array_equal(a, b)


def test_mulhi() -> None:
    for dtype in (np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32):
        info = np.iinfo(dtype)
        x = np.array([info.min, info.max, 3, info.max // 3, info.min], dtype)
        y = np.array([info.min, info.max, 5, 7, info.max], dtype)
        exact = [int(a) * int(b) >> info.bits for a, b in zip(x, y, strict=True)]
        assert lax.mulhi(x, y).tolist() == exact
        assert verax.jit(lax.mulhi)(x, y).tolist() == exact
