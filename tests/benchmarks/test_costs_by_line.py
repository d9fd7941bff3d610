"""The parts of `costs_by_line` that time nothing, and that its programs have costs."""

import numpy as np
import pytest

from property_tests.levels import NIGHTLY, by_turns
from tests.benchmarks.costs_by_line import (
    Agreement,
    compared,
    correlation,
    expected,
    programs,
    ranks,
    table,
)


def test_ranks_and_correlation() -> None:
    assert ranks([3.0, 1.0, 2.0, 1.0]).tolist() == [3, 0.5, 2, 0.5]
    assert correlation([1, 2, 3], [10, 200, 3000]) == pytest.approx(1)
    assert correlation([1, 2, 3], [3, 2, 1]) == pytest.approx(-1)


def test_lines_that_take_little_are_left_out() -> None:
    costs = {(1, False): 9.0, (2, True): 3.0, (3, False): 0.01}
    times = {(1, False): 5.0, (2, True): 4.0, (3, False): 0.02}
    found = compared("p", costs, times)
    assert (found.lines, found.same) == (2, True)
    assert found.correlation == pytest.approx(1)
    assert found.expected == pytest.approx(9 / 12.01)
    assert compared("p", costs, {**times, (2, True): 6.0}).same is False


def test_the_table() -> None:
    text = table([Agreement("p", 3, 0.5, True, 0.4, 0.6)])
    assert text.splitlines()[-1] == "| p | 3 | 0.50 | the same | 40 % / 60 % |"


@pytest.mark.slow
@pytest.mark.parametrize("name", by_turns(programs(), 2, NIGHTLY))
def test_lines_are_well_apart(name: str) -> None:
    f, args = programs()[name]
    times = sorted(expected(f, args, "h100").values())[::-1]
    assert len(times) >= 2
    assert all(np.isfinite(times))
    assert times[0] > 1.2 * times[1]
