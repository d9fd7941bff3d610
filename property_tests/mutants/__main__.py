"""Mutants by the hundred, in two processes, and what the laws make of them.

python -m property_tests.mutants                  # a sample, about ten minutes
python -m property_tests.mutants --all            # every change of every rule
python -m property_tests.mutants --sample 50 --seed 1 --only ops.trig
"""

import argparse
import hashlib
import multiprocessing
import pickle
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from random import Random
from typing import Any

import hypothesis.strategies
import jaxlib
import ml_dtypes
import numpy as np
import opt_einsum
import pyrsistent
import pytest
import scipy.linalg
import scipy.special
from attrs import frozen

from property_tests.mutants.kinds import sites
from property_tests.mutants.reach import Reach, reached
from property_tests.mutants.trial import (
    SOURCE,
    Call,
    Mutant,
    load,
    path_of,
    run_trial,
    widened_calls,
)

WARM = (hypothesis, jaxlib, ml_dtypes, np, opt_einsum, pyrsistent, pytest, scipy)
"""Imported here, before the forks, so that no child has to."""
SAMPLE = 300
SECONDS = 30.0
LIMIT = 2 * SECONDS
"""So long one mutant is tried; one that hangs is caught by that."""
SEEDS = 4
CALLS = 24
MORE = 240
HANG: Call | None = Call("", "hang or crash", 0)
NEEDED = 0.98
EQUIVALENT = Path(__file__).with_name("equivalent.txt")


@frozen
class Outcome:
    """What became of a mutant: what caught it, or None."""

    mutant: Mutant
    by: str | None
    reached: bool = True


def modules() -> list[str]:
    """The modules that hold rules."""
    found = []
    for folder in ("ops", "rules"):
        for path in sorted((SOURCE / "verax" / folder).glob("*.py")):
            if path.stem != "__init__":
                found.append(f"verax.{folder}.{path.stem}")
    return found


def mutants(only: str = "") -> list[Mutant]:
    """All of them, in the order of the source."""
    return [
        Mutant(module, site)
        for module in modules()
        if only in module
        for site in sites(path_of(module).read_text())
    ]


def in_child[T](work: Callable[[], T], seconds: float, lost: T) -> T:
    """What `work` gives in a forked process; `lost` if that dies or takes too long."""
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe(duplex=False)

    def body(end: Connection) -> None:
        sys.stderr = open("/dev/null", "w")  # noqa: SIM115  # for the child's life
        end.send(work())

    child = context.Process(target=body, args=(there,))
    child.start()
    there.close()
    try:
        if here.poll(seconds):
            return here.recv()  # type: ignore[no-any-return]  # what work gives
    except EOFError:
        return lost
    finally:
        if child.is_alive():
            child.kill()
        child.join()
        here.close()
    return lost


def key() -> str:
    """A name for the state of the source."""
    digest = hashlib.sha256()
    for path in sorted((SOURCE / "verax").rglob("*.py")):
        digest.update(path.read_bytes())
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(
            path.read_bytes() if path.name in ("calls.py", "reach.py") else b""
        )
    return digest.hexdigest()[:16]


def part_of_reach(part: int, parts: int, seeds: int) -> Reach:
    """In a child: what a share of the calls reaches."""
    load(None)
    from property_tests.mutants.calls import every_call  # noqa: PLC0415  # after forks

    calls = sorted(every_call(seeds), key=lambda call: call.seed)
    return reached(calls[part::parts])


def reach(workers: int, seeds: int) -> Reach:
    """Which calls run which line; kept between runs while the source is the same."""
    cache = Path(tempfile.gettempdir()) / f"verax-reach-{key()}-{seeds}.pickle"
    if cache.exists():
        found: Reach = pickle.loads(cache.read_bytes())
        return found
    joined: Reach = defaultdict(list)
    with ThreadPoolExecutor(workers) as pool:
        jobs = [
            pool.submit(in_child, partial(part_of_reach, i, workers, seeds), 3000.0, {})
            for i in range(workers)
        ]
        for job in jobs:
            for place, calls in job.result().items():
                joined[place] += calls
    cache.write_bytes(pickle.dumps(dict(joined)))
    return dict(joined)


def calls_of(mutant: Mutant, found: Reach) -> list[Call]:
    """The calls that run a mutant's lines, one of each row and law first."""
    site, path = mutant.site, str(mutant.path)
    calls = [
        call
        for line in range(site.line, site.end + 1)
        for call in found.get((path, line), [])
    ]
    unique = list(dict.fromkeys(calls))
    order = sorted(unique, key=lambda c: (c.law == "compiled", c.seed))
    pairs = Counter[tuple[str, str]]()
    ranked = list[tuple[int, int, Call]]()
    for call in order:
        pairs[call.row, call.law] += 1
        ranked.append((pairs[call.row, call.law], len(ranked), call))
    return [call for _, _, call in sorted(ranked)]


def judged(mutant: Mutant, found: Reach) -> Outcome:
    """The outcome of one mutant."""
    calls = calls_of(mutant, found)
    if not calls:
        return Outcome(mutant, None, reached=False)
    few = [c for c in calls if c.law != "compiled"][:CALLS]
    few += [c for c in calls if c.law == "compiled"][: CALLS // 4]
    more = widened_calls(calls, Random(0), MORE)

    # A call that nobody has tried yet may fail by itself: then it proves nothing.
    for batch in (few, more):
        breaks = in_child(partial(run_trial, mutant, batch, SECONDS), LIMIT, HANG)
        if breaks is None:
            continue
        if batch is few or not breaks.row:
            return Outcome(mutant, breaks.law)
        if in_child(partial(run_trial, None, [breaks], SECONDS), LIMIT, HANG) is None:
            return Outcome(mutant, breaks.law)
        print(f"{breaks} fails without any mutant", flush=True)
    return Outcome(mutant, None)


def equivalent() -> dict[str, str]:
    """The mutants that mean the same as the rule, with the reason."""
    lines = [x for x in EQUIVALENT.read_text().split("\n") if x and x[0] != "#"]
    pairs = [line.split(" # ") for line in lines]
    return {text.strip(): reason.strip() for text, reason in pairs}


def name_of(mutant: Mutant) -> str:
    """The text by which a mutant stands in the list: it has no line number."""
    site = mutant.site
    return (
        f"{mutant.module} {site.function} [{site.kind}] {site.before} -> {site.after}"
    )


def judgements(
    chosen: Sequence[Mutant], found: Reach, workers: int, end: float
) -> Iterator[Outcome]:
    """The outcomes, until the time is over."""

    def timely(mutant: Mutant) -> Outcome | None:
        return None if time.monotonic() > end else judged(mutant, found)

    with ThreadPoolExecutor(workers) as pool:
        for outcome in pool.map(timely, chosen):
            if outcome is not None:
                yield outcome


def shown(outcomes: Iterator[Outcome]) -> Iterator[Outcome]:
    """The outcomes; those that were not caught are printed as they come."""
    for outcome in outcomes:
        if outcome.by is None:
            kind = "missed" if outcome.reached else "run by no law"
            print(f"{kind}: {name_of(outcome.mutant)}", flush=True)
        yield outcome


def report(outcomes: Sequence[Outcome], known: dict[str, str]) -> bool:
    """Print what was caught and missed; whether it is enough."""
    live = [o for o in outcomes if name_of(o.mutant) not in known]
    same = len(outcomes) - len(live)
    unreached = [o for o in live if not o.reached]
    real = [o for o in live if o.reached]
    missed = [o for o in real if o.by is None]
    laws = Counter(o.by for o in real if o.by)
    print("\ncaught first by")
    for law, count in laws.most_common():
        print(f"{count:6} {law}")
    print("\nkind                  caught missed")
    for kind in sorted({o.mutant.site.kind for o in real}):
        of_kind = [o for o in real if o.mutant.site.kind == kind]
        lost = sum(o.by is None for o in of_kind)
        print(f"{kind:20} {len(of_kind) - lost:7} {lost:6}")
    caught = len(real) - len(missed)
    share = caught / max(len(real), 1)
    print(
        f"\n{caught} of {len(real)} mutants caught ({share:.1%}); {same} equivalent; "
        f"{len(unreached)} on lines that no law runs"
    )
    return share >= NEEDED


def arguments() -> Any:
    parser = argparse.ArgumentParser(prog="python -m property_tests.mutants")
    parser.add_argument("--all", action="store_true", help="not only a sample")
    parser.add_argument("--sample", type=int, default=SAMPLE)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="a part of the module's name")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--minutes", type=float, default=0.0, help="stop after that")
    return parser.parse_args()


def main() -> int:
    given, begun = arguments(), time.monotonic()
    every = mutants(given.only)
    chosen = every
    if not given.all:
        chosen = Random(given.seed).sample(every, min(given.sample, len(every)))
    found = reach(given.workers, SEEDS)
    took = time.monotonic() - begun
    print(f"{len(every)} mutants, {len(chosen)} tried; reach took {took:.0f} s")
    end = begun + 60 * given.minutes if given.minutes else float("inf")
    outcomes = list(shown(judgements(chosen, found, given.workers, end)))
    enough = report(outcomes, equivalent())
    print(f"{len(outcomes)} mutants in {time.monotonic() - begun:.0f} s")
    return 0 if enough else 1


if __name__ == "__main__":
    sys.exit(main())
