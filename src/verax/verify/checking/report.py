"""Floor 6: what checking has shown: one finding for each law, and their table.

One idea: a report is a value that is true if nothing is broken, prints as a table, and
raises only when it is asked to::

    report = check_primitive(sin_p)
    print(report)
    report.raise_if_broken()
"""

import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, TextIO

from attrs import evolve, field, frozen

from verax.ir.records import ReprMixin
from verax.verify.cases.case import Case, Evidence

try:
    import rich
    from rich.table import Table

    RICH = True
except ModuleNotFoundError:  # the plain table says the same
    RICH = False

HOLDS, BROKEN, VACUOUS, SILENT = "holds", "broken", "vacuous", "does not apply"
SHOWN = 3
"""So many broken laws are shown with their evidence: most have one cause."""
COLUMNS = ("law", "cases", "verdict", "notes")
STYLES: Mapping[str, str] = MappingProxyType(
    {HOLDS: "green", BROKEN: "bold red", VACUOUS: "yellow", SILENT: "dim"}
)


@frozen(repr=False)
class Finding(ReprMixin):
    """The outcome of trying a law on a subject.

    `verdict` is `holds`, `broken`, `vacuous` (all cases were skipped) or `does not
    apply`; `skips` counts cases that said nothing, by reason; `proof` is the smallest
    case that breaks the law, and `evidence` its text.
    """

    __module__ = "verax.verify"

    subject: str
    law: str
    verdict: str
    tried: int = 0
    skips: tuple[tuple[str, int], ...] = ()
    evidence: str = field(default="", repr=False)
    proof: Evidence | None = field(default=None, repr=False)

    def __str__(self) -> str:
        text = f"{self.subject}: {self.law} {self.verdict} in {self.tried} cases"
        for reason, count in self.skips:
            text += f"; {count} skipped: {reason}"
        return f"{text}\n{self.evidence}" if self.evidence else text

    def after(self, known: "Finding") -> "Finding":
        """It, with the cases of the same law that were tried before and not broken."""
        counts = Counter(dict(known.skips)) + Counter(dict(self.skips))
        tried = known.tried + self.tried
        verdict = self.verdict if known.verdict == VACUOUS else known.verdict
        return evolve(
            self,
            tried=tried,
            skips=tuple(counts.items()),
            verdict=BROKEN if self.verdict == BROKEN else verdict,
        )

    @property
    def case(self) -> Case | None:
        """The smallest case that breaks the law, if one was found."""
        return None if self.proof is None else self.proof.case

    @property
    def notes(self) -> str:
        """Why cases were skipped, with how many; or the first line of the evidence."""
        if self.verdict == BROKEN:
            return self.evidence.split("\n")[0]
        return "; ".join(
            f"{count} skipped: {reason}" if count else reason
            for reason, count in self.skips
        )


class LawsBroken(AssertionError):
    """At least one law does not hold; the text has the table and the evidence."""

    __module__ = "verax.verify"


@frozen(eq=False, repr=False)
class Report:
    """The findings on one subject, and what of it was derived rather than written.

    Raises only in `raise_if_broken`. `derived` has a line for each column that follows
    from others: (column, by what means).
    """

    __module__ = "verax.verify"

    subject: str
    findings: tuple[Finding, ...]
    derived: tuple[tuple[str, str], ...] = ()

    def __bool__(self) -> bool:
        return not self.broken

    def __iter__(self) -> Iterator[Finding]:
        return iter(self.findings)

    def __len__(self) -> int:
        return len(self.findings)

    def __getitem__(self, law: str) -> Finding:
        """The finding of a law by its name.

        Raises:
            KeyError: that law was not tried.
        """
        for finding in self.findings:
            if finding.law == law:
                return finding
        tried = ", ".join(finding.law for finding in self.findings)
        raise KeyError(f"the law {law!r} was not tried on {self.subject}, only {tried}")

    @property
    def broken(self) -> tuple[Finding, ...]:
        """The findings that show a broken law."""
        return tuple(f for f in self.findings if f.verdict == BROKEN)

    @property
    def tried(self) -> int:
        """All cases of all laws."""
        return sum(finding.tried for finding in self.findings)

    def raise_if_broken(self) -> "Report":
        """This report, if no law is broken.

        Raises:
            LawsBroken: the table, and for each broken law the smallest case, both
                programs, both values and a program that shows it again.
        """
        if self.broken:
            raise LawsBroken(f"\n{self}")
        return self

    def rows(self) -> list[tuple[str, str, str, str]]:
        """The cells of the table, without its head."""
        return [(f.law, str(f.tried), f.verdict, f.notes) for f in self.findings]

    def __str__(self) -> str:
        """The plain table, then the evidence of what is broken."""
        cells = [COLUMNS, *self.rows()]
        widths = [max(len(row[i]) for row in cells) for i in range(3)]
        lines = [self.title]
        for row in cells:
            text = "  ".join(c.ljust(w) for c, w in zip(row[:3], widths, strict=True))
            lines.append(f"  {text}  {row[3]}".rstrip())
        shown = [f"\n{f.evidence}" for f in self.broken[:SHOWN]]
        if len(self.broken) > SHOWN:
            shown.append("\nThe evidence of the others: report[law].evidence")
        return "\n".join([*lines, *shown])

    __repr__ = __str__

    @property
    def title(self) -> str:
        """The subject and the verdict on all of it, and what is derived."""
        count = len(self.broken)
        verdict = f"{count} broken" if count else "no law broken"
        text = f"{self.subject}: {verdict}"
        for column, means in self.derived:
            text += f"\n  {column} is derived: {means}"
        return text

    def __rich__(self) -> Any:
        """The table for a console of rich."""
        table = Table(*COLUMNS, title=self.title, title_justify="left")
        for law, tried, verdict, notes in self.rows():
            table.add_row(law, tried, f"[{STYLES[verdict]}]{verdict}[/]", notes)
        return table

    def show(self, file: TextIO | None = None) -> None:
        """Print the table: in colour where rich is installed, else plain."""
        out = sys.stdout if file is None else file
        if not RICH:
            print(self, file=out)
            return
        rich.print(self, file=out)
        for finding in self.broken[:SHOWN]:
            print(f"\n{finding.evidence}", file=out)
