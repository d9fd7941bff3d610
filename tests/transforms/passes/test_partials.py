"""What is computed only to be reduced is reduced in parts, which changes no value."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from verax import lax, transforms
from verax.transforms.passes.partials import (
    BARE,
    LARGE,
    PARTS,
    with_partial_reductions,
)

RNG = np.random.default_rng(0)
X: Any = RNG.standard_normal((523, 257)).astype("f4")
IMAGES: Any = RNG.standard_normal((3, 5, 96, 97)).astype("f4")
LINE: Any = RNG.standard_normal(LARGE + 29).astype("f4")
assert min(X.size, IMAGES.size, LINE.size) >= LARGE

BARRIER = "optimization_barrier"


def stored(function: Callable[[Any], object], x: Any) -> list[Any]:
    """The types of what the pass stores in a program, which computes the same."""
    closed = verax.make_jaxpr(function)(x)
    after = with_partial_reductions(closed.jaxpr)
    transforms.check(after)
    before = transforms.evaluate(closed, x)
    for one, other in zip(transforms.evaluate(after, x), before, strict=True):
        np.testing.assert_allclose(one, other, 2e-5, 1e-3)
    return [e.outvars[0].aval for e in after.eqns if e.primitive.name == BARRIER]


@pytest.mark.parametrize(
    ("function", "x", "shape"),
    [
        (lambda x: abs(x).sum(0), X, (523 // PARTS, 257)),
        (lambda x: abs(x).sum(), X, (523 // PARTS, 257)),
        (lambda x: vnp.var(x, 0), X, (523 // PARTS, 257)),
        (lambda x: vnp.nansum(x, 0), X, (523 // PARTS, 257)),
        (lambda x: (x > 0).sum(), X, (523 // PARTS, 257)),
        (lambda x: abs(x).max(0), X, (523 // PARTS, 257)),
        (lambda x: vnp.where(x > 1, x, 2).min(), X, (523 // PARTS, 257)),
        (lambda x: abs(x[None]).sum((0, 1)), X, (1, 523 // PARTS, 257)),
        (lambda x: vnp.where(x > 1, x, 2).sum(1), X, (523, 257 // PARTS)),
        (lambda x: vnp.clip(x - x.mean(0), 0, 1).sum(1), X, (523, 257 // PARTS)),
        (lambda x: vnp.isnan(x - x.mean()).sum(-1), X, (523, 257 // PARTS)),
        (lambda x: abs(x).sum((0, 2, 3)), IMAGES, (3, 5, 96 // PARTS, 97)),
        (lambda x: abs(x).sum((0, 1)), IMAGES, (1, 5, 96, 97)),
        (lambda x: abs(x).max(2), IMAGES, (3, 5, 96 // PARTS, 97)),
        (lambda x: vnp.clip(x, 0, 1).sum((1, 2, 3)), IMAGES, (3, 5, 96 // PARTS, 97)),
        (lambda x: vnp.mean(verax.nn.log_sigmoid(x)), LINE, (LINE.size // PARTS,)),
        (lambda x: abs(x).sum(), LINE[:131075], (131075 // 7,)),
        (lambda x: abs(x.astype(vnp.bfloat16)).sum(), LINE, (LINE.size // PARTS,)),
        (lambda x: x.max(1), X, (523, 257 // BARE)),
        (lambda x: (x * 3 + 1).min(1), X, (523, 257 // PARTS)),
        (lambda x: x.astype(int).max(1), X, (523, 257 // PARTS)),
        (lambda x: x.max(), X.astype("i4"), (523 // BARE, 257)),
        (lambda x: x.sum(1), X.astype("i4"), (523, 257 // BARE)),
        (lambda x: x.sum(1), X.astype("f2"), (523, 257 // PARTS)),
        (lambda x: x.max(0), X.astype("f2"), (523 // BARE, 257)),
        (lambda x: x.any(1), X > 9, (523, 257 // BARE)),
        (lambda x: (x > -9).all(), X, (523 // PARTS, 257)),
        (lambda x: vnp.isnan(x).any(0), X, (523 // PARTS, 257)),
    ],
)
def test_what_is_stored(function: Callable[[Any], object], x: Any, shape: Any) -> None:
    actual = [aval.shape for aval in stored(function, x)]
    assert actual == [shape]


@pytest.mark.parametrize(
    ("function", "x"),
    [
        (lambda x: x.sum(0), X),
        (lambda x: abs(x).sum(1), X),
        (lambda x: (x * 3 + 1).sum(1), X),
        (lambda x: vnp.clip(x, 0, 1).sum(3), IMAGES),
        (lambda x: abs(x).sum((1, 2)), X.reshape(-1, 1, 1)),
        (lambda x: abs(x - x.mean(1, keepdims=True)).sum(1), X),
        (lambda x: (x * x).sum(), X),
        (lambda x: (x**2).sum(0), X),
        (lambda x: x.astype(np.float32).sum(0), X.astype(vnp.bfloat16)),
        (lambda x: abs(x).max(0), X.astype(vnp.bfloat16)),
        (lambda x: x.max(0), X.astype("i4")),
        (lambda x: x.sum(0), X.astype("i4")),
        (lambda x: x.any(0), X > 9),
        (lambda x: lax.reduce_max(x, (0,), out_sharding=None), X[:99]),
        (lambda x: verax.nn.logsumexp(x, 1), X),
        (lambda x: x.T.max(0), X),
        (lambda x: vnp.exp(x - 1).sum(0), X),
        (lambda x: vnp.sin(x + 1).sum(0), X),
        (lambda x: abs(x).sum(0), X[:99]),
        (lambda x: (lambda y: (y, y.sum(0)))(abs(x)), X),
        (lambda x: lax.fori_loop(0, 40, lambda i, y: y * x + 1, x).sum(), X),
    ],
    ids=lambda value: getattr(value, "shape", None) and "",
)
def test_what_is_left_alone(function: Callable[[Any], object], x: Any) -> None:
    """What the library is as fast with, what is read besides, and what is small."""
    assert stored(function, x) == []


def test_long_functions_have_fewer_parts() -> None:
    def function(x: Any, count: int) -> Any:
        for _ in range(count):
            x = vnp.maximum(x * 2, 1)
        return x.sum(0)

    assert stored(lambda x: function(x, 10), X)[0].shape == (174, 257)
    assert stored(lambda x: function(x, 40), X) == []


def test_in_loops_and_beside_infinities() -> None:
    def step(carry: Any, x: Any) -> Any:
        y = vnp.maximum(x, carry)
        return y.max(), vnp.minimum(y, 0).sum(0)

    xs = np.stack([X, -X, X * 2])
    xs[1, 200, 7], xs[2, 500, 3] = np.inf, np.nan

    def run(xs: Any) -> Any:
        return lax.scan(step, np.float32(-1), xs)

    due = run(xs)
    for how in ("auto", "xla"):
        for one, other in zip(verax.jit(run, cpu_lowerings=how)(xs), due, strict=True):
            np.testing.assert_allclose(one, other, 1e-5)
    assert np.isnan(due[0])
    assert verax.jit(run).lower(xs).as_text().count(f"stablehlo.{BARRIER}") == 1


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["f4", "f8", "i4", "c8"])
def test_values_and_gradients_are_those_of_xla(dtype: str) -> None:
    x = (X * 10).astype(dtype)

    def function(x: Any) -> Any:
        return (abs(x - x.mean(0)).sum(0) / 2).max()

    with verax.enable_x64(dtype == "f8"):
        for f in [function, verax.grad(function)][: 1 if dtype == "i4" else 2]:
            one, other = (verax.jit(f, cpu_lowerings=how)(x) for how in ("auto", "xla"))
            np.testing.assert_allclose(one, other, 1e-12 if dtype == "f8" else 1e-4)
