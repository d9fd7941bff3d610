"""Whether two runs of an example printed the same.

Integers, words and layout must agree; numbers with a fraction within a tolerance, as
compilers may add in another order::

    difference("loss 0.50001", "loss 0.5", 1e-3)      # None
    difference("loss nan", "loss 0.5", 1e-3)          # "line 1: 'loss nan', not ..."
"""

import math
import re

FRACTION = re.compile(r"[-+]?\d+(?:\.\d*(?:e[-+]?\d+)?|e[-+]?\d+)")
ABSOLUTE = 0.1  # of the tolerance: what numbers near zero may differ by


def difference(result: str, expected: str, tolerance: float) -> str | None:
    """The first line that differs and how, or None."""
    ours, theirs = lines(result), lines(expected)
    for number, (line, target) in enumerate(zip(ours, theirs, strict=False), 1):
        if not same(line, target, tolerance):
            return f"line {number}: {line[:60]!r}, not {target[:60]!r}"
    if len(ours) != len(theirs):
        return f"{len(ours)} lines, not {len(theirs)}"
    return None


def lines(output: str) -> list[str]:
    """The lines that say something, with spaces evened out."""
    return [" ".join(line.split()) for line in output.splitlines() if line.strip()]


def same(result: str, expected: str, tolerance: float) -> bool:
    """Whether two lines have the same words and nearly the same numbers."""
    if FRACTION.sub("#", result) != FRACTION.sub("#", expected):
        return False
    pairs = zip(FRACTION.findall(result), FRACTION.findall(expected), strict=True)
    return all(
        math.isclose(
            float(ours),
            float(theirs),
            rel_tol=tolerance,
            abs_tol=tolerance * ABSOLUTE,
        )
        for ours, theirs in pairs
    )
