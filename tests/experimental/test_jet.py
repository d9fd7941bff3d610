"""`verax.experimental.jet`: derivatives of any order at once."""

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from docs.examples.recurrence import recurrence
from verax import Array, lax, verify
from verax.experimental.jet import (
    DERIVED,
    TAYLOR,
    fact,
    jet,
    zero_series,
    zero_term,
)
from verax.extend import Parts, Propagation
from verax.ir.dtypes import is_float
from verax.ir.jaxpr import Jaxpr
from verax.rules.rows.builder import program
from verax.scipy import special
from verax.verify import check_function


def looped(x: Any) -> Any:
    _, ys = lax.scan(lambda c, a: (vnp.sin(c) * a + x, c * c), x, vnp.arange(3.0))
    return ys.sum()


def counted(x: Any) -> Any:
    def step(carry: Any) -> Any:
        i, y = carry
        return i + 1, y * x + vnp.cos(y)

    return lax.while_loop(lambda carry: carry[0] < 3, step, (0, x))[1]


def solved(x: Any) -> Array:
    matrix = vnp.array([[2.0, x], [x * x, x + 1]])
    return vnp.linalg.inv(matrix).sum() + vnp.linalg.det(matrix)


def convolved(x: Any) -> Array:
    signal, kernel = x * vnp.arange(5.0), vnp.stack([x, x * x, vnp.exp(x)])
    return vnp.convolve(signal, kernel).sum()


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "exp": vnp.exp,
    "expm1": vnp.expm1,
    "log": vnp.log,
    "log1p": vnp.log1p,
    "sqrt": vnp.sqrt,
    "cbrt": vnp.cbrt,
    "rsqrt": lax.rsqrt,
    "sin": vnp.sin,
    "tan": vnp.tan,
    "arcsin": vnp.arcsin,
    "sinh": vnp.sinh,
    "cosh": verax.jit(vnp.cosh),
    "tanh": vnp.tanh,
    "logistic": lax.logistic,
    "erf": special.erf,
    "rational": lambda x: (x - 3) / (1 + x * x),
    "power": lambda x: x**3.5,
    "integer power": lambda x: x**5 + x**-3 + x**0,
    "powers": lambda x: x**x,
    "lgamma": lax.lgamma,
    "i1e": special.i1e,
    "softplus": verax.nn.softplus,
    "branches": lambda x: lax.cond(x > 0, lambda y: y * x, vnp.sin, x),
    "scan": looped,
    "while": counted,
    "linear algebra": solved,
    "convolution": convolved,
    "an own primitive": lambda x: recurrence(
        x * vnp.arange(1.0, 4.0), vnp.stack([x, x * x, vnp.exp(x)])
    ).sum(),
}


def by_nesting(f: Callable[..., Any], x: Array, order: int) -> list[float]:
    """Derivatives by jvp of jvp."""

    def slope(g: Callable[..., Any]) -> Callable[..., Any]:
        return lambda t: verax.jvp(g, (t,), (vnp.ones_like(t),))[1]

    actual = []
    for _ in range(order + 1):
        actual.append(float(f(x)))
        f = slope(f)
    return actual


@pytest.mark.slow
@pytest.mark.parametrize("rules", [TAYLOR, DERIVED], ids=["closed", "derived"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_jet_is_nested_jvp(name: str, rules: Propagation) -> None:
    f, order = FUNCTIONS[name], 4
    with verax.enable_x64(True):
        x = vnp.array(0.7)
        curve = [1.0, *[zero_term] * (order - 1)]
        value, actual = jet(f, (x,), [curve], rules=rules)
        want = by_nesting(f, x, order)
    np.testing.assert_allclose([value, *actual], want, rtol=1e-9)


def test_the_chain_rule_along_a_curve() -> None:
    """Faà di Bruno's formula for sin(z^3)."""
    z = 0.5
    y, (first, second) = jet(vnp.sin, (z**3,), ((3 * z**2, 6 * z),))
    np.testing.assert_allclose(y, np.sin(z**3), rtol=1e-6)
    np.testing.assert_allclose(first, np.cos(z**3) * 3 * z**2, rtol=1e-6)
    want = -np.sin(z**3) * (3 * z**2) ** 2 + np.cos(z**3) * 6 * z
    np.testing.assert_allclose(second, want, rtol=1e-6)


def test_coefficients_are_derivatives_over_factorials() -> None:
    _, derivatives = jet(vnp.tanh, (0.3,), [[1.0, 0.5, 2.0]])
    plain = [x / math.factorial(k + 1) for k, x in enumerate([1.0, 0.5, 2.0])]
    _, terms = jet(vnp.tanh, (0.3,), [plain], factorial_scaled=False)
    scaled = [float(x) * math.factorial(k + 1) for k, x in enumerate(terms)]
    np.testing.assert_allclose(scaled, derivatives, rtol=1e-5)


def test_powers_at_zero() -> None:
    _, actual = jet(lambda x: x**3, (0.0,), [[1.0, 0.0, 0.0, 0.0]])
    assert [float(x) for x in actual] == [0.0, 0.0, 6.0, 0.0]


def test_jet_composes() -> None:
    def second(x: Any) -> Any:
        return jet(lambda y: vnp.tanh(y) * vnp.sin(y), (x,), [(1.0, 0.0)])[1][1]

    def plain(x: Any) -> Any:
        return verax.grad(verax.grad(lambda y: vnp.tanh(y) * vnp.sin(y)))(x)

    xs = vnp.linspace(-1.0, 1.0, 5)
    for f in (second, verax.grad(second)):
        g = plain if f is second else verax.grad(plain)
        np.testing.assert_allclose(
            verax.jit(verax.vmap(f))(xs), verax.vmap(g)(xs), rtol=1e-4, atol=1e-5
        )
    laws = ["eager", "compiled", "jvp", "vjp", "vmap"]
    check_function(second, 0.5, cases=4, laws=laws, seed=1).raise_if_broken()


def equations(f: Callable[..., Any], order: int) -> int:
    """How many equations the series of a function takes."""
    terms = [1.0] * order
    return len(verax.make_jaxpr(lambda x: jet(f, (x,), [terms]))(0.1).jaxpr.eqns)


@pytest.mark.parametrize("name", ["tanh", "i1e", "powers", "cbrt", "arcsin"])
def test_cost_is_polynomial_in_the_order(name: str) -> None:
    """Nested derivatives of i1e and of x^x double with each order."""
    f = FUNCTIONS[name]
    assert equations(f, 10) <= 2**3.2 * equations(f, 5)


def test_series_through_a_loop_do_not_grow() -> None:
    def size(length: int) -> int:
        def f(x: Any) -> Any:
            steps = vnp.arange(float(length))
            return lax.scan(lambda c, a: (vnp.sin(c) + a, c), x, steps)[0]

        return len(str(verax.make_jaxpr(lambda x: jet(f, (x,), [[1.0, 0.0]]))(0.1)))

    assert abs(size(3) - size(300)) < 20


def test_trees_constants_and_kinds_of_results() -> None:
    def f(tree: Any, scale: Any, n: Any) -> Any:
        found = {"sum": (tree["x"] + tree["y"]) * scale, "fixed": vnp.ones(2)}
        return found, n + 1, tree["x"] > 0

    x = {"x": vnp.zeros(2), "y": vnp.ones(2)}
    terms = [{"x": vnp.ones(2), "y": zero_term}, zero_term]
    value, rows = jet(f, (x, 3.0, vnp.arange(2)), (terms, zero_series, [7, 7]))
    assert value[0]["sum"].tolist() == [3.0, 3.0]
    assert [t.tolist() for t in rows[0]["sum"]] == [[3.0, 3.0], [0.0, 0.0]]
    assert [t.tolist() for t in rows[0]["fixed"]] == [[0.0, 0.0]] * 2
    for found in rows[1:]:
        assert [t.tolist() for t in found] == [[0.0, 0.0]] * 2
        assert [t.dtype for t in found] == [np.float32] * 2


def test_dtypes_of_terms() -> None:
    """Terms take the dtype of their argument, and are weak where both are."""
    x = vnp.ones(2, vnp.bfloat16)
    value, terms = jet(vnp.sin, (x,), [[np.ones(2), 1]])
    assert [value.dtype, *[t.dtype for t in terms]] == [vnp.bfloat16] * 3
    _, terms = jet(vnp.sin, (1,), [[1.0, 0]])
    assert all(t.weak_type for t in terms)
    _, terms = jet(vnp.exp, (1j * vnp.ones(()),), [[1.0]])
    assert terms[0].dtype == np.complex64
    _, terms = jet(lambda x: x * x, (vnp.zeros((0, 2)),), [[1.0, 0.0]])
    assert [t.shape for t in terms] == [(0, 2)] * 2


def test_no_terms_and_no_dependence() -> None:
    assert jet(vnp.sin, (0.0,), [[]])[1] == []
    _, terms = jet(lambda x: 3.0, (1.0,), [[1.0, 2.0]])
    assert [float(t) for t in terms] == [0.0, 0.0]


def test_factorials() -> None:
    np.testing.assert_allclose(fact(vnp.arange(5)), [1, 1, 2, 6, 24], rtol=1e-5)


@pytest.mark.parametrize(
    ("primals", "series", "message"),
    [
        ((1.0,), ([1.0], [1.0]), "2 are given for 1 arguments"),
        ((1.0, 2.0), ([1.0, 0.0], [1.0]), "jet terms have inconsistent lengths"),
        ((vnp.ones(3),), ([vnp.ones(2)],), "term 0 for argument 0 has the shape"),
        ((vnp.ones(()),), ([vnp.ones(2)],), "term 0 for argument 0 has the shape"),
        (((1.0, 2.0),), ([1.0],), "does not have the structure of the argument"),
    ],
)
def test_terms_must_fit(primals: Any, series: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        jet(lambda *xs: xs[0], primals, series)


STEP = 2.0**-6
SMOOTH = [
    verify.row_of(name)
    for name in ("add", "sub", "mul", "neg", "exp", "sin", "cos", "tanh", "logistic")
]


def advanced(table: Propagation) -> Callable[[Jaxpr], Jaxpr]:
    """The sum of the Taylor series at x + t; without a rounding error, f(x + t)."""

    def changed(jaxpr: Jaxpr) -> Jaxpr:
        def body(*xs: Array) -> list[Array]:
            curve: list[Parts] = [
                (x, vnp.full_like(x, STEP), *[None] * 5) if is_float(x.dtype) else (x,)
                for x in xs
            ]
            return [
                functools.reduce(lambda a, b: a + b, [c for c in y if c is not None])
                for y in table(jaxpr, curve)
            ]

        return program(jaxpr.in_avals, body)

    return changed


def nearby(f: Any, args: Any) -> Any:
    return f(*[x + x.dtype.type(STEP) if x.dtype.kind == "f" else x for x in args])


def test_series_of_random_programs_are_the_function_nearby() -> None:
    verify.check_transformation(
        advanced(TAYLOR), reference=nearby, rows=SMOOTH, cases=10, ulps=1e5, seed=1
    ).raise_if_broken()


@pytest.mark.slow
def test_a_wrong_rule_is_found() -> None:
    def halved(walk: Propagation, p: Any, values: Any) -> Any:
        (x, y), right = values, TAYLOR.rule(lax.mul_p)
        return right(walk, p, (x, (y[0],))) if len(x) > 1 else right(walk, p, (x, y))

    wrong = TAYLOR | {lax.mul_p: halved}
    report = verify.check_transformation(
        advanced(wrong), reference=nearby, rows=SMOOTH, cases=20, ulps=1e5, seed=1
    )
    assert report["values"].verdict == "broken"
