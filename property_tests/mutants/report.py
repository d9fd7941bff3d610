"""What became of mutants, counted by law and by kind.

One idea: only what a law could have noticed is counted, and everything else is shown::

    report(outcomes)      # prints; whether it is enough
"""

import re
from collections import Counter
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from attrs import frozen

from property_tests.mutants.trial import Mutant

NEEDED = 0.98
EQUIVALENT = Path(__file__).with_name("equivalent.txt")
MISSED = "missed"
HOLE = "run by no law"
FRONT = "run only to make a case"


@frozen
class Outcome:
    """What became of a mutant: what caught it, or None and why not."""

    mutant: Mutant
    by: str | None
    why: str = MISSED


@cache
def equivalent() -> dict[str, str]:
    """The mutants that mean the same as the rule, with the reason."""
    lines = [x for x in EQUIVALENT.read_text().split("\n") if x and x[0] not in "#~"]
    pairs = [line.split(" # ") for line in lines]
    return {text.strip(): reason.strip() for text, reason in pairs}


@cache
def families() -> tuple[re.Pattern[str], ...]:
    """What whole families of mutants that mean the same are called."""
    lines = [x[1:] for x in EQUIVALENT.read_text().split("\n") if x.startswith("~")]
    return tuple([re.compile(line.split(" # ")[0].strip()) for line in lines])


def means_the_same(mutant: Mutant) -> bool:
    """Whether the list says why nobody can see the mutant, if nobody did."""
    name = name_of(mutant)
    return name in equivalent() or any(p.fullmatch(name) for p in families())


def name_of(mutant: Mutant) -> str:
    """The text by which a mutant stands in the list: it has no line number."""
    site = mutant.site
    return (
        f"{mutant.module} {site.function} [{site.kind}] {site.before} -> {site.after}"
    )


def place_of(mutant: Mutant) -> str:
    """Where a mutant stands, for the reader; what follows " # " is not its name."""
    return f" # {mutant.path.name}:{mutant.site.line}:{mutant.site.column}"


def report(outcomes: Sequence[Outcome]) -> bool:
    """Print what was caught and missed; whether it is enough."""
    same = [o for o in outcomes if o.by is None and means_the_same(o.mutant)]
    outcomes = [o for o in outcomes if o not in same]
    real = [o for o in outcomes if o.by or o.why == MISSED]
    laws = Counter(o.by for o in real if o.by)
    print("\ncaught first by")
    for law, count in laws.most_common():
        print(f"{count:6} {law}")
    print("\nkind                  caught missed")
    for kind in sorted({o.mutant.site.kind for o in real}):
        of_kind = [o for o in real if o.mutant.site.kind == kind]
        lost = sum(o.by is None for o in of_kind)
        print(f"{kind:20} {len(of_kind) - lost:7} {lost:6}")
    whys = Counter(o.why for o in outcomes if o.by is None)
    caught = sum(o.by is not None for o in real)
    share = caught / max(len(real), 1)
    print(
        f"\n{caught} of {len(real)} mutants caught ({share:.1%}); "
        f"{len(same)} equivalent; {whys[HOLE]} {HOLE}; {whys[FRONT]} {FRONT}"
    )
    return share >= NEEDED
