"""A pipeline is a loop over its blocks, however both are cut.

On all devices that there are: `tests/placement` runs this file on eight.
"""

from typing import Any

import numpy as np
from hypothesis import given, settings, strategies as st

import verax
import verax.numpy as vnp
from verax import lax
from verax.distributed import pipeline, pipeline_value_and_grad

STAGES = [n for n in (1, 2, 3, 4, 8) if n <= verax.device_count()]
WIDTH = 3


def block(own: tuple[Any, Any], h: dict[str, Any]) -> dict[str, Any]:
    w, b = own
    h["up"], h["side"] = vnp.tanh(h["up"] @ w) + h["side"][:, None], h["side"] * b
    return h


def loss(h: dict[str, Any], y: Any) -> Any:
    return vnp.mean((h["up"] - y) ** 2) + vnp.mean(h["side"])


@given(
    stages=st.sampled_from(STAGES),
    each=st.integers(1, 3),
    microbatches=st.integers(1, 8),
    rows=st.integers(1, 3),
    schedule=st.sampled_from(["1f1b", "gpipe"]),
    seed=st.integers(0, 99),
)
@settings(deadline=None, max_examples=max(settings().max_examples // 10, 2))
def test_pipelines(
    stages: int, each: int, microbatches: int, rows: int, schedule: str, seed: int
) -> None:
    draw = np.random.default_rng(seed).normal
    count, depth = rows * microbatches, each * stages
    params = draw(size=(depth, WIDTH, WIDTH)), draw(size=depth)
    x = {"up": draw(size=(count, WIDTH)), "side": draw(size=count)}
    y = draw(size=(count, WIDTH))
    mesh = verax.make_mesh((stages,), ("stage",))

    def looped(params: Any, x: Any) -> Any:
        return lax.scan(lambda h, own: (block(own, dict(h)), None), x, params)[0]

    with verax.enable_x64(True):
        model = pipeline(block, mesh=mesh, microbatches=microbatches)
        step = pipeline_value_and_grad(
            block, loss, mesh=mesh, microbatches=microbatches, schedule=schedule
        )
        actual = model(params, x), step(params, x, y)
        value_and_grad = verax.value_and_grad(lambda p: loss(looped(p, x), y))
        expected = looped(params, x), value_and_grad(params)
    for a, b in zip(
        verax.tree.leaves(actual), verax.tree.leaves(expected), strict=True
    ):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-10)
