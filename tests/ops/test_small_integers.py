"""Integers of two and four bits, eagerly and compiled, against wide ones that wrap.

XLA on CPUs sorts, joins and multiplies integers of two bits as if they were packed
otherwise: with wrong results, damaged memory, or the end of the process.
"""

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import verax
from verax import lax

jnp: Any = verax.numpy
SMALL = [ml_dtypes.int2, ml_dtypes.uint2, ml_dtypes.int4, ml_dtypes.uint4]

# Of a small matrix or vector in verax, and the same of wide integers in NumPy.
CALLS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "sort": (lambda x: jnp.sort(x, axis=0), lambda x: np.sort(x, 0)),
    "sort rows": (jnp.sort, np.sort),
    "descending": (
        lambda x: jnp.sort(x, descending=True),
        lambda x: np.sort(x)[:, ::-1],
    ),
    "argsort": (jnp.argsort, lambda x: np.argsort(x, kind="stable")),
    "unstable argsort": (
        lambda x: jnp.take_along_axis(x, jnp.argsort(x, stable=False), 1),
        np.sort,
    ),
    "two keys": (
        lambda x: lax.sort((x, x[::-1], x), num_keys=2)[1][:, 0],
        lambda x: np.stack(
            [b[np.lexsort((b, a))][0] for a, b in zip(x, x[::-1], strict=True)]
        ),
    ),
    "lexsort": (
        lambda x: jnp.lexsort((x[0], x[1])),
        lambda x: np.lexsort((x[0], x[1])),
    ),
    "unique": (
        lambda x: jnp.unique(x, size=5, fill_value=0),
        lambda x: np.resize([*np.unique(x), 0, 0, 0, 0], 5),
    ),
    "searchsorted": (
        lambda x: jnp.searchsorted(jnp.sort(x[0]), x[1]),
        lambda x: np.searchsorted(np.sort(x[0]), x[1]),
    ),
    "top_k": (lambda x: lax.top_k(x, 2)[0], lambda x: np.sort(x)[:, :-3:-1]),
    "median": (
        lambda x: jnp.median(x.astype("float32"), axis=0),
        lambda x: np.median(x, 0),
    ),
    "cumsum": (lambda x: lax.cumsum(x, 1), lambda x: x.cumsum(1)),
    "cumprod": (lambda x: lax.cumprod(x, 0), lambda x: x.cumprod(0)),
    "sum": (lambda x: jnp.sum(x, 0, dtype=x.dtype), lambda x: x.sum(0)),
    "max": (lambda x: jnp.max(x, 1), lambda x: x.max(1)),
    "argmax": (lambda x: jnp.argmax(x, 1), lambda x: x.argmax(1)),
    "concatenate": (
        lambda x: jnp.concatenate([x, x, x]),
        lambda x: np.concatenate([x, x, x]),
    ),
    "concatenate rows": (
        lambda x: jnp.concatenate([x, x[:, :2], x], 1),
        lambda x: np.concatenate([x, x[:, :2], x], 1),
    ),
    "roll": (lambda x: jnp.roll(x, 2, 1), lambda x: np.roll(x, 2, 1)),
    "dot": (lambda x: x @ x.T, lambda x: x @ x.T),
    "vector dot": (lambda x: jnp.dot(x[0], x[1]), lambda x: x[0] @ x[1]),
    "wide dot": (
        lambda x: lax.dot(x, x.T, preferred_element_type=np.int32),
        lambda x: x @ x.T,
    ),
    "gather": (lambda x: x[np.array([1, 4, 1])], lambda x: x[[1, 4, 1]]),
    "add to": (lambda x: x.at[1].add(x[0]), lambda x: added(x)),
    "less": (lambda x: x < x[::-1], lambda x: x < x[::-1]),
    "shift": (lambda x: x << 1, lambda x: x << 1),
}


def added(x: Any) -> Any:
    actual = x.copy()
    actual[1] += x[0]
    return actual


def wrapped(x: Any, dtype: Any) -> Any:
    """Wide integers as those of a small dtype are."""
    bits = jnp.iinfo(dtype).bits
    low = np.asarray(x).astype(np.int64) & (2**bits - 1)
    top = 2 ** (bits - 1) if jnp.iinfo(dtype).min else 2**bits
    return np.where(low >= top, low - 2**bits, low)


@pytest.mark.slow
@pytest.mark.parametrize("wrap", [lambda f: f, verax.jit], ids=["eager", "jit"])
@pytest.mark.parametrize("dtype", SMALL)
def test_operations_on_integers_of_less_than_a_byte(dtype: Any, wrap: Any) -> None:
    limits = jnp.iinfo(dtype)
    random = np.random.default_rng(0)
    drawn = random.integers(limits.min, limits.max, (5, 7), endpoint=True)
    x = jnp.asarray(drawn.astype(dtype))
    found = wrap(lambda x: {name: ours(x) for name, (ours, _) in CALLS.items()})(x)
    for name, (_, wide) in CALLS.items():
        actual, expected = found[name], wide(drawn)
        if actual.dtype == dtype:
            expected = wrapped(expected, dtype)
        np.testing.assert_array_equal(np.asarray(actual, np.float64), expected, name)


@pytest.mark.slow
@pytest.mark.parametrize("wrap", [lambda f: f, verax.jit], ids=["eager", "jit"])
@pytest.mark.parametrize("old", SMALL)
@pytest.mark.parametrize("new", [*SMALL, np.int8, np.uint32, np.float32])
def test_conversions_of_integers_of_less_than_a_byte(
    old: Any, new: Any, wrap: Any
) -> None:
    limits = jnp.iinfo(old)
    values = np.arange(limits.min, limits.max + 1)
    actual = wrap(lambda x: lax.convert_element_type(x, new))(values.astype(old))
    assert actual.dtype == new
    expected = wrapped(values, new) if new in SMALL else values.astype(new)
    np.testing.assert_array_equal(np.asarray(actual, np.float64), expected)
