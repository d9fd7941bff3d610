"""Rows that are right, written as a newcomer writes them, break no law."""

from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from property_tests.levels import nightly
from verax import lax, verify
from verax.extend import Domain
from verax.ir.avals import ShapedArray
from verax.ir.dtypes import float16, float32, float64
from verax.ir.jaxpr import NO_PARAMS, NoParams
from verax.ir.text.printer import print_jaxpr
from verax.rules.families.elementwise import composed, elementwise
from verax.rules.programs.derived import composite
from verax.rules.rows.row import Engine, Row, Sample
from verax.rules.values.constants import FLOAT
from verax.verify.cases.case import traced
from verax.verify.cases.growing import weakened
from verax.verify.checking.functions import ENGINE
from verax.verify.laws.high_precision import Digits, precise

mpmath = pytest.importorskip("mpmath")


def row_of(
    name: str,
    evaluate: Callable[..., Any],
    jvp: Any,
    lowered: Callable[..., Any],
    operands: int = 1,
) -> Row[NoParams]:
    return elementwise(
        name,
        evaluate,
        jvp=jvp,
        lower=composed(lowered),
        operands=operands,
        accepts=FLOAT,
    )


def power_of(name: str) -> Row[NoParams]:
    rules = [
        lambda x, y, z, t: t * y * x ** (y - 1),
        lambda x, y, z, t: t * z * vnp.log(x),
    ]
    return row_of(name, np.power, rules, lax.pow, 2)


def halved(x: Any) -> Any:
    return x * x / 2


def pushed_acosh(x: Any, y: Any, t: Any) -> Any:
    return t / vnp.sqrt((x - 1) * (x + 1))


root_p = row_of("root", np.sqrt, lambda x, y, t: t / (2 * y), vnp.sqrt)
ROWS = (
    root_p,
    row_of("half", lambda x: x * x / 2, lambda x, y, t: 0.5 * t * 2 * x, halved),
    row_of("log", np.log, lambda x, y, t: t / x, vnp.log),
    row_of("log2", np.log2, lambda x, y, t: t / (x * 0.6931471805599453), vnp.log2),
    row_of("log1p", np.log1p, lambda x, y, t: t / (1 + x), vnp.log1p),
    row_of("asin", np.arcsin, lambda x, y, t: t / vnp.sqrt(1 - x * x), vnp.arcsin),
    row_of("acosh", np.arccosh, pushed_acosh, vnp.arccosh),
    row_of("atanh", np.arctanh, lambda x, y, t: t / (1 - x * x), vnp.arctanh),
    row_of("cbrt", np.cbrt, lambda x, y, t: t / (3 * y * y), vnp.cbrt),
    row_of("x_x", lambda x: x**1.5, lambda x, y, t: 1.5 * t * x**0.5, lambda x: x**1.5),
    row_of("recip", lambda x: 1.0 / x, lambda x, y, t: -t * y * y, lambda x: 1.0 / x),
    power_of("power"),
    row_of(
        "inverse",
        lambda x: np.where(x == 0, 0 * x, 1 / x),
        lambda x, y, t: -t * y * y,
        lambda x: vnp.where(x == 0, 0.0, 1 / x),
    ),
)  # fmt: skip


def gelu(np: Any, x: Any) -> Any:
    """`1 + tanh` has no digits left at -5, in NumPy and in XLA, which differ."""
    return 0.5 * x * (1 + np.tanh(0.7978845608 * (x + 0.044715 * x**3)))


def sums_of_squares(engine: Engine, p: NoParams, xs: Any, ts: Any) -> Any:
    return (sumsq_p.call(p, *xs),), (2 * vnp.sum(xs[0] * ts[0], axis=-1),)


# Of an empty row it is linear, which says nothing about others.
sumsq_p: Row[NoParams] = Row(
    "sumsq",
    NoParams,
    typing=lambda p, avals: (avals[0].with_shape(avals[0].shape[:-1]),),
    evaluate=lambda engine, p, xs: (np.sum(xs[0] ** 2, axis=-1),),
    jvp=sums_of_squares,
    composition=lambda p, x: vnp.sum(x * x, axis=-1),
    draw=lambda random: Sample(
        NO_PARAMS, (ShapedArray((1, random.randint(0, 2)), float32),)
    ),
)
# The rule for tangents is the row itself, with a number.
triple_p: Row[NoParams] = elementwise(
    "triple",
    lambda x: 3 * x,
    jvp=lambda x, y, t: triple_p.call(NO_PARAMS, t),
    transpose=[lambda ct, x: triple_p.call(NO_PARAMS, ct)],
    lower=composed(lambda x: 3 * x),
    accepts=FLOAT,
)
newton_p = composite(
    "newton",
    NoParams,
    lambda p, x: lax.fori_loop(0, 5, lambda i, c: 0.5 * (c + x / c), x + 1.0),
    draw=lambda random: Sample(NO_PARAMS, (ShapedArray((3,), float32),)),
    domains=(Domain(0.1, 10.0),),
)
gelu_p = elementwise(
    "my_gelu",
    lambda x: gelu(np, x),
    jvp=lambda x, y, t: verax.jvp(lambda x: gelu(vnp, x), (x,), (t,))[1],
    lower=composed(lambda x: gelu(vnp, x)),
    accepts=FLOAT,
)


@pytest.mark.slow
@pytest.mark.parametrize(
    "row",
    [sumsq_p, triple_p, newton_p, gelu_p],
    ids=lambda row: row.name,
)
@pytest.mark.parametrize("seed", [0, nightly(1)])
def test_right_row_of_another_kind_breaks_no_law(row: Row[NoParams], seed: int) -> None:
    verify.check_primitive(row, cases=16, seed=seed).raise_if_broken()


@pytest.mark.slow
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_right_row_breaks_no_law(row: Row[NoParams]) -> None:
    verify.check_primitive(row, cases=8, seed=1).raise_if_broken()


def test_name_of_another_primitive_is_said_to_be_taken() -> None:
    """Its own rule binds the library's pow, whose text is the same."""
    report = verify.check_primitive(power_of("pow"), laws=["text"], seed=1)
    assert "two primitives of a derived program are called 'pow'" in str(report)


@pytest.mark.parametrize("dtype", [float32, float64])
def test_numbers_in_rules_have_the_width_of_the_equation(dtype: np.dtype[Any]) -> None:
    """Also beside a weak operand, and whatever this thread has chosen."""
    jaxpr = traced(root_p, Sample(NO_PARAMS, (ShapedArray((), dtype, True),)))
    actual = []
    for wide in (False, True):
        with verax.enable_x64(wide):
            actual.append(print_jaxpr(ENGINE.jvp(jaxpr, (True,))[0]))
    assert actual[0] == actual[1]
    assert "convert" not in actual[0]


def test_numbers_of_programs_promote_as_in_jax() -> None:
    """A program's own 2.0 is that of its thread: in JAX, too, `~f64` beside `~f32`."""
    weak = verax.ShapeDtypeStruct((), "float32", weak_type=True)
    with verax.enable_x64(True):
        assert str(verax.make_jaxpr(lambda x: 2 * x)(weak).out_avals[0]) == "~f32[]"
        assert str(verax.make_jaxpr(lambda x: 2.0 * x)(weak).out_avals[0]) == "~f64[]"


def test_calls_are_weak_only_where_programs_can_be() -> None:
    half = Sample(NO_PARAMS, (ShapedArray((), float16),))
    assert weakened(root_p, half, Random(0)) == half


@pytest.mark.parametrize(
    ("function", "x"),
    [
        (np.log, -1.0),
        (np.log, 0.0),
        (np.log1p, -2.0),
        (np.log10, -1.0),
        (np.sqrt, -1.0),
        (np.arcsin, 2.0),
        (np.arccos, -2.0),
        (np.arccosh, 0.5),
        (np.arctanh, 2.0),
        (np.cbrt, -8.0),
        (np.reciprocal, 0.0),
        (lambda x: x**0.5, -2.0),
        (lambda x: x**-1.0, 0.0),
        (lambda x: x // 0.75, -2.0),
        (lambda x: x % 0.75, -2.0),
        (lambda x: 2.0**x, -1.5),
        (lambda x: np.where(x == 0, 1.0, x), 0.0),
        (lambda x: np.maximum(x, 0.5), -2.0),
        (lambda x: np.hypot(x, 3.0), 4.0),
    ],
)
def test_many_digits_mean_what_doubles_mean(
    function: Callable[..., Any], x: float
) -> None:
    with np.errstate(all="ignore"):
        due = float(function(np.float64(x)))
    actual = function(precise(np.array([x])))[0]
    value = float(actual.value if isinstance(actual, Digits) else actual)
    np.testing.assert_allclose(value, due, rtol=1e-15)


@pytest.mark.parametrize("wrong", [0.0, 1e-3])
def test_a_subnormal_number_beside_one_at_which_digits_are_lost(wrong: float) -> None:
    """XLA takes the last number for zero, and rounds `expm1` of the first otherwise."""

    def lowered(x: Any) -> Any:
        return vnp.log(-vnp.expm1(-x)) * (1 + wrong)

    row = row_of("log1mexp", lambda x: np.log(-np.expm1(-x)), None, lowered)
    case = verify.read_case(
        "{ lambda ; a:f32[2]. let b:f32[2] = log1mexp a in (b,) }",
        [np.array([[6.578125, 1.401298464324817e-45]], np.float32)],
        single=True,
        rows=[row],
    )
    if not wrong:
        verify.hold("compiled", case)
        return
    with pytest.raises(verify.LawBroken):
        verify.hold("compiled", case)
