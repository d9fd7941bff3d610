"""Where arrays are not zero: dtypes of indices, fill values, places in flat arrays."""

from typing import Any

import numpy as np
import pytest

import verax
from tests.numpy.against import agree, error_of

X = np.arange(6, dtype=np.float32).reshape(2, 3)

jnp: Any = verax.numpy


def test_traced_fill_values_and_places() -> None:
    x = np.array([0, 1, 0, 1], np.int32)
    fill = verax.jit(lambda f: jnp.nonzero(x, size=4, fill_value=f)[0])
    assert fill(7).tolist() == [1, 3, 7, 7]
    both = verax.jit(lambda f: jnp.nonzero(x[None], size=3, fill_value=(f, -f)))
    assert [i.tolist() for i in both(7)] == [[0, 0, 7], [1, 3, -7]]
    assert "scalar" in error_of(
        lambda: jnp.nonzero(x, size=4, fill_value=x), ValueError
    )


def test_indices_have_the_default_width() -> None:
    x = np.array([0, 3, 0], np.int8)
    for wide, name in ((False, "int32"), (True, "int64")):
        with verax.enable_x64(wide):
            a = jnp.asarray(x)
            assert jnp.nonzero(a)[0].dtype == name
            assert jnp.nonzero(a, size=2)[0].dtype == name
            assert jnp.where(a)[0].dtype == name
            assert jnp.flatnonzero(a).dtype == name
            assert jnp.argwhere(a).dtype == name
            assert jnp.linalg.matrix_rank(np.eye(2)).dtype == name
            assert jnp.linalg.lstsq(np.eye(2), np.ones(2))[2].dtype == name


def test_places_from_narrow_indices() -> None:
    i = np.array([90], np.int8)
    assert jnp.ravel_multi_index((i, i), (100, 100)).tolist() == [9090]
    assert [part.tolist() for part in jnp.unravel_index(i, (20, 10))] == [[9], [0]]
    message = error_of(lambda: jnp.unravel_index(1.5, (2, 3)), TypeError)
    assert "integers" in message


def test_nonzero() -> None:
    x = jnp.asarray(X)
    agree(lambda a: jnp.argwhere(a, size=5), np.argwhere, X)
    actual = jnp.nonzero(x > 2, size=5, fill_value=-1)
    assert [part.tolist() for part in actual] == [[1, 1, 1, -1, -1], [0, 1, 2, -1, -1]]
    actual = jnp.nonzero(x > 2, size=4, fill_value=(7, 8))
    assert [part.tolist() for part in actual] == [[1, 1, 1, 7], [0, 1, 2, 8]]
    assert jnp.where(x > 3)[0].tolist() == [1, 1]
    assert jnp.flatnonzero(x > 2, size=4, fill_value=9).tolist() == [3, 4, 5, 9]
    text = error_of(lambda: verax.jit(jnp.nonzero)(x), TypeError)
    assert "size=n" in text


@pytest.mark.parametrize("shape", [(3, 4), (4,), (), (3, 1)])
def test_where(shape: Any) -> None:
    source = np.random.default_rng(1)
    x, y = source.normal(size=(3, 4)), source.normal(size=4)
    choose = source.random(shape) < 0.5
    agree(jnp.where, np.where, np.asarray(choose), x, y)
    agree(lambda c: jnp.where(c, 2.0, 1.0), lambda c: np.where(c, 2.0, 1.0), choose)
    assert jnp.where(True, 1, 2.5).dtype == np.float32


def test_multi_indices() -> None:
    actual = jnp.unravel_index(jnp.array([1, 5, 9, -1, -9]), (2, 3))
    assert [part.tolist() for part in actual] == [[0, 1, 1, 1, 0], [1, 2, 2, 2, 0]]
    pair = (jnp.array([0, 3]), jnp.array([2, 4]))
    assert jnp.ravel_multi_index(pair, (2, 3), mode="clip").tolist() == [2, 5]
    assert jnp.ravel_multi_index(pair, (2, 3), mode="wrap").tolist() == [2, 4]
    assert "out of bounds" in error_of(
        lambda: jnp.ravel_multi_index(pair, (2, 3)), ValueError
    )
    rows, columns = jnp.ix_(jnp.array([0, 1]), jnp.array([2, 0]))
    assert jnp.asarray(X)[rows, columns].tolist() == [[2, 0], [5, 3]]
    assert jnp.s_[1:, 2] == (slice(1, None), 2)
    assert jnp.index_exp[1] == (1,)
