"""The other processes of the program, and whether they are still there (floor 4).

One idea: jaxlib waits without end for a process that is gone, so whoever waits for
values while there are other processes asks repeatedly, and gets an exception as soon as
one of them is known to have failed::

    if State.joined:
        wait(buffer.is_ready)
"""

import ctypes
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from queue import SimpleQueue
from threading import Event, Thread
from typing import Final

import jaxlib.version
from attrs import frozen
from jaxlib import _jax, xla_client

from verax.backend.runtime.errors import trimmed
from verax.backend.runtime.log import log_warning
from verax.ir.locks import new_lock
from verax.ir.records import ReprMixin
from verax.rules.programs.host import JaxRuntimeError
from verax.rules.values.state import State

# A wait asks again after this part of the time that has passed, but within limits.
FRACTION: Final = 1 / 16
SHORTEST: Final = 2e-5
LONGEST: Final = 2e-3
# What waits in a thread is looked after so often.
STEP_SECONDS: Final = 0.05
# What may pass between the end of a heartbeat and the news of it, on a busy machine.
GRACE_SECONDS: Final = 12
# A program that another process never starts may still end, if it needs nothing of it.
DEPARTED_SECONDS: Final = 2.0
# jaxlib lets 32 programs be under way on a device, and before 0.12 one of those that
# span processes. Starting one more waits inside it, where no failure is noticed, so at
# most twice these are started: one of them says when it has ended, and the next waits.
EVERY: Final = 1 if jaxlib.version.__version__.startswith("0.11.") else 14
COMMUNICATION: Final = re.compile("gloo|nccl|coordination", re.IGNORECASE)


class ProcessFailed(JaxRuntimeError):
    """Another process of this program died, hangs, or gave up."""

    __module__ = "verax.errors"


@frozen(eq=False, repr=False)
class Settings(ReprMixin):
    """Settings by which this process finds the others; times are in seconds.

    `security` holds jaxlib's options for mutual TLS.
    """

    coordinator: str
    bind: str
    count: int
    index: int
    local_devices: tuple[int, ...] | None = None
    initialization_timeout: int = 300
    heartbeat_timeout: int = 100
    shutdown_timeout: int = 300
    partition_index: int | None = None
    security: tuple[tuple[str, str | bool], ...] = ()


@frozen(eq=False, repr=False)
class Connection(ReprMixin):
    """The connection to the coordinator; process 0 is the coordinator itself."""

    settings: Settings
    client: _jax.DistributedRuntimeClient
    service: _jax.DistributedRuntimeService | None
    address: str
    """The address of this machine that other processes reach."""
    watchers: tuple[Thread, ...] = ()


type Members = tuple[int, ...]
"""The processes over which a program or an array is spread, ascending."""


@frozen(eq=False, repr=False)
class Departure(ReprMixin):
    """A process that came to its end, and how many programs it had started."""

    index: int
    runs: Mapping[Members, int]


def members_of(devices: Iterable[_jax.Device]) -> Members:
    """The processes that have these devices."""
    return tuple(sorted({device.process_index for device in devices}))


def keep[T](held: T) -> T:
    """The same, kept until the process ends.

    Threads of jaxlib's that wait for other processes use it; what destroyed it would
    crash them, or wait with them.
    """
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(held))
    return held


class Pace:
    """The numbers of programs over several processes, started and ended.

    One of `EVERY` is followed: a thread waits for it.
    """

    __slots__ = ("ended", "followed", "started", "tokens")

    def __init__(self) -> None:
        """None yet."""
        self.started = self.followed = self.ended = 0
        self.tokens = SimpleQueue[_jax.ShardedToken | None]()
        Thread(target=self.watch, name="verax pace", daemon=True).start()

    def watch(self) -> None:
        """Wait for the programs that are followed, until there are no more."""
        while (token := self.tokens.get()) is not None:
            with suppress(_jax.JaxRuntimeError):  # told to those who need its results
                token.block_until_ready()
            self.ended += 1

    def follow(self, token: _jax.ShardedToken) -> None:
        """Have the thread wait for a program."""
        self.followed += 1
        self.tokens.put(token)

    def free(self) -> bool:
        """Whether more programs may be started."""
        return self.followed == self.ended


class Cluster:
    """The one connection of this process, and what went wrong with the others."""

    __slots__ = (
        "closing",
        "connection",
        "departures",
        "failed",
        "failure",
        "lock",
        "pace",
        "reserve",
        "runs",
    )

    def __init__(self) -> None:
        """Alone, until `initialize` is called."""
        self.lock = new_lock()
        self.connection: Connection | None = None
        self.failure: str | None = None
        self.failed = Event()
        self.closing = False
        self.departures: tuple[Departure, ...] = ()
        self.runs = Counter[Members]()
        self.pace: Pace | None = None
        self.reserve = SimpleQueue[Callable[[], None]]()

    def open(self, connection: Connection) -> None:
        """Note that there are other processes."""
        with self.lock:
            self.failure, self.closing = None, False
            self.departures = ()
            self.runs.clear()
            self.pace = Pace()
            self.failed.clear()
            self.connection = connection
        State.joined = True
        Thread(target=self.serve, name="verax reserve", daemon=True).start()

    def serve(self) -> None:
        """Run what comes after Python starts no thread any more."""
        while True:
            self.reserve.get()()

    def close(self) -> None:
        """Alone again."""
        with self.lock:
            self.connection = None
            if self.pace is not None:
                self.pace.tokens.put(None)
            self.pace = None
        State.joined = False

    def fail(self, reason: str) -> None:
        """Note why the others cannot go on; the first reason stays."""
        with self.lock:
            if self.failure is None and not self.closing:
                self.failure = reason
        if self.failure is not None:
            self.failed.set()

    def check(self) -> None:
        """Raise if another process has failed.

        Raises:
            ProcessFailed: one has.
        """
        if self.failure is not None:
            raise ProcessFailed(self.failure) from None

    def check_departure(self, devices: Iterable[_jax.Device]) -> None:
        """Raise if a process ended before the last program that it shares with this.

        It is about programs over the processes of these devices.

        Raises:
            ProcessFailed: so it was; what the program waits for never comes.
        """
        if not self.departures:
            return
        members = members_of(devices)
        own = self.runs[members]
        for gone in self.departures:
            theirs = gone.runs.get(members, 0)
            if gone.index in members and own > theirs:
                raise ProcessFailed(
                    f"Process {gone.index} came to its end after program {theirs} over "
                    f"the processes {', '.join(map(str, members))}, and this one waits "
                    f"for program {own}: all processes must run the same programs"
                ) from None

    def check_ended(self, awaited: Iterable[int]) -> None:
        """Raise if one of these processes has come to its end.

        Raises:
            ProcessFailed: it has; what it should do does not happen any more.
        """
        for gone in self.departures:
            if gone.index in awaited:
                raise ProcessFailed(
                    f"Process {gone.index} came to its end, and this one waits for it: "
                    "all processes must run the same programs"
                ) from None

    def suspect(self, message: str) -> None:
        """An error of communication: wait until it is known which process failed.

        Raises:
            ProcessFailed: one has.
        """
        connection = self.connection
        if connection is None or self.closing or not COMMUNICATION.search(message):
            return
        seconds = connection.settings.heartbeat_timeout + GRACE_SECONDS
        if not self.failed.is_set():
            log_warning(
                "%s. Waiting up to %d s to learn which process failed.",
                trimmed(message),
                seconds,
            )
        self.failed.wait(seconds)
        self.check()

    def wait(
        self, ready: Callable[[], bool], devices: Iterable[_jax.Device] = ()
    ) -> None:
        """Wait until `ready()`, for values that are spread over these devices.

        Raises:
            ProcessFailed: another process fails meanwhile.
        """
        if ready():
            return
        started = time.perf_counter()
        while not ready():
            self.check()
            passed = time.perf_counter() - started
            if passed > DEPARTED_SECONDS:
                self.check_departure(devices)
            time.sleep(min(max(passed * FRACTION, SHORTEST), LONGEST))

    def watched[T](
        self,
        work: Callable[[], T],
        seconds: float | None = None,
        awaited: Iterable[int] = (),
    ) -> T:
        """Returns what `work()` returns, in a thread that may wait for others.

        `awaited` are the numbers of those for which it waits.

        Raises:
            ProcessFailed: another process failed meanwhile, or one of `awaited` ended.
            TimeoutError: it takes longer than `seconds`.
        """
        self.check()
        out: list[T] = []
        errors: list[BaseException] = []
        done = Event()

        def run() -> None:
            try:
                out.append(work())
            except BaseException as error:  # raised again by the caller
                errors.append(error)
            done.set()

        try:
            Thread(target=run, name="verax request", daemon=True).start()
        except RuntimeError:  # Python is ending
            self.reserve.put(run)
        passed = 0.0
        while not done.wait(STEP_SECONDS):
            self.check()
            passed += STEP_SECONDS
            if passed > DEPARTED_SECONDS:
                self.check_ended(awaited)
            if seconds is not None and passed >= seconds:
                raise TimeoutError(f"other processes did not answer in {seconds} s")
        if errors:
            self.failed.wait(STEP_SECONDS)  # the watch may know more of it
            self.check()
            raise errors[0]
        return out[0]


CLUSTER: Final = Cluster()


def wait(ready: Callable[[], bool], devices: Iterable[_jax.Device] = ()) -> None:
    """As `Cluster.wait`."""
    CLUSTER.wait(ready, devices)


def watched[T](work: Callable[[], T]) -> T:
    """As `Cluster.watched`."""
    return CLUSTER.watched(work)


def counted(
    run: Callable[..., _jax.ExecuteResults],
    devices: Sequence[_jax.Device],
    *,
    waits: bool,
) -> Callable[..., _jax.ExecuteResults]:
    """The same run of a program; those that other processes share are counted.

    They are followed as well, unless each run `waits` for its end.

    Without a lock: all processes start them in one order, so from one thread at a time.
    """
    members, runs = members_of(devices), CLUSTER.runs
    if len(members) == 1:
        return run

    def execute(arguments: Sequence[_jax.ArrayImpl]) -> _jax.ExecuteResults:
        runs[members] += 1
        if waits or (pace := CLUSTER.pace) is None:
            return run(arguments)
        pace.started += 1
        if pace.started % EVERY:
            return run(arguments)
        CLUSTER.wait(pace.free, devices)
        results = run(arguments, with_tokens=True)
        pace.follow(results.consume_token())
        return results

    return execute


def suspect(error: Exception) -> None:
    """As `Cluster.suspect`."""
    CLUSTER.suspect(str(error))


def start_joined(start: Callable[[Connection], _jax.Client]) -> _jax.Client:
    """Start the client of a process that has joined others; it waits for theirs.

    Raises:
        ProcessFailed: one of them failed meanwhile.
    """
    connection = CLUSTER.connection
    assert connection is not None, "joined"
    return keep(CLUSTER.watched(lambda: start(connection)))


def start_cpu_client(device_count: int | None) -> _jax.Client:
    """A client for the processor beside those of other processes, joined by Gloo."""
    return start_joined(
        lambda connection: xla_client.make_cpu_client(
            num_devices=device_count,
            distributed_client=connection.client,
            node_id=connection.settings.index,
            num_nodes=connection.settings.count,
            collectives=_jax.make_gloo_tcp_collectives(
                connection.client, hostname=connection.address
            ),
        )
    )
