"""Work that threads do beside the program (floor 4).

One idea: threads come with the work and end with it, as many at a time as the process
has cores, and the interpreter joins them when it exits: a thread that came back from
the compiler to an interpreter that is gone would abort the process::

    job = JOBS.start(key, compile)      # returns at once
    job.result()
"""

import sys
import threading
from collections import deque
from collections.abc import Callable, Generator, Hashable, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from time import perf_counter
from typing import Any, ClassVar, Final, TextIO

from attrs import field, frozen

from verax.backend.runtime.client import check_not_forked
from verax.ir.locks import Lock, locked
from verax.ir.records import ReprMixin
from verax.ir.system import processors
from verax.rules.guards import block

type Work[T] = Callable[[], T]


class Job[T]:
    """Work that a thread does once; what came of it stays."""

    __slots__ = ("ended", "error", "key", "returned", "work")

    def __init__(self, key: Hashable, work: Work[T]) -> None:
        self.key = key
        self.work: Work[T] | None = work
        self.ended = threading.Event()
        self.returned: tuple[T] | None = None
        self.error: BaseException | None = None

    def run(self) -> None:
        """Do the work, and keep what it returns or raises; `end` comes next."""
        assert self.work is not None, "a job runs once"
        try:
            self.returned = (self.work(),)
        except BaseException as error:
            self.error = error

    def end(self, error: BaseException | None = None) -> None:
        """Wake up those who wait; the work and what it holds are released."""
        self.error = error or self.error
        self.work = None
        self.ended.set()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for the end, at most `timeout` seconds: whether it has come.

        Raises:
            RuntimeError: this process was forked from the one whose thread works.
        """
        if not self.ended.is_set():
            check_not_forked()
        return self.ended.wait(timeout)

    def result(self, timeout: float | None = None) -> T:
        """Returns what the work returned; raises what it raised.

        Raises:
            TimeoutError: it did not end within `timeout` seconds.
        """
        if not self.wait(timeout):
            raise TimeoutError(f"the work did not end within {timeout} seconds")
        if self.error is not None:
            raise self.error
        assert self.returned is not None, "a job ends with a value or with an error"
        return self.returned[0]


def ended[T](key: Hashable, value: T) -> Job[T]:
    """A job that nobody has to do any more."""
    job: Job[T] = Job(key, lambda: value)
    job.returned = (value,)
    job.end()
    return job


@locked
class Jobs:
    """Jobs that wait for a thread or have one, by key; and how many threads there are.

    >>> jobs = Jobs()
    >>> job = jobs.start("sum", lambda: 1 + 2)
    >>> job.result()
    3
    """

    lock: ClassVar[Lock]

    def __init__(self, size: int | None = None) -> None:
        self.size = size
        self.jobs: dict[Hashable, Job[Any]] = {}
        self.queue: deque[Job[Any]] = deque()
        self.threads: set[int] = set()

    def find(self, key: Hashable) -> Job[Any] | None:
        """The job under `key`, if it has not ended."""
        with self.lock:
            return self.jobs.get(key)

    def start[T](self, key: Hashable, work: Work[T]) -> Job[T]:
        """Do the work in a thread, as soon as a core is free for it.

        The same job for all who ask under equal keys before it has ended.
        """
        with self.lock:
            job = self.jobs.get(key)
            if job is None:
                job = self.jobs[key] = Job(key, work)
                self.queue.append(job)
        self.find_thread()
        return job

    def find_thread(self) -> None:
        """See to it that a thread takes what waits, or will when it is free."""
        size = self.size or processors()
        if len(self.threads) >= size:
            return
        try:
            # Not a daemon: see above. It leaves when nothing waits any more.
            threading.Thread(
                target=self.serve, args=(size,), name="verax-jobs", daemon=False
            ).start()
        except RuntimeError:  # no thread is to be had
            self.serve(1)

    def serve(self, size: int) -> None:
        """Run what waits, one job after the other, unless `size` threads do."""
        with self.lock:
            if len(self.threads) >= size:
                return
            self.threads.add(threading.get_ident())
        try:
            while (job := self.next()) is not None:
                job.run()
                with self.lock:
                    self.jobs.pop(job.key, None)
                job.end()  # from now on the key is free for whoever has waited
        finally:
            self.threads.discard(threading.get_ident())

    def next(self) -> Job[Any] | None:
        """The next job for this thread; None if it may leave."""
        with self.lock:
            if not threading.main_thread().is_alive():
                self.drop()
            if self.queue:
                return self.queue.popleft()
            # Within the lock, so that who adds a job sees that this thread has left.
            self.threads.discard(threading.get_ident())
            return None

    def drop(self) -> None:
        """End what waits, because the process is about to end."""
        while self.queue:
            job = self.queue.popleft()
            self.jobs.pop(job.key, None)
            job.end(RuntimeError("the work was not begun before the process ended"))


JOBS: Final = Jobs()


# -----------------------------------------------------------------------------
# Lines on the terminal about stages of a compilation that take long.
#
# A stage only notes that it has begun; a thread that is there while stages are
# looks at them, so that short ones show nothing::
#
#     with Display().stage("train_step", "XLA"):
#         compile()                               # verax: train_step: XLA 12.3 s
#
# On a terminal all stages under way are shown live, with rich if that is installed.
# When a stage ends it leaves one line, on a terminal or not.


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

    lock: ClassVar[Lock]

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
                result = [x for x in self.stages.values() if x.thread.is_alive()]
                if not result and not known:
                    self.thread = None
                    break
            ended = [x for x in known if x not in result]
            known = result
            screen.show(
                [x.line() for x in result if x.seconds >= self.after],
                [x.line() for x in ended if x.seconds >= self.after],
            )
            if result:
                tick.wait(EVERY)
        screen.close()


WITHIN: Final = nullcontext()


class Screen:
    """A terminal of lines: those that stay, and on a real one those that change."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream
        self.live: Any = None
        self.console: Any = None
        if stream.isatty():
            with suppress(ModuleNotFoundError):
                from rich.console import Console as CONSOLE

                self.console = CONSOLE(file=stream)

    def show(self, lines: Sequence[str], ended: Sequence[str]) -> None:
        """Show these lines instead of those before, and above them what has ended."""
        with suppress(OSError, ValueError):  # the stream was closed
            if self.console is None:
                self.stream.writelines([f"{line}\n" for line in ended])
                self.stream.flush()
                return
            from rich.text import Text as TEXT

            for line in ended:
                self.console.print(TEXT(line))
            if lines and self.live is None:
                # What users print meanwhile is not touched.
                from rich.live import Live as LIVE

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
