"""The run on a GPU: ``make gpu``, or ``python -m tests.gpu`` from the checkout.

It needs no network and nothing but what is installed: jaxlib with its CUDA plugin;
hypothesis for the laws, pytest for the tests, jax for the comparison, each left out
where it is missing. Parts run in processes of their own, each with a share of the time,
and one report is written::

    python -m tests.gpu --only laws training --seconds 300 --report gpu-report.md

Without a GPU it says so in one line, and its status is 0; it is 1 if something failed.
A minute after its time is over, what still runs is ended. `python -m tests.gpu.page`
puts a report into the documentation.
"""

import argparse
import glob
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from statistics import median

from tests.gpu.result import FAIL, Row, checked, figure, not_run

ROOT = Path(__file__).resolve().parents[2]
GPU_FILES = ("/dev/nvidia[0-9]*", "/dev/dxg")
# The parts in order, and their shares of the time.
SHARES: Mapping[str, int] = {
    "environment": 0,
    "transfers": 0,
    "several": 0,
    "factors": 1,
    "training": 1,
    "laws": 6,
    "tests": 6,
    "benchmark": 5,
    "soak": 3,
}
# Starting a client and compiling the first programs takes its time, too.
START = 60.0
TESTED = ("tests/ops", "tests/lax", "tests/nn", "tests/random", "tests/scipy")
ROUNDS = 2
NO_TIME = "no time was left"
COUNT = re.compile(r"(\d+) (passed|failed|errors?|skipped)")


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.gpu")
    parser.add_argument("--only", nargs="+", choices=SHARES, metavar="PART")
    parser.add_argument("--seconds", type=float, default=480.0, help="for all parts")
    parser.add_argument("--platform", default="cuda", help="'cpu' tries the run itself")
    parser.add_argument("--report", type=Path, default=Path("gpu-report.md"))
    parser.add_argument("--tests", nargs="+", default=TESTED, metavar="PATH")
    parser.add_argument("--small", action="store_true", help="small models")
    chosen = parser.parse_args(arguments)
    chosen.end = time.monotonic() + chosen.seconds
    return chosen


def left(chosen: argparse.Namespace) -> float:
    """The seconds after which whatever runs is ended; less than one: too few."""
    return float(chosen.end + START - time.monotonic())


def environment(platform: str) -> dict[str, str]:
    """The environment of a part: its platform, this checkout, nothing on disk."""
    paths = (str(ROOT / "src"), str(ROOT), os.environ.get("PYTHONPATH", ""))
    return os.environ | {
        "PYTHONPATH": os.pathsep.join(path for path in paths if path),
        "VERAX_PLATFORMS": platform,
        "JAX_PLATFORMS": platform,
        "VERAX_ENABLE_COMPILATION_CACHE": "0",
        "JAX_ENABLE_COMPILATION_CACHE": "false",
        "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
        "TF_CPP_MIN_LOG_LEVEL": "2",
        "HYPOTHESIS_PROFILE": "ci",
    }


def output_of(
    module: str, arguments: Sequence[str], platform: str, seconds: float
) -> tuple[list[str], str]:
    """What a module prints, and how it ended if that was not well.

    One that takes longer is ended with all that it has started, which could hold a GPU.
    """
    command = [sys.executable, "-m", module, *arguments]
    with subprocess.Popen(
        command,
        cwd=ROOT,
        env=environment(platform),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            out, errors = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return process.communicate()[0].splitlines(), f"no end in {seconds:.0f} s"
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise
    words = errors.strip().splitlines()[-1:] or ["no message"]
    problem = f"exit status {process.returncode}: {words[0][:200]}"
    return out.splitlines(), problem if process.returncode else ""


def part(name: str, chosen: argparse.Namespace, seconds: float) -> Iterator[Row]:
    """The rows of a part that needs only verax."""
    arguments = [name, "--seconds", str(seconds)]
    lines, problem = output_of(
        "tests.gpu.parts",
        arguments,
        chosen.platform,
        min(2 * (seconds + START), left(chosen)),
    )
    for line in lines:
        if line.startswith("["):
            yield Row(*json.loads(line))
    if problem:
        yield Row(name, problem, FAIL)


def tests(chosen: argparse.Namespace, seconds: float) -> Iterator[Row]:
    """How many tests pass; they are written for a CPU, so this only tells."""
    if find_spec("pytest") is None or find_spec("hypothesis") is None:
        yield not_run("tests", "pytest or hypothesis is not installed")
        return
    for path in chosen.tests:
        if left(chosen) < 1:
            yield not_run(path, NO_TIME)
            continue
        options = [path, "-q", "-x", "--maxfail=40", "-p", "no:cacheprovider"]
        share = seconds / len(chosen.tests) + START / 2
        share = min(share, left(chosen))
        lines, problem = output_of("pytest", options, chosen.platform, share)
        counts = COUNT.findall(lines[-1]) if lines else []
        words = ", ".join(f"{number} {what}" for number, what in counts)
        yield figure(path, words or problem or "nothing ran")
        for line in lines:
            if line.startswith("FAILED"):
                yield figure("", line.removeprefix("FAILED ")[:200])


def figures(
    library: str, chosen: argparse.Namespace, seconds: float
) -> tuple[dict[str, float], str]:
    """What one process of a library measured, and how it ended if not well."""
    if left(chosen) < 1:
        return {}, NO_TIME
    arguments = ["--library", library, "--seconds", str(seconds)]
    arguments += ["--small"] if chosen.small else []
    most = min(2 * (seconds + START), left(chosen))
    lines, problem = output_of("tests.gpu.worker", arguments, chosen.platform, most)
    return dict(json.loads(line) for line in lines if line.startswith("[")), problem


def benchmark(chosen: argparse.Namespace, seconds: float) -> Iterator[Row]:
    """verax beside jax where that is installed, in alternating processes."""
    libraries = ("verax", "jax") if find_spec("jax") is not None else ("verax",)
    share = seconds / ROUNDS / len(libraries)
    actual: dict[str, list[dict[str, float]]] = {name: [] for name in libraries}
    problems = dict[str, str]()
    for _ in range(ROUNDS):
        for name in libraries:
            measured, problem = figures(name, chosen, share)
            actual[name].append(measured)
            if problem:
                problems[name] = problem
    names = dict.fromkeys(key for round_ in actual["verax"] for key in round_)
    wrong = problems.pop("verax", "")
    fine = bool(names) and wrong in ("", NO_TIME)
    yield checked("benchmark", fine, wrong or "verax measured something")
    for key in names:
        medians = {
            name: median(times)
            for name, rounds in actual.items()
            if (times := [round_[key] for round_ in rounds if key in round_])
        }
        words = ", ".join(f"{name} {t * 1e3:.3f} ms" for name, t in medians.items())
        if len(medians) == 2:
            words += f", ratio {medians['verax'] / medians['jax']:.2f}"
        yield figure(key, words)
    if "jax" not in actual:
        yield not_run("jax", "it is not installed here")
    elif problems:
        yield not_run("jax, in part", problems["jax"])


def rows_of(name: str, chosen: argparse.Namespace, seconds: float) -> Iterator[Row]:
    """The rows of any part."""
    if left(chosen) < 1:
        return iter([not_run(name, NO_TIME)])
    own = {"tests": tests, "benchmark": benchmark}
    return own[name](chosen, seconds) if name in own else part(name, chosen, seconds)


def written(table: Mapping[str, Sequence[Row]], chosen: argparse.Namespace) -> str:
    """The report: a table for each part."""
    wrong = failures(table)
    total = sum(len(rows) for rows in table.values())
    lines = [
        f"# A run on {chosen.platform}",
        "",
        f"`python -m tests.gpu`: {total} rows, {wrong} failed.",
    ]
    for name, rows in table.items():
        lines += ["", f"## {name}", "", "| what | found | verdict |", "|---|---|---|"]
        lines += [
            f"| {row.what} | {row.found.replace('|', '/')} | {row.verdict} |"
            for row in rows
        ]
    return "\n".join(lines) + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the parts; 0 if nothing failed, or without a GPU, else 1."""
    chosen = parse(arguments)
    if chosen.platform == "cuda" and not any(map(glob.glob, GPU_FILES)):
        files = " or ".join(GPU_FILES)
        print(f"this machine has no NVIDIA GPU ({files}): nothing was run")
        return 0
    names = [name for name in SHARES if not chosen.only or name in chosen.only]
    actual: dict[str, list[Row]] = {}
    for i, name in enumerate(names):
        begin = time.monotonic()
        actual[name] = []
        shares = sum(SHARES[later] for later in names[i:]) or 1
        seconds = max(chosen.end - begin, 0.0) * SHARES[name] / shares
        try:
            for row in rows_of(name, chosen, seconds):
                actual[name].append(row)
                if row.verdict == FAIL:
                    print(f"{name}: FAIL: {row.what}: {row.found}", flush=True)
        finally:
            # After each part, so that a run that is cut short leaves what it has.
            chosen.report.write_text(written(actual, chosen))
        spent = time.monotonic() - begin
        print(f"{name}: {len(actual[name])} rows, {spent:.0f} s", flush=True)
        if name == "environment" and failures(actual):
            print("the devices do not start: the other parts were not run")
            break
    print(f"report: {chosen.report}")
    return int(failures(actual) > 0)


def failures(table: Mapping[str, Sequence[Row]]) -> int:
    """How many rows failed."""
    return sum(row.verdict == FAIL for rows in table.values() for row in rows)


if __name__ == "__main__":
    sys.exit(main())
