"""Lines on the terminal about stages of a compilation that take long (floor 4).

One idea: a stage only notes that it has begun; a thread that is there while stages are
looks at them, so that short ones show nothing::

    with Display().stage("train_step", "XLA"):
        compile()                               # verax: train_step: XLA 12.3 s

On a terminal all stages under way are shown live, with rich if that is installed. When
a stage ends it leaves one line, on a terminal or not.
"""

import sys
import threading
from collections.abc import Generator, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from threading import RLock
from time import perf_counter
from typing import Any, ClassVar, Final, TextIO

from attrs import field, frozen

from verax.ir.memos.memo import locked
from verax.ir.records import ReprMixin
from verax.rules.guards.blocks import block
from verax.rules.values.lazy import LazyModule

# Optional, and slow to import.
CONSOLE: Final = LazyModule("rich.console").Console
LIVE: Final = LazyModule("rich.live").Live
TEXT: Final = LazyModule("rich.text").Text

AFTER: Final = 1.0
"""A stage that takes fewer seconds is not shown."""
EVERY: Final = 0.1


@frozen(eq=False, repr=False)
class Stage(ReprMixin):
    """A stage on the way to a program, under way in a thread."""

    program: str
    name: str
    thread: threading.Thread = field(factory=threading.current_thread)
    began: float = field(factory=perf_counter)

    def line(self) -> str:
        """The line that is shown of it now."""
        return f"verax: {self.program}: {self.name} {self.seconds:.1f} s"

    @property
    def seconds(self) -> float:
        return perf_counter() - self.began


class Inside(threading.local):
    """Whether this thread is in a stage, of which those within are part."""

    stage = False


@locked
class Display:
    """The stages under way, and the thread that shows them on `stream`."""

    lock: ClassVar[RLock]

    def __init__(self, stream: TextIO | None = None, after: float = AFTER) -> None:
        self.stream = stream
        self.after = after
        self.stages: dict[object, Stage] = {}
        self.thread: threading.Thread | None = None
        self.inside = Inside()

    def stage(self, program: str, name: str) -> AbstractContextManager[None]:
        """A block that is shown as a stage, unless it is part of another."""
        return WITHIN if self.inside.stage else self.begun(Stage(program, name))

    @block
    def begun(self, stage: Stage) -> Generator[None]:
        """The stage, within the block."""
        key = object()
        removed = map(self.stages.pop, [key], [None])
        try:
            self.inside.stage = True
            self.add(key, stage)
            yield
        finally:
            self.inside.stage = False
            [*removed]  # noqa: B018  # calls it in one step

    def add(self, key: object, stage: Stage) -> None:
        """Note a stage, and see to it that a thread looks."""
        with self.lock:
            self.stages[key] = stage
            if self.thread is not None and self.thread.is_alive():
                return
            self.thread = threading.Thread(target=self.look, name="verax-progress")
            # Not a daemon: it leaves when no stage is under way.
            self.thread.daemon = False
            with suppress(RuntimeError):  # no thread is to be had
                self.thread.start()

    def look(self) -> None:
        """Show what is under way, until nothing is."""
        stream = self.stream or sys.stderr
        if stream is None:  # a process without a console
            return
        known: list[Stage] = []
        screen = Screen(stream)
        tick = threading.Event()
        while True:
            with self.lock:
                found = [x for x in self.stages.values() if x.thread.is_alive()]
                if not found and not known:
                    self.thread = None
                    break
            ended = [x for x in known if x not in found]
            known = found
            screen.show(
                [x.line() for x in found if x.seconds >= self.after],
                [x.line() for x in ended if x.seconds >= self.after],
            )
            if found:
                tick.wait(EVERY)
        screen.close()


WITHIN: Final = nullcontext()


class Screen:
    """Where lines are shown: those that stay, and on a terminal those that change."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream
        self.live: Any = None
        self.console: Any = None
        if stream.isatty():
            with suppress(ModuleNotFoundError):
                self.console = CONSOLE(file=stream)

    def show(self, lines: Sequence[str], ended: Sequence[str]) -> None:
        """Show these lines instead of those before, and above them what has ended."""
        with suppress(OSError, ValueError):  # the stream was closed
            if self.console is None:
                self.stream.writelines([f"{line}\n" for line in ended])
                self.stream.flush()
                return
            for line in ended:
                self.console.print(TEXT(line))
            if lines and self.live is None:
                # What users print meanwhile is not touched.
                self.live = LIVE(
                    console=self.console,
                    auto_refresh=False,
                    transient=True,
                    redirect_stdout=False,
                    redirect_stderr=False,
                )
                self.live.start()
            if self.live is not None:
                self.live.update(TEXT("\n".join(lines)), refresh=True)

    def close(self) -> None:
        """Leave the terminal as it was, below what stays."""
        if self.live is not None:
            with suppress(OSError, ValueError):
                self.live.stop()


DISPLAY: Final = Display()
shown: Final = DISPLAY.stage
