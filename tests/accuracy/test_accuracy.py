"""The table of `docs/accuracy.md` is what the command measures, with fewer points."""

from pathlib import Path

import numpy as np
import pytest

from .__main__ import main
from .functions import CASES
from .measure import drawn, errors, largest

PAGE = Path(__file__).parents[2] / "docs" / "accuracy.md"
SAMPLE = ("exp2", "sin", "arctan2", "power", "cbrt", "lgamma", "digamma", "erfc")


def table() -> dict[str, list[float]]:
    """The figures of the page: three in each precision."""
    rows = {}
    for line in PAGE.read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("| `"):
            rows[cells[0].strip("`")] = [float(x.replace(",", "")) for x in cells[2:]]
    return rows


def test_every_function_is_in_the_table() -> None:
    rows = table()
    assert list(rows) == list(CASES)
    assert {len(figures) for figures in rows.values()} == {6}


@pytest.mark.slow
@pytest.mark.parametrize("name", SAMPLE)
def test_errors_are_no_larger_than_the_table_says(name: str) -> None:
    figures = table()[name]
    for dtype, (ours, theirs, _) in (
        (np.float32, figures[:3]),
        (np.float64, figures[3:]),
    ):
        measured = largest(name, dtype, 4000, ("verax", "xla"))
        # A few points of thousands may lie worse than all of the table's.
        assert measured["verax"] <= 1.1 * ours + 0.05
        # Near a zero of the function, errors are as large as points are near.
        assert measured["xla"] <= 1.1 * theirs + 0.05 or theirs > 100


def test_points_have_every_exponent_and_both_signs() -> None:
    x = drawn((-8.0, 8.0), np.float32, 4000, np.random.default_rng(0))
    assert {*np.sign(x)} == {-1.0, 1.0}
    exponents = np.frexp(np.abs(x))[1]
    assert {*exponents} == {*range(-124, 4)}


def test_an_error_is_a_part_of_the_spacing_at_the_result() -> None:
    due = np.array([1.0, 4.0, 1e-320, np.inf])
    actual = np.array([1.0 + 2.0**-23, 4.0 - 2.0**-21, 0.0, 1.0])
    np.testing.assert_array_equal(errors(actual, due, np.float32), [1, 1, 0, 0])


def test_the_command_prints_a_row(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--only", "^sqrt$", "--scale", "0.001"]) == 0
    assert capsys.readouterr().out.startswith("| `sqrt` | 1e-37 to 1e+38 | 0.50 |")
    assert main(["--only", "nothing"]) == 2
