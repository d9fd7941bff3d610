"""Products with a thin operand: their gradients are fast on a CPU."""

from typing import Any

import numpy as np
import pytest

import verax
from verax import lax
from verax.api.config.config import override

TALL, WIDE = np.ones((96, 80), np.float32), np.ones((80, 5), np.float32)


def loss(w: Any, x: Any) -> Any:
    return ((x @ w) ** 2).sum()


def barriers(function: Any, *args: Any) -> int:
    return str(verax.jit(function).lower(*args).as_text()).count("optimization_barrier")


def test_the_compiler_may_not_exchange_the_operands_of_a_thin_product() -> None:
    assert barriers(verax.grad(loss), WIDE, TALL) == 1
    with override("cpu_lowerings", "xla"):
        assert barriers(verax.grad(loss), WIDE, TALL) == 0


@pytest.mark.parametrize(
    ("numbers", "x", "y", "count"),
    [
        ((((0,), (0,)), ((), ())), (96, 5), (96, 80), 1),
        ((((0, 1), (0, 1)), ((), ())), (4, 24, 5), (4, 24, 80), 1),
        ((((0,), (0,)), ((), ())), (96, 1), (96, 80), 0),
        ((((0,), (0,)), ((), ())), (96, 40), (96, 80), 0),
        ((((1,), (0,)), ((), ())), (5, 96), (96, 80), 0),
        ((((1,), (1,)), ((0,), (0,))), (3, 24, 5), (3, 24, 80), 0),
    ],
)
def test_which_products_are_thin(numbers: Any, x: Any, y: Any, count: int) -> None:
    rng = np.random.default_rng(0)
    left, right = (rng.standard_normal(z).astype(np.float32) for z in (x, y))
    product = verax.jit(lambda x, y: lax.dot_general(x, y, numbers))
    assert barriers(product, left, right) == count
    due = lax.dot_general(left, right, numbers)
    np.testing.assert_allclose(product(left, right), due, 1e-4, 1e-4)


def test_gradients_agree_with_those_without_kernels() -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((96, 80)).astype(np.float32)
    w = rng.standard_normal((80, 5)).astype(np.float32)
    ours = verax.jit(verax.grad(loss, (0, 1)))(w, x)
    theirs = verax.jit(verax.grad(loss, (0, 1)), cpu_lowerings="xla")(w, x)
    for mine, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(mine, other, 1e-4, 1e-3)
