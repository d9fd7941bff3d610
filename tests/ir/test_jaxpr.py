"""Equations made in a hurry are the frozen ones."""

import numpy as np
import pytest
from attrs.exceptions import FrozenInstanceError

from verax.ir.avals import ShapedArray
from verax.ir.jaxpr import NO_PARAMS, UNKNOWN_SOURCE, Eqn, Var, equation
from verax.ops.trig import sin_p


def test_equation_is_eqn() -> None:
    aval = ShapedArray((3,), np.dtype("float32"))
    x, y = Var(0, aval), Var(1, aval)
    quick = equation(sin_p, NO_PARAMS, (x,), (y,), UNKNOWN_SOURCE)
    slow = Eqn(sin_p, NO_PARAMS, (x,), (y,))
    assert type(quick) is Eqn
    assert quick == slow
    assert hash(quick) == hash(slow)
    with pytest.raises(FrozenInstanceError):
        quick.params = NO_PARAMS  # type: ignore[misc]  # it is frozen
