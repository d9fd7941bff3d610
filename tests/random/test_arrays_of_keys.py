"""Arrays of keys are arrays: filled, read out of bounds, written, made of parts."""

from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from property_tests.levels import rarely
from verax import random

ANY: Any = random
GENERATORS = (
    "threefry2x32",
    "rbg",
    "unsafe_rbg",
    "philox2x32",
    "philox4x32",
    "threefry4x32",
)


def words(keys: Any) -> list[Any]:
    actual: list[Any] = np.asarray(random.key_data(keys)).tolist()
    return actual


def both(f: Any, *args: Any) -> list[Any]:
    """The words of what `f` returns, which are the same under `jit`."""
    actual = words(f(*args))
    assert words(verax.jit(f)(*args)) == actual
    return actual


@pytest.mark.parametrize("impl", GENERATORS)
def test_a_number_fills_all_words_of_a_key(impl: str) -> None:
    dtype = random.key_dtype(impl)
    count = len(words(random.key(0, impl=impl)))
    for value, word in ((0, 0), (3, 3), (-1, 2**32 - 1), (1.5, 1)):
        actual = both(lambda v=value: vnp.full((2,), v, dtype=dtype))
        assert actual == [[word] * count] * 2
    assert both(lambda: vnp.ones(2, dtype)) == [[1] * count] * 2


@pytest.mark.parametrize("impl", GENERATORS)
def test_keys_out_of_bounds(impl: str) -> None:
    keys = random.split(random.key(1, impl=impl), 3)
    first, *_, last = words(keys)
    bits = [2**32 - 1] * len(first)
    assert both(lambda keys: keys.at[9].get(mode="fill"), keys) == bits
    assert both(lambda keys: keys.at[9].get(mode="clip"), keys) == last
    assert both(lambda keys: keys.at[9].get(mode="fill", fill_value=3), keys) == [
        3 for _ in first
    ]
    at = vnp.array([0, 7])
    actual = both(lambda keys, at: vnp.take(keys, at, mode="fill"), keys, at)
    assert actual == [first, bits]


INDICES = (0, slice(1), slice(None, None, 2), np.array([0, 2]), np.array([0, 1, 1]) > 0)


@pytest.mark.slow
@pytest.mark.parametrize("impl", GENERATORS)
@pytest.mark.parametrize("index", INDICES, ids=str)
def test_keys_are_written(impl: str, index: Any) -> None:
    keys, new = random.split(random.key(1, impl=impl), 3), random.key(2, impl=impl)
    expected = np.array(words(keys))
    expected[index] = words(new)
    actual = both(lambda keys, new: keys.at[index].set(new), keys, new)
    assert actual == expected.tolist()


def test_keys_of_parts() -> None:
    keys = random.split(random.key(1), 3)
    place = verax.sharding.SingleDeviceSharding(verax.devices()[0])
    actual = verax.make_array_from_callback((3,), place, lambda index: keys[index])
    assert actual.dtype == keys.dtype
    assert words(actual) == words(keys)


def test_seeds_of_more_than_64_bits() -> None:
    assert random.PRNGKey(2**63 - 1).tolist() == [0, 2**32 - 1]
    assert random.PRNGKey(-(2**63)).tolist() == [0, 0]
    for seed in (2**63, 2**64, -(2**63) - 1):
        with pytest.raises(OverflowError, match="more than 64 bits"):
            random.PRNGKey(seed)
        with pytest.raises(OverflowError):
            verax.jit(random.key)(seed)


def test_names_for_annotations() -> None:
    key: random.Key = random.Key(random.key(0))
    assert random.key_dtype(impl_spec="rbg") == random.key(0, impl="rbg").dtype
    assert key.dtype == random.key_dtype()


TWO = np.array([2.0, 3.0], np.float32)
CHANCES = np.array([0.2, 0.5], np.float32)
PARAMETERS: dict[str, dict[str, Any]] = {
    "ball": {"d": 3},
    "bernoulli": {"p": CHANCES},
    "beta": {"a": TWO, "b": 2.0},
    "binomial": {"n": TWO, "p": CHANCES},
    "categorical": {"logits": np.zeros((2, 4), np.float32)},
    "chisquare": {"df": TWO},
    "dirichlet": {"alpha": np.ones((2, 3), np.float32)},
    "f": {"dfnum": TWO, "dfden": 3.0},
    "gamma": {"a": TWO},
    "generalized_normal": {"p": 3.0},
    "geometric": {"p": CHANCES},
    "loggamma": {"a": TWO},
    "lognormal": {"sigma": TWO},
    "multivariate_normal": {"mean": TWO, "cov": np.eye(2, dtype=np.float32)},
    "pareto": {"b": TWO},
    "poisson": {"lam": TWO},
    "randint": {"minval": np.array([0, 1]), "maxval": np.array([5, 7])},
    "rayleigh": {"scale": TWO},
    "t": {"df": TWO},
    "triangular": {"left": TWO, "mode": TWO + 1, "right": TWO + 3},
    "truncated_normal": {"lower": -TWO, "upper": TWO},
    "uniform": {"minval": TWO, "maxval": TWO + 1},
    "wald": {"mean": TWO},
    "weibull_min": {"scale": TWO, "concentration": 2.0},
}


@pytest.mark.parametrize("name", PARAMETERS)
def test_samplers_do_not_mix_ranks_of_their_own(name: str) -> None:
    sampler, key = getattr(ANY, name), random.key(0)

    def program() -> Any:
        return verax.make_jaxpr(lambda k: sampler(k, shape=(5, 2), **PARAMETERS[name]))(
            key
        )

    due = program()
    with verax.numpy_rank_promotion("raise"):
        actual = program()
    assert actual.out_avals[0].shape[:2] == (5, 2)
    assert str(actual) == str(due)


# What is by day, too: of one parameter and several, vectors, of no loop and of loops.
EAGER = ("categorical", "loggamma", "multivariate_normal", "triangular")


@pytest.mark.slow
@pytest.mark.parametrize("name", rarely(PARAMETERS, *(PARAMETERS.keys() - EAGER)))
@pytest.mark.usefixtures("little_effort")
def test_nor_do_they_with_numbers(name: str) -> None:
    sampler, key = getattr(ANY, name), random.key(0)
    expected = sampler(key, shape=(5, 2), **PARAMETERS[name])
    with verax.numpy_rank_promotion("raise"):
        actual = sampler(key, shape=(5, 2), **PARAMETERS[name])
    assert actual.shape[:2] == (5, 2)
    assert actual.tolist() == expected.tolist()
