"""Work that threads do beside the program (floor 4).

One idea: threads come with the work and end with it, as many at a time as the process
has cores, and the interpreter joins them when it exits: a thread that came back from
the compiler to an interpreter that is gone would abort the process::

    job = JOBS.start(key, compile)      # returns at once
    job.result()
"""

import os
import threading
from collections import deque
from collections.abc import Callable, Hashable
from threading import RLock
from typing import Any, ClassVar, Final

from verax.backend.runtime.client import check_not_forked
from verax.ir.memos.memo import locked

type Work[T] = Callable[[], T]


class Job[T]:
    """Work that a thread does once; what came of it stays."""

    __slots__ = ("ended", "error", "key", "value", "work")

    def __init__(self, key: Hashable, work: Work[T]) -> None:
        self.key = key
        self.work: Work[T] | None = work
        self.ended = threading.Event()
        self.value: T | None = None
        self.error: BaseException | None = None

    def run(self) -> None:
        """Do the work, and keep what it returns or raises; `end` comes next."""
        assert self.work is not None, "a job runs once"
        try:
            self.value = self.work()
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
        value: Any = self.value
        return value  # type: ignore[no-any-return]  # T may include None


def ended[T](key: Hashable, value: T) -> Job[T]:
    """A job that nobody has to do any more."""
    job: Job[T] = Job(key, lambda: value)
    job.value = value
    job.end()
    return job


def core_count() -> int:
    """The number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@locked
class Jobs:
    """Jobs that wait for a thread or have one, by key; and how many threads there are.

    >>> jobs = Jobs()
    >>> job = jobs.start("sum", lambda: 1 + 2)
    >>> job.result()
    3
    """

    lock: ClassVar[RLock]

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
        size = self.size or core_count()
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
