"""What functions do with keys, as values, and assertions inside of them."""

from typing import Any

import numpy as np
import pytest

import verax
from verax import random
from verax.errors import KeyReuseError
from verax.experimental import key_reuse
from verax.experimental.key_reuse import (
    Forward,
    KeyReuseSignature,
    Sink,
    Source,
    assert_consumed,
    assert_unconsumed,
    check_key_reuse,
    consume,
    key_reuse_signature,
)

KEY = random.key(0)
FIRST = np.array([True, False])


def test_signatures() -> None:
    other = random.key(1)
    pairs: list[tuple[Any, KeyReuseSignature]] = [
        (lambda key: random.normal(key), KeyReuseSignature(Sink(0))),
        (random.split, KeyReuseSignature(Sink(0), Source(0))),
        (lambda key: (1.0, key), KeyReuseSignature(Forward(0, 1))),
        (lambda key: 1.0, KeyReuseSignature()),
        (lambda key: random.clone(key), KeyReuseSignature(Source(0))),
        (verax.jit(random.bits), KeyReuseSignature(Sink(0))),
    ]
    for function, expected in pairs:
        assert key_reuse_signature(function, KEY) == expected
    actual = key_reuse_signature(lambda x, key: random.bits(key) + x, 1.0, KEY)
    assert actual == KeyReuseSignature(Sink(1))
    actual = key_reuse_signature(lambda keys: random.bits(keys[0]), random.split(KEY))
    assert [sink.idx for sink in actual.sinks] == [0]
    with pytest.raises(KeyReuseError):
        check_key_reuse(lambda: (random.bits(other), random.bits(other)))


def test_captured_keys_come_after_the_arguments() -> None:
    @verax.jit
    def outer(captured: Any) -> Any:
        actual.append(key_reuse_signature(lambda x: random.normal(captured) + x, 1.0))
        return captured

    actual: list[KeyReuseSignature] = []
    outer(KEY)
    assert actual == [KeyReuseSignature(Sink(1))]


def test_signatures_are_values() -> None:
    assert Sink(0) == Sink(0, True) == Sink(0, np.array([True, True]))
    assert Sink(0, False) == Sink(0, np.zeros(3, bool))
    assert len({Sink(0), Source(0), Sink(1), Sink(0, FIRST), Sink(0, FIRST)}) == 4
    one = KeyReuseSignature(Sink(0), Source(1), Forward(1, 0))
    assert one == KeyReuseSignature(Forward(1, 0), Source(1), Sink(0))
    assert hash(one) == hash(KeyReuseSignature(Forward(1, 0), Source(1), Sink(0)))
    assert repr(one) == "KeyReuseSignature(Sink(0), Source(1), Forward(1, 0))"
    assert list(one.sources) == [Source(1)]
    assert list(one.forwards) == [Forward(1, 0)]
    with pytest.raises(ValueError, match="immutable"):
        Sink(0).idx = 1
    with pytest.raises(TypeError, match="boolean"):
        Sink(0, np.array([1, 2]))
    with pytest.raises(TypeError, match="integer"):
        Sink("0")  # type: ignore[arg-type]  # the error is the test


def test_assertions_in_traces() -> None:
    def good(key: Any) -> Any:
        assert_unconsumed(key)
        used = consume(key)
        assert_consumed(key)
        assert_consumed(used)
        copy = random.clone(key)
        assert_unconsumed(copy)
        return random.normal(copy)

    def bad(key: Any) -> Any:
        x = random.bits(key)
        assert_unconsumed(key)
        return x

    check_key_reuse(good, KEY)
    check_key_reuse(verax.jit(good), KEY)
    with pytest.raises(AssertionError, match="no elements should be used up, but all"):
        check_key_reuse(bad, KEY)
    with pytest.raises(AssertionError, match="all elements should be used up, but no"):
        check_key_reuse(assert_consumed, KEY)


def test_elements_of_arrays_of_keys() -> None:
    def f(keys: Any) -> Any:
        x = random.bits(keys[0])
        assert_consumed(keys, FIRST)
        with pytest.raises(AssertionError, match="but the elements"):
            assert_consumed(keys)
        return x

    check_key_reuse(f, random.split(KEY))


def test_assertions_outside_traces() -> None:
    key = random.key(3)
    assert_consumed(key)  # it is not known
    with verax.debug_key_reuse(True):
        assert_unconsumed(key)
        with pytest.raises(AssertionError):
            assert_consumed(key)
        random.bits(key)
        assert_consumed(key)
        with pytest.raises(KeyReuseError):
            consume(key)
    for name in ("consume", "assert_consumed", "assert_unconsumed"):
        with pytest.raises(TypeError, match="takes typed keys"):
            getattr(key_reuse, name)(random.PRNGKey(0))
