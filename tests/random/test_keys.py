"""Keys: both forms, structure, transformations, errors."""

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from verax import lax, random

ANY: Any = random


def words(keys: Any) -> list[Any]:
    actual: list[Any] = np.asarray(random.key_data(keys)).tolist()
    return actual


def test_both_forms_give_the_same_numbers() -> None:
    typed, raw = random.key(7), random.PRNGKey(7)
    assert str(typed.dtype) == "key<fry>"
    assert typed.shape == ()
    assert raw.dtype == np.uint32
    assert raw.shape == (2,)
    for draw in (random.normal, random.uniform, random.bits):
        np.testing.assert_array_equal(
            np.asarray(draw(typed, (3,))), np.asarray(draw(raw, (3,)))
        )
    assert random.split(raw).dtype == np.uint32
    assert random.split(raw, (2, 3)).shape == (2, 3, 2)
    assert random.split(typed, (2, 3)).shape == (2, 3)
    assert words(random.split(raw)) == words(random.split(typed))
    assert words(random.fold_in(raw, 3)) == words(random.fold_in(typed, 3))


def test_a_numpy_array_is_a_raw_key() -> None:
    raw = np.array([0, 7], np.uint32)
    actual = random.bits(raw, (2,))
    np.testing.assert_array_equal(
        np.asarray(actual), np.asarray(random.bits(random.key(7), (2,)))
    )


def test_wrap_and_unwrap() -> None:
    key = random.key(3)
    assert words(random.wrap_key_data(random.key_data(key))) == [0, 3]
    assert words(random.clone(key)) == [0, 3]
    assert random.key_impl(key) == "threefry2x32"
    assert random.key_dtype("fry") == key.dtype
    assert random.key(3, impl="threefry2x32").dtype == key.dtype
    assert random.key(3, dtype=random.key_dtype()).dtype == key.dtype


def test_key_arrays_are_arrays() -> None:
    keys = random.split(random.key(0), 6)
    assert keys.reshape(2, 3).shape == (2, 3)
    assert words(keys[1]) == words(keys)[1]
    assert words(keys[2:4]) == words(keys)[2:4]
    first, second = random.split(random.key(0))
    assert words(first) != words(second)


def test_under_transformations() -> None:
    key = random.key(0)
    keys = random.split(key, 3)
    loop = [words(random.split(keys[i], 2)) for i in range(3)]
    assert words(verax.vmap(random.split)(keys)) == loop
    raw = random.key_data(keys)
    assert words(verax.vmap(random.split)(raw)) == loop
    assert words(verax.jit(random.split)(key)) == words(random.split(key))
    seeds = np.arange(3, dtype=np.int32)
    assert words(verax.vmap(random.key)(seeds)) == [[0, 0], [0, 1], [0, 2]]
    folded = verax.vmap(random.fold_in, in_axes=(None, 0))(key, seeds)
    assert words(folded) == [words(random.fold_in(key, i)) for i in range(3)]
    drawn = verax.vmap(lambda k: random.bits(k, (2,)))(keys)
    rows = [np.asarray(random.bits(keys[i], (2,))) for i in range(3)]
    np.testing.assert_array_equal(np.asarray(drawn), np.stack(rows))


def test_eager_and_compiled_draws_have_the_same_bits() -> None:
    key = random.key(1)
    for draw in (random.normal, random.gumbel, random.laplace, random.cauchy):
        compiled = verax.jit(lambda k, draw=draw: draw(k, (257,)))(key)
        np.testing.assert_array_max_ulp(
            np.asarray(draw(key, (257,))), np.asarray(compiled), maxulp=4
        )


def test_few_equations() -> None:
    def count(fun: Any) -> int:
        return len(verax.make_jaxpr(fun)(random.key(0)).jaxpr.eqns)

    assert count(lambda k: random.uniform(k, (3,))) == 5
    assert count(lambda k: random.normal(k, (3,))) <= 10
    assert count(lambda k: random.randint(k, (3,), 0, 10)) <= 12
    assert count(lambda k: random.bernoulli(k, 0.5, (3,))) == 6


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: ANY.key(1.5), "seed must be an integer"),
        (lambda: ANY.key(np.arange(2)), "verax.vmap"),
        (lambda: ANY.key(random.key(0)), "not a key"),
        (lambda: ANY.key(0, impl="other"), "threefry2x32"),
        (lambda: ANY.key(0, impl=3), "name of a generator"),
        (lambda: ANY.split(np.arange(2)), "uint32"),
        (lambda: ANY.split([0, 1]), "verax.random.key"),
        (lambda: ANY.normal(None), "argument 0 is None"),
        (lambda: ANY.normal(0), "argument 0 is 0"),
        (lambda: ANY.normal(random.split(random.key(0))), "verax.vmap"),
        (lambda: ANY.fold_in(random.key(0), np.arange(2)), "verax.vmap"),
        (lambda: ANY.fold_in(random.key(0), 2**33), "out of bounds"),
        (lambda: ANY.wrap_key_data(np.zeros(3, np.uint32)), "two words"),
        (lambda: ANY.uniform(random.key(0), (2,), np.int32), "must be a float dtype"),
        (lambda: ANY.normal(random.key(0), (-1,)), "shape"),
        (lambda: ANY.bits(random.key(0), (2,), np.int32), "unsigned"),
        (lambda: ANY.bernoulli(random.key(0), 1), "float"),
        (lambda: ANY.bernoulli(random.key(0), 0.5, mode="x"), "mode"),
        (lambda: ANY.gumbel(random.key(0), mode="x"), "mode"),
        (lambda: ANY.randint(random.key(0), (2,), 0, 3, np.float32), "integer type"),
        (lambda: ANY.permutation(random.key(0), 5.5), "integer"),
        (lambda: ANY.choice(random.key(0), 5, 3), "sequence"),
        (lambda: ANY.choice(random.key(0), 0, (2,)), "empty"),
        (lambda: ANY.choice(random.key(0), 2, (3,), False), "from 2"),
        (lambda: ANY.choice(random.key(0), 2, (3,), p=np.ones(3)), "each of the 2"),
        (lambda: ANY.categorical(random.key(0), np.ones((2, 3)), shape=(5,)), "(2,)"),
        (lambda: ANY.uniform(random.key(0), (3,), minval=np.zeros((2, 3))), "(2, 3)"),
    ],
)
def test_errors(call: Any, words: str) -> None:
    with pytest.raises((TypeError, ValueError, OverflowError)) as caught:
        call()
    assert words in str(caught.value)


def test_keys_show_their_words() -> None:
    key = verax.random.key(7)
    assert repr(key) == "Array((), dtype=key<fry>) overlaying:\n[0 7]"
    several = verax.random.split(verax.random.key(7, impl="rbg"), 2)
    assert repr(several).endswith(f"overlaying:\n{verax.random.key_data(several)}")


@pytest.mark.parametrize("impl", ["threefry2x32", "rbg", "unsafe_rbg", "philox4x32"])
def test_keys_are_equal_or_not(impl: str) -> None:
    key = random.key(0, impl=impl)
    keys = random.split(key, 3)
    column = keys[:, None]
    assert (keys == keys).tolist() == [True] * 3
    assert (keys != keys[::-1]).tolist() == [True, False, True]
    assert (column == keys).tolist() == np.eye(3, dtype=bool).tolist()
    assert (keys == keys[1]).tolist() == [False, True, False]
    assert (keys[:0] == keys[:0]).shape == (0,)
    assert keys[2] in list(keys)
    assert bool(verax.numpy.array_equal(keys, keys.copy()))
    assert not verax.numpy.array_equal(keys, keys[::-1])
    assert verax.lax.eq(key, keys).tolist() == [False] * 3
    assert verax.lax.ne(keys, key).tolist() == [True] * 3
    assert verax.jit(lambda a, b: a == b)(keys, keys[0]).tolist() == [
        True,
        False,
        False,
    ]
    assert verax.vmap(lambda a: a == keys[0])(keys).tolist() == [True, False, False]
    chosen = verax.grad(lambda x: verax.numpy.where(key == key, x * x, x))(3.0)
    assert float(chosen) == 6


def test_keys_are_no_numbers() -> None:
    key: Any = random.key(0)
    uses: list[Any] = [
        bool, int, float, complex, np.asarray,
        lambda k: k.item(), lambda k: k.tolist(), lambda k: k + 1, lambda k: k == 1,
    ]  # fmt: skip
    for use in uses:
        with pytest.raises(TypeError, match=r"key_data"):
            use(key)
        with pytest.raises(TypeError, match=r"key_data"):
            verax.jit(use)(key)


def test_dtypes_of_keys_are_below_prng_key() -> None:
    dtype = random.key(0).dtype
    below = verax.numpy.issubdtype
    assert below(dtype, verax.dtypes.prng_key)
    assert below(dtype, verax.dtypes.extended)
    assert below(verax.dtypes.prng_key, verax.dtypes.extended)
    assert not below(dtype, np.integer)
    assert not below(np.float32, verax.dtypes.prng_key)
    assert verax.dtypes.canonicalize_dtype(dtype, allow_extended_dtype=True) == dtype
    with pytest.raises(ValueError, match="allow_extended_dtype"):
        verax.dtypes.canonicalize_dtype(dtype)


def test_keys_are_copied_fetched_and_pickled() -> None:
    keys = random.split(random.key(0), 2)
    copies = [
        verax.numpy.array(keys, copy=True),
        verax.jit(verax.numpy.copy)(keys),
        copy.deepcopy(keys),
        pickle.loads(pickle.dumps(keys)),
        verax.device_put(keys, verax.devices()[0]),
        verax.device_get({"keys": keys})["keys"],
    ]
    for actual in copies:
        assert actual.dtype == keys.dtype
        assert bool((actual == keys).all())
    with verax.default_prng_impl("rbg"):
        assert str(random.key(0).dtype) == "key<rbg>"


@pytest.mark.parametrize("impl", ["threefry2x32", "rbg", "unsafe_rbg", "philox4x32"])
@pytest.mark.parametrize("run", [lambda f: f, verax.jit])
def test_arrays_of_keys_are_filled_and_written(impl: str, run: Any) -> None:
    keys = verax.random.split(verax.random.key(0, impl=impl), 3)
    words = np.asarray(verax.random.key_data(keys))

    def data(f: Any, *args: Any) -> Any:
        return np.asarray(verax.random.key_data(run(f)(*args)))

    assert (data(vnp.ones_like, keys) == 1).all()
    assert (data(vnp.zeros_like, keys) == 0).all()
    assert (data(lambda: vnp.ones((2,), keys.dtype)) == 1).all()
    where = np.array([1, 9, -7])
    actual = data(lambda k: k.at[where].get(mode="fill"), keys)
    assert np.array_equal(actual[0], words[1])
    assert (actual[1:] == 2**32 - 1).all()
    assert np.array_equal(actual, data(lambda k: vnp.take(k, where), keys))
    written = data(lambda k: k.at[where].set(k[0]), keys)
    assert np.array_equal(written, words[[0, 0, 2]])

    def each(k: Any) -> Any:
        def at(i: Any) -> Any:
            return k.at[i].set(k[0])

        return verax.vmap(at)(vnp.arange(3))

    many = data(each, keys)
    assert np.array_equal(many[2], words[[0, 1, 0]])

    def send(k: Any) -> Any:
        return lax.ppermute(k, "i", [(0, 2)])

    sent = data(verax.vmap(send, axis_name="i"), keys)
    assert np.array_equal(sent, [0 * words[0], 0 * words[0], words[0]])


def test_keys_and_numbers_do_not_convert() -> None:
    keys = verax.random.split(verax.random.key(0), 3)
    for run in (lambda f: f, verax.jit):
        for act in (
            lambda k: lax.convert_element_type(k, "uint32"),
            lambda k: k.astype(int),
            lambda k: lax.convert_element_type(vnp.arange(3), k.dtype),
            lambda k: lax.convert_element_type(
                k, verax.random.key(0, impl="rbg").dtype
            ),
        ):
            with pytest.raises(ValueError, match="Cannot convert_element_type from"):
                run(act)(keys)
    assert lax.convert_element_type(keys, keys.dtype) is keys
    with pytest.raises(TypeError):
        keys.at[np.array([9])].get(mode="fill", fill_value=1.5)


def test_keys_and_numbers_do_not_add_up() -> None:
    key = verax.random.key(0)
    uses: list[Callable[[], Any]] = [
        lambda: vnp.add(key, 1),
        lambda: key + 1,
        lambda: verax.jit(lambda k: k + 1)(key),
    ]
    for use in uses:
        with pytest.raises(TypeError, match="add does not accept dtypes key<fry>, int"):
            use()
    with pytest.raises(TypeError, match="hypot does not accept dtypes float32, key"):
        vnp.hypot(1.0, key)
