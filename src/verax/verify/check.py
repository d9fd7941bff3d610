"""Floor 6: a row held to the laws, with a report in place of an exception.

One idea: Hypothesis draws and shrinks, the report keeps what was found, how many cases
were tried, and why others were not::

    for report in check_row(sin_p, engine, cases=50):
        print(report)            # sin: jvp holds in 50 cases
"""

from collections import Counter
from collections.abc import Iterable
from typing import Any

from attrs import field, frozen
from hypothesis import HealthCheck, given, settings

from verax.rules.row import Row
from verax.transforms.engine import StandardEngine
from verax.verify.case import Case, LawBroken, Skipped
from verax.verify.laws import EVERY, Law
from verax.verify.strategies import cases as cases_of


@frozen
class Report:
    """What trying a law on a subject has shown.

    `verdict` is `holds`, `broken`, `vacuous` (all cases were skipped) or `does not
    apply`; `skips` counts cases that said nothing, by reason; `evidence` is the text of
    the smallest case that breaks the law.
    """

    subject: str
    law: str
    verdict: str
    tried: int = 0
    skips: tuple[tuple[str, int], ...] = ()
    evidence: str = field(default="", repr=False)

    def __str__(self) -> str:
        text = f"{self.subject}: {self.law} {self.verdict} in {self.tried} cases"
        for reason, count in self.skips:
            text += f"; {count} skipped: {reason}"
        return f"{text}\n{self.evidence}" if self.evidence else text


def check_row(
    row: Row[Any],
    engine: StandardEngine,
    *,
    cases: int = 30,
    laws: Iterable[Law] = EVERY,
) -> tuple[Report, ...]:
    """What the laws say about a row: one report for each law.

    `cases` is the number of calls that are drawn for each law (fewer for dear ones).

    >>> from verax.ops.core import CORE
    >>> from verax.ops.trig import sin_p
    >>> from verax.rules.row import RuleTable
    >>> engine = StandardEngine(RuleTable(), CORE)
    >>> reports = check_row(sin_p, engine, cases=3)
    >>> any(report.verdict == "broken" for report in reports)
    False
    """
    return tuple(check_law(law, row, engine, cases) for law in laws)


def check_law(law: Law, row: Row[Any], engine: StandardEngine, cases: int) -> Report:
    """What one law says about a row."""
    reason = law.applies(row)
    if reason is not None:
        return Report(row.name, law.name, "does not apply", skips=((reason, 0),))
    skips: Counter[str] = Counter()
    tried = 0

    @settings(
        max_examples=max(3, cases // law.cost),
        deadline=None,
        database=None,
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
    )
    @given(cases_of(row, depth=law.depth, wide=law.wide))
    def search(case: Case) -> None:
        nonlocal tried
        tried += 1
        try:
            law(engine, case)
        except Skipped as skipped:
            skips[str(skipped)] += 1

    try:
        search()
    except LawBroken as error:
        return Report(
            row.name, law.name, "broken", tried, tuple(skips.items()), str(error)
        )
    verdict = "vacuous" if tried == sum(skips.values()) else "holds"
    return Report(row.name, law.name, verdict, tried, tuple(skips.items()))
