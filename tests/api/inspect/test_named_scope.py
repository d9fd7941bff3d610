"""Scopes and calls with names, and values known while tracing."""

from typing import Any

import pytest

import verax
import verax.numpy as vnp


def test_named_call_and_scope_change_nothing() -> None:
    def double(x: Any) -> Any:
        with verax.named_scope("inner"):
            return x * 2

    named = verax.named_call(double, name="twice")
    assert named.__name__ == "twice"
    assert verax.make_jaxpr(named)(1.0) == verax.make_jaxpr(double)(1.0)
    with pytest.raises(TypeError, match="function"):
        verax.named_call(3)  # type: ignore[arg-type]  # what is tested
    with pytest.raises(TypeError, match="string"), verax.named_scope(3):  # type: ignore[arg-type]  # what is tested
        pass


def test_known_values_are_computed_inside_a_trace() -> None:
    def fun(x: Any) -> Any:
        with verax.ensure_compile_time_eval():
            table = vnp.cumsum(vnp.arange(4))
            assert int(table[-1]) == 6
        return x + table

    eqns = verax.make_jaxpr(fun)(1).jaxpr.eqns
    assert [eqn.primitive.name for eqn in eqns] == ["add"]
    assert verax.jit(fun)(1).tolist() == [1, 2, 4, 7]
