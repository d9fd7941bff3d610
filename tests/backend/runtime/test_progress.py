"""Long compilations are shown: live on a terminal, as lines anywhere else."""

import io
import os
import subprocess
import sys
import threading
from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from verax.backend.programs import program
from verax.backend.runtime.background import Display, Stage
from verax.backend.xla.executable import compile_text

LONG = 60


class Terminal(io.StringIO):
    """What is written, on a terminal or not; and a wait for it."""

    def __init__(self, *, tty: bool) -> None:
        super().__init__()
        self.tty = tty
        self.written = threading.Condition()

    def isatty(self) -> bool:
        return self.tty

    def write(self, text: str) -> int:
        with self.written:
            self.written.notify_all()
            return super().write(text)

    def wait_for(self, text: str) -> None:
        """Wait until `text` has been written."""
        with self.written:
            assert self.written.wait_for(lambda: text in self.getvalue(), LONG), text


def finish(display: Display) -> None:
    """Wait until a display shows nothing more."""
    if (thread := display.thread) is not None:
        thread.join(LONG)
    assert display.thread is None


def test_a_terminal_shows_all_stages_live_and_then_a_line_each() -> None:
    terminal = Terminal(tty=True)
    display = Display(terminal, after=0.0)
    with display.stage("f", "XLA"):
        other = threading.Thread(target=within, args=(display, terminal))
        other.start()
        terminal.wait_for("verax: f: XLA ")
        other.join(LONG)
        terminal.wait_for("verax: g[1]: trace ")
    finish(display)
    shown = terminal.getvalue()
    both = [part for part in shown.split("\x1b[2K") if "f: XLA" in part]
    assert any("g[1]: trace" in part for part in both)
    assert shown.count("\x1b[?25l") == shown.count("\x1b[?25h") == 1  # the cursor


def within(display: Display, terminal: Terminal) -> None:
    with display.stage("g[1]", "trace"):
        terminal.wait_for("verax: g[1]: trace ")


def test_elsewhere_there_is_a_line_at_the_end() -> None:
    terminal = Terminal(tty=False)
    display = Display(terminal, after=0.0)
    with display.begun(Watched("f", "XLA")):
        seen()
        assert terminal.getvalue() == ""
    finish(display)
    (line,) = terminal.getvalue().splitlines()
    assert line.startswith("verax: f: XLA ")
    assert line.endswith(" s")


class Watched(Stage):
    """A stage that knows whether a display has looked at it."""

    def line(self) -> str:
        LOOKED.set()
        return super().line()


LOOKED = threading.Event()


def seen() -> None:
    """Wait until a display has looked at a `Watched`."""
    LOOKED.clear()
    assert LOOKED.wait(LONG)


def test_short_stages_and_parts_of_others_are_not_shown() -> None:
    terminal = Terminal(tty=False)
    display = Display(terminal, after=1000.0)
    with display.stage("f", "XLA"):
        pass
    finish(display)
    assert terminal.getvalue() == ""
    display = Display(terminal, after=0.0)
    with display.begun(Watched("f", "trace")), display.stage("inner", "XLA"):
        assert [x.program for x in display.stages.values()] == ["f"]
        seen()
    finish(display)
    assert terminal.getvalue().count("verax:") == 1


def test_a_stage_ends_with_its_block_whatever_ends_that() -> None:
    display = Display(Terminal(tty=False), after=0.0)
    for error in (ValueError, KeyboardInterrupt):
        with pytest.raises(error), display.stage("f", "XLA"):
            raise error
        assert display.stages == {}
        assert not display.inside.stage
    finish(display)


def test_without_rich_and_with_a_closed_stream_compilation_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "rich.console", None)
    terminal = Terminal(tty=True)
    display = Display(terminal, after=0.0)
    with display.begun(Watched("f", "XLA")):
        seen()
    finish(display)
    assert terminal.getvalue().startswith("verax: f: XLA ")
    with display.begun(Watched("f", "XLA")):
        seen()
        terminal.close()
    finish(display)


def test_the_stages_of_a_program_are_shown_if_the_option_is_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begun: list[tuple[str, str]] = []
    display = Display(Terminal(tty=False), after=1000.0)

    def shown(program: str, name: str) -> Any:
        begun.append((program, name))
        return display.stage(program, name)

    monkeypatch.setattr("verax.backend.runtime.background.shown", shown)
    x = np.ones(3, np.float32)

    def step(x: Any) -> Any:
        return vnp.cos(x) * 41.5

    verax.jit(step)(x)
    assert not begun
    verax.config.update("compile_progress", True)
    try:
        verax.jit(step)(x)
        verax.jit(lambda x: step(x) + 1).warm(x).result(LONG)
    finally:
        verax.config.update("compile_progress", False)
    of_step = [name for function, name in begun if function == "step"]
    assert of_step == ["trace"]  # the program was there
    rest = [name for function, name in begun if function == "<lambda>"]
    assert rest == ["trace", "lower", "XLA"]


@pytest.mark.slow
def test_a_script_is_told_what_took_long() -> None:
    script = """
import time, verax
def step(x):
    time.sleep(1.3)
    return x * 2
verax.jit(step)(1.0)
"""
    for value, lines in (("1", 1), ("0", 0)):
        done = subprocess.run(
            [sys.executable, "-c", script],
            capture_output=True,
            text=True,
            timeout=300,
            env=dict(os.environ, VERAX_COMPILE_PROGRESS=value),
        )
        assert (done.returncode, done.stdout) == (0, "")
        assert done.stderr.count("verax: step: trace ") == lines, done.stderr


def test_compilation_in_a_thread_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal(tty=True)
    monkeypatch.setattr(
        "verax.backend.runtime.background.shown", Display(terminal, after=0.0).stage
    )

    def slow(*args: Any, **kwargs: Any) -> Any:
        terminal.wait_for("verax: slowly: XLA ")
        return compile_text(*args, **kwargs)

    def slowly(x: Any) -> Any:
        return x * 42.5

    monkeypatch.setattr(program, "compile_text", slow)
    verax.config.update("compile_progress", True)
    try:
        compilation = verax.jit(slowly).warm(1.0)
    finally:
        verax.config.update("compile_progress", False)
    assert compilation.exception(LONG) is None
