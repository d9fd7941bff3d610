"""Costs of all stages agree: of the jaxpr, of StableHLO and of what XLA compiles.

The bounds are those that docs/explorer.md names. A lowering may write several
operations for one primitive, and XLA may compute a cheap value twice, or leave out what
nothing needs; both leave what is dear alone.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import verax
import verax.numpy as vnp
from verax import lax, nn
from verax.explorer.exploration import explore
from verax.explorer.recording import totals

SLACK: Final = 600.0
"""Operations on counters and indices, which the rows of a jaxpr do not show."""


def recurrent(x: Any) -> Any:
    w = vnp.eye(x.shape[1])

    def step(h: Any, row: Any) -> tuple[Any, Any]:
        h = vnp.tanh(h @ w + row)
        return h, h

    return lax.scan(step, x[0], x)[1]


def summed(x: Any) -> Any:
    def step(h: Any, row: Any) -> tuple[Any, Any]:
        return vnp.tanh(h * row) + h, h.sum()

    last, sums = lax.scan(step, x[0], x, reverse=True)
    return x + last + sums[:, None]


def blurred(x: Any) -> Any:
    return lax.conv(x[None, None], vnp.ones((1, 1, 3, 3)), (1, 1), "SAME")[0, 0]


STEPS: Final[Mapping[str, Callable[[Any], Any]]] = MappingProxyType(
    {
        "tanh": vnp.tanh,
        "gauss": lambda x: vnp.exp(-x * x),
        "dot": lambda x: x @ (x.T @ x),
        "einsum": lambda x: vnp.einsum("ij,kj->ik", x, x),
        "centre": lambda x: x - x.mean(1, keepdims=True),
        "softmax": nn.softmax,
        "relu": lambda x: vnp.maximum(x, 0.1),
        "roll": lambda x: vnp.concatenate([x[1:], x[:1]]),
        "recurrent": recurrent,
        "summed": summed,
        "blurred": blurred,
        "cond": lambda x: lax.cond(x[0, 0] > 0, vnp.sin, lambda y: 2 * vnp.cos(y), x),
        "gelu": lambda x: verax.jit(nn.gelu)(x),
        "rows": verax.vmap(lambda row: row * vnp.dot(row, row)),
        "set": lambda x: x.at[0].set(x[1]),
        "add": lambda x: x.at[vnp.array([0, 1])].add(1.0),
        "cholesky": lambda x: x + vnp.linalg.cholesky(x.T @ x + vnp.eye(x.shape[1])),
        "fft": lambda x: vnp.fft.fft(x).real,
    }
)


@pytest.mark.slow
@settings(max_examples=15, deadline=None)
@given(
    names=st.lists(st.sampled_from(sorted(STEPS)), min_size=1, max_size=4),
    size=st.sampled_from([16, 24]),
    gradient=st.booleans(),
)
def test_sums_of_all_stages_agree(names: list[str], size: int, gradient: bool) -> None:
    def loss(x: Any) -> Any:
        for name in names:
            x = STEPS[name](x)
        return (x**2).sum()

    x = np.linspace(0.1, 1.0, size * size, dtype=np.float32).reshape(size, size)
    stages = explore(verax.grad(loss) if gradient else loss)(x).content.stages
    kinds = [stage.kind for stage in stages[-3:]]
    assert kinds == ["jaxpr", "stablehlo", "hlo"]
    known, lowered, compiled = [totals(stage.rows) for stage in stages[-3:]]
    before = number(known["flops"])
    assert before / 1.5 - SLACK <= number(lowered["flops"]) <= 1.5 * before + SLACK
    assert before / 1.5 - SLACK <= number(compiled["flops"]) <= 3 * before + SLACK
    moved = number(known["bytes"])
    assert moved / 1.5 <= number(lowered["bytes"]) <= 2 * moved + SLACK
    assert 0 < number(compiled["bytes"]) <= 3 * moved + SLACK


def number(value: object) -> float:
    assert isinstance(value, int | float)
    return value
