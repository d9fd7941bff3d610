"""Every elementwise row obeys the laws on generated calls."""

from typing import Any

import pytest

import verax
import verax.numpy as vnp
from tests.ops.laws import check_row
from verax import lax
from verax.ops.elementwise import (
    arith,
    bits,
    compare,
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


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float8_e4m3fn"])
def test_complex_numbers_are_made_of_single_and_double_precision(dtype: str) -> None:
    """XLA knows no others, so that is said before it is asked."""
    x = vnp.ones(2, dtype)
    for f in (lax.complex, verax.jit(lax.complex)):
        with pytest.raises(TypeError, match=f"complex does not accept dtype {dtype}"):
            f(x, x)
