"""debug.breakpoint: what its commands answer, and where programs stop."""

import io
from collections.abc import Callable
from typing import Any

import pytest

import verax
import verax.numpy as vnp

INTRO = "Entering jdb:\n"
PROMPT = "(jdb) "
SCALE = 3


stop = verax.debug.breakpoint


def session(run: Callable[[Any], Any], *commands: str) -> str:
    """What the debugger says to `run`, which passes what it gets to `stop`."""
    said = io.StringIO()
    typed = io.StringIO("".join(command + "\n" for command in commands))
    run({"stdin": typed, "stdout": said})
    verax.effects_barrier()
    return said.getvalue()


@pytest.mark.parametrize("jit", [lambda f: f, verax.jit])
def test_values_of_the_run(jit: Callable[..., Any]) -> None:
    def run(console: Any) -> None:
        @jit
        def f(x: Any) -> Any:
            tree = {"a": x, "b": [x + 1, "text"]}
            size = 7
            stop(**console)
            return tree["a"], size

        f(vnp.float32(2.0))

    said = session(run, "p tree", "size", "x + SCALE", "pp [x]", "p y", "c")
    assert said == (
        f"{INTRO}{PROMPT}{{'a': Array(2., dtype=float32), "
        "'b': [Array(3., dtype=float32), 'text']}\n"
        f"{PROMPT}7\n{PROMPT}Array(5., dtype=float32)\n"
        f"{PROMPT}[Array(2., dtype=float32)]\n"
        f"{PROMPT}*** NameError: name 'y' is not defined\n{PROMPT}"
    )


def test_frames() -> None:
    def run(console: Any) -> None:
        def inner(x: Any) -> Any:
            y = x + 1
            stop(num_frames=2, **console)
            return y

        @verax.jit
        def outer(x: Any) -> Any:
            z = 2 * x
            return inner(z)

        outer(vnp.float32(2.0))

    said = session(run, "l", "u", "p z", "u", "d", "d", "bt", "c")
    parts = said.removeprefix(INTRO).split(PROMPT)[1:]
    assert "->              stop(num_frames=2, **console)\n" in parts[0]
    assert "->              return inner(z)\n" in parts[1]
    assert parts[2] == "Array(4., dtype=float32)\n"
    assert parts[3] == "At topmost frame.\n" + parts[1]
    assert "stop(num_frames=2" in parts[4]
    assert parts[5] == "At bottommost frame.\n" + parts[4]
    assert parts[6].startswith("Traceback:\n  File ")
    lines = [line.strip() for line in parts[6].splitlines()[2::2]]
    assert lines == ["return inner(z)", "stop(num_frames=2, **console)"]


@pytest.mark.parametrize("filtered", [True, False])
def test_frames_of_verax_are_left_out_unless_asked_for(filtered: bool) -> None:
    def run(console: Any) -> None:
        verax.jit(lambda x: (stop(filter_frames=filtered, **console), x)[1])(1.0)

    library = verax.__file__.removesuffix("__init__.py")
    assert (library in session(run, "bt", "c")) is not filtered


def test_vmap_stops_for_each_element_in_order() -> None:
    def run(console: Any) -> None:
        def f(x: Any) -> Any:
            y = x + 1
            stop(ordered=True, num_frames=1, **console)
            return y * y

        verax.jit(verax.vmap(verax.grad(f)))(vnp.arange(2.0))

    assert session(run, "p y", "c", "p y", "c").split(INTRO)[1:] == [
        f"{PROMPT}Array({y}., dtype=float32)\n{PROMPT}" for y in (1, 2)
    ]


def test_a_token_comes_back_and_keeps_the_breakpoint() -> None:
    def run(console: Any) -> None:
        @verax.jit
        def f(x: Any) -> Any:
            passed = stop(**console, token={"x": x})
            return passed["x"] * x

        result, slope = verax.value_and_grad(f)(3.0)
        assert (result, slope) == (9.0, 3.0)  # the token has no gradient

    assert session(run, "c").count(INTRO) == 1
    with pytest.raises(ValueError, match="either ordered=True or a token"):
        verax.debug.breakpoint(ordered=True, token=1.0)


@pytest.mark.parametrize("commands", [("q",), ()])
def test_quit_and_the_end_of_input_end_the_program(commands: tuple[str, ...]) -> None:
    with pytest.raises(SystemExit):
        session(lambda console: stop(**console), *commands)
    with pytest.raises(SystemExit):
        session(
            lambda console: verax.jit(lambda x: (stop(**console), x)[1])(1.0), *commands
        )


def test_variables_that_cannot_be_taken_apart() -> None:
    def run(console: Any) -> None:
        @verax.jit
        def f(x: Any) -> Any:
            mixed = {1: "one", "two": 2}
            numbers = (i for i in range(3))
            stop(**console)
            return x, len(mixed), sum(numbers)

        assert f(1.0)[2] == 3

    assert session(run, "p mixed", "c").count("{1: 'one', 'two': 2}") == 1


def test_tracers_of_ended_traces_are_shown_as_such() -> None:
    kept: list[Any] = []
    verax.jit(kept.append)(1.0)

    def run(console: Any) -> None:
        old = kept[0]
        verax.jit(lambda x: (stop(**console), x, old)[1])(1.0)

    assert "Traced<~f32[]>" in session(run, "p old", "c")
