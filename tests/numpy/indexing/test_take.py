"""take, put, compress and their kin: recorded facts of JAX, and NumPy."""

from typing import Any

import numpy as np
import pytest

import verax
from tests.numpy.against import agree, error_of

jnp: Any = verax.numpy
X = np.arange(6, dtype=np.float32).reshape(2, 3)
NAN = float("nan")


def test_take() -> None:
    x = jnp.asarray(X)
    np.testing.assert_equal(
        np.asarray(jnp.take(x, jnp.array([0, 10, -1, -7]))), [0, NAN, 5, NAN]
    )
    places = jnp.array([5, -1, -4])
    assert jnp.take(x, places[:2], axis=1, mode="clip").tolist() == [[2, 0], [5, 3]]
    assert jnp.take(x, places, axis=1, mode="wrap").tolist() == [[2, 2, 2], [5, 5, 5]]
    assert jnp.take(x, jnp.array([7]), axis=1, fill_value=3).tolist() == [[3], [3]]
    assert jnp.take(x.astype(int), 7).tolist() == -(2**31)
    agree(lambda a, i: jnp.take(a, i, axis=0), lambda a, i: a[i], X, np.array([[1, 0]]))


def test_take_errors() -> None:
    x = jnp.asarray(X)
    assert "asarray" in error_of(lambda: jnp.take(x, [0, 1]), TypeError)
    assert "integer type" in error_of(lambda: jnp.take(x, 1.0), TypeError)
    assert "mode" in error_of(lambda: jnp.take(x, 1, mode="no"), ValueError)
    assert "no elements" in error_of(lambda: jnp.take(jnp.zeros(0), 1), IndexError)


@pytest.mark.parametrize(
    ("shape", "indices", "axis"),
    [
        ((3, 4), (3, 4), 1),
        ((3, 4), (1, 2), 1),
        ((3, 4), (5, 4), 0),
        ((1, 4), (5, 2), 1),
        ((3, 4, 5), (3, 1, 5), 1),
        ((3, 1, 5), (3, 4, 2), 2),
    ],
)
def test_take_along_axis(shape: Any, indices: Any, axis: int) -> None:
    source = np.random.default_rng(0)
    x = source.normal(size=shape).astype(np.float32)
    places = source.integers(-shape[axis], shape[axis], indices)
    agree(
        lambda a, i: jnp.take_along_axis(a, i, axis),
        lambda a, i: np.take_along_axis(a, i, axis),
        x,
        places,
    )


@pytest.mark.parametrize(
    ("wrap", "counted"), [(True, True), (False, False), (None, False)]
)
def test_promised_indices_are_not_counted_from_the_end(
    wrap: bool | None, counted: bool
) -> None:
    def taken(x: Any, i: Any) -> Any:
        return jnp.take_along_axis(
            x, i, 0, mode="promise_in_bounds", wrap_negative_indices=wrap
        )

    x, i = jnp.array([10, 20, 30]), jnp.array([0, 2])
    names = {e.primitive.name for e in verax.make_jaxpr(taken)(x, i).eqns}
    assert ("lt" in names) == counted
    assert taken(x, i).tolist() == [10, 30]
    assert jnp.take_along_axis(x, jnp.array([-1]), 0).tolist() == [30]


def test_put() -> None:
    x = jnp.asarray(X)
    values = jnp.array([5.0, 6.0])
    actual = jnp.put(x, jnp.array([0, 7, -1]), values, inplace=False)
    assert actual.tolist() == [[5, 1, 2], [3, 4, 5]]
    rows = jnp.array([[0], [1]])
    actual = jnp.put_along_axis(x, rows, 9.0, axis=1, inplace=False)
    assert actual.tolist() == [[9, 1, 2], [3, 9, 5]]
    assert jnp.fill_diagonal(x, 9.0, inplace=False).tolist() == [[9, 1, 2], [3, 9, 5]]
    actual = jnp.place(x, x > 2, jnp.array([7.0, 8.0]), inplace=False)
    assert actual.tolist() == [[0, 1, 2], [7, 8, 7]]
    assert "inplace=False" in error_of(lambda: jnp.put(x, 0, 1.0), ValueError)


def test_compress() -> None:
    x = jnp.asarray(X)
    mask = jnp.array([True, False, True])
    assert jnp.compress(mask, x, axis=1).tolist() == [[0, 2], [3, 5]]
    assert jnp.extract(x > 2, x, size=5, fill_value=9).tolist() == [3, 4, 5, 9, 9]
    actual = verax.jit(lambda m, a: jnp.compress(m, a, axis=1, size=2))(mask, x)
    assert actual.tolist() == [[0, 2], [3, 5]]
