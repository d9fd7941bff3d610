"""Reductions in a dtype that is asked for: booleans and integers, as JAX has them."""

from typing import Any

import numpy as np
import pytest

import verax

jnp: Any = verax.numpy
X = np.array([[1, 0, 2], [3, 1, 1]], np.int32)
WRAPS = pytest.mark.parametrize("wrap", [lambda f: f, verax.jit], ids=["eager", "jit"])


@pytest.mark.slow
@WRAPS
@pytest.mark.parametrize("dtype", ["bool", "uint8", "int32", "float32", "bfloat16"])
def test_sums_and_products_of_booleans_are_any_and_all(dtype: str, wrap: Any) -> None:
    x, mask = (
        jnp.asarray(X, dtype),
        np.array([[True, True, False], [True, False, True]]),
    )
    for name in ("sum", "nansum", "prod", "nanprod"):
        f, expected = getattr(jnp, name), X.any(0) if "sum" in name else X.all(0)
        actual = wrap(lambda x, f=f: f(x, axis=0, dtype=bool))(x)
        assert (actual.dtype, actual.tolist()) == (np.dtype(bool), expected.tolist()), (
            name
        )
        held = wrap(lambda x, f=f: f(x, axis=0, dtype=bool, where=mask))(x)
        join = np.any if "sum" in name else np.all
        joined = join(X, 0, where=mask)
        assert held.tolist() == joined.tolist(), name
        for start in (0, 2.5):
            begun = wrap(lambda x, f=f, s=start: f(x, dtype=bool, initial=s))(x)
            assert bool(begun) == ("sum" in name), name
        none = wrap(lambda x, f=f: f(x[:0], axis=0, dtype=bool))(x)
        assert none.tolist() == [name.endswith("prod")] * 3
    assert wrap(lambda x: jnp.trace(x, dtype=bool))(x).tolist() is True
    assert jnp.sum(jnp.zeros_like(x), dtype=bool).tolist() is False


def test_what_is_counted_has_no_derivative() -> None:
    rate = verax.grad(lambda x: jnp.sum(x, dtype=bool).astype(float) * x[0])
    assert rate(np.ones(2, np.float32)).tolist() == [1, 0]


@WRAPS
def test_means_and_variances_in_integers_are_quotients_of_integers(wrap: Any) -> None:
    mean = wrap(lambda x: jnp.mean(x, dtype=np.int32))
    assert (mean(X).dtype, mean(X).tolist()) == (np.dtype(np.int32), 1)
    assert mean(np.array([-1, -2])).tolist() == -1
    assert wrap(lambda x: jnp.mean(x, dtype=np.int8))(np.array([100, 100])) == -28
    small = np.array([1, 2, 6], np.uint8)
    actual = wrap(lambda x: jnp.nanmean(x, dtype=np.int32))(small)
    assert (actual.dtype, actual.tolist()) == (np.dtype(np.int32), 3)
    spread = wrap(lambda x: jnp.var(x, dtype=np.int32))(X)
    assert (spread.dtype, spread.weak_type, float(spread)) == (np.float32, True, 1)
    empty = wrap(lambda x: jnp.var(x, dtype=np.int32, ddof=2, axis=0))(X)
    assert np.isnan(empty).all()
    masked = wrap(lambda x: jnp.var(x, dtype=np.int32, axis=0, where=x > 1))(X)
    np.testing.assert_array_equal(masked, [0, np.nan, 0])
    holed = np.array([0, 6, np.nan], np.float32)
    rest = wrap(lambda x: jnp.nanvar(x, dtype=np.int32))(holed)
    assert (rest.dtype, rest.tolist()) == (np.dtype(np.int32), 9)


def test_dtypes_that_have_no_means_or_roots() -> None:
    for name in ("mean", "nanmean", "var", "nanvar"):
        with pytest.raises(TypeError, match="must not be bool"):
            getattr(jnp, name)(X, dtype=bool)
    with pytest.raises(ValueError, match="std: dtype must be a float or complex"):
        jnp.std(X, dtype=np.int32)
    with pytest.raises(TypeError, match="nanstd: dtype"):
        jnp.nanstd(X, dtype=np.int32)
