"""What budgets of memory cost, beside checkpoints that are placed by hand.

The idea: each program is compiled as it is, with a checkpoint of each block or step,
with one that keeps products, and under budgets; all are run in turn, and the fastest of
several runs counts, so that a busy machine slows all of them.

    python -m tests.benchmarks.budgets          # prints the table of docs/memory.md
    python -m tests.benchmarks.budgets lstm ode
"""

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from attrs import frozen

import verax
import verax.numpy as vnp
from tests.benchmarks.memory_programs import PROGRAMS
from verax.errors import MemoryBudgetExceeded

HEADS = ("program", "MB", "ms", "checkpoint", "keeps products", "0.75", "0.5", "0.35")
BUDGETS = (0.75, 0.5, 0.35)
RUNS = 9

LARGE: dict[str, dict[str, Any]] = {
    "gpt": {"count": 12, "batch": 8, "length": 64, "width": 64},
    "gpt in a loop": {"count": 48},
    "resnet": {"count": 8, "size": 32},
    "unet": {"width": 16, "size": 64},
    "lstm": {"steps": 1000},
    "ode": {"steps": 1000},
    "hmc": {"steps": 200},
}


@frozen
class Cost:
    """The bytes of a program, with arguments and results, and seconds of a run."""

    bytes: int
    seconds: float

    def beside(self, other: "Cost") -> str:
        """The shares of another's memory and time."""
        return f"{self.bytes / other.bytes:.2f} / {self.seconds / other.seconds:.2f}"


def taken(compiled: Any) -> int:
    """The bytes of a compiled program, with arguments and results."""
    found = compiled.memory_analysis()
    return int(found.arguments + found.outputs + found.temporaries - found.aliased)


def compiled_ways(name: str, sizes: dict[str, Any]) -> tuple[dict[str, Any], Any]:
    """The gradient of a program, compiled in all ways, and arguments."""
    make: Callable[..., Any] = partial(PROGRAMS[name], **sizes)
    loss, types = make()
    rng = np.random.default_rng(0)
    arguments = verax.tree.map(
        lambda t: vnp.asarray(0.05 * rng.normal(size=t.shape), t.dtype), types
    )
    products = verax.checkpoint_policies.dots_saveable
    each = {
        "checkpoint": verax.checkpoint,
        "keeps products": partial(verax.checkpoint, policy=products),
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


def costs(name: str, sizes: dict[str, Any], runs: int = RUNS) -> dict[str, Cost]:
    """What each way costs."""
    ways, arguments = compiled_ways(name, sizes)
    times: dict[str, list[float]] = {way: [] for way in ways}
    for number in range(runs + 1):
        for way, program in ways.items():
            start = time.perf_counter()
            verax.block_until_ready(program(*arguments))
            if number:
                times[way].append(time.perf_counter() - start)
    return {way: Cost(taken(p), min(times[way])) for way, p in ways.items()}


def cells(name: str, found: dict[str, Cost]) -> tuple[str, ...]:
    """The row of a table."""
    plain = found["plain"]
    shares = [
        found[way].beside(plain) if way in found else "does not fit"
        for way in HEADS[3:]
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
