"""`jit(f).warm`: programs that threads compile, and calls that meet them."""

import gc
import os
import signal
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from tests.api.jit.test_threads import LONG, together
from verax.backend.programs import program
from verax.backend.runtime.background import JOBS
from verax.backend.runtime.errors import CompileError
from verax.backend.runtime.metrics import RECORDER

X = np.arange(5, dtype=np.float32)


class Gate:
    """A compiler that waits, but in the main thread, until it is opened."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.entered = threading.Semaphore(0)
        self.open = threading.Event()
        self.names: list[str] = []
        self.real = program.build
        monkeypatch.setattr(program, "build", self.build)

    def build(self, lowered: Any, *args: Any, **kwargs: Any) -> Any:
        self.names.append(lowered.name)
        if threading.current_thread() is threading.main_thread():
            return self.real(lowered, *args, **kwargs)
        self.entered.release()
        assert self.open.wait(LONG)
        return self.real(lowered, *args, **kwargs)

    def reached(self) -> None:
        """Wait until one more compilation is under way."""
        assert self.entered.acquire(timeout=LONG)


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Iterator[Gate]:
    actual = Gate(monkeypatch)
    yield actual
    actual.open.set()


@contextmanager
def compiling(count: int) -> Iterator[None]:
    """Within the block `count` programs are compiled."""
    before = RECORDER.counts["compiles"]
    yield
    assert RECORDER.counts["compiles"] - before == count


def shifted(by: float) -> Callable[[Any], Any]:
    """A function of its own program for each number."""
    return lambda x: vnp.sin(x) * by


def test_it_returns_at_once_and_can_be_asked(gate: Gate) -> None:
    f = verax.jit(shifted(3.5625))
    actual = f.warm(X)
    gate.reached()
    assert not actual.done()
    assert not actual.wait(0)
    for ask in (actual.result, actual.exception):
        with pytest.raises(TimeoutError, match="<lambda> has not ended within 0"):
            ask(0)
    gate.open.set()
    assert actual.wait(LONG)
    assert actual.done()
    assert actual.exception() is None
    assert isinstance(actual.result(), verax.stages.Compiled)
    assert actual.result() is actual.result()
    np.testing.assert_array_equal(actual.result()(X), f(X))
    assert repr(actual) == "Compilation(<lambda>: f32[5] -> f32[5])"
    assert f.warm(X).done()


def test_calls_wait_for_the_compilation_under_way(gate: Gate) -> None:
    f, g = (verax.jit(shifted(4.5625)) for _ in range(2))
    actual = f.warm(X)
    gate.reached()
    started = threading.Barrier(9)

    def work(i: int) -> Any:
        started.wait(LONG)
        return (f if i % 2 else g)(X).tolist() if i < 8 else gate.open.set()

    values = together(work, 9)[:8]
    assert values == [f(X).tolist()] * 8
    assert actual.done()
    assert gate.names == ["<lambda>"]


def test_the_same_program_is_begun_once(gate: Gate) -> None:
    f, g = (verax.jit(shifted(5.5625)) for _ in range(2))
    both = f.warm(X), g.warm(X), f.warm(verax.ShapeDtypeStruct((5,), np.float32))
    gate.open.set()
    assert all([found.wait(LONG) for found in both])
    assert len(gate.names) == 1


def test_a_call_does_not_wait_for_what_waits_for_a_thread(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(JOBS, "size", 1)
    first = verax.jit(shifted(6.5625)).warm(X)
    gate.reached()
    second = verax.jit(g := shifted(7.5625))
    actual = second.warm(X)
    np.testing.assert_allclose(second(X), g(X), rtol=1e-6)
    assert not actual.done()
    assert not first.done()
    gate.open.set()
    with compiling(1):  # the first
        assert actual.wait(LONG)


def test_programs_are_compiled_side_by_side(monkeypatch: pytest.MonkeyPatch) -> None:
    both, build = threading.Barrier(2), program.build

    def meeting(*args: Any, **kwargs: Any) -> Any:
        both.wait(LONG)  # broken, unless two are in here
        return build(*args, **kwargs)

    monkeypatch.setattr(JOBS, "size", 2)
    monkeypatch.setattr(program, "build", meeting)
    actual = [verax.jit(shifted(8.5625 + i)).warm(X) for i in range(4)]
    assert [x.exception(LONG) for x in actual] == [None] * 4


def test_errors_of_the_function_appear_at_once() -> None:
    def wrong(x: Any) -> Any:
        raise ValueError("wrong")

    with pytest.raises(ValueError, match="wrong"):
        verax.jit(wrong).warm(X)
    with pytest.raises(TypeError, match="x"):
        verax.jit(lambda x: x).warm("text")
    with pytest.raises(verax.LeakedTracer):
        verax.jit(lambda y: verax.jit(lambda x: x + y).warm(X))(1.0)


def test_errors_of_the_compiler_appear_at_the_result_and_at_each_call() -> None:
    f = verax.jit(lambda x: x * 9.5625, compiler_options={"xla_no_such_option": 1})
    actual = f.warm(X)
    for _ in range(2):
        with pytest.raises(CompileError, match="xla_no_such_option"):
            actual.result(LONG)
        with pytest.raises(CompileError, match="xla_no_such_option"):
            f(X)
    assert isinstance(actual.exception(), CompileError)
    assert isinstance(f.warm(X).exception(LONG), CompileError)


def test_a_failure_that_passes_is_tried_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    build = program.build

    def failing(*args: Any, **kwargs: Any) -> Any:
        raise MemoryError("none left")

    f = verax.jit(shifted(31.5625))
    monkeypatch.setattr(program, "build", failing)
    actual = f.warm(X)
    assert isinstance(actual.exception(LONG), MemoryError)
    monkeypatch.setattr(program, "build", build)
    assert f(X).shape == (5,)
    assert f.warm(X).exception(LONG) is None
    with pytest.raises(MemoryError):
        actual.result()


@pytest.mark.slow
@pytest.mark.usefixtures("few_objects")
def test_arguments_are_not_kept(gate: Gate) -> None:
    f = verax.jit(lambda x, y: x * 11.5625 + y["a"])
    arrays: list[Any] = [verax.jit(lambda: vnp.ones(7))() for _ in range(2)]
    seen = [weakref.ref(x.buffer) for x in arrays]
    actual = f.warm(arrays[0], {"a": arrays[1]})
    gate.reached()
    del arrays
    gc.collect()
    assert [ref() for ref in seen] == [None, None]
    gate.open.set()
    assert actual.exception(LONG) is None


@pytest.mark.usefixtures("few_objects")
def test_what_was_closed_over_dies_with_the_function() -> None:
    def begun(held: Any) -> Any:
        return verax.jit(lambda x: vnp.cos(x) * held).warm(np.float32(2))

    array = vnp.ones(11)
    seen = weakref.ref(array)
    assert begun(array).wait(LONG)
    del array
    gc.collect()
    assert seen() is None


def scaled(x: Any, *, n: int, by: Any) -> Any:
    return {"out": x["a"] * n + by, "n": x["b"]}


PAIR = {"a": X, "b": np.int32(3)}
CASES: dict[str, tuple[Callable[[], Any], tuple[Any, ...], dict[str, Any]]] = {
    "static": (
        lambda: verax.jit(scaled, static_argnames="n"),
        (PAIR,),
        {"n": 12, "by": 0.5625},
    ),
    "options": (
        lambda: verax.jit(
            lambda x: x + 13.5625,
            compiler_options={"xla_backend_optimization_level": 1},
            calls="keep",
            keep_unused=True,
        ),
        (X,),
        {},
    ),
    "gradient": (
        lambda: verax.jit(verax.value_and_grad(lambda x: vnp.sum(x**3) * 14.5625)),
        (X,),
        {},
    ),
    "device": (
        lambda: verax.jit(lambda x: x - 15.5625, device=verax.devices()[0]),
        (X,),
        {},
    ),
    "constants": (lambda: verax.jit(lambda x: x * vnp.arange(5.0) - 16.5), (X,), {}),
    "callback": (
        lambda: verax.jit(lambda x: verax.pure_callback(np.cbrt, x, x) * 17.5625),
        (X,),
        {},
    ),
    "collective": (
        lambda: verax.jit(
            verax.vmap(lambda x: verax.lax.psum(x, "i") * 18.5625, axis_name="i")
        ),
        (X,),
        {},
    ),
    "loop": (
        lambda: verax.jit(
            lambda x: verax.lax.fori_loop(0, 9, lambda i, y: y * 0.5 + i, x)
        ),
        (X,),
        {},
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_a_call_finds_the_program(name: str) -> None:
    make, args, kwargs = CASES[name]
    f = make()
    assert f.warm(*args, **kwargs).exception(LONG) is None
    with compiling(0):
        actual = f(*args, **kwargs)
    f.clear_cache()
    program.MADE.cache_clear()
    with compiling(1):
        due = make()(*args, **kwargs)
    for one, other in zip(
        verax.tree.leaves(actual), verax.tree.leaves(due), strict=True
    ):
        np.testing.assert_array_equal(one, other)


def test_donation_is_as_at_a_call() -> None:
    f = verax.jit(lambda x: x + 19.5625, donate_argnums=0)
    x: Any = verax.jit(lambda: vnp.ones(100))()
    assert f.warm(x).exception(LONG) is None
    assert not x.is_deleted()
    with compiling(0):
        y = f(x)
    assert x.is_deleted()
    assert set(y.tolist()) == {20.5625}


def test_custom_derivatives_and_references() -> None:
    @verax.custom_vjp
    def cube(x: Any) -> Any:
        return x**3

    cube.defvjp(lambda x: (x**3, x), lambda x, ct: (ct * 20.5625,))
    f = verax.jit(verax.grad(cube))
    assert f.warm(2.0).exception(LONG) is None
    with compiling(0):
        assert float(f(2.0)) == 20.5625

    def step(ref: Any, x: Any) -> Any:
        ref[...] = ref[...] * 21.5 + x
        return ref[...].sum()

    ref, g = verax.new_ref(vnp.ones(3)), verax.jit(step)
    actual = g.warm(ref, 1.0)
    assert actual.exception(LONG) is None
    with compiling(0):
        assert float(g(ref, 1.0)) == 67.5
    assert float(actual.result()(ref, 1.0)) == 67.5 * 21.5 + 3


def test_the_configuration_is_that_of_the_call_of_warm(gate: Gate) -> None:
    f = verax.jit(lambda x: vnp.sin(x) * 22.5625)
    wide = np.arange(5, dtype=np.float64)
    with verax.enable_x64():
        actual = f.warm(wide)
    gate.open.set()
    assert actual.result(LONG).out_avals.dtype == np.float64
    with verax.enable_x64(), compiling(0):
        assert f(wide).dtype == np.float64
    with compiling(1):
        assert f(wide).dtype == np.float32


def test_the_thread_has_the_options_of_the_caller(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen, build = [], program.build

    def looking(*args: Any, **kwargs: Any) -> Any:
        seen.append((verax.config.log_compiles, verax.config.debug_nans))
        return build(*args, **kwargs)

    monkeypatch.setattr(program, "build", looking)
    f = verax.jit(shifted(23.5625))
    with verax.log_compiles(), verax.debug_nans():
        actual = f.warm(X)
    assert actual.exception(LONG) is None
    assert verax.jit(shifted(24.5625)).warm(X).exception(LONG) is None
    assert seen == [(True, True), (False, False)]


@pytest.mark.slow
def test_caches_are_cleared_while_it_compiles(gate: Gate) -> None:
    f = verax.jit(shifted(25.5625))
    actual = f.warm(X)
    gate.reached()
    verax.clear_caches()
    gate.open.set()
    values = f(X)
    assert actual.exception(LONG) is None
    np.testing.assert_array_equal(values, actual.result()(X))


def test_an_interrupt_ends_the_wait_and_nothing_else(gate: Gate) -> None:
    f = verax.jit(shifted(26.5625))
    actual = f.warm(X)
    gate.reached()
    for wait in (actual.result, lambda: f(X)):
        main = threading.main_thread().ident
        assert main is not None
        timer = threading.Timer(0.2, signal.pthread_kill, (main, signal.SIGINT))
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            wait()
        timer.join()
    assert not actual.done()
    gate.open.set()
    with compiling(1):
        assert f(X).shape == (5,)
        assert actual.exception(LONG) is None


def ran(script: str) -> str:
    """What a script prints in a process that ends well."""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=300
    )
    assert (done.returncode, done.stderr) == (0, ""), done
    return done.stdout


LEAVING = """
import numpy as np, verax, verax.numpy as vnp
def deep(x, k):
    for i in range(60):
        x = vnp.sin(x + k) * i
    return x
for k in range(12):
    verax.jit(deep).warm(np.ones(3, np.float32), np.full(k, 1, np.float32).sum() + k)
    verax.jit(lambda x, k=k: deep(x, k)).warm(np.ones(k + 3, np.float32))
print("leaving")
"""


@pytest.mark.slow
def test_a_process_may_exit_while_it_compiles() -> None:
    for _ in range(3):
        assert ran(LEAVING) == "leaving\n"


DROPPED = """
import atexit, threading
import numpy as np, verax
from verax.backend.programs import program
from verax.backend.runtime.background import JOBS
built, entered, build = [], threading.Event(), program.build
def slow(lowered, *args, **kwargs):
    built.append(lowered.name)
    entered.set()
    threading.main_thread().join()
    return build(lowered, *args, **kwargs)
program.build, JOBS.size = slow, 1
found = [verax.jit(lambda x, k=k: x * k).warm(1.0) for k in range(5)]
entered.wait()
def told():
    print(len(built), [x.done() for x in found])
    print([str(x.exception()) for x in found])
atexit.register(told)
"""


@pytest.mark.slow
def test_a_process_that_exits_drops_what_waits() -> None:
    dropped = "the work was not begun before the process ended"
    assert ran(DROPPED) == f"1 {[True] * 5}\n{['None', *[dropped] * 4]}\n"


FORKED = """
import os, threading, warnings
import numpy as np, verax
from verax.backend.programs import program
warnings.simplefilter("ignore")
entered, opened, build = threading.Event(), threading.Event(), program.build
def slow(*args, **kwargs):
    entered.set()
    opened.wait()
    return build(*args, **kwargs)
program.build = slow
f = verax.jit(lambda x: x * 2)
found = f.warm(1.0)
entered.wait()
if (child := os.fork()) == 0:
    for ask in (found.result, found.wait, found.exception, lambda: f.warm(2)):
        try:
            ask()
        except RuntimeError as error:
            assert "was forked" in str(error), error
        else:
            os._exit(1)
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
opened.set()
print(float(found.result()(1.0)), float(f(1.0)))
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_forked_process_does_not_wait_for_a_thread_that_it_lacks() -> None:
    assert ran(FORKED) == "2.0 2.0\n"
