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
    with pytest.raises(TypeError, match="mul"):  # of sizes 3 and 4
        again(vnp.ones(4))
    # Other types than those of the inputs go to the equations, which take these.
    more = verax.make_jaxpr(lambda x: vnp.sin(x) * 2)(vnp.ones(2))
    for given in (vnp.zeros(3), vnp.zeros((2, 2)), np.zeros((1, 4), "f4")):
        run = verax.core.jaxpr_as_fun(more)
        for (out,) in (run(given), verax.jit(run)(given)):
            assert (out.shape, out.dtype) == (given.shape, given.dtype)
    with pytest.raises(TypeError, match="sin"):
        verax.core.jaxpr_as_fun(more)(np.arange(2))
    with pytest.raises(TypeError, match="1 inputs"):
        verax.core.eval_jaxpr(closed.jaxpr, closed.consts)


def test_blocks_outside_of_traces() -> None:
    def f(x: Any) -> Any:
        with verax.core.eval_context():
            scale = float(vnp.sum(vnp.arange(3)))
        return x * scale

    assert float(verax.jit(f)(2.0)) == 6

    def g(x: Any) -> Any:
        with verax.core.eval_context():
            return x + 1

    with pytest.raises(verax.errors.UnexpectedTracerError):
        verax.jit(g)(1.0)


def test_names_of_types_and_sizes() -> None:
    assert isinstance(verax.typeof(1.0), verax.core.AbstractValue)
    assert (verax.core.max_dim(2, 3), verax.core.min_dim(2, 3)) == (3, 2)
    with pytest.raises(TypeError):
        verax.core.max_dim(2, 3.5)  # type: ignore[arg-type]  # the fault under test
