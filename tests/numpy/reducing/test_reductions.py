"""Reductions, running sums and quantiles against NumPy."""

from typing import Any

import numpy as np
import pytest

import verax

jnp: Any = verax.numpy

RANDOM = np.random.default_rng(1)
X = RANDOM.normal(size=(3, 4, 2)).astype(np.float32)
HOLES = np.where(RANDOM.random(X.shape) < 0.3, np.nan, X).astype(np.float32)
HOLES[0] = 1.0
MASK = RANDOM.random(X.shape) < 0.6
MASK[0] = True
REDUCTIONS = [
    "sum",
    "prod",
    "max",
    "min",
    "mean",
    "var",
    "std",
    "all",
    "any",
    "ptp",
    "median",
    "count_nonzero",
]
NAN_REDUCTIONS = [
    "nansum",
    "nanprod",
    "nanmax",
    "nanmin",
    "nanmean",
    "nanvar",
    "nanstd",
    "nanmedian",
]


def check(result: Any, expected: Any) -> None:
    assert result.shape == np.shape(expected)
    np.testing.assert_allclose(np.asarray(result), expected, 2e-5, 2e-5)


@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("axis", [None, 0, -1, (0, 2), (-1, 1)])
@pytest.mark.parametrize("name", REDUCTIONS + NAN_REDUCTIONS)
def test_axes(name: Any, axis: Any, keepdims: Any) -> None:
    x = HOLES if name in NAN_REDUCTIONS else X
    actual = getattr(jnp, name)(x, axis=axis, keepdims=keepdims)
    check(actual, getattr(np, name)(x, axis=axis, keepdims=keepdims))


@pytest.mark.parametrize("name", ["sum", "prod", "mean", "var", "std", "all", "any"])
def test_where(name: Any) -> None:
    check(
        getattr(jnp, name)(X, axis=1, where=MASK),
        getattr(np, name)(X, axis=1, where=MASK),
    )


@pytest.mark.parametrize("name", ["sum", "prod", "max", "min"])
def test_initial(name: Any) -> None:
    arguments = {"axis": 1, "where": MASK, "initial": 0.5}
    check(getattr(jnp, name)(X, **arguments), getattr(np, name)(X, **arguments))


@pytest.mark.parametrize(
    "name", ["cumsum", "cumprod", "nancumsum", "nancumprod", "argmax", "argmin"]
)
@pytest.mark.parametrize("axis", [None, 0, -1])
def test_along(name: Any, axis: Any) -> None:
    x = HOLES if name.startswith("nan") else X
    check(getattr(jnp, name)(x, axis=axis), getattr(np, name)(x, axis=axis))


@pytest.mark.parametrize(
    ("name", "given", "expected"),
    [
        ("sum", "int8", "int32"),
        ("sum", "uint8", "uint32"),
        ("sum", "bool", "int32"),
        ("sum", "bfloat16", "bfloat16"),
        ("prod", "int16", "int32"),
        ("mean", "int32", "float32"),
        ("mean", "float16", "float16"),
        ("var", "complex64", "float32"),
        ("max", "int8", "int8"),
        ("cumsum", "int8", "int8"),
        ("cumsum", "bool", "int32"),
        ("argmax", "float32", "int32"),
        ("all", "float32", "bool"),
    ],
)
def test_dtypes(name: Any, given: Any, expected: Any) -> None:
    actual = getattr(jnp, name)(jnp.ones(3, given))
    assert actual.dtype == np.dtype(expected)
    assert not actual.weak_type


def test_small_floats_are_summed_wide() -> None:
    assert float(jnp.sum(jnp.ones(4096, jnp.bfloat16))) == 4096.0


def test_empty() -> None:
    assert float(jnp.sum(jnp.zeros((0,)))) == 0.0
    assert float(jnp.prod(jnp.zeros((0,)))) == 1.0
    assert np.isnan(float(jnp.mean(jnp.zeros((0,)))))
    with pytest.raises(ValueError, match="no elements"):
        jnp.max(jnp.zeros((0,)))
    with pytest.raises(ValueError, match="no elements"):
        jnp.argmax(jnp.zeros((0,)))
    assert float(jnp.max(jnp.zeros((0,)), initial=-1.0)) == -1.0


def test_arguments() -> None:
    with pytest.raises(NotImplementedError, match="out"):
        jnp.sum(X, out=np.zeros(3))
    with pytest.raises(ValueError, match="out of bounds"):
        jnp.sum(X, axis=3)
    with pytest.raises(ValueError, match="repeated axis"):
        jnp.sum(X, axis=(0, 0))
    with pytest.raises(ValueError, match="initial"):
        jnp.max(X, where=MASK)
    with pytest.raises(ValueError, match="None or a boolean array"):
        jnp.sum(X, where=X)
    with pytest.raises(TypeError, match="list"):
        jnp.sum([1, 2])


def test_average() -> None:
    w = np.array([1.0, 2.0, 3.0, 4.0], np.float32)
    check(jnp.average(X, axis=1, weights=w), np.average(X, axis=1, weights=w))
    actual, total = jnp.average(X, axis=1, weights=w, returned=True)
    check(total, np.full((3, 2), 10.0))
    assert actual.shape == (3, 2)


@pytest.mark.parametrize("method", ["linear", "lower", "higher", "midpoint", "nearest"])
@pytest.mark.parametrize("q", [0.3, [0.1, 0.9, 1.0]])
@pytest.mark.parametrize("axis", [None, 1, (0, 2)])
def test_quantiles(method: Any, q: Any, axis: Any) -> None:
    share = jnp.asarray(q)
    actual = jnp.quantile(X, share, axis=axis, method=method)
    check(actual, np.quantile(X, q, axis=axis, method=method))
    actual = jnp.nanquantile(HOLES, share, axis=axis, method=method)
    check(actual, np.nanquantile(HOLES, q, axis=axis, method=method))


def test_nan_spoils_a_quantile() -> None:
    assert np.isnan(float(jnp.median(HOLES)))
    assert np.isnan(float(jnp.percentile(np.array([1.0, np.nan]), 10)))


def names(function: Any) -> list[str]:
    return [eqn.primitive.name for eqn in verax.make_jaxpr(function)(X).jaxpr.eqns]


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (jnp.sum, ["reduce_sum"]),
        (jnp.max, ["reduce_max"]),
        (jnp.mean, ["reduce_sum", "div"]),
        (lambda x: x.argmax(0), ["argmax"]),
        (lambda x: jnp.cumsum(x, 1), ["cumsum"]),
        (lambda x: jnp.sum(x, 0, keepdims=True), ["reduce_sum", "reshape"]),
    ],
)
def test_equations(function: Any, expected: Any) -> None:
    assert names(function) == expected


def test_variance_takes_few_equations() -> None:
    assert len(names(lambda x: jnp.var(x, 0))) <= 7


def test_complex_extremes_go_by_real_part() -> None:
    z = np.array([1 + 2j, 3 - 1j, 3 + 0j], np.complex64)
    assert int(jnp.argmax(z)) == int(np.argmax(z))
    assert int(jnp.argmin(z)) == int(np.argmin(z))


def test_standard_scans_widen_small_integers() -> None:
    x = np.array([200, 100], np.uint8)
    actual = jnp.cumulative_sum(x, axis=0)
    assert (actual.dtype, actual.tolist()) == (np.dtype("uint32"), [200, 300])
    assert jnp.cumulative_prod(x).tolist() == [200, 20000]
    assert jnp.cumulative_sum(x, dtype="uint8").tolist() == [200, 44]
