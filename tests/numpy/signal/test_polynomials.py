"""Polynomials against NumPy, and facts of JAX."""

from typing import Any

import numpy as np
import pytest

import verax
from tests.numpy.against import agree, equations, error_of, typed

jnp: Any = verax.numpy
N = np.array([1, 2, 3], np.int32)
X = np.arange(6, dtype=np.float32).reshape(2, 3) ** 2
P = np.array([2.0, -5.0, 3.0, -1.0], np.float32)


def test_sums_and_products_of_polynomials() -> None:
    agree(jnp.polyadd, np.polyadd, P, N)
    agree(jnp.polysub, np.polysub, N, P)
    agree(jnp.polymul, np.polymul, P, X[1])
    assert typed(jnp.polyadd(N, N[:2])) == ("int32", [1, 3, 5])
    assert typed(jnp.polymul(np.array([0, 1]), N)) == ("float32", [0, 1, 2, 3])
    trimmed = jnp.polymul(np.array([0, 1]), N, trim_leading_zeros=True)
    assert trimmed.tolist() == [1, 2, 3]
    assert jnp.polymul(np.zeros(0, np.float32), N).tolist() == [0, 0, 0]
    assert "vectors" in error_of(lambda: jnp.polymul(2, N), ValueError)


def test_polydiv() -> None:
    quotient, remainder = jnp.polydiv(N, np.array([4, 1]))
    assert quotient.tolist() == [0.25, 0.4375]
    assert remainder.tolist() == [0, 0, 2.5625]
    agree(
        lambda u, v: jnp.polydiv(u, v)[0], lambda u, v: np.polydiv(u, v)[0], P, X[1, 1:]
    )
    assert [x.tolist() for x in jnp.polydiv(N[:1], N)] == [[0], [1]]
    assert [x.tolist() for x in jnp.polydiv(N, N[1:2])] == [
        [0.5, 1, 1.5],
        [0, 0, 0],
    ]
    rest = jnp.polydiv(N, np.array([4, 1]), trim_leading_zeros=True)[1]
    assert rest.tolist() == [2.5625]
    square = np.array([1, 2, 1])
    even = jnp.polydiv(square, np.array([1, 1]), trim_leading_zeros=True)
    assert [x.tolist() for x in even] == [[1, 1], [0]]


@pytest.mark.parametrize("order", [0, 1, 2, 3])
def test_polyder_and_polyint(order: int) -> None:
    agree(lambda p: jnp.polyder(p, order), lambda p: np.polyder(p, order), P)
    agree(lambda p: jnp.polyint(p, order), lambda p: np.polyint(p, order), P)
    constants = np.arange(4.0, 4 + order, dtype=np.float32)
    if order:
        agree(
            lambda p, k: jnp.polyint(p, order, k),
            lambda p, k: np.polyint(p, order, k),
            P,
            constants,
        )


def test_polyder_and_polyint_at_the_edges() -> None:
    assert jnp.polyder(N, 9).shape == jnp.polyder(N[:1]).shape == (0,)
    assert jnp.polyint(N, 2, 3).tolist()[3:] == [3, 3]
    assert "negative" in error_of(lambda: jnp.polyder(N, -1), ValueError)
    assert "negative" in error_of(lambda: jnp.polyint(N, -1), ValueError)
    assert "shape" in error_of(lambda: jnp.polyint(N, 2, X[0]), ValueError)


def test_polyval() -> None:
    agree(jnp.polyval, np.polyval, P, X)
    assert typed(jnp.polyval(N, 3)) == ("int32", 18)
    assert typed(jnp.polyval(N.astype("int8"), 3.0)) == ("float32", 18)
    assert jnp.polyval(X, N).tolist() == [9, 18, 37]
    assert jnp.polyval(np.zeros(0, np.float32), X).tolist() == [[0, 0, 0], [0, 0, 0]]
    assert equations(lambda x: jnp.polyval(N, x), X) == ["mul", "add"] * 2
    assert float(verax.grad(lambda x: jnp.polyval(P, x))(2.0)) == 7
    assert "vectors" in error_of(lambda: jnp.polyval(2.0, 3), ValueError)


def test_poly_and_roots() -> None:
    assert typed(jnp.poly(N)) == ("float32", [1, -6, 11, -6])
    assert jnp.poly(1).tolist() == [1, -1]
    assert jnp.poly(np.zeros(0, np.float32)).shape == ()
    np.testing.assert_allclose(jnp.poly(np.array([1j, -1j])), [1, 0, 1], atol=1e-6)
    actual = np.sort_complex(np.asarray(jnp.roots(np.array([0, 1, -6, 11, -6, 0.0]))))
    np.testing.assert_allclose(actual, [0, 1, 2, 3], atol=1e-3)
    assert jnp.roots(np.zeros(3, np.float32)).shape == (0,)
    traced = verax.jit(lambda p: jnp.roots(p, strip_zeros=False))(jnp.array([1.0, -4]))
    assert typed(traced) == ("complex64", [4])
    np.testing.assert_allclose(
        jnp.poly(np.array([[2, 1], [1, 2]])), [1, -4, 3], atol=1e-4
    )


def test_polyfit() -> None:
    x = np.linspace(-1, 1, 8).astype(np.float32)
    y = np.polyval([2.0, -1.0, 0.5], x).astype(np.float32) + np.sin(9 * x) * 0.1
    np.testing.assert_allclose(jnp.polyfit(x, y, 2), np.polyfit(x, y, 2), 1e-3, 1e-4)
    w = np.linspace(1, 2, 8).astype(np.float32)
    for mine, expected in zip(
        jnp.polyfit(x, y, 2, w=w, cov=True),
        np.polyfit(x, y, 2, w=w, cov=True),
        strict=True,
    ):
        np.testing.assert_allclose(mine, expected, 1e-3, 1e-4)
    pair = np.stack([y, 2 * y], 1)
    actual = jnp.polyfit(x, pair, 2, full=True)
    np.testing.assert_allclose(actual[0], np.polyfit(x, pair, 2), 1e-3, 1e-4)
    assert len(actual) == 5
    assert "negative" in error_of(lambda: jnp.polyfit(x, y, -1), ValueError)


def test_roots_behind_leading_zeros() -> None:
    def actual(p: list[float]) -> list[complex]:
        function = verax.jit(lambda p: jnp.roots(p, strip_zeros=False))
        values = np.array(p, np.float32)
        eager = jnp.roots(values, strip_zeros=False)
        np.testing.assert_allclose(function(values), eager, 1e-5)
        return [complex(x) for x in np.asarray(eager)]

    first, last = actual([0, 1, 2])
    assert abs(first + 2) < 1e-6
    assert np.isnan(last)
    several = actual([0, 0, 1, -3, 2, 0])
    np.testing.assert_allclose(sorted(np.abs(several[:3])), [0, 1, 2], 1e-5, 1e-6)
    assert np.isnan(several[3:]).all()
    assert np.isnan(actual([0, 0, 0])).all()
    assert actual([3]) == []
    assert jnp.roots(3.0).shape == (0,)


@pytest.mark.parametrize("wrap", [lambda f: f, verax.jit])
def test_sums_of_rows_of_coefficients_are_those_of_the_last_rows(wrap: Any) -> None:
    many, one = jnp.float32([[1, 2], [3, 4]]), jnp.float32([10])
    add, sub = wrap(jnp.polyadd), wrap(jnp.polysub)
    assert add(many, one).tolist() == add(one, many).tolist() == [[1, 2], [13, 14]]
    assert sub(many, one).tolist() == [[1, 2], [-7, -6]]
    assert sub(one, many).tolist() == [[-1, -2], [7, 6]]
    assert add(many, jnp.float32([[10, 20]])).tolist() == [[1, 2], [13, 24]]
    assert add(jnp.float32([]), one).tolist() == [10]
    for wrong in (np.ones((1, 3)), np.ones((1, 1, 2)), np.ones((3, 3))):
        with pytest.raises(ValueError, match="broadcast"):
            add(many, wrong)
    rates = verax.grad(lambda x, y: (add(x, y) ** 2).sum(), (0, 1))(many, one)
    assert [r.tolist() for r in rates] == [[[2, 4], [26, 28]], [54]]


@pytest.mark.parametrize(
    ("u", "v"),
    [
        ([1, 1, 1, 1], [0]),
        ([1, 2, 3], [0, 1]),
        ([0, 0, 0], [0]),
        ([1, 1, 1, 1], [np.nan, 1]),
    ],
)
def test_remainders_of_divisions_by_nothing_are_unknown(
    u: list[float], v: list[float]
) -> None:
    x, y = np.array(u, np.float32), np.array(v, np.float32)
    with np.errstate(all="ignore"):
        expected = np.polydiv(x, y)
    for f in (jnp.polydiv, verax.jit(jnp.polydiv)):
        for part, due in zip(f(x, y), expected, strict=True):
            np.testing.assert_array_equal(part, due)


@pytest.mark.parametrize("root", [np.inf, -np.inf, np.nan])
def test_polynomials_with_infinite_roots_still_begin_with_one(root: float) -> None:
    zeros = np.array([2, root], np.float32)
    for f in (jnp.poly, verax.jit(jnp.poly)):
        np.testing.assert_array_equal(f(zeros), np.poly(zeros))
