"""Well-formed programs pass; each kind of mistake is found, with its equation."""

import numpy as np
import pytest
from attrs import evolve
from pyrsistent import pvector

from tests.ir.test_printer import long_call, with_constants, with_everything
from tests.ir.toy import (
    FLOAT32,
    SCALAR,
    VECTOR,
    Axes,
    Call,
    apply,
    branches,
    example,
    inputs,
    jit_p,
    number,
    program,
    scaled,
    sin_p,
    typing,
)
from verax.ir.atoms import array_literal, scalar_literal, variable
from verax.ir.avals import ShapedArray
from verax.ir.jaxpr import NO_PARAMS, Eqn, Jaxpr, Source
from verax.ir.reports.check import IllTyped, check_jaxpr
from verax.ir.walk import hoist


@pytest.mark.parametrize(
    "jaxpr",
    [
        example(),
        branches(),
        with_everything(),
        with_constants(),
        long_call(),
        hoist(scaled(array_literal(np.ones(8), VECTOR))).jaxpr,
    ],
    ids=range(6),
)
def test_well_formed_programs_pass(jaxpr: Jaxpr) -> None:
    check_jaxpr(jaxpr, typing)


def complaint(jaxpr: Jaxpr) -> str:
    with pytest.raises(IllTyped) as caught:
        check_jaxpr(jaxpr, typing)
    return str(caught.value)


def test_operand_out_of_scope() -> None:
    eqn = Eqn(sin_p, NO_PARAMS, (variable(1, VECTOR),), (variable(1, VECTOR),))
    actual = complaint(program(inputs(VECTOR), [eqn], eqn.outvars))
    assert actual == "equation 0, b:f32[8] = sin b: b:f32[8] is not defined above"


def test_output_out_of_scope() -> None:
    actual = complaint(program(inputs(VECTOR), [], (variable(3, VECTOR),)))
    assert actual == "the outputs: d:f32[8] is not defined above"


def test_operand_of_another_type() -> None:
    eqn = apply(sin_p, NO_PARAMS, variable(0, SCALAR))
    actual = complaint(program(inputs(VECTOR), [eqn], eqn.outvars))
    assert "a:f32[] is read, but defined as a:f32[8]" in actual


def test_numbers_that_are_not_canonical() -> None:
    eqn = Eqn(sin_p, NO_PARAMS, inputs(VECTOR), (variable(5, VECTOR),))
    actual = complaint(program(inputs(VECTOR), [eqn], eqn.outvars))
    assert "f:f32[8] has number 5, but 1 is next" in actual
    actual = complaint(program((variable(1, VECTOR),), [], ()))
    assert actual == "the inputs: b:f32[8] has number 1, but 0 is next"


def test_results_of_another_type_or_number() -> None:
    eqn = Eqn(sin_p, NO_PARAMS, inputs(VECTOR), (variable(1, SCALAR),))
    actual = complaint(program(inputs(VECTOR), [eqn], ()))
    assert "have types (f32[]), but the type rule gives (f32[8])" in actual
    actual = complaint(program(inputs(VECTOR), [evolve(eqn, outvars=())], ()))
    assert "have types (), but the type rule gives (f32[8])" in actual


def test_params_of_another_primitive() -> None:
    eqn = evolve(apply(sin_p, NO_PARAMS, *inputs(VECTOR)), params=Axes(()))
    actual = complaint(program(inputs(VECTOR), [eqn], ()))
    assert "params are Axes, not NoParams" in actual


def test_type_rule_that_refuses_names_equation_and_line() -> None:
    place = Source(complaint.__code__, 0)
    eqn = Eqn(jit_p, Call("f", example()), inputs(VECTOR), (), place)
    actual = complaint(program(inputs(VECTOR), [eqn], ()))
    assert "equation 0,  = jit a (from " in actual
    assert "test_check.py:" in actual
    assert "the operands do not fit: jit wants (f32[8], f32[8])" in actual


def test_mistake_inside_of_a_nested_jaxpr() -> None:
    good = branches()
    inner = program(inputs(VECTOR), [], (variable(3, VECTOR),))
    eqn = Eqn(jit_p, Call("f", inner), inputs(VECTOR), (variable(1, VECTOR),))
    actual = complaint(program(inputs(VECTOR), [eqn], ()))
    assert actual == (
        "equation 0, b:f32[8] = jit a: in its jaxpr 0, the outputs: d:f32[8] is not "
        "defined above"
    )
    consts = Jaxpr(inputs(VECTOR), (), pvector(), ())
    eqn = Eqn(jit_p, Call("f", consts), (), ())
    actual = complaint(program(good.invars, [eqn], ()))
    assert "in its jaxpr 0, only the outermost jaxpr may have" in actual


def test_literals_that_are_not_of_their_type() -> None:
    (x,) = inputs(VECTOR)
    wrong = scalar_literal(np.float64(1), SCALAR)
    assert "a literal of type f32[] has 8 bytes" in complaint(
        program((x,), [], (wrong,))
    )
    array = array_literal(np.ones(3), ShapedArray((4,), FLOAT32))
    assert "shape (3,) does not have the type f32[4]" in complaint(
        program((x,), [], (array,))
    )
    check_jaxpr(program((x,), [], (number(1.0),)), typing)
