"""Products in formats of few bits."""

import ml_dtypes
import numpy as np
import pytest

import verax
from verax import lax, nn

RANDOM = np.random.default_rng(4)
X = RANDOM.normal(size=(2, 32, 32)).astype(np.float32)
Y = RANDOM.normal(size=(2, 32, 32)).astype(np.float32)
ROWS = (((2,), (2,)), ((0,), (0,)))


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["mxfp8", "mxfp4", "nvfp4"])
def test_operands_are_rounded_and_gradients_go_through(mode: str) -> None:
    configs = [nn.get_scaled_dot_general_config(mode)] * 3
    exact = np.einsum("bmk,bnk->bmn", X, Y)
    actual = nn.scaled_dot_general(X, Y, ROWS, configs=configs)
    error = np.abs(np.asarray(actual) - exact).mean() / np.abs(exact).mean()
    assert 1e-3 < error < 0.2
    compiled = verax.jit(lambda x: nn.scaled_dot_general(x, Y, ROWS, configs=configs))
    np.testing.assert_allclose(compiled(X), actual, rtol=1e-5, atol=1e-5)
    slope = verax.grad(lambda x: (compiled(x) * exact).sum())(X)
    expected = np.einsum("bmn,bnk->bmk", exact, Y)
    error = np.abs(np.asarray(slope) - expected).mean() / np.abs(expected).mean()
    assert error < 0.2


def test_mxfp8_of_what_it_holds_is_exact() -> None:
    config = nn.get_scaled_dot_general_config("mxfp8")
    whole = np.round(X * 2).clip(-8, 8) / 2
    actual = nn.scaled_dot_general(whole, whole, ROWS, configs=[config] * 3)
    np.testing.assert_array_equal(actual, np.einsum("bmk,bnk->bmn", whole, whole))


def test_scales_stand_for_blocks() -> None:
    s = np.exp2(RANDOM.integers(-2, 2, (2, 32, 2))).astype(np.float32)
    t = np.exp2(RANDOM.integers(-2, 2, (2, 32, 4))).astype(np.float32)
    x = X.astype(ml_dtypes.float8_e4m3fn)
    wide = x.astype(np.float32) * s.repeat(16, -1)
    with pytest.raises(ValueError, match="not"):
        nn.scaled_matmul(x, Y, s, t)
    same = t[..., :2]
    exact = np.einsum("bmk,bnk->bmn", wide, Y * same.repeat(16, -1))
    np.testing.assert_allclose(nn.scaled_matmul(x, Y, s, same), exact, 1e-3, 1e-3)
    actual = lax.scaled_dot(x, Y.swapaxes(1, 2), lhs_scale=s)
    assert actual.dtype == ml_dtypes.bfloat16
    exact = np.einsum("bmk,bnk->bmn", wide, Y)
    np.testing.assert_allclose(actual.astype(np.float32), exact, rtol=0.1, atol=0.3)


def test_errors_say_what_to_do() -> None:
    with pytest.raises(ValueError, match="one of nvfp4, mxfp8, mxfp4"):
        nn.get_scaled_dot_general_config("fp3")
    config = nn.get_scaled_dot_general_config("mxfp8")
    with pytest.raises(ValueError, match="block size of mxfp8, 32"):
        nn.scaled_dot_general(X[..., :8], Y[..., :8], ROWS, configs=[config] * 3)
    with pytest.raises(TypeError, match="contracted dimensions"):
        lax.scaled_dot(X[0], Y[0], lhs_scale=np.ones((4, 5), np.float32))
