"""Tracebacks show the user's lines, whatever raised and wherever it was called."""

import asyncio
import contextlib
import gc
import importlib
import inspect
import os
import pickle
import re
import subprocess
import sys
import textwrap
import traceback
import warnings
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Never

import numpy as np
import pytest

import verax
import verax.lax as lax
import verax.numpy as vnp
from tests.jax.programs import run_python
from verax.api.config.config import override
from verax.api.config.tracebacks import LEFT_OUT, UnfilteredStackTrace
from verax.rules.values.state import LIBRARY

P = verax.sharding.PartitionSpec
MODES = ("quiet_remove_frames", "remove_frames", "tracebackhide")
MESH = verax.make_mesh((1,), ("i",))


@pytest.fixture(autouse=True)
def filtering(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As for users; other tests, and the processes they start, show all frames."""
    monkeypatch.delenv("VERAX_TRACEBACK_FILTERING", raising=False)
    before = verax.config.read("traceback_filtering")
    verax.config.update("traceback_filtering", "auto")
    yield
    verax.config.update("traceback_filtering", before)


def error_of(f: Callable[[], object]) -> BaseException:
    """What a call raises."""
    try:
        f()
    except BaseException as error:
        return error
    raise AssertionError("nothing was raised")


def functions(error: BaseException) -> list[str]:
    """The functions that a traceback shows; `/` stands before those of verax."""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    visible = [f for f in frames if "__tracebackhide__" not in f.f_locals]
    codes = [frame.f_code for frame in visible]
    return [
        ("/" if c.co_filename.startswith(LIBRARY) else "") + c.co_name for c in codes
    ]


def shown(error: BaseException) -> list[str]:
    """The functions of a traceback, from the one that `error_of` called on."""
    return functions(error)[1:]


def wrong(x: Any) -> Any:
    return x + vnp.ones(7)


def failing(*_: Any) -> Any:
    raise AssertionError("mine")


def through_rules(forward: Any, backward: Any) -> Callable[[], object]:
    """The gradient of a function with rules of its own."""
    f = verax.custom_vjp(lambda x: x)
    f.defvjp(forward, backward)
    return lambda: verax.grad(lambda x: f(x).sum())(vnp.ones(3))


@verax.jit
def inner(x: Any) -> Any:
    return verax.grad(failing)(x)


@verax.jit
def outer(x: Any) -> Any:
    return 2 + verax.vmap(inner)(x)


ones = vnp.ones(3)
CALLS: dict[str, Callable[[], object]] = {
    "jit": lambda: verax.jit(failing)(ones),
    "grad": lambda: verax.grad(failing)(1.0),
    "vmap": lambda: verax.vmap(failing)(ones),
    "jvp": lambda: verax.jvp(failing, (1.0,), (1.0,)),
    "vjp": lambda: verax.vjp(failing, 1.0),
    "linearize": lambda: verax.linearize(failing, 1.0),
    "hessian": lambda: verax.hessian(failing)(1.0),
    "checkpoint": lambda: verax.grad(verax.checkpoint(failing))(1.0),
    "make_jaxpr": lambda: verax.make_jaxpr(failing)(1.0),
    "eval_shape": lambda: verax.eval_shape(failing, 1.0),
    "lower": lambda: verax.jit(failing).lower(1.0),
    "shard_map": lambda: verax.shard_map(
        failing, mesh=MESH, in_specs=P(), out_specs=P()
    )(ones),
    "cond": lambda: lax.cond(True, failing, lambda: 1),
    "switch": lambda: lax.switch(1, [lambda: 1, failing]),
    "scan": lambda: lax.scan(failing, (), ones),
    "fori_loop": lambda: lax.fori_loop(0, 3, failing, ()),
    "while_loop": lambda: lax.while_loop(lambda _: True, failing, ()),
    "map": lambda: lax.map(failing, ones),
    "associative_scan": lambda: lax.associative_scan(failing, ones),
    "custom_root": lambda: lax.custom_root(failing, 0.0, failing, failing),
    "custom_linear_solve": lambda: lax.custom_linear_solve(failing, 1.0, failing),
    "custom_gradient": lambda: verax.grad(verax.custom_gradient(failing))(1.0),
    "forward rule": through_rules(failing, lambda _, ct: (ct,)),
    "backward rule": through_rules(lambda x: (x, None), failing),
    "tree.map": lambda: verax.tree.map(failing, (1, 2)),
    "vectorize": lambda: vnp.vectorize(failing)(ones),
    "apply_along_axis": lambda: vnp.apply_along_axis(failing, 0, ones),
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", CALLS)
def test_what_the_user_raises_has_the_users_frames(name: str, mode: str) -> None:
    with override("traceback_filtering", mode):
        error = error_of(CALLS[name])
    names = shown(error)
    assert names[0] in ("<lambda>", "test_what_the_user_raises_has_the_users_frames")
    assert names[-1] == "failing"
    assert not any(name.startswith("/") for name in names)
    assert (type(error), str(error)) == (AssertionError, "mine")


@pytest.mark.parametrize("mode", MODES)
def test_frames_between_two_of_ours_stay(mode: str) -> None:
    with override("traceback_filtering", mode):
        error = error_of(lambda: outer(ones))
    assert shown(error) == ["<lambda>", "outer", "inner", "failing"]


RAISED: dict[str, Callable[[], object]] = {
    "operator": lambda: ones + vnp.ones(4),
    "method": lambda: ones.sum(axis=3),
    "function": lambda: vnp.concatenate([ones, vnp.ones((3, 2))]),
    "index": lambda: ones["a"],
    "update": lambda: ones.at[0].set(vnp.ones(4)),
    "loop over a scalar": lambda: list(vnp.float32(1.0)),
    "arguments": lambda: verax.jit(lambda x: x)(*[1, 2]),
    "branches": lambda: lax.cond(True, lambda: 1, lambda: 1.0),
    "carry": lambda: lax.scan(lambda c, _: (c[:2], 1), ones, ones),
    "truth": lambda: verax.jit(lambda x: 1 if x else 2)(1.0),
    "value": lambda: verax.jit(lambda x: np.asarray(x))(1.0),
    "NaN": lambda: no_nan(lambda: verax.jit(vnp.log)(-1.0)),
    "trees": lambda: verax.tree.map(lambda a, b: a, (1, 2), (1,)),
    "option": lambda: verax.config.update("enable_x64", "yes"),
    "name": lambda: importlib.import_module("verax").__getattr__("no_such_name"),
    "keys": lambda: verax.random.normal(3),
    "mesh": lambda: verax.make_mesh((1 << 20,), ("i",)),
    "in NumPy": lambda: vnp.load("no such file"),
}


def no_nan(f: Callable[[], object]) -> object:
    with verax.debug_nans():
        return f()


@pytest.mark.parametrize("name", RAISED)
def test_what_we_raise_ends_in_the_users_line(name: str) -> None:
    error = error_of(RAISED[name])
    assert set(shown(error)) <= {"<lambda>", "no_nan"}
    line = inspect.getsourcelines(RAISED[name])[1]
    assert isinstance(error, Exception)
    (note,) = error.__notes__
    assert f"{__file__}:{line} (" in f"{error}{note}"
    assert note.endswith(LEFT_OUT)
    assert "For simplicity, verax has removed its internal frames" in note


SPACES = ("", ".numpy", ".lax", ".nn", ".random", ".numpy.linalg", ".numpy.fft")
LEFT_ALONE = frozenset(("clear_caches", "effects_barrier", "print_environment_info"))


@pytest.mark.parametrize("space", SPACES)
def test_no_public_function_shows_a_frame(space: str) -> None:
    """Whatever is called with what it cannot take, without naming it here."""
    module = importlib.import_module(f"verax{space}")
    raised = 0
    for name in sorted(set(module.__all__) - LEFT_ALONE):
        function = getattr(module, name)
        if not callable(function) or inspect.isclass(function):
            continue
        for args in ((object(),), (object(), object()), (ones, "x")):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    function(*args)
                except Exception as error:
                    names = functions(error)
                else:
                    continue
            assert not any(name.startswith("/") for name in names), function
            raised += 1
    assert raised > len(module.__all__) // 2


def test_classes_messages_causes_and_pickles_stay() -> None:
    def chained(x: Any) -> Any:
        try:
            return wrong(x)
        except verax.errors.ShapeError as error:
            raise RuntimeError("outer") from error

    error = error_of(lambda: verax.jit(chained)(ones))
    cause = error.__cause__
    assert isinstance(cause, verax.errors.ShapeError)
    assert shown(error) == ["<lambda>", "chained"]
    assert shown(cause) == ["wrong"]
    copied = pickle.loads(pickle.dumps(cause))
    assert type(copied) is type(cause)
    assert (str(copied), copied.__notes__) == (str(cause), cause.__notes__)
    assert str(error) == "outer"


def test_a_cause_that_we_raise_from_has_no_frame_of_ours() -> None:
    error = error_of(
        lambda: verax.jit(lambda x: verax.pure_callback(failing, x, x))(ones)
    )
    assert isinstance(error, verax.errors.CallbackError)
    printed = "".join(traceback.format_exception(error))
    assert "in failing" in printed
    assert LIBRARY not in printed


def test_the_whole_is_one_option_away() -> None:
    whole = error_of(lambda: with_mode("off", lambda: outer(ones)))
    assert sum(name.startswith("/") for name in shown(whole)) > 10
    assert not hasattr(whole, "__notes__")
    verax.config.update("jax_traceback_filtering", "off")
    assert sys.monitoring.get_tool(4) is None
    error = error_of(lambda: outer(ones))
    assert shown(error)[-20:] == shown(whole)[-20:]


def with_mode(mode: str, f: Callable[[], object]) -> object:
    with override("traceback_filtering", mode):
        return f()


def test_remove_frames_keeps_the_whole_as_the_cause() -> None:
    off = error_of(lambda: with_mode("off", lambda: outer(ones)))
    error = error_of(lambda: with_mode("remove_frames", lambda: outer(ones)))
    full = error.__cause__
    assert isinstance(full, UnfilteredStackTrace)
    names = functions(full)
    assert names[0] == "/__call__"
    assert names == shown(off)[-len(names) :]
    assert names.count("outer") == names.count("inner") == names.count("failing") == 1
    assert full.__cause__ is None
    assert "mine" in str(full)


@pytest.mark.slow
def test_environment(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text("import jax.numpy as jnp\njnp.ones(3) + jnp.ones(4)\n")
    lines = {}
    for mode in ("off", "auto"):
        env = {"JAX_TRACEBACK_FILTERING": mode}
        done = run_python("-m", "verax.jax", str(script), env=env)
        assert done.returncode == 1
        lines[mode] = done.stderr.splitlines()
    assert [line for line in lines["auto"] if line.startswith("  File")] == [
        f'  File "{script}", line 2, in <module>'
    ]
    assert "ShapeError" in lines["auto"][-2]
    assert lines["auto"][-1].startswith(f"Raised by the call at {script}:2 (<module>)")
    assert len(lines["off"]) > 20


# ------------------------------------------------------------------ what is left alone


def test_blocks_leave_the_users_errors_alone() -> None:
    for block in (verax.debug_nans, verax.enable_x64, lambda: verax.named_scope("a")):
        with pytest.raises(ValueError, match=r"^own$") as caught, block():
            raise ValueError("own")
        assert not hasattr(caught.value, "__notes__")


def test_interrupts_stay_whole() -> None:
    def interrupted(x: Any) -> Never:
        raise KeyboardInterrupt

    error = error_of(lambda: verax.jit(interrupted)(1.0))
    assert any(name.startswith("/") for name in shown(error))
    assert not hasattr(error, "__notes__")


def test_errors_without_verax_stay_as_they_are() -> None:
    def deep(n: int) -> int:
        return deep(n + 1)

    error = error_of(lambda: deep(0))
    assert isinstance(error, RecursionError)
    assert len(shown(error)) > 500
    assert not hasattr(error, "__notes__")


def test_endless_recursion_through_verax() -> None:
    def deep(x: Any) -> Any:
        return verax.jit(deep)(x)

    error = error_of(lambda: deep(1.0))
    assert isinstance(error, RecursionError)
    # Where no more calls are possible, nothing is filtered either.
    assert set(shown(error)[:-6]) == {"<lambda>", "deep"}


# --------------------------------------------------------------- where Python calls us


def test_threads_generators_and_coroutines() -> None:
    def in_a_thread() -> object:
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(verax.jit(wrong), ones).result()

    async def later() -> object:
        await asyncio.sleep(0)
        return wrong(ones)

    for call in (
        in_a_thread,
        lambda: list(wrong(x) for x in (ones,)),
        lambda: asyncio.run(later()),
        lambda: np.vectorize(lambda _: wrong(ones))(1),
        lambda: np.sum(ones, axis=4),
    ):
        error = error_of(call)
        assert isinstance(error, Exception)
        assert not any(name.startswith("/") for name in shown(error))
        assert len(error.__notes__) == 1


def test_an_error_raised_again_names_the_new_line() -> None:
    """And has one note."""
    error = error_of(lambda: wrong(ones))
    assert isinstance(error, Exception)
    before = list(error.__notes__)
    again = error_of(lambda: verax.tree.map(lambda _: reraise(error), (1,)))
    assert again is error
    assert error.__notes__ == before


def reraise(error: Exception) -> Never:
    raise error


@pytest.mark.parametrize("mode", MODES)
def test_nothing_is_kept_alive(mode: str) -> None:
    class Own:
        """Something that must not outlive its call."""

    def held(own: Own) -> None:
        with contextlib.suppress(verax.errors.ShapeError):
            wrong(ones)

    gc.disable()
    try:
        own = Own()
        kept = weakref.ref(own)
        with override("traceback_filtering", mode):
            held(own)
        del own
        assert kept() is None
    finally:
        gc.enable()


NOTEBOOK = """
    from IPython.core.interactiveshell import InteractiveShell
    from IPython.utils.capture import capture_output

    shell = InteractiveShell.instance(colors="nocolor")
    shell.run_cell("import verax\\n@verax.jit\\ndef f(x):\\n    return x + 1")
    with capture_output() as captured:
        shell.run_cell("f(1.0, 2)")
    print(captured.stdout)
"""


@pytest.mark.slow
def test_in_a_notebook_hidden_frames_are_skipped(tmp_path: Path) -> None:
    script = tmp_path / "notebook.py"
    script.write_text(textwrap.dedent(NOTEBOOK))
    done = subprocess.run(
        [sys.executable, script],
        env={**os.environ, "IPYTHONDIR": str(tmp_path / "ipython")},
        capture_output=True,
        text=True,
        check=True,
    )
    lines = done.stdout.strip().splitlines()
    assert len(lines) <= 16
    assert "----> 1 f(1.0, 2)" in lines
    assert (
        sum(line.startswith("File ") for line in lines) == 1
    )  # IPython shows the last
    assert any("skipping hidden" in line for line in lines)


@pytest.mark.slow
def test_pytest_shows_the_users_lines(tmp_path: Path) -> None:
    test = tmp_path / "test_it.py"
    test.write_text(
        "import verax, verax.numpy as jnp\n"
        "def test_it():\n"
        "    verax.jit(lambda x: x + jnp.ones(4))(jnp.ones(3))\n"
    )
    done = run_python(
        "-m", "pytest", "-q", "-p", "no:cacheprovider", test.name, cwd=tmp_path
    )
    assert "ShapeError" in done.stdout
    places = re.findall(r"^(\S+):\d+: ", done.stdout, re.MULTILINE)
    assert set(places) == {test.name}


@pytest.mark.slow
def test_without_a_free_number_tracebacks_are_whole(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import sys\n"
        "for number in (3, 4): sys.monitoring.use_tool_id(number, 'another')\n"
        "import verax\n"
        "verax.numpy.ones(3) + verax.numpy.ones(4)\n"
    )
    error = run_python(str(script)).stderr
    assert "ShapeError" in error
    assert LIBRARY in error
