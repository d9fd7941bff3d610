"""Starting the processes of a program on this machine (floor 6).

One idea: each process gets its number and the coordinator's address in environment
variables, so the script only calls `verax.distributed.initialize()`::

    status = launch(["script.py"], count=4, devices=2)
"""

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from types import FrameType
from typing import IO, Final

# What the others get to end by themselves once one has failed, and then after SIGTERM.
PATIENCE_SECONDS: Final = 5.0
STEP_SECONDS: Final = 0.05
# What Gloo writes when processes meet.
NOISE: Final = b"[Gloo] "
# What asks a program to end; Ctrl-C reaches the processes by itself.
PASSED_ON: Final = ("SIGTERM", "SIGHUP")
INTERRUPTED: Final = 128 + signal.SIGINT

type Processes = Sequence[subprocess.Popen[bytes]]


def free_port() -> int:
    """A port of the loopback address on which nothing listens now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


def variables(count: int, devices: int, port: int) -> list[dict[str, str]]:
    """The environment of each process."""
    return [
        {
            **os.environ,
            "VERAX_COORDINATOR_ADDRESS": f"127.0.0.1:{port}",
            "VERAX_NUM_PROCESSES": str(count),
            "VERAX_PROCESS_ID": str(index),
            "VERAX_NUM_CPU_DEVICES": str(devices),
            "PYTHONUNBUFFERED": "1",
        }
        for index in range(count)
    ]


def launch(
    command: Sequence[str], count: int, devices: int = 1, out: IO[bytes] | None = None
) -> int:
    """Run Python with these arguments in `count` processes, and wait for their end.

    Each line that they write has the number of the process in front. If one fails, the
    others get a few seconds to notice, and are ended; so it is after Ctrl-C. SIGTERM is
    passed on to them.

    Returns:
        The exit status of the first that failed; 0 if none did.
    """
    out = sys.stdout.buffer if out is None else out
    lock = threading.Lock()
    started: list[subprocess.Popen[bytes]] = []
    readers: list[threading.Thread] = []
    try:
        with passing_on(started):
            for index, environment in enumerate(variables(count, devices, free_port())):
                process = subprocess.Popen(
                    [sys.executable, *command],
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    env=environment,
                )
                started.append(process)
                readers.append(
                    threading.Thread(target=copy, args=(process, index, out, lock))
                )
                readers[-1].start()
            failed = first_failure(started)
            if failed:
                await_ends(started)
                print("failed:", ", ".join(failures(started)), file=sys.stderr)
            return failed
    except KeyboardInterrupt:
        await_ends(started)
        return INTERRUPTED
    finally:
        end(started)
        for reader in readers:
            reader.join(PATIENCE_SECONDS)


@contextmanager
def passing_on(started: Processes) -> Iterator[None]:
    """Pass signals on to the processes, which would outlive the launcher otherwise."""

    def send(number: int, frame: FrameType | None) -> None:
        for process in started:
            process.send_signal(number)

    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may say what a signal does
        return
    numbers = [getattr(signal, name) for name in PASSED_ON if hasattr(signal, name)]
    former = {number: signal.signal(number, send) for number in numbers}
    try:
        yield
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)


def copy(
    process: subprocess.Popen[bytes], index: int, out: IO[bytes], lock: threading.Lock
) -> None:
    """Write the lines of a process with its number in front."""
    assert process.stdout is not None, "a pipe"
    # Where nobody reads any more, the process learns it: its own pipe is closed.
    with process.stdout, suppress(BrokenPipeError):
        for line in process.stdout:
            if not line.startswith(NOISE):
                with lock:
                    out.write(b"[%d] %s\n" % (index, line.rstrip(b"\r\n")))
                    out.flush()


def first_failure(started: Processes) -> int:
    """Wait until all have ended, or one has failed; the status of that."""
    while True:
        statuses = [process.poll() for process in started]
        failed = [status for status in statuses if status]
        if failed:
            return failed[0] if failed[0] > 0 else 128 - failed[0]
        if None not in statuses:
            return 0
        time.sleep(STEP_SECONDS)


def failures(started: Processes) -> Iterator[str]:
    """The processes that have failed, and how; those that wait for others still run."""
    for index, process in enumerate(started):
        status = process.poll()
        if status is None:
            yield f"process {index} (has not ended)"
        elif status:
            how = f"status {status}" if status > 0 else signal.strsignal(-status)
            yield f"process {index} ({how})"


def end(started: Processes) -> None:
    """End those that run still."""
    for stop in (subprocess.Popen.terminate, subprocess.Popen.kill):
        for process in started:
            if process.poll() is None:
                stop(process)
        await_ends(started)


def await_ends(started: Processes) -> None:
    """Wait a few seconds until all have ended; Ctrl-C shortens it."""
    limit = time.monotonic() + PATIENCE_SECONDS
    for process in started:
        with suppress(subprocess.TimeoutExpired, KeyboardInterrupt):
            process.wait(max(limit - time.monotonic(), STEP_SECONDS))
