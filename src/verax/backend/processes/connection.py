"""Connecting a process with the others of its program (floor 4).

One idea: process 0 runs jaxlib's coordination service, and all processes, process 0
too, are its clients; the PJRT client that starts later finds the others through it::

    connect(Settings("127.0.0.1:7777", "127.0.0.1:7777", count=2, index=0))
"""

import atexit
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
)
from verax.backend.processes.watch import (
    WATCHERS,
    listens,
    park_lost_threads,
    park_threads_at_exit,
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

# How long the coordinator stays after it has said why it gives up.
FAREWELL_SECONDS: Final = 1.0
# How often a process looks whether the coordinator listens.
KNOCK_SECONDS: Final = 0.05
# Where each process says that it has come to its end, and how often others look there.
CLOSED: Final = "verax/closed"
CLOSED_SECONDS: Final = 0.02
STAY_SECONDS: Final = 5.0
# What the requests of `close` may take besides.
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
        raise RuntimeError(
            f"The coordinator cannot listen on {address}: {error}. Is process 0 "
            "started twice? Choose an address of this machine and a free port."
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
            f"not all {settings.count} processes came"
            if late
            else "it refused, or has waited for all processes long enough: did all "
            "start, is the process_id unique, the number of processes the same "
            "everywhere, and the security as the coordinator's?"
        )
        raise RuntimeError(
            f"Process {settings.index} of {settings.count} could not join the others "
            f"through the coordinator at {settings.coordinator} within {seconds:.1f} s "
            f"(initialization_timeout={settings.initialization_timeout}): {reason}"
        ) from error
    return client


def await_listener(settings: Settings) -> None:
    """Wait until the coordinator listens; jaxlib's client asks but once a second.

    Raises:
        RuntimeError: it does not within the time.
    """
    end = time.monotonic() + settings.initialization_timeout
    while not listens(settings.coordinator):
        if time.monotonic() > end:
            raise RuntimeError(
                f"Process {settings.index} of {settings.count} found no coordinator at "
                f"{settings.coordinator} within {settings.initialization_timeout} s "
                "(initialization_timeout): check that process 0 runs, that the address "
                "is its own, and that this machine can reach it"
            )
        time.sleep(KNOCK_SECONDS)


def lost(*status: object) -> None:
    """What jaxlib calls when the service reports an error."""
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
        found: str = probe.getsockname()[0]
    return found


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
    """Run `close`; jaxlib may wait without end for a coordinator that has gone.

    Raises:
        RuntimeError: process 0 waited in vain; the others have nothing to wait for.
    """
    coordinates = settings.index == 0
    seconds = settings.shutdown_timeout if coordinates else STAY_SECONDS
    try:
        ask(close, seconds + GRACE_SECONDS)
    except TimeoutError as error:
        if coordinates:
            raise RuntimeError(str(error)) from error


def close(client: _jax.DistributedRuntimeClient) -> None:
    """Leave in order; jaxlib's own `shutdown` waits for nobody.

    The coordinator ends last, since others take its end for a failure. They stay for a
    while, so that one which waits for them in a program learns that in vain.

    Raises:
        RuntimeError: the others do not come to their end in time.
    """
    settings = connection().settings
    if settings.index == 0:
        missing = missing_after(client, settings, settings.shutdown_timeout)
        if missing:
            raise RuntimeError(f"{missing} processes have not ended")
        CLUSTER.closing = True
        client.shutdown()
        return
    CLUSTER.closing = True
    with suppress(RuntimeError):  # the coordinator has ended, and so have all
        client.key_value_set(f"{CLOSED}/{settings.index}", "")
        missing_after(client, settings, STAY_SECONDS)
        client.shutdown()


def missing_after(
    client: _jax.DistributedRuntimeClient, settings: Settings, seconds: float
) -> int:
    """How many processes but the coordinator have not come to their end in time."""
    end = time.monotonic() + seconds
    while True:
        missing = settings.count - 1 - len(client.key_value_dir_get(CLOSED))
        if not missing or time.monotonic() > end:
            return missing
        time.sleep(CLOSED_SECONDS)


def leave() -> None:
    """At the end of the process: leave in order, or say why this process ends."""
    opened = CLUSTER.connection
    error = getattr(sys, "last_exc", None)
    if opened is None:
        return
    if CLUSTER.failure is None and error is None:
        disconnect()
    elif CLUSTER.failure is None:
        index = opened.settings.index
        announce(f"process {index} ended with {type(error).__name__}: {error}")
        if opened.service is not None:
            time.sleep(FAREWELL_SECONDS)  # others read it before the service ends
    if CLUSTER.failure is not None or error is not None:
        skip_destructors()
    park_threads_at_exit()
