"""`verax.scipy.sparse.linalg` and `verax.scipy.optimize`."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.optimize

import verax
import verax.numpy as vnp
from verax.scipy.optimize import minimize
from verax.scipy.sparse.linalg import bicgstab, cg, gmres

RANDOM = np.random.default_rng(5)
GENERAL = RANDOM.normal(size=(6, 6)) + 5 * np.eye(6)
POSITIVE = GENERAL @ GENERAL.T
B = RANDOM.normal(size=6)
SOLVERS: list[tuple[Callable[..., Any], np.ndarray]] = [
    (cg, POSITIVE),
    (bicgstab, GENERAL),
    (gmres, GENERAL),
]
LIMITED = "l-bfgs-experimental-do-not-rely-on-this"


@pytest.fixture(autouse=True)
def double() -> Any:
    with verax.enable_x64(True):
        yield


def close(x: Any, y: Any, tolerance: float = 1e-7) -> None:
    np.testing.assert_allclose(np.asarray(x), y, tolerance, tolerance)


@pytest.mark.slow
@pytest.mark.parametrize(("solver", "a"), SOLVERS)
@pytest.mark.usefixtures("little_effort")
def test_solutions(solver: Callable[..., Any], a: np.ndarray) -> None:
    want = np.linalg.solve(a, B)
    close(solver(a, B, tol=1e-12)[0], want)
    smooth = np.diag(1 / np.diag(a))
    actual = solver(lambda x: vnp.asarray(a) @ x, B, x0=0.9 * want, tol=1e-12, M=smooth)
    close(actual[0], want)
    many = verax.vmap(lambda b: solver(a, b, tol=1e-12)[0])(np.stack([B, 2 * B]))
    close(many[1], 2 * want)
    assert not np.asarray(solver(a, 0 * B, tol=1e-12)[0]).any()
    complex_a = a + 0.3j * (POSITIVE - POSITIVE.T + np.triu(a, 1) - np.triu(a, 1).T)
    complex_b = B + 1j * B[::-1]
    close(
        solver(complex_a, complex_b, tol=1e-12)[0],
        np.linalg.solve(complex_a, complex_b),
    )


@pytest.mark.slow
@pytest.mark.parametrize("solver", [cg, bicgstab, gmres])
def test_trees(solver: Callable[..., Any]) -> None:
    def operator(tree: Any) -> Any:
        return {"u": 3 * tree["u"] + vnp.sum(tree["v"]), "v": 5 * tree["v"] + tree["u"]}

    b = {"u": np.array(1.0), "v": np.array([[1.0, 2.0]])}
    x, _ = solver(operator, b, tol=1e-12)
    for key, value in operator(x).items():
        close(value, b[key])
    with pytest.raises(ValueError, match="structure"):
        solver(operator, b, x0=1.0)
    with pytest.raises(ValueError, match="shapes"):
        solver(operator, b, x0={"u": np.zeros(2), "v": np.zeros((1, 2))})


@pytest.mark.slow
def test_methods_of_gmres() -> None:
    want = np.linalg.solve(GENERAL, B)
    for method in ("batched", "incremental"):
        for restart in (3,):
            x, info = gmres(
                GENERAL, B, tol=1e-12, restart=restart, maxiter=200, solve_method=method
            )
            close(x, want)
            assert int(info) == 0
    singular = gmres(np.full((2, 2), np.nan), np.ones(2))
    assert int(singular[1]) == -1
    close(gmres(np.eye(6), B)[0], B)  # which breaks down at once


def test_integers_are_floats() -> None:
    x, _ = cg(np.array([[4, 1], [1, 3]]), np.array([1, 2]), tol=1e-12)
    close(x, [1 / 11, 7 / 11])


def test_wrong_operators() -> None:
    with pytest.raises(ValueError, match="square"):
        cg(np.ones((2, 3)), np.ones(3))
    with pytest.raises(TypeError, match="a function or ndarray, a square matrix"):
        cg(3.0, np.ones(3))
    with pytest.raises(ValueError, match="method must be"):
        gmres(GENERAL, B, solve_method="other")
    with pytest.raises(TypeError, match=r"matvec\(\) output shapes must match b"):
        cg(lambda x: x[:2], np.ones(3))


def rosenbrock(x: Any) -> Any:
    return vnp.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def himmelblau(p: Any) -> Any:
    x, y = p
    return (x**2 + y - 11) ** 2 + (x + y**2 - 7) ** 2


def matyas(p: Any) -> Any:
    x, y = p
    return 0.26 * (x**2 + y**2) - 0.48 * x * y


def eggholder(p: Any) -> Any:
    x, y = p
    first = -(y + 47) * vnp.sin(vnp.sqrt(abs(x / 2 + y + 47)))
    return first - x * vnp.sin(vnp.sqrt(abs(x - (y + 47))))


@pytest.mark.slow
@pytest.mark.parametrize("method", ["BFGS", LIMITED])
@pytest.mark.parametrize(
    ("fun", "x0", "minimum"),
    [
        (rosenbrock, np.zeros(2), 0.0),
        (rosenbrock, np.array([1.3, 0.7, 0.8, 1.9]), 0.0),
        (himmelblau, np.ones(2), 0.0),
        (matyas, np.array([4.0, -7.0]), 0.0),
        (eggholder, np.array([100.0, 100.0]), None),
    ],
)
def test_minima(method: str, fun: Any, x0: np.ndarray, minimum: float | None) -> None:
    actual = minimize(fun, x0, method=method, options={"gtol": 1e-6})
    assert bool(actual.success)
    gradient = np.asarray(verax.grad(fun)(actual.x))
    close(gradient, actual.jac, 1e-9)
    if minimum is None:
        want = scipy.optimize.minimize(lambda x: float(fun(x)), x0, method="BFGS")
        assert float(actual.fun) <= float(fun(x0))
        assert np.abs(gradient).max() < 1e-3
        assert want.fun < 0
    else:
        close(actual.fun, minimum, 1e-6)
    assert 0 < int(actual.nit) <= int(actual.nfev) == int(actual.njev)


@pytest.mark.slow
def test_minimum_of_one_precision_and_under_transformations() -> None:
    with verax.enable_x64(False):
        actual = minimize(rosenbrock, np.zeros(2, np.float32), method="BFGS")
        assert actual.x.dtype == np.float32
        close(actual.x, np.ones(2), 1e-2)
        compiled = verax.jit(lambda x: minimize(rosenbrock, x, method="BFGS").x)
        close(compiled(np.zeros(2, np.float32)), actual.x, 1e-2)
    many = verax.vmap(lambda x: minimize(himmelblau, x, method="BFGS").fun)(
        np.array([[1.0, 1.0], [-3.0, -3.0], [3.0, 2.0]])
    )
    close(many, np.zeros(3), 1e-6)

    def shifted(x: Any, a: Any, b: Any) -> Any:
        return vnp.sum((x - a) ** 2) + b

    actual = minimize(
        shifted, np.zeros(3), (vnp.arange(3.0), 1.0), method="bfgs", tol=1e-8
    )
    close(actual.x, np.arange(3.0))
    close(actual.hess_inv, 0.5 * np.eye(3), 1)


@pytest.mark.parametrize("method", ["bfgs", LIMITED])
def test_minimum_among_complex_numbers(method: str) -> None:
    place = np.array([1, 2 - 3j, -5j])

    def distance(z: Any, scale: Any) -> Any:
        return vnp.sum(scale * vnp.abs(z - place) ** 2)

    actual = minimize(distance, np.zeros(3, complex), (2.0,), method=method)
    assert bool(actual.success)
    np.testing.assert_allclose(actual.x, place, atol=1e-4)
    assert actual.jac.dtype == actual.x.dtype
    if actual.hess_inv is not None:
        assert actual.hess_inv.shape == (6, 6)


def test_searches_that_end_early() -> None:
    few = minimize(rosenbrock, np.zeros(2), method="BFGS", options={"maxiter": 3})
    assert (int(few.status), int(few.nit), bool(few.success)) == (1, 3, False)
    few = minimize(rosenbrock, np.zeros(2), method=LIMITED, options={"maxfun": 4})
    assert int(few.status) == 2
    none = minimize(rosenbrock, np.ones(2), method="BFGS")
    assert (int(none.nit), bool(none.success)) == (0, True)
    lost = minimize(lambda x: x[0] * np.nan, np.ones(1), method="BFGS")
    assert not bool(lost.success)


def test_wrong_calls_of_minimize() -> None:
    with pytest.raises(ValueError, match="method must be"):
        minimize(rosenbrock, np.ones(2), method="Newton")
    with pytest.raises(ValueError, match="options"):
        minimize(rosenbrock, np.ones(2), method="BFGS", options={"disp": True})
    with pytest.raises(ValueError, match="vector"):
        minimize(rosenbrock, np.ones((2, 2)), method="BFGS")
    with pytest.raises(TypeError, match="floats"):
        minimize(rosenbrock, np.ones(2, np.int32), method="BFGS")
    with pytest.raises(TypeError, match="tuple"):
        minimize(rosenbrock, np.ones(2), 3.0, method="BFGS")  # type: ignore[arg-type]
