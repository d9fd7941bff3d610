"""Runs of the examples on both sides, alternating, each in a new process.

sides = Side("jax", jax_python), Side("verax", python)
results = run(find(["optax"]), sides, rounds=3, progress=print)
"""

import json
import os
import resource
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from .clients import HERE, Client

ROOT = HERE.parents[1]
TIMEOUT = 300.0
CLOCKS = ("import", "trace + lower", "first call", "total", "total, wall")


@dataclass(frozen=True)
class Side:
    """One library and the interpreter that runs it."""

    library: str
    python: str

    @property
    def command(self) -> list[str]:
        """How a script is run there."""
        mode = ["-m", "verax.jax"] if self.library == "verax" else []
        return [self.python, *mode]


@dataclass
class Outcome:
    """What one side showed on one example: its output, times by clock, its error."""

    output: str = ""
    error: str | None = None
    times: dict[str, list[float]] = field(default_factory=dict)

    def median(self, clock: str) -> float:
        """The median of the rounds on one clock, in seconds."""
        return median(self.times[clock])


type Results = dict[tuple[str, str], Outcome]


def environment() -> dict[str, str]:
    """The workers' environment: CPU, one thread, this tree, no cached programs."""
    unwanted = ("JAX_", "VERAX_", "KERAS_", "PYTHONDONTWRITEBYTECODE")
    kept = {k: v for k, v in os.environ.items() if not k.startswith(unwanted)}
    folders = [str(ROOT / "src"), *filter(None, [kept.get("PYTHONPATH")])]
    return kept | {
        "PYTHONPATH": os.pathsep.join(folders),
        "PYTHONHASHSEED": "0",
        "JAX_PLATFORMS": "cpu",
        "JAX_ENABLE_COMPILATION_CACHE": "false",
        "TF_CPP_MIN_LOG_LEVEL": "2",
        "OPENBLAS_NUM_THREADS": "1",
    }


def work(side: Side, client: Client, outcome: Outcome) -> None:
    """Run one example once; add its times, its output or its error to the outcome."""
    with tempfile.TemporaryDirectory() as folder:
        figures = Path(folder) / "figures.json"
        worker = [str(HERE / "worker.py"), str(client.example), str(figures)]
        started, used = time.monotonic(), children()
        try:
            done = subprocess.run(
                [*side.command, *worker],
                cwd=folder,
                env=environment(),
                capture_output=True,
                text=True,
                check=False,
                timeout=TIMEOUT,
            )
        except subprocess.TimeoutExpired:
            outcome.error = f"no answer in {TIMEOUT:.0f} s"
            return
        except OSError as error:
            outcome.error = f"cannot start {side.python}: {error.strerror}"
            return
        totals = {
            "total": children() - used,
            "total, wall": time.monotonic() - started,
        }
        outcome.output = done.stdout
        if done.returncode or not figures.exists():
            outcome.error = reason(done.stderr) or f"exit status {done.returncode}"
            return
        actual = json.loads(figures.read_text())
    if actual["library"] != side.library:
        outcome.error = f"ran on {actual['library']}, not on {side.library}"
        return
    for clock in CLOCKS:
        outcome.times.setdefault(clock, []).append((actual | totals)[clock])


def children() -> float:
    """The CPU time of all processes below this one that have ended, in seconds."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def reason(stderr: str) -> str:
    """The line of a traceback that names the exception."""
    said = [line for line in stderr.splitlines() if line and not line[0].isspace()]
    named = [line for line in said if line.split(":")[0].endswith(("Error", "Rule"))]
    return next(iter(reversed(named or said)), "").strip()


def run(
    clients: Sequence[Client],
    sides: Sequence[Side],
    rounds: int,
    progress: Callable[[str], None],
) -> Results:
    """Run every example on all sides; the side that goes first alternates.

    What failed once on a side is not tried there again.
    """
    results = {(c.name, side.library): Outcome() for c in clients for side in sides}
    for number in range(rounds):
        for client in clients:
            for side in sides if number % 2 == 0 else tuple(reversed(sides)):
                progress(f"round {number + 1}: {client.name}, {side.library}")
                outcome = results[client.name, side.library]
                if outcome.error is None:
                    work(side, client, outcome)
    return results


def versions(python: str, distributions: Sequence[str]) -> dict[str, str]:
    """The versions of those distributions that an interpreter has."""
    command = [python, str(HERE / "worker.py"), "--versions", *distributions]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    actual: dict[str, str] = json.loads(done.stdout)
    return actual
