"""Elementwise rows have names of their own, and refuse what XLA does not know."""

import pytest

import verax
import verax.numpy as vnp
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


def test_names_differ() -> None:
    assert len({row.name for row in ROWS}) == len(ROWS)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float8_e4m3fn"])
def test_complex_numbers_are_made_of_single_and_double_precision(dtype: str) -> None:
    """XLA knows no others, so that is said before it is asked."""
    x = vnp.ones(2, dtype)
    for f in (lax.complex, verax.jit(lax.complex)):
        with pytest.raises(TypeError, match=f"complex does not accept dtype {dtype}"):
            f(x, x)
