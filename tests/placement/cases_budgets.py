"""Budgets of memory hold for each device, where the arguments lie."""

from functools import partial
from typing import Any

import numpy as np

import verax
import verax.numpy as vnp
from verax import lax
from verax.sharding import AxisType, NamedSharding, PartitionSpec as P

MESH = verax.make_mesh((8,), ("d",), (AxisType.Auto,))
RNG = np.random.default_rng(0)
WEIGHTS = [RNG.normal(size=(32, 32)).astype(np.float32) / 6 for _ in range(10)]
ROWS = RNG.normal(size=(1024, 32)).astype(np.float32)


def loss(weights: list[Any], x: Any) -> Any:
    for w in weights:
        x = vnp.tanh(vnp.sin(x @ w))
    return vnp.mean(x**2)


def total(function: Any, *args: object) -> int:
    """The bytes that a compiled call takes of each device."""
    found = function.lower(*args).compile().memory_analysis()
    return int(found.arguments + found.outputs + found.temporaries - found.aliased)


def check(function: Any, share: float, *args: Any) -> None:
    """Raise unless the gradient is within a share, and what it is without."""
    plain: Any = verax.jit(verax.grad(function))
    small: Any = verax.grad(function, memory=share)
    assert total(small, *args) <= share * total(plain, *args)
    pairs = zip(small(*args), plain(*args), strict=True)
    for one, other in pairs:
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-6)


def test_a_share_of_each_device() -> None:
    check(loss, 0.8, WEIGHTS, verax.device_put(ROWS, NamedSharding(MESH, P("d"))))


def test_a_mapped_function() -> None:
    @partial(verax.shard_map, mesh=MESH, in_specs=(P(), P("d")), out_specs=P())
    def mapped(weights: list[Any], x: Any) -> Any:
        return lax.pmean(loss(weights, x), "d")

    check(mapped, 0.7, WEIGHTS, ROWS)


def test_each_placement_has_a_plan() -> None:
    """What fits on eight devices may not fit on one."""
    split = verax.device_put(ROWS, NamedSharding(MESH, P("d")))
    plain: Any = verax.jit(verax.grad(loss))
    limit = int(0.6 * total(plain, WEIGHTS, ROWS))
    assert total(plain, WEIGHTS, split) < limit
    small: Any = verax.grad(loss, memory=limit)
    for x, planned in ((ROWS, True), (split, False), (ROWS, True)):
        text = str(small.trace(WEIGHTS, x).jaxpr)
        assert ("optimization_barrier" in text) is planned
        assert total(small, WEIGHTS, x) <= limit
