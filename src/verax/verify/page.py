"""Floor 6: the page of all primitives, generated from the table.

One idea: the static part (columns, dtypes, laws that apply) is a function of the table,
so a test can hold the page to it; the counts are what one run has shown::

    Path("docs/primitives.md").write_text(page(cases=20))
"""

from collections.abc import Iterable, Sequence
from random import Random
from typing import Any

from verax.ir.dtypes import short_name
from verax.ops.table import ROWS
from verax.rules.programs.derived import derived_columns
from verax.rules.rows.row import Row, Sample
from verax.verify.checking.check import check_law, laws_of
from verax.verify.checking.functions import ENGINE
from verax.verify.checking.report import BROKEN, SILENT, VACUOUS, Finding
from verax.verify.laws import Law

COLUMNS = ("evaluate", "jvp", "transpose", "batch", "lower", "split", "dce")
DRAWS = 200
"""So many calls are drawn to see which dtypes a row takes."""
LAWS_HEAD = "\n## Laws\n"
HEAD = """# Primitives

Every primitive of the library: its columns, the dtypes of its calls, and what the laws
say about it. `python -m verax.verify --page docs/primitives.md` writes this page.

A column that the row defines says **yes**; one that is derived from others says
*derived*; a dash means that there is none (integers have no derivative, and nonlinear
primitives have no transpose). If a row has lowerings for single platforms, **lower**
names them. Rows without generated calls hold jaxprs or need operands that are related
to each other; random programs in `property_tests/` test them.
"""


def cell(row: Row[Any], column: str) -> str:
    """The cell of the table for a column of a row."""
    if column == "lower" and row.lower_on:
        names = list(row.lower_on)
        return ", ".join(["yes", *names] if row.lower else names)
    if row.has(column):
        return "yes"
    return "*derived*" if column in derived_columns(row) else "-"


def dtypes(row: Row[Any]) -> str:
    """The dtypes of the operands that the row's `draw` makes."""
    if row.draw is None:
        return "-"
    random = Random(0)
    samples: list[Sample[Any]] = [row.draw(random) for _ in range(DRAWS)]
    names = {short_name(aval.dtype) for sample in samples for aval in sample.avals}
    return " ".join(sorted(names))


def static_part(rows: Iterable[Row[Any]] = ROWS) -> str:
    """The part of the page that the table alone decides."""
    lines = [HEAD, "## Columns\n", table_head(("primitive", *COLUMNS, "dtypes"))]
    for row in sorted(rows, key=lambda row: row.name):
        cells = [f"`{row.name}`", *[cell(row, c) for c in COLUMNS], dtypes(row)]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def table_head(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |\n|{'---|' * len(cells)}"


def mark(finding: Finding) -> str:
    """A finding in one cell: how many cases said something, or why none did."""
    if finding.verdict == SILENT:
        return ""
    if finding.verdict == VACUOUS:
        return "0"
    said = finding.tried - sum(count for _, count in finding.skips)
    return f"**broken** ({said})" if finding.verdict == BROKEN else str(said)


def verdicts(cases: int, rows: Iterable[Row[Any]] = ROWS) -> str:
    """The part of the page that a run decides: cases that say something, by law."""
    laws: Sequence[Law] = laws_of(None, ENGINE)
    lines = [
        LAWS_HEAD,
        f"How many of up to {cases} generated calls say something about each law; all "
        "of them hold unless the cell says **broken**. An empty cell: the law does not "
        "apply, for the row lacks that column. 0: every call was skipped with a "
        "reason.\n",
        table_head(("primitive", *[law.name for law in laws])),
    ]
    for row in sorted(rows, key=lambda row: row.name):
        if row.draw is not None:
            result = [check_law(law, row, ENGINE, cases, seed=0) for law in laws]
            lines.append(f"| `{row.name}` | {' | '.join(map(mark, result))} |")
    return "\n".join(lines) + "\n"


def page(cases: int) -> str:
    """The whole page."""
    return static_part() + verdicts(cases)
