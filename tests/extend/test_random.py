"""Generators of the user's: every function of `verax.random` takes their keys."""

from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from verax.extend.random import (
    Generator,
    define_prng_impl,
    random_seed,
    rbg_prng_impl,
    seed_with_impl,
    threefry_2x32,
    threefry_prng_impl,
    unsafe_rbg_prng_impl,
)

FRY = threefry_prng_impl


def double(shape: tuple[int, ...] = (2, 2)) -> Generator:
    """Two threefry keys in one, whose bits are joined by xor."""

    def both(one: Any, other: Any) -> Any:
        return vnp.concatenate([one, other], axis=-1)

    def halves(key: Any) -> tuple[Any, Any]:
        flat = key.reshape(4)
        return flat[:2], flat[2:]

    def split(key: Any, sizes: Any) -> Any:
        keys = both(*[FRY.split(half, sizes) for half in halves(key)])
        return keys.reshape(*sizes, *shape)

    def bits(key: Any, width: int, sizes: Any) -> Any:
        one, other = [FRY.random_bits(half, width, sizes) for half in halves(key)]
        return one ^ other

    return define_prng_impl(
        key_shape=shape,
        seed=lambda s: both(FRY.seed(s), FRY.seed(s + 1)).reshape(shape),
        split=split,
        random_bits=bits,
        fold_in=lambda key, data: both(
            *[FRY.fold_in(half, data) for half in halves(key)]
        ).reshape(shape),
        name="double",
        tag="fry2",
    )


def counting() -> Generator:
    """One word, which is all that is drawn."""
    return define_prng_impl(
        key_shape=(1,),
        seed=lambda s: s.astype("uint32").reshape(1),
        split=lambda key, sizes: (
            vnp.arange(int(np.prod(sizes)), dtype="uint32").reshape(*sizes, 1) + key
        ),
        random_bits=lambda key, width, sizes: vnp.full(sizes, key[0], f"uint{width}"),
        fold_in=lambda key, data: key + data,
        tag="count",
    )


@pytest.mark.parametrize("shape", [(2, 2), (4,), (1, 4)])
def test_keys_behave_as_keys_do(shape: tuple[int, ...]) -> None:
    impl = double(shape)
    key = verax.random.key(7, impl=impl)
    assert str(key.dtype) == "key<fry2>"
    assert key.dtype == verax.random.key_dtype(impl)
    assert vnp.issubdtype(key.dtype, verax.dtypes.prng_key)
    assert verax.random.key_impl(key) == impl
    words = verax.random.key_data(key)
    assert words.ravel().tolist() == [0, 7, 0, 8]
    assert words.shape == shape
    assert bool(verax.random.wrap_key_data(words, impl=impl) == key)
    assert verax.random.PRNGKey(7, impl=impl).shape == shape
    keys = verax.random.split(key, (2, 3))
    assert keys.shape == (2, 3)
    assert bool(vnp.all(vnp.concatenate([keys, keys])[2:] == keys))
    assert bool(vnp.where(vnp.arange(6).reshape(2, 3) == 4, keys, key)[1, 1] != key)


def test_samples_are_those_of_the_parts() -> None:
    key = verax.random.key(7, impl=double())
    one, other = verax.random.key(7), verax.random.key(8)
    actual = verax.random.bits(key, (5,))
    expected = verax.random.bits(one, (5,)) ^ verax.random.bits(other, (5,))
    assert actual.tolist() == expected.tolist()
    folded = verax.random.key_data(verax.random.fold_in(key, 3))
    assert folded[0].tolist() == [
        *verax.random.key_data(verax.random.fold_in(one, 3)).tolist()
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    "draw",
    [
        lambda key: verax.random.normal(key, (3,)),
        lambda key: verax.random.permutation(key, 5),
        lambda key: verax.random.gamma(key, 2.0, (2,)),
        lambda key: verax.random.randint(verax.random.fold_in(key, 3), (4,), 0, 9),
        lambda key: verax.lax.scan(
            lambda k, _: (verax.random.split(k)[0], verax.random.uniform(k)),
            key,
            length=3,
        )[1],
    ],
)
@pytest.mark.usefixtures("little_effort")
def test_programs_and_batches_draw_the_same(draw: Any) -> None:
    check_draws(draw, double())


def test_keys_of_one_word() -> None:
    check_draws(lambda key: verax.random.uniform(key, (3,)), counting())
    key = verax.random.key(5, impl=counting())
    assert verax.random.bits(verax.random.fold_in(key, 3), (2,)).tolist() == [8, 8]
    assert verax.random.key_data(verax.random.split(key)).tolist() == [[5], [6]]


def check_draws(draw: Any, impl: Generator) -> None:
    """Compiled and batched draws are those of each key alone."""
    keys = verax.random.split(verax.random.key(1, impl=impl), 3)
    alone = [np.asarray(draw(key)) for key in keys]
    for batch in (verax.vmap(draw), verax.jit(verax.vmap(draw))):
        np.testing.assert_allclose(batch(keys), np.stack(alone), rtol=1e-5)


def test_ours_are_generators_too() -> None:
    for name, impl in [
        ("threefry2x32", threefry_prng_impl),
        ("rbg", rbg_prng_impl),
        ("unsafe_rbg", unsafe_rbg_prng_impl),
    ]:
        key = verax.random.key(3, impl=impl)
        assert impl.name == name
        assert bool(key == verax.random.key(3, impl=name))
        assert verax.random.key_impl(key) == name
        seeds = np.arange(3)
        assert bool(random_seed(seeds, impl)[2] == verax.random.key(2, impl=name))
        assert seed_with_impl(impl, 3) == key


def test_the_hash() -> None:
    pair = np.uint32(1), np.uint32(2)
    counts = np.arange(5, dtype=np.uint32)
    # What jax.extend.random.threefry_2x32 gives.
    expected = [2052595727, 3504730591, 2527474599, 1880214352, 1914734168]
    assert threefry_2x32(pair, counts).tolist() == expected
    assert threefry_2x32(pair, counts[:4].reshape(2, 2)).shape == (2, 2)
    with pytest.raises(TypeError, match="uint32"):
        threefry_2x32(pair, np.arange(3))


def test_what_is_refused() -> None:
    made = double()
    assert made.key_shape == (2, 2)
    with pytest.raises(ValueError, match="1, 2 or 4 words"):
        define_prng_impl(
            key_shape=(3,),
            seed=made.seed,
            split=made.split,
            random_bits=made.random_bits,
            fold_in=made.fold_in,
        )
    with pytest.raises(TypeError, match="raw double key has four words"):
        verax.random.wrap_key_data(np.ones((3, 2), np.uint32), impl=made)
    with pytest.raises(TypeError):
        verax.random.key(0, impl=3)  # type: ignore[arg-type]  # on purpose
