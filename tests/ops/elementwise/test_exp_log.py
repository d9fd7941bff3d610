"""Exponentials and powers at special points."""

from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from tests.ops.laws import slopes, value
from verax.ir.dtypes import bfloat16, float16
from verax.ops.elementwise import arith, exp_log, trig
from verax.ops.special import erf_gamma

F = np.float32
INF, NAN = float("inf"), float("nan")


@pytest.mark.parametrize(
    ("x", "y", "base", "exponent"),
    [
        (0.0, 0.0, 0.0, 0.0),
        (0.0, 1.0, 1.0, 0.0),
        (0.0, 2.0, 0.0, 0.0),
        (0.0, 0.5, INF, 0.0),
        (0.0, -1.0, -INF, NAN),
        (2.0, 0.0, 0.0, np.log(2.0)),
        (-1.0, 2.0, -2.0, NAN),
    ],
)
def test_slopes_of_pow(x: float, y: float, base: float, exponent: float) -> None:
    actual = slopes(exp_log.pow, F(x), F(y))
    np.testing.assert_allclose(actual, [base, exponent], 1e-6)


def test_pow_with_integer_exponents() -> None:
    assert value(exp_log.pow, F(2), np.int8(-3)) == 0.125
    assert value(lambda x: exp_log.pow(x, 3), F(2)) == 8
    assert slopes(lambda x: exp_log.pow(x, 0), F(0)) == [0.0]
    assert slopes(lambda x: exp_log.pow(x, 3), F(-2)) == [12.0]
    with pytest.raises(TypeError, match="float or complex base"):
        value(exp_log.pow, np.int32(2), np.int32(2))


def test_exponents_of_pow_keep_the_dtype_of_the_base() -> None:
    assert value(lambda x: exp_log.pow(x, 2.5), F(4)) == 32
    assert value(exp_log.pow, F(4), np.float32(2.5)) == 32
    with verax.enable_x64(), pytest.raises(TypeError, match="float32 and float64"):
        exp_log.pow(F(4), np.float64(2.5))
    with pytest.raises(TypeError, match="float32 and bool"):
        exp_log.pow(F(4), True)


def test_the_least_exponent_has_a_slope() -> None:
    """Less one, it would be the largest."""
    least = np.int32(np.iinfo(np.int32).min)
    assert slopes(lambda x: exp_log.pow(x, least), F(0.5)) == [-INF]
    assert slopes(lambda x: exp_log.pow(x, least), F(2)) == [0.0]


@pytest.mark.parametrize("dtype", [bfloat16, float16])
def test_whole_powers_of_two_are_exact_in_small_floats(dtype: np.dtype[Any]) -> None:
    """log 2 has few digits there, and e to the power 7 log 2 is not 128."""
    x = np.arange(-6.0, 8.0)
    actual = np.asarray(verax.jit(exp_log.exp2)(x.astype(dtype)))
    np.testing.assert_array_equal(actual.astype(float), 2.0**x)


def test_second_derivatives_of_pow_are_finite_at_zero() -> None:
    def slope(x: object) -> object:
        return arith.mul(exp_log.pow(x, 0.0), exp_log.pow(x, 2.0))

    assert slopes(slope, F(0)) == [0.0]


def test_infinite_slopes() -> None:
    assert slopes(exp_log.sqrt, F(0)) == [INF]
    assert slopes(exp_log.rsqrt, F(0)) == [-INF]
    assert slopes(exp_log.cbrt, F(0)) == [INF]
    assert slopes(exp_log.log, F(0)) == [INF]


def test_saturation() -> None:
    assert value(exp_log.logistic, F(-1e30)) == 0
    assert slopes(exp_log.logistic, F(100)) == [0.0]
    assert slopes(trig.tanh, F(100)) == [0.0]
    assert value(exp_log.log1p, F(-1)) == -INF
    assert slopes(trig.asinh, F(1e20)) == [pytest.approx(1e-20, rel=1e-5)]


def test_gamma_at_the_poles() -> None:
    assert value(erf_gamma.lgamma, F(0)) == INF
    assert value(erf_gamma.lgamma, F(-1)) == INF
    assert value(erf_gamma.digamma, F(0)) == -INF
    assert np.isnan(value(erf_gamma.digamma, F(-1)))
    assert value(erf_gamma.erf_inv, F(1)) == INF


def test_zeta_has_a_derivative_in_its_exponent() -> None:
    # ζ'(2) is π²/6 (γ + log 2π - 12 log A), A Glaisher's constant.
    assert slopes(erf_gamma.zeta, F(2), F(1))[0] == pytest.approx(-0.93754825, rel=1e-6)
    assert slopes(erf_gamma.zeta, F(1), F(2))[0] == -INF
    assert np.isnan(slopes(erf_gamma.zeta, F(0.5), F(2))[0])


def test_small_and_large_arguments_keep_their_digits() -> None:
    def slope_of_tanh(x: object) -> object:
        return exp_log.one_minus_square(trig.tanh(x))

    assert slopes(slope_of_tanh, F(1e-20)) == [pytest.approx(-2e-20)]
    assert slopes(exp_log.expm1, F(-30)) == [pytest.approx(9.357623e-14)]
    assert slopes(trig.asin, F(1)) == [INF]


def test_derivatives_of_logaddexp_at_equal_arguments() -> None:
    first = verax.grad(vnp.logaddexp, (0, 1))
    assert verax.grad(verax.grad(vnp.logaddexp))(1.0, 1.0) == 0.25
    assert verax.grad(verax.grad(vnp.logaddexp), 1)(1.0, 1.0) == -0.25
    for x in (np.inf, -np.inf):
        assert vnp.logaddexp(x, x) == x
        assert first(x, x) == (0.5, 0.5)
        assert verax.grad(verax.grad(vnp.logaddexp))(x, x) == 0.0
    assert np.isnan(first(np.nan, 1.0)).all()
    slope = verax.grad(vnp.logaddexp, holomorphic=True)
    assert np.allclose(slope(1 + 1j, 1 + 1j), 0.5)
    assert np.allclose(verax.grad(slope, holomorphic=True)(1 + 1j, 1 + 1j), 0.25)


def test_compiled_logistic_of_float16_ends_where_its_numbers_do() -> None:
    x = np.array([-16.0, -11.86, -11.0, 0.0, 12.0], np.float16)
    exact = 1 / (1 + np.exp(-x.astype(np.float64)))
    for f in (exp_log.logistic, verax.jit(exp_log.logistic)):
        y = np.asarray(f(x))
        assert y.dtype == np.float16
        np.testing.assert_allclose(y.astype(np.float64), exact, rtol=2e-3, atol=6e-8)


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_log1p_of_small_complex_numbers(dtype: Any) -> None:
    with verax.enable_x64():
        digits = 4 * np.finfo(dtype).eps
        for x in (1e-5, 1e-30 + 1e-30j, 1e-9j, -1e-5 + 4e-3j, -0.5 + 0.866j, 3 + 3.5j):
            z = np.array(x, dtype)
            a, b = z.real.astype(np.longdouble), z.imag.astype(np.longdouble)
            real = np.float64(np.log1p(a * (2 + a) + b * b) / 2)
            due = complex(real, np.arctan2(b, 1 + a))
            for f in (vnp.log1p, verax.jit(vnp.log1p)):
                out = complex(f(z))
                assert abs(out.real - due.real) <= digits * abs(due.real)
                assert abs(out.imag - due.imag) <= digits * abs(due.imag)
        special = np.array([0, -1, 1e30j, complex(INF, 1), complex(NAN, 0)], dtype)
        with np.errstate(all="ignore"):
            np.testing.assert_array_equal(vnp.log1p(special), np.log1p(special))
            np.testing.assert_array_equal(vnp.log1p(special[:0]), special[:0])


@pytest.mark.parametrize("name", ["log2", "log10"])
def test_logarithms_of_complex_zeros_and_infinities(name: str) -> None:
    f = getattr(vnp, name)
    edges = (0.0, -0.0, 1.0, -2.0, INF, -INF)
    z = np.array([complex(a, b) for a in edges for b in edges], np.complex64)
    with np.errstate(all="ignore"):
        lengths = np.log(abs(z)) / np.log(float(name[3:]))
        angles = np.angle(z) / np.log(float(name[3:]))
    for g in (f, verax.jit(f)):
        out = np.asarray(g(z))
        np.testing.assert_allclose(out.real, lengths, rtol=1e-6)
        np.testing.assert_allclose(out.imag, angles, rtol=1e-6)
    assert not vnp.log10(1 + 2j).weak_type
