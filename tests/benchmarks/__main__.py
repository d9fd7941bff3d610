"""The command: ``python -m tests.benchmarks``.

The idea: choose cases, run the driver, print the table, keep the figures as JSON.

    python -m tests.benchmarks --only eager/ --rounds 3 --json figures.json
"""

import argparse
import dataclasses
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from .catalog import select
from .driver import Plan, Side, add_jax_python, run
from .report import markdown, rows, show_table


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks")
    parser.add_argument("--only", metavar="REGEX", help="cases whose name it finds")
    parser.add_argument("--rounds", type=int, help="default 5, or 2 with --quick")
    parser.add_argument("--quick", action="store_true", help="under four minutes")
    parser.add_argument("--seconds", type=float, help="least time for each case")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures")
    parser.add_argument(
        "--markdown", type=Path, metavar="FILE", help="write the table for a page"
    )
    parser.add_argument("--list", action="store_true", help="print names and stop")
    parser.add_argument("--baseline", default="jax", help="library of the first side")
    parser.add_argument("--candidate", default="verax", help="of the second side")
    add_jax_python(parser)
    return parser.parse_args(arguments)


def describe(python: str) -> str:
    """Return the versions of one interpreter: Python, numpy, jax, jaxlib, verax."""
    script = (
        "import platform, importlib.metadata as m\n"
        "found = {d.metadata['Name']: d.version for d in m.distributions()}\n"
        "names = [n for n in ('numpy', 'jax', 'jaxlib', 'verax') if n in found]\n"
        "parts = [f'{n} {found[n]}' for n in names]\n"
        "print('Python', platform.python_version(), *parts, sep=', ')"
    )
    try:
        done = subprocess.run(
            [python, "-c", script], capture_output=True, text=True, check=False
        )
    except OSError as error:
        return f"cannot start: {error.strerror}"
    return done.stdout.strip() or "no answer"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmarks; return 0, or 2 where no case was chosen."""
    options = parse(arguments)
    cases = select(options.only)
    if options.quick:
        cases = [case for case in cases if not case.heavy]
    if options.list or not cases:
        print("\n".join(case.name for case in cases) or "no case has such a name")
        return 0 if cases else 2
    names = (options.baseline, options.candidate)
    pythons = {"jax": options.jax_python}
    sides = tuple(Side(name, pythons.get(name, sys.executable)) for name in names)
    plan = Plan(
        rounds=options.rounds or (2 if options.quick else 5),
        seconds=options.seconds or (0.05 if options.quick else 0.2),
        quick=options.quick,
    )
    machine = f"{platform.machine()}, {os.cpu_count()} cores"
    versions = {side.library: describe(side.python) for side in sides}
    print(machine, *(f"{k}: {v}" for k, v in versions.items()), sep="\n", flush=True)
    begin = time.monotonic()
    results = run(cases, (sides[0], sides[1]), plan, _progress)
    seconds = time.monotonic() - begin
    table = rows(cases, results)
    show_table(table, names)
    print(f"{plan.rounds} rounds, {seconds:.0f} s")
    if options.markdown:
        options.markdown.write_text(markdown(table, names))
    if options.json:
        record = {
            "machine": machine,
            "versions": versions,
            "plan": dataclasses.asdict(plan),
            "seconds": seconds,
            "rows": [dataclasses.asdict(r) for r in table],
        }
        options.json.write_text(json.dumps(record, indent=1) + "\n")
    return 0


def _progress(text: str) -> None:
    if sys.stderr.isatty():
        print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
