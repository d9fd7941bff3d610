"""How long plans for memory take to make, beside what it takes to trace a program.

The idea: gradients of transformers are planned for shares of their peak, as the model
has it, each from the start and in seconds of the processor; nothing is compiled.

    python -m tests.benchmarks.memory_plans     # prints the table of docs/memory.md
"""

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import verax
from tests.benchmarks.memory_programs import PROGRAMS
from verax.transforms.memory.plan import Plan, planned, unlimited

SHARES = (0.75, 0.5, 0.35, 0.2, 0.0)
RUNS = 3
DEPTHS: dict[str, tuple[str, dict[str, Any]]] = {
    "12 blocks": ("gpt", {"count": 12}),
    "48 blocks": ("gpt", {"count": 48}),
    "12 blocks in a `scan`": ("gpt in a loop", {"count": 12}),
    "48 blocks in a `scan`": ("gpt in a loop", {"count": 48}),
}


def gradient(name: str, sizes: dict[str, Any]) -> Any:
    """The program of the gradient of a benchmark."""
    loss, types = PROGRAMS[name](**sizes)
    return verax.jit(verax.value_and_grad(loss)).trace(*types).traced.jaxpr


def timed(make: Callable[[], Plan]) -> tuple[float, int]:
    """The seconds of the processor that a plan took, and its peak."""
    start = time.process_time()
    peak = make().peak
    return time.process_time() - start, peak


def row(name: str, program: str, sizes: dict[str, Any], runs: int = RUNS) -> list[str]:
    """A row: equations, and for each share seconds, and the share that is planned."""
    jaxpr = gradient(program, sizes)
    peak = unlimited(jaxpr).peak
    cells = [name, str(len(jaxpr.eqns))]
    for share in SHARES:
        make = partial(planned, jaxpr, int(share * peak))
        seconds, taken = min([timed(make) for _ in range(runs)])
        cells.append(f"{seconds:.2f} s ({taken / peak:.2f})")
    return cells


def main() -> None:
    """Print the table."""
    print(f"| program | equations | {' | '.join(map(str, SHARES))} |")
    print("|" + "---|" * (2 + len(SHARES)))
    for name, (program, sizes) in DEPTHS.items():
        print(f"| {' | '.join(row(name, program, sizes))} |", flush=True)


if __name__ == "__main__":
    main()
