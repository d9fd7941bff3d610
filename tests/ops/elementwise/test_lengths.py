"""Lengths of complex numbers in compiled programs: errors and special points."""

from itertools import product
from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp

WIDER: dict[Any, Any] = {np.complex64: np.complex128, np.complex128: np.clongdouble}


@pytest.mark.parametrize("dtype", WIDER)
def test_lengths_have_an_error_of_little_more_than_a_unit(dtype: Any) -> None:
    rng = np.random.default_rng(0)
    info = np.finfo(dtype)
    low, high = np.log(float(info.tiny)) + 2, np.log(float(info.max)) - 1
    parts = [
        rng.choice([-1.0, 1.0], 40_000) * np.exp(rng.uniform(low, high, 40_000)),
        rng.uniform(-2, 2, 40_000),
    ]
    z = np.concatenate([parts[0], parts[0], parts[1]]).astype(dtype)
    z.imag = np.concatenate([parts[0] * parts[1], parts[0][::-1], parts[1][::-1]])
    due = np.abs(z.astype(WIDER[dtype]))
    with verax.enable_x64(True):
        actual = np.asarray(verax.jit(vnp.abs)(z))
    # Compiled programs take subnormal numbers for zero.
    shorter = np.minimum(abs(z.real), abs(z.imag))
    normal = (shorter > info.tiny) & (due < info.max)
    unit = np.spacing(due[normal].astype(actual.dtype))
    assert np.max(np.abs(actual[normal] - due[normal]) / unit) < 1.4
    np.testing.assert_array_equal(actual[due >= float(info.max) * 1.01], np.inf)


@pytest.mark.parametrize("dtype", WIDER)
def test_special_parts(dtype: Any) -> None:
    points = [0.0, -0.0, 3.0, -4.0, np.inf, -np.inf, np.nan]
    z = np.array([complex(x, y) for x, y in product(points, points)], dtype)
    with verax.enable_x64(True):
        actual = np.asarray(verax.jit(vnp.abs)(z))
    np.testing.assert_allclose(actual, np.abs(z), 2 * float(np.finfo(dtype).eps), 0)


def test_lengths_are_left_to_xla_where_that_is_asked() -> None:
    z = np.array([3 + 4j], np.complex64)
    for options, ours in (({}, True), ({"cpu_lowerings": "xla"}, False)):
        f = verax.jit(vnp.abs, **options)  # type: ignore[call-overload]
        assert ("stablehlo.sqrt" in f.lower(z).as_text()) == ours
        np.testing.assert_allclose(f(z), [5.0], 1e-6)
    real = np.array([-3.0], np.float32)
    assert "stablehlo.abs" in verax.jit(vnp.abs).lower(real).as_text()
