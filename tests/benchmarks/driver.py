"""The driver: alternates workers of both libraries and collects their lines.

The idea: for every round and group the baseline runs, then the candidate, each in a
new process, so that drift of the machine meets both alike. A worker that dies costs
the case it was in; the rest of its cases go to a new worker.

    results = run(select("eager/"), (Side("jax", python), Side("verax", python)))
"""

import json
import os
import subprocess
import sys
from argparse import ArgumentParser
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from .case import Case
from .catalog import groups

ROOT = Path(__file__).resolve().parents[2]
TIMEOUT, HEAVY_TIMEOUT = 150.0, 3600.0


def add_jax_python(parser: ArgumentParser) -> None:
    """Let a command name the interpreter with jax."""
    parser.add_argument(
        "--jax-python",
        default=os.environ.get("VERAX_BENCH_JAX_PYTHON", sys.executable),
        metavar="PATH",
        help="interpreter with jax (or VERAX_BENCH_JAX_PYTHON); default: this one",
    )


@dataclass(frozen=True)
class Side:
    """One library and the interpreter that runs it."""

    library: str
    python: str


@dataclass(frozen=True)
class Plan:
    """How often and how long."""

    rounds: int = 5
    seconds: float = 0.2
    quick: bool = False


@dataclass
class Outcome:
    """What one side showed on one case: samples by round, and the last error."""

    samples: dict[int, dict[str, float]] = field(default_factory=dict)
    error: str | None = None

    def figures(self, clock: str) -> list[float]:
        """The figures of all rounds on one clock."""
        return [sample[clock] for sample in self.samples.values()]


type Results = dict[tuple[str, int], Outcome]
type Progress = Callable[[str], None]


def environment() -> dict[str, str]:
    """Return the workers' environment: CPU, this tree's library, no cached programs.

    Modules are compiled to bytecode once, as an installed library's are.
    """
    unwanted = ("JAX_", "PYTHONDONTWRITEBYTECODE")
    kept = {k: v for k, v in os.environ.items() if not k.startswith(unwanted)}
    paths = [str(ROOT / "src"), kept.get("PYTHONPATH", "")]
    return kept | {
        "PYTHONPATH": os.pathsep.join(path for path in paths if path),
        "PYTHONHASHSEED": "0",
        "JAX_PLATFORMS": "cpu",
        "JAX_ENABLE_COMPILATION_CACHE": "false",
    }


def work(side: Side, names: list[str], plan: Plan) -> tuple[list[str], str]:
    """Run one worker to its end or to the timeout; return its lines and last words."""
    module = f"{__package__}.worker"
    command = [side.python, "-m", module, "--library", side.library]
    timeout = TIMEOUT if plan.quick else HEAVY_TIMEOUT
    command += ["--seconds", str(plan.seconds), *(["--quick"] if plan.quick else [])]
    root = Path(__file__).resolve().parents[len(module.split(".")) - 1]
    try:
        done = subprocess.run(
            [*command, *names],
            cwd=root,
            env=environment(),
            capture_output=True,
            text=True,
            check=False,
            timeout=timeout,
        )
    except subprocess.TimeoutExpired as expired:
        output = expired.stdout or b""
        text = output.decode() if isinstance(output, bytes) else output
        return text.splitlines(), f"no answer in {timeout:.0f} s"
    except OSError as error:
        return [], f"cannot start {side.python}: {error.strerror}"
    words = done.stderr.strip().splitlines()[-1:] or ["no message"]
    return done.stdout.splitlines(), f"exit status {done.returncode}: {words[0][:200]}"


def run_group(
    side: Side, names: list[str], plan: Plan
) -> dict[str, dict[str, float | str]]:
    """Run cases of one group in as many workers as it takes to get past crashes."""
    actual: dict[str, dict[str, float | str]] = {}
    left = list(names)
    while left:
        output, last_words = work(side, left, plan)
        begun = None
        for text in output:
            if not text.startswith("{"):
                continue
            line = json.loads(text)
            begun = line.get("begin", begun)
            if "case" in line:
                actual[line.pop("case")] = line
        left = [name for name in left if name not in actual]
        if left and begun not in left:  # it died before its first case
            return actual | {name: {"error": last_words} for name in left}
        if begun in left:
            actual[begun] = {"error": last_words}
            left.remove(begun)
    return actual


def run(
    cases: list[Case], sides: tuple[Side, Side], plan: Plan, progress: Progress
) -> Results:
    """Measure every case on both sides, alternating; return outcomes by (case, side).

    The side that goes first alternates with the rounds. What failed once on a side is
    not tried there again.
    """
    results = {(case.name, i): Outcome() for case in cases for i in range(2)}
    for round_number in range(plan.rounds):
        for group, members in groups(cases).items():
            for i in (0, 1) if round_number % 2 == 0 else (1, 0):
                title = f"round {round_number + 1} of {plan.rounds}: {group}"
                progress(f"{title}, {sides[i].library}")
                again = round_number > 0
                named = (case.name for case in members if not (again and case.heavy))
                names = [name for name in named if results[name, i].error is None]
                for name, line in run_group(sides[i], names, plan).items():
                    _record(results[name, i], round_number, line)
    return results


def _record(outcome: Outcome, round_number: int, line: dict[str, float | str]) -> None:
    if "error" in line:
        outcome.error = str(line["error"])
    else:
        outcome.samples[round_number] = {k: float(v) for k, v in line.items()}
