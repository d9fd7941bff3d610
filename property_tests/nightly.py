"""A long search: random programs under every law and under chains of transformations.

    python -m property_tests.nightly                      # 2,000 programs
    python -m property_tests.nightly --programs 300 --first 5000

Each program is held to every law, and goes through a chain of three transformations,
interpreted and compiled. A failure is printed with its seed and its smallest steps.
"""

import argparse
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from functools import partial
from multiprocessing import get_context
from random import Random

from attrs import frozen

from verax.ops.table import ROWS
from verax.verify.cases.case import LawBroken, Skipped, double_precision
from verax.verify.cases.growing import Pool, Step, pool_of
from verax.verify.checking.functions import COMPILED, ENGINE
from verax.verify.laws import EVERY, LOOPS, Law
from verax.verify.laws.compose import LINKS, chain
from verax.verify.random_programs import composable, seed_case, seed_steps, shrunk

MOST = 6
CHAIN = "chain"
LAWS = {law.name: law for law in (*EVERY, LOOPS, COMPILED) if law.name != "missing"}
SUBJECTS = (*LAWS, CHAIN)
STANDARD = pool_of(composable(ROWS, "jvp", "batch", "lower"))


@frozen
class Failure:
    """What breaks: the seed, the law or the chain, the steps, and the evidence."""

    seed: int
    subject: str
    steps: tuple[Step, ...]
    evidence: str


def links_of(seed: int) -> list[str]:
    """The chain of a seed."""
    random = Random(seed + 2)
    return [random.choice(sorted(LINKS)) for _ in range(random.randint(2, 3))]


def attempt(pool: Pool, seed: int, subject: str, steps: Sequence[Step]) -> str | None:
    """What goes wrong, or None."""
    try:
        if subject == CHAIN:
            case = seed_case(pool, seed, steps=steps, depth=4, wide=True)
            case = chain(ENGINE, case, links_of(seed))
            with double_precision(), suppress(Skipped):
                COMPILED(ENGINE, case)
            return None
        law: Law = LAWS[subject]
        case = seed_case(pool, seed, steps=steps, depth=law.depth, wide=law.wide)
        with suppress(Skipped):
            law(ENGINE, case)
    except LawBroken as error:
        return str(error)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None


def kind_of(evidence: str) -> str:
    """The first line without numbers, by which failures are told apart."""
    line = evidence.split("\n")[0]
    return "".join(c for c in line if not c.isdigit())[:90]


def search(seed: int, subjects: Sequence[str] = SUBJECTS) -> list[Failure]:
    """The failures of the program of a seed, made small."""
    actual = []
    for subject in subjects:
        steps = seed_steps(STANDARD, seed, MOST)
        evidence = attempt(STANDARD, seed, subject, steps)
        if evidence is None:
            continue
        kind = kind_of(evidence)

        def fails(fewer: list[Step], subject: str = subject, kind: str = kind) -> bool:
            text = attempt(STANDARD, seed, subject, fewer)
            return text is not None and kind_of(text) == kind

        steps = shrunk(steps, fails)
        text = attempt(STANDARD, seed, subject, steps) or evidence
        actual.append(Failure(seed, subject, tuple(steps), text))
    return actual


def searched(
    seeds: Sequence[int], subjects: Sequence[str], workers: int
) -> Iterator[list[Failure]]:
    """The failures of each seed, from several processes."""
    with ProcessPoolExecutor(workers, get_context("spawn")) as pool:
        yield from pool.map(partial(search, subjects=subjects), seeds, chunksize=5)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--programs", type=int, default=2000)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--workers", type=int, default=min(2, os.cpu_count() or 1))
    parser.add_argument("--laws", nargs="*", default=list(SUBJECTS))
    given = parser.parse_args()
    seeds = range(given.first, given.first + given.programs)
    begun, kinds = time.monotonic(), Counter[str]()
    for failures in searched(seeds, given.laws, given.workers):
        for failure in failures:
            kind = f"{failure.subject}: {kind_of(failure.evidence)}"
            kinds[kind] += 1
            if kinds[kind] <= 2:
                print(f"--- seed {failure.seed}, {failure.subject}", flush=True)
                print(failure.steps)
                print(failure.evidence, flush=True)
    print(f"{given.programs} programs in {time.monotonic() - begun:.0f} s")
    for kind, count in kinds.most_common():
        print(f"{count:5} {kind}")
    return 1 if kinds else 0


if __name__ == "__main__":
    sys.exit(main())
