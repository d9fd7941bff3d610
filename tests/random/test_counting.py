"""Generators that hash a counter: the vectors of Random123, the numbers of jax 0.12."""

from typing import Any

import numpy as np
import pytest

import verax
from verax import random
from verax.ops.random.counting import philox2, philox4
from verax.ops.random.threefry4 import threefry4x32

PI = (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344)
MORE = (0xA4093822, 0x299F31D0, 0x082EFA98, 0xEC4E6C89)
NAMES = ("philox2x32", "philox4x32", "threefry4x32")

# What key(3) gives under jax 0.12: its words, three draws of 32 bits, the second of
# two keys, and the key with 5 folded in.
STREAMS = {
    "philox2x32": (
        [1756153345],
        [721757809, 811800380, 3734996749],
        [1599509636],
        [1161485442],
    ),
    "philox4x32": (
        [3509165040, 3569804951],
        [2455879424, 3810592336, 2602001797],
        [3775940172, 2377464093],
        [663285112, 2669197746],
    ),
    "threefry4x32": (
        [3248282065, 734211508, 1407164217, 2801754411],
        [3563681130, 3941503572, 1085729509],
        [3250147889, 700940184, 597831671, 2337861200],
        [3133940903, 3168223244, 451873985, 3874492636],
    ),
}
WIDE = {
    "philox2x32": [1951406705138068606, 6869841578122642360],
    "philox4x32": [17940020594705459481, 16487860037101032344],
    "threefry4x32": [14621837764535142032, 108739255805461394],
}


def numbers(x: Any) -> Any:
    return np.asarray(x).tolist()


def words(*values: int) -> list[Any]:
    return [np.uint32(value) for value in values]


def test_known_answers() -> None:
    """`kat_vectors` of Random123 1.14, with zeros and with the digits of pi."""
    none = words(0, 0, 0, 0)
    assert numbers(philox2(none[:1], none[:2])) == [0xFF1DAE59, 0x6CD10DF2]
    assert numbers(philox4(none[:2], none)) == [
        *(0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8),
    ]
    assert numbers(philox4(words(*MORE[:2]), words(*PI))) == [
        *(0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
    ]
    assert numbers(threefry4x32(none, none)) == [
        *(0x9C6CA96A, 0xE17EAE66, 0xFC10ECD4, 0x5256A7D8),
    ]
    assert numbers(threefry4x32(words(*MORE), words(*PI))) == [
        *(0x59CD1DBB, 0xB8879579, 0x86B5D00C, 0xAC8B6D84),
    ]


@pytest.mark.parametrize("name", NAMES)
def test_streams_are_those_of_jax(name: str) -> None:
    key = random.key(3, impl=name)
    made, bits, second, folded = STREAMS[name]
    assert random.key_impl(key) == name
    assert numbers(random.key_data(key)) == made
    assert numbers(random.bits(key, (3,))) == bits
    assert numbers(random.key_data(random.split(key)[1])) == second
    assert numbers(random.key_data(random.fold_in(key, 5))) == folded
    with verax.enable_x64():
        assert numbers(random.bits(key, (2,), "uint64")) == WIDE[name]
    assert numbers(verax.jit(lambda k: random.bits(k, (3,)))(key)) == bits


@pytest.mark.parametrize("name", NAMES)
def test_batches_are_what_each_key_draws(name: str) -> None:
    keys = random.split(random.key(0, impl=name), (2, 3))
    draws = verax.vmap(verax.vmap(lambda k: random.uniform(k, (4,))))(keys)
    each = [[random.uniform(k, (4,)) for k in row] for row in keys]
    assert numbers(draws) == numbers(each)
    folded = verax.vmap(random.fold_in, (None, 0))(keys[0, 0], np.arange(3))
    one = [random.fold_in(keys[0, 0], i) for i in range(3)]
    assert numbers(random.key_data(folded)) == [
        numbers(random.key_data(k)) for k in one
    ]
    assert numbers(random.bits(keys[0, 0], (0, 2))) == []
    narrow = numbers(random.bits(keys[0, 0], (5,), "uint8"))
    assert narrow == [x % 256 for x in numbers(random.bits(keys[0, 0], (5,)))]


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_keys_are_kept_and_made(name: str) -> None:
    with verax.default_prng_impl(name):
        key = random.key(1)
    assert random.key_impl(key) == name
    again = random.wrap_key_data(random.key_data(key), impl=name)
    assert bool(again == key)
    with pytest.raises(TypeError, match=f"a raw {name} key has"):
        random.wrap_key_data(np.zeros(3, np.uint32), impl=name)
    draws = np.asarray(random.normal(key, (20_000,)))
    assert abs(draws.mean()) < 0.03
    assert abs(draws.std() - 1) < 0.03
