"""The command: ``python -m tests.ecosystem``.

Runs the examples with verax and with jax, compares what they print, prints the table::

    python -m tests.ecosystem --jax-python PATH --only optax equinox --rounds 3
"""

import argparse
import os
import platform
import sys
from collections.abc import Sequence

from .clients import find
from .report import table, verdict, write
from .runs import Side, run, versions


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.ecosystem")
    parser.add_argument("--only", nargs="+", default=[], metavar="CLIENT")
    parser.add_argument("--rounds", type=int, default=3, help="default 3")
    parser.add_argument(
        "--python", default=sys.executable, help="with the clients; default: this one"
    )
    parser.add_argument("--jax-python", help="with the clients and jax")
    parser.add_argument(
        "--page", action="store_true", help="write the table to docs/ecosystem.md"
    )
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the examples; return 1 where one does not end as under jax."""
    options = parse(arguments)
    clients = find(options.only)
    sides = [Side("verax", options.python)]
    if options.jax_python:
        sides.insert(0, Side("jax", options.jax_python))
    results = run(clients, sides, options.rounds, _progress)
    asked = ["jax", "jaxlib", *(client.distribution for client in clients)]
    actual = versions(sides[0].python, asked)
    rows = table(clients, results, actual)
    with_jax = f"jax {actual['jax']}, " if "jax" in actual else ""
    machine = (
        f"{with_jax}jaxlib {actual['jaxlib']}, Python {platform.python_version()}, "
        f"{platform.machine()}, {os.cpu_count()} cores, rounds: {options.rounds}."
    )
    print(rows, machine, sep="\n")
    if options.page:
        write(f"{rows}\n{machine}\n")
    verdicts = [verdict(client, results) for client in clients]
    return int(any(said not in ("yes", "runs; not compared") for said in verdicts))


def _progress(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
