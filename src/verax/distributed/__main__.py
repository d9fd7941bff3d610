"""The command line: run a program in several processes on this machine.

    python -m verax.distributed run -n 4 script.py ARGUMENTS
    python -m verax.distributed run -n 2 --devices 4 -m package.module ARGUMENTS

The program calls `verax.distributed.initialize()`, without arguments. Nothing imports
this module.
"""

import argparse
import sys
from collections.abc import Sequence

from verax.distributed.launch import launch


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
    return launch(command, options.processes, options.devices)


def parser() -> argparse.ArgumentParser:
    """The arguments of the command."""
    made = argparse.ArgumentParser(prog="python -m verax.distributed")
    commands = made.add_subparsers(required=True)
    run = commands.add_parser("run", help="run a script in several processes here")
    run.add_argument("-n", "--processes", type=int, default=2, help="how many (2)")
    run.add_argument(
        "--devices", type=int, default=1, help="CPU devices of each process (1)"
    )
    run.add_argument("-m", "--module", action="store_true", help="run a module")
    run.add_argument("program", nargs=argparse.REMAINDER, help="script and arguments")
    return made


if __name__ == "__main__":
    raise SystemExit(main())
