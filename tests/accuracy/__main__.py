"""The command: ``python -m tests.accuracy`` prints the rows of `docs/accuracy.md`.

python -m tests.accuracy --only sin --scale 10      # ten times as many points
"""

import argparse
import re
import sys
from collections.abc import Sequence

import numpy as np

from .functions import CASES
from .measure import largest, points


def figure(x: float) -> str:
    """Two digits behind the point of small numbers, none of large ones."""
    return f"{x:.2f}" if x < 9.995 else f"{x:.1f}" if x < 99.5 else f"{x:,.0f}"


def row(name: str, scale: float) -> str:
    """A line of the table."""
    ranges = ", ".join(f"{low:g} to {high:g}" for low, high in CASES[name].ranges)
    cells = [f"`{name}`", ranges]
    for dtype in (np.float32, np.float64):
        measured = largest(name, dtype, points(name, dtype, scale))
        cells += [figure(x) for x in measured.values()]
    return f"| {' | '.join(cells)} |"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the rows; return 2 where no function was chosen."""
    parser = argparse.ArgumentParser(prog="python -m tests.accuracy")
    parser.add_argument("--only", metavar="REGEX", default="", help="these functions")
    parser.add_argument("--scale", type=float, default=1.0, help="so many more points")
    options = parser.parse_args(arguments)
    chosen = [name for name in CASES if re.search(options.only, name)]
    for name in chosen:
        print(row(name, options.scale), flush=True)
    return 0 if chosen else 2


if __name__ == "__main__":
    sys.exit(main())
