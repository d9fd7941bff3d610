"""Equations made in a hurry are the frozen ones."""

from typing import Any

import numpy as np
import pytest
from attrs.exceptions import FrozenInstanceError

import verax
from verax.ir.atoms import Results, results, results_like, variable
from verax.ir.avals import ShapedArray
from verax.ir.jaxpr import NO_PARAMS, UNKNOWN_SOURCE, Eqn, Var, equation
from verax.ops.elementwise.trig import sin_p


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


def test_variables_are_shared_and_frozen() -> None:
    aval, other = (ShapedArray((n,), np.dtype("float32")) for n in (3, 4))
    quick = variable(5, aval)
    assert type(quick) is Var
    assert quick is variable(5, aval)
    assert quick == Var(5, aval)
    assert hash(quick) == hash(Var(5, aval))
    assert quick != variable(5, other) != variable(6, other)
    with pytest.raises(FrozenInstanceError):
        quick.index = 6  # type: ignore[misc]  # it is frozen
    assert results(5, ()) == results_like(5, ()) == ()
    assert results(5, (aval,)) is results_like(5, (Var(0, aval),))
    both = (quick, variable(6, other))
    assert results(5, (aval, other)) == both
    assert results_like(5, (Var(0, aval), Var(1, other))) == both


def test_variables_are_forgotten_when_there_are_too_many() -> None:
    table = Results(limit=10)
    types = [ShapedArray((n,), np.dtype("float32")) for n in range(3)]
    for index in range(100):
        for aval in types:
            assert table[aval][index] == (Var(index, aval),)
            assert sum(map(len, table.values())) <= 10


def nested(levels: int) -> Any:
    """Calls that use the call inside twice: 2**levels operations, `levels` programs."""

    def double(x: Any) -> Any:
        return x * 2

    def twice(fun: Any) -> Any:
        return verax.jit(lambda x: fun(fun(x)))

    fun: Any = double
    for _ in range(levels):
        fun = twice(fun)
    return verax.make_jaxpr(fun)(1.0).jaxpr


def test_shared_parts_are_compared_once() -> None:
    # Without the memory of equal parts this would take 2**60 comparisons.
    first, second = nested(60), nested(60)
    assert first is not second
    assert first == second
    assert hash(first) == hash(second)
    assert first != nested(59)
