"""Puts the tables of a report of ``make gpu`` into the documentation.

The page has two marks, and what stands between them is of the last run::

    python -m tests.gpu.page gpu-report.md
"""

import argparse
import re
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
START, END = "<!-- the last run -->", "<!-- end of the last run -->"
# The parts whose tables are shown whole; of others it is said how many rows passed.
WHOLE = ("environment", "benchmark")
HEADING = re.compile(r"^## (\w+)$", re.M)


def parts_of(report: str) -> dict[str, list[str]]:
    """The rows of the tables of a report, by part."""
    _, *pieces = HEADING.split(report)
    names, bodies = pieces[::2], pieces[1::2]
    return {
        name: [line for line in body.splitlines() if line.startswith("| ")][1:]
        for name, body in zip(names, bodies, strict=True)
    }


def counted(rows: Sequence[str]) -> str:
    """How many rows of a part have which verdict."""
    verdicts = [row.rsplit("|", 2)[1].strip() for row in rows]
    return ", ".join(f"{verdicts.count(v)} {v}" for v in dict.fromkeys(verdicts))


def tables(report: str) -> str:
    """What the page shows of a report."""
    actual = parts_of(report)
    lines = ["| part | rows |", "|---|---|"]
    lines += [f"| {name} | {counted(rows)} |" for name, rows in actual.items()]
    for name in WHOLE:
        if name in actual:
            rows = [row.rsplit("|", 2)[0] + "|" for row in actual[name]]
            lines += ["", f"| {name} | found |", "|---|---|", *rows]
    return "\n".join(lines)


def placed(page: str, report: str) -> str:
    """The page with the tables of a report between its marks.

    Raises:
        ValueError: the marks are not there.
    """
    before, start, rest = page.partition(START)
    _, end, after = rest.partition(END)
    if not start or not end:
        raise ValueError(f"the page has no {START} before {END}")
    return f"{before}{START}\n\n{tables(report)}\n\n{END}{after}"


def main(arguments: Sequence[str] | None = None) -> None:
    """Rewrite the page."""
    parser = argparse.ArgumentParser(prog="python -m tests.gpu.page")
    parser.add_argument("report", type=Path)
    parser.add_argument("--page", type=Path, default=ROOT / "docs" / "gpu.md")
    chosen = parser.parse_args(arguments)
    text = placed(chosen.page.read_text(), chosen.report.read_text())
    chosen.page.write_text(text)


if __name__ == "__main__":
    main()
