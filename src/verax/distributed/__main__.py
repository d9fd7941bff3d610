"""The command line: run a program in several processes on this machine.

    python -m verax.distributed run -n 4 script.py ARGUMENTS
    python -m verax.distributed run -n 2 --devices 4 -m package.module ARGUMENTS
    python -m verax.distributed run -n 4 --restarts 10 --least 2 script.py

The program calls `verax.distributed.initialize()`, without arguments. Nothing imports
this module.
"""

import argparse
import sys
from collections.abc import Sequence

from verax.distributed.launch import run


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; the exit status is that of the first process that failed."""
    options = parser().parse_args(arguments)
    if options.processes < 1 or options.devices < 1:
        print("there must be at least one process with one device", file=sys.stderr)
        return 2
    command = ["-m", *options.program] if options.module else options.program
    if not command or not options.program:
        usage = "python -m verax.distributed run -n 2 script.py"
        print(f"which script? {usage}", file=sys.stderr)
        return 2
    least = options.processes if options.least is None else max(options.least, 1)

    def sizes(count: int, failed: int) -> int:
        return int(max(count - failed, min(least, count)))

    return run(
        command,
        options.processes,
        devices=options.devices,
        restarts=options.restarts,
        sizes=sizes,
    )


def parser() -> argparse.ArgumentParser:
    """The arguments of the command."""
    made = argparse.ArgumentParser(prog="python -m verax.distributed")
    commands = made.add_subparsers(required=True)
    command = commands.add_parser("run", help="run a script in several processes here")
    command.add_argument("-n", "--processes", type=int, default=2, help="how many (2)")
    command.add_argument(
        "--devices", type=int, default=1, help="CPU devices of each process (1)"
    )
    command.add_argument(
        "--restarts", type=int, default=0, help="start all again so often (0)"
    )
    command.add_argument(
        "--least", type=int, help="leave out what failed while so many remain (all)"
    )
    command.add_argument("-m", "--module", action="store_true", help="run a module")
    command.add_argument(
        "program", nargs=argparse.REMAINDER, help="script and arguments"
    )
    return made


if __name__ == "__main__":
    raise SystemExit(main())
