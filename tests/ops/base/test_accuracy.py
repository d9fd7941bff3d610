"""Accuracy asked of elementwise functions: checked, met by the one implementation."""

from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from verax import lax

NAMES = "cbrt cos erfc exp exp2 expm1 log log1p log2 logistic rsqrt sin sqrt tan tanh"
FUNCTIONS = tuple(getattr(lax, name) for name in NAMES.split())
ASKED = (lax.AccuracyMode.HIGHEST, lax.AccuracyMode.DEFAULT, lax.Tolerance(rtol=1e-5))


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_modes_and_tolerances_change_nothing(function: Any) -> None:
    x = vnp.array([0.25, 0.5, 3.0])
    plain = verax.make_jaxpr(function)(x)
    for accuracy in ASKED:
        assert (function(x, accuracy=accuracy) == function(x)).all()
        assert (
            verax.make_jaxpr(lambda x, a=accuracy: function(x, accuracy=a))(x) == plain
        )


def test_other_accuracies_are_refused() -> None:
    with pytest.raises(TypeError, match="None, an AccuracyMode or a Tolerance"):
        lax.tanh(1.0, accuracy="highest")  # type: ignore[arg-type]  # the error


@pytest.mark.parametrize("name", ["atol", "rtol", "ulps"])
def test_tolerances_that_no_number_meets_are_refused(name: str) -> None:
    make: Any = lax.Tolerance
    for error in (-1, np.nan):
        with pytest.raises(ValueError, match=f"{name} must be at least 0, not"):
            make(**{name: error})
    assert getattr(make(**{name: 2}), name) == 2


def test_a_tolerance_allows_something() -> None:
    with pytest.raises(ValueError, match="set atol, rtol or ulps to more than 0"):
        lax.Tolerance(atol=0.0)


def test_tolerances_are_values() -> None:
    same = {lax.Tolerance(atol=1e-6, ulps=2), lax.Tolerance(1e-6, 0.0, 2)}
    assert same == {lax.Tolerance(atol=1e-6, ulps=2)}
