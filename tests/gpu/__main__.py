"""The run on a GPU: ``make gpu``, or ``python -m tests.gpu`` from the checkout.

It needs no network and nothing but what is installed: jaxlib with its CUDA plugin;
hypothesis for the laws, pytest for the tests, jax for the comparison, each left out
where it is missing. Parts run in processes of their own, each with a share of the time,
and one report is written::

    python -m tests.gpu --only laws training --seconds 300 --report gpu-report.md

Without a GPU it says so in one line, and its status is 0; it is 1 if something failed.
"""

import argparse
import glob
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from statistics import median

from tests.gpu.result import FAIL, Row, checked, figure, not_run

ROOT = Path(__file__).resolve().parents[2]
GPU_FILES = "/dev/nvidia[0-9]*"
# The parts in order, and their shares of the time.
SHARES: Mapping[str, int] = {
    "environment": 0,
    "transfers": 0,
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
    return parser.parse_args(arguments)


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
    """What a module prints, and how it ended if that was not well."""
    command = [sys.executable, "-m", module, *arguments]
    try:
        done = subprocess.run(
            command,
            cwd=ROOT,
            env=environment(platform),
            capture_output=True,
            text=True,
            check=False,
            timeout=seconds,
        )
    except subprocess.TimeoutExpired as expired:
        raw = expired.stdout or b""
        text = raw.decode() if isinstance(raw, bytes) else raw
        return text.splitlines(), f"no end in {seconds:.0f} s"
    words = done.stderr.strip().splitlines()[-1:] or ["no message"]
    problem = f"exit status {done.returncode}: {words[0][:200]}"
    return done.stdout.splitlines(), problem if done.returncode else ""


def part(name: str, chosen: argparse.Namespace, seconds: float) -> Iterator[Row]:
    """The rows of a part that needs only verax."""
    arguments = [name, "--seconds", str(seconds)]
    lines, problem = output_of(
        "tests.gpu.parts", arguments, chosen.platform, 2 * seconds + START
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
        options = [path, "-q", "-x", "--maxfail=40", "-p", "no:cacheprovider"]
        share = seconds / len(chosen.tests) + START / 2
        lines, problem = output_of("pytest", options, chosen.platform, share)
        counts = COUNT.findall(lines[-1]) if lines else []
        words = ", ".join(f"{number} {what}" for number, what in counts)
        yield figure(path, words or problem or "nothing ran")
        for line in lines:
            if line.startswith("FAILED"):
                yield figure("", line.removeprefix("FAILED ")[:200])


def figures(
    library: str, chosen: argparse.Namespace, seconds: float
) -> dict[str, float]:
    """What one process of a library measured."""
    arguments = ["--library", library, "--seconds", str(seconds)]
    arguments += ["--small"] if chosen.small else []
    lines, _ = output_of(
        "tests.gpu.worker", arguments, chosen.platform, 2 * seconds + 2 * START
    )
    return dict(json.loads(line) for line in lines if line.startswith("["))


def benchmark(chosen: argparse.Namespace, seconds: float) -> Iterator[Row]:
    """verax beside jax where that is installed, in alternating processes."""
    libraries = ("verax", "jax") if find_spec("jax") is not None else ("verax",)
    share = seconds / ROUNDS / len(libraries)
    found: dict[str, list[dict[str, float]]] = {name: [] for name in libraries}
    for _ in range(ROUNDS):
        for name in libraries:
            found[name].append(figures(name, chosen, share))
    names = dict.fromkeys(key for round_ in found["verax"] for key in round_)
    yield checked("benchmark", names, "verax measured something")
    for key in names:
        medians = {
            name: median(times)
            for name, rounds in found.items()
            if (times := [round_[key] for round_ in rounds if key in round_])
        }
        words = ", ".join(f"{name} {t * 1e3:.3f} ms" for name, t in medians.items())
        if len(medians) == 2:
            words += f", ratio {medians['verax'] / medians['jax']:.2f}"
        yield figure(key, words)
    if len(libraries) == 1:
        yield not_run("jax", "it is not installed here")


def rows_of(name: str, chosen: argparse.Namespace, seconds: float) -> Iterator[Row]:
    """The rows of any part."""
    own = {"tests": tests, "benchmark": benchmark}
    return own[name](chosen, seconds) if name in own else part(name, chosen, seconds)


def written(found: Mapping[str, Sequence[Row]], chosen: argparse.Namespace) -> str:
    """The report: a table for each part."""
    wrong = sum(row.verdict == FAIL for rows in found.values() for row in rows)
    total = sum(len(rows) for rows in found.values())
    lines = [
        f"# A run on {chosen.platform}",
        "",
        f"`python -m tests.gpu`: {total} rows, {wrong} failed.",
    ]
    for name, rows in found.items():
        lines += ["", f"## {name}", "", "| what | found | verdict |", "|---|---|---|"]
        lines += [
            f"| {row.what} | {row.found.replace('|', '/')} | {row.verdict} |"
            for row in rows
        ]
    return "\n".join(lines) + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the parts; 0 if nothing failed, or without a GPU, else 1."""
    chosen = parse(arguments)
    if chosen.platform == "cuda" and not glob.glob(GPU_FILES):
        print(f"this machine has no NVIDIA GPU ({GPU_FILES}): nothing was run")
        return 0
    names = [name for name in SHARES if not chosen.only or name in chosen.only]
    whole = sum(SHARES[name] for name in names) or 1
    found: dict[str, list[Row]] = {}
    for name in names:
        begin = time.monotonic()
        found[name] = []
        for row in rows_of(name, chosen, chosen.seconds * SHARES[name] / whole):
            found[name].append(row)
            if row.verdict == FAIL:
                print(f"{name}: FAIL: {row.what}: {row.found}", flush=True)
        # After each part, so that a run that is cut short leaves what it has.
        chosen.report.write_text(written(found, chosen))
        spent = time.monotonic() - begin
        print(f"{name}: {len(found[name])} rows, {spent:.0f} s", flush=True)
    print(f"report: {chosen.report}")
    return int(any(row.verdict == FAIL for rows in found.values() for row in rows))


if __name__ == "__main__":
    sys.exit(main())
