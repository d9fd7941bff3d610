"""debug.print and debug.callback: what they show, and when."""

import logging
from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp

type Captured = pytest.CaptureFixture[str]


def out(capsys: Captured) -> list[str]:
    verax.effects_barrier()
    return capsys.readouterr().out.splitlines()


def test_formats(capsys: Captured) -> None:
    x = vnp.arange(3.0)

    @verax.jit
    def f(x: Any) -> None:
        show = verax.debug.print(ordered=True)
        show("{} {x} {s}", x[1], x=x, s="text")
        show("{:.2f} {!r}", x[1], x)
        show("{tree}", tree={"a": x[2], "b": ("y", None)})
        show("no places")
        show("values:", x, 3)
        show("{{}}")

    f(x)
    assert out(capsys) == [
        "1.0 [0. 1. 2.] text",
        "1.00 Array([0., 1., 2.], dtype=float32)",
        "{'a': Array(2., dtype=float32), 'b': ('y', None)}",
        "no places",
        "values: [0. 1. 2.] 3",
        "{}",
    ]


def test_options_in_a_first_call(capsys: Captured) -> None:
    def f(x: Any) -> Any:
        verax.debug.print(ordered=True)("ordered = {ordered}", ordered=x)
        verax.debug.callback(ordered=True)(lambda ordered: print(ordered), ordered=x)
        return x

    closed = verax.make_jaxpr(f)(1.0)
    assert [str(e) for e in closed.effects] == ["ordered debug"]
    verax.jit(f)(1.0)
    assert out(capsys) == ["ordered = 1.0", "1.0"]


def test_formats_are_checked_while_tracing() -> None:
    with pytest.raises(ValueError, match=r"Unused positional arguments .*\[1\]"):
        verax.debug.print("{}", 1, 2)
    with pytest.raises(ValueError, match="You may be passing an f-string"):
        verax.debug.print("x", x=1)
    with pytest.raises(TypeError, match="takes a format string"):
        verax.debug.print(vnp.ones(2))  # type: ignore[arg-type]  # on purpose
    with pytest.raises(TypeError, match="takes a function"):
        verax.debug.callback(3)  # type: ignore[arg-type]  # on purpose
    verax.debug.print("{}", 1, 2, skip_format_check=True)


def test_numpy_options_are_those_of_the_trace(capsys: Captured) -> None:
    with np.printoptions(precision=2):
        f = verax.jit(lambda x: verax.debug.print("{}", x)).lower(vnp.ones(1) / 3)
        run = f.compile()
    run(vnp.ones(1) / 3)
    assert out(capsys) == ["[0.33]"]


def test_order_across_programs(capsys: Captured) -> None:
    f = verax.jit(lambda i: verax.debug.print("{}", i, ordered=True))
    for i in range(50):
        f(i)
    assert out(capsys) == [str(i) for i in range(50)]


@pytest.mark.parametrize("ordered", [False, True])
def test_under_transformations(capsys: Captured, ordered: bool) -> None:
    def f(x: Any) -> Any:
        verax.debug.print("{}", x, ordered=ordered)
        return x * x

    assert float(verax.grad(f)(3.0)) == 6.0
    assert out(capsys) == ["3.0"]
    verax.vmap(f)(vnp.arange(3))
    assert out(capsys) == ["0", "1", "2"]
    verax.jit(verax.vmap(verax.grad(f)))(vnp.arange(2.0))
    assert out(capsys) == ["0.0", "1.0"]
    with verax.disable_jit():
        verax.jit(f)(1.0)
    assert out(capsys) == ["1.0"]


def test_values_of_a_second_call_in_the_first_are_errors() -> None:
    with pytest.raises(TypeError, match="unexpected arguments"):
        verax.debug.print(ordered=True, a=42)
    with pytest.raises(TypeError, match="unexpected arguments"):
        verax.debug.print(None, 42)
    with pytest.raises(TypeError, match="unexpected arguments"):
        verax.debug.callback(ordered=True, a=42)
    with pytest.raises(TypeError, match="unexpected arguments"):
        verax.debug.callback(None, 42)


def test_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="verax")
    verax.jit(lambda x: verax.debug.log("x = {}", x))(2.0)
    verax.debug.log(ordered=True)("{y:.1f}", y=0.5)
    verax.effects_barrier()
    actual = [record for record in caplog.records if record.levelno == logging.INFO]
    assert [record.getMessage() for record in actual] == ["x = 2.0", "0.5"]
    assert {record.filename for record in actual} == {"test_debug.py"}


def test_log_below_its_level(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, logger="verax")
    verax.debug.log("x = {}", 1)
    assert not caplog.records


def test_what_a_callback_raises() -> None:
    """Eagerly it is a call of the function; a program says which callback failed."""

    def fail(x: Any) -> None:
        raise ValueError("boo")

    with pytest.raises(ValueError, match=r"^boo$"):
        verax.debug.callback(fail, vnp.ones(2))

    def run() -> None:
        verax.jit(lambda x: verax.debug.callback(fail, x))(vnp.ones(2))
        verax.effects_barrier()

    with pytest.raises(verax.errors.JaxRuntimeError, match=r"fail.* raised ValueError"):
        run()
