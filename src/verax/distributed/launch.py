"""Starting the processes of a program on this machine (floor 6).

One idea: each process gets its number and the coordinator's address in environment
variables, so the script only calls `verax.distributed.initialize()`::

    status = run(["script.py"], 4, devices=2, restarts=10)
"""

import itertools
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from types import FrameType
from typing import IO, Final

from attrs import frozen

from verax.ir.locks import Lock, new_lock
from verax.ir.records import ReprMixin

__all__ = ["run"]

# What the others get to end by themselves once one has failed, and then after SIGTERM.
PATIENCE_SECONDS: Final = 5.0
# The same if all are started again: those that wait for the one that failed learn
# nothing more.
RESTART_SECONDS: Final = 1.0
STEP_SECONDS: Final = 0.05
# What Gloo writes when processes meet.
NOISE: Final = b"[Gloo] "
# What asks a program to end; Ctrl-C reaches the processes by itself.
PASSED_ON: Final = ("SIGTERM", "SIGHUP")
INTERRUPTED: Final = 128 + signal.SIGINT

type Output = IO[bytes] | Text
type Processes = Sequence[subprocess.Popen[bytes]]


def free_port() -> int:
    """A port of the loopback address on which nothing listens now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


def variables(
    count: int, devices: int, port: int, restart: int = 0
) -> list[dict[str, str]]:
    """The environment of each process."""
    return [
        {
            **os.environ,
            "VERAX_COORDINATOR_ADDRESS": f"127.0.0.1:{port}",
            "VERAX_NUM_PROCESSES": str(count),
            "VERAX_PROCESS_ID": str(index),
            "VERAX_NUM_CPU_DEVICES": str(devices),
            "VERAX_RESTART": str(restart),
            "PYTHONUNBUFFERED": "1",
        }
        for index in range(count)
    ]


def run(
    command: Sequence[str],
    processes: int,
    *,
    devices: int = 1,
    restarts: int = 0,
    sizes: Callable[[int, int], int] | None = None,
    out: Output | None = None,
) -> int:
    """Run Python with these arguments in several processes, and wait for their end.

    Each line that they write has the number of the process in front. If one fails, the
    others get a few seconds to notice, and are ended; so it is after Ctrl-C. SIGTERM is
    passed on to them.

    With `restarts`, the others are ended at once, and all are started again: a program
    that trains with `verax.distributed.train` goes on from its last save. Each process
    finds in the variable `VERAX_RESTART` how often that has been, 0 at first.

    Args:
        command: a script and its arguments, or "-m", a module and its arguments.
        processes: how many there are at first.
        devices: how many CPU devices each of them has.
        restarts: how often they are started again.
        sizes: how many processes a restart has, fewer or more, from how many there
            were and how many of them failed; by default as many as before.
        out: where lines go; by default to the output of this process.

    Returns:
        The exit status of the first that failed the last time; 0 if none did. For a
        signal it is 128 and the number of the signal.

    Raises:
        ValueError: there is no process, or it has no device.

    >>> import verax
    >>> verax.distributed.run(["-c", "raise SystemExit(3)"], 2, restarts=1)
    3
    """
    if restarts < 0:
        raise ValueError(
            f"verax.distributed.run: restarts must not be negative, got {restarts}"
        )
    output: Output = out or getattr(sys.stdout, "buffer", None) or Text()
    count = processes
    for restart in itertools.count():
        if count < 1 or devices < 1:
            raise ValueError(
                "verax.distributed.run: there must be at least one process with one "
                f"device, not {count} with {devices}"
            )
        world = World(command, count, devices, restart)
        end = world.run(output, restart < restarts)
        if not end.status or end.asked or restart == restarts:
            return end.status
        before = count
        count = count if sizes is None else sizes(count, end.failed)
        print(
            f"restart {restart + 1} of {restarts}: {count} processes, {before} before",
            file=sys.stderr,
        )
    raise AssertionError("it counts without an end")


@frozen(repr=False)
class End(ReprMixin):
    """How processes ended.

    `status` is that of the first that failed, `failed` how many had failed by then;
    `asked` says that somebody asked for the end.
    """

    status: int
    failed: int = 0
    asked: bool = False


@frozen(repr=False)
class Text(ReprMixin):
    """Standard output where it takes text alone, as in notebooks."""

    def write(self, line: bytes) -> int:
        """Write it."""
        return sys.stdout.write(line.decode(errors="replace"))

    def flush(self) -> None:
        """Show it."""
        sys.stdout.flush()


@frozen(repr=False)
class World(ReprMixin):
    """Processes that run one program, from their start to their end."""

    command: Sequence[str]
    count: int
    devices: int
    restart: int

    def run(self, out: Output, again: bool) -> End:
        """Run them; if they are started again, none need save what it has."""
        lock = new_lock()
        started: list[subprocess.Popen[bytes]] = []
        readers: list[threading.Thread] = []
        patience = RESTART_SECONDS if again else PATIENCE_SECONDS
        try:
            with passing_on(started) as asked:
                for index, environment in enumerate(self.environments()):
                    process = subprocess.Popen(
                        [sys.executable, *self.command],
                        stdout=subprocess.PIPE,
                        stderr=subprocess.STDOUT,
                        env=environment,
                    )
                    started.append(process)
                    readers.append(
                        threading.Thread(target=copy, args=(process, index, out, lock))
                    )
                    readers[-1].start()
                status = first_failure(started)
                count = sum([bool(process.poll()) for process in started])
                if status:
                    await_ends(started, patience)
                    print("failed:", ", ".join(failures(started)), file=sys.stderr)
                return End(status, count, bool(asked))
        except KeyboardInterrupt:
            await_ends(started)
            return End(INTERRUPTED, asked=True)
        finally:
            end(started, patience)
            for reader in readers:
                reader.join(PATIENCE_SECONDS)

    def environments(self) -> list[dict[str, str]]:
        """The variables of each process."""
        return variables(self.count, self.devices, free_port(), self.restart)


@contextmanager
def passing_on(started: Processes) -> Iterator[list[int]]:
    """Pass signals on to the processes, which would outlive the launcher otherwise.

    Gives the list of those that came.
    """
    came: list[int] = []

    def send(number: int, frame: FrameType | None) -> None:
        came.append(number)
        for process in started:
            process.send_signal(number)

    if threading.current_thread() is not threading.main_thread():
        yield came  # only the main thread may say what a signal does
        return
    numbers = [getattr(signal, name) for name in PASSED_ON if hasattr(signal, name)]
    former = {number: signal.signal(number, send) for number in numbers}
    try:
        yield came
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)


def copy(process: subprocess.Popen[bytes], index: int, out: Output, lock: Lock) -> None:
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


def end(started: Processes, patience: float) -> None:
    """End those that run still."""
    for stop in (subprocess.Popen.terminate, subprocess.Popen.kill):
        for process in started:
            if process.poll() is None:
                stop(process)
        await_ends(started, patience)


def await_ends(started: Processes, patience: float = PATIENCE_SECONDS) -> None:
    """Wait a few seconds until all have ended; Ctrl-C shortens it."""
    limit = time.monotonic() + patience
    for process in started:
        with suppress(subprocess.TimeoutExpired, KeyboardInterrupt):
            process.wait(max(limit - time.monotonic(), STEP_SECONDS))
