"""Threads: each signature is traced once, nothing leaks and nothing waits for ever."""

import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from verax.backend.programs import program

COUNT = 16
LONG = 120


def together(work: Callable[[int], Any], count: int = COUNT) -> list[Any]:
    """What `work(i)` returns or raises in `count` threads that start at once."""
    actual: list[Any] = [None] * count
    gate = threading.Barrier(count)

    def run(i: int) -> None:
        gate.wait()
        try:
            actual[i] = work(i)
        except Exception as error:
            actual[i] = error

    threads = [
        threading.Thread(target=run, args=(i,), daemon=True) for i in range(count)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LONG)
    assert not any(thread.is_alive() for thread in threads), "a thread waits for ever"
    return actual


def elsewhere(work: Callable[[], Any]) -> Any:
    """What `work` returns or raises in another thread."""
    (actual,) = together(lambda i: work(), 1)
    if isinstance(actual, Exception):
        raise actual
    return actual


def test_one_function_is_traced_once_by_many_threads() -> None:
    traces: list[int] = []

    @verax.jit
    def fun(x: Any) -> Any:
        traces.append(1)
        time.sleep(0.01)
        return vnp.sin(x) * 2

    actual = together(lambda i: fun(np.full(4, i, np.float32)))
    for i, y in enumerate(actual):
        np.testing.assert_allclose(y, np.full(4, 2 * np.sin(i)), rtol=1e-5)
    assert len(traces) == 1


def test_many_functions_and_transformations_at_once() -> None:
    functions = [
        verax.jit(verax.vmap(verax.grad(lambda x, k=k: x**k))) for k in range(COUNT)
    ]
    x = np.arange(1, 4, dtype=np.float32)
    for k, y in enumerate(together(lambda k: functions[k](x))):
        np.testing.assert_allclose(y, k * x ** (k - 1), rtol=1e-4)


def test_threads_that_trace_each_others_functions_do_not_wait_in_a_circle() -> None:
    gate = threading.Barrier(2)

    def known(function: Any) -> float:
        with verax.ensure_compile_time_eval():
            return float(function(1.0, False))

    def first(x: Any, meet: bool) -> Any:
        if meet:
            gate.wait(LONG)
            return x + known(jit_second)
        return x + 10

    def second(x: Any, meet: bool) -> Any:
        if meet:
            gate.wait(LONG)
            return x + known(jit_first)
        return x + 20

    jit_first = verax.jit(first, static_argnums=1)
    jit_second = verax.jit(second, static_argnums=1)
    pair = (jit_first, jit_second)
    assert together(lambda i: float(pair[i](1.0, True)), 2) == [22, 12]


def test_a_tracer_in_another_thread_is_an_error() -> None:
    def fun(x: Any) -> Any:
        return elsewhere(lambda: x + 1)

    for transformed in (verax.jit(fun), verax.grad(fun), verax.make_jaxpr(fun)):
        with pytest.raises(verax.LeakedTracer, match="a thread other than"):
            transformed(1.0)


def test_a_trace_in_another_thread_is_not_seen_here() -> None:
    inside, done = threading.Event(), threading.Event()
    kept: list[Any] = []

    def slow(x: Any) -> Any:
        kept.append(x)
        inside.set()
        assert done.wait(LONG)
        return x * 3

    thread = threading.Thread(
        target=lambda: kept.append(float(verax.jit(slow)(2.0))), daemon=True
    )
    thread.start()
    assert inside.wait(LONG)
    try:
        assert (vnp.ones(2) + 1).tolist() == [2, 2]
        assert float(verax.jit(lambda x: x + 1)(1.0)) == 2
        for use in (vnp.sin, verax.jit(lambda y: y + kept[0])):
            with pytest.raises(verax.LeakedTracer, match="a thread other than"):
                use(kept[0] if use is vnp.sin else 1.0)
    finally:
        done.set()
        thread.join(LONG)
    assert kept[1] == 6


def test_eager_work_in_another_thread_within_a_trace() -> None:
    @verax.jit
    def fun(x: Any) -> Any:
        return x + elsewhere(lambda: vnp.arange(3) * 2)

    assert fun(1).tolist() == [1, 3, 5]
    assert len(verax.make_jaxpr(lambda x: fun(x))(1).jaxpr.eqns) == 1


def test_configuration_belongs_to_a_thread() -> None:
    def dtypes() -> tuple[str, str]:
        return vnp.ones(1).dtype.name, verax.jit(lambda: vnp.ones(1))().dtype.name

    with verax.enable_x64():
        assert elsewhere(dtypes) == ("float32",) * 2
        assert dtypes() == ("float64",) * 2

    def mine(i: int) -> tuple[str, str]:
        with verax.enable_x64(i % 2 == 0):
            time.sleep(0.001)
            return dtypes()

    assert together(mine) == [("float64",) * 2, ("float32",) * 2] * (COUNT // 2)


def test_one_of_many_threads_gets_the_memory() -> None:
    add = verax.jit(lambda x: x + 1, donate_argnums=0)
    add(verax.jit(lambda: vnp.ones(1000))())
    x: Any = verax.jit(lambda: vnp.ones(1000))()
    actual = together(lambda i: add(x))
    good = [y for y in actual if not isinstance(y, Exception)]
    # The others come too late, or find the memory in use by one another's calls.
    assert all(isinstance(y, RuntimeError) for y in actual if y not in good)
    assert x.is_deleted()
    for y in good:
        assert set(y.tolist()) == {2}
    own = together(lambda i: add(vnp.full(1000, i, vnp.float32)))
    assert [set(y.tolist()) for y in own] == [{i + 1.0} for i in range(COUNT)]


@pytest.mark.slow
def test_caches_may_be_cleared_while_others_call() -> None:
    @verax.jit
    def fun(x: Any) -> Any:
        return (x * 2).sum()

    def work(i: int) -> Any:
        if i == 0:
            verax.clear_caches()
            return None
        return [float(fun(np.full(n % 3, i, np.float32))) for n in range(6)]

    actual = together(work, 4)
    for i, sums in enumerate(actual[1:], 1):
        assert sums == [2.0 * i * (n % 3) for n in range(6)]


def test_signatures_of_one_function_are_traced_at_the_same_time() -> None:
    gate = threading.Barrier(4)

    @verax.jit
    def fun(x: Any) -> Any:
        gate.wait(LONG)  # broken, unless all four are in here
        return x * 2

    actual = together(lambda i: fun(np.ones(i + 1, np.float32)).tolist(), 4)
    assert actual == [[2.0] * (i + 1) for i in range(4)]


def test_different_programs_are_compiled_at_the_same_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gate, build = threading.Barrier(4), program.build

    def slow(*args: Any, **kwargs: Any) -> Any:
        gate.wait(LONG)
        return build(*args, **kwargs)

    monkeypatch.setattr(program, "build", slow)
    fun = verax.jit(lambda x: vnp.cos(x) - 3.25)
    functions = [fun, fun, fun, verax.jit(lambda x: vnp.tan(x) - 3.25)]
    actual = together(lambda i: functions[i](np.zeros(i + 1, np.float32)), 4)
    values = [-2.25, -2.25, -2.25, -3.25]
    assert [y.tolist() for y in actual] == [[v] * (i + 1) for i, v in enumerate(values)]


def test_one_program_is_compiled_once_whoever_asks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    built: list[str] = []
    build, waiting = program.build, threading.Barrier(COUNT)

    def counted(lowered: Any, *args: Any, **kwargs: Any) -> Any:
        built.append(lowered.name)
        return build(lowered, *args, **kwargs)

    def same(x: Any) -> Any:
        waiting.wait(LONG)  # every function is traced before one is compiled
        return vnp.sin(x) * 7.125

    monkeypatch.setattr(program, "build", counted)
    x = np.ones(5, np.float32)
    functions = [verax.jit(lambda x: same(x)) for _ in range(COUNT)]
    values = {np.asarray(y)[0] for y in together(lambda i: functions[i](x))}
    assert len(values) == 1
    assert len(built) == 1


def test_an_error_in_one_thread_leaves_the_others_their_turn() -> None:
    gate = threading.Barrier(COUNT)
    lock, tries = threading.Lock(), [0]

    @verax.jit
    def fun(x: Any) -> Any:
        with lock:
            tries[0] += 1
            first = tries[0] == 1
        if first:
            raise ValueError("the first trace fails")
        return x + 1

    def work(i: int) -> Any:
        gate.wait(LONG)
        return float(fun(float(i)))

    actual = together(work)
    errors = [y for y in actual if isinstance(y, Exception)]
    assert [str(error) for error in errors] == ["the first trace fails"]
    assert [y for y in actual if y not in errors] == [
        i + 1.0 for i, y in enumerate(actual) if y not in errors
    ]
    assert tries[0] == 2


def test_a_compiled_function_is_called_and_saved_by_many_threads() -> None:
    stage = verax.jit(lambda x, y: x * y).lower(np.ones(4, np.float32), 1.0).compile()

    def work(i: int) -> Any:
        kinds = (np.full(4, i, np.float32), vnp.full(4, i, vnp.float32))
        scalars = (2.0, np.float32(2), vnp.float32(2), vnp.float32(2) * 1)
        mine = stage if i % 3 else verax.stages.deserialize(stage.serialize())
        if i == 5:
            return mine(np.ones(3, np.float32), 1.0)
        return [mine(kinds[n % 2], scalars[n % 4]).tolist() for n in range(8)]

    for i, actual in enumerate(together(work)):
        if i == 5:
            assert isinstance(actual, TypeError)
        else:
            assert actual == [[2.0 * i] * 4] * 8


def test_threads_compile_ahead_of_time_at_the_same_time() -> None:
    @verax.jit
    def fun(x: Any) -> Any:
        return vnp.cos(x).sum() - 9.5

    def work(i: int) -> Any:
        x = np.zeros(i % 4 + 1, np.float32)
        return float(fun.lower(x).compile()(x))

    assert together(work, 8) == [i % 4 + 1 - 9.5 for i in range(8)]
