"""Shifts, counts, rounding and comparisons at the edges."""

import numpy as np
import pytest

from tests.ops.laws import value
from verax.ops import bits, compare, rounding
from verax.rules.array import Array

F = np.float32


@pytest.mark.parametrize(
    ("shift", "x", "y", "expected"),
    [
        (bits.shift_left, np.int8(1), np.int8(7), -128),
        (bits.shift_left, np.int8(1), np.int8(8), 0),
        (bits.shift_left, np.int8(1), np.int8(-1), 0),
        (bits.shift_right_arithmetic, np.uint8(200), np.uint8(1), 228),
        (bits.shift_right_arithmetic, np.uint8(200), np.uint8(9), 255),
        (bits.shift_right_arithmetic, np.int8(-4), np.int8(-1), -1),
        (bits.shift_right_logical, np.int8(-1), np.int8(1), 127),
        (bits.shift_right_logical, np.uint32(2**31), np.uint32(31), 1),
    ],
)
def test_shifts(shift: object, x: object, y: object, expected: int) -> None:
    assert callable(shift)
    assert value(shift, x, y) == expected


def test_counts() -> None:
    assert value(bits.population_count, np.int8(-1)) == 8
    assert value(bits.clz, np.uint32(1)) == 31
    assert value(bits.clz, np.int32(0)) == 32
    assert value(bits.bitwise_not, np.True_) == np.False_


def test_rounding_of_halves() -> None:
    x = np.array([0.49999997, 0.5, -0.5, -0.3, 2.5, np.inf], np.float32)
    even = rounding.RoundingMethod.TO_NEAREST_EVEN
    away = value(rounding.round, x)
    np.testing.assert_array_equal(away, np.array([0, 1, -1, -0.0, 3, np.inf], F))
    assert np.signbit(away[3])
    near = value(lambda y: rounding.round(y, even), x)
    np.testing.assert_array_equal(near, np.array([0, 0, 0, 0, 2, np.inf], F))


def test_large_unsigned_numbers_are_not_negative() -> None:
    assert value(compare.gt, np.uint32(2**31), np.uint32(1))
    assert value(compare.gt, np.True_, np.False_)


def test_total_order() -> None:
    def less(x: float, y: float) -> bool:
        return bool(value(compare.lt_to, F(x), F(y)))

    nan = float("nan")
    assert less(-0.0, 0.0)
    assert less(np.inf, nan)
    assert less(-nan, -np.inf)
    assert value(compare.eq_to, F(nan), F(nan))
    assert not value(compare.eq, F(nan), F(nan))


def test_results_are_weak_where_all_operands_are() -> None:
    found: list[Array] = []

    def weak(x: object) -> Array:
        found.append(compare.lt(1.0, 2.0))
        found.append(compare.lt(x, 2.0))
        return found[0]

    value(weak, F(1))
    assert [x.aval.weak_type for x in found] == [True, False]
