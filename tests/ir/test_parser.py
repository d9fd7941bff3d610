"""Reading printed programs back, and the errors for texts that are no programs."""

from pathlib import Path

import numpy as np
import pytest

from tests.ir.test_printer import (
    GOLDEN_PROGRAMS,
    long_call,
    with_constants,
    with_everything,
)
from tests.ir.toy import (
    PRIMITIVES,
    VECTOR,
    Everything,
    Numbers,
    branches,
    constant,
    example,
    inputs,
    number,
    odd_p,
    program,
    scaled,
)
from verax.ir.atoms import variable
from verax.ir.forms.parser import parse_closed, parse_jaxpr
from verax.ir.jaxpr import NO_PARAMS, Eqn, Jaxpr
from verax.ir.text.printer import print_jaxpr
from verax.ir.text.tokens import ParseError
from verax.ir.walk import hoist, used_consts


def reread(jaxpr: Jaxpr, width: int = 80) -> Jaxpr:
    consts = [use.literal.value for use in used_consts(jaxpr)]
    return parse_jaxpr(print_jaxpr(jaxpr, width=width), PRIMITIVES, consts)


@pytest.mark.parametrize("width", [1, 80, 10000])
@pytest.mark.parametrize(
    "jaxpr",
    [
        example(),
        branches(),
        with_constants(),
        with_everything(),
        long_call(),
        scaled(number(np.nan)),
        scaled(number(2.0, weak=True)),
        program((), [], ()),
    ],
    ids=range(8),
)
def test_text_reads_back(jaxpr: Jaxpr, width: int) -> None:
    again = reread(jaxpr, width)
    assert again == jaxpr
    assert hash(again) == hash(jaxpr)
    assert str(again) == str(jaxpr)


def test_params_read_back_with_their_classes() -> None:
    params = reread(with_everything()).eqns[0].params
    assert isinstance(params, Everything)
    assert isinstance(params.numbers, tuple)
    assert type(params.numbers[0]) is Numbers
    assert type(params.rate) is float
    assert str(params.rate) == "-0.0"
    assert type(params.scalar) is np.float32


def test_closed_jaxpr_reads_back() -> None:
    closed = hoist(branches(constant(np.ones(8)), constant(np.zeros(8))))
    inner = [use.literal.value for use in used_consts(closed.jaxpr)]
    assert parse_closed(str(closed), PRIMITIVES, (*closed.consts, *inner)) == closed
    simple = hoist(scaled(constant(np.ones(8, np.float32))))
    assert parse_closed(str(simple), PRIMITIVES, simple.consts) == simple
    with pytest.raises(ParseError, match="values for 1 constvars"):
        parse_closed(str(simple), PRIMITIVES)


def test_comments_and_other_names_are_understood() -> None:
    text = """{ lambda ; x:f32[8] y:f32[8]. let  # from here
        first:f32[8] = sin y; second:f32[8] = mul first 3.0:f32[]
        _:f32[] = reduce_sum[ axes = (0) ] second  # unused
      in (second,) }"""
    assert parse_jaxpr(text, PRIMITIVES) == example()


def test_variable_called_in_or_nan_is_no_keyword() -> None:
    eqns = [
        Eqn(odd_p, NO_PARAMS, (variable(i, VECTOR),), (variable(i + 1, VECTOR),))
        for i in range(9200)
    ]
    # in is number 221, inf 5751, nan 8801.
    outs = tuple([variable(i, VECTOR) for i in (221, 5751, 8801)])
    jaxpr = program(inputs(VECTOR), eqns, outs)
    assert "in (in, inf, nan) }" in str(jaxpr)
    assert reread(jaxpr) == jaxpr
    flat = program(inputs(VECTOR), eqns[:222], (variable(221, VECTOR),))
    assert reread(flat, 1 << 30) == flat


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("{ lambda ; a:f32[8] let", "line 1, column 21: expected '.', found 'let'"),
        ("{ lambda ; a:f32[8]. let in (b,) }", "column 30: expected a variable that"),
        ("{ lambda ; a:f32[8]. let in (a,)", "expected '}', found the end"),
        ("{ lambda ; a:f33[8]. let in (a,) }", "column 12: expected a type"),
        ("{ lambda ; a:f32[8] a:f32[]. let in () }", "column 21: expected a new name"),
        (
            "{ lambda ; a:f32[8]. let\n  b:f32[8] = sine a\nin (b,) }",
            "line 2, column 14: expected the name of a known primitive, found 'sine'",
        ),
        ("{ lambda ; . let in (300:u8[],) }", "expected a literal"),
        ("{ lambda ; . let in (1.5:i32[],) }", "expected a literal"),
        ("{ lambda ; . let in (const1:f32[3],) }", "there are 0 consts"),
        ("{ lambda ; . let in (0x00:f32[],) }", "has 1 bytes"),
        ("{ lambda ; . let in () } }", "expected the end of the text, found '}'"),
        ("{ lambda ; . let ! in () }", "column 18: expected a name, a number"),
        (
            "{ lambda ; a:f32[8]. let b:f32[] = reduce_sum a in (b,) }",
            "column 47: expected the fields of Axes: axes",
        ),
        (
            "{ lambda ; a:f32[8]. let b:f32[] = reduce_sum[axis=(0,)] a in (b,) }",
            "column 47: expected ']' or a field of Axes: axes, found 'axis'",
        ),
        (
            "{ lambda ; a:f32[8]. let b:f32[] = reduce_sum[axes=(0, x)] a in (b,) }",
            "column 52: expected a value for Axes.axes, of type tuple",
        ),
        (
            "{ lambda ; a:f32[8]. let b:f32[8] = sin[axes=(0,)] a in (b,) }",
            "column 41: expected ']' (NoParams has no more fields), found 'axes'",
        ),
        (
            "{ lambda ; . let say[text=<print>] in () }",
            "column 27: expected a value that can be written",
        ),
        (
            "{ lambda ; . let say[text=Mode.CLIP] in () }",
            "a member of an enum or a record of the field's type (none",
        ),
    ],
)
def test_errors_say_where_and_what(text: str, complaint: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse_jaxpr(text, PRIMITIVES)
    message = str(caught.value)
    assert complaint in message
    shown, caret = message.splitlines()[-2:]
    assert caret.strip() == "^"
    assert len(caret) <= len(shown) + 1


def test_goldens_are_read_by_this_suite() -> None:
    names = {path.stem for path in (Path(__file__).parent / "goldens").glob("*.txt")}
    assert set(GOLDEN_PROGRAMS) <= names
