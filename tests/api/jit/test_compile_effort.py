"""The option `compile_effort`: what it chooses, keys and results."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from verax import lax
from verax.api.config.config import from_environment, override
from verax.backend.runtime.client import local_devices
from verax.backend.xla.compile_options import EFFORTS, CompileOptions, jaxlib_options
from verax.rules.values.state import State, refresh

SMALL, LARGE = vnp.ones((4, 8)), vnp.ones((64, 64))


def level(effort: str | None, small: bool = False) -> int:
    options = CompileOptions(effort=effort).settled(small)
    debug = jaxlib_options(local_devices()[:1], options, "").executable_build_options
    return int(debug.debug_options.xla_backend_optimization_level)


def is_small(f: Any, *args: Any) -> bool:
    return verax.jit(f).lower(*args).module.small


def test_what_each_effort_asks_of_the_compiler() -> None:
    full = level("full")
    assert level("light") == 1
    assert level("fast") == 0
    assert full >= 2
    assert [level("auto", small) for small in (True, False)] == [1, full]
    assert level(None) == level("auto")
    with override("compile_effort", "fast"):
        assert level(None) == 0
        assert level("full") == full


@pytest.mark.parametrize(
    ("small", "f", "args"),
    [
        (True, lambda x: vnp.sin(x) @ x.T, (SMALL,)),
        (True, verax.grad(lambda x: verax.jit(vnp.tanh)(x).sum()), (SMALL,)),
        (True, lambda: 1.0, ()),
        (False, vnp.sin, (LARGE,)),
        (False, lambda x: x[:2, :2], (LARGE,)),
        (False, lambda x: verax.jit(lambda x: (x + LARGE).sum())(x), (SMALL[0, 0],)),
        (False, lambda x: vnp.broadcast_to(x, (64, 64)).sum(), (1.0,)),
        (False, lambda x: lax.fori_loop(0, 9, lambda i, c: c + 1, x), (1.0,)),
        (False, lambda x: lax.while_loop(lambda c: c < 9, lambda c: c + 1, x), (1.0,)),
        (True, lambda x: lax.cond(x > 0, vnp.sin, vnp.cos, x), (1.0,)),
    ],
)
def test_programs_on_small_arrays_without_loops_are_small(
    small: bool, f: Any, args: tuple[Any, ...]
) -> None:
    assert is_small(f, *args) is small


@pytest.mark.slow
def test_every_effort_has_the_same_results() -> None:
    def f(x: Any) -> Any:
        y = verax.nn.softmax(vnp.sin(x) @ x.T, axis=0)
        z, _ = lax.scan(lambda c, r: (vnp.tanh(c) + r.sum(), None), 0.5, y)
        return vnp.sort(y, axis=1), vnp.cumsum(y), z, vnp.linalg.det(y + vnp.eye(5))

    x = np.linspace(-2.0, 2.0, 35, dtype=np.float32).reshape(5, 7)
    with override("compile_effort", "full"):
        expected = verax.jit(f)(x)
    for effort in EFFORTS:
        with override("compile_effort", effort):
            actual = verax.jit(f)(x)
        for a, b in zip(actual, expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-6)


def test_another_effort_is_another_program(tmp_path: Path) -> None:
    f = verax.jit(lambda x: vnp.sin(x) * 2.0)
    with (
        override("enable_compilation_cache", True),
        override("compilation_cache_dir", str(tmp_path)),
        override("persistent_cache_min_compile_time_secs", 0.0),
    ):
        for number, effort in enumerate(("full", "light", "fast"), start=1):
            with override("compile_effort", effort):
                f(SMALL)
                f(SMALL)
            assert len(list(tmp_path.glob("*.verax"))) == number
        with override("compile_effort", "auto"):
            f(SMALL)  # is "light" here
        assert len(list(tmp_path.glob("*.verax"))) == 3


def test_options_of_a_function_come_before_the_effort() -> None:
    options = CompileOptions(
        effort="fast",
        overrides=(("xla_backend_optimization_level", 3),),
        cpu_lowerings="xla",  # with XLA's vectors
    )
    made = jaxlib_options(local_devices()[:1], options, "")
    assert list(made.env_option_overrides) == [("xla_backend_optimization_level", 3)]


@pytest.mark.parametrize("value", ["quick", None, 0, True])
def test_other_values_are_refused(value: Any) -> None:
    with pytest.raises(ValueError, match="one of auto, full, light, fast, not"):
        verax.config.update("compile_effort", value)
    assert verax.config.compile_effort == "auto"
    with pytest.raises(ValueError, match="effort must be one of"):
        CompileOptions(effort=value or "")


def test_the_environment_is_read_and_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    before = State.compile_effort
    try:
        monkeypatch.setenv("VERAX_COMPILE_EFFORT", "fast")
        from_environment()
        assert verax.config.compile_effort == "fast"
        monkeypatch.setenv("VERAX_COMPILE_EFFORT", "fastest")
        with pytest.raises(ValueError, match="compile_effort must be one of"):
            from_environment()
    finally:
        State.compile_effort = before
        refresh()
