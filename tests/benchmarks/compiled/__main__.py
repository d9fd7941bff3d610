"""The command: ``python -m tests.benchmarks.compiled SUITE``.

The idea: each library runs in a process of its own on one core, they take turns, and
the least time of a case counts; what looks slow is measured again, in turns of 10 ms
on one core, before it is said, and its compiled code is compared.

    python -m tests.benchmarks.compiled sweep --only 'numpy\\.' --json figures.json
"""

import argparse
import json
import math
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

from tests.benchmarks.driver import ROOT, add_jax_python

from .suites import SUITES

type Times = dict[str, dict[str, Any]]
SLOWER = 1.1
TURNS = 15
QUIET = {
    "OMP_NUM_THREADS": "1",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false",
    "VERAX_ENABLE_COMPILATION_CACHE": "0",
}


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.compiled")
    parser.add_argument("suite", choices=sorted(SUITES))
    parser.add_argument("--only", metavar="REGEX", default="", help="cases it finds")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures")
    parser.add_argument("--all", action="store_true", help="print every case")
    parser.add_argument("--list", action="store_true", help="print names and stop")
    add_jax_python(parser)
    parser.add_argument(
        "--torch-python",
        default=os.environ.get("VERAX_BENCH_TORCH_PYTHON"),
        metavar="PATH",
        help="interpreter with torch (or VERAX_BENCH_TORCH_PYTHON); default: no torch",
    )
    parser.add_argument(
        "--torch-compile", action="store_true", help="measure torch.compile too"
    )
    return parser.parse_args(arguments)


def start(
    python: str,
    name: str,
    suite_name: str,
    cases: Sequence[str],
    core: int,
    what: str = "times",
) -> "subprocess.Popen[str]":
    """A worker on one core, whose lines are read when it has ended."""
    command = [python, "-m", "tests.benchmarks.compiled.worker", name, suite_name, what]
    return subprocess.Popen(
        [*command, *cases],
        stdin=subprocess.PIPE if what == "turns" else subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=ROOT,
        env={**os.environ, **QUIET},
        text=True,
        preexec_fn=lambda: os.sched_setaffinity(0, {core}),
    )


def keep_least(into: Times, lines: str) -> None:
    """Add the lines of a worker to what is known, the least of each time."""
    for line in map(json.loads, lines.splitlines()):
        known = into.setdefault(line["case"], line)
        for clock in ("first", "later"):
            if clock in line and clock in known:
                known[clock] = min(known[clock], line[clock])


def measure(
    pythons: dict[str, str], suite_name: str, cases: Sequence[str], rounds: int
) -> dict[str, Times]:
    """The times of all libraries; every round gives each of them another core."""
    cores = sorted(os.sched_getaffinity(0))
    times: dict[str, Times] = {name: {} for name in pythons}
    for turn in range(rounds):
        waiting = list(pythons.items())
        while waiting:
            at_once, waiting = waiting[: len(cores)], waiting[len(cores) :]
            workers = {
                name: start(
                    python, name, suite_name, cases, cores[(i + turn) % len(cores)]
                )
                for i, (name, python) in enumerate(at_once)
            }
            for name, worker in workers.items():
                keep_least(times[name], worker.communicate()[0])
    return times


def in_turns(
    times: dict[str, Times],
    pythons: dict[str, str],
    suite_name: str,
    cases: Sequence[str],
) -> None:
    """Measure cases of verax and jax in turns, on one core, and keep these times.

    What else the machine does then slows both down alike.
    """
    core = min(os.sched_getaffinity(0))
    pair = {
        name: start(pythons[name], name, suite_name, cases, core, "turns")
        for name in ("verax", "jax")
    }
    while all(lines := [answer(worker) for worker in pair.values()]):
        for name in pair:
            times[name][lines[0]["case"]]["later"] = math.inf
        for _ in range(TURNS):
            for name, worker in pair.items():
                line = times[name][lines[0]["case"]]
                line["later"] = min(line["later"], answer(worker, "sample")["later"])
        for worker in pair.values():
            tell(worker, "next")
    for worker in pair.values():
        worker.communicate()


def tell(worker: "subprocess.Popen[str]", word: str) -> None:
    """Write a line to a worker."""
    assert worker.stdin is not None
    worker.stdin.write(f"{word}\n")
    worker.stdin.flush()


def answer(worker: "subprocess.Popen[str]", word: str = "") -> dict[str, Any]:
    """The next line of a worker, after `word` if any; empty at its end."""
    if word:
        tell(worker, word)
    assert worker.stdout is not None
    line: dict[str, Any] = json.loads(worker.stdout.readline() or "{}")
    return line


def add_codes(
    times: dict[str, Times],
    pythons: dict[str, str],
    suite_name: str,
    cases: Sequence[str],
) -> None:
    """Add to the lines of verax and jax what the compiled programs of the cases do."""
    for name in ("verax", "jax"):
        core = min(os.sched_getaffinity(0))
        worker = start(pythons[name], name, suite_name, cases, core, "codes")
        for line in map(json.loads, worker.communicate()[0].splitlines()):
            if "code" in line and line["case"] in times[name]:
                times[name][line["case"]]["code"] = line["code"]


def same_code(times: dict[str, Times], case: str) -> bool:
    """Whether verax and jax are known to run the same compiled program."""
    mine, theirs = (times[name].get(case, {}).get("code") for name in ("verax", "jax"))
    return mine is not None and mine == theirs


def ratio(times: dict[str, Times], case: str, other: str, clock: str) -> float | None:
    """The time of verax by that of another library."""
    mine, theirs = (times[name].get(case, {}) for name in ("verax", other))
    if clock in mine and clock in theirs:
        return float(mine[clock] / max(theirs[clock], 1e-9))
    return None


def slow(times: dict[str, Times]) -> list[str]:
    """The cases, without the mark of a gradient, in which verax is slower than jax."""
    found = (
        case.rstrip("'")
        for case in times["verax"]
        if (ratio(times, case, "jax", "later") or 0) > SLOWER
    )
    return list(dict.fromkeys(found))


def show(times: dict[str, Times], everything: bool) -> None:
    """Print the cases with their ratios, and how they are spread."""
    others = [name for name in times if name != "verax"]
    head = "".join(f"{f'/ {name}':>10}" for name in others)
    print(f"{'case':40}{'verax':>12}{head}{'first':>10}")
    for case, line in times["verax"].items():
        ratios = [ratio(times, case, name, "later") for name in others]
        noted = "error" in line or any(r and r > SLOWER for r in ratios)
        if everything or noted:
            shown = "".join(f"{r:10.2f}" if r else f"{'-':>10}" for r in ratios)
            first = ratio(times, case, others[0], "first")
            time = (
                f"{line['later'] * 1e6:9.1f} us" if "later" in line else line["error"]
            )
            said = f"{first:10.2f}" if first else ""
            said += "  same code" if same_code(times, case) else ""
            print(f"{case:40}{time:>12}{shown}{said}")
    for name in others:
        for clock in ("later", "first"):
            all_ratios = [ratio(times, case, name, clock) for case in times["verax"]]
            known = [r for r in all_ratios if r is not None]
            if known:
                print(
                    f"verax / {name}, {clock} calls: median {median(known):.3f}, above "
                    f"{SLOWER}: {sum(r > SLOWER for r in known)} of {len(known)}"
                )
    same = [case for case in times["verax"] if same_code(times, case)]
    same = [case for case in same if (ratio(times, case, "jax", "later") or 0) > SLOWER]
    if same:
        print(f"of those above {SLOWER} of jax, {len(same)} run the same code")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a suite; return 2 where no case was chosen."""
    options = parse(arguments)
    cases = [
        name for name in SUITES[options.suite].cases if re.search(options.only, name)
    ]
    if options.list or not cases:
        print("\n".join(cases) or "no case has such a name")
        return 0 if cases else 2
    pythons = {"verax": sys.executable, "jax": options.jax_python}
    if options.torch_python and SUITES[options.suite].worded:
        pythons["torch"] = options.torch_python
        if options.torch_compile:
            pythons["torch.compile"] = options.torch_python
    times = measure(pythons, options.suite, cases, options.rounds)
    again = slow(times)
    if again:
        print(f"measured again: {len(again)} cases", file=sys.stderr)
        in_turns(times, pythons, options.suite, again)
        add_codes(times, pythons, options.suite, slow(times))
    show(times, options.all)
    if options.json:
        options.json.write_text(json.dumps(times, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
