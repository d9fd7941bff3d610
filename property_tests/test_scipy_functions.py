"""Every function of `verax.scipy` beside SciPy's, eager and compiled."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from property_tests import functions_special
from property_tests.comparing import BFLOAT16, Pointwise, held, shapes_held

POINTWISE = functions_special.POINTWISE
SEEDS = st.integers(0, 2**16)


def tried() -> settings:
    """One seed for each forty of the profile: a seed is a thousand points."""
    return settings(max_examples=max(1, settings().max_examples // 40))


@pytest.mark.parametrize("line", POINTWISE, ids=lambda line: line.name)
@pytest.mark.parametrize(
    "dtype",
    [np.float32, np.float64, np.float16, BFLOAT16],
    ids=lambda d: np.dtype(d).name,
)
def test_function_of_numbers(line: Pointwise, dtype: Any) -> None:
    @tried()
    @given(SEEDS)
    def search(seed: int) -> None:
        held(line, seed, dtype)

    search()


@pytest.mark.parametrize("line", POINTWISE, ids=lambda line: line.name)
def test_shapes_and_dtypes(line: Pointwise) -> None:
    shapes_held(line)
