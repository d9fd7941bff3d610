"""Long chains of elementwise operations are several loops for XLA, equal in value."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from property_tests.levels import rarely
from verax.ir.jaxpr import Eqn, Jaxpr, Var
from verax.ir.reports.check import check_jaxpr
from verax.rules.rows.infer import infer
from verax.rules.rows.row import traits_of
from verax.transforms.passes import chains
from verax.transforms.passes.chains import (
    ALIVE,
    LEAST,
    LONG,
    SHORT,
    WORTH,
    split_chains,
)

SIZE = 2 * LEAST
X = np.linspace(0.1, 0.9, SIZE, dtype=np.float32)
BARRIER = "optimization_barrier"


def arithmetic(x: Any, count: int = 160) -> Any:
    for i in range(count):
        x = vnp.maximum(x - 0.3, x * x) if i % 2 else x * 1.01 + 0.5
    return x


def slow(x: Any, count: int = 640) -> Any:
    for i in range(count // 4):
        x = vnp.sin(x) * x + vnp.cos(x + i)
    return x


def pair(x: Any, count: int = 300) -> Any:
    y = x + 1
    for _ in range(count // 3):
        x, y = vnp.minimum(x * y, y - 0.25), vnp.abs(x)
    return x, y


def jitted(x: Any) -> Any:
    return verax.jit(arithmetic)(x) + 1


def looped(x: Any) -> Any:
    return verax.lax.fori_loop(0, 3, lambda i, x: arithmetic(x) / 2, x)


CHAINS: dict[str, Callable[[Any], Any]] = {
    "arithmetic": arithmetic,
    "slow": slow,
    "pair": pair,
    "tangents": lambda x: verax.jvp(arithmetic, (x,), (x,)),
    "jitted": jitted,
    "looped": looped,
    "reduced": lambda x: vnp.sum(arithmetic(x)),
    "mapped": verax.vmap(lambda x: arithmetic(x) * 2),
    "integers": lambda x: arithmetic_of_integers(x.astype(np.int32)),
}


def arithmetic_of_integers(x: Any) -> Any:
    for i in range(WORTH):
        x = (x ^ i) + 7
    return x


def chain(f: Callable[..., Any], *args: Any) -> Jaxpr:
    """The program of a function, with its chains split."""
    return split_chains(verax.make_jaxpr(f)(*args).jaxpr)


def parts(jaxpr: Jaxpr) -> list[list[Eqn]]:
    """What stands between barriers."""
    actual: list[list[Eqn]] = [[]]
    for eqn in jaxpr.eqns:
        if eqn.primitive.name == BARRIER:
            actual.append([])
        else:
            actual[-1].append(eqn)
    return actual


def barriers(f: Callable[..., Any], *args: Any, **how: Any) -> int:
    """How many barriers the lowered program has."""
    text = verax.jit(f).trace(*args).lower(**how).as_text()
    return text.count(f"stablehlo.{BARRIER}")


@pytest.mark.parametrize(("f", "length"), [(arithmetic, SHORT), (slow, LONG)])
@pytest.mark.parametrize("count", [1200, 4800])
def test_loops_are_bounded_however_long_the_chain_is(
    f: Callable[..., Any], length: int, count: int
) -> None:
    jaxpr = chain(lambda x: f(x, count), X)
    sizes = [len(part) for part in parts(jaxpr)]
    assert len(sizes) > count // (2 * length)
    assert max(sizes) < 2 * length
    assert min(sizes) >= length // 2


def test_few_values_are_stored_and_no_product_before_a_sum() -> None:
    for f in (arithmetic, slow, pair, CHAINS["tangents"]):
        jaxpr = chain(f, X)
        made = {v: traits_of(eqn.primitive) for eqn in jaxpr.eqns for v in eqn.outvars}
        stored = [e.invars for e in jaxpr.eqns if e.primitive.name == BARRIER]
        assert stored, f
        for values in stored:
            assert 0 < len(values) <= ALIVE
            assert not any(made[v].fma for v in values if isinstance(v, Var))
        check_jaxpr(jaxpr, infer)


def compiled(f: Callable[..., Any], *args: Any) -> list[np.ndarray]:
    return [np.asarray(y) for y in verax.tree.leaves(verax.jit(f)(*args))]


@pytest.fixture
def one_loop(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], None]]:
    """What lets chains be one loop from then on, in programs that are not known yet."""

    def never() -> None:
        monkeypatch.setattr(chains, "WORTH", 10**9)
        forget()

    forget = chains.split_once.cache_clear  # type: ignore[attr-defined]  # of a memo
    yield never
    forget()


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", rarely(CHAINS, "slow", "jitted", "looped", "mapped", "pair", "reduced")
)
def test_compiled_values_are_those_of_one_loop(
    name: str, one_loop: Callable[[], None]
) -> None:
    f = CHAINS[name]
    actual = compiled(f, X)
    assert barriers(f, X) > 1
    one_loop()
    another = lambda x, unused: f(x)  # noqa: E731
    assert barriers(another, X, 0) == 0
    for one, other in zip(actual, compiled(another, X, 0), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.slow
def test_what_is_not_worth_it_stays_one_loop() -> None:
    assert barriers(lambda x: arithmetic(x, 60), X) == 0
    assert barriers(arithmetic, X[: LEAST // 2]) == 0
    assert barriers(arithmetic, np.float32(1)) == 0

    def stored(x: Any) -> Any:  # all of its values are needed at the end
        xs = [x]
        for i in range(WORTH):
            xs.append(xs[-1] - i)
        return sum(xs)

    assert barriers(stored, X) == 0
    with_sums = lambda x: arithmetic_with_sums(x)  # noqa: E731
    assert barriers(with_sums, X) == 0


def arithmetic_with_sums(x: Any) -> Any:
    for _ in range(8):
        x = arithmetic(x, 40) + vnp.sum(x)
    return x


def test_other_platforms_get_the_chain_as_it_is() -> None:
    assert barriers(arithmetic, X) > 1
    assert barriers(arithmetic, X, lowering_platforms=("cuda",)) == 0
    assert barriers(arithmetic, X, lowering_platforms=("cpu", "cuda")) == 0


@pytest.mark.slow
def test_the_text_is_the_same_each_time() -> None:
    text = verax.jit(arithmetic).lower(X).as_text()
    verax.clear_caches()
    assert verax.jit(arithmetic).lower(X).as_text() == text
    jaxpr = verax.make_jaxpr(arithmetic)(X).jaxpr
    assert split_chains(jaxpr) == chain(arithmetic, X)
    short = verax.make_jaxpr(lambda x: x + 1)(X).jaxpr
    assert split_chains(short) is short
