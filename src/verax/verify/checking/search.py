"""Floor 6: the search for a case that breaks a law.

One idea: Hypothesis draws and shrinks; what comes back is a finding, which keeps what
was found, how many cases were tried, and why others said nothing::

    search(LAWS["jvp"], "sin", engine, cases(sin_p, wide=True), 30)
"""

import traceback
from collections import Counter
from collections.abc import Sequence

from hypothesis import HealthCheck, Phase, given, seed as seeded, settings
from hypothesis.errors import Flaky

from verax.transforms.engine.engine import StandardEngine
from verax.verify.cases.case import Case, LawBroken, Skipped
from verax.verify.checking.report import BROKEN, HOLDS, VACUOUS, Finding
from verax.verify.laws import Law
from verax.verify.laws.compose import transformed
from verax.verify.strategies import Strategy

# Hypothesis would also say which parts of its own choices matter: the case itself does.
PHASES = (Phase.generate, Phase.shrink)
LEAST = 3
"""Expensive laws are tried on a few cases at least."""


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
    """What `law` says about the cases that `source` draws.

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
