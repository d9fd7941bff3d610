"""Notices that another process failed, and says which (floor 4).

One idea: threads wait for what never comes while all is well: a barrier, which fails
with the name of a process that has stopped to answer, a key under which a process that
gives up says why, and those under which processes that end say how far they have come::

    await_silence(settings, client)     # in a thread; then CLUSTER.check() raises

jaxlib itself would end the process: it passes its status to a callback as an object
that Python cannot be given, and what that throws nothing catches. So the thread that
threw is kept waiting instead; see `park_lost_threads`.
"""

import ctypes
import re
import socket
from collections.abc import Callable
from contextlib import suppress
from threading import Thread
from typing import Final

from jaxlib._jax import DistributedRuntimeClient

from verax.backend.processes.exchange import FAILURE_KEY, departed, departure_key
from verax.backend.runtime.cluster import CLUSTER, Settings
from verax.backend.runtime.errors import trimmed
from verax.ir.system import c_library

FOREVER_MILLISECONDS: Final = 10**9
# What the watching threads may take to say which process it was.
GRACE_SECONDS: Final = 1.0
# And what they may take on a busy machine, while the service can be reached.
BUSY_SECONDS: Final = 10.0
SILENT: Final = re.compile(r"[Tt]ask:?\s*(\d+) (?:heartbeat timeout|stopped sending)")
UNREACHABLE: Final = "Failed to send RPC to coordination service"
EXPIRED: Final = "DEADLINE_EXCEEDED"

# Where the GNU and the LLVM library of C++ keep these, and what jaxlib's error is.
SET_TERMINATE: Final = "_ZSt13set_terminatePFvvE"
CURRENT_TYPE: Final = "__cxa_current_exception_type"
CAST_FAILED: Final = b"St8bad_cast"
LIBRARIES: Final = ("libstdc++.so.6", "libc++.1.dylib")
type Watch = Callable[[Settings, DistributedRuntimeClient], None]
HANDLER: Final = ctypes.CFUNCTYPE(None)


def await_silence(settings: Settings, client: DistributedRuntimeClient) -> None:
    """Wait at barriers that nobody else comes to, until one fails."""
    attempt = 0
    while True:
        attempt += 1
        name = f"verax/watch/{settings.index}/{attempt}"
        try:
            client.wait_at_barrier(name, FOREVER_MILLISECONDS)
        except RuntimeError as error:
            if EXPIRED not in str(error):
                CLUSTER.fail(told(str(error), settings))
                return


def await_announcement(settings: Settings, client: DistributedRuntimeClient) -> None:
    """Wait until a process says why it ends."""
    while True:
        try:
            reason = client.blocking_key_value_get(FAILURE_KEY, FOREVER_MILLISECONDS)
        except RuntimeError as error:
            if EXPIRED not in str(error):
                return  # the other thread knows better
        else:
            CLUSTER.fail(f"Another process gave up: {reason}")
            return


def await_departures(settings: Settings, client: DistributedRuntimeClient) -> None:
    """Wait until processes end in order, and note what they have done."""
    number = 0
    while number < settings.count:
        key = departure_key(number)
        try:
            text = client.blocking_key_value_get(key, FOREVER_MILLISECONDS)
        except RuntimeError as error:
            if EXPIRED not in str(error):
                return
        else:
            CLUSTER.departures = (*CLUSTER.departures, departed(text))
            number += 1


def thread_of(target: Watch) -> Callable[[Settings, DistributedRuntimeClient], Thread]:
    """Makes the thread that watches so, not started yet."""
    return lambda settings, client: Thread(
        target=target, args=(settings, client), name="verax watch", daemon=True
    )


WATCHERS: Final = (
    thread_of(await_silence),
    thread_of(await_announcement),
    thread_of(await_departures),
)


def told(text: str, settings: Settings) -> str:
    """The event that jaxlib's message tells of.

    >>> told("Task 2 heartbeat timeout. ...", Settings("a:1", "a:1", 4, 0))
    'Process 2 of 4 has not answered for 100 s: it died, was stopped, or hangs.'
    """
    if silent := SILENT.search(text):
        if int(silent[1]) in [gone.index for gone in CLUSTER.departures]:
            return (
                f"Process {silent[1]} of {settings.count} came to its end and has not "
                "waited longer for this one (shutdown_timeout_seconds="
                f"{settings.shutdown_timeout})"
            )
        return (
            f"Process {silent[1]} of {settings.count} has not answered for "
            f"{settings.heartbeat_timeout} s: it died, was stopped, or hangs."
        )
    if UNREACHABLE in text:
        return lost_coordinator(settings)
    return f"The coordination of {settings.count} processes failed: {trimmed(text)}"


def explain() -> None:
    """Say what happened, if the threads that watch do not."""
    connection = CLUSTER.connection
    if connection is None or CLUSTER.failed.wait(GRACE_SECONDS):
        return
    settings = connection.settings
    if refused(settings.coordinator) is not None:
        CLUSTER.fail(lost_coordinator(settings))
    elif not CLUSTER.failed.wait(BUSY_SECONDS):
        CLUSTER.fail(
            "The coordination service reports that another of the "
            f"{settings.count} processes failed."
        )


def lost_coordinator(settings: Settings) -> str:
    """The message for a service that does not answer."""
    return (
        f"Process 0 of {settings.count}, the coordinator at {settings.coordinator}, "
        "cannot be reached: it died, or the network failed."
    )


def refused(address: str) -> OSError | None:
    """Why nothing can be reached at `host:port`; None if a process listens there."""
    try:
        socket.create_connection(split_address(address), GRACE_SECONDS).close()
    except OSError as error:
        return error
    return None


def split_address(address: str) -> tuple[str, int]:
    """Host and port of `host:port`.

    >>> split_address("[::1]:80")
    ('::1', 80)
    """
    host, _, port = address.rpartition(":")
    return host.strip("[]"), int(port)


class Terminate:
    """The handler of C++ exceptions that nothing catches, and the one before it."""

    __slots__ = ("former", "handler")

    def __init__(self) -> None:
        """Not set yet."""
        self.handler: Callable[[], None] | None = None
        self.former: int | None = None


TERMINATE: Final = Terminate()


def park_lost_threads() -> None:
    """Keep jaxlib from ending the process when another process has failed.

    Its thread that reports an error of the coordination service ends in an exception
    of C++ (`std::bad_cast`) that nothing catches, whatever callback it was given. This
    thread waits from then on; the exception of Python comes from `CLUSTER.check`.
    Exceptions of other kinds end the process as before.
    """
    if TERMINATE.handler is not None or (library := standard_library()) is None:
        return
    if (system := c_library()) is None:
        return
    current_type = getattr(library, CURRENT_TYPE)
    current_type.restype = ctypes.c_void_p
    park = system.pause
    set_terminate = getattr(library, SET_TERMINATE)
    set_terminate.argtypes, set_terminate.restype = [HANDLER], ctypes.c_void_p

    def on_terminate() -> None:
        if CLUSTER.connection is None or name_of(current_type()) != CAST_FAILED:
            if TERMINATE.former:
                HANDLER(TERMINATE.former)()
            return
        with suppress(RuntimeError):  # Python is ending
            Thread(target=explain, name="verax watch", daemon=True).start()
        while True:
            park()

    TERMINATE.handler = HANDLER(on_terminate)
    TERMINATE.former = set_terminate(TERMINATE.handler)


def park_threads_at_exit() -> None:
    """Let threads wait without Python, which is about to end.

    Those that return from jaxlib when Python has ended are thrown out by it, which
    C++ does not allow.
    """
    library, system = standard_library(), c_library()
    if TERMINATE.handler is not None and library is not None and system is not None:
        TERMINATE.handler = ctypes.cast(system.pause, HANDLER)
        getattr(library, SET_TERMINATE)(TERMINATE.handler)


def skip_destructors() -> None:
    """Let the process end where Python has ended, with the status that it has then.

    After a failure, threads of jaxlib still wait for other processes, and the
    destructors of C++ that `exit` runs take away what they use: some processes then
    died of SIGSEGV, after their message.
    """
    library = c_library()
    # This is of glibc; its handlers are given the status.
    if library is not None and hasattr(library, "on_exit"):
        library.on_exit(library._exit, None)


def standard_library() -> ctypes.CDLL | None:
    """The library of C++ that jaxlib uses, if it can be found."""
    for name in LIBRARIES:
        try:
            library = ctypes.CDLL(name)
        except OSError:
            continue
        if hasattr(library, SET_TERMINATE) and hasattr(library, CURRENT_TYPE):
            return library
    return None


def name_of(type_info: int | None) -> bytes:
    """The name of a type of C++, which stands behind a table of functions."""
    if not type_info:
        return b""
    size = ctypes.sizeof(ctypes.c_void_p)
    where = ctypes.c_void_p.from_address(type_info + size).value
    return ctypes.string_at(where) if where else b""
