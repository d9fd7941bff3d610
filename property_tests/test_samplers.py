"""Samplers in all kinds of use: they compile, to what NumPy gives.

Keys are split and folded on the way, and samples sliced, gathered and converted: what
XLA fuses with the hashes decides whether LLVM ever ends.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
from attrs import evolve
from hypothesis import given, settings, strategies as st

import verax
import verax.numpy as vnp
from verax import random
from verax.ops.random import generators
from verax.rules.values.array import Array
from verax.verify.cases.case import Case, LawBroken, Skipped
from verax.verify.checking import functions
from verax.verify.checking.functions import function_of
from verax.verify.laws import compiled

type Step = Callable[[Array], Any]

FLOATS = (vnp.float32, vnp.float16, vnp.bfloat16, vnp.float8_e4m3fn, vnp.float8_e5m2)
KEYS: Mapping[str, Step] = {
    "split": lambda key: random.split(key)[1],
    "split in many": lambda key: random.split(key, (2, 3))[1, 2],
    "fold in": lambda key: random.fold_in(key, 7),
}
DRAWS: Mapping[str, Callable[[Array, Any, Any], Any]] = {
    "normal": random.normal,
    "uniform": random.uniform,
    "truncated normal": lambda key, shape, dtype: random.truncated_normal(
        key, -1.0, 1.0, shape, dtype
    ),
    "laplace": random.laplace,
    "exponential": random.exponential,
    "cauchy": random.cauchy,
    "randint": lambda key, shape, dtype: random.randint(key, shape, -5, 900),
    "bits": lambda key, shape, dtype: random.bits(key, shape, vnp.uint8),
    "bernoulli": lambda key, shape, dtype: random.bernoulli(key, 0.3, shape),
    "rademacher": lambda key, shape, dtype: random.rademacher(key, shape, dtype),
}
USES: Mapping[str, Step] = {
    "all": lambda x: x,
    "first of each": lambda x: x[..., 0],
    "every second": lambda x: x[..., ::2],
    "backwards": lambda x: x[..., ::-1],
    "some": lambda x: x[..., np.array([-1, 0, -1])],
    "twice": lambda x: vnp.concatenate([x, x], -1),
    "in 8 bits": lambda x: x.astype(vnp.float8_e4m3fn),
    "bits of it": lambda x: x.astype(vnp.int32) << 3,
}


def program(
    draw: str, dtype: Any, shape: tuple[int, ...], keys: list[str], use: str, many: int
) -> Case:
    """The program of a draw from a seed, mapped over `many` keys if there are any."""

    def one(key: Array) -> Any:
        for name in keys:
            key = KEYS[name](key)
        return USES[use](DRAWS[draw](key, shape, dtype))

    def f(seed: Array) -> Any:
        key = random.key(seed)
        return verax.vmap(one)(random.split(key, many)) if many else one(key)

    seed = np.array([3], np.uint32)
    return Case(function_of(f, (seed[0],), {}).jaxpr(wide=False), (seed,))


CASES = st.builds(
    program,
    st.sampled_from(sorted(DRAWS)),
    st.sampled_from(FLOATS),
    st.sampled_from([(2,), (1,), (8, 2), (3, 5)]),
    st.lists(st.sampled_from(sorted(KEYS)), max_size=3),
    st.sampled_from(sorted(USES)),
    st.sampled_from([0, 1, 2, 8]),
)


@pytest.mark.slow
@settings(max_examples=max(6, settings().max_examples // 4))
@given(CASES)
def test_samplers_compile_to_what_numpy_gives(case: Case) -> None:
    with suppress(Skipped):
        functions.COMPILED(functions.ENGINE, case)


def test_hashes_that_are_fused_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A compilation that would not end is found, and not begun."""
    monkeypatch.setattr(generators, "apart", lambda e, xs: xs)
    engine = evolve(functions.ENGINE)
    case = program("normal", vnp.float32, (2,), [], "first of each", 8)
    with pytest.raises(LawBroken, match="shifts in one loop"):
        compiled(functions.runner(engine))(engine, case)
