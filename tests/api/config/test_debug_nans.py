"""debug_nans and debug_infs: operations raise at once, programs say where."""

import inspect
import os
import pickle
import subprocess
import sys
import threading
from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from verax import lax


def root_or_zero(x: Any) -> Any:
    return vnp.where(x > 0, vnp.sqrt(x), 0.0)


def caught(fun: Any, *args: Any) -> Any:
    """The finding of the error that `fun` raises."""
    with pytest.raises(FloatingPointError) as caught:
        fun(*args)
    assert str(caught.value)
    return caught.value.finding  # type: ignore[attr-defined]  # what NonFinite has


def test_eager_operations_raise_at_once() -> None:
    def f(x: Any) -> Any:
        return vnp.log(x)

    assert np.isnan(f(-1.0))
    with verax.debug_nans():
        finding = caught(f, -1.0)
        assert finding.primitive == "log"
        assert finding.source.line == inspect.getsourcelines(f)[1] + 1
        assert float(f(0.0)) == -np.inf
    assert np.isnan(f(-1.0))


def test_jitted_calls_name_the_equation() -> None:
    def f(x: Any, y: Any) -> Any:
        z = x["w"] - y
        return vnp.sum(vnp.sqrt(z) * 2)

    jitted = verax.jit(f)
    args = {"w": vnp.ones(3)}, 2.0
    assert np.isnan(jitted(*args))
    with verax.debug_nans():
        for _ in range(2):  # the second call finds the program in a cache
            finding = caught(jitted, *args)
            assert finding.primitive == "sqrt"
            assert finding.source.line == inspect.getsourcelines(f)[1] + 2
        assert float(jitted(args[0], 0.0)) == 6.0
        assert float(jitted(args[0], y=0.0)) == 6.0
    assert np.isnan(jitted(*args))


@pytest.mark.slow
@pytest.mark.parametrize("outer", [lambda f: f, verax.jit])
@pytest.mark.parametrize("inner", [lambda f: f, verax.jit])
def test_backward_pass(outer: Any, inner: Any) -> None:
    gradient = outer(verax.grad(inner(root_or_zero)))
    with verax.debug_nans():
        finding = caught(gradient, 0.0)
        assert finding.backward
        assert finding.source.function == "root_or_zero"
        assert float(gradient(4.0)) == 0.25


def test_loops_and_control_flow() -> None:
    def f(x: Any) -> Any:
        return lax.fori_loop(0, 5, lambda i, c: vnp.sqrt(c - 1), x)

    with verax.debug_nans():
        for fun in (f, verax.jit(f)):
            assert caught(fun, 3.0).levels[-1].step == 2


def test_a_nan_that_comes_in() -> None:
    with verax.debug_nans():
        finding = caught(verax.jit(lambda x: x + 1), np.array([1.0, np.nan]))
        assert finding.eqn is None
        assert finding.bad_inputs == ("argument x of <lambda>",)
        assert caught(vnp.negative, vnp.nan).bad_inputs == ("operand 0",)


def test_donated_arguments_are_kept_for_the_search() -> None:
    f = verax.jit(lambda x: vnp.log(x), donate_argnums=0)
    with verax.debug_nans():
        x: Any = vnp.array([-1.0, 2.0])
        finding = caught(f, x)
        np.testing.assert_array_equal(finding.operands[0], [-1.0, 2.0])
        assert x.is_deleted()


@pytest.mark.parametrize("wrap", [lambda f: f, verax.jit])
def test_infinities(wrap: Any) -> None:
    with verax.debug_infs():
        finding = caught(wrap(lambda x: vnp.divide(1.0, x)), 0.0)
        assert (finding.kind, finding.primitive) == ("infinity", "div")
        masked = wrap(lambda x: vnp.where(x > 0, x, -vnp.inf))
        assert float(masked(-1.0)) == -np.inf
        assert np.isnan(wrap(vnp.log)(-1.0))
        with verax.debug_nans():
            assert caught(wrap(vnp.log), -1.0).kind == "NaN"


def test_masked_attention_has_no_nan() -> None:
    @verax.jit
    def f(x: Any) -> Any:
        return verax.nn.softmax(vnp.where(x > 0, x, -vnp.inf))

    with verax.debug_nans(), verax.debug_infs():
        assert float(f(vnp.array([1.0, -1.0]))[1]) == 0.0


def test_options_are_config() -> None:
    assert verax.config.debug_nans is False
    verax.config.update("jax_debug_nans", True)
    try:
        assert caught(vnp.log, -1.0).primitive == "log"
        with verax.debug_nans(False):
            assert np.isnan(vnp.log(-1.0))
        with verax.default_device(verax.devices()[0]):
            assert caught(vnp.log, -1.0).primitive == "log"
    finally:
        verax.config.update("debug_nans", False)
    assert np.isnan(vnp.log(-1.0))
    with pytest.raises(TypeError, match="takes bool"):
        verax.config.update("debug_nans", "yes")


def test_other_threads_are_left_alone() -> None:
    seen: list[Any] = []
    with verax.debug_nans():
        thread = threading.Thread(target=lambda: seen.append(vnp.log(-1.0)))
        thread.start()
        thread.join()
    assert np.isnan(seen[0])


def test_programs_with_effects_run_once() -> None:
    calls: list[Any] = []

    @verax.jit
    def f(x: Any) -> Any:
        verax.experimental.io_callback(calls.append, None, x)
        return vnp.log(x)

    with verax.debug_nans():
        with pytest.raises(FloatingPointError, match="find_nans"):
            f(-1.0)
        verax.effects_barrier()
    assert len(calls) == 1


def test_the_error_can_be_pickled() -> None:
    error = pickle.loads(pickle.dumps(verax.debug.NonFinite("NaN in f")))
    assert isinstance(error, verax.debug.NonFinite)
    assert (str(error), error.finding) == ("NaN in f", None)


@pytest.mark.slow
@pytest.mark.parametrize("prefix", ["VERAX", "JAX"])
def test_environment(prefix: str) -> None:
    program = "import verax, verax.numpy as vnp; vnp.log(-1.0)"
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, f"{prefix}_DEBUG_NANS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "invalid value (nan) encountered in log" in done.stderr
