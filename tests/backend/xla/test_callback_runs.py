"""Runs with callbacks, and what waits for them."""

import threading

from attrs import frozen

from verax.backend.lowering.mlir_text import HostCalls
from verax.backend.xla.callback_runs import Runs


@frozen
class Run:
    """The token of a run that ends when it is told to."""

    end: threading.Event

    def block_until_ready(self) -> None:
        self.end.wait(60)


def test_exit_waits_for_the_thread_that_outlives_a_program() -> None:
    # A daemon that comes back from jaxlib while the interpreter is finalised aborts.
    runs, run, calls = Runs(), Run(threading.Event()), HostCalls((), frozenset())
    before = set(threading.enumerate())
    runs.add(run, calls, ordered=False)
    runs.release(calls)
    waiting = [thread for thread in threading.enumerate() if thread not in before]
    run.end.set()
    assert [thread.daemon for thread in waiting] == [False]
    waiting[0].join()
    assert not runs.tokens
