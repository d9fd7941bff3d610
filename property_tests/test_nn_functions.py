"""The activations of `verax.nn` beside their formulas in NumPy."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.special as sp
from hypothesis import given, settings, strategies as st

from property_tests.comparing import (
    BFLOAT16,
    LINE,
    Call,
    Known,
    Points,
    Pointwise,
    Whole,
    called,
    held,
    shapes_held,
    varied,
    whole_held,
)
from verax import nn

SEEDS = st.integers(0, 2**16)
SELU = (1.6732632423543772, 1.0507009873554805)
BELOW = Points(0, 30)


def line(name: str, reference: Callable[..., Any], **options: Any) -> Pointwise:
    points = options.pop("points", (LINE,))
    ours = options.pop("ours", getattr(nn, name))
    return Pointwise(f"nn.{name}", ours, reference, points, **options)


def silu(x: Any) -> Any:
    return np.where(x == -np.inf, np.nan, x * sp.expit(x))


def exponential(x: Any, alpha: Any = 1.0) -> Any:
    return np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0)))


def gelu(x: Any) -> Any:
    inner = np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)
    return 0.5 * x * (1 + np.tanh(inner))


def sparse_plus(x: Any) -> Any:
    return np.where(x <= -1, 0.0, np.where(x >= 1, x, (x + 1) ** 2 / 4))


def log_of_rest(x: Any) -> Any:
    small = x < np.log(2)
    near = np.log(-np.expm1(-np.where(small, x, 1.0)))
    return np.where(small, near, np.log1p(-np.exp(-np.where(small, 1.0, x))))


SQUARES = Known("the square overflows, as in JAX", lambda x: np.abs(x) > 1e18)
POINTWISE = (
    line("identity", lambda x: x),
    line("relu", lambda x: np.maximum(x, 0)),
    line("relu6", lambda x: np.clip(x, 0, 6)),
    line("hard_tanh", lambda x: np.clip(x, -1, 1)),
    line("hard_sigmoid", lambda x: np.clip(x + 3, 0, 6) / 6),
    line("leaky_relu", lambda x: np.where(x >= 0, x, 0.01 * x)),
    line("elu", exponential),
    line("celu", exponential),
    line("selu", lambda x: SELU[1] * exponential(x, SELU[0])),
    line("sigmoid", sp.expit),
    line("log_sigmoid", sp.log_expit),
    line("softplus", lambda x: np.logaddexp(x, 0)),
    line("soft_sign", lambda x: x / (1 + np.abs(x))),
    line(
        "squareplus", lambda x: (x + np.hypot(x, 2)) / 2, scale=np.abs, known=(SQUARES,)
    ),
    line("sparse_plus", sparse_plus),
    line("sparse_sigmoid", lambda x: np.clip((x + 1) / 2, 0, 1)),
    line("tanh", np.tanh),
    line("silu", silu),
    line("swish", silu),
    line("hard_silu", lambda x: x * np.clip(x + 3, 0, 6) / 6),
    line("hard_swish", lambda x: x * np.clip(x + 3, 0, 6) / 6),
    line("mish", lambda x: x * np.tanh(np.logaddexp(x, 0))),
    # The tanh of about -1 leaves the digits of 1.
    line(
        "gelu", gelu, scale=np.abs, points=(Points(-30, 30, (0.0, np.nan, 1.0, -1.0)),)
    ),
    line("log1mexp", log_of_rest, points=(BELOW,)),
)


def drawn(random: np.random.Generator, *shape: int) -> Any:
    return random.normal(size=shape).astype(np.float32)


def masked(random: np.random.Generator, **options: Any) -> Any:
    x = drawn(random, 3, 4)
    yield from varied((x,), axis=(0, 1, -1, (0, 1), None), **options)
    yield Call((x,), {"where": random.random((3, 4)) < 0.7, "axis": 1})


def kept(where: Any, x: Any, rest: float) -> Any:
    return x if where is None else np.where(where, x, rest)


def softmax(x: Any, axis: Any = -1, where: Any = None) -> Any:
    return sp.softmax(kept(where, x, -np.inf), axis)


def log_softmax(x: Any, axis: Any = -1, where: Any = None) -> Any:
    return x - sp.logsumexp(kept(where, x, -np.inf), axis, keepdims=True)


def logsumexp(
    x: Any, axis: Any = None, where: Any = None, keepdims: bool = False
) -> Any:
    return sp.logsumexp(kept(where, x, -np.inf), axis, keepdims=keepdims)


def logmeanexp(
    x: Any, axis: Any = None, where: Any = None, keepdims: bool = False
) -> Any:
    ones: Any = kept(where, np.ones_like(x), 0)
    count = ones.sum(axis, keepdims=keepdims)
    return logsumexp(x, axis, where, keepdims) - np.log(count)


def standardize(
    x: Any, axis: Any = -1, where: Any = None, epsilon: float = 1e-5
) -> Any:
    chosen: Any = True if where is None else where
    mean = np.mean(x, axis, keepdims=True, where=chosen)
    variance = np.mean((x - mean) ** 2, axis, keepdims=True, where=chosen)
    return (x - mean) / np.sqrt(variance + epsilon)


def glu(x: Any, axis: int = -1) -> Any:
    a, b = np.split(x, 2, axis)
    return a * sp.expit(b)


def one_hot(x: Any, n: int, axis: int = -1) -> Any:
    actual = (np.asarray(x)[..., None] == np.arange(n)).astype(np.float64)
    return np.moveaxis(actual, -1, axis)


WHOLE = (
    Whole("nn.softmax", nn.softmax, softmax, masked),
    Whole(
        "nn.logsumexp", nn.logsumexp, logsumexp, lambda r: masked(r, keepdims=(True,))
    ),
    Whole(
        "nn.logmeanexp",
        nn.logmeanexp,
        logmeanexp,
        lambda r: masked(r, keepdims=(True,)),
    ),
    Whole(
        "nn.log_softmax",
        nn.log_softmax,
        log_softmax,
        lambda r: varied((drawn(r, 3, 4),), axis=(0, 1, -1, (0, 1), None)),
    ),
    Whole(
        "nn.standardize",
        nn.standardize,
        standardize,
        lambda r: varied((drawn(r, 3, 4),), axis=(0, -1, (0, 1)), epsilon=(0.1,)),
    ),
    Whole("nn.glu", nn.glu, glu, lambda r: varied((drawn(r, 4, 6),), axis=(0, 1, -2))),
    Whole(
        "nn.one_hot",
        nn.one_hot,
        one_hot,
        lambda r: [
            called(r.integers(-1, 5, (2, 3)), 4),
            Call((r.integers(0, 4, (2, 3)), 4), {"axis": 0}),
            Call((r.integers(0, 4, (2, 3)), 4), {"axis": -2}),
            called(np.array(2), 3),
        ],
    ),
)
ELSEWHERE = {
    "dot_product_attention": "tests/nn/test_encoding.py",
    "get_scaled_dot_general_config": "tests/nn/test_scaled.py",
    "scaled_dot_general": "tests/nn/test_scaled.py",
    "scaled_matmul": "tests/nn/test_scaled.py",
    "initializers": "a module; tests/nn/test_initializers.py",
}


# Of integers these give integers, as in JAX.
WHOLE_NUMBERS = ("nn.identity", "nn.relu", "nn.hard_tanh")
FLOATING = [line for line in POINTWISE if line.name not in WHOLE_NUMBERS]


def tried() -> settings:
    return settings(max_examples=max(1, settings().max_examples // 40))


@pytest.mark.parametrize("line", POINTWISE, ids=lambda line: line.name)
@pytest.mark.parametrize("dtype", [np.float32, np.float16, BFLOAT16], ids=str)
def test_activation(line: Pointwise, dtype: Any) -> None:
    @tried()
    @given(SEEDS)
    def search(seed: int) -> None:
        held(line, seed, dtype)

    search()


@pytest.mark.parametrize("line", WHOLE, ids=lambda line: line.name)
def test_function_of_arrays(line: Whole) -> None:
    @tried()
    @given(SEEDS)
    def search(seed: int) -> None:
        whole_held(line, seed)

    search()


@pytest.mark.parametrize("line", FLOATING, ids=lambda line: line.name)
def test_shapes_and_dtypes(line: Pointwise) -> None:
    shapes_held(line)


def test_table_is_complete() -> None:
    named = {x.name for x in POINTWISE} | {x.name for x in WHOLE}
    functions = {n for n in dir(nn) if callable(getattr(nn, n)) and n[0] != "_"}
    assert {f"nn.{n}" for n in functions - set(ELSEWHERE)} <= named
