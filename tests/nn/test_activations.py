"""Activations: values, gradients at special points, sizes of their jaxprs."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.special

import verax
import verax.numpy as vnp
from verax import nn

X = np.array([-20.0, -6.0, -3.0, -1.0, -0.3, 0.0, 0.3, 1.0, 3.0, 6.0, 20.0], np.float32)

type Maths = Callable[[Any], Any]


def logistic(x: Any) -> Any:
    return scipy.special.expit(x)


def soft(x: Any) -> Any:
    return np.logaddexp(x, 0)


def hard(x: Any) -> Any:
    return np.clip(x + 3, 0, 6) / 6


def curved(x: Any, alpha: float) -> Any:
    return np.where(x > 0, x, alpha * np.expm1(x))


VALUES: dict[str, Maths] = {
    "relu": lambda x: np.maximum(x, 0),
    "relu6": lambda x: np.clip(x, 0, 6),
    "sigmoid": logistic,
    "silu": lambda x: x * logistic(x),
    "swish": lambda x: x * logistic(x),
    "softplus": soft,
    "log_sigmoid": lambda x: -soft(-x),
    "soft_sign": lambda x: x / (abs(x) + 1),
    "mish": lambda x: x * np.tanh(soft(x)),
    "elu": lambda x: curved(x, 1.0),
    "celu": lambda x: curved(x, 1.0),
    "selu": lambda x: 1.0507009873554805 * curved(x, 1.6732632423543772),
    "leaky_relu": lambda x: np.where(x >= 0, x, 0.01 * x),
    "hard_tanh": lambda x: np.clip(x, -1, 1),
    "hard_sigmoid": hard,
    "hard_silu": lambda x: x * hard(x),
    "hard_swish": lambda x: x * hard(x),
    "squareplus": lambda x: (x + np.sqrt(x**2 + 4)) / 2,
    "sparse_sigmoid": lambda x: np.clip(x + 1, 0, 2) / 2,
    "tanh": np.tanh,
    "identity": lambda x: x,
}
# The number of equations of each on a float array.
EQUATIONS = {
    "identity": 0,
    "relu": 2,
    "relu6": 1,
    "sigmoid": 1,
    "silu": 2,
    "tanh": 1,
    "softplus": 1,
    "log_sigmoid": 3,
    "soft_sign": 3,
    "elu": 5,
    "celu": 6,
    "selu": 6,
    "leaky_relu": 3,
    "hard_tanh": 4,
    "hard_sigmoid": 3,
    "hard_silu": 4,
    "gelu": 8,
    "mish": 3,
    "squareplus": 5,
    "sparse_plus": 6,
    "sparse_sigmoid": 4,
    "log1mexp": 11,
}


def slope(name: str, x: float) -> float:
    return float(verax.grad(getattr(nn, name))(x))


@pytest.mark.parametrize("name", VALUES)
def test_values(name: str) -> None:
    expected = VALUES[name](X.astype(np.float64))
    actual = np.asarray(getattr(nn, name)(X))
    assert actual.dtype == np.float32
    np.testing.assert_allclose(actual, expected, 2e-6, 1e-6)
    compiled = np.asarray(verax.jit(getattr(nn, name))(X))
    np.testing.assert_allclose(compiled, actual, 2e-6, 1e-6)


@pytest.mark.parametrize("name", VALUES)
def test_gradients_are_those_of_the_formula(name: str) -> None:
    points = X[np.abs(X) > 0.1] + np.float32(0.05)
    points = points.astype(np.float64)
    step = 1e-6
    formula = VALUES[name]
    expected = (formula(points + step) - formula(points - step)) / (2 * step)
    actual = verax.vmap(verax.grad(getattr(nn, name)))(points.astype(np.float32))
    np.testing.assert_allclose(np.asarray(actual), expected, 1e-4, 1e-5)


@pytest.mark.parametrize("name", EQUATIONS)
def test_number_of_equations(name: str) -> None:
    jaxpr = verax.make_jaxpr(getattr(nn, name))(X).jaxpr
    assert len(jaxpr.eqns) == EQUATIONS[name]


@pytest.mark.parametrize("dtype", [np.float16, vnp.bfloat16, np.float32])
@pytest.mark.parametrize("name", EQUATIONS)
def test_dtype_stays(name: str, dtype: Any) -> None:
    actual = getattr(nn, name)(vnp.asarray(X, dtype))
    assert actual.dtype == np.dtype(dtype)
    assert actual.shape == X.shape
    assert not actual.weak_type


def test_slopes_at_kinks() -> None:
    assert slope("relu", 0.0) == 0
    assert slope("relu", -0.0) == 0
    assert (slope("relu6", 0.0), slope("relu6", 6.0)) == (0, 0)
    assert (slope("hard_tanh", -1.0), slope("hard_tanh", 1.0)) == (1, 1)
    assert slope("leaky_relu", 0.0) == 1
    assert (slope("elu", 0.0), slope("celu", 0.0)) == (1, 1)
    assert (slope("sparse_plus", -1.0), slope("sparse_plus", 1.0)) == (0, 1)
    assert (slope("hard_sigmoid", 3.0), slope("hard_sigmoid", -3.0)) == (0, 0)


def test_far_out_everything_stays_finite() -> None:
    for name in ("softplus", "elu", "celu", "selu", "sigmoid", "relu", "log_sigmoid"):
        for x in (-1e4, 1e4):
            assert math.isfinite(float(getattr(nn, name)(x)))
            assert math.isfinite(slope(name, x))
    assert float(nn.softplus(math.inf)) == math.inf
    assert float(nn.softplus(-math.inf)) == 0
    assert slope("softplus", math.inf) == 1
    assert slope("softplus", -math.inf) == 0
    assert slope("sparse_plus", math.inf) == 1


@pytest.mark.parametrize("name", ["relu", "softplus", "gelu", "elu", "hard_tanh"])
def test_nan_goes_through(name: str) -> None:
    assert math.isnan(float(getattr(nn, name)(math.nan)))


def test_second_derivative_of_softplus() -> None:
    second = verax.grad(verax.grad(nn.softplus))
    for x in (-5.0, 0.0, 1.0, 10.0):
        expected = logistic(x) * logistic(-x)
        np.testing.assert_allclose(float(second(x)), expected, 1e-4, 1e-7)


def test_integers_and_scalars() -> None:
    assert nn.relu(np.array([-1, 2], np.int32)).dtype == np.int32
    assert np.asarray(nn.relu(np.array([-1, 2], np.int32))).tolist() == [0, 2]
    assert nn.relu(True).dtype == np.int32
    assert nn.hard_tanh(3).dtype == np.int32
    assert nn.silu(3).dtype == np.float32
    assert nn.relu(3.0).weak_type
    assert nn.elu(np.arange(3), 0.5).dtype == np.float32
    assert nn.leaky_relu(np.arange(-1, 2), 3).tolist() == [-3, 0, 1]
    assert nn.hard_tanh(np.array([0, 1, 7], np.uint8)).tolist() == [0, 1, 1]
    assert not nn.gelu(0.5).weak_type
    for name in ("relu6", "hard_sigmoid", "hard_silu", "sparse_plus", "sparse_sigmoid"):
        assert getattr(nn, name)(np.arange(3)).weak_type
    with pytest.raises(TypeError, match="relu takes arrays"):
        nn.relu([1.0])  # type: ignore[arg-type]  # the point of the test


def test_complex_numbers() -> None:
    z = np.array([1 + 2j, -3 - 0.5j, -100, 100 + 1j], np.complex64)
    power = np.exp(z.astype(complex))  # NumPy's log1p is 0 where this is small
    expected = np.where(abs(power) < 1e-20, power, np.log1p(power)).astype(z.dtype)
    np.testing.assert_allclose(nn.softplus(z), expected, 1e-5)
    expected = -np.log1p(np.exp(-z.astype(complex)))
    np.testing.assert_allclose(nn.log_sigmoid(z), expected, 1e-5, 1e-30)
    np.testing.assert_allclose(nn.soft_sign(z), z / (1 + abs(z)), 1e-6)


def test_parameters() -> None:
    alpha = np.array([0.5, 2.0], np.float32)
    actual = np.asarray(nn.elu(np.array([[-1.0], [2.0]], np.float32), alpha))
    expected = np.where([[True], [False]], alpha * np.expm1(-1.0), 2.0)
    np.testing.assert_allclose(actual, expected, 1e-6)
    np.testing.assert_allclose(
        np.asarray(nn.celu(X, 0.5)),
        np.maximum(X, 0) + 0.5 * np.expm1(np.minimum(X, 0) / 0.5),
        1e-5,
    )
    np.testing.assert_allclose(
        np.asarray(nn.squareplus(X, 0)), np.maximum(X, 0), atol=1e-6
    )
    np.testing.assert_allclose(float(nn.leaky_relu(-2.0, 0.25)), -0.5)


def test_gelu() -> None:
    x = X.astype(np.float64)
    exact = x * scipy.special.ndtr(x)
    actual = np.asarray(nn.gelu(X, approximate=False))
    np.testing.assert_allclose(actual, exact, 1e-5, 1e-7)
    np.testing.assert_allclose(np.asarray(nn.gelu(X)), exact, atol=2e-3)
    bend = np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))
    np.testing.assert_allclose(np.asarray(nn.gelu(X)), x * (1 + bend) / 2, 1e-5, 1e-6)


def test_glu() -> None:
    x = X[:10].reshape(5, 2)
    expected = x[:, :1] * logistic(x[:, 1:])
    np.testing.assert_allclose(np.asarray(nn.glu(x)), expected, 1e-6)
    assert nn.glu(x[:4], axis=0).shape == (2, 2)
    with pytest.raises(ValueError, match="even size"):
        nn.glu(x, axis=0)
    with pytest.raises(ValueError, match=r"dimension|axis"):
        nn.glu(x, axis=2)


def test_log1mexp() -> None:
    x = np.array([1e-7, 0.1, math.log(2), 1.0, 30.0, math.inf], np.float32)
    wide = x.astype(np.float64)
    expected = np.where(x < 1, np.log(-np.expm1(-wide)), np.log1p(-np.exp(-wide)))
    np.testing.assert_allclose(np.asarray(nn.log1mexp(x)), expected, 1e-6)
    slopes = np.asarray(verax.vmap(verax.grad(nn.log1mexp))(x))
    np.testing.assert_allclose(slopes, 1 / np.expm1(x.astype(np.float64)), 1e-5)
    assert slope("log1mexp", 0.0) == math.inf
