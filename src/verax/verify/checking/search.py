"""Floor 6: the search for a case that breaks a law.

One idea: Hypothesis draws and shrinks; what comes back is a finding, which keeps what
was found, how many cases were tried, and why others said nothing::

    search(LAWS["jvp"], "sin", engine, cases(sin_p, wide=True), 30)
"""

import traceback
from collections import Counter
from collections.abc import Iterable, Sequence

from hypothesis import HealthCheck, Phase, given, seed as seeded, settings
from hypothesis.errors import Flaky

from verax.rules.values.state import changing
from verax.transforms.engine.engine import StandardEngine
from verax.verify.cases.case import Case, LawBroken, Skipped
from verax.verify.cases.edges import element_of, without_element
from verax.verify.checking.report import BROKEN, HOLDS, VACUOUS, Finding
from verax.verify.laws import Law
from verax.verify.laws.compose import transformed
from verax.verify.strategies import Strategy

# Hypothesis would also say which parts of its own choices matter: the case itself does.
PHASES = (Phase.generate, Phase.shrink)
OPEN = 64
"""So many elements of a case may be such that a law leaves their value open."""
LEAST = 3
"""Expensive laws are tried on a few cases at least."""


def at_edges(
    law: Law, subject: str, engine: StandardEngine, cases: Iterable[Case]
) -> Finding:
    """The finding of `law` on cases that are listed, not drawn.

    An element that breaks it alone is shown alone.
    """
    skips: Counter[str] = Counter()
    tried = 0
    for case in cases:
        tried += 1
        try:
            held_by_elements(law, engine, case)
        except Skipped as skipped:
            skips[str(skipped)] += 1
        except LawBroken as error:
            found = error.evidence
            counts = tuple(skips.items())
            return Finding(subject, law.name, BROKEN, tried, counts, str(found), found)
    verdict = VACUOUS if tried == sum(skips.values()) else HOLDS
    return Finding(subject, law.name, verdict, tried, tuple(skips.items()))


def held_by_elements(law: Law, engine: StandardEngine, case: Case) -> None:
    """Try a law on a case, or else on each element that breaks it.

    A law that leaves something open, as compilers do with subnormals, leaves it open
    for each element.

    Raises:
        LawBroken: it does not hold, by one element if that shows it.
        Skipped: the case says nothing about the law.
    """
    for _ in range(OPEN):
        try:
            return law(engine, case)
        except LawBroken as error:
            first = error.evidence.first
            one = None if first is None else element_of(case, first.index)
            if first is None or one is None:
                raise
            law(engine, one)
            case = without_element(case, first.index)
    return law(engine, case)


def search(
    law: Law,
    subject: str,
    engine: StandardEngine,
    source: Strategy[Case],
    cases: int,
    *,
    after: Sequence[str] = (),
    seed: int | None = None,
) -> Finding:
    """The finding of `law` on the cases that `source` draws.

    `after` names transformations (see `compose.LINKS`) that come before the law, in
    order. With a `seed`, the same cases are drawn each time.
    """
    skips: Counter[str] = Counter()
    tried = 0

    @settings(
        max_examples=max(LEAST, cases // law.cost),
        deadline=None,
        database=None,
        report_multiple_bugs=False,
        phases=PHASES,
        suppress_health_check=list(HealthCheck),
    )
    @given(source)
    def attempt(case: Case) -> None:
        nonlocal tried
        tried += 1
        try:
            law(engine, transformed(engine, case, after) if after else case)
        except Skipped as skipped:
            skips[str(skipped)] += 1

    run = attempt if seed is None else seeded(seed)(attempt)
    name = " of ".join([law.name, *reversed(after)])
    try:
        # Hypothesis tells failures apart, and shrinks each, by where they were raised.
        with changing({"traceback_filtering": "off"}):
            run()
    except LawBroken as error:
        found = error.evidence
        return Finding(
            subject, name, BROKEN, tried, tuple(skips.items()), str(found), found
        )
    except Flaky as error:
        text = (
            f"{name}: the same case gives a different verdict when tried again\n{error}"
        )
        return Finding(subject, name, BROKEN, tried, tuple(skips.items()), text)
    except Exception:  # the subject's own code: its draw, its type rule
        text = f"{name}: no case could be drawn for {subject}\n{traceback.format_exc()}"
        return Finding(subject, name, BROKEN, tried, tuple(skips.items()), text)
    verdict = VACUOUS if tried == sum(skips.values()) else HOLDS
    return Finding(subject, name, verdict, tried, tuple(skips.items()))
