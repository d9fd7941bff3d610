"""`debug.breakpoint` at a terminal: a prompt, its commands, and its end."""

import os
import pty
import re
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import verax

SOURCE = Path(verax.__file__).parents[1]
PROMPT = "(jdb) "
PROGRAM = """
import verax
import verax.numpy as vnp

def inner(x):
    y = x * 2
    verax.debug.breakpoint(ordered=True)
    return y.sum()

def outer(x):
    scale = {"by": [1, 2, 3] * 12}
    return inner(x + 1)

%s
verax.effects_barrier()
print("the end:", out)
"""


class Terminal:
    """The user's side of a terminal at which a program runs."""

    def __init__(self, side: int) -> None:
        self.side = side

    def read(self, end: str = PROMPT) -> str:
        """What the program writes up to `end`; a program that says nothing fails."""
        actual = ""
        while not actual.endswith(end):
            ready, _, _ = select.select([self.side], [], [], 60)
            assert ready, f"the program waits, after {actual!r}"
            try:
                part = os.read(self.side, 1 << 12)
            except OSError:  # it has ended
                part = b""
            if not part:
                break
            actual += part.decode().replace("\r\n", "\n")
        return actual

    def interrupt(self, process: "subprocess.Popen[bytes]") -> None:
        """Ctrl-C, until something is said.

        Python misses a signal between the prompt and the wait for a line, which a
        person would not hit.
        """
        for _ in range(20):
            process.send_signal(signal.SIGINT)
            if select.select([self.side], [], [], 3)[0]:
                return

    def answer(self, command: str) -> str:
        """What the program answers to a command, without the echo of it."""
        os.write(self.side, f"{command}\n".encode())
        echo, _, rest = self.read().partition("\n")
        assert echo.strip() == command
        return rest.removesuffix(PROMPT).strip()

    def leave(self, command: str) -> str:
        """What follows the last command of a program."""
        os.write(self.side, f"{command}\n".encode())
        return self.read("never")


@contextmanager
def running(
    call: str, tmp_path: Path
) -> Iterator[tuple[Terminal, subprocess.Popen[bytes]]]:
    """A program at a terminal of its own."""
    script = tmp_path / "program.py"
    script.write_text(PROGRAM % call)
    ours, theirs = pty.openpty()
    environment = {**os.environ, "PYTHONPATH": str(SOURCE), "TERM": "dumb"}
    process = subprocess.Popen(
        [sys.executable, str(script)],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=environment,
        start_new_session=True,
    )
    os.close(theirs)
    try:
        yield Terminal(ours), process
    finally:
        process.kill()
        process.wait()
        os.close(ours)


@pytest.mark.slow(jaxlib=True)
def test_commands_in_a_compiled_program(tmp_path: Path) -> None:
    call = "out = verax.jit(outer)(vnp.arange(3.0))"
    with running(call, tmp_path) as (terminal, process):
        assert terminal.read().startswith("Entering jdb:")
        assert terminal.answer("p x, y.shape") == (
            "(Array([1., 2., 3.], dtype=float32), (3,))"
        )
        assert terminal.answer("y + 1") == "Array([3., 5., 7.], dtype=float32)"
        assert "NameError" in terminal.answer("p nothing")
        listed = terminal.answer("list")
        assert re.search(r"->\s+verax\.debug\.breakpoint\(ordered=True\)", listed)
        trace = terminal.answer("bt")
        assert trace.index("outer") < trace.index("breakpoint")
        assert "return inner(x + 1)" in terminal.answer("up")
        assert terminal.answer("p x") == "Array([0., 1., 2.], dtype=float32)"
        shown = terminal.answer("pp scale")
        assert shown.count("\n") > 5
        assert shown.startswith("{'by': [1,")
        assert "At bottommost frame" not in terminal.answer("d")
        assert "At bottommost frame" in terminal.answer("down")
        assert "u(p): go to the caller" in terminal.answer("help u")
        assert "the end: 12.0" in terminal.leave("c")
        assert process.wait(60) == 0


@pytest.mark.slow(jaxlib=True)
def test_each_element_of_a_batch_and_the_forward_pass(tmp_path: Path) -> None:
    call = (
        "out = verax.vmap(verax.grad(outer))(vnp.ones((2, 1)) * vnp.arange(2)[:, None])"
    )
    with running(call, tmp_path) as (terminal, process):
        for value in (1.0, 2.0):
            assert terminal.read().endswith(f"Entering jdb:\n{PROMPT}")
            assert terminal.answer("p x.tolist()") == f"[{value}]"
            os.write(terminal.side, b"c\n")
        assert "[2.]]" in terminal.read("never")
        assert process.wait(60) == 0


@pytest.mark.slow(jaxlib=True)
def test_the_end_of_the_program(tmp_path: Path) -> None:
    with running("out = outer(vnp.arange(3.0))", tmp_path) as (terminal, process):
        terminal.read()
        said = terminal.leave("q")
        assert "the end" not in said
        assert process.wait(60) == 0


@pytest.mark.slow(jaxlib=True)
def test_ctrl_c_ends_a_command_alone(tmp_path: Path) -> None:
    with running("out = outer(vnp.arange(3.0))", tmp_path) as (terminal, process):
        terminal.read()
        terminal.interrupt(process)
        assert "--KeyboardInterrupt--" in terminal.read()
        assert terminal.answer("p 1 + 2") == "3"
        assert "the end" in terminal.leave("c")
        assert process.wait(60) == 0
