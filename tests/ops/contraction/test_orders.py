"""Products of thin and of small matrices: which have an order of their own."""

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
        # Stacks of small matrices: a barrier for the result, and for what is turned.
        ((((2,), (1,)), ((0,), (0,))), (9, 6, 6), (9, 6, 5), 1),
        ((((1,), (1,)), ((0,), (0,))), (9, 6, 4), (9, 6, 5), 2),
        ((((2,), (2,)), ((0,), (0,))), (9, 4, 6), (9, 5, 6), 2),
        ((((1,), (2,)), ((0,), (0,))), (9, 6, 4), (9, 5, 6), 3),
        ((((2,), (3,)), ((0, 1), (0, 1))), (3, 3, 6, 4), (3, 3, 5, 6), 3),
        ((((2,), (2,)), ((0,), (0,))), (9, 4, 8), (9, 5, 8), 1),
        ((((1,), (1,)), ((0,), (0,))), (9, 3, 8), (9, 3, 8), 0),
        ((((1,), (1,)), ((0,), (0,))), (7, 6, 4), (7, 6, 5), 0),
        ((((1,), (1,)), ((0,), (0,))), (9, 6, 30), (9, 6, 5), 0),
    ],
)
def test_which_products_have_an_order_of_their_own(
    numbers: Any, x: Any, y: Any, count: int
) -> None:
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


def test_gradients_of_stacks_of_products() -> None:
    rng = np.random.default_rng(1)
    x, y = (rng.standard_normal((9, 6, 6)).astype(np.float32) for _ in range(2))

    def total(x: Any, y: Any) -> Any:
        return ((x @ y @ x) ** 2).sum()

    ours = verax.jit(verax.grad(total, (0, 1)))(x, y)
    theirs = verax.jit(verax.grad(total, (0, 1)), cpu_lowerings="xla")(x, y)
    for mine, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(mine, other, 1e-4, 1e-2)


def test_products_of_a_precision_have_these_orders_too() -> None:
    stack: np.ndarray = np.ones((9, 6, 6), np.float32)
    numbers = (((1,), (1,)), ((0,), (0,)))
    product = verax.jit(lambda x: lax.dot_general(x, x, numbers, "highest"))
    assert barriers(product, stack) == 2
    assert str(product.lower(stack).as_text()).count("HIGHEST") == 2
