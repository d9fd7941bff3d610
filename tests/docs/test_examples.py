"""The worked extensions of docs/examples, held to what they are made to be."""

import doctest
import functools
import math
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from docs.examples import (
    inversion,
    recurrence as recurrence_module,
    taylor as taylor_module,
)
from docs.examples.inversion import (
    INVERSES,
    NotInvertible,
    elementwise,
    inverse,
    with_log_det,
)
from docs.examples.recurrence import Kernel, pullback, recurrence, recurrence_p
from docs.examples.taylor import DERIVED, TAYLOR, taylor
from verax import Array, lax, verify
from verax.extend import MissingRule, Parts, Propagation
from verax.ir.dtypes import is_float
from verax.ir.jaxpr import Jaxpr
from verax.rules.rows.writing import program
from verax.verify import check_function, check_primitive

DECAYS = np.linspace(0.1, 0.9, 6, dtype=np.float32).reshape(2, 3)
INPUTS = np.arange(6, dtype=np.float32).reshape(2, 3)


def test_recurrence_keeps_every_law() -> None:
    check_primitive(recurrence_p, cases=12, seed=1).raise_if_broken()


@pytest.mark.parametrize("kernel", ["host", "loop"])
@pytest.mark.parametrize("reverse", [False, True])
def test_recurrence_is_its_loop(kernel: Kernel, reverse: bool) -> None:
    def f(a: Any, b: Any) -> Array:
        return recurrence(a, b, reverse=reverse, kernel=kernel)

    want = np.zeros_like(INPUTS)
    state = np.zeros(2, np.float32)
    for t in (2, 1, 0) if reverse else (0, 1, 2):
        state = DECAYS[:, t] * state + INPUTS[:, t]
        want[:, t] = state
    np.testing.assert_allclose(f(DECAYS, INPUTS), want, rtol=1e-6)
    np.testing.assert_allclose(verax.jit(f)(DECAYS, INPUTS), want, rtol=1e-6)
    rows = verax.jit(verax.vmap(f, (1, None), 1))(DECAYS.T, INPUTS[0])
    np.testing.assert_allclose(rows[:, 0], want[0], rtol=1e-6)


def test_recurrence_pullbacks_agree() -> None:
    a, b, g = map(vnp.asarray, (DECAYS, INPUTS, np.cos(INPUTS)))
    _, pulled = verax.vjp(recurrence, a, b)
    for derived, by_hand in zip(pulled(g), pullback(a, b, g), strict=True):
        np.testing.assert_allclose(derived, by_hand, rtol=1e-6)


def test_recurrence_refuses_other_shapes() -> None:
    with pytest.raises(TypeError, match="one shape and one float dtype"):
        recurrence(vnp.ones(3), vnp.ones(4))


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


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "exp": vnp.exp,
    "log": vnp.log,
    "sqrt": vnp.sqrt,
    "sin": vnp.sin,
    "cosh": verax.jit(vnp.cosh),
    "tanh": vnp.tanh,
    "rational": lambda x: (x - 3) / (1 + x * x),
    "power": lambda x: x**3.5,
    "lgamma": lax.lgamma,
    "softplus": verax.nn.softplus,
    "branches": lambda x: lax.cond(x > 0, lambda y: y * x, vnp.sin, x),
    "scan": looped,
    "while": counted,
    "linear algebra": solved,
    "an own primitive": lambda x: recurrence(
        x * vnp.arange(1.0, 4.0), vnp.stack([x, x * x, vnp.exp(x)])
    ).sum(),
}


def by_nesting(f: Callable[..., Any], x: Array, order: int) -> list[float]:
    """Coefficients by jvp of jvp."""

    def slope(g: Callable[..., Any]) -> Callable[..., Any]:
        return lambda t: verax.jvp(g, (t,), (vnp.ones_like(t),))[1]

    found = []
    for k in range(order + 1):
        found.append(float(f(x)) / math.factorial(k))
        f = slope(f)
    return found


@pytest.mark.parametrize("table", [TAYLOR, DERIVED], ids=["closed", "derived"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_taylor_is_nested_jvp(name: str, table: Any) -> None:
    f, order = FUNCTIONS[name], 3
    with verax.enable_x64(True):
        x = vnp.array(0.7)
        curve: list[Any] = [(1.0,), *[(None,)] * (order - 1)]
        value, found = taylor(f, (x,), curve, table)
        want = by_nesting(f, x, order)
    np.testing.assert_allclose([value, *found], want, rtol=1e-9)


def test_taylor_composes() -> None:
    def second(x: Any) -> Any:
        return taylor(lambda y: vnp.tanh(y) * vnp.sin(y), (x,), [(1.0,), (None,)])[1][1]

    def plain(x: Any) -> Any:
        return verax.grad(verax.grad(lambda y: vnp.tanh(y) * vnp.sin(y)))(x) / 2

    xs = vnp.linspace(-1.0, 1.0, 5)
    for f in (second, verax.grad(second)):
        g = plain if f is second else verax.grad(plain)
        np.testing.assert_allclose(
            verax.jit(verax.vmap(f))(xs), verax.vmap(g)(xs), rtol=1e-4, atol=1e-5
        )
    laws = ["eager", "compiled", "jvp", "vjp", "vmap"]
    check_function(second, 0.5, cases=4, laws=laws, seed=1).raise_if_broken()


def test_taylor_through_a_loop_does_not_grow() -> None:
    def size(length: int) -> int:
        def f(x: Any) -> Any:
            steps = vnp.arange(float(length))
            return lax.scan(lambda c, a: (vnp.sin(c) + a, c), x, steps)[0]

        program = verax.make_jaxpr(lambda x: taylor(f, (x,), [(1.0,), (None,)]))(0.1)
        return len(str(program).splitlines())

    assert size(3) == size(300)


def test_taylor_of_trees_and_constants() -> None:
    def f(tree: Any) -> Any:
        return {"sum": tree["x"] + tree["y"], "fixed": vnp.ones(2)}

    curve = ({"x": vnp.ones(2), "y": None},)
    value, (first,) = taylor(f, ({"x": vnp.zeros(2), "y": vnp.ones(2)},), [curve])
    assert value["sum"].tolist() == [1.0, 1.0]
    assert first["sum"].tolist() == [1.0, 1.0]
    assert first["fixed"].tolist() == [0.0, 0.0]


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


def test_taylor_of_random_programs_is_the_function_nearby() -> None:
    verify.check_transformation(
        advanced(TAYLOR), reference=nearby, rows=SMOOTH, cases=10, ulps=1e5, seed=1
    ).raise_if_broken()


def test_a_wrong_rule_is_found() -> None:
    def halved(walk: Propagation, p: Any, values: Any) -> Any:
        (x, y), right = values, TAYLOR.rule(lax.mul_p)
        return right(walk, p, (x, (y[0],))) if len(x) > 1 else right(walk, p, (x, y))

    wrong = TAYLOR | {lax.mul_p: halved}
    report = verify.check_transformation(
        advanced(wrong), reference=nearby, rows=SMOOTH, cases=20, ulps=1e5, seed=1
    )
    assert report["values"].verdict == "broken"


def test_coefficients_must_fit() -> None:
    for x, coefficient in ((vnp.ones(3), vnp.ones(2)), (3, 1)):
        with pytest.raises(TypeError, match="is given for an argument of"):
            taylor(lambda x: x * x, (x,), [(coefficient,)])


RANDOM = np.random.default_rng(0)
SQUARE = RANDOM.normal(size=(4, 4)).astype(np.float32)
LAYERS = 0.3 * RANDOM.normal(size=(3, 2, 2)).astype(np.float32)
POINT = vnp.asarray(RANDOM.normal(size=4).astype(np.float32))


def coupling(x: Any, weights: Any = LAYERS[0]) -> Any:
    a, b = x[..., :2], x[..., 2:]
    moved = b * vnp.exp(vnp.tanh(a @ weights)) + a @ weights
    return vnp.concatenate([a, moved], -1)[..., ::-1]


def layers(x: Any) -> Any:
    def layer(x: Any, weights: Any) -> Any:
        return vnp.sinh(coupling(x, weights) / 2), None

    return lax.scan(layer, x, vnp.asarray(LAYERS))[0]


def rows(x: Any) -> Any:
    return lax.map(lambda row: vnp.tanh(row) * 2, x.reshape(2, 2))


FLOWS: dict[str, Callable[..., Any]] = {
    "affine": lambda x: 3 * x - 1,
    "subtracted": lambda x: 1 / (5 - x),
    "matrix on the right": lambda x: x @ SQUARE,
    "matrix on the left": lambda x: SQUARE @ x,
    "squashed": lambda x: verax.nn.sigmoid((x + 3) ** 3 / 50),
    "moved about": lambda x: vnp.roll(x, 1).reshape(2, 2).T.reshape(4) / (-2),
    "coupling": coupling,
    "inner function": verax.jit(coupling),
    "loop over layers": layers,
    "loop over rows": rows,
    "running sums": lambda x: vnp.cumsum(verax.checkpoint(vnp.sinh)(x)),
    "running sums from the end": lambda x: lax.cumsum(2 * x, reverse=True),
}


@pytest.mark.parametrize("name", FLOWS)
def test_inverse_and_its_determinant(name: str) -> None:
    flow = FLOWS[name]
    y, log_det = verax.jit(with_log_det(flow))(POINT)
    x, back = verax.jit(inverse(flow, POINT))(y)
    np.testing.assert_allclose(x, POINT, rtol=1e-4, atol=1e-5)
    jacobian = np.asarray(verax.jacobian(flow)(POINT), np.float64).reshape(4, 4)
    want = np.linalg.slogdet(jacobian)[1]
    np.testing.assert_allclose([log_det, -back], [want, want], rtol=1e-4)


def test_inverse_composes() -> None:
    def density(weights: Any, y: Any) -> Any:
        x, log_det = inverse(lambda x: coupling(x, weights), POINT)(y)
        return -vnp.sum(x * x) / 2 + log_det

    ys = vnp.stack([POINT, 2 * POINT])
    slopes = verax.jit(verax.vmap(verax.grad(density), (None, 0)))(LAYERS[0], ys)
    direct = vnp.stack([verax.jacfwd(density)(LAYERS[0], y) for y in ys])
    np.testing.assert_allclose(slopes, direct, rtol=1e-4, atol=1e-5)
    laws = ["eager", "compiled", "jvp", "vjp", "vmap"]
    report = check_function(density, LAYERS[0], POINT, cases=3, laws=laws, seed=1)
    report.raise_if_broken()


@pytest.mark.parametrize(
    ("f", "error", "text"),
    [
        (lambda x: x + vnp.exp(x), NotInvertible, "two unknowns meet.*add at"),
        (lambda x: x[:2], NotInvertible, "an input that nothing uses"),
        (lambda x: (x, x), NotInvertible, "determined twice"),
        (lambda x: vnp.concatenate([x, x[:1]]), NotInvertible, "determined twice"),
        (lambda x: vnp.ones(4), NotInvertible, "determined twice"),
        (lambda x: x**2, NotInvertible, "the same for x and -x"),
        (vnp.cos, MissingRule, "cos has no rule in the table 'inverses'.*met at"),
    ],
)
def test_what_has_no_inverse(f: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        inverse(f, POINT)(f(POINT))


def test_inverse_takes_what_the_function_gives() -> None:
    for wrong in ((1.0, 2.0), vnp.ones(3)):
        with pytest.raises(TypeError, match="the inverse takes what the function"):
            inverse(lambda x: 2 * x, 1.0)(wrong)


def test_a_rule_more_inverts_more() -> None:
    table = INVERSES | {lax.cos_p: elementwise(lambda known, y: vnp.arccos(y))}
    x, log_det = inverse(vnp.cos, 0.5, table)(vnp.cos(0.5))
    np.testing.assert_allclose([x, log_det], [0.5, -np.log(np.sin(0.5))], rtol=1e-5)


@pytest.mark.parametrize("module", [inversion, recurrence_module, taylor_module])
def test_examples_of_docstrings(module: ModuleType) -> None:
    result = doctest.testmod(module)
    assert result.attempted
    assert not result.failed
