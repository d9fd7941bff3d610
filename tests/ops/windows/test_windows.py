"""Reductions by any computation, over dimensions and windows; pooling gradients."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as jnp
from verax import lax
from verax.ops.windows.select_and_scatter import (
    select_and_gather_add,
    select_and_scatter_add,
)

X = np.arange(1, 13, dtype=np.float32).reshape(3, 4)


def names(f: Callable[..., Any], *args: Any) -> list[str]:
    return [eqn.primitive.name for eqn in verax.make_jaxpr(f)(*args).jaxpr.eqns]


def test_known_computations_are_their_own_rows() -> None:
    assert names(lambda x: lax.reduce(x, 0.0, lax.add, (0,)), X) == ["reduce_sum"]
    assert names(lambda x: lax.reduce(x, -np.inf, jnp.maximum, (0,)), X) == [
        "reduce_max"
    ]
    pool = lax.reduce_window
    assert names(lambda x: pool(x, -np.inf, lax.max, (2, 2)), X) == [
        "reduce_window_max"
    ]
    assert names(lambda x: pool(x, 1.0, lax.mul, (2, 2)), X) == ["reduce_window"]


def test_initial_values_that_are_not_neutral() -> None:
    np.testing.assert_array_equal(
        lax.reduce(X, 5.0, lambda a, b: a + b, (1,)), X.sum(1) + 5
    )
    actual = lax.reduce_window(np.ones(5, np.float32), 2.0, lax.add, (3,), (1,), "SAME")
    np.testing.assert_array_equal(actual, [4, 5, 5, 5, 4])


def argmax(a: Any, b: Any) -> Any:
    first = a[0] >= b[0]
    return jnp.where(first, a[0], b[0]), jnp.where(first, a[1], b[1])


def test_several_operands() -> None:
    x = np.array([[1, 5, 2], [7, 7, 3]], np.float32)
    places = np.broadcast_to(np.arange(3, dtype=np.int32), x.shape)

    def f(x: Any) -> Any:
        return lax.reduce((x, places), (-np.inf, 0), argmax, (1,))

    for value, place in (f(x), verax.jit(f)(x)):
        assert (value.tolist(), place.tolist()) == ([5, 7], [1, 0])
    back = verax.grad(lambda x: (f(x)[0] * np.array([10, 20], np.float32)).sum())(x)
    np.testing.assert_array_equal(back, [[0, 10, 0], [20, 0, 0]])


def test_product_of_windows_has_a_gradient_at_zero() -> None:
    x = np.array([2, 0, 3, 4], np.float32)

    def f(x: Any) -> Any:
        return lax.reduce_window(x, 1.0, lax.mul, (2,), (1,), "SAME").sum()

    np.testing.assert_array_equal(verax.grad(f)(x), [0, 5, 4, 4])
    hessian = verax.hessian(f)(x)
    np.testing.assert_array_equal(hessian, np.eye(4, k=1) + np.eye(4, k=-1))


def test_pooling_gradients_go_to_the_first_extreme() -> None:
    x = np.array([1, 1, 0, 2, 2, 2, 1], np.float32)
    weights = np.arange(7, dtype=np.float32)

    def f(x: Any) -> Any:
        y = lax.reduce_window(x, -np.inf, lax.max, (3,), (1,), "SAME")
        return (y * weights).sum()

    for g in (verax.grad(f), verax.jit(verax.grad(f))):
        np.testing.assert_array_equal(g(x), [1, 0, 0, 9, 5, 6, 0])


def test_dilated_pooling_has_a_gradient() -> None:
    x = np.array([3, 1, 2, 5, 4], np.float32)

    def f(x: Any) -> Any:
        return lax.reduce_window(
            x, -np.inf, lax.max, (2,), window_dilation=(2,), base_dilation=(1,)
        ).sum()

    np.testing.assert_array_equal(verax.grad(f)(x), [1, 0, 0, 1, 1])


def test_batched_initial_values() -> None:
    starts = np.array([1, 2, 3], np.float32)
    actual = verax.vmap(lambda x, s: lax.reduce(x, s, lax.mul, (0,)))(X, starts)
    np.testing.assert_array_equal(actual, X.prod(1) * starts)
    pool = verax.vmap(lambda x, s: lax.reduce_window(x, s, lax.add, (2,)))(X, starts)
    np.testing.assert_array_equal(pool, X[:, 1:] + X[:, :-1] + starts[:, None])


def test_selecting_is_the_adjoint_of_gathering() -> None:
    x = np.array([3, 1, 2, 5, np.nan, 7], np.float32)
    source = np.array([10, 20, 30], np.float32)
    spread = select_and_scatter_add(source, x, lax.ge_p, (2,), (2,), "VALID")
    np.testing.assert_array_equal(spread, [10, 0, 0, 20, 30, 0])
    low = select_and_scatter_add(source, x, lax.le_p, (2,), (2,), "VALID")
    np.testing.assert_array_equal(low, [0, 10, 20, 0, 30, 0])
    t = np.arange(6, dtype=np.float32)
    read = select_and_gather_add(t, x, lax.ge_p, (2,), (2,), ((0, 0),), (1,), (1,))
    np.testing.assert_array_equal(read, [0, 3, 4])


def test_rows_of_groups() -> None:
    x, y = X[:, :2], np.stack([np.eye(2), 10 * np.eye(2)]).astype(np.float32)
    sizes = np.array([1, 1], np.int32)
    actual = lax.ragged_dot(x, y, sizes)
    np.testing.assert_array_equal(actual, [x[0], 10 * x[1], [0, 0]])


def test_approximations_are_exact() -> None:
    x = np.array([2, np.nan, 1, 3], np.float32)
    assert lax.approx_max_k(x[[0, 2, 3]], 2)[1].tolist() == [2, 0]
    assert lax.approx_min_k(x, 2)[1].tolist() == [2, 0]


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (lambda: lax.reduce(X, 0.0, lax.gt, (0,)), TypeError, r"bool\[\]"),
        (lambda: lax.reduce((X, X), 0.0, lax.add, (0,)), TypeError, "structures"),
        (lambda: lax.reduce(X, 0.5, lax.add, (2,)), ValueError, "out of bounds"),
        (lambda: lax.reduce(X.astype(int), 0.5, lax.add, (0,)), TypeError, "0.5"),
        (
            lambda: lax.reduce_window(X, 0.0, lax.add, (2,)),
            ValueError,
            "window_dimensions",
        ),
        (
            lambda: verax.jit(
                lambda x, c: lax.reduce(x, 0.0, lambda a, b: a + b * c, (0,))
            )(X, 2.0),
            TypeError,
            "outer",
        ),
    ],
)
def test_bad_input_is_one_clear_error(
    call: Callable[[], Any], error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says):
        call()


def test_names_of_padding_count_elements_before_the_dilation() -> None:
    x = np.arange(24, dtype=np.float32).reshape(4, 6)
    for name, pads in (("SAME", ((0, 0), (0, 1))), ("SAME_LOWER", ((0, 0), (1, 0)))):
        named, pairs = (
            lax.reduce_window(x, 0.0, lax.add, (2, 2), (2, 1), padding, (2, 3))
            for padding in (name, pads)
        )
        assert named.shape == (3, 16)
        np.testing.assert_array_equal(named, pairs)
