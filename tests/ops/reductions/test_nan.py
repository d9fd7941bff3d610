"""NaN comes through: XLA's library for sums and extremes of many elements loses it.

Its extremes on a CPU are those of the processor's instructions, which return their
second operand if one is NaN.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from property_tests.levels import crossed
from verax import lax, nn

SIZES = [(8, 8), (600, 300), (16, 4096)]
FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "itself": lambda x: x,
    "maximum": lambda x: vnp.maximum(x, 0.5),
    "minimum": lambda x: vnp.minimum(0.5, x),
    "both": lambda x: vnp.maximum(x, vnp.minimum(x * 2, 1)),
    "clip": lambda x: vnp.clip(x, -1, 1),
    "relu": nn.relu,
    "exp": vnp.exp,
    "abs": abs,
    "tanh": vnp.tanh,
    "sign": vnp.sign,
    "square": lambda x: x * x,
    "sin": vnp.sin,
}


def drawn(shape: tuple[int, int], *places: tuple[int, int]) -> Any:
    """Normal numbers with infinities, and NaN at the places."""
    x = np.random.default_rng(0).standard_normal(shape)
    x[0, 0], x[-1, -1] = np.inf, -np.inf
    for place in places:
        x[place] = np.nan
    return x


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "dtype"),
    crossed(FUNCTIONS, ["float32", "float64", "float16", "bfloat16"], 4),
)
def test_reductions_of_functions_have_the_nan_of_an_element(
    name: str, dtype: str
) -> None:
    def results(x: Any) -> Any:
        y = FUNCTIONS[name](x)
        # Infinities of both signs have no sum.
        ways = (vnp.max, vnp.min) if name in {"itself", "sign"} else (vnp.max, vnp.sum)
        return [reduced(y, axis) for reduced in ways for axis in (0, 1, None)]

    with verax.enable_x64(dtype == "float64"):
        for shape in SIZES:
            place = (shape[0] // 2, shape[1] // 3)
            x = vnp.asarray(drawn(shape, place), dtype)
            for i, y in enumerate(verax.jit(results)(x)):
                there = (place[1], place[0], 0)[i % 3]
                assert np.isnan(np.atleast_1d(np.asarray(y, "f8"))[there]), (shape, i)


@pytest.mark.slow
@pytest.mark.parametrize("shape", SIZES)
@pytest.mark.parametrize("axes", [(0,), (1,), (0, 1), ()])
def test_extremes_are_those_of_numpy(shape: Any, axes: Any) -> None:
    """Infinities of both signs are no NaN, nor are squares that overflow."""
    for x in (drawn(shape), drawn(shape, (3, 4)), drawn(shape) * 1e30):
        x = x.astype("f4")
        for ours, theirs in ((vnp.max, np.max), (vnp.min, np.min)):
            actual = verax.jit(lambda x, f=ours: f(x, axis=axes))(x)
            np.testing.assert_array_equal(actual, theirs(x, axis=axes))


def test_derivatives_and_batches_beside_nan() -> None:
    x = drawn((64, 100), (5, 7)).astype("f4")[1:-1]
    batches = np.stack([x, x * 2, -x])
    largest = verax.jit(verax.vmap(lambda x: vnp.max(x, 1)))(batches)
    np.testing.assert_array_equal(largest, batches.max(2))
    slopes = verax.jit(verax.grad(lambda x: vnp.max(x, 1).sum()))(x)
    due = (x == x.max(1, keepdims=True)).astype("f4")
    np.testing.assert_array_equal(slopes[:4], due[:4])
    np.testing.assert_array_equal(slopes[5:], due[5:])


def test_any_reduction_that_folds_with_a_maximum() -> None:
    x = drawn((600, 300), (99, 7)).astype("f4")
    start = np.float32(-1)
    for fold in (lax.max, lambda a, b: lax.max(a, b), lambda a, b: lax.max(b, a) + 0):
        y = verax.jit(lambda x, fold=fold: lax.reduce(x, start, fold, (0,)))(x)
        assert np.flatnonzero(np.isnan(y)).tolist() == [7]


@pytest.mark.parametrize("function", [nn.softmax, nn.log_softmax, nn.logsumexp])
def test_functions_that_subtract_the_largest(function: Callable[..., Any]) -> None:
    x = drawn((600, 300), (99, 7)).astype("f4")
    y = np.asarray(verax.jit(lambda x: function(x, axis=0))(x))
    assert np.isnan(y[..., 7]).all()
    assert not np.isnan(y[..., 1:7]).any()
