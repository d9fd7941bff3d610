"""Which results are weak: no law knows, for types are what the typing rule says.

One idea: what is weak is a convention, so it is written down, a line for each row, in
`weak_types.txt`: what its results are (w for weak, s for strong) if no operand is
weak, all are, the first is, or all but the first are. After a new row, or a draw of
other types, write it anew:

    python -m property_tests.test_weak_types > property_tests/weak_types.txt
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest

from verax.ir.avals import ShapedArray
from verax.ir.dtypes import float0
from verax.ops.table import ROWS
from verax.rules.rows.infer import infer
from verax.rules.rows.row import Row, Sample

FILE = Path(__file__).with_name("weak_types.txt")
SEEDS = 60
PATTERNS = ("none", "all", "first", "rest")
DRAWN = [row for row in ROWS if row.draw is not None]


def marked(avals: Sequence[ShapedArray], pattern: str) -> list[ShapedArray]:
    """The types, weak at some places."""
    places = {
        "none": range(0),
        "all": range(len(avals)),
        "first": range(1),
        "rest": range(1, len(avals)),
    }[pattern]
    return [
        aval.with_dtype(aval.dtype, i in places) if can_be_weak(aval) else aval
        for i, aval in enumerate(avals)
    ]


def can_be_weak(aval: ShapedArray) -> bool:
    return aval.dtype != float0 and aval.dtype.kind in "iufc"


def states(row: Row[Any], sample: Sample[Any], pattern: str) -> Iterator[str]:
    """Which results are weak, as a word for each call that the row takes."""
    avals = marked(sample.avals, pattern)
    if pattern != "none" and avals == marked(avals, "none"):
        return
    try:
        outs = infer(row, sample.params, *avals)
    except (TypeError, ValueError):
        return  # operands of different weakness that must be of one type
    flags = "".join("w" if aval.weak_type else "s" for aval in outs)
    yield flags if len(set(flags)) != 1 else flags[0]


def found(row: Row[Any]) -> dict[str, set[str]]:
    """What the results are, by pattern, over some calls."""
    assert row.draw is not None
    samples = [row.draw(Random(seed)) for seed in range(SEEDS)]
    return {
        pattern: {word for sample in samples for word in states(row, sample, pattern)}
        or {"-"}
        for pattern in PATTERNS
    }


def line_of(row: Row[Any]) -> str:
    return " ".join(
        [
            row.name,
            *[f"{p}={','.join(sorted(s))}" for p, s in found(row).items()],
        ]
    )


def written() -> dict[str, dict[str, set[str]]]:
    """The lines of the file."""
    known = {}
    for line in FILE.read_text().splitlines():
        name, *parts = line.split()
        pairs = [part.split("=") for part in parts]
        known[name] = {pattern: set(words.split(",")) for pattern, words in pairs}
    return known


KNOWN = written() if FILE.exists() else {}


@pytest.mark.parametrize("row", [pytest.param(r, id=r.name) for r in DRAWN])
def test_weak_results_are_those_written_down(row: Row[Any]) -> None:
    due = KNOWN.get(row.name)
    for pattern, words in found(row).items():
        if due is None:  # a row that is new: only this holds for almost all
            assert pattern != "none" or words <= {"s", "", "-"}, (
                f"weak from nowhere: {words}"
            )
            continue
        # Rows of several results have more combinations than these calls show.
        exact = all(len(word) <= 1 for word in due[pattern])
        fits = words == due[pattern] if exact else words <= due[pattern]
        assert fits, f"{row.name}, {pattern} weak: {words}"


if __name__ == "__main__":
    print("\n".join(map(line_of, DRAWN)))
