"""Choices by conditions and by index against NumPy."""

from typing import Any

import numpy as np

import verax
from tests.numpy.against import agree, equations, error_of, typed

jnp: Any = verax.numpy
N = np.array([1, 2, 3], np.int32)
X = np.arange(6, dtype=np.float32).reshape(2, 3) ** 2


def test_select() -> None:
    conditions = [N > 1, N > 2]
    assert typed(jnp.select(conditions, [N, N * 2.0], 0)) == (
        "float32",
        [0, 2, 3],
    )
    assert jnp.select([jnp.asarray(N) > 1], [1], 2).tolist() == [2, 1, 1]
    assert typed(jnp.select([N], [N], 0)) == ("int32", [1, 2, 3])
    agree(
        lambda x: jnp.select([x < 1, x < 9], [x, -x], 7),
        lambda x: np.select([x < 1, x < 9], [x, -x], 7),
        X,
    )
    assert "condlist" in error_of(lambda: jnp.select([], []), ValueError)
    assert "choicelist" in error_of(lambda: jnp.select([N > 1], [N, N]), ValueError)
    names = equations(lambda x: jnp.select([x < 1, x < 2], [x, -x]), X)
    assert names.count("select_n") == 2


def test_piecewise() -> None:
    x = jnp.asarray(N)
    actual = jnp.piecewise(x, [x < 2, x >= 2], [lambda x: -x * 1.0, 7.5])
    assert typed(actual) == ("int32", [-1, 7, 7])
    later = jnp.piecewise(x * 1.0, [x > 0, x > 1], [1.0, 2.0])
    assert later.tolist() == [1, 2, 2]

    def shifted(value: Any, k: int, m: int = 0) -> Any:
        return -value + k + m

    assert jnp.piecewise(x * 1.0, [x < 2], [shifted], 3, m=4).tolist() == [6, 0, 0]
    assert jnp.piecewise(x, [[True, False, True]], [8, 9]).tolist() == [8, 9, 8]
    assert float(jnp.piecewise(3.0, [True], [1])) == 1
    assert "functions" in error_of(
        lambda: jnp.piecewise(x, [x < 2], [1, 2, 3]), ValueError
    )
    agree(
        lambda x: jnp.piecewise(x, [x < 3, x > 9], [abs, lambda v: v * v, 5]),
        lambda x: np.piecewise(x, [x < 3, x > 9], [abs, lambda v: v * v, 5]),
        X,
    )


def test_choose_in_the_form_of_numpy() -> None:
    i = np.array([[0, 1], [2, 1]], np.int32)
    choices: list[Any] = [
        np.array([1, 2], np.int32),
        np.array([[10.0], [20.0]], np.float32),
        100,
    ]
    np.testing.assert_array_equal(jnp.choose(i, choices), np.choose(i, choices))
    np.testing.assert_array_equal(jnp.choose(i, tuple(choices)), np.choose(i, choices))
    rows = np.arange(6, dtype=np.int32).reshape(3, 2)
    np.testing.assert_array_equal(jnp.choose(i, rows), np.choose(i, rows))
    far = i * 3 - 2
    for mode in ("wrap", "clip"):
        actual = verax.jit(lambda i, mode=mode: jnp.choose(i, choices, mode=mode))(far)
        np.testing.assert_array_equal(actual, np.choose(far, choices, mode=mode))
    assert "out of bounds" in error_of(lambda: jnp.choose(far, choices), ValueError)
    assert "'wrap'" in error_of(
        lambda: verax.jit(lambda i: jnp.choose(i, choices))(i), TypeError
    )
    assert "integers" in error_of(lambda: jnp.choose(1.5, choices), ValueError)
    assert "mode" in error_of(lambda: jnp.choose(i, choices, mode="up"), ValueError)
    assert "choices must" in error_of(lambda: jnp.choose(i, []), ValueError)
