"""Starts groups of processes on the loopback address, and ends them by their ids.

One idea: starting processes takes seconds and a check takes milliseconds, so one group
runs all functions `check_*` of a module, and each process writes down which failed::

    assert failures("tests.distributed.checks_arrays", 2, tmp_path) == {}
"""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from attrs import frozen

DEVICES = 2
SECONDS = 90.0
ROOT = Path(__file__).parents[2]


def free_port() -> int:
    """A port of the loopback address on which nothing listens now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


@frozen
class Ended:
    """How a process ended: its status is None where it had to be ended."""

    status: int | None
    output: str


def environment(**more: str) -> dict[str, str]:
    """The variables of a process of a group."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("VERAX_", "JAX_", "XLA_"))
    }
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT), *sys.path])
    own = {"PYTHONPATH": path, "VERAX_NUM_CPU_DEVICES": str(DEVICES)}
    return {
        **kept,
        **own,
        "TF_CPP_MIN_LOG_LEVEL": "3",
        "VERAX_ENABLE_COMPILATION_CACHE": "0",
        "VERAX_PLATFORMS": "cpu",
        "VERAX_TRACEBACK_FILTERING": "off",
        **more,
    }


def run_group(
    commands: Sequence[Sequence[str]],
    folder: Path,
    seconds: float = SECONDS,
    variables: Mapping[str, str] | None = None,
    hanging: Collection[int] = (),
) -> list[Ended]:
    """Run one process for each command of Python, all at the same time.

    None may take more than `seconds` from one line that it writes to the next: how long
    all takes depends on the machine. Those of the numbers `hanging` are ended when the
    others are.
    """
    files = [folder / f"output{i}" for i in range(len(commands))]
    started: list[subprocess.Popen[bytes]] = []
    try:
        for command, file in zip(commands, files, strict=True):
            with file.open("wb") as out:
                started.append(
                    subprocess.Popen(
                        [sys.executable, *command],
                        stdout=out,
                        stderr=subprocess.STDOUT,
                        env=environment(**(variables or {})),
                    )
                )
        for i, process in enumerate(started):
            if i not in hanging:
                await_end(process, files[i], seconds)
        statuses = [process.poll() for process in started]
    finally:
        for process in started:
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)
                process.wait()
    texts = [file.read_text(errors="replace") for file in files]
    return [Ended(s, text) for s, text in zip(statuses, texts, strict=True)]


def run_groups(
    groups: Mapping[str, Sequence[Sequence[str]]],
    folder: Path,
    seconds: float = SECONDS,
    hanging: Collection[tuple[str, int]] = (),
) -> dict[str, list[Ended]]:
    """The same for several groups at the same time: they wait more than they compute.

    `hanging` are names of groups, each with the number of a process in it.
    """
    places = [(name, i) for name, group in groups.items() for i in range(len(group))]
    commands = [groups[name][i] for name, i in places]
    left = [places.index(place) for place in hanging]
    ended = run_group(commands, folder, seconds, hanging=left)
    out: dict[str, list[Ended]] = {name: [] for name in groups}
    for (name, _), one in zip(places, ended, strict=True):
        out[name].append(one)
    return out


def await_end(process: subprocess.Popen[bytes], file: Path, seconds: float) -> None:
    """Wait for the end of a process, as long as it goes on writing to its file."""
    size, limit = 0, time.monotonic() + seconds
    while ended_by(process, time.monotonic() + 1) is None and time.monotonic() < limit:
        if file.stat().st_size > size:
            size, limit = file.stat().st_size, time.monotonic() + seconds


def ended_by(process: subprocess.Popen[bytes], end: float) -> int | None:
    """The status of a process that ends before the time; None if it does not."""
    try:
        return process.wait(max(end - time.monotonic(), 0.01))
    except subprocess.TimeoutExpired:
        return None


def member_command(module: str, address: str, count: int, index: int) -> list[str]:
    """What runs process `index` of a group, with the checks of a module."""
    runner = "tests.distributed.member"
    return ["-m", runner, module, address, str(count), str(index)]


def failures(
    module: str, count: int, folder: Path, seconds: float = SECONDS
) -> dict[str, str]:
    """The checks that failed in a process, with what they raised."""
    address = f"127.0.0.1:{free_port()}"
    commands = [member_command(module, address, count, i) for i in range(count)]
    ended = run_group(commands, folder, seconds, {"CHECKS_FOLDER": str(folder)})
    actual: dict[str, str] = {}
    for i, process in enumerate(ended):
        lines = [line for line in process.output.splitlines() if line[:1] == "{"]
        for line in lines:
            actual |= {f"{i} {k}": v for k, v in json.loads(line).items() if v}
        if process.status != 0:
            actual[f"process {i}"] = (
                f"status {process.status}: {process.output[-4000:]}"
            )
    return actual
