"""Conversions by value, by bits, and to a smaller precision."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.ops.laws import emitted, slopes, trace, value
from verax.ir.avals import iinfo
from verax.ops.elementwise import convert
from verax.ops.elementwise.convert import bitcast_convert_type, convert_element_type
from verax.rules.values.constants import INTEGER

F = np.float32
FLOATS = [np.dtype(d) for d in (F, np.float64, np.float16, ml_dtypes.bfloat16)]


@pytest.mark.parametrize(
    ("x", "dtype", "expected"),
    [
        (F(np.nan), np.int8, 0),
        (F(np.inf), np.int8, 127),
        (F(-np.inf), np.int32, -(2**31)),
        (F(300.7), np.uint8, 255),
        (F(-1), np.uint32, 0),
        (F(-1.9), np.int8, -1),
        (F(np.inf), np.uint32, 2**32 - 1),
        (np.int32(300), np.uint8, 44),
        (np.int32(100), ml_dtypes.int4, 4),
        (F(100), ml_dtypes.int4, 7),
        (F(0.5), np.bool_, True),
        (np.complex64(1j), np.bool_, True),
        (np.complex64(2 + 1j), np.float32, 2),
        (np.complex64(2 + 1j), np.int32, 2),
        (np.True_, np.complex64, 1),
    ],
)
def test_values(x: object, dtype: type, expected: object) -> None:
    actual = value(lambda y: convert_element_type(y, dtype), x)
    assert actual == expected
    assert actual.dtype == np.dtype(dtype)


def saturated(x: float, low: int, high: int) -> int:
    """Towards zero, to the nearest bound outside, 0 for NaN: in exact integers."""
    if np.isnan(x):
        return 0
    if np.isinf(x):
        return high if x > 0 else low
    return max(low, min(int(x), high))


@pytest.mark.parametrize("old", FLOATS)
@pytest.mark.parametrize("new", INTEGER.samples(), ids=str)
def test_floats_saturate_at_the_ends_of_all_integers(
    old: np.dtype[Any], new: np.dtype[Any]
) -> None:
    ends = [s * 2.0**bits for bits in (1, 3, 7, 15, 31, 63, 64) for s in (-1, 1)]
    steps = (-2.0, -1.0, -0.5, 0.5, 1.0, 2.0)
    near = [end + step for end in ends for step in steps]
    few = [0.0, -0.0, 0.9, -0.9, 100.7, -100.7, 300.0, -300.0, 4e4, -4e4, 1e9, -1e9]
    with np.errstate(over="ignore"):
        points = np.array([*few, *ends, *near, np.nan, np.inf, -np.inf]).astype(old)
        x = np.concatenate([points, np.nextafter(points, old.type(0))])
    low, high = int(iinfo(new).min), int(iinfo(new).max)
    expected = [saturated(float(v), low, high) for v in x]
    inside = np.array([low <= float(v) <= high for v in x])
    for part, due in ((x, expected), (x[inside], np.array(expected)[inside].tolist())):
        actual = convert.evaluate_convert(convert.ConvertParams(new), part)
        assert actual.dtype == new
        assert [int(v) for v in actual] == due


def test_complex_numbers_keep_both_parts() -> None:
    for old, new in ((np.complex64, np.complex128), (np.complex128, np.complex64)):
        actual = value(lambda x, d=new: convert.convert(x, np.dtype(d)), old(2 + 1j))
        assert actual == 2 + 1j
        assert actual.dtype == new


def test_nothing_is_written_where_nothing_changes() -> None:
    assert len(trace(lambda x: convert_element_type(x, F), F(1)).eqns) == 0
    assert len(trace(lambda x: convert.convert(x, np.dtype(F), True), F(1)).eqns) == 1
    assert emitted(lambda x: convert.convert(x, np.dtype(F), True), F(1)) == 0
    assert emitted(lambda x: convert_element_type(x, F), np.complex64(1)) == 1


def test_sixty_four_bits_are_narrowed() -> None:
    assert value(lambda x: convert_element_type(x, float), np.int32(1)).dtype == F


def test_slopes() -> None:
    assert slopes(lambda x: convert_element_type(x, np.float16), F(1)) == [1.0]
    assert slopes(lambda x: convert_element_type(x, np.int32), F(1)) == [0.0]


@pytest.mark.parametrize(
    ("old", "new", "shape"),
    [
        (np.int8, np.int32, (2,)),
        (np.float32, np.uint8, (2, 4, 4)),
        (np.int8, ml_dtypes.int4, (2, 4, 2)),
        (np.float16, ml_dtypes.bfloat16, (2, 4)),
        (np.bool_, np.bool_, (2, 4)),
    ],
)
def test_bits(old: type, new: type, shape: tuple[int, ...]) -> None:
    x: np.ndarray = np.arange(8).reshape(2, 4).astype(old)
    actual = value(lambda y: bitcast_convert_type(y, new), x)
    assert actual.shape == shape
    back = value(lambda y: bitcast_convert_type(y, old), actual)
    np.testing.assert_array_equal(back.astype(F), x.astype(F))


def test_bits_errors() -> None:
    with pytest.raises(TypeError, match="integers and real floats"):
        trace(lambda x: bitcast_convert_type(x, np.float32), np.complex64(1))
    with pytest.raises(ValueError, match="last dimension of size 4"):
        trace(lambda x: bitcast_convert_type(x, np.int32), np.ones((2, 3), np.int8))


@pytest.mark.parametrize(
    ("x", "expected"),
    [
        (65519.0, 65504.0),
        (65520.0, np.inf),
        (1e-7, 0.0),
        (6e-5, 0.0),
        (-1e-9, -0.0),
        (np.nan, np.nan),
        (1.00048828125, 1.0),
    ],
)
def test_reduce_precision(x: float, expected: float) -> None:
    actual = value(lambda y: convert.reduce_precision(y, 5, 10), F(x))
    np.testing.assert_array_equal(actual, F(expected))
    assert np.signbit(actual) == np.signbit(F(expected))


def test_reduce_precision_refuses_impossible_formats() -> None:
    with pytest.raises(ValueError, match="at least one exponent bit"):
        convert.reduce_precision(F(1), 0, 3)
