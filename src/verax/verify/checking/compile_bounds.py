"""Floor 6: compiling ends, and its result is not much larger than the program.

One idea: LLVM takes a time exponential in the rotations of words (`x << r | x >> 32-r`)
that XLA fuses into one loop, so they are counted, as are the instructions; only what
nobody thought of is left to the clock::

    program = held(engine, jaxpr)     # raises CompiledTooLarge or CompilesTooLong
"""

import re
from collections.abc import Callable
from concurrent.futures import Future
from threading import Thread
from typing import Final

from verax.backend.lowering.lower import lower
from verax.backend.lowering.result import OPERATION
from verax.backend.programs.program import Program, compiled, platform_of
from verax.backend.xla.executable import CompileOptions
from verax.ir.jaxpr import Jaxpr
from verax.rules.values.state import STATE, refresh_own
from verax.transforms.engine.engine import StandardEngine

ROTATIONS: Final = 36
"""In one loop: a hash has 20, and the equations of a small program a few."""
GROWTH: Final = 48
"""Instructions for each operation lowered, as XLA writes some functions out."""
ALWAYS: Final = 1000
"""Instructions that a program may have beside those."""
SECONDS: Final = 300.0
"""How long one program of the kit may take to compile, on a busy machine too."""

FUNCTION: Final = re.compile(r"^  func\.func \w+ @([\w.]+)", re.MULTILINE)
CALL: Final = re.compile(r"callee = @([\w.]+)")
INSTRUCTION: Final = re.compile(r"^  (?:ROOT )?%?[\w.\-]+ = ", re.MULTILINE)
SHIFTS: Final = re.compile(r"stablehlo\.shift_left")
SHIFTED: Final = re.compile(r" shift-left\(")


class CompiledTooLarge(AssertionError):
    """XLA made a program much larger than it was."""


class CompilesTooLong(AssertionError):
    """A compilation did not finish."""


def held(engine: StandardEngine, jaxpr: Jaxpr, name: str = "law") -> Program:
    """The compiled program, held to its size and to the clock.

    Raises:
        CompiledTooLarge: it is many times as large as what was lowered, or more than
            one hash of random bits is in one loop.
        CompilesTooLong: it takes longer than `SECONDS`.
    """
    module = lower(engine, jaxpr, name, platforms=(platform_of(None),)).text
    if count(module, SHIFTS) > ROTATIONS:
        # Without LLVM's optimisations, which may not end.
        quick = compiled(engine, jaxpr, name, CompileOptions(effort="fast"))
        check_rotations(quick.executable.hlo_text())
    program = in_time(lambda: compiled(engine, jaxpr, name, CompileOptions()))
    check_size(count(module, OPERATION), program.executable.hlo_text())
    return program


def count(module: str, pattern: re.Pattern[str]) -> int:
    """How often a pattern occurs in a module where every call is written out."""
    starts = [match.start() for match in FUNCTION.finditer(module)]
    bodies = [
        module[i:j] for i, j in zip(starts, [*starts[1:], len(module)], strict=True)
    ]
    texts = dict(zip(FUNCTION.findall(module), bodies, strict=True))
    known: dict[str, int] = {}

    def full(name: str) -> int:
        if name not in known:
            inside = sum(map(full, CALL.findall(texts[name])))
            known[name] = len(pattern.findall(texts[name])) + inside
        return known[name]

    return full("main")


def check_rotations(hlo: str) -> None:
    """Raise if a computation of an optimised program shifts words too often.

    Raises:
        CompiledTooLarge: it does.
    """
    most = max(len(SHIFTED.findall(part)) for part in hlo.split("\n\n"))
    if most > ROTATIONS:
        raise CompiledTooLarge(
            f"{most} shifts in one loop, which LLVM may never finish optimising: keep "
            "each hash apart from what uses it"
        )


def check_size(asked: int, hlo: str) -> None:
    """Hold the size of an optimised program to the operations that it was made from.

    Raises:
        CompiledTooLarge: it is many times as large.
    """
    found = len(INSTRUCTION.findall(hlo))
    if found > ALWAYS + GROWTH * asked:
        raise CompiledTooLarge(
            f"{asked} operations became {found} instructions: fusions repeat them"
        )


def in_time[T](compile: Callable[[], T], seconds: float = SECONDS) -> T:
    """Returns what `compile` gives, under the configuration of this thread.

    Raises:
        CompilesTooLong: it takes longer than `seconds`. It goes on beside, as XLA
            cannot be stopped, until the process ends.
    """
    future: Future[T] = Future()
    configuration = dict(vars(STATE))

    def run() -> None:
        vars(STATE).update(configuration)
        refresh_own()
        try:
            future.set_result(compile())
        except BaseException as error:  # it is raised where the result is asked for
            future.set_exception(error)
        finally:
            vars(STATE).clear()
            refresh_own()

    Thread(target=run, daemon=True, name="compiling").start()
    try:
        return future.result(seconds)
    except TimeoutError:
        if future.done():
            raise
        raise CompilesTooLong(f"not compiled within {seconds:g} s") from None
