"""How well `debug.memory` predicts what compiled programs take.

The idea: each program is a gradient whose memory is predicted from its jaxpr, and held
to what XLA says of the program that it compiled.

    python -m tests.benchmarks.memory        # prints the table of docs/memory.md
    python -m tests.benchmarks.memory lstm ode
"""

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from attrs import frozen

import verax
from tests.benchmarks.memory_programs import LARGE, PROGRAMS
from verax.debug import memory

HEADS = ("program", "in between, predicted", "measured", "error", "all")


@frozen
class Held:
    """The bytes of a program between its arguments and results, and all of them."""

    name: str
    predicted: int
    measured: int
    predicted_total: int
    measured_total: int

    @property
    def error(self) -> float:
        """The prediction over what was measured, less one."""
        return self.predicted / self.measured - 1

    @property
    def total_error(self) -> float:
        """The same with arguments and results."""
        return self.predicted_total / self.measured_total - 1

    @property
    def cells(self) -> tuple[str, ...]:
        """The row of the table."""
        return (
            self.name,
            f"{self.predicted / 1e6:.2f} MB",
            f"{self.measured / 1e6:.2f} MB",
            f"{100 * self.error:+.0f} %",
            f"{100 * self.total_error:+.0f} %",
        )


def held(name: str, loss: Callable[..., Any], arguments: Sequence[Any]) -> Held:
    """The gradient of a loss by its first argument, predicted and measured."""
    report = memory(verax.grad(loss))(*arguments)
    assert report.measured is not None
    return Held(
        name,
        report.model.temporaries,
        report.temporaries,
        report.predicted,
        report.measured,
    )


def table(results: Sequence[Held]) -> str:
    """The table, in Markdown."""
    rows = [HEADS, ("---",) * len(HEADS), *[one.cells for one in results]]
    return "\n".join([f"| {' | '.join(row)} |" for row in rows])


def all_sizes(name: str) -> Iterator[Held]:
    """A program small, and as large as budgets are measured with; 48 blocks as well."""
    yield held(name, *PROGRAMS[name]())
    yield held(f"{name}, large", *PROGRAMS[name](**LARGE[name]))
    if name == "gpt":
        yield held(f"{name}, 48 blocks", *PROGRAMS[name](count=48))


def main(arguments: Sequence[str]) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.memory")
    parser.add_argument("names", nargs="*", help=f"of {', '.join(PROGRAMS)}")
    names = parser.parse_args(arguments).names or list(PROGRAMS)
    print(table([one for name in names for one in all_sizes(name)]))


if __name__ == "__main__":
    main(sys.argv[1:])
