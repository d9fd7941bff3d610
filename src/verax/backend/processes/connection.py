"""Connecting a process with the others of its program (floor 4).

One idea: process 0 runs jaxlib's coordination service, and all processes, process 0
too, are its clients; the PJRT client that starts later finds the others through it::

    connect(Settings("127.0.0.1:7777", "127.0.0.1:7777", count=2, index=0))
"""

import atexit
import errno
import socket
import sys
import time
from contextlib import suppress
from typing import Any, Final

from jaxlib import _jax

from verax.backend.processes.exchange import (
    announce,
    announce_departure,
    ask,
    connection,
    publish,
    published,
)
from verax.backend.processes.watch import (
    WATCHERS,
    park_lost_threads,
    park_threads_at_exit,
    refused,
    skip_destructors,
    split_address,
)
from verax.backend.runtime.client import SLOT
from verax.backend.runtime.cluster import (
    CLUSTER,
    Connection,
    ProcessFailed,
    Settings,
    keep,
)
from verax.backend.runtime.errors import trimmed
from verax.backend.runtime.log import log_warning

# How long the coordinator stays after it has said why it gives up.
FAREWELL_SECONDS: Final = 1.0
# What jaxlib raises where it cannot pass on what the service says.
UNTOLD: Final = "bad_cast"
# How often a process looks whether the coordinator listens.
KNOCK_SECONDS: Final = 0.05
# Where each process says that it has come to its end, process 0 that all have, and each
# that it needs process 0 no more; and how often process 0 looks there.
CLOSED: Final = "verax/closed"
OVER: Final = "verax/over"
LEFT: Final = "verax/left"
LOOK_SECONDS: Final = 0.02
# What a request may take besides.
GRACE_SECONDS: Final = 2.0


def connect(settings: Settings) -> None:
    """Connect this process with the others, which must do the same.

    Raises:
        RuntimeError: it is connected, or has started its devices; the coordinator
            cannot be reached, or refuses this process.
    """
    if CLUSTER.connection is not None:
        raise RuntimeError(
            "distributed.initialize should only be called once: this process is "
            "connected with the others already; call distributed.shutdown first"
        )
    if SLOT.client is not None or SLOT.others:
        raise RuntimeError(
            "distributed.initialize() must be called before any verax computations are "
            "executed: this process has started its devices. Call initialize before "
            "the first array is made and the first device is asked for."
        )
    service = None
    if settings.index == 0:
        service = started_service(settings)
    try:
        client = connected_client(settings)
    except BaseException:
        if service is not None:
            service.shutdown()
        raise
    keep(client)
    keep(service)
    park_lost_threads()
    watchers = tuple([watcher(settings, client) for watcher in WATCHERS])
    address = own_address(settings)
    CLUSTER.open(Connection(settings, client, service, address, watchers))
    for thread in watchers:
        thread.start()
    atexit.register(leave)


def started_service(settings: Settings) -> _jax.DistributedRuntimeService:
    """The coordination service, in process 0."""
    check_free(settings.bind)
    try:
        return _jax.get_distributed_runtime_service(
            settings.bind,
            settings.count,
            heartbeat_timeout=settings.heartbeat_timeout,
            cluster_register_timeout=settings.initialization_timeout,
            shutdown_timeout=settings.shutdown_timeout,
            **options(settings),
        )
    except RuntimeError as error:
        raise RuntimeError(
            f"The coordinator cannot listen on {settings.bind}: {trimmed(str(error))}. "
            "Choose another port, or say where with coordinator_bind_address."
        ) from error


def check_free(address: str) -> None:
    """Raise if something listens on the address: jaxlib would share it.

    Raises:
        RuntimeError: it is taken, or not an address of this machine.
    """
    host, port = split_address(address)
    try:
        family, kind, *_, where = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM
        )[0]
        with socket.socket(family, kind) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(where)
    except OSError as error:
        advice = (
            "Is process 0 started twice? Choose a free port."
            if error.errno == errno.EADDRINUSE
            else "It runs in process 0: choose an address of that machine, or say with "
            "coordinator_bind_address where to listen."
        )
        raise RuntimeError(
            f"The coordinator cannot listen on {address}: {error}. {advice}"
        ) from error


def connected_client(settings: Settings) -> _jax.DistributedRuntimeClient:
    """A client of the service, once all processes are there."""
    started = time.monotonic()
    await_listener(settings)
    left = settings.initialization_timeout - (time.monotonic() - started)
    client = _jax.get_distributed_runtime_client(
        settings.coordinator,
        settings.index,
        init_timeout=max(round(left), 1),
        shutdown_timeout=settings.shutdown_timeout,
        heartbeat_timeout=settings.heartbeat_timeout,
        # Without one jaxlib ends the process; `park_lost_threads` says what this does.
        missed_heartbeat_callback=lost,
        shutdown_on_destruction=False,
        use_compression=True,
        **options(settings),
    )
    try:
        keep(client).connect()
    except RuntimeError as error:
        seconds = time.monotonic() - started
        late = seconds >= settings.initialization_timeout - 1
        reason = (
            f"not all {settings.count} processes came, or what listens there is "
            "another program"
            if late
            else "it refused, or has waited for all processes long enough: did all "
            "start, is the process_id unique, the number of processes the same "
            "everywhere, and the security as the coordinator's?"
        )
        raise RuntimeError(
            f"Process {settings.index} of {settings.count} could not join the others "
            f"through the coordinator at {settings.coordinator} within {seconds:.1f} s "
            f"(initialization_timeout={settings.initialization_timeout}): {reason}"
        ) from (None if UNTOLD in str(error) else error)
    return client


def await_listener(settings: Settings) -> None:
    """Wait until the coordinator listens; jaxlib's client asks but once a second.

    Raises:
        RuntimeError: it does not within the time.
    """
    end = time.monotonic() + settings.initialization_timeout
    while (refusal := refused(settings.coordinator)) is not None:
        if time.monotonic() > end:
            raise RuntimeError(
                f"Process {settings.index} of {settings.count} found no coordinator at "
                f"{settings.coordinator} within {settings.initialization_timeout} s "
                "(initialization_timeout): check that process 0 runs, that the address "
                f"is its own, and that this machine can reach it ({refusal})"
            )
        time.sleep(KNOCK_SECONDS)


def lost(*status: object) -> None:
    """Handles an error that the service reports to jaxlib."""
    CLUSTER.fail(f"the coordination service reports an error: {status}")


def options(settings: Settings) -> dict[str, Any]:
    """The options of mutual TLS."""
    return dict(settings.security)


def own_address(settings: Settings) -> str:
    """The address from which this machine reaches the coordinator.

    Gloo listens there and nowhere else, so a program on the loopback address stays on
    it.
    """
    host, port = split_address(settings.coordinator)
    family, kind, *_, where = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM)[0]
    with socket.socket(family, kind) as probe:
        probe.connect(where)
        out: str = probe.getsockname()[0]
    return out


def disconnect() -> None:
    """Leave the program, after all other processes have come here too.

    Raises:
        ProcessFailed: one of them failed meanwhile.
        RuntimeError: they do not come in time.
    """
    opened = CLUSTER.connection
    if opened is None:
        return
    atexit.unregister(leave)
    atexit.register(park_threads_at_exit)
    try:
        announce_departure()
        leave_in_order(opened.settings)
    except ProcessFailed:
        if opened.service is not None:
            time.sleep(FAREWELL_SECONDS)  # others, too, learn which process failed
        raise
    except RuntimeError as error:
        raise RuntimeError(
            f"Process {opened.settings.index} waited "
            f"{opened.settings.shutdown_timeout} s (shutdown_timeout_seconds) for "
            f"the others to end: {error}"
        ) from error
    finally:
        CLUSTER.closing = True
        if opened.service is not None and CLUSTER.failure is None:
            opened.service.shutdown()
        for thread in opened.watchers:
            thread.join(FAREWELL_SECONDS if CLUSTER.failure is None else 0)
        CLUSTER.close()


def leave_in_order(settings: Settings) -> None:
    """Wait until all have come to their end; jaxlib's own `shutdown` waits for nobody.

    The coordinator ends last, since others take its end for a failure. They stay until
    then, because a heartbeat that is missing is a failure, too.

    Raises:
        ProcessFailed: one of them failed meanwhile.
        RuntimeError: process 0 waited in vain; the others have nothing to wait for.
    """
    seconds = settings.shutdown_timeout
    if settings.index == 0:
        await_keys(CLOSED, settings.count - 1, seconds)
        CLUSTER.closing = True
        with suppress(RuntimeError, TimeoutError):
            publish(OVER, b"")
            await_keys(LEFT, settings.count - 1, GRACE_SECONDS)
    else:
        try:
            publish(f"{CLOSED}/{settings.index}", b"")
            published(OVER, seconds)
        except ProcessFailed:
            raise
        except (RuntimeError, TimeoutError) as error:
            log_warning("Process %d ends before others: %s.", settings.index, error)
        CLUSTER.closing = True
        # The coordinator may end before it answers this.
        key = f"{LEFT}/{settings.index}"
        with suppress(RuntimeError, TimeoutError):
            ask(lambda client: client.key_value_set(key, ""), GRACE_SECONDS)
    with suppress(RuntimeError, TimeoutError):
        ask(lambda client: client.shutdown(), GRACE_SECONDS)


def await_keys(name: str, count: int, seconds: float) -> None:
    """Wait until there are so many keys that start with `name/`.

    Raises:
        ProcessFailed: another process failed meanwhile.
        RuntimeError: they do not come in time.
    """

    def compute(client: _jax.DistributedRuntimeClient) -> int:
        end = time.monotonic() + seconds
        while True:
            missing = count - len(client.key_value_dir_get(name))
            if not missing or time.monotonic() > end:
                return missing
            time.sleep(LOOK_SECONDS)

    try:
        missing = ask(compute, seconds + GRACE_SECONDS)
    except TimeoutError as error:
        raise RuntimeError(str(error)) from error
    if missing:
        raise RuntimeError(f"{missing} processes have not ended")


def leave() -> None:
    """At the end of the process: leave in order, or say why this process ends."""
    opened = CLUSTER.connection
    if opened is None:
        return
    error = getattr(sys, "last_exc", None)
    try:
        take_leave(opened, error)
    finally:  # Ctrl-C may cut it short
        if CLUSTER.failure is not None or not CLUSTER.closing:
            skip_destructors()
        park_threads_at_exit()


def take_leave(opened: Connection, error: BaseException | None) -> None:
    """Wait for the other processes, or tell them of the error that ends this one."""
    if CLUSTER.failure is None and error is None:
        try:
            disconnect()
        except RuntimeError as failure:  # an exception would only be printed here
            log_warning("%s", failure)
        return
    if CLUSTER.failure is None:
        index = opened.settings.index
        announce(f"process {index} ended with {type(error).__name__}: {error}")
    if opened.service is not None:
        time.sleep(FAREWELL_SECONDS)  # others learn of it before the service ends


# -----------------------------------------------------------------------------
# The step at which all processes save, since one of them will be ended.
#
# Jaxlib's manager takes SIGTERM as the announcement, and agrees with those of
# the other processes on a step that none has passed yet::
#
#     reached_sync_point(step)     # True in all processes at the same step


class Managers:
    """The one manager of this process, made when it is first asked."""

    __slots__ = ("manager",)

    def __init__(self) -> None:
        """SIGTERM ends the process still."""
        self.manager: _jax.PreemptionSyncManager | None = None


MANAGERS: Final = Managers()


def reached_sync_point(step: int) -> bool:
    """Whether all processes agreed to save at this step.

    Raises:
        RuntimeError: this process has not joined others.
    """
    client = connection().client
    if MANAGERS.manager is None:
        manager = _jax.create_preemption_sync_manager()
        manager.initialize(client)
        MANAGERS.manager = keep(manager)
    return MANAGERS.manager.reached_sync_point(step)
