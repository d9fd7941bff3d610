"""Sums of many floats keep their digits, on every axis, eager and compiled alike."""

import itertools
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import verax
import verax.numpy as vnp
from property_tests.levels import crossed, nightly
from verax import lax
from verax.ir.avals import finfo
from verax.rules.families.reducer import total

RANDOM = np.random.default_rng(0)


def ulps(result: Any, exact: Any, dtype: Any = np.float32) -> float:
    """How far off, relative to `exact`, in units of the last place of `dtype`."""
    error = np.abs(np.asarray(result).astype(exact.dtype) - exact) / np.abs(exact)
    return float(np.max(error) / float(finfo(vnp.dtype(dtype)).eps))


@pytest.mark.slow
def test_ones_are_counted_over_leading_axes() -> None:
    ones = vnp.ones((2**25, 2))
    assert ones.sum(0).tolist() == [2**25, 2**25]
    assert ones.mean(0).tolist() == [1, 1]


@pytest.mark.parametrize("axis", [0, 1, 2, (0, 1), (0, 2), (1, 2), None])
def test_sums_of_a_million_keep_digits(axis: int | tuple[int, ...] | None) -> None:
    x = RANDOM.random((100, 1000, 10), dtype=np.float32)
    exact = x.astype(np.longdouble).sum(axis)
    assert ulps(vnp.sum(x, axis), exact) < 4
    assert ulps(vnp.asarray(x.T).T.sum(axis), exact) < 4
    assert ulps(verax.jit(lambda x: vnp.sum(x, axis))(x), exact) < 4


def test_sums_of_ten_million_keep_digits() -> None:
    x = RANDOM.random((10**6, 10), dtype=np.float32)
    exact = np.ascontiguousarray(x.T).sum(1, np.float64)
    assert ulps(vnp.sum(x, 0), exact) < 4
    assert ulps(verax.jit(vnp.sum)(x), exact.sum()) < 4


@pytest.mark.parametrize("shape", [(100,), (1000, 3), (33, 34, 35), (200, 1), (5, 40)])
def test_total_is_the_sum_in_every_layout(shape: tuple[int, ...]) -> None:
    x = RANDOM.integers(-9, 9, shape).astype(float)
    for order in itertools.permutations(range(x.ndim)):
        y = x.transpose(order)
        for view in (y, y[::-1], y[..., ::2], np.broadcast_to(y[:1], y.shape)):
            for count in range(1, y.ndim + 1):
                for axes in itertools.combinations(range(y.ndim), count):
                    assert np.array_equal(total(view, axes), view.sum(axes))


def test_products_round_once() -> None:
    x = (1 + (RANDOM.random(10**5) - 0.5) / 1000).astype(np.float32)
    exact = np.prod(x.astype(np.longdouble))
    assert ulps(vnp.prod(x), exact) < 1
    assert ulps(verax.jit(vnp.prod)(x), exact) < 1


@pytest.mark.slow
@pytest.mark.parametrize("axis", [0, nightly(1), (0, 1), nightly((1, 2)), None])
def test_products_of_parts_and_their_derivatives_are_those_of_all(axis: Any) -> None:
    x = np.random.default_rng(0).uniform(0.999, 1.001, (301, 257, 3)).astype(np.float32)
    x[4, 7, 1] = 0.0
    exact = np.prod(x.astype(np.float64), axis)
    product = verax.jit(lambda x: vnp.prod(x, axis=axis))
    np.testing.assert_allclose(product(x), exact, 1e-6)
    slopes = verax.grad(lambda x: vnp.sum(product(x)))(x)
    x[4, 7, 1] = 1.0
    others = np.prod(x.astype(np.float64), axis, keepdims=True) / x
    np.testing.assert_allclose(slopes[4, 7, 1], others[4, 7, 1], 1e-3)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_small_floats_are_folded_in_wider_ones(dtype: Any) -> None:
    x: np.ndarray = (0.9 + RANDOM.random(1000) / 5).astype(dtype)
    for fold, exact in ((lax.reduce_sum, np.sum), (lax.reduce_prod, np.prod)):
        wide = exact(x.astype(np.longdouble))
        assert ulps(fold(x, (0,)), wide, dtype) < 1
        assert ulps(verax.jit(lambda x, fold=fold: fold(x, (0,)))(x), wide, dtype) < 1


def exact_scan(name: str, x: np.ndarray) -> np.ndarray:
    wide = x.astype(np.longdouble)
    if name == "cumlogsumexp":
        return np.log(np.cumsum(np.exp(wide), 0))
    return np.cumsum(wide, 0) if name == "cumsum" else np.cumprod(wide, 0)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["cumsum", "cumprod", "cumlogsumexp"])
@pytest.mark.parametrize(
    ("dtype", "shape"),
    crossed(["float32", "float64", "bfloat16"], [(1000,), (100_000,), (10_001, 10)]),
)
def test_running_folds_keep_digits(
    name: str, dtype: str, shape: tuple[int, ...]
) -> None:
    x: np.ndarray = RANDOM.random(shape)
    if name == "cumprod":
        x = 1 + (x - 0.5) / 1000
    x = x.astype(vnp.dtype(dtype))
    fold = getattr(lax, name)
    # The steps of a product round in double precision, too.
    most = 1000 if (name, dtype) == ("cumprod", "float64") else 16
    with verax.enable_x64(True):
        for f in (fold, verax.jit(fold, static_argnums=(1, 2))):
            assert ulps(f(x, 0), exact_scan(name, x), dtype) < most
            back = np.asarray(f(x, 0, True))[::-1]
            assert ulps(back, exact_scan(name, x[::-1]), dtype) < most


@pytest.mark.slow
def test_many_updates_of_one_place_keep_digits() -> None:
    x = RANDOM.random(10**5, dtype=np.float32)
    places = np.zeros(10**5, np.int32)
    exact = x.astype(np.longdouble).sum()

    def added(x: Any, places: Any) -> Any:
        return vnp.zeros(2, vnp.float32).at[places].add(x)[0]

    for f in (added, verax.jit(added)):
        assert ulps(f(x, places), exact) < 1
        assert f(np.ones(2**24 + 4, np.float32), np.zeros(2**24 + 4, int)) == 2**24 + 4


def test_small_floats_are_scattered_in_wider_ones() -> None:
    ones, places = vnp.ones(1000, vnp.bfloat16), np.zeros(1000, np.int32)

    def added(x: Any, places: Any) -> Any:
        return vnp.zeros(2, vnp.bfloat16).at[places].add(x)[0]

    assert added(ones, places) == verax.jit(added)(ones, places) == 1000


@pytest.mark.on_host("compiled products add up in the order of the matrix kernels")
@pytest.mark.parametrize("dtype", ["float32", "complex64", "float64"])
@pytest.mark.parametrize(
    "rule", ["i,ij->j", "ji,i->j", "ij,i->j", "i,i->", "ab,jba->j"]
)
def test_long_products_with_vectors_keep_digits(rule: str, dtype: str) -> None:
    sizes = {"i": 20_001, "j": 10, "a": 200, "b": 101}
    operands = rule.split("->")[0].split(",")
    x, y = (RANDOM.random([sizes[i] for i in s]).astype(dtype) for s in operands)
    wide = np.clongdouble if dtype == "complex64" else np.longdouble
    exact = np.einsum(rule, x.astype(wide), y.astype(wide))

    def product(x: Any, y: Any) -> Any:
        return vnp.einsum(rule, x, y)

    with verax.enable_x64(True):
        eps = {"complex64": "float32"}.get(dtype, dtype)
        assert ulps(product(x, y), exact, eps) < 8
