"""Rows of the result and their printing as an aligned table.

The idea: a row is computed once and printed or written as JSON unchanged.

    print(aligned([row], ("jax", "verax")))
"""

import os
import sys
from dataclasses import dataclass

from .case import Case
from .driver import Outcome, Results
from .figures import Ratio, compare, show, spread, verdict

HEADINGS = ("case", "{0}", "{1}", "ratio", "spread", "step", "peak", "mark")
COLOURS = {"peak": "32", "step": "33", "over": "31", "error": "35"}


@dataclass(frozen=True)
class Row:
    """One case: figures of both sides, their ratio, the goals and the mark."""

    case: str
    unit: str
    clock: str
    baseline: float | None
    candidate: float | None
    ratio: float | None
    low: float | None
    high: float | None
    step: float | None
    peak: float | None
    mark: str
    baseline_error: str | None
    candidate_error: str | None
    wall_ratio: float | None

    def cells(self) -> tuple[str, ...]:
        """The row's cells as text."""
        return (
            self.case,
            "error" if self.baseline_error else show(self.baseline, self.unit),
            "error" if self.candidate_error else show(self.candidate, self.unit),
            _number(self.ratio),
            "-" if self.low is None else f"{self.low:.2f}-{self.high:.2f}",
            _number(self.step),
            _number(self.peak),
            self.mark,
        )


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3g}"


def _middle(outcome: Outcome, clock: str) -> float | None:
    figures = outcome.figures(clock)
    return spread(figures).median if figures else None


def row(case: Case, baseline: Outcome, candidate: Outcome) -> Row:
    """Compare the two outcomes of one case, round by round."""
    both = sorted(baseline.samples.keys() & candidate.samples.keys())

    def ratios(clock: str) -> Ratio | None:
        return compare(
            [baseline.samples[i][clock] for i in both],
            [candidate.samples[i][clock] for i in both],
        )

    ratio, wall = ratios(case.clock), ratios("wall")
    own = _middle(candidate, case.clock)
    judged = own if case.absolute else (ratio.median if ratio else None)
    failed = baseline.error or candidate.error
    return Row(
        case=case.name,
        unit=case.unit,
        clock=case.clock,
        baseline=_middle(baseline, case.clock),
        candidate=own,
        ratio=ratio.median if ratio else None,
        low=ratio.low if ratio else None,
        high=ratio.high if ratio else None,
        step=case.goal.step,
        peak=case.goal.peak,
        mark="error" if failed else verdict(judged, *case.goal),
        baseline_error=baseline.error,
        candidate_error=candidate.error,
        wall_ratio=wall.median if wall else None,
    )


def rows(cases: list[Case], results: Results) -> list[Row]:
    """Return a row for every case, in order."""
    return [row(c, results[c.name, 0], results[c.name, 1]) for c in cases]


def aligned(table: list[Row], names: tuple[str, str], *, colour: bool = False) -> str:
    """Write the rows as aligned text, coloured by mark on request."""
    lines = [tuple(h.format(*names) for h in HEADINGS), *(r.cells() for r in table)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    texts = [
        "  ".join(
            cell.ljust(width) if i in (0, 7) else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    ]
    if not colour:
        return "\n".join(texts)
    codes = ["1", *(COLOURS.get(r.mark, "0") for r in table)]
    painted = zip(codes, texts, strict=True)
    return "\n".join(f"\x1b[{code}m{text}\x1b[0m" for code, text in painted)


def markdown(table: list[Row], names: tuple[str, str]) -> str:
    """Write the rows as a table for a page."""
    lines = [tuple(h.format(*names) for h in HEADINGS), ("---",) * len(HEADINGS)]
    lines += [(f"`{r.case}`", *r.cells()[1:]) for r in table]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def errors(table: list[Row], names: tuple[str, str]) -> list[str]:
    """Return one line for every failure."""
    return [
        f"{r.case}, {name}: {error}"
        for r in table
        for name, error in zip(
            names, (r.baseline_error, r.candidate_error), strict=True
        )
        if error
    ]


def summary(table: list[Row]) -> str:
    """Count the marks."""
    counts = {mark: sum(r.mark == mark for r in table) for mark in COLOURS}
    return ", ".join(f"{count} {mark}" for mark, count in counts.items())


def show_table(table: list[Row], names: tuple[str, str]) -> None:
    """Print the rows, the errors and the summary."""
    colour = sys.stdout.isatty() and "NO_COLOR" not in os.environ
    print(aligned(table, names, colour=colour))
    for line in errors(table, names):
        print(line)
    print(summary(table))
