"""Floor 6: the page of all primitives, generated from the table.

One idea: the static part (columns, dtypes, laws that apply) is a function of the table,
so a test can hold the page to it; the counts are what one run has shown::

    Path("docs/primitives.md").write_text(page(cases=20))
"""

from collections.abc import Iterable, Sequence, Set
from random import Random

from verax.ir.dtypes import DType, is_inexact, short_name
from verax.ops.table import ROWS
from verax.rules.programs.derived import derived_columns
from verax.rules.rows.row import SomeRow, SomeSample
from verax.verify.checking.check import check_law, laws_of
from verax.verify.checking.closed_forms import FORMS, PROVED, TESTED
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

A column that the row defines says how it is known to be right:

* **proved**: for real operands (complex ones, where it takes no others), from the
  closed form of the row by symbolic differentiation (`verify.prove_jvp`,
  `verify.prove_transpose`), apart from rounding and kinks; it is tested, too;
* **tested**: by laws on generated calls, counted below;
* **yes**: by random programs and examples alone. Such rows hold jaxprs, need
  operands that are related to each other, or have none of which the column says
  anything, as integers have no derivative.

One that is derived from others says *derived*; a dash means that there is none
(nonlinear primitives have no transpose). If a row has lowerings for single platforms,
**lower** names them.
"""
TESTED_BY = {
    "evaluate": "typed",
    "jvp": "jvp",
    "transpose": "adjoint",
    "batch": "vmap",
    "lower": "compiled",
    "dce": "dce",
}
"""The law that tests a column first; no law is about `split` alone."""


def cell(row: SomeRow, column: str, kinds: Set[DType]) -> str:
    """The cell of the table for a column of a row whose operands are of these kinds."""
    if column == "lower" and row.lower_on:
        own = [standing(row, column, kinds)] if row.lower else []
        return ", ".join([*own, *row.lower_on])
    if row.has(column):
        return standing(row, column, kinds)
    return "*derived*" if column in derived_columns(row) else "-"


def standing(row: SomeRow, column: str, kinds: Set[DType]) -> str:
    """How a column is known to be right: proved, tested, or yes, for it is there.

    What is called proved is what the table of closed forms says of itself, to which the
    tests of proofs hold it; so the page can be written where SymPy is not installed.
    """
    form = FORMS.get(row.name)
    claims = {} if form is None else {"jvp": form.jvp, "transpose": form.transpose}
    if claims.get(column) == PROVED:
        return PROVED
    differentiable = any(is_inexact(dtype) for dtype in kinds)
    silent = column in ("jvp", "transpose") and not differentiable
    untried = row.draw is None or column not in TESTED_BY
    return "yes" if silent or untried else TESTED


def dtypes(row: SomeRow) -> frozenset[DType]:
    """The dtypes of the operands that the row's `draw` makes."""
    if row.draw is None:
        return frozenset()
    random = Random(0)
    samples: list[SomeSample] = [row.draw(random) for _ in range(DRAWS)]
    return frozenset([aval.dtype for sample in samples for aval in sample.avals])


def static_part(rows: Iterable[SomeRow] = ROWS) -> str:
    """The part of the page that the table alone decides."""
    lines = [HEAD, "## Columns\n", table_head(("primitive", *COLUMNS, "dtypes"))]
    for row in sorted(rows, key=lambda row: row.name):
        kinds = dtypes(row)
        names = " ".join(sorted(map(short_name, kinds))) or "-"
        cells = [f"`{row.name}`", *[cell(row, c, kinds) for c in COLUMNS], names]
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


def verdicts(cases: int, rows: Iterable[SomeRow] = ROWS) -> str:
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
