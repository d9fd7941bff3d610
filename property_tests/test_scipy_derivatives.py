"""Derivatives of `verax.scipy` and of odeint are the slopes of chords."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from tests.experimental.test_ode import TIMES, A as TURNING
from tests.scipy.special.test_further_functions import UNARY
from tests.scipy.test_matrices import A, B as SMALL, C
from tests.scipy.test_solvers import SOLVERS, B
from tests.scipy.test_stats import LINES, functions
from verax.experimental.ode import odeint
from verax.scipy import linalg, special, stats


@pytest.fixture(autouse=True)
def double() -> Any:
    with verax.enable_x64(True):
        yield


@pytest.mark.parametrize(
    ("distribution", "function"), functions(LINES, ("logpdf", "cdf", "logsf", "ppf"))
)
def test_distributions(distribution: str, function: str) -> None:
    shapes = LINES[distribution][0]
    if function in ("cdf", "sf", "logcdf", "logsf") and distribution in ("beta",):
        shapes = ()
    x = 0.3 if distribution != "pareto" or function in ("ppf", "isf") else 3.0
    ours = getattr(getattr(stats, distribution), function)
    fixed = LINES[distribution][0][: len(LINES[distribution][0]) - len(shapes)]
    with verax.enable_x64(True):
        if fixed:
            verax.test_util.check_grads(
                lambda x, loc, s: ours(x, *fixed, loc, s), (x, 0.1, 1.2), 1, rtol=1e-5
            )
        else:
            verax.test_util.check_grads(ours, (x, *shapes, 0.1, 1.2), 1, rtol=1e-5)


@pytest.mark.parametrize(("solver", "a"), SOLVERS)
def test_derivatives_of_solutions(solver: Callable[..., Any], a: np.ndarray) -> None:
    def f(s: Any, b: Any) -> Any:
        return solver(lambda x: s * (vnp.asarray(a) @ x), b, tol=1e-13)[0]

    verax.test_util.check_grads(f, (1.1, B), 1, rtol=1e-5)


def test_odeint() -> None:
    factor = np.array(0.7)

    def f(y0: Any, times: Any, a: Any, b: Any) -> Any:
        def slope(y: Any, t: Any, a: Any, count: Any) -> Any:
            return b * vnp.tanh(a @ y) + vnp.sin(t) * count

        return odeint(slope, y0, times, a, np.int32(2), rtol=1e-10, atol=1e-10)

    args = (np.array([1.0, 0.5]), TIMES[:3], TURNING, factor)
    verax.test_util.check_grads(f, args, 1, ("rev",), rtol=1e-4, atol=1e-5)


def test_matrices() -> None:
    def root(a: Any) -> Any:
        return linalg.sqrtm(a).real

    a, b, c = A[:2, :2], SMALL[:2, :2], C[:2, :2]
    verax.test_util.check_grads(root, (a,), 2, ("rev",), rtol=1e-4)
    verax.test_util.check_grads(linalg.solve_sylvester, (a, b, c), 1, rtol=1e-4)
    verax.test_util.check_grads(lambda a: linalg.polar(a)[0], (a,), 1, rtol=1e-4)


@pytest.mark.parametrize("name", UNARY)
def test_special(name: str) -> None:
    x = np.array([0.21, 0.8]) if name != "spence" else np.array([0.21, 1.0 + 1e-9, 2.4])
    with verax.enable_x64(True):
        verax.test_util.check_grads(getattr(special, name), (x,), 1, rtol=1e-4)
    half = getattr(special, name)(np.float16(0.5))
    assert half.dtype == np.float16
