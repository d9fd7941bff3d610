"""`threefry_partitionable=False`: the streams of JAX before 0.5."""

from collections.abc import Callable, Iterator

import numpy as np
import pytest

import verax
from verax import export, numpy as vnp, random
from verax.core import jaxpr_as_fun
from verax.ops.random import threefry

# What jax 0.12 makes with that option.
BITS = {
    "uint8": [75, 52, 5, 116, 142],
    "uint16": [52786, 15632, 46739, 1376, 49900],
    "uint32": [877192987, 1614509672, 4140764773, 3448417067, 2823528474],
    "uint64": [
        10584361011749870118,
        7932667648193756220,
        12357824677814166253,
        1767143665846316574,
        17626509653863031646,
    ],
}
KEYS = [
    [877192987, 1614509672],
    [1950127089, 3448417067],
    [2823528474, 3529024829],
]


@pytest.fixture(autouse=True)
def in_halves() -> Iterator[None]:
    with verax.threefry_partitionable(False), verax.enable_x64(True):
        yield


def direct(f: Callable[..., object]) -> Callable[..., object]:
    return f


@pytest.mark.parametrize("dtype", BITS)
@pytest.mark.parametrize("through", [direct, verax.jit])
def test_bits_depend_on_how_many_there_are(
    dtype: str, through: Callable[..., Callable[..., verax.Array]]
) -> None:
    draw = through(lambda key: random.bits(key, (5,), dtype))
    assert draw(random.key(3)).tolist() == BITS[dtype]
    assert draw(random.PRNGKey(3)).tolist() == BITS[dtype]
    assert random.bits(random.key(3), (0,), dtype).shape == (0,)


@pytest.mark.parametrize(("impl", "times"), [("threefry2x32", 1), ("rbg", 2)])
def test_new_keys(impl: str, times: int) -> None:
    key = random.key(3, impl=impl)
    expected = [words * times for words in KEYS]
    assert random.key_data(random.split(key, 3)).tolist() == expected
    bits = random.bits(random.key(3, impl="rbg"), (2,))
    with verax.threefry_partitionable(True):
        assert random.bits(random.key(3, impl="rbg"), (2,)).tolist() == bits.tolist()


def test_what_draws_from_bits() -> None:
    key = random.key(3)
    drawn = [0.2042374079588094, 0.3759073262702217, 0.45404934553002585]
    assert random.uniform(key, (3,)).tolist() == drawn
    assert random.permutation(key, 5).tolist() == [4, 1, 2, 3, 0]
    folded = random.key_data(random.fold_in(key, 7))
    with verax.threefry_partitionable(True):
        assert (random.key_data(random.fold_in(key, 7)) == folded).all()


def test_a_batch_of_keys_draws_what_each_draws() -> None:
    keys = random.split(random.key(3), (2, 3))
    each = [[random.bits(key, (5,)).tolist() for key in row] for row in keys]
    mapped = verax.vmap(verax.vmap(lambda key: random.bits(key, (5,))))(keys)
    assert mapped.tolist() == each
    split = verax.vmap(lambda row: verax.vmap(random.split)(row))(keys)
    assert (
        random.key_data(split)[1, 2].tolist()
        == random.key_data(random.split(keys[1, 2])).tolist()
    )


def test_programs_say_which_stream_they_draw_from() -> None:
    draw = verax.jit(lambda key: random.bits(key, (3,), "uint32"))
    key = random.key(3)
    old = draw(key).tolist()
    program = verax.make_jaxpr(draw)(key)
    assert "impl=fry_halves" in str(program)
    with verax.threefry_partitionable(True):
        new = draw(key).tolist()
        assert jaxpr_as_fun(program)(key)[0].tolist() == old
    assert new != old
    assert draw(key).tolist() == old


def test_numbers_of_elements_that_an_export_leaves_open() -> None:
    (size,) = export.symbolic_shape("n")
    draw = verax.jit(lambda key, x: random.bits(key, x.shape, "uint16"))
    like = verax.ShapeDtypeStruct((size,), "float32")
    key = random.PRNGKey(3)
    exported = export.export(draw)(key, like)
    for count in (1, 2, 5):
        x = vnp.zeros(count, np.float32)
        assert exported.call(key, x).tolist() == draw(key, x).tolist()


def test_more_words_than_32_bits_count() -> None:
    with pytest.raises(NotImplementedError, match=r"less than 2\*\*32 words"):
        verax.make_jaxpr(lambda k: threefry.hashed_in_halves(k, 1 << 32))(
            random.PRNGKey(0)
        )
