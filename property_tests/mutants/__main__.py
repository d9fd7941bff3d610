"""Mutants by the hundred, in two processes, and what the laws make of them.

python -m property_tests.mutants                  # a sample, about ten minutes
python -m property_tests.mutants --all            # every change of every rule
python -m property_tests.mutants --sample 50 --seed 1 --only 'ops.trig|ops.fft .*transp'

One idea: this process imports verax once and never runs it; each mutant lives and dies
in a fork of it.
"""

import argparse
import gc
import hashlib
import multiprocessing
import pickle
import re
import resource
import sys
import tempfile
import time
from collections import Counter
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

from property_tests.mutants.choice import batches, places
from property_tests.mutants.kinds import sites
from property_tests.mutants.patch import live, memos
from property_tests.mutants.reach import Reach, of_import, reached
from property_tests.mutants.report import (
    FRONT,
    HOLE,
    MISSED,
    Outcome,
    equivalent,
    means_the_same,
    name_of,
    place_of,
    report,
)
from property_tests.mutants.scope import SOURCE, is_rule, modules, source_of
from property_tests.mutants.trial import Call, Mutant, run_trial, search

WARM = (hypothesis, jaxlib, ml_dtypes, np, opt_einsum, pyrsistent, pytest, scipy)
"""Imported here, before the forks, so that no child has to."""
SAMPLE = 300
SECONDS = 12.0
"""So much time of a processor goes into each batch of calls of one mutant."""
CPU = 60
"""The process of a trial is killed after so many seconds of processor time."""
LIMIT = 900.0
"""So long it may take by the clock, on a busy machine too."""
SEEDS = 4
REACHING = ("calls.py", "examples.py", "reach.py", "trial.py")
HANG: Call | None = Call("", "hang or crash", 0)
FACES = (
    "verax.rules.values.array",
    "verax.rules.values.conversions",
    "verax.rules.rows.builder",
    "verax.rules.rows.leaks",
    "verax.rules.values.state",
)
"""Modules of classes that users meet: rules are only those methods that laws run."""


def mutants(only: str = "") -> list[Mutant]:
    """All whose "module function" `only` is found in, in the order of the source."""
    return [
        Mutant(module, site)
        for module in modules()
        for site in sites(source_of(module))
        if re.search(only, f"{module} {site.function}")
    ]


def in_child[T](work: Callable[[], T], seconds: float, lost: T, cpu: int = 0) -> T:
    """What `work` gives in a forked process; `lost` if that dies or takes too long.

    It dies after `cpu` seconds of processor time, if these are given.
    """
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe(duplex=False)

    def body(end: Connection) -> None:
        sys.stderr = open("/dev/null", "w")  # noqa: SIM115  # for the child's life
        if cpu:
            resource.setrlimit(resource.RLIMIT_CPU, (cpu, cpu))
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
        digest.update(path.read_bytes() if path.name in REACHING else b"")
    return digest.hexdigest()[:16]


def part_of_reach(part: int, parts: int, seeds: int) -> Reach:
    """In a child: what a share of the calls reaches."""
    from property_tests.mutants.calls import every_call  # imports verax

    calls = sorted(every_call(seeds), key=lambda call: call.seed)
    return reached(calls[part::parts])


def reach(workers: int, seeds: int) -> Reach:
    """Which calls run which line; kept between runs while the source is the same."""
    cache = Path(tempfile.gettempdir()) / f"verax-reach-{key()}-{seeds}.pickle"
    if cache.exists():
        actual: Reach = pickle.loads(cache.read_bytes())
        return actual
    joined = in_child(of_import, 600.0, Reach())
    with ThreadPoolExecutor(workers) as pool:
        jobs = [
            pool.submit(
                in_child, partial(part_of_reach, i, workers, seeds), 3000.0, Reach()
            )
            for i in range(workers)
        ]
        for job in jobs:
            joined.join(job.result())
    cache.write_bytes(pickle.dumps(joined))
    return joined


def searched(mutant: Mutant, calls: Sequence[Call], result: Reach) -> Outcome:
    """The outcome of a mutant whose line no known call runs: others may."""
    made = any(place in result.making for place in places(mutant))
    if made or is_face(mutant, result):
        return Outcome(mutant, None, FRONT)
    if not calls:
        return Outcome(mutant, None, HOLE)
    trial = partial(search, mutant, calls, SECONDS, result.early)
    breaks, met = in_child(trial, LIMIT, (HANG, True), CPU)
    if breaks is None:
        return Outcome(mutant, None, MISSED if met else HOLE)
    if breaks.row:
        alone = partial(run_trial, None, [breaks], SECONDS, result.early)
        if in_child(alone, LIMIT, HANG) is not None:
            return Outcome(mutant, None, HOLE)
    return Outcome(mutant, breaks.law)


def judged(mutant: Mutant, result: Reach) -> Outcome:
    """The outcome of one mutant."""
    few, more, dear = batches(mutant, result)
    if not few or is_face(mutant, result):
        return searched(mutant, more, result)

    # A call that nobody has tried yet may fail by itself: then it proves nothing.
    early = result.early
    for batch in (few, more, dear):
        trial = partial(run_trial, mutant, batch, SECONDS, early)
        breaks = in_child(trial, LIMIT, HANG, CPU)
        if breaks is None:
            continue
        if batch is not more or not breaks.row:
            return Outcome(mutant, breaks.law)
        alone = partial(run_trial, None, [breaks], SECONDS, early)
        if in_child(alone, LIMIT, HANG) is None:
            return Outcome(mutant, breaks.law)
        print(f"{breaks} fails without any mutant", flush=True)
    return Outcome(mutant, None)


def is_face(mutant: Mutant, result: Reach) -> bool:
    """Whether a change is of a method that users call, and that no law runs."""
    faced = mutant.module in FACES
    return faced and not any(place in result.by_law for place in places(mutant))


def judgements(
    chosen: Sequence[Mutant], result: Reach, workers: int, end: float, known: set[str]
) -> Iterator[Outcome]:
    """The outcomes until the time is over; what is `known` as no fault is skipped."""

    def timely(mutant: Mutant) -> Outcome | None:
        if name_of(mutant) in known:
            return Outcome(mutant, None)
        return None if time.monotonic() > end else judged(mutant, result)

    with ThreadPoolExecutor(workers) as pool:
        for outcome in pool.map(timely, chosen):
            if outcome is not None:
                yield outcome


def shown(outcomes: Iterator[Outcome]) -> Iterator[Outcome]:
    """The outcomes; those that were not caught are printed as they come."""
    for count, outcome in enumerate(outcomes, 1):
        same = means_the_same(outcome.mutant)
        if outcome.by and name_of(outcome.mutant) in equivalent():
            print(f"not equivalent, {outcome.by} sees it: {name_of(outcome.mutant)}")
        if outcome.by is None and outcome.why != FRONT and not same:
            where = place_of(outcome.mutant)
            print(f"{outcome.why}: {name_of(outcome.mutant)}{where}", flush=True)
        if count % 100 == 0:
            print(f"{count} tried", flush=True)
        yield outcome


def arguments() -> Any:
    parser = argparse.ArgumentParser(prog="python -m property_tests.mutants")
    parser.add_argument("--all", action="store_true", help="not only a sample")
    parser.add_argument("--sample", type=int, default=SAMPLE)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--only",
        default="",
        help="a regular expression for 'module function', as misses are printed",
    )
    parser.add_argument(
        "--again", type=Path, help="only mutants that this output of a run names"
    )
    parser.add_argument(
        "--doubt", action="store_true", help="try equivalent mutants, too"
    )
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--minutes", type=float, default=0.0, help="stop after that")
    return parser.parse_args()


def main() -> int:
    given, begun = arguments(), time.monotonic()
    every = mutants(given.only)
    rules = [m for m in every if is_rule(m.module, m.site.function)]
    if given.again:
        lines = given.again.read_text().split("\n")
        names = {line.partition(": ")[2].partition(" # ")[0] for line in lines}
        rules = [m for m in rules if name_of(m) in names]
    chosen = rules
    if not (given.all or given.again):
        chosen = Random(given.seed).sample(rules, min(given.sample, len(rules)))
    actual = reach(given.workers, SEEDS)
    import property_tests.mutants.calls  # noqa: F401  # for the forks to come

    live(), memos()  # before the collector forgets them
    gc.freeze()
    took = time.monotonic() - begun
    print(
        f"{len(every)} mutants, {len(every) - len(rules)} of them in functions that no "
        f"rule calls; {len(chosen)} tried; reach took {took:.0f} s",
        flush=True,
    )
    end = begun + 60 * given.minutes if given.minutes else float("inf")
    # A name that stands for several places may be a mistake at one of them.
    places_of = Counter(name_of(m) for m in every)
    known = {name for name in equivalent() if places_of[name] == 1 and not given.doubt}
    outcomes = list(shown(judgements(chosen, actual, given.workers, end, known)))
    enough = report(outcomes)
    print(f"{len(outcomes)} mutants in {time.monotonic() - begun:.0f} s")
    return 0 if enough else 1


if __name__ == "__main__":
    sys.exit(main())
