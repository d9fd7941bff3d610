"""The command line: look at saved or printed programs.

    python -m verax program.jaxpr                 check and print
    python -m verax program.jaxpr --dce --fold --inline --cse
    python -m verax program.jaxpr --html > program.html
    python -m verax left.jaxpr --diff right.jaxpr
    python -m verax explore script.py:function --args "..."    (or program.jaxpr)
    python -m verax doctor                        what a bug report should say

A file holds what `verax.ir.dumps`, `verax.ir.to_json` or `print` wrote. Nothing imports
this module.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from verax import ir, transforms
from verax.doctor import command as doctor
from verax.explorer import command
from verax.ir.forms.saving import FRAME
from verax.ir.text.printer import print_jaxpr

EXPLORE = "explore"
DOCTOR = "doctor"
STEPS = ("inline", "fold", "cse", "dce", "outline")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; the exit status is 1 where programs differ, 2 for bad files."""
    given = sys.argv[1:] if arguments is None else arguments
    if given and given[0] == EXPLORE:
        return command.main(given[1:], read)
    if given and given[0] == DOCTOR:
        return doctor.main(given[1:])
    options = parser().parse_args(given)
    try:
        closed = read(options.file)
        other = read(options.diff) if options.diff else None
        for step in STEPS:
            if getattr(options, step):
                closed = getattr(transforms, step)(closed)
        if other is not None:
            changes = ir.diff(closed, other)
            print(changes or "equal")
            return 1 if changes else 0
        print(shown(closed, options))
    except (OSError, ValueError, TypeError) as error:
        print(f"{options.file}: {error}", file=sys.stderr)
        return 2
    return 0


def parser() -> argparse.ArgumentParser:
    """The options."""
    out = argparse.ArgumentParser(
        "python -m verax",
        description="Look at a jaxpr.",
        epilog="`python -m verax explore --help` says how to explore a function, "
        "`python -m verax doctor` what a bug report should.",
    )
    out.add_argument("file", help="what dumps, to_json or print wrote")
    for step in STEPS:
        out.add_argument(f"--{step}", action="store_true", help=f"apply {step}")
    out.add_argument("--diff", metavar="FILE", help="show how FILE differs")
    how = out.add_mutually_exclusive_group()
    how.add_argument("--html", action="store_true", help="print HTML")
    how.add_argument("--svg", action="store_true", help="print a picture")
    how.add_argument("--json", action="store_true", help="print JSON")
    how.add_argument("--sources", action="store_true", help="add the user's lines")
    how.add_argument("--constants", action="store_true", help="list captured arrays")
    return out


def read(name: str) -> ir.ClosedJaxpr:
    """The program in a file, checked.

    Raises:
        OSError: there is no such file.
        ValueError, TypeError: it is not a program.
    """
    data = Path(name).read_bytes()
    if data.startswith(FRAME.magic):
        return ir.loads(data)
    text = data.decode()
    if not text.lstrip().startswith("{ lambda"):
        return ir.from_json(text)
    closed = ir.ClosedJaxpr(ir.parse_jaxpr(text))
    transforms.check(closed)
    return closed


def shown(closed: ir.ClosedJaxpr, options: argparse.Namespace) -> str:
    """The text that is printed for a program."""
    if options.html:
        return ir.html(closed)
    if options.svg:
        return ir.svg(closed)
    if options.json:
        return ir.to_json(closed, sources=True, indent=1)
    if options.constants:
        return repr(ir.captured_constants(closed))
    return print_jaxpr(closed.jaxpr, sources=options.sources)


if __name__ == "__main__":
    raise SystemExit(main())
