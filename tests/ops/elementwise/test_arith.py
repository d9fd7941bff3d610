"""Arithmetic at the points where implementations differ."""

import ml_dtypes
import numpy as np
import pytest

import verax
from tests.ops.laws import emitted, slopes, value
from verax.ops.elementwise import arith, remainder
from verax.ops.elementwise.arith import integer_pow
from verax.rules.values.constants import aval_of
from verax.rules.values.operands import alike

INT_MIN = np.int32(-(2**31))
F = np.float32


@pytest.mark.parametrize(
    ("x", "y", "quotient", "rest"),
    [
        (ml_dtypes.int4(-7), ml_dtypes.int4(2), -3, -1),
        (ml_dtypes.uint4(15), ml_dtypes.uint4(2), 7, 1),
        (np.int32(5), np.int32(0), -1, 5),
        (np.int32(-7), np.int32(2), -3, -1),
        (np.int32(7), np.int32(-2), -3, 1),
        (INT_MIN, np.int32(-1), INT_MIN, 0),
        (np.uint32(5), np.uint32(0), 2**32 - 1, 5),
        (np.int8(-128), np.int8(-1), -128, 0),
        (ml_dtypes.int4(5), ml_dtypes.int4(0), -1, 5),
    ],
)
def test_integer_division(
    x: np.integer, y: np.integer, quotient: int, rest: int
) -> None:
    assert value(arith.div, x, y) == quotient
    assert value(remainder.rem, x, y) == rest


def test_float_remainder_has_the_sign_of_the_dividend() -> None:
    assert value(remainder.rem, F(-5), F(3)) == -2
    assert value(remainder.rem, F(5), F(np.inf)) == 5
    assert np.isnan(value(remainder.rem, F(5), F(0)))
    assert slopes(remainder.rem, F(7), F(3)) == [1.0, -2.0]
    assert slopes(remainder.rem, F(-7), F(3)) == [1.0, 2.0]


def test_extremes_split_ties_and_keep_nan() -> None:
    assert slopes(arith.max, F(2), F(2)) == [0.5, 0.5]
    assert slopes(arith.min, F(1), F(2)) == [1.0, 0.0]
    assert np.isnan(value(arith.max, F(np.nan), F(1)))
    assert np.isnan(value(arith.min, F(1), F(np.nan)))
    z, w = np.complex64(1 + 2j), np.complex64(1 + 3j)
    assert value(arith.max, z, w) == w
    assert value(arith.min, z, w) == z


def test_of_equal_complex_numbers_the_second_is_the_extreme() -> None:
    for z, w in ((0.0, -0.0), (-0.0, 0.0)):
        for extreme in (arith.max, arith.min):
            actual = value(extreme, np.complex64(z), np.complex64(w))
            assert np.signbit(actual.real) == np.signbit(w)


def test_complex_extremes_follow_the_larger_imaginary_part_at_a_tie() -> None:
    """The order jumps there, so this is a definition and no limit of quotients."""
    x, y = np.complex64(1 + 2j), np.complex64(1 - 3j)
    for extreme, first in ((arith.max, 1), (arith.min, 0)):
        tangents = np.complex64(2), np.complex64(5)
        _, actual = verax.jvp(extreme, (x, y), tangents)
        assert actual == tangents[1 - first]
        _, actual = verax.jvp(extreme, (y, x), tangents)
        assert actual == tangents[first]


def test_abs_and_sign_at_special_points() -> None:
    assert value(arith.abs, np.int8(-128)) == -128
    assert value(arith.abs, np.complex64(3 + 4j)) == 5
    assert slopes(arith.abs, F(0)) == [0.0]
    assert slopes(arith.abs, F(-2)) == [-1.0]
    assert np.signbit(value(arith.sign, F(-0.0)))
    assert np.isnan(value(arith.sign, F(np.nan)))
    assert value(arith.sign, np.uint8(200)) == 1
    assert value(arith.sign, np.complex64(0)) == 0


@pytest.mark.parametrize(
    ("exponent", "count"),
    [(-3, 3), (-1, 1), (0, 0), (1, 0), (2, 1), (3, 2), (4, 2), (7, 4), (15, 6)],
)
def test_integer_pow_multiplies_seldom(exponent: int, count: int) -> None:
    assert emitted(lambda x: integer_pow(x, exponent), F(2)) == count
    assert value(lambda x: integer_pow(x, exponent), F(2)) == 2.0**exponent


def test_integer_pow_wraps_and_derives() -> None:
    assert value(lambda x: integer_pow(x, 9), np.int32(-17)) == np.int32(
        (-17) ** 9 % 2**32 - 2**32 * ((-17) ** 9 % 2**32 >= 2**31)
    )
    assert slopes(lambda x: integer_pow(x, 0), F(0)) == [0.0]
    assert slopes(lambda x: integer_pow(x, 1), F(0)) == [1.0]
    assert slopes(lambda x: integer_pow(x, -2), F(2)) == [-0.25]
    with pytest.raises(TypeError, match="negative power"):
        value(lambda x: integer_pow(x, -1), np.int32(2))
    with pytest.raises(TypeError, match="Python int"):
        integer_pow(F(2), 2.0)  # type: ignore[arg-type]  # the error is the point


def test_nextafter() -> None:
    assert value(arith.nextafter, F(0), F(1)) == F(1e-45)
    assert value(arith.nextafter, F(1), F(1)) == 1
    assert np.isnan(value(arith.nextafter, F(1), F(np.nan)))


def test_products_in_another_dtype() -> None:
    actual = value(lambda x: arith.mul(x, x, out_dtype=np.int16), np.int8(100))
    assert actual == 10000
    assert actual.dtype == np.dtype("int16")


def test_python_scalars_take_the_dtype() -> None:
    assert value(lambda x: arith.mul(x, 2), F(3)).dtype == np.float32
    half = np.ones(3, np.float16)
    assert [aval_of(x).dtype for x in alike(half, 2.5)] == [np.float16] * 2
    assert arith.mul(half, 2.5).dtype == np.float16
    assert arith.mul(2.5, half).dtype == np.float16
    with pytest.raises(TypeError, match="does not fit"):
        value(lambda x: arith.mul(x, 1.5), np.int32(3))
    with pytest.raises(TypeError, match="the same dtype"):
        value(arith.add, F(1), np.int32(1))


EDGES = [0.0, -0.0, 1.0, -2.0, np.inf, -np.inf, np.nan]


def shown_parts(z: object) -> list[str]:
    """The parts to five digits; every NaN is the same, but zeros are told apart."""
    whole = np.asarray(z).ravel()
    return [f"{part:.5g}" for part in (*whole.real.tolist(), *whole.imag.tolist())]


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_complex_quotients_and_powers_at_edges_are_those_of_compiled_programs(
    dtype: type[np.complexfloating],
) -> None:
    with verax.enable_x64():
        z = np.array([complex(a, b) for a in EDGES for b in EDGES], dtype)
        x, y = (part.ravel() for part in np.meshgrid(z, z))
        compiled = verax.jit(arith.div)(x, y)
        assert shown_parts(arith.div(x, y)) == shown_parts(compiled)
        for k in (-4, -3, -2, -1, 0, 1, 2, 3, 5, 6):
            power = verax.jit(lambda z, k=k: integer_pow(z, k))
            assert shown_parts(integer_pow(z, k)) == shown_parts(power(z)), k
        one = dtype(1)
        assert value(arith.div, one, dtype(complex(np.inf, -1))) == 0
        assert value(arith.div, dtype(complex(np.inf, 1)), dtype(2)).real == np.inf
        assert value(arith.div, one, dtype(complex(-0.0, 0))).real == -np.inf
