"""Floor 6: the kit on the command line.

A primitive has a name in a module, so checking it needs no test file::

    python -m verax.verify mylib.rows:log_cosh_p --cases 200 --law jvp
    python -m verax.verify sin cos
    python -m verax.verify --page docs/primitives.md

The exit status is 0 if no law is broken, 1 if one is, 2 for a wrong call.
"""

import argparse
import pkgutil
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

from verax.ir.jaxpr import Primitive
from verax.ops.table import PRIMITIVES
from verax.rules.rows.row import Row
from verax.verify.checking.check import CASES, check_primitive
from verax.verify.page import LAWS_HEAD, page, static_part


class WrongCall(ValueError):
    """The command line names something that is not there."""


def subjects(name: str) -> list[Primitive]:
    """The rows that `name` stands for: `sin`, `module:name`, or all of `module`.

    Raises:
        WrongCall: there is no such module, name or primitive.

    >>> subjects("sin")
    [sin]
    >>> subjects("verax.ops.elementwise.trig:cos_p")
    [cos]
    """
    module_name, _, attribute = name.partition(":")
    if not attribute and module_name in PRIMITIVES:
        return [PRIMITIVES[module_name]]
    try:
        out: object = pkgutil.resolve_name(f"{module_name}:{attribute}")
    except (ImportError, ValueError) as error:
        raise WrongCall(
            f"{name!r} is not a primitive of the library, and there is no module "
            f"{module_name!r} ({error}); write module:name"
        ) from error
    except AttributeError as error:
        raise WrongCall(f"{module_name} has no {attribute}") from error
    if isinstance(out, ModuleType):
        rows = [x for x in vars(out).values() if isinstance(x, Row)]
        if not rows:
            raise WrongCall(f"the module {module_name} contains no rows")
        return list(dict.fromkeys(rows))
    if isinstance(out, Row):
        return [out]
    if isinstance(out, list | tuple) and all(isinstance(x, Row) for x in out):
        return list(out)
    raise WrongCall(f"{name} is {out!r}, not a row or a tuple of rows")


def parser() -> argparse.ArgumentParser:
    """The options of the command line."""
    made = argparse.ArgumentParser(
        prog="python -m verax.verify",
        description="Hold primitives to the laws; exit with status 1 if one is broken.",
    )
    made.add_argument("primitives", nargs="*", help="name, module:name or module")
    made.add_argument("--cases", type=int, default=CASES, help="calls for each law")
    made.add_argument("--law", action="append", help="only this law (repeatable)")
    made.add_argument("--seed", type=int, help="draw the same cases every time")
    made.add_argument(
        "--derived", choices=("use", "error"), default="use", help="missing columns"
    )
    made.add_argument(
        "--page",
        type=Path,
        help="write the page of all primitives; --cases 0 keeps its verdicts",
    )
    return made


def written(path: Path, cases: int) -> str:
    """The page; without cases, the verdicts are those that the file has already."""
    if cases or not path.exists():
        return page(cases)
    _, mark, kept = path.read_text().partition(LAWS_HEAD)
    return static_part() + mark + kept


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; its exit status."""
    options = parser().parse_args(arguments)
    if options.page is not None:
        options.page.write_text(written(options.page, options.cases))
        return 0
    try:
        rows = [row for name in options.primitives for row in subjects(name)]
        if not rows:
            raise WrongCall("name at least one primitive, or --page FILE")
        reports = [
            check_primitive(
                row,
                cases=options.cases,
                laws=options.law,
                derived=options.derived,
                seed=options.seed,
            )
            for row in rows
        ]
    except ValueError as error:
        print(f"python -m verax.verify: {error}", file=sys.stderr)
        return 2
    for report in reports:
        report.show()
    return 0 if all(reports) else 1


if __name__ == "__main__":
    sys.exit(main())
