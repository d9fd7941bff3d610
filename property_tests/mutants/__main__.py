"""Mutants by the hundred, in two processes, and what the laws make of them.

python -m property_tests.mutants                  # a sample, about ten minutes
python -m property_tests.mutants --all            # every change of every rule
python -m property_tests.mutants --sample 50 --seed 1 --only 'ops.trig|ops.fft .*transp'

One idea: this process imports verax once and never runs it; each mutant lives and dies
in a fork of it.
"""

import argparse
import ast
import gc
import hashlib
import multiprocessing
import pickle
import re
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
from types import MappingProxyType
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

from property_tests.mutants.kinds import sites
from property_tests.mutants.patch import live, memos, name_in_verax
from property_tests.mutants.reach import Place, Reach, of_import, reached
from property_tests.mutants.report import (
    FRONT,
    HOLE,
    MISSED,
    Outcome,
    equivalent,
    name_of,
    report,
)
from property_tests.mutants.scope import SOURCE, is_rule, modules, source_of, users
from property_tests.mutants.trial import Call, Mutant, run_trial, search, widened_calls

WARM = (hypothesis, jaxlib, ml_dtypes, np, opt_einsum, pyrsistent, pytest, scipy)
"""Imported here, before the forks, so that no child has to."""
SAMPLE = 300
SECONDS = 12.0
"""So much time of a processor goes into one mutant that nothing catches, twice."""
LIMIT = 15 * SECONDS
"""So long its process may take; one that hangs is caught by that."""
SEEDS = 4
CALLS = 24
MORE = 240
REACHING = ("calls.py", "examples.py", "reach.py")
HANG: Call | None = Call("", "hang or crash", 0)
FACES = ("verax.rules.array", "verax.rules.convertible", "verax.rules.builder")
"""Modules of classes that users meet: rules are only those methods that laws run."""
FIRST = MappingProxyType(
    {
        "batch": ("vmap", "vmap twice"),
        "jvp": ("jvp", "special", "linear", "vjp"),
        "tangent": ("jvp", "special", "linear", "vjp"),
        "transpose": ("adjoint", "linear", "vjp"),
        "split": ("linear", "vjp", "loops"),
        "dce": ("dce",),
        "typing": ("typed", "vmap", "compiled"),
        "lower": ("compiled",),
        "emit": ("compiled",),
        "evaluate": ("typed", "compiled", "vmap", "jvp"),
        "reference": ("compiled", "digits", "jvp"),
    }
)
"""The laws that see a mistake first, by a word in the name of the function."""


def mutants(only: str = "") -> list[Mutant]:
    """All whose "module function" `only` is found in, in the order of the source."""
    return [
        Mutant(module, site)
        for module in modules()
        for site in sites(source_of(module))
        if re.search(only, f"{module} {site.function}")
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
        digest.update(path.read_bytes() if path.name in REACHING else b"")
    return digest.hexdigest()[:16]


def part_of_reach(part: int, parts: int, seeds: int) -> Reach:
    """In a child: what a share of the calls reaches."""
    from property_tests.mutants.calls import every_call  # noqa: PLC0415  # imports verax

    calls = sorted(every_call(seeds), key=lambda call: call.seed)
    return reached(calls[part::parts])


def reach(workers: int, seeds: int) -> Reach:
    """Which calls run which line; kept between runs while the source is the same."""
    cache = Path(tempfile.gettempdir()) / f"verax-reach-{key()}-{seeds}.pickle"
    if cache.exists():
        found: Reach = pickle.loads(cache.read_bytes())
        return found
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


def places(mutant: Mutant) -> list[Place]:
    """The lines of a mutant."""
    site = mutant.site
    path = name_in_verax(str(mutant.path))
    return [(path, line) for line in range(site.line, site.end + 1)]


def calls_of(mutant: Mutant, found: Reach) -> list[Call]:
    """The calls that run a mutant's lines, one of each row and law first.

    What an import runs is in every call: then all rows that the module makes, or that
    modules make which use it, are tried.
    """
    calls = [call for place in places(mutant) for call in found.by_law.get(place, [])]
    if not calls and any(place in found.importing for place in places(mutant)):
        calls = calls_of_rows(mutant, found)
    unique = list(dict.fromkeys(calls))
    likely = first_laws(mutant)
    pairs = Counter[tuple[str, str]]()
    ranked = list[tuple[float, int, Call]]()
    for call in sorted(unique, key=lambda c: c.seed):
        pairs[call.row, call.law] += 1
        late = 0 if call.law in likely else 2
        cost = found.seconds.get(call, 1.0)
        rank = pairs[call.row, call.law] + late + cost
        ranked.append((rank, len(ranked), call))
    return [call for _, _, call in sorted(ranked)]


def calls_of_rows(mutant: Mutant, found: Reach) -> list[Call]:
    """Calls of the rows that a statement of a module names, or else of all its rows."""
    from property_tests.mutants.calls import rows_of  # noqa: PLC0415  # imports verax

    text = statement_at(mutant)
    rows = rows_of(mutant.module)
    named = {row for row in rows if f'"{row}"' in text}
    if not named:
        named = {row for module in users(mutant.module) for row in rows_of(module)}
    calls = [call for call in found.seconds if call.row in named and call.seed == 0]
    calls = [call for call in calls if call.law != "examples"]
    return Random(1).sample(calls, min(len(calls), MORE))


def searched(mutant: Mutant, found: Reach) -> Outcome:
    """The outcome of a mutant whose line no known call runs: others may."""
    if mutant.module in FACES or any(p in found.making for p in places(mutant)):
        return Outcome(mutant, None, FRONT)
    known = calls_of_rows(mutant, found)
    likely = [call for call in known if call.law in first_laws(mutant)]
    calls = widened_calls(likely or known, Random(0), MORE)
    if not calls:
        return Outcome(mutant, None, HOLE)
    trial = partial(search, mutant, calls, SECONDS, found.early)
    breaks, met = in_child(trial, LIMIT, (HANG, True))
    if breaks is None:
        return Outcome(mutant, None, MISSED if met else HOLE)
    if breaks.row:
        alone = partial(run_trial, None, [breaks], SECONDS, found.early)
        if in_child(alone, LIMIT, HANG) is not None:
            return Outcome(mutant, None, HOLE)
    return Outcome(mutant, breaks.law)


def statement_at(mutant: Mutant) -> str:
    """The text of the statement of the module that a mutant is in."""
    text = source_of(mutant.module)
    for node in ast.parse(text).body:
        if node.lineno <= mutant.site.line <= (node.end_lineno or node.lineno):
            return ast.get_source_segment(text, node) or ""
    return ""


def first_laws(mutant: Mutant) -> set[str]:
    """The laws that see such a mistake first."""
    name = mutant.site.function
    return {law for word, laws in FIRST.items() if word in name for law in laws}


def judged(mutant: Mutant, found: Reach) -> Outcome:
    """The outcome of one mutant."""
    calls = calls_of(mutant, found)
    if not calls:
        return searched(mutant, found)
    few = calls[:CALLS]
    few += [c for c in calls[CALLS:] if c.law == "compiled"][: CALLS // 4]
    drawn = [c for c in calls if c.law != "examples"]
    likely = [c for c in drawn if c.law in first_laws(mutant)]
    more = calls[CALLS : 2 * CALLS] + widened_calls(likely, Random(0), MORE // 2)
    more += widened_calls(drawn, Random(1), MORE)

    # A call that nobody has tried yet may fail by itself: then it proves nothing.
    early = found.early
    for batch in (few, more):
        trial = partial(run_trial, mutant, batch, SECONDS, early)
        breaks = in_child(trial, LIMIT, HANG)
        if breaks is None:
            continue
        if batch is few or not breaks.row:
            return Outcome(mutant, breaks.law)
        alone = partial(run_trial, None, [breaks], SECONDS, early)
        if in_child(alone, LIMIT, HANG) is None:
            return Outcome(mutant, breaks.law)
        print(f"{breaks} fails without any mutant", flush=True)
    return Outcome(mutant, None)


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
        if outcome.by is None and outcome.why != FRONT:
            print(f"{outcome.why}: {name_of(outcome.mutant)}", flush=True)
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
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--minutes", type=float, default=0.0, help="stop after that")
    return parser.parse_args()


def main() -> int:
    given, begun = arguments(), time.monotonic()
    every = mutants(given.only)
    rules = [m for m in every if is_rule(m.module, m.site.function)]
    chosen = rules
    if not given.all:
        chosen = Random(given.seed).sample(rules, min(given.sample, len(rules)))
    found = reach(given.workers, SEEDS)
    import property_tests.mutants.calls  # noqa: F401, PLC0415  # for the forks to come

    live(), memos()  # before the collector forgets them
    gc.freeze()
    took = time.monotonic() - begun
    print(
        f"{len(every)} mutants, {len(every) - len(rules)} of them in functions that no "
        f"rule calls; {len(chosen)} tried; reach took {took:.0f} s",
        flush=True,
    )
    end = begun + 60 * given.minutes if given.minutes else float("inf")
    outcomes = list(shown(judgements(chosen, found, given.workers, end)))
    enough = report(outcomes, equivalent())
    print(f"{len(outcomes)} mutants in {time.monotonic() - begun:.0f} s")
    return 0 if enough else 1


if __name__ == "__main__":
    sys.exit(main())
