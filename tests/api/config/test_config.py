"""Configuration: global, per block, per thread, from the environment."""

import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp

SOURCES = Path(__file__).parents[3] / "src"


def test_32_bits_by_default_and_x64_in_a_block() -> None:
    assert vnp.zeros(2).dtype == np.float32
    assert vnp.arange(2).dtype == np.int32
    with verax.enable_x64():
        assert verax.config.enable_x64 is True
        assert vnp.zeros(2).dtype == np.float64
        assert vnp.arange(2).dtype == np.int64
        with verax.enable_x64(False):
            assert vnp.zeros(2).dtype == np.float32
    assert verax.config.read("jax_enable_x64") is False


def test_update_is_global_and_a_block_is_of_its_thread() -> None:
    seen = []

    def look() -> None:
        seen.append(vnp.zeros(1).dtype)

    with verax.enable_x64():
        thread = threading.Thread(target=look)
        thread.start()
        thread.join()
    assert seen == [np.float32]
    verax.config.update("jax_enable_x64", True)
    try:
        thread = threading.Thread(target=look)
        thread.start()
        thread.join()
        assert seen[1:] == [np.float64]
    finally:
        verax.config.update("enable_x64", False)


def test_a_block_ends_with_an_error_too() -> None:
    with pytest.raises(KeyError), verax.enable_x64():
        raise KeyError("x")
    assert not verax.config.enable_x64


def test_strict_promotion() -> None:
    with (
        verax.numpy_dtype_promotion("strict"),
        pytest.raises(Exception, match=r"(?i)promot"),
    ):
        vnp.ones(2, vnp.float32) + vnp.ones(2, vnp.int32)
    assert (vnp.ones(2, vnp.float32) + vnp.ones(2, vnp.int32)).dtype == np.float32
    with verax.numpy_dtype_promotion("strict"):
        assert (vnp.ones(2, vnp.float32) + 1).dtype == np.float32


def run(code: str, **environment: str) -> str:
    """What a fresh process prints."""
    path = os.pathsep.join([str(SOURCES), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": path, **environment},
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    return done.stdout + done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("name", ["VERAX_ENABLE_X64", "JAX_ENABLE_X64"])
def test_the_environment(name: str) -> None:
    code = "import verax; print(verax.numpy.zeros(1).dtype)"
    assert run(code, **{name: "true"}) == "float64\n"
    assert run(code, **{name: "0"}) == "float32\n"


@pytest.mark.slow
def test_import_prints_nothing_and_starts_no_backend() -> None:
    code = (
        "import sys, verax; from verax.backend.runtime import client;"
        "assert 'jax' not in sys.modules;"
        "assert 'hypothesis' not in sys.modules;"
        "assert client.SLOT.client is None;"
        "verax.numpy.ones(3) + 1;"
        "assert client.SLOT.client is None;"
        "assert client.default_client() is client.SLOT.client"
    )
    assert not run(code)


def test_a_call_sees_what_another_thread_changes_for_all() -> None:
    """Also while its own thread has an option of its own, in which calls are kept."""
    double = verax.jit(lambda x: x * 2)
    x = np.float64(1.5)

    def change(value: bool) -> None:
        thread = threading.Thread(
            target=lambda: verax.config.update("enable_x64", value)
        )
        thread.start()
        thread.join()

    with verax.default_matmul_precision("highest"):
        for _ in range(2):
            for wide, due in ((False, np.float32), (True, np.float64)):
                change(wide)
                try:
                    assert [double(x).dtype for _ in range(3)] == [due] * 3
                finally:
                    change(False)
    assert double(x).dtype == np.float32


def test_a_precision_is_checked_when_it_is_set() -> None:
    with pytest.raises(ValueError, match="must be one of default"):
        verax.config.update("jax_default_matmul_precision", "huge")
    with pytest.raises(ValueError, match="must be one of"):
        verax.default_matmul_precision("huge").__enter__()
    with verax.default_matmul_precision("BF16_BF16_F32"):
        assert verax.config.default_matmul_precision == "BF16_BF16_F32"


def test_a_thread_that_traces_does_not_change_the_calls_of_others() -> None:
    started, finish, traced = threading.Event(), threading.Event(), []
    double = verax.jit(lambda x: x * 2)
    assert double(1.5) == 3

    def slow(x: verax.Array) -> Any:
        started.set()
        assert finish.wait(60)
        traced.append(type(double(x)))
        return double(x)

    thread = threading.Thread(target=verax.jit(slow), args=(1.5,))
    thread.start()
    try:
        assert started.wait(60)
        assert [double(1.5) == 3 for _ in range(3)] == [True] * 3
        assert double.explain(1.5).hit
    finally:
        finish.set()
        thread.join()
    assert traced != [type(double(1.5))]
    assert double(1.5) == 3


def test_calls_on_values_inside_a_trace_are_equations_each_time() -> None:
    double = verax.jit(lambda x: x * 2)
    two = vnp.float32(2)
    assert double(two) == 4

    def program() -> str:
        return str(verax.make_jaxpr(lambda x: x + double(two))(1.0))

    assert "jit" in program()
    assert program() == program()
    assert double(two) == 4
