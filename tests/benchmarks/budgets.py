"""What budgets of memory cost, beside checkpoints that are placed by hand.

The idea: each program is compiled as it is, with a checkpoint of each block or step,
with one of every second, with ones that keep products, and under budgets; all are run
in turn, and the median of the processor's time of several runs counts, so that a busy
machine slows all of them. Beside each budget stands the fastest of those that take no
more than the budget, or than what the plan comes to.

    python -m tests.benchmarks.budgets          # prints the table of docs/memory.md
    python -m tests.benchmarks.budgets lstm ode
"""

import argparse
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import cycle
from statistics import median
from typing import Any

import numpy as np
from attrs import frozen

import verax
import verax.numpy as vnp
from tests.benchmarks.memory_programs import LARGE, PROGRAMS
from verax.errors import MemoryBudgetExceeded

BY_HAND = ("checkpoint", "every second", "keeps products", "no batches of them")
BUDGETS = (0.75, 0.5, 0.35)
HEADS = ("program", "MB", "ms", *BY_HAND, *map(str, BUDGETS))
RUNS = 9


@frozen
class Cost:
    """The bytes of a program, with arguments and results, and seconds of a run."""

    bytes: int
    seconds: float

    def beside(self, other: "Cost") -> str:
        """The shares of another's memory and time."""
        return f"{self.bytes / other.bytes:.2f} / {self.seconds / other.seconds:.2f}"


def every_second(part: Callable[..., Any]) -> Callable[..., Any]:
    """A block or step whose calls have a checkpoint, but for every second one."""
    both = cycle((verax.checkpoint(part), part))
    return lambda *args: next(both)(*args)


def taken(compiled: Any) -> int:
    """The bytes of a compiled program, with arguments and results."""
    found = compiled.memory_analysis()
    return int(found.arguments + found.outputs + found.temporaries - found.aliased)


def compiled_ways(name: str, sizes: Mapping[str, Any]) -> tuple[dict[str, Any], Any]:
    """The gradient of a program, compiled in all ways, and arguments."""
    make: Callable[..., Any] = partial(PROGRAMS[name], **sizes)
    loss, types = make()
    rng = np.random.default_rng(0)
    arguments = verax.tree.map(
        lambda t: vnp.asarray(0.05 * rng.normal(size=t.shape), t.dtype), types
    )
    policies = verax.checkpoint_policies
    products = policies.dots_saveable
    single = policies.dots_with_no_batch_dims_saveable
    each = {
        "checkpoint": verax.checkpoint,
        "every second": every_second,
        "keeps products": partial(verax.checkpoint, policy=products),
        "no batches of them": partial(verax.checkpoint, policy=single),
    }
    ways = {
        "plain": verax.jit(verax.value_and_grad(loss)).lower(*arguments).compile(),
        **{
            way: verax.jit(verax.value_and_grad(make(each=wrap)[0]))
            .lower(*arguments)
            .compile()
            for way, wrap in each.items()
        },
    }
    for share in BUDGETS:
        limited: Any = verax.value_and_grad(loss, memory=share)
        try:
            ways[str(share)] = limited.lower(*arguments).compile()
        except MemoryBudgetExceeded:
            continue
    return ways, arguments


def costs(name: str, sizes: Mapping[str, Any], runs: int = RUNS) -> dict[str, Cost]:
    """What each way costs."""
    ways, arguments = compiled_ways(name, sizes)
    times: dict[str, list[float]] = {way: [] for way in ways}
    for number in range(runs + 1):
        for way, program in ways.items():
            start = time.process_time()
            verax.block_until_ready(program(*arguments))
            if number:
                times[way].append(time.process_time() - start)
    return {way: Cost(taken(p), median(times[way])) for way, p in ways.items()}


def by_hand(found: dict[str, Cost], share: float) -> Cost | None:
    """The fastest checkpoint within a budget, or what its plan comes to."""
    plan = found.get(str(share))
    limit = max(share * found["plain"].bytes, 0 if plan is None else plan.bytes)
    fits = [found[way] for way in BY_HAND if found[way].bytes <= limit]
    return min(fits, key=lambda one: one.seconds, default=None)


def budget_cell(found: dict[str, Cost], share: float) -> str:
    """A plan's memory and time, and the time of the best checkpoint by hand."""
    plan, hand = found.get(str(share)), by_hand(found, share)
    text = "does not fit" if plan is None else plan.beside(found["plain"])
    if hand is None:
        return f"{text} (-)"
    return f"{text} ({hand.seconds / found['plain'].seconds:.2f})"


def cells(name: str, found: dict[str, Cost]) -> tuple[str, ...]:
    """The row of a table."""
    plain = found["plain"]
    shares = [
        *[found[way].beside(plain) for way in BY_HAND],
        *[budget_cell(found, share) for share in BUDGETS],
    ]
    return name, f"{plain.bytes / 1e6:.1f}", f"{1e3 * plain.seconds:.1f}", *shares


def main(arguments: Sequence[str]) -> None:
    """Print the table: bytes and time, as shares of those of the program as it is."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.budgets")
    parser.add_argument("names", nargs="*", help=f"of {', '.join(PROGRAMS)}")
    names = parser.parse_args(arguments).names or list(PROGRAMS)
    for row in (HEADS, ("---",) * len(HEADS)):
        print(f"| {' | '.join(row)} |")
    for name in names:
        row = cells(name, costs(name, LARGE.get(name, {})))
        print(f"| {' | '.join(row)} |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
