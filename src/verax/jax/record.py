"""What a program asked of jax that verax lacks: `VERAX_JAX_RECORD=1` prints it.

At its end, the program prints the names to standard error, one in a line, with how
often they were asked for and where first::

    VERAX_JAX_RECORD=1 python -m verax.jax train.py
"""

import atexit
import os
import sys
from collections import Counter
from types import FrameType


class Record:
    """The names that were asked for in vain, and where."""

    def __init__(self, expected: bool) -> None:
        self.wanted = expected
        self.counts: Counter[str] = Counter()
        self.first: dict[str, str] = {}
        if expected:
            atexit.register(self.report)

    def missing(self, name: str) -> None:
        """Note that a program asked for a name that is not there."""
        if self.wanted:
            self.counts[name] += 1
            self.first.setdefault(name, asked_at(sys._getframe(1)))

    def report(self) -> None:
        """Print the names, those asked for most often first."""
        for name, count in self.counts.most_common():
            print(f"{name}  {count}x, first at {self.first[name]}", file=sys.stderr)


def asked_at(frame: FrameType | None) -> str:
    """File and line of the innermost frame outside this package and importlib."""
    while frame is not None:
        file = frame.f_code.co_filename
        if (
            os.path.dirname(file) != os.path.dirname(__file__)
            and "importlib" not in file
        ):
            return f"{file}:{frame.f_lineno}"
        frame = frame.f_back
    return "?"


RECORD = Record(bool(os.environ.get("VERAX_JAX_RECORD")))
