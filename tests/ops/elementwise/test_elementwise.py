"""Every elementwise row obeys the laws on generated calls."""

from typing import Any

import pytest

from tests.ops.laws import check_row
from verax.ops.elementwise import (
    arith,
    bits,
    compare,
    complex as complex_,
    convert,
    exp_log,
    rounding,
    select,
    trig,
)
from verax.ops.special import erf_gamma
from verax.rules.rows.row import Row

MODULES = (
    arith,
    bits,
    select,
    compare,
    complex_,
    convert,
    exp_log,
    rounding,
    erf_gamma,
    trig,
)
ROWS = [row for module in MODULES for row in module.ROWS]
# Their derivatives are conventions, or do not exist in an operand: no differences.
CONVENTIONAL = {
    "nextafter",
    "stop_gradient",
    "bitcast_convert_type",
    "reduce_precision",
    "polygamma",
    "zeta",
    "convert_element_type",
}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: str(row))
def test_laws(row: Row[Any]) -> None:
    check_row(row, seed=0, count=5, smooth=row.name not in CONVENTIONAL)


def test_names_differ() -> None:
    assert len({row.name for row in ROWS}) == len(ROWS)
