"""Floor 4: running programs that call functions of the host.

One idea: effects that may still be under way are known by the tokens of the runs that
cause them::

    RUNS.wait()                           # verax.effects_barrier()
"""

import atexit
import threading
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import ClassVar, Final, Protocol

import numpy as np
from attrs import frozen
from jaxlib import _jax

from verax.backend.lowering.mlir_text import HostCalls
from verax.backend.runtime.callback_errors import FAILURES, MARK
from verax.ir.effects import is_ordered
from verax.ir.locks import Lock, locked
from verax.ir.records import ReprMixin
from verax.rules.rows.emitter import HostCall
from verax.rules.values.state import State

LONGEST_QUEUE = 32


class Token(Protocol):
    """A token that tells when a run has ended."""

    def block_until_ready(self) -> None: ...


class Depth(threading.local):
    """The number of callbacks this thread is in."""

    depth = 0


INSIDE: Final = Depth()


@frozen(repr=False)
class Trampoline(ReprMixin):
    """The function that XLA calls: that of the host, with everything it may do caught.

    jaxlib never gives back what it was told to call, so the function itself belongs to
    the executable, and to the runs of it that are under way. In a program over several
    devices the others would wait forever for one that stops, so `failed` gets the
    exception and the program goes on with zeros.
    """

    function: Callable[[], HostCall | None]
    ordered: bool
    failed: list[BaseException] | None = None

    def __call__(self, *arrays: np.ndarray) -> tuple[object, ...]:
        depth = INSIDE.depth
        function = self.function()
        try:
            INSIDE.depth = depth + 1
            assert function is not None, "the program of this callback no longer exists"
            out = function(*(arrays[1:] if self.ordered else arrays))
        except BaseException as error:
            if self.failed is None or function is None:
                raise FAILURES.keep(error) from None
            self.failed.append(error)
            out = function.blanks()
        finally:
            INSIDE.depth = depth
        # In the place of a token XLA gives None, and takes None.
        return (None, *out) if self.ordered else tuple(out)


def trampolines(
    calls: HostCalls, failed: list[BaseException] | None
) -> list[Trampoline]:
    """The functions to give to XLA for those of a module, in their order."""
    return [
        Trampoline(weakref.ref(call), ordered, failed)
        for call, ordered in calls.functions
    ]


@locked
class Runs:
    """The runs with callbacks that may not have ended, and what they call."""

    lock: ClassVar[Lock]

    def __init__(self) -> None:
        self.tokens: deque[tuple[Token, HostCalls]] = deque()
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
            # Its failure is for those who look at its results, or wait.
            with suppress(_jax.JaxRuntimeError):
                token.block_until_ready()

    def add(self, token: Token, calls: HostCalls, ordered: bool) -> None:
        """Note a run that has begun; what a callback runs is waited for at once."""
        if INSIDE.depth:
            token.block_until_ready()
            return
        with self.lock:
            self.tokens.append((token, calls))
            if ordered:
                self.ordered = token
            oldest = self.tokens.popleft() if self.full() else None
            if not self.at_exit:
                self.at_exit = True
                atexit.register(self.wait)
        if oldest is not None and (error := self.ended(oldest[0])):
            self.failed = self.failed or error

    def release(self, calls: HostCalls) -> None:
        """Release the functions of a collected program, once its runs have ended.

        Programs are collected anywhere, where waiting is not allowed; so a thread
        waits. The interpreter joins it at exit: a daemon that returns from jaxlib to a
        finalised interpreter would abort the process.
        """
        if any([other is calls for _, other in [*self.tokens]]):
            threading.Thread(target=self.drop, args=(calls,), daemon=False).start()

    def drop(self, calls: HostCalls) -> None:
        """Wait for the runs of a program, and forget what they call."""
        for entry in [entry for entry in [*self.tokens] if entry[1] is calls]:
            error = self.ended(entry[0])
            with self.lock:
                # Another thread may have waited for it meanwhile.
                left = [other for other in self.tokens if other is not entry]
                if len(left) < len(self.tokens):
                    self.tokens = deque(left)
                    self.failed = self.failed or error

    def full(self) -> bool:
        return len(self.tokens) > LONGEST_QUEUE

    def ended(self, token: Token) -> BaseException | None:
        """Wait for the end of a run: what went wrong in it, if anything."""
        try:
            token.block_until_ready()
        except _jax.JaxRuntimeError as error:
            if MARK.search(str(error)) is None:
                return FAILURES.revealed(error)
            return FAILURES.behind(error, new=True)
        return None

    def wait(self) -> None:
        """Wait until all effects have happened.

        Raises:
            CallbackError: a callback failed and the failure was not raised yet; only
            the first is raised, once.
        """
        if INSIDE.depth:
            return
        with self.lock:
            tokens, failed = list(self.tokens), self.failed
            self.tokens.clear()
            self.ordered = self.failed = None
        for token, _ in tokens:
            error = self.ended(token)
            failed = failed or error
        if failed is not None:
            raise failed from failed.__cause__


RUNS: Final = Runs()


def with_calls(
    loaded: _jax.LoadedExecutable,
    calls: HostCalls,
    failed: list[BaseException] | None,
) -> Callable[[Sequence[_jax.ArrayImpl]], _jax.ExecuteResults]:
    """`execute_sharded` of a program with callbacks; see `Trampoline` for `failed`."""
    run, ordered = loaded.execute_sharded, is_ordered(calls.effects)

    def execute(buffers: Sequence[_jax.ArrayImpl]) -> _jax.ExecuteResults:
        if ordered:
            RUNS.before()
        results = run(buffers, with_tokens=True)
        token = results.consume_token()
        if failed is None:
            RUNS.add(token, calls, ordered)
            return results
        if State.joined:
            from verax.backend.runtime.cluster import watched

            watched(token.block_until_ready)
        else:
            token.block_until_ready()
        if failed:
            first = failed[0]
            failed.clear()
            raise first
        return results

    weakref.finalize(execute, RUNS.release, calls).atexit = False
    return execute
