"""check_purity: what is found, what is not complained about."""

import itertools
from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from verax import ImpureFunction, check_purity, lax

X = np.ones(3, np.float32)


def pure(tree: dict[str, Any], *, scale: float = 2.0) -> Any:
    """Makes a new array on every trace, has control flow and inner functions."""
    table = np.arange(3, dtype=np.float32)
    inner = verax.jit(lambda v: v * table)
    x = lax.fori_loop(0, 3, lambda i, v: inner(v) + i, tree["x"])
    return {"y": lax.cond(x[0] > 0, vnp.sin, vnp.cos, x * scale), "t": table}


def ordered_by_a_set(x: Any) -> Any:
    """Adds constants in the order of a set of strings."""
    for word in {f"word{i}" for i in range(20)}:
        x = x + float(word[4:])
    return x


def test_pure_functions_pass() -> None:
    check_purity(pure)({"x": X}, scale=3.0)
    check_purity(verax.grad(lambda x: pure({"x": x})["y"].sum()))(X)
    check_purity(pure)({"x": verax.ShapeDtypeStruct((3,), np.float32)})
    check_purity(verax.jit(pure))({"x": X})


def test_a_counter_is_found_with_its_line() -> None:
    counter = itertools.count(1)

    def counted(x: Any) -> Any:
        return vnp.sin(x) * next(counter)

    line = counted.__code__.co_firstlineno + 1
    with pytest.raises(ImpureFunction) as error:
        check_purity(counted)(1.0)
    text = str(error.value)
    assert "counted gives a different program" in text
    assert f"test_purity.py:{line}" in text
    assert "1.0" in text
    assert "2.0" in text


def test_impurity_behind_jit_is_found() -> None:
    counter = itertools.count(1)
    inner = verax.jit(lambda x: x * next(counter))
    assert float(inner(1.0)) == 1
    with pytest.raises(ImpureFunction, match="jaxpr"):
        check_purity(lambda x: inner(x) + 1)(1.0)
    with pytest.raises(ImpureFunction):
        check_purity(inner)(1.0)
    assert float(inner(1.0)) == 1  # what was compiled is still there


def test_structure_and_arrays_that_change_are_found() -> None:
    seen: list[int] = []

    def growing(x: Any) -> Any:
        seen.append(1)
        return [x] * len(seen)

    with pytest.raises(ImpureFunction, match="it returns"):
        check_purity(growing)(1.0)
    generator = np.random.default_rng(0)
    with pytest.raises(ImpureFunction):
        check_purity(lambda x: x + generator.normal(size=3))(X)


def test_a_leaked_tracer_is_found() -> None:
    kept: list[Any] = []

    def leaking(x: Any) -> Any:
        kept.append(x)
        return x + kept[0]

    with pytest.raises(verax.LeakedTracer):
        check_purity(leaking)(1.0)


@pytest.mark.slow(nightly=True)
def test_hash_seeds() -> None:
    check_purity(ordered_by_a_set)(1.0)
    with pytest.raises(ImpureFunction, match=r"under another hash seed[^+]*\+ "):
        check_purity(ordered_by_a_set, hash_seeds=True)(1.0)
    check_purity(pure, hash_seeds=True)({"x": X}, scale=3.0)
    with pytest.raises(TypeError, match="cannot be pickled"):
        check_purity(lambda x: x, hash_seeds=True)(1.0)
