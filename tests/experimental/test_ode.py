"""`verax.experimental.ode.odeint` against closed solutions and its own differences."""

from typing import Any

import numpy as np
import pytest
import scipy.linalg

import verax
from verax.experimental.ode import odeint

TIMES = np.array([0.0, 0.5, 2.0, 3.0])
A = np.array([[-0.5, 2.0], [-2.0, -0.1]])


@pytest.fixture(autouse=True)
def double() -> Any:
    with verax.enable_x64(True):
        yield


def linear(y: Any, t: Any, a: Any) -> Any:
    return a @ y


@pytest.mark.slow
def test_linear_systems() -> None:
    start = np.array([1.0, 0.5])
    want = np.stack([scipy.linalg.expm(A * t) @ start for t in TIMES])
    np.testing.assert_allclose(odeint(linear, start, TIMES, A), want, 1e-6, 1e-7)
    compiled = verax.jit(lambda y, a: odeint(linear, y, TIMES, a, rtol=1e-10))
    np.testing.assert_allclose(compiled(start, A), want, 1e-7, 1e-8)
    many = verax.vmap(lambda y: odeint(linear, y, TIMES, A))(
        np.stack([start, 2 * start])
    )
    np.testing.assert_allclose(many[1], 2 * want, 1e-6, 1e-7)
    turning = odeint(lambda y, t: 2j * y, np.array(1.0 + 0j), TIMES)
    np.testing.assert_allclose(turning, np.exp(2j * TIMES), 1e-6)


def test_trees_and_time() -> None:
    def f(state: Any, t: Any) -> Any:
        return {"x": state["v"], "v": -state["x"] + 0 * t}

    actual = odeint(f, {"x": np.array(0.0), "v": np.array(1.0)}, TIMES)
    np.testing.assert_allclose(actual["x"], np.sin(TIMES), 1e-6, 1e-7)
    np.testing.assert_allclose(actual["v"], np.cos(TIMES), 1e-6, 1e-7)
    grown = odeint(lambda y, t: 2 * t, np.array(0.0), TIMES)
    np.testing.assert_allclose(grown, TIMES**2, 1e-7, 1e-7)
    with verax.enable_x64(False):
        single = odeint(lambda y, t: -y, np.float32(1), TIMES.astype(np.float32))
        assert single.dtype == np.float32
        np.testing.assert_allclose(single, np.exp(-TIMES), 1e-4)
    assert odeint(f, {"x": np.array(0.0), "v": np.array(1.0)}, TIMES[:1])[
        "x"
    ].shape == (1,)


def test_bad_input_and_limits() -> None:
    stopped = odeint(lambda y, t: -y, np.array(1.0), TIMES, mxstep=1)
    assert np.isnan(np.asarray(stopped)[1:]).any()
    short = odeint(lambda y, t: -y, np.array(1.0), TIMES, hmax=0.05)
    np.testing.assert_allclose(short, np.exp(-TIMES), 1e-7)
    with pytest.raises(TypeError, match="float dtype"):
        odeint(lambda y, t: -y, np.array(1.0), np.arange(3))
    with pytest.raises(ValueError, match="vector of times"):
        odeint(lambda y, t: -y, np.array(1.0), np.ones((2, 2)))
    with pytest.raises(TypeError, match="tree like y0"):
        odeint(lambda y, t: np.ones(3), np.ones(2), TIMES)
    with pytest.raises(TypeError, match="function"):
        odeint(3.0, np.ones(2), TIMES)  # type: ignore[arg-type]  # the point of it
    with pytest.raises(TypeError, match="y0"):
        odeint(lambda y, t: y, np.array(1), TIMES)
