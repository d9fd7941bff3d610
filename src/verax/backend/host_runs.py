"""Floor 4: running programs that call functions of the host.

One idea: what such a function raises cannot travel through XLA, so it is kept under a
number and XLA's message carries the number; effects that may still be under way are
known by the tokens of the runs that cause them::

    failure = FAILURES.behind(error)      # what the user's function raised, or None
    RUNS.wait()                           # verax.effects_barrier()
"""

import atexit
import re
import threading
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from typing import Final, Protocol

import numpy as np
from attrs import frozen
from jaxlib import _jax

from verax.rules.emitter import HostCall
from verax.rules.host import CallbackError

MARK: Final = re.compile(r"verax callback failure (\d+)")
KEPT = 256
LONGEST_QUEUE = 32


class Token(Protocol):
    """What tells when a run has ended."""

    def block_until_ready(self) -> None: ...


class FailedCallback(Exception):
    """What XLA gets to see: the number under which the true exception is kept."""


class Failures:
    """The last exceptions of callbacks, by number; they are looked up many times."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.count = 0
        self.kept: OrderedDict[int, BaseException] = OrderedDict()

    def keep(self, error: BaseException) -> FailedCallback:
        """Note an exception; what to raise towards XLA in its place."""
        with self.lock:
            self.count += 1
            self.kept[self.count] = error
            if len(self.kept) > KEPT:
                self.kept.popitem(last=False)
            return FailedCallback(f"verax callback failure {self.count}")

    def behind(self, error: BaseException) -> BaseException | None:
        """The exception of a callback that made XLA raise `error`, ready to raise."""
        found = MARK.search(str(error))
        kept = self.kept.get(int(found[1])) if found else None
        if not isinstance(kept, CallbackError):
            return kept
        again = CallbackError(*kept.args)
        again.__cause__ = kept.__cause__
        return again


class Depth(threading.local):
    """How many callbacks this thread is in."""

    depth = 0


FAILURES: Final = Failures()
INSIDE: Final = Depth()


@frozen
class Trampoline:
    """What XLA calls: the function of the host, with everything it may do caught."""

    function: HostCall
    ordered: bool

    def __call__(self, *arrays: np.ndarray) -> tuple[object, ...]:
        INSIDE.depth += 1
        try:
            found = self.function(*(arrays[1:] if self.ordered else arrays))
        except BaseException as error:
            raise FAILURES.keep(error) from None
        finally:
            INSIDE.depth -= 1
        # In the place of a token XLA gives None, and takes None.
        return (None, *found) if self.ordered else tuple(found)


class Runs:
    """The runs with effects that may not have ended."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.tokens: deque[Token] = deque()
        self.ordered: Token | None = None
        self.failed: BaseException | None = None
        self.at_exit = False

    def before(self) -> None:
        """Wait for the last run with ordered effects, for the next one is to begin.

        A callback that runs programs is part of such a run, so it does not wait for it.
        """
        with self.lock:
            token = self.ordered
        if token is not None and not INSIDE.depth:
            self.ended(token)

    def add(self, token: Token, ordered: bool) -> None:
        """Note a run that has begun; what a callback runs is waited for at once."""
        if INSIDE.depth:
            token.block_until_ready()
            return
        with self.lock:
            self.tokens.append(token)
            if ordered:
                self.ordered = token
            oldest = self.tokens.popleft() if self.full() else None
            if not self.at_exit:
                self.at_exit = True
                atexit.register(self.wait)
        if oldest is not None and (error := self.ended(oldest)):
            self.failed = self.failed or error

    def full(self) -> bool:
        return len(self.tokens) > LONGEST_QUEUE

    def ended(self, token: Token) -> BaseException | None:
        """Wait for the end of a run: what went wrong in it, if anything."""
        try:
            token.block_until_ready()
        except _jax.JaxRuntimeError as error:
            return FAILURES.behind(error) or error
        return None

    def wait(self) -> None:
        """Wait until all effects have happened.

        Raises:
            CallbackError: a callback failed; the first failure is raised, once.
        """
        if INSIDE.depth:
            return
        with self.lock:
            tokens, failed = list(self.tokens), self.failed
            self.tokens.clear()
            self.ordered = self.failed = None
        for token in tokens:
            failed = self.ended(token) if failed is None else failed
        if failed is not None:
            raise failed


RUNS: Final = Runs()


def with_effects(
    loaded: _jax.LoadedExecutable, ordered: bool
) -> Callable[[Sequence[_jax.ArrayImpl]], _jax.ExecuteResults]:
    """`execute_sharded` of a program that has effects."""
    run = loaded.execute_sharded

    def execute(buffers: Sequence[_jax.ArrayImpl]) -> _jax.ExecuteResults:
        if ordered:
            RUNS.before()
        results = run(buffers, with_tokens=True)
        RUNS.add(results.consume_token(), ordered)
        return results

    return execute
