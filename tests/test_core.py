"""`verax.core`: jaxprs as functions again."""

from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp


def test_programs_are_functions_again() -> None:
    table = np.arange(3.0, dtype=np.float32)
    closed = verax.make_jaxpr(lambda x: (x * table, x + 1))(vnp.ones(3))

    def again(x: Any) -> Any:
        return verax.core.eval_jaxpr(closed.jaxpr, closed.consts, x)[0]

    x = vnp.array([1.0, 2.0, 3.0])
    assert again(x).tolist() == verax.jit(again)(x).tolist() == [0, 2, 6]
    assert verax.grad(lambda x: again(x).sum())(x).tolist() == [0, 1, 2]
    assert verax.core.jaxpr_as_fun(closed)(x)[1].tolist() == [2, 3, 4]
    assert isinstance(verax.eval_shape(again, x), verax.ShapeDtypeStruct)
    with pytest.raises(TypeError, match="operand 1"):
        again(vnp.ones(4))
    with pytest.raises(TypeError, match="1 inputs"):
        verax.core.eval_jaxpr(closed.jaxpr, closed.consts)
