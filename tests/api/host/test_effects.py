"""Effects under transformations: the cases that the law draws rarely, one by one."""

import gc
import subprocess
import sys
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from verax import lax
from verax.experimental import io_callback
from verax.rules.programs.host import CallbackError
from verax.rules.values.conversions import AbstractValueError

type Log = list[Any]


def note(log: Log, *args: Any, ordered: bool = False) -> int:
    """Add the values to the log when the program runs."""
    verax.debug.callback(
        lambda *xs: log.append(tuple(map(float, xs))), *args, ordered=ordered
    )
    return 0


def marks(log: Log) -> Log:
    verax.effects_barrier()
    actual = list(log)
    log.clear()
    return actual


@pytest.mark.slow(jaxlib=True)
@pytest.mark.parametrize("ordered", [False, True])
def test_a_callback_without_operands_stays_in_the_loop(ordered: bool) -> None:
    log: Log = []

    def f(x: Any) -> Any:
        def step(c: Any, _: None) -> Any:
            note(log, ordered=ordered)
            return c * x, None

        return lax.scan(step, x, None, length=4)[0]

    for run in (verax.grad(f), verax.jit(verax.grad(f)), verax.grad(verax.jit(f))):
        assert float(run(2.0)) == 80.0
        assert marks(log) == [()] * 4
    verax.vmap(f)(vnp.ones(3))
    assert marks(log) == [()] * 4


@pytest.mark.slow(jaxlib=True)
@pytest.mark.parametrize("plan", ["sqrt", "log"])
def test_loops_with_a_memory_plan_are_silent_the_second_time(plan: Any) -> None:
    log: Log = []

    def f(x: Any) -> Any:
        def step(c: Any, _: None) -> Any:
            note(log, c, ordered=True)
            return c * 0.5, None

        return lax.scan(step, x, None, length=20, checkpoints=plan)[0]

    expected = [(0.5**i,) for i in range(20)]
    for run in (f, verax.grad(f), verax.jit(verax.grad(f))):
        run(1.0)
        assert marks(log) == expected


def test_weights_are_not_stacked_for_the_sake_of_a_print() -> None:
    log: Log = []

    def f(w: Any, x: Any) -> Any:
        def step(c: Any, _: None) -> Any:
            note(log, c[0])
            return vnp.tanh(w @ c), None

        return lax.scan(step, x, None, length=7)[0].sum()

    text = str(verax.make_jaxpr(verax.grad(f))(vnp.ones((3, 3)), vnp.ones(3)))
    assert "f32[7,3]" in text
    assert "f32[7,3,3]" not in text


def test_branching_while_tracing_makes_nothing_happen_twice() -> None:
    log: Log = []

    def f(x: Any) -> Any:
        note(log, x)
        y = verax.jit(lambda x: (note(log, x), x + 1)[1])(x)
        return x * x if y > 1 else x

    assert float(verax.grad(f)(2.0)) == 4.0
    assert sorted(marks(log)) == [(2.0,), (2.0,)]

    def g(x: Any) -> Any:
        y = io_callback(lambda: np.float32(len(log)), vnp.float32(0))
        return x if y > 1 else x * 2

    with pytest.raises(AbstractValueError, match="depends on an io_callback"):
        verax.grad(g)(1.0)
    assert marks(log) == []


@pytest.mark.parametrize("wrap", [verax.checkpoint, verax.jit])
def test_what_io_returns_is_asked_for_once(wrap: Any) -> None:
    log: Log = []

    def read() -> Any:
        log.append(len(log) + 1)
        return np.float32(len(log))

    def plain(x: Any) -> Any:
        return vnp.sin(x * io_callback(read, vnp.float32(0)))

    f = wrap(plain)
    for run in (verax.grad(f), verax.jit(verax.grad(f))):
        assert float(run(1.0)) == pytest.approx(np.cos(1.0), rel=1e-6)
        assert marks(log) == [1]


def test_linearize_of_a_while_loop() -> None:
    log: Log = []

    def f(x: Any, io: bool) -> Any:
        def step(state: Any) -> Any:
            i, c = state
            if io:
                io_callback(lambda i: None, None, i)
            else:
                note(log, i, ordered=True)
            return i + 1, c * 2

        return lax.while_loop(lambda state: state[0] < 3, step, (0, x))[1]

    y, push = verax.linearize(lambda x: f(x, False), 1.0)
    assert (float(y), float(push(1.0)), float(push(2.0))) == (8.0, 8.0, 16.0)
    assert marks(log) == [(0.0,), (1.0,), (2.0,)]
    with pytest.raises(NotImplementedError, match="io_callback inside cannot be linea"):
        verax.linearize(lambda x: f(x, True), 1.0)
    assert float(verax.jvp(lambda x: f(x, True), (1.0,), (1.0,))[1]) == 8.0


def test_rules_of_the_user_have_effects_where_they_run() -> None:
    log: Log = []

    @verax.custom_jvp
    def f(x: Any) -> Any:
        note(log, 0, x)
        return 2 * x

    @f.defjvp
    def _(primals: Any, tangents: Any) -> Any:
        note(log, 1, tangents[0])
        return 2 * primals[0], 2 * tangents[0]

    f(3.0)
    assert marks(log) == [(0.0, 3.0)]
    verax.jvp(f, (3.0,), (5.0,))
    assert marks(log) == [(1.0, 5.0)]
    assert float(verax.jit(verax.grad(f))(3.0)) == 2.0
    assert marks(log) == []
    _, push = verax.linearize(f, 3.0)
    assert marks(log) == []
    push(7.0)
    assert marks(log) == [(1.0, 7.0)]

    @verax.custom_vjp
    def g(x: Any) -> Any:
        note(log, 0, x)
        return 2 * x

    def backward(x: Any, ct: Any) -> Any:
        note(log, 3, x, ct)
        return (2 * ct,)

    g.defvjp(lambda x: (note(log, 2, x), (2 * x, x))[1], backward)
    for run in (verax.grad(g), verax.jit(verax.grad(g))):
        run(4.0)
        assert sorted(marks(log)) == [(2.0, 4.0), (3.0, 4.0, 1.0)]


def test_io_on_a_tangent_cannot_be_transposed() -> None:
    def f(x: Any) -> Any:
        io_callback(lambda x: None, None, x)
        return 2 * x

    with pytest.raises(NotImplementedError, match="reverse mode does not compute"):
        verax.linear_transpose(f, 1.0)(1.0)


def test_only_the_branch_of_a_lane_has_its_effects() -> None:
    log: Log = []

    def f(x: Any) -> Any:
        def then(x: Any) -> Any:
            note(log, 1, x, ordered=True)
            return x

        def other(x: Any) -> Any:
            note(log, ordered=True)
            return -x

        return lax.cond(x > 0, then, other, x)

    for run in (verax.vmap(f), verax.jit(verax.vmap(f))):
        assert run(vnp.array([1.0, -2.0, 3.0])).tolist() == [1.0, 2.0, 3.0]
        assert marks(log) == [(1.0, 1.0), (), (1.0, 3.0)]


@pytest.mark.parametrize("run", [lambda f: f, verax.jit])
def test_reductions_take_no_callbacks(run: Any) -> None:
    def shown(a: Any, b: Any) -> Any:
        verax.debug.print("{} {}", a, b)
        return a + b

    def on_host(a: Any, b: Any) -> Any:
        return verax.jit(
            lambda: verax.pure_callback(np.add, a, a, b, vmap_method="expand_dims")
        )()

    x = vnp.arange(3.0)
    for f in (shown, on_host):
        with pytest.raises(TypeError, match=r"computation of reduce calls .* use scan"):
            run(lambda x, f=f: lax.reduce(x, 0.0, f, (0,)))(x)
        with pytest.raises(TypeError, match="computation of reduce_window calls"):
            run(lambda x, f=f: lax.reduce_window(x, 0.0, f, (2,), (1,), "valid"))(x)


def look_at(how: str, y: Any) -> None:
    """Ask for the values of y, or of what is computed from it, or for the effects."""
    match how:
        case "block":
            y.block_until_ready()
        case "numpy":
            np.asarray(y)
        case "next":
            np.asarray(verax.jit(lambda x: x * 2)(y))
        case _:
            verax.effects_barrier()


def busy(x: Any) -> Any:
    for _ in range(4):
        x = x @ x * 1e-3
    return x


@pytest.mark.parametrize("look", ["block", "numpy", "next", "barrier"])
def test_late_failures_come_out_where_somebody_looks(look: str) -> None:
    def fail(x: Any) -> None:
        raise KeyError("late")

    f = verax.jit(lambda x: (verax.debug.callback(fail, x), x + 1)[1])
    x = verax.jit(busy)(vnp.ones((600, 600)))
    # Depending on how fast x is there, the call itself may raise.
    with pytest.raises(CallbackError, match=r"fail, .* raised KeyError: 'late'") as e:
        look_at(look, f(x))
    assert isinstance(e.value.__cause__, KeyError)
    verax.effects_barrier()
    assert float(verax.jit(lambda x: x + 1)(1.0)) == 2.0


def test_interrupts_pass() -> None:
    def interrupt(x: Any) -> None:
        raise KeyboardInterrupt

    for run in (verax.jit, verax.vmap):
        with pytest.raises(KeyboardInterrupt):
            run(lambda x: verax.debug.callback(interrupt, x))(vnp.ones(1))


class Heavy:
    """Something that a callback closes over."""


def program_with(heavy: Heavy) -> Callable[[Any], Any]:
    def host(x: Any) -> Any:
        assert heavy is not None
        return x

    f = verax.jit(lambda x: verax.pure_callback(host, x, x))
    return f.lower(vnp.float32(1)).compile()


@pytest.mark.slow(jaxlib=True)
def test_functions_live_as_long_as_their_program() -> None:
    heavy = Heavy()
    alive = weakref.ref(heavy)
    compiled = program_with(heavy)
    del heavy
    gc.collect()
    assert float(compiled(vnp.float32(2))) == 2.0
    assert alive() is not None
    del compiled
    verax.effects_barrier()
    verax.clear_caches()
    gc.collect()
    assert alive() is None


def test_many_runs_are_not_held_for_ever() -> None:
    log: Log = []
    f = verax.jit(lambda x: note(log, x))
    for i in range(200):
        f(float(i))
    assert marks(log) == [(float(i),) for i in range(200)]


@pytest.mark.slow(jaxlib=True)
def test_programs_without_callbacks_do_not_import_mlir() -> None:
    code = (
        "import sys, verax; verax.jit(lambda x: x + 1)(1.0);"
        "assert 'jaxlib.mlir.ir' not in sys.modules;"
        "verax.jit(lambda x: verax.debug.print('{}', x, ordered=True))(1.0)"
    )
    # Nobody waits: what is printed is printed before the process ends.
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.stdout, done.returncode) == ("1.0\n", 0), done.stderr
