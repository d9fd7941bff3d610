"""Indexing and updates: NumPy in bounds, recorded facts of JAX out of bounds."""

import random
from typing import Any

import numpy as np
import pytest

import verax
from tests.numpy.against import agree, computed_both_ways, equations, error_of, same
from verax.numpy.indexing.parse import NonConcreteBooleanIndexError

jnp: Any = verax.numpy

X = np.arange(60, dtype=np.float32).reshape(3, 4, 5)
V = np.arange(5, dtype=np.float32)
ROWS = np.array([2, 0, -1])

BASIC: list[Any] = [
    0,
    -1,
    np.int64(2),
    (),
    ...,
    None,
    slice(None, None, -1),
    slice(-10, 10),
    slice(5, 1),
    slice(None, -10, -1),
    (1, 2),
    (slice(1, 3), None, 2, slice(None, None, -2)),
    (..., 0),
    (0, ..., None),
    (slice(None), slice(3, 0, -2), slice(0, 0)),
    (slice(0, 3, 2), slice(None), slice(1, 5, 3)),
]
ADVANCED: list[Any] = [
    ROWS,
    np.array([[0, 1], [2, 2]]),
    np.array(1),
    (slice(None), ROWS),
    (ROWS, slice(1, 3)),
    (ROWS, 1),
    (0, slice(None), ROWS),
    (ROWS, slice(None), np.array([[0], [4]])),
    (ROWS, None, np.array([0, 1, 3])),
    (slice(None, None, 2), [0, 1], slice(None, None, -1)),
    (..., ROWS, np.array([0, 1, 2])),
    np.zeros(0, np.int32),
    np.array([True, False, True]),
    (slice(None), np.array([True, False, True, False])),
    (X[:, :, 0] > 20, slice(1, 3)),
    X > 30,
    True,
    (False, 1),
    (slice(None), True, ROWS),
]


@pytest.mark.parametrize("index", BASIC + ADVANCED, ids=repr)
def test_reading(index: Any) -> None:
    agree(lambda x: x[index], lambda x: x[index], X)


@pytest.mark.parametrize("index", BASIC + ADVANCED, ids=repr)
@pytest.mark.parametrize("how", ["set", "add", "multiply", "min", "max"])
def test_writing(how: str, index: Any) -> None:
    expected = X.copy()
    if how == "set":
        expected[index] = 7.0
    else:
        names = {"min": "minimum", "max": "maximum"}
        getattr(np, names.get(how, how)).at(expected, index, np.float32(7.0))
    for actual in computed_both_ways(lambda x: getattr(x.at[index], how)(7.0), X):
        same(actual, expected)


@pytest.mark.parametrize("index", BASIC, ids=repr)
def test_writing_arrays(index: Any) -> None:
    values = -np.arange(X[index].size, dtype=np.float32).reshape(X[index].shape)
    expected = X.copy()
    expected[index] = values
    for actual in computed_both_ways(lambda x, v: x.at[index].set(v), X, values):
        same(actual, expected)


def drawn(source: random.Random, size: int) -> Any:
    """One element of a random index."""
    bound = [None, *range(-size - 2, size + 3)]
    steps = [None, 1, 2, -1, -2, 3]
    choices: list[Any] = [
        source.randrange(-size, size),
        slice(source.choice(bound), source.choice(bound), source.choice(steps)),
        slice(None),
        np.array([source.randrange(-size, size) for _ in range(3)]),
        np.array([[source.randrange(-size, size)] for _ in range(2)]),
    ]
    return source.choice(choices)


@pytest.mark.parametrize("seed", range(150))
def test_random_indices(seed: int) -> None:
    source = random.Random(seed)
    items = [drawn(source, n) for n in X.shape[: source.randint(1, 3)]]
    extras: list[list[Any]] = [[], [None], [None, None], [...]]
    for extra in source.choice(extras):
        items.insert(source.randint(0, len(items)), extra)
    if any(item is ... for item in items):
        items = [i for i in items if i is not ...][:2]
    index = tuple(items)
    arrays = [i for i in index if isinstance(i, np.ndarray)]

    def rebuilt(given: tuple[Any, ...]) -> tuple[Any, ...]:
        rest = iter(given)
        return tuple(next(rest) if isinstance(i, np.ndarray) else i for i in index)

    agree(lambda x, *a: x[rebuilt(a)], lambda x, *a: x[rebuilt(a)], X, *arrays)
    expected = X.copy()
    np.add.at(expected, index, np.float32(2))
    for actual in computed_both_ways(lambda x, *a: x.at[rebuilt(a)].add(2), X, *arrays):
        same(actual, expected)


def test_out_of_bounds() -> None:
    v = jnp.asarray(V)
    places = jnp.array([1, 9, -9])
    assert [float(v[9]), float(v[-9])] == [4, 0]
    assert v[places].tolist() == [1, 4, 0]
    assert float(v.at[9].get()) == 4
    assert np.isnan(float(v.at[9].get(mode="fill")))
    assert v.at[places].get(mode="fill", fill_value=7).tolist() == [1, 7, 7]
    assert v.at[9].get(mode="clip").tolist() == 4
    assert v.at[9].set(1.0).tolist() == V.tolist()
    assert v.at[places].set(-1.0).tolist() == [0, -1, 2, 3, 4]
    assert v.at[places].set(-1.0, mode="clip").tolist() == [-1, -1, 2, 3, -1]
    assert v.at[-1].get(mode="fill", wrap_negative_indices=False).tolist() != 4
    assert jnp.arange(3).at[7].get(mode="fill").tolist() == -(2**31)
    for actual in computed_both_ways(lambda x, i: x[i], V, np.int32(9)):
        assert float(np.asarray(actual)) == 4


def test_duplicates() -> None:
    v = jnp.zeros(3)
    assert v.at[jnp.array([0, 0, 2])].add(1.0).tolist() == [2, 0, 1]
    assert (v + 1).at[jnp.array([0, 0])].multiply(3.0).tolist() == [9, 1, 1]
    assert v.at[jnp.array([1, 1])].subtract(1.0).tolist() == [0, -2, 0]


def test_divide_power_apply() -> None:
    v = jnp.asarray(V)
    assert v.at[2].divide(4.0).tolist() == [0, 1, 0.5, 3, 4]
    assert v.at[1:3].power(3.0).tolist() == [0, 1, 8, 3, 4]
    assert v.at[1:].apply(jnp.negative).tolist() == [0, -1, -2, -3, -4]
    assert jnp.arange(3).at[2].divide(4).dtype == np.float32


def test_dtypes_of_updates() -> None:
    ints = jnp.arange(3)
    assert ints.at[0].set(5).dtype == np.int32
    assert jnp.arange(3, dtype=jnp.int8).at[0].set(7).dtype == np.int8
    assert jnp.zeros(2).at[0].set(3).tolist() == [3, 0]
    with pytest.warns(FutureWarning, match="lose precision"):
        assert ints.at[0].set(1.5).tolist() == [1, 1, 2]
    with pytest.warns(FutureWarning, match="lose precision"):
        assert ints.at[0].add(1.5).tolist() == [1, 1, 2]


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda x: x[1], ["slice", "squeeze"]),
        (lambda x: x[...], []),
        (lambda x: x[::2], ["slice"]),
        (lambda x: x[::-1], ["rev"]),
        (lambda x: x[None], ["broadcast_in_dim"]),
        (lambda x: x[np.array([0, 1])], ["broadcast_in_dim", "gather"]),
        (lambda x: x.at[1].set(3.0), ["broadcast_in_dim", "dynamic_update_slice"]),
        (lambda x: x.at[1:3].mul(3.0), ["slice", "mul", "dynamic_update_slice"]),
        (lambda x: x.at[...].add(3.0), ["add"]),
    ],
)
def test_equations(function: Any, expected: list[str]) -> None:
    actual = equations(function, X)
    assert [name for name in actual if name != "reshape"] in (expected, expected[1:])


def test_equations_of_traced_indices() -> None:
    names = equations(lambda x, i: x[:, i], X, np.int32(1))
    assert names == ["lt", "add", "select_n", "dynamic_slice", "squeeze"]
    names = equations(lambda x, i: x[i], X, np.uint32(1))
    assert names == ["dynamic_slice", "squeeze"]
    names = equations(lambda x, i: x[i], X, ROWS.astype(np.int32))
    assert names == ["lt", "add", "select_n", "broadcast_in_dim", "gather"]


@pytest.mark.parametrize(
    ("index", "kind", "text"),
    [
        ("a", TypeError, "integers"),
        (1.0, TypeError, "integers"),
        ([0, 1], TypeError, "non-tuple sequence"),
        ((0, 0, 0, 0), IndexError, "Too many indices"),
        ((..., ...), IndexError, "one ellipsis"),
        (np.array([True]), IndexError, "did not match shape"),
        (np.array([1.0]), TypeError, "must have integer or boolean type"),
        ({}, IndexError, "not {}"),
        ((np.array([0, 1]), np.array([0, 1, 2])), ValueError, "broadcast"),
        (slice(None, None, 0), ValueError, "zero"),
    ],
)
def test_errors(index: Any, kind: type[Exception], text: str) -> None:
    assert text in error_of(lambda: jnp.asarray(X)[index], kind)


def test_errors_under_a_trace() -> None:
    mask = jnp.asarray(V) > 2
    text = error_of(
        lambda: verax.jit(lambda x, m: x[m])(jnp.asarray(V), mask),
        NonConcreteBooleanIndexError,
    )
    assert "where" in text
    assert "size=" in text
    text = error_of(
        lambda: verax.jit(lambda x, i: x[i:])(jnp.asarray(V), 2), IndexError
    )
    assert "dynamic_slice_in_dim" in text


def test_errors_of_updates() -> None:
    x = jnp.asarray(X)
    assert "broadcast" in error_of(lambda: x.at[0].set(jnp.ones((2, 3))), ValueError)
    assert "broadcast" in error_of(lambda: x.at[0, 0, 0].set(jnp.ones(2)), ValueError)
    with pytest.raises(TypeError, match=r"x\.at\[index\]"):
        x[0] = 1


def test_gradients() -> None:
    v = jnp.asarray(V)
    places = jnp.array([0, 0, 9])
    reading = verax.grad(lambda x: (x[jnp.array([0, 0, 3])] ** 2).sum())(v)
    assert reading.tolist() == [0, 0, 0, 6, 0]
    dropped = verax.grad(lambda x: x.at[places].get(mode="fill", fill_value=0).sum())(v)
    assert dropped.tolist() == [2, 0, 0, 0, 0]
    overwritten = verax.grad(lambda x: x.at[1:3].set(0.0).sum())(v)
    assert overwritten.tolist() == [1, 0, 0, 1, 1]


def test_compiled() -> None:
    def program(x: Any, i: Any, rows: Any) -> Any:
        y = x.at[i, ::2].add(1.0).at[rows, 1].multiply(2.0)
        return y[rows, :, 1:3] + y[i, None, :, -2:]

    args = (jnp.asarray(X), jnp.int32(-1), jnp.array([0, 2, 2]))
    np.testing.assert_allclose(verax.jit(program)(*args), program(*args))


def test_updates_may_be_lists() -> None:
    x = jnp.zeros((2, 3))
    assert x.at[0].set([1, 2.5, jnp.array(3)]).tolist() == [[1, 2.5, 3], [0, 0, 0]]
    assert x.at[:, 0].add((1, 2))[:, 0].tolist() == [1, 2]
    assert verax.jit(lambda x, n: x.at[1].set([n, 2, 3]))(x, 4)[1].tolist() == [4, 2, 3]
    assert x.at[0:0].set([]).tolist() == x.tolist()
    with pytest.raises(ValueError, match="ragged"):
        x.at[0].set([1, [2]])
