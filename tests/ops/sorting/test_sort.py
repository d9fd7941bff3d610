"""Sorting and the largest elements: NaNs, zeros with a sign, several keys."""

import ml_dtypes
import numpy as np
import pytest

from tests.ops.agreement import both
from verax.ops.sorting import sort
from verax.rules.values.array import Array

NAN, INF = np.nan, np.inf


@pytest.mark.parametrize(
    "dtype", [np.float32, np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e5m2]
)
def test_sort_puts_nan_last(dtype: type[np.generic]) -> None:
    x = np.array([0.0, NAN, -1, INF, -NAN, -INF, 1], dtype)
    (y,) = both(sort.sort, x)
    expected = [-INF, -1, 0, 1, INF, NAN, NAN]
    np.testing.assert_array_equal(y.astype(np.float64), expected)


def test_sort_of_floats_with_values_is_stable_and_keeps_signs_of_zero() -> None:
    x = np.array([0.0, -0.0, NAN, -NAN, -0.0, 0.0, -1], np.float32)
    y, order = both(sort.sort_key_val, x, np.arange(7, dtype=np.int32))
    assert order.tolist() == [6, 0, 1, 4, 5, 2, 3]
    assert np.signbit(y[:5]).tolist() == [True, False, True, True, False]


@pytest.mark.parametrize("dtype", [np.uint32, np.uint16, np.int32])
def test_sort_of_extreme_integers_with_two_values(dtype: type[np.generic]) -> None:
    limits = np.iinfo(dtype)  # type: ignore[type-var]  # an integer dtype
    x = np.array([4, limits.max, limits.min, limits.max // 2 + 1], dtype)
    places, halves = np.arange(4, dtype=np.int32), np.arange(4, dtype=np.float32) / 2
    y, order, _ = both(lambda *xs: sort.sort(xs), x, places, halves)
    assert y.tolist() == sorted(x.tolist())
    assert order.tolist() == np.argsort(x, kind="stable").tolist()


@pytest.mark.parametrize("dtype", [np.int64, np.uint64, np.float64])
def test_wide_keys_with_two_values_keep_all_their_bits(dtype: type[np.generic]) -> None:
    x = np.array([3 << 40, 1 << 40, 5, 2 << 40, 1 << 33, 5], dtype)
    places = np.arange(6, dtype=np.int32)
    y, order, _ = both(lambda *xs: sort.sort(xs), x, places, places[::-1].copy())
    assert y.tolist() == sorted(x.tolist())
    assert order.tolist() == np.argsort(x, kind="stable").tolist()


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz"]
)
def test_floats_of_eight_bits_are_sorted_with_values(name: str) -> None:
    x = np.array([1, -2, NAN, 0, 0.5, -0.25, 2, -1]).astype(name)
    y, order, _ = both(
        lambda *xs: sort.sort(xs), x, *[np.arange(8, dtype=np.int32)] * 2
    )
    numbers = x.astype(np.float32)
    assert order.tolist() == np.argsort(numbers, kind="stable").tolist()
    assert np.array_equal(y.astype(np.float32), np.sort(numbers), equal_nan=True)
    both(sort.sort, x)


def test_sort_by_two_keys_and_along_a_middle_dimension() -> None:
    random = np.random.default_rng(0)
    a = random.integers(0, 3, (3, 20, 2)).astype(np.float32)
    b = random.integers(0, 9, (3, 20, 2)).astype(np.int32)
    c = random.normal(size=(3, 20, 2)).astype(np.float32)

    def three(*xs: Array) -> object:
        return sort.sort(xs, dimension=1, num_keys=2)

    first, second, _ = both(three, a, b, c)
    pairs = list(zip(first[0, :, 0], second[0, :, 0], strict=True))
    assert pairs == sorted(pairs)
    both(lambda *xs: sort.sort(xs, dimension=1, num_keys=1), a, b, c)
    both(lambda *xs: sort.sort(xs, dimension=0, num_keys=1), b, a, c)


def test_complex_numbers_go_by_real_part_then_imaginary() -> None:
    z = np.array([2, 1 + 5j, 1 - 5j, complex(NAN, 0)], np.complex64)
    (y,) = both(sort.sort, z)
    assert y[:3].tolist() == [1 - 5j, 1 + 5j, 2]


def test_top_k_takes_every_nan_first() -> None:
    x = np.array([1, -NAN, 3, NAN, 3], np.float32)
    values, places = both(lambda x: tuple(sort.top_k(x, 4)), x)
    np.testing.assert_array_equal(values, [NAN, NAN, 3, 3])
    assert places.tolist() == [1, 3, 2, 4]


@pytest.mark.parametrize("zero", [0.0, -0.0])
def test_negative_zeros_stand_before_others(zero: float) -> None:
    x = np.array([0.0, -0.0, zero], np.float32)
    (y,) = both(sort.sort, x)
    count = int(np.signbit(x).sum())
    assert np.signbit(y).tolist() == [True] * count + [False] * (3 - count)


@pytest.mark.parametrize(("dtype", "low"), [(ml_dtypes.int4, -4), (ml_dtypes.uint4, 0)])
def test_top_k_of_four_bits(dtype: type[np.generic], low: int) -> None:
    x = (np.array([[3, 1, 7], [0, 5, 5]]) + low).astype(dtype)
    y, places = both(lambda x: tuple(sort.top_k(x, 2)), x)
    assert (y.astype(int) - low).tolist() == [[7, 3], [5, 5]]
    assert places.tolist() == [[2, 0], [1, 2]]
