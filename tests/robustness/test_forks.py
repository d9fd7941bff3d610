"""A forked child finds every lock free, whatever other threads did at that moment."""

import os
import select
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from verax.backend.runtime.callback_errors import FAILURES, Failures
from verax.backend.runtime.locks import TRACING, Locks
from verax.backend.runtime.metrics import RECORDER, Recorder
from verax.backend.xla.callback_runs import Runs
from verax.ir.avals import InternTable, ShapedArray
from verax.ir.locks import Lock
from verax.ir.memos import Recent

PATIENCE = 30.0
FORKS = 20
pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork"),
    pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning"),
]


def in_child(work: Callable[[], object]) -> bool:
    """Whether `work` comes to its end in a forked child; one that hangs is ended."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(int(2 * PATIENCE))  # it does not outlive a parent that is stopped
        try:
            work()
            os.write(writer, b"!")
        finally:
            os._exit(0)
    os.close(writer)
    try:
        ready, _, _ = select.select([reader], [], [], PATIENCE)
        return bool(ready) and os.read(reader, 1) == b"!"
    finally:
        os.close(reader)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


@contextmanager
def held(lock: Lock) -> Iterator[None]:
    """Another thread holds the lock within the block."""
    taken, leave = threading.Event(), threading.Event()

    def hold() -> None:
        with lock:
            taken.set()
            leave.wait()

    thread = threading.Thread(target=hold, daemon=True)
    thread.start()
    taken.wait()
    try:
        yield
    finally:
        leave.set()
        thread.join()


def typed(size: int) -> ShapedArray:
    return ShapedArray((size, 7, 9), np.dtype("float32"))


@pytest.mark.parametrize(
    ("kind", "work"),
    [
        (InternTable, lambda: typed(987_654)),
        (Recent, lambda: Recent[str, int](2).add("a", 1)),
        (Recorder, lambda: RECORDER.record("forks")),
        (Failures, lambda: FAILURES.keep(ValueError())),
        (Runs, lambda: Runs().wait()),
        (Locks, lambda: Locks(TRACING).of("key")),
    ],
)
def test_a_lock_that_another_thread_holds_is_free_in_the_child(
    kind: type[Recorder], work: Callable[[], object]
) -> None:
    with held(kind.lock):
        assert in_child(work)


@pytest.mark.slow
def test_children_make_types_and_traces_beside_a_thread_that_does() -> None:
    stop = threading.Event()

    def make() -> None:
        size = 0
        while not stop.is_set():
            size += 1
            typed(size)
            verax.make_jaxpr(lambda x: vnp.sin(x) + 1)(np.zeros(size % 50, "f4"))

    def work() -> None:
        for size in range(2_000_000, 2_000_050):
            typed(size)
        verax.make_jaxpr(lambda x: vnp.cos(x) * 2)(np.zeros(3, "f4"))
        assert vnp.sum(vnp.ones(3) + 1) == 6

    work()  # what CPython imports in a thread stays locked in a child
    before = sys.getswitchinterval()
    thread = threading.Thread(target=make, daemon=True)
    sys.setswitchinterval(1e-5)
    thread.start()
    try:
        assert all([in_child(work) for _ in range(FORKS)])
    finally:
        sys.setswitchinterval(before)
        stop.set()
        thread.join()
