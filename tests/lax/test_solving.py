"""Solves and roots by the user's functions: derivatives, batches, bad input."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from verax import Array, lax
from verax.ir.forms.parser import parse_closed
from verax.ir.reports.check import check_jaxpr
from verax.ops.table import PRIMITIVES
from verax.rules.rows.infer import infer
from verax.verify.cases.case import double_precision

RANDOM = np.random.default_rng(1)
MATRIX = RANDOM.normal(size=(3, 3)) + 3.0 * np.eye(3)
RIGHT = RANDOM.normal(size=3)


def gradients(matvec: Callable[[Any], Any], b: Any) -> Any:
    """Conjugate gradients, with a loop of unknown length."""

    def step(state: Any) -> Any:
        x, r, p, rr = state
        ap = matvec(p)
        alpha = rr / (p * ap).sum()
        r2 = r - alpha * ap
        rr2 = (r2 * r2).sum()
        return x + alpha * p, r2, r2 + rr2 / rr * p, rr2

    start = (vnp.zeros_like(b), b, b, (b * b).sum())
    return lax.while_loop(lambda s: s[3] > 1e-24, step, start)[0]


def by_matrix(matvec: Callable[[Any], Any], b: Any) -> Any:
    return vnp.linalg.solve(verax.jacfwd(matvec)(b), b)


def general(a: Any, b: Any) -> Any:
    return lax.custom_linear_solve(lambda x: a @ x, b, by_matrix, by_matrix)


def positive(a: Any, b: Any) -> Any:
    a = a @ a.T
    return lax.custom_linear_solve(lambda x: a @ x, b, gradients, symmetric=True)


SOLVES = {
    "general": (general, vnp.linalg.solve),
    "positive": (positive, lambda a, b: vnp.linalg.solve(a @ a.T, b)),
}
Change = Callable[[Callable[..., Any]], Callable[..., Any]]
CHAINS: dict[str, Change] = {
    "value": lambda f: f,
    "jit": verax.jit,
    "jacfwd": lambda f: verax.jacfwd(f, (0, 1)),
    "jacrev": lambda f: verax.jacrev(f, (0, 1)),
    "forward over reverse": lambda f: verax.jacfwd(verax.jacrev(f, (0, 1)), (0, 1)),
    "reverse over reverse": lambda f: verax.jacrev(verax.jacrev(f, (0, 1)), (0, 1)),
}


def agree(result: Any, due: Any) -> None:
    left, right = map(verax.tree_util.tree_leaves, (result, due))
    for x, y in zip(left, right, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-7, atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("chain", CHAINS)
@pytest.mark.parametrize("name", SOLVES)
@pytest.mark.usefixtures("little_effort")
def test_derivatives_of_solves(name: str, chain: str) -> None:
    (f, g), change = SOLVES[name], CHAINS[chain]
    with double_precision():
        agree(change(f)(MATRIX, RIGHT), change(g)(MATRIX, RIGHT))


AXES = [(None, 0), (2, None), (1, 1)]


@pytest.mark.slow
@pytest.mark.parametrize("axes", AXES)
@pytest.mark.parametrize("name", SOLVES)
@pytest.mark.usefixtures("little_effort")
def test_batches_of_solves(name: str, axes: tuple[int | None, int | None]) -> None:
    f, g = SOLVES[name]
    args = [
        x if axis is None else np.stack([x, x + 0.1], axis)
        for x, axis in zip((MATRIX, RIGHT), axes, strict=True)
    ]
    with double_precision():
        agree(verax.vmap(f, axes)(*args), verax.vmap(g, axes)(*args))
        inside = [verax.vmap(verax.jacrev(h, (0, 1)), axes)(*args) for h in (f, g)]
        agree(*inside)

        def summed(h: Callable[..., Any]) -> Callable[..., Any]:
            return lambda a, b: verax.vmap(h, axes)(a, b).sum()

        agree(*[verax.grad(summed(h), (0, 1))(*args) for h in (f, g)])


def of_pairs(a: Any, b: dict[str, Any]) -> Any:
    """A diagonal system of a tree, complex, with what the solve counts."""

    def matvec(x: dict[str, Any]) -> dict[str, Any]:
        return {"u": a * x["u"], "v": 2.0 * x["v"]}

    def solve(mv: Any, c: dict[str, Any]) -> Any:
        return {"u": c["u"] / a, "v": c["v"] / 2.0}, {"steps": 7, "norm": abs(c["u"])}

    return lax.custom_linear_solve(matvec, b, solve, solve, has_aux=True)


def test_trees_complex_numbers_and_aux() -> None:
    a, b = vnp.array([2.0 + 1.0j, 1.0j]), {"u": vnp.array([1.0 + 0j, 2.0]), "v": 3.0}
    x, aux = of_pairs(a, b)
    agree(x, {"u": b["u"] / a, "v": 1.5})
    assert aux["steps"] == 7

    def size(f: Callable[..., Any]) -> Callable[..., Any]:
        return lambda a: (abs(f(a, b)[0]["u"]) ** 2).sum()

    due = verax.grad(size(lambda a, b: ({"u": b["u"] / a}, None)))(a)
    np.testing.assert_allclose(verax.grad(size(of_pairs))(a), due, rtol=1e-5)
    _, pushed = verax.jvp(lambda a: of_pairs(a, b), (a,), (a,))
    np.testing.assert_allclose(pushed[0]["u"], -x["u"], rtol=1e-5)
    lanes = vnp.stack([a, 2 * a, 3 * a])
    batched, aux = verax.vmap(of_pairs, (0, None))(lanes, b)
    assert batched["v"].shape == aux["steps"].shape == (3,)
    assert aux["norm"].tolist() == [[1.0, 2.0]] * 3


def newton(f: Callable[[Any], Any], guess: Any) -> Any:
    def step(x: Any) -> Any:
        return x - f(x) / verax.grad(f)(x)

    return lax.while_loop(lambda x: abs(f(x)) > 1e-12, step, guess)


def cube_root(y: Any) -> Any:
    return lax.custom_root(lambda x: x**3 - y, y, newton, lambda g, z: z / g(1.0))


def test_derivatives_of_roots() -> None:
    with double_precision():
        ys = vnp.array([1.0, 8.0, 27.0])
        for change in (
            lambda f: f,
            verax.grad,
            verax.jacfwd,
            lambda f: verax.grad(verax.grad(f)),
            lambda f: verax.jacfwd(verax.grad(f)),
            lambda f: verax.grad(verax.grad(verax.grad(f))),
        ):
            agree(change(cube_root)(8.0), change(vnp.cbrt)(8.0))
            agree(verax.jit(change(cube_root))(8.0), change(vnp.cbrt)(8.0))
            agree(verax.vmap(change(cube_root))(ys), verax.vmap(change(vnp.cbrt))(ys))
        agree(
            verax.grad(lambda ys: verax.vmap(cube_root)(ys).sum())(ys),
            ys ** (-2 / 3) / 3,
        )


def of_system(m: Any, guess: dict[str, Any], has_aux: bool = False) -> Any:
    """x' m x = 1 ... as a tree: sin(u) + m v = 1, v = m u."""

    def f(x: dict[str, Any]) -> dict[str, Any]:
        return {"u": vnp.sin(x["u"]) + m * x["v"] - 1.0, "v": x["v"] - m * x["u"]}

    def solve(f: Any, x: Any) -> Any:
        def step(i: Any, x: Any) -> Any:
            slope = 1.0 / (vnp.cos(x["u"]) + m * m)
            u = x["u"] - slope * (vnp.sin(x["u"]) + m * m * x["u"] - 1.0)
            return {"u": u, "v": m * u}

        x = lax.fori_loop(0, 40, step, x)
        return (x, {"left": f(x)["u"], "n": 40}) if has_aux else x

    def tangent(g: Any, y: Any) -> Any:
        return lax.custom_linear_solve(g, y, solve_pair, solve_pair)

    return lax.custom_root(f, guess, solve, tangent, has_aux)


def solve_pair(g: Any, y: dict[str, Any]) -> dict[str, Any]:
    columns = [g({"u": 1.0, "v": 0.0}), g({"u": 0.0, "v": 1.0})]
    matrix = vnp.array([[c[k] for c in columns] for k in ("u", "v")])
    u, v = vnp.linalg.solve(matrix, vnp.stack([y["u"], y["v"]]))
    return {"u": u, "v": v}


@pytest.mark.slow
def test_roots_of_trees_with_inner_solves_and_aux() -> None:
    with double_precision():
        guess = {"u": 0.5, "v": 0.1}

        def f(m: Any) -> Any:
            return of_system(m, guess)["u"]

        step = 1e-5
        slope = (f(0.7 + step) - f(0.7 - step)) / (2 * step)
        for actual in (
            verax.grad(f)(0.7),
            verax.jacfwd(f)(0.7),
            verax.jit(verax.grad(f))(0.7),
        ):
            np.testing.assert_allclose(actual, slope, rtol=1e-6)
        ms = vnp.array([0.3, 0.7])
        np.testing.assert_allclose(verax.vmap(verax.grad(f))(ms)[1], slope, rtol=1e-6)
        curve = (verax.grad(f)(0.7 + step) - verax.grad(f)(0.7 - step)) / (2 * step)
        np.testing.assert_allclose(verax.grad(verax.grad(f))(0.7), curve, rtol=1e-5)
        _, aux = of_system(0.7, guess, has_aux=True)
        assert aux["n"] == 40
        np.testing.assert_allclose(aux["left"], 0.0, atol=1e-12)
        pulled = verax.grad(lambda g: of_system(0.7, g)["v"])(guess)
        assert pulled == {"u": 0.0, "v": 0.0}


def test_equations_survive_and_can_be_read_back() -> None:
    def names(f: Callable[..., Any], *args: Any) -> list[str]:
        closed = verax.make_jaxpr(f)(*args)
        check_jaxpr(closed.jaxpr, infer)
        assert parse_closed(str(closed), PRIMITIVES, closed.consts) == closed
        return [eqn.primitive.name for eqn in closed.jaxpr.eqns]

    a, b = vnp.array(MATRIX, np.float32), vnp.array(RIGHT, np.float32)

    def total(a: Array, b: Array) -> Any:
        return general(a, b).sum()

    assert names(general, a, b).count("custom_linear_solve") == 1
    assert names(verax.grad(total, 1), a, b).count("custom_linear_solve") == 2
    stacks = vnp.stack([a, a]), vnp.stack([b, b])
    assert "custom_linear_solve" in names(verax.vmap(verax.grad(total)), *stacks)
    assert names(verax.grad(cube_root), 8.0).count("custom_root") == 1
    # The matrix is a constant: an operand, under a trace of its own too.
    closed = verax.make_jaxpr(verax.jit(lambda b: general(a, b)))(b)
    assert [c.shape for c in closed.consts] == [(3, 3)]


def test_transpose_of_a_solve() -> None:
    (actual,) = verax.linear_transpose(lambda b: general(MATRIX, b), RIGHT)(RIGHT)
    np.testing.assert_allclose(actual, np.linalg.solve(MATRIX.T, RIGHT), rtol=1e-4)


def solved(matvec: Any, b: Any, **options: Any) -> Any:
    return lax.custom_linear_solve(matvec, b, lambda mv, b: b, **options)


ONES = np.ones(2, np.float32)
BAD: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (
        lambda: solved(lambda x: x[:1], ONES),
        TypeError,
        r"output is f32\[1\] and b is f32\[2\]",
    ),
    (lambda: solved(lambda x: (x, x), ONES), TypeError, "structure must match b"),
    (lambda: solved(lambda x: x, ONES, has_aux=True), TypeError, "pair"),
    (lambda: solved(3.0, ONES), TypeError, "as matvec,"),
    (lambda: solved(lambda x: 2.5 * x, 3), TypeError, "Convert b, or what"),
    (
        lambda: lax.custom_root(lambda x: x - 2, 5, lambda f, x: x, lambda g, y: y),
        TypeError,
        r"initial_guess is ~i32\[\]; convert it",
    ),
    (
        lambda: verax.grad(lambda b: solved(lambda x: x, b).sum())(ONES),
        NotImplementedError,
        "symmetric=True",
    ),
    (
        lambda: lax.custom_root(lambda x: x[:1], ONES, lambda f, x: x, lambda g, y: y),
        TypeError,
        "shapes must match initial_guess",
    ),
    (
        lambda: lax.custom_root(lambda x: x, ONES, lambda f, x: 1, lambda g, y: y),
        TypeError,
        r"solve\(\) output shapes must match initial_guess",
    ),
    (
        lambda: lax.custom_root(lambda x: x, ONES, lambda f, x: x, lambda g, y: [y]),
        TypeError,
        "structure must match initial_guess",
    ),
]


@pytest.mark.parametrize("index", range(len(BAD)))
def test_bad_input(index: int) -> None:
    call, error, text = BAD[index]
    with pytest.raises(error, match=text):
        call()
