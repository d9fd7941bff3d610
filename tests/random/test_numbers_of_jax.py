"""The same numbers as `jax.random` for the same keys: facts recorded from jax 0.12.

Integers are equal; floats are given by their bits, and may differ in the last digit
between versions of the compiler.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from verax import random

KEY = random.key(42)
P = np.array([0.1, 0.2, 0.3, 0.4], np.float32)
SIX = np.arange(6, dtype=np.int32)
LOGITS = np.log(np.array([[0.1, 0.2, 0.7], [0.6, 0.3, 0.1]], np.float32))
EVEN = np.zeros((2, 3), np.float32)
ONE_AND_A_HALF = np.float32(1.5)

type Draw = Callable[[], Any]

# JAX: uniform(key(42), (3,)) and so on, as the hexadecimal bytes of the result.
FLOATS: dict[str, tuple[Draw, str]] = {
    "uniform": (lambda: random.uniform(KEY, (3,)), "2438fa3e30072e3ff8c31d3f"),
    "uniform_bf16": (lambda: random.uniform(KEY, (3,), vnp.bfloat16), "223f583f783f"),
    "uniform_f16": (lambda: random.uniform(KEY, (3,), np.float16), "e02c1832ce3b"),
    "uniform_range": (
        lambda: random.uniform(KEY, (3,), minval=-3.3, maxval=7.1),
        "902be43fe245714084fd4640",
    ),
    "normal": (lambda: random.normal(KEY, (3,)), "15dfe7bce82bef3e6166973e"),
    "normal_complex": (
        lambda: random.normal(KEY, (2,), np.complex64),
        "62e75b3d5c4fdb3e2913b0be76a4103f",
    ),
    "gumbel": (lambda: random.gumbel(KEY, (3,)), "4a0eab3e8cb7733f5fbc393f"),
    "gumbel_high": (
        lambda: random.gumbel(KEY, (3,), mode="high"),
        "8b6bcc3e541805bed184303d",
    ),
    "gumbel_highest": (
        lambda: random.gumbel(KEY, (3,), mode="highest"),
        "856bcc3e621805be7d84303d",
    ),
    "exponential": (lambda: random.exponential(KEY, (3,)), "b2ba2b3f38c4913fb133753f"),
    "laplace": (lambda: random.laplace(KEY, (3,)), "391abb3cb42ce4be358387be"),
    "logistic": (lambda: random.logistic(KEY, (3,)), "900339bd1cba403faa8ff23e"),
    "cauchy": (lambda: random.cauchy(KEY, (3,)), "555811bde03b223f40cfc33e"),
    "maxwell": (lambda: random.maxwell(KEY, (3,)), "95b70d3f7629963e81b3da3f"),
    "truncated_normal": (
        lambda: random.truncated_normal(KEY, -2.0, 1.5, (3,)),
        "4d09a6bd3cd0b93e3fc8583e",
    ),
    "rayleigh": (
        lambda: random.rayleigh(KEY, ONE_AND_A_HALF, (3,)),
        "ccc1e53f7eb0a83f8eeabc3f",
    ),
    "pareto": (lambda: random.pareto(KEY, 1.5, (3,)), "5c2fc83f85bd0840a365f23f"),
    "triangular": (
        lambda: random.triangular(KEY, -1.0, 0.5, 2.0, (3,)),
        "8847f73ee2b34c3f26992f3f",
    ),
    "lognormal": (
        lambda: random.lognormal(KEY, 0.7, (3,)),
        "4dfa7a3f5c82b13fc06f9d3f",
    ),
    "weibull_min": (
        lambda: random.weibull_min(KEY, 1.5, 0.7, (3,)),
        "ea14593fca2ce73f3b89b43f",
    ),
    "wald": (
        lambda: random.wald(KEY, ONE_AND_A_HALF, (3,)),
        "11b4d23fb6b12c40c029b43e",
    ),
    "double_sided_maxwell": (
        lambda: random.double_sided_maxwell(KEY, 0.5, 2.0, (3,)),
        "52c510c0e8f359bf99359e40",
    ),
}
INTEGERS: dict[str, tuple[Draw, Any]] = {
    "randint": (lambda: random.randint(KEY, (5,), -5, 7), [-5, 1, -2, -4, 0]),
    "randint_uint8": (
        lambda: random.randint(KEY, (5,), 0, 256, np.uint8),
        [196, 18, 183, 193, 141],
    ),
    "randint_int16": (
        lambda: random.randint(KEY, (5,), -30000, 30000, np.int16),
        [22644, 10914, 28071, -7631, -4291],
    ),
    "randint_wide": (
        lambda: random.randint(KEY, (3,), -(2**31), 2**31 - 1),
        [977810628, 1236381714, -1367112521],
    ),
    "bernoulli": (lambda: random.bernoulli(KEY, 0.3, (8,)), [0, 0, 0, 0, 0, 0, 1, 0]),
    "rademacher": (lambda: random.rademacher(KEY, (8,)), [1, -1, -1, -1, 1, -1, 1, -1]),
    "geometric": (lambda: random.geometric(KEY, 0.1, (5,)), [7, 4, 5, 6, 8]),
    "permutation": (lambda: random.permutation(KEY, 8), [7, 4, 2, 5, 3, 6, 0, 1]),
    "permutation_two_rounds": (
        lambda: random.permutation(KEY, 5000)[:6],
        [3825, 3150, 2972, 2921, 1203, 2981],
    ),
    "permutation_rows": (
        lambda: random.permutation(KEY, SIX.reshape(3, 2)),
        [[4, 5], [0, 1], [2, 3]],
    ),
    "permutation_independent": (
        lambda: random.permutation(KEY, SIX.reshape(2, 3), axis=1, independent=True),
        [[2, 0, 1], [4, 5, 3]],
    ),
    "choice": (lambda: random.choice(KEY, 9, (4,)), [0, 6, 0, 1]),
    "choice_distinct": (
        lambda: random.choice(KEY, 9, (4,), replace=False),
        [7, 4, 2, 5],
    ),
    "choice_weighted": (lambda: random.choice(KEY, 4, (5,), p=P), [2, 2, 2, 2, 2]),
    "choice_weighted_distinct": (
        lambda: random.choice(KEY, 4, (3,), False, P),
        [3, 2, 1],
    ),
    "choice_axis": (
        lambda: random.choice(KEY, SIX.reshape(2, 3), (2,), axis=1),
        [[0, 0], [3, 3]],
    ),
    "categorical": (
        lambda: random.categorical(KEY, LOGITS, shape=(3, 2)),
        [[2, 0], [2, 0], [1, 0]],
    ),
    "categorical_distinct": (
        lambda: random.categorical(KEY, EVEN, shape=(2, 2), replace=False),
        [[1, 2], [2, 0]],
    ),
    "categorical_axis": (lambda: random.categorical(KEY, EVEN, axis=0), [1, 0, 0]),
    "split": (
        lambda: random.key_data(random.split(KEY)),
        [[1832780943, 270669613], [64467757, 2916123636]],
    ),
    "fold_in": (
        lambda: random.key_data(random.fold_in(KEY, 7)),
        [2547012911, 1371500959],
    ),
    "bits_uint8": (lambda: random.bits(KEY, (4,), np.uint8), [162, 217, 249, 215]),
    "bits_uint16": (
        lambda: random.bits(KEY, (4,), np.uint16),
        [5026, 12505, 63993, 49623],
    ),
    "bits": (
        lambda: random.bits(KEY, (2, 2)),
        [[2098992034, 2919706841], [2646866425, 2409546199]],
    ),
}


@pytest.mark.parametrize("name", FLOATS)
def test_floats(name: str) -> None:
    draw, bits = FLOATS[name]
    actual = np.asarray(draw())
    expected = np.frombuffer(bytes.fromhex(bits), actual.dtype)
    if actual.dtype in (np.float16, vnp.bfloat16.dtype):
        np.testing.assert_array_equal(actual, expected)
    else:
        words = actual.view(np.float32), expected.view(np.float32)
        np.testing.assert_array_max_ulp(*words, maxulp=2)


@pytest.mark.parametrize("name", INTEGERS)
def test_integers(name: str) -> None:
    draw, expected = INTEGERS[name]
    np.testing.assert_array_equal(np.asarray(draw()), np.asarray(expected))


def test_float64() -> None:
    with verax.enable_x64(True):
        uniform = np.asarray(random.uniform(KEY, (2,)))
        normal = np.asarray(random.normal(KEY, (2,)))
        expected = bytes.fromhex("8408c423814fdb3f00846e6d99bd8e3f")
        assert uniform.tobytes() == expected
        expected = bytes.fromhex("5921966ca2a4c7bf3abaa7facc5b01c0")
        np.testing.assert_array_max_ulp(normal, np.frombuffer(expected), maxulp=2)


def test_integers_of_64_bits() -> None:
    with verax.enable_x64(True):
        assert np.asarray(random.bits(KEY, (2,))).tolist() == [
            7871734211187709741,
            276886910877598708,
        ]
        drawn = random.randint(KEY, (2,), -(2**40), 2**62)
        assert np.asarray(drawn).tolist() == [4466304128661042741, 869867269589817022]


def test_seeds() -> None:
    def words(seed: Any) -> list[int]:
        actual: list[int] = np.asarray(random.PRNGKey(seed)).tolist()
        return actual

    assert words(0) == [0, 0]
    assert words(-1) == [0, 2**32 - 1]
    assert words(2**33 + 5) == [0, 5]
    assert words(np.int8(-3)) == [0, 2**32 - 3]
    assert words(np.uint8(200)) == [0, 200]
    with verax.enable_x64(True):
        assert words(2**33 + 5) == [2, 5]
        assert words(np.int64(2**33 + 5)) == [2, 5]
        assert words(-1) == [2**32 - 1, 2**32 - 1]
