"""That memory is predicted as closely as `docs/memory.md` says, on small programs."""

from typing import Any

import pytest

from property_tests.levels import NIGHTLY, by_turns
from tests.benchmarks.memory import Held, held, table
from tests.benchmarks.memory_plans import SHARES, row
from tests.benchmarks.memory_programs import PROGRAMS

SMALL: dict[str, dict[str, Any]] = {
    "gpt": {"count": 4, "batch": 2, "length": 32, "width": 32},
    "gpt in a loop": {"count": 6, "batch": 2, "length": 32, "width": 32},
    "resnet": {"count": 3, "batch": 2, "size": 16},
    "unet": {"batch": 1, "size": 32},
    "lstm": {"batch": 8, "width": 32},
    "ode": {"batch": 16, "width": 16},
    "hmc": {"chains": 16, "width": 16},
}
LIMITS = {
    "gpt": 0.1,
    "gpt in a loop": 0.1,
    "resnet": 0.1,
    "unet": 0.15,
    "lstm": 0.1,
    "ode": 0.02,
    "hmc": 0.06,
}


@pytest.mark.slow
@pytest.mark.parametrize("name", by_turns(PROGRAMS, 2, NIGHTLY))
def test_predictions(name: str) -> None:
    found = held(name, *PROGRAMS[name](**SMALL[name]))
    assert abs(found.error) <= LIMITS[name], found


@pytest.mark.slow
@pytest.mark.parametrize("name", by_turns(["resnet", "unet"], 2, NIGHTLY))
def test_predictions_of_convolutions(name: str) -> None:
    """Copies for libraries are counted: without them it is a third to a half less."""
    found = held(name, *PROGRAMS[name]())
    assert abs(found.error) <= 0.1, found


def test_the_table() -> None:
    text = table([Held("p", 900_000, 1_000_000, 1_960_000, 2_000_000)])
    assert text.splitlines()[-1] == "| p | 0.90 MB | 1.00 MB | -10 % | -2 % |"


@pytest.mark.slow
def test_plans_are_timed() -> None:
    cells = row("blocks", "gpt in a loop", SMALL["gpt in a loop"], runs=1)
    assert len(cells) == 2 + len(SHARES)
    assert all(cell.endswith(")") for cell in cells[2:])
