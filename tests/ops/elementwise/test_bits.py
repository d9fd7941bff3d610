"""Shifts, counts, rounding and comparisons at the edges."""

from collections.abc import Sequence
from functools import partial

import numpy as np
import pytest

from tests.ops.laws import value
from verax.ir.avals import bit_width
from verax.ir.dtypes import DType, as_dtype, is_signed, numpy_dtype
from verax.ops import base
from verax.ops.elementwise import arith, bits, compare, rounding
from verax.ops.elementwise.convert import reduce_precision
from verax.rules.values.array import Array
from verax.verify.cases.case import double_precision

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


WIDTHS = [
    as_dtype(f"{sign}int{width}") for width in (64, 4, 32, 8, 16) for sign in ("", "u")
]


def patterns(dtype: DType) -> list[int]:
    """Numbers, as bits, with long and short runs of ones."""
    width = bit_width(dtype)
    full = (1 << width) - 1
    some = 0, 1, 2, 6, 9, full, full - 1, full >> 1, (full >> 1) + 1, full // 3
    return sorted({x & full for x in some} | {1 << i for i in range(1, width, 5)})


def number(pattern: int, dtype: DType) -> int:
    """The integer that bits stand for, which may be too many."""
    width = bit_width(dtype)
    low = pattern & ((1 << width) - 1)
    return low - (1 << width) if is_signed(dtype) and low >> (width - 1) else low


def stored(numbers: Sequence[int], dtype: DType) -> np.ndarray:
    kind = np.uint64 if dtype == np.uint64 else np.int64
    return np.array(numbers, kind).astype(numpy_dtype(dtype))


@pytest.mark.slow
@pytest.mark.parametrize("dtype", WIDTHS, ids=str)
def test_bits_of_every_width(dtype: DType) -> None:
    width = bit_width(dtype)
    known = patterns(dtype)
    amounts = [number(a, dtype) for a in (0, 1, 3, width - 1, width, width + 1, -1)]
    pairs = [(x, y) for x in known for y in amounts]
    xs = stored([number(x, dtype) for x, _ in pairs], dtype)
    ys = stored([y for _, y in pairs], dtype)

    def moved(x: int, y: int, way: str) -> int:
        beyond = not 0 <= y < width
        if way == "arithmetic":
            top = x - (1 << width) if x >> (width - 1) else x
            return number(top >> (width - 1 if beyond else y), dtype)
        found = 0 if beyond else x << y if way == "left" else x >> y
        return number(found, dtype)

    with double_precision():
        for name, way in (
            ("shift_left", "left"),
            ("shift_right_logical", "logical"),
            ("shift_right_arithmetic", "arithmetic"),
        ):
            due = [moved(x, y, way) for x, y in pairs]
            assert value(getattr(bits, name), xs, ys).tolist() == due
            one = getattr(base, name)
            alone = [one(x, np.asarray(y)) for x, y in zip(xs, ys, strict=True)]
            assert [int(z) for z in alone] == due
        numbers = stored([number(x, dtype) for x in known], dtype)
        found = value(bits.clz, numbers).tolist()
        assert found == [number(width - x.bit_length(), dtype) for x in known]
        found = value(bits.population_count, numbers).tolist()
        assert found == [number(x.bit_count(), dtype) for x in known]
        signs = [(x > 0) - (x < 0) for x in numbers.tolist()]
        assert value(arith.sign, numbers).tolist() == signs
        if is_signed(dtype):
            sizes = [number(abs(x), dtype) for x in numbers.tolist()]
            assert value(arith.abs, numbers).tolist() == sizes


FORMATS = {"float16": (5, 10), "bfloat16": (8, 7), "float32": (8, 23)}
OTHERS = (8, 22), (8, 21), (7, 23), (7, 2), (4, 3), (2, 1), (1, 0), (11, 52), (11, 51)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
def test_floats_of_fewer_bits(dtype: str) -> None:
    """Halves go to even, what is too large to infinity, subnormals to zero."""
    random = np.random.default_rng(0)
    some = random.uniform(1, 2, 40) * 2.0 ** random.integers(-9, 9, 40)
    edges = [0.0, 1, 1.5, 2, 3, 5, 7, 9, 65504, 65519.9, 65520, 3e38, np.inf, np.nan]
    small = [2.0**-14, 2.0**-15, 2.0**-126, 1 + 2.0**-11, 1 + 3 * 2.0**-11, 1 + 2**-24]
    x = np.array([*some, *edges, *small])
    with np.errstate(all="ignore"), double_precision():
        x = np.concatenate([x, -x]).astype(numpy_dtype(as_dtype(dtype)))
        for exponent, mantissa in OTHERS:
            value(partial(reduce_precision, exponent_bits=exponent,
                          mantissa_bits=mantissa), x)  # fmt: skip
        for name, (exponent, mantissa) in FORMATS.items():
            actual = value(partial(reduce_precision, exponent_bits=exponent,
                                  mantissa_bits=mantissa), x)  # fmt: skip
            assert actual.dtype == x.dtype
            due = x.astype(numpy_dtype(as_dtype(name))).astype(np.float64)
            least = 2.0 ** (2 - 2 ** (exponent - 1))
            due = np.where(np.abs(due) < least, np.copysign(0, due), due)
            due = due.astype(x.dtype).astype(np.float64)
            np.testing.assert_array_equal(actual.astype(np.float64), due)


@pytest.mark.parametrize("dtype", [d for d in WIDTHS if d.itemsize > 1], ids=str)
def test_upper_halves_of_products(dtype: DType) -> None:
    known = [number(x, dtype) for x in patterns(dtype)]
    pairs = [(x, y) for x in known for y in known]
    with double_precision():
        actual = value(
            bits.mulhi,
            stored([x for x, _ in pairs], dtype),
            stored([y for _, y in pairs], dtype),
        )
    width = bit_width(dtype)
    assert actual.tolist() == [number((x * y) >> width, dtype) for x, y in pairs]


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
    actual: list[Array] = []

    def weak(x: object) -> Array:
        actual.append(compare.lt(1.0, 2.0))
        actual.append(compare.lt(x, 2.0))
        return actual[0]

    value(weak, F(1))
    assert [x.aval.weak_type for x in actual] == [True, False]
