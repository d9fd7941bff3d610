"""After any fault the state is what it was, and the same call works."""

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from verax import lax
from verax.backend.runtime.errors import CompileError, ExecutionError
from verax.rules.values.state import STATE


class Switch:
    """A function that fails while it is told to."""

    def __init__(self) -> None:
        self.fails = True

    def __call__(self, *args: Any) -> Any:
        if self.fails:
            raise ValueError("boom")
        return args[0] * 2


TRANSFORMED: dict[str, Callable[[Any], Callable[[Any], Any]]] = {
    "jit": verax.jit,
    "grad": lambda f: verax.grad(lambda x: f(x).sum()),
    "vmap": verax.vmap,
    "jit vmap grad": lambda f: verax.jit(verax.vmap(verax.grad(f))),
    "hessian": lambda f: verax.hessian(lambda x: f(x).sum()),
    "jvp": lambda f: lambda x: verax.jvp(f, (x,), (x,)),
    "vjp": lambda f: lambda x: verax.vjp(f, x)[0],
    "linearize": lambda f: lambda x: verax.linearize(f, x)[0],
    "make_jaxpr": lambda f: lambda x: verax.make_jaxpr(f)(x),
    "checkpoint": verax.checkpoint,
    "scan": lambda f: lambda x: lax.scan(lambda c, y: (f(c), y), 1.0, x),
    "while": lambda f: lambda x: lax.while_loop(lambda c: c[0] < 9, f, x),
    "cond": lambda f: lambda x: lax.cond(True, f, lambda x: x, x),
    "fori_loop": lambda f: lambda x: lax.fori_loop(0, 2, lambda i, c: f(c), x),
    "axis": lambda f: verax.vmap(lambda x: f(x) + lax.psum(x, "i"), axis_name="i"),
}


@pytest.mark.parametrize("name", TRANSFORMED)
def test_exceptions_of_the_user_leave_the_state(name: str) -> None:
    before = (STATE.interpreter, STATE.axes, STATE.context, STATE.enable_x64)
    switch, x = Switch(), np.ones(3, np.float32)
    call = TRANSFORMED[name](switch)
    for _ in range(2):
        with pytest.raises(ValueError, match=r"^boom$"):
            call(x)
        after = (STATE.interpreter, STATE.axes, STATE.context, STATE.enable_x64)
        assert after == before
    switch.fails = False
    assert call(x) is not None


def test_a_callback_that_fails_and_then_does_not() -> None:
    switch = Switch()
    kind = verax.ShapeDtypeStruct((3,), np.float32)
    call = verax.jit(lambda x: verax.pure_callback(switch, kind, x) + 1)
    for _ in range(2):
        with pytest.raises(Exception, match="raised ValueError: boom"):
            np.asarray(call(np.ones(3, np.float32)))
    switch.fails = False
    assert call(np.ones(3, np.float32)).tolist() == [3, 3, 3]


def test_refused_compilations() -> None:
    call = verax.jit(lambda x: x + 1, compiler_options={"xla_nope": 1})
    for _ in range(2):
        with pytest.raises(CompileError, match="xla_nope"):
            call(1.0)
    assert float(verax.jit(lambda x: x + 1)(1.0)) == 2


TOO_LARGE: dict[str, tuple[Callable[[], Any], str]] = {
    "eager": (lambda: vnp.zeros((1 << 45,)), "(?i)allocate .*TiB"),
    "result": (lambda: verax.jit(lambda: vnp.zeros((1 << 45,)))(), "GiB"),
    "on the way": (
        lambda: verax.jit(
            lambda x: vnp.sort(x[:, None] * vnp.ones((1, 1 << 30)), axis=0)[0, 0]
        )(np.ones(1 << 15, np.float32)).block_until_ready(),
        "GiB",
    ),
    "no number": (
        lambda: verax.jit(lambda: vnp.zeros((1 << 40, 1 << 40)))(),
        "too large for any memory",
    ),
}


@pytest.mark.parametrize("name", TOO_LARGE)
def test_what_does_not_fit_is_an_error_with_its_size(name: str) -> None:
    make, message = TOO_LARGE[name]
    with pytest.raises((MemoryError, RuntimeError), match=message):
        make()
    assert float(verax.jit(lambda x: x + 1)(1.0)) == 2


def test_endless_recursion_is_an_error() -> None:
    @verax.jit
    def endless(x: Any) -> Any:
        return endless(x) + 1

    before = STATE.interpreter
    with pytest.raises(RecursionError):
        endless(1.0)
    assert STATE.interpreter is before
    assert float(verax.jit(lambda x: x + 1)(1.0)) == 2


def test_donated_memory_is_used_again() -> None:
    x: Any = verax.jit(lambda: vnp.ones(1000))()
    address = x.unsafe_buffer_pointer()
    y: Any = verax.jit(lambda x: x + 1, donate_argnums=0)(x)
    assert y.unsafe_buffer_pointer() == address
    assert x.is_deleted()


@pytest.mark.parametrize("donated", [(0,), (0, 1)])
def test_one_array_in_two_places_cannot_be_donated(donated: tuple[int, ...]) -> None:
    call = verax.jit(lambda x, y: (x + 1, y + 2), donate_argnums=donated)
    x: Any = verax.jit(lambda: vnp.ones(4))()
    for _ in range(2):
        with pytest.raises(ExecutionError, match="Arguments 0 and 1 are the same"):
            call(x, x)
    assert x.tolist() == [1] * 4
    assert [y.tolist() for y in call(x, x.copy())] == [[2] * 4, [3] * 4]


def test_memory_of_numpy_is_not_given_away() -> None:
    values = np.ones(64, np.float32)
    add = verax.jit(lambda x: x + 1, donate_argnums=0)
    for given in (values, vnp.from_dlpack(values), vnp.asarray(values)):
        assert set(add(given).tolist()) == {2}
        assert set(values.tolist()) == {1}


INTERRUPTED = """
import os, signal, threading, time
import numpy as np, verax
# What runs in the background may have been told to ignore the signal.
signal.signal(signal.SIGINT, signal.default_int_handler)
calls = []
def slow(x):
    calls.append(1)
    if len(calls) == 1:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(10)
    return verax.numpy.sin(x) + 1
f = verax.jit(verax.vmap(slow))
x = np.zeros(3, np.float32)
for expected in (True, False):
    try:
        assert f(x).tolist() == [1, 1, 1]
        assert not expected
    except KeyboardInterrupt:
        assert expected
assert len(calls) == 2

loop = verax.jit(lambda n: verax.lax.while_loop(lambda i: i < n, lambda i: i + 1, 0))
assert int(loop(3)) == 3
timer = threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT))
timer.start()
try:
    int(loop(200_000_000))
    timer.join()
    time.sleep(1)
except KeyboardInterrupt:
    pass
assert int(loop(4)) == 4
print("usable")
"""


@pytest.mark.slow
def test_an_interrupt_leaves_the_process_usable() -> None:
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED], capture_output=True, text=True, timeout=300
    )
    assert done.stdout == "usable\n", done.stderr


FORKED = """
import os, sys, threading, traceback, warnings
import numpy as np, verax, verax.numpy as vnp
warnings.simplefilter("ignore")
double = verax.jit(lambda x: x * 2)
lowered = double.lower(np.ones(3, np.float32))
stage, fresh = lowered.compile(), lowered.compile()
data = stage.serialize()
x = double(np.ones(3, np.float32)).block_until_ready()
assert stage(x).tolist() == [4, 4, 4]
def refused(action):
    try:
        action()
    except RuntimeError as error:
        return "forked" in str(error) and "spawn" in str(error)
    return False
inside, go_on = threading.Event(), threading.Event()
def slow(x):
    inside.set()
    go_on.wait()
    return x * 3
busy = verax.jit(slow)
thread = threading.Thread(target=busy, args=(np.ones(3, np.float32),), daemon=True)
thread.start()
inside.wait()
if (child := os.fork()) == 0:
    go_on.set()
    ones = np.ones(3, np.float32)
    try:
        good = [
            (vnp.ones(3) + 1).tolist() == [2, 2, 2],
            x.tolist() == [2, 2, 2],
            refused(lambda: double(ones)),
            refused(lambda: verax.jit(lambda x: x + 1)(ones)),
            refused(verax.devices),
            refused(lambda: stage(x)),
            refused(lambda: fresh(ones)),
            refused(lambda: lowered.compile()),
            refused(lambda: verax.stages.deserialize(data)),
            "multiply" in lowered.as_text(),
            "multiply" in busy.lower(ones).as_text(),
            refused(lambda: busy(ones)),
        ]
    except BaseException:
        traceback.print_exc()
        os._exit(2)
    os._exit(0 if all(good) else 1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
go_on.set()
thread.join()
assert busy(x).tolist() == [6, 6, 6]
assert double(x).tolist() == [4, 4, 4]
print("usable")
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_forked_process_is_told_what_it_cannot_do() -> None:
    done = subprocess.run(
        [sys.executable, "-c", FORKED], capture_output=True, text=True, timeout=300
    )
    assert done.stdout == "usable\n", done.stderr


def test_an_exception_in_one_thread_is_no_matter_of_another() -> None:
    switch, actual = Switch(), []

    def run() -> None:
        try:
            verax.jit(switch)(1.0)
        except ValueError:
            actual.append(float(verax.jit(lambda x: x + 1)(1.0)))

    threads = [threading.Thread(target=run, daemon=True) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert actual == [2] * 4
