"""Ctrl-C anywhere: the thread computes, the collector runs and locks are free after it.

The interrupt comes at each place of a small piece of work in turn, with what the
library remembers in place, and at some of the places with all of it forgotten.
"""

import gc
import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from property_tests.levels import rarely
from tests.robustness.interrupts import interrupted, places
from verax import lax
from verax.backend.runtime.locks import HELD
from verax.backend.xla.callback_runs import INSIDE
from verax.rules.values.state import STATE, State

# What CPython calls when an object dies cannot raise; it says so, and goes on.
pytestmark = pytest.mark.filterwarnings(
    "ignore::pytest.PytestUnraisableExceptionWarning"
)
X = np.arange(3, dtype=np.float32)
SHAPE = verax.ShapeDtypeStruct((3,), np.float32)
# How many places are tried: of those of much work, every so-manieth.
MOST, COLD = 120, 3


def loss(x: Any) -> Any:
    return (vnp.sin(x) * x).sum()


def callback(x: Any) -> Any:
    return verax.pure_callback(lambda y: np.asarray(y) * 2, SHAPE, x)


def ruled(x: Any) -> Any:
    """A function with a rule, made anew so that the rule is traced."""
    fun: Any = verax.custom_jvp(lambda x: x * 3)
    fun.defjvp(lambda primals, tangents: (fun(*primals), tangents[0] * 5))
    return fun(x)


def reversed_rule(x: Any) -> Any:
    fun: Any = verax.custom_vjp(lambda x: x * 3)
    fun.defvjp(lambda x: (fun(x), x), lambda x, ct: (ct * x,))
    return fun(x).sum()


def nested(x: Any) -> Any:
    """Functions behind jit that call each other, each traced in the trace before."""
    inner = verax.jit(lambda y: vnp.cos(y) * 2)
    return verax.jit(lambda y: inner(y) + inner(y * 2))(x)


def wide() -> Any:
    with verax.enable_x64():
        return verax.jit(lambda x: x * 2)(X)


def named() -> Any:
    fun = verax.vmap(lambda x: x / lax.axis_size("i") + lax.psum(x, "i"), axis_name="i")
    return fun(X)


def looped(x: Any) -> Any:
    def body(i: Any, c: Any) -> Any:
        return lax.cond(i > 1, vnp.sin, vnp.cos, c)

    return lax.fori_loop(0, 3, body, x)


def aside(x: Any) -> Any:
    def fun(x: Any) -> Any:
        with verax.ensure_compile_time_eval():
            scale = vnp.sum(vnp.arange(3)) + 1
        return x * scale

    return verax.jit(fun)(x)


WORKS: dict[str, Callable[[], Any]] = {
    "trace": lambda: verax.make_jaxpr(loss)(X),
    "grad": lambda: verax.grad(loss)(X),
    "hessian": lambda: verax.hessian(loss)(X),
    "linearize": lambda: verax.linearize(loss, X)[1](X),
    "vmap": lambda: verax.vmap(lambda x: vnp.exp(x) * 2)(X),
    "jit": lambda: verax.jit(lambda x: x * 2)(X),
    "jit of grad": lambda: verax.jit(verax.grad(loss))(X),
    "nested jit": lambda: nested(X),
    "checkpoint": lambda: verax.grad(verax.checkpoint(loss))(X),
    "eager": lambda: vnp.mean(vnp.ones(3) + X) + vnp.linalg.norm(X),
    "scan": lambda: lax.scan(lambda c, x: (c + x, c), np.float32(0), X),
    "loop": lambda: looped(X),
    "custom jvp": lambda: verax.jvp(ruled, (X,), (X,)),
    "custom vjp": lambda: verax.grad(reversed_rule)(X),
    "named axis": named,
    "option": wide,
    "callback": lambda: callback(X),
    "callback in jit": lambda: verax.jit(callback)(X),
    "aside": lambda: aside(X),
    "lowering": lambda: verax.jit(loss).lower(X).as_text(),
}


def own() -> dict[str, object]:
    """What this thread has chosen or is in the middle of; nothing, at rest."""
    held = {k: x for k, x in vars(STATE).items() if x != getattr(State, k)}
    held.pop("base", None)  # which says of what the rest was made
    return held


def elsewhere(work: Callable[[], Any]) -> Any:
    """What `work` gives in another thread; it does not wait for ever."""
    actual: list[Any] = []
    thread = threading.Thread(target=lambda: actual.append(work()), daemon=True)
    thread.start()
    thread.join(60)
    assert not thread.is_alive(), "a lock was left behind"
    return actual[0]


def text(result: Any) -> str:
    return str(verax.tree.map(str, result))


def check(work: Callable[[], Any], due: str, place: int) -> None:
    """Interrupt `work` at a place: everything is as if nothing had happened."""
    # Some do not come out: NumPy asks objects for their memory, whatever that raises.
    _, where = interrupted(work, place)
    assert STATE.interpreter.immediate, f"{where}: the thread is still tracing"
    assert gc.isenabled(), f"{where}: the collector is off"
    assert own() == {}, where
    assert threading.get_ident() not in State.owners, where
    assert (HELD.rank, INSIDE.depth) == (0, 0), where
    assert vnp.sum(X + 1) == 6, where
    assert text(work()) == due, where


@pytest.fixture(autouse=True)
def at_rest() -> None:
    assert own() == {}, "a test before has left something"


# What is done by day for the first time; what others do is among it.
BY_DAY = ("grad", "callback in jit")


@pytest.mark.slow
@pytest.mark.skipif(sys.gettrace() is not None, reason="a debugger has its own places")
@pytest.mark.parametrize("name", WORKS)
def test_an_interrupt_leaves_nothing_behind(name: str) -> None:
    work = WORKS[name]
    due = text(work())
    count = places(work)
    assert count > 20
    for place in range(0, count, -(-count // MOST)):
        check(work, due, place)
    assert text(elsewhere(work)) == due


@pytest.mark.slow
@pytest.mark.parametrize("name", rarely(WORKS, *(WORKS.keys() - BY_DAY)))
def test_so_it_is_where_all_is_done_for_the_first_time(name: str) -> None:
    work = WORKS[name]
    due = text(work())
    verax.clear_caches()
    count = places(work)
    for place in range(0, count, -(-count // COLD)):
        verax.clear_caches()
        check(work, due, place)
        assert text(elsewhere(work)) == due


def test_nothing_waits_for_the_interrupt_to_be_forgotten() -> None:
    """Debuggers and notebooks keep the exception, with all of its frames."""
    fun = verax.jit(loss)
    due = fun(X)

    def work() -> Any:
        fun.clear_cache()
        return fun(X)

    count = places(work)
    for place in range(0, count, -(-count // MOST)):
        kept: list[BaseException] = []
        interrupted(work, place, kept)
        assert STATE.interpreter.immediate
        assert gc.isenabled()
        assert own() == {}
        assert elsewhere(lambda: fun(X)) == due
