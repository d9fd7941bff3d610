"""A typed key may be used once while `debug_key_reuse` is on."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

import verax
import verax.numpy as vnp
from property_tests.levels import NIGHTLY, by_turns
from verax import lax, random
from verax.errors import KeyReuseError


@pytest.fixture(autouse=True)
def checked() -> Iterator[None]:
    with verax.debug_key_reuse():
        yield


def twice(key: Any) -> Any:
    return random.normal(key) + random.uniform(key)


def split_in_step(key: Any) -> Any:
    def step(key: Any, row: Any) -> Any:
        key, own = random.split(key)
        return key, random.normal(own)

    return lax.scan(step, key, None, 3)[1]


GOOD: dict[str, Callable[[Any], Any]] = {
    "once": random.normal,
    "halves": lambda k: sum(map(random.normal, random.split(k))),
    "rows": lambda k: vnp.sum(verax.vmap(random.normal)(random.split(k, 3))),
    "parts": lambda k: sum(
        random.normal(part[0]) for part in lax.split(random.split(k), (1, 1))
    ),
    "clone": lambda k: random.normal(k) + random.normal(random.clone(k)),
    "fold_in": lambda k: (
        random.normal(random.fold_in(k, 1)) + random.normal(random.fold_in(k, 2))
    ),
    "scan": split_in_step,
    "branches": lambda k: lax.cond(True, random.normal, random.uniform, k),
    "poisson": lambda k: random.poisson(k, 3.0),
    "binomial": lambda k: random.binomial(k, 10.0, 0.5),
    "gamma": lambda k: random.gamma(k, 2.0),
    "choice": lambda k: random.choice(k, 5, (2,), replace=False),
}
BAD: dict[str, Callable[[Any], Any]] = {
    "twice": twice,
    "after split": lambda k: (random.split(k), random.normal(k)),
    "a row": lambda k: twice(random.split(k)[0]),
    "a part": lambda k: twice(lax.split(random.split(k), (1, 1))[0][0]),
    "inner": lambda k: verax.jit(twice)(k),
    "after a call": lambda k: (verax.jit(random.normal)(k), random.normal(k)),
    "a captured key": lambda k: lax.scan(
        lambda c, _: (c, random.normal(k)), 0.0, None, 3
    ),
    "a carried key": lambda k: lax.scan(lambda c, _: (c, random.bits(c)), k, None, 3),
    "while": lambda k: lax.while_loop(
        lambda c: c[1] < 1, lambda c: (c[0], random.normal(c[0])), (k, vnp.zeros(()))
    ),
    "a branch": lambda k: (
        lax.cond(True, random.normal, lambda k: 0.0, k),
        random.normal(k),
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", by_turns(GOOD, 2, NIGHTLY))
def test_keys_used_once(name: str) -> None:
    use = GOOD[name]
    use(random.key(0))
    verax.jit(use)(random.key(0))


@pytest.mark.slow
@pytest.mark.parametrize("name", BAD)
def test_keys_used_twice(name: str) -> None:
    use = BAD[name]
    with pytest.raises(KeyReuseError):
        use(random.key(0))
    with pytest.raises(KeyReuseError):
        verax.jit(use)(random.key(0))
    with verax.debug_key_reuse(False):
        verax.jit(twice)(random.key(0))


def test_a_compiled_function_remembers_its_argument() -> None:
    draw, key = verax.jit(random.normal), random.key(0)
    draw(key)
    with pytest.raises(KeyReuseError, match="Previously-consumed key"):
        draw(key)
    draw(random.key(0))


def test_programs_are_the_same_without_the_check() -> None:
    with verax.debug_key_reuse(False):
        key = random.key(0)
        assert random.normal(key) == random.normal(key)
        assert random.clone(key) is key


def test_both_uses_are_named_by_their_lines() -> None:
    def twice(key: Any) -> Any:
        first = random.normal(key)
        return first + random.uniform(key)

    start = twice.__code__.co_firstlineno
    first, second = (rf"at .*:{start + n} \(.*twice\)" for n in (1, 2))
    lines = f"before {first}, and again {second}"
    with pytest.raises(KeyReuseError, match=lines):
        verax.experimental.key_reuse.check_key_reuse(twice, random.key(0))
    lines = f"{second}: .* before {first}"
    with verax.debug_key_reuse(True), pytest.raises(KeyReuseError, match=lines):
        twice(random.key(0))
