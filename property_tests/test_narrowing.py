"""Laws of narrow programs: they are the wide ones with operands of products rounded.

That is the whole meaning of `narrow`, so it is checked bit for bit, against the wide
program under rows for products that round what they are given.
"""

from collections.abc import Iterator, Sequence
from random import Random
from typing import Any

import numpy as np
import pytest
from attrs import evolve
from hypothesis import Phase, find, given, settings, strategies as st

from verax.ir.avals import ShapedArray
from verax.ir.dtypes import (
    DType,
    bfloat16,
    float8_e4m3fn,
    float16,
    float32,
    float64,
    numpy_dtype,
)
from verax.ir.jaxpr import Atom, Eqn, Jaxpr, Params, Primitive, equation
from verax.ir.reports.check import check_jaxpr
from verax.ir.walk import walk
from verax.ops.calls.call import inlined
from verax.ops.contraction.dot import dot_general, dot_general_p
from verax.ops.conv.primitive import conv_general_dilated_p
from verax.ops.core import CORE
from verax.ops.elementwise.convert import convert_element_type_p
from verax.ops.structure.shape import reshape
from verax.ops.table import ROWS
from verax.rules.programs.derived import standard
from verax.rules.rows.builder import Builder, program
from verax.rules.rows.infer import inferred
from verax.rules.rows.row import REALS, Engine, NDArray, Row, Sample
from verax.rules.values.array import Array
from verax.transforms.engine.engine import STANDARD, StandardEngine
from verax.transforms.narrowing.calls import NarrowParams, narrow_p
from verax.transforms.narrowing.plan import Narrowing
from verax.transforms.narrowing.writer import narrowed
from verax.verify.cases.case import Case
from verax.verify.random_programs import composable, programs, random_array

PRODUCTS: tuple[Row[Any], ...] = (dot_general_p, conv_general_dilated_p)
FULL = composable(ROWS, "lower")
# Products are one row in three, or few programs would have any.
MIXED = (*FULL, *PRODUCTS * (len(FULL) // 4))
OUTER = (((), ()), ((), ()))
TYPES = (bfloat16, float16, float8_e4m3fn, float32)
MOVES = [row for row in ROWS if row.traits.moves and row.draw is not None]
few = settings(max_examples=max(10, settings().max_examples // 10))
some = settings(max_examples=max(20, settings().max_examples // 2))


def rounding(row: Row[Any], plan: Narrowing) -> Row[Any]:
    """A row for products that rounds the operands which the plan rounds."""

    def evaluate(engine: Engine, p: Params, xs: Sequence[NDArray]) -> Sequence[NDArray]:
        avals = [ShapedArray(x.shape, x.dtype) for x in xs]
        builder = Builder("a product")
        ins: tuple[Atom, ...] = tuple(builder.input_atoms(avals))
        outs = builder.input_atoms(inferred(row, p, *avals))
        eqn = equation(row, p, ins, tuple(outs), builder.source)  # type: ignore[arg-type]  # no source
        params = plan.product(eqn)
        assert row.evaluate is not None
        if params is None:
            return row.evaluate(engine, p, xs)
        dtype = numpy_dtype(plan.to)
        return row.evaluate(engine, params, [x.astype(dtype) for x in xs])

    return evolve(row, evaluate=evaluate)


def with_products(jaxpr: Jaxpr) -> Jaxpr:
    """The program, and the products of its real values with themselves.

    So whatever makes a value has a product behind it.
    """
    made = [v for eqn in jaxpr.eqns for v in eqn.outvars]
    all_values = evolve(jaxpr, outvars=(*jaxpr.outvars, *made))

    def body(*xs: Array) -> list[Array]:
        outs = inlined(all_values, xs)
        rows = [reshape(x, (x.size,)) for x in outs if x.dtype in (float32, float64)]
        products = [dot_general(x, x, OUTER) for x in rows if x.size > 2]
        return [*outs[: len(jaxpr.outvars)], *products]

    return program(jaxpr.in_avals, body)


def engine_of(plan: Narrowing) -> StandardEngine:
    """The interpreter that rounds operands of products."""
    rows: dict[Primitive, Row[Any]] = {row: rounding(row, plan) for row in PRODUCTS}
    return StandardEngine(standard | rows, CORE)


def eqn_of(builder: Builder, row: Row[Any], sample: Sample[Any]) -> None:
    """Write one equation of a sample."""
    inputs = [builder.input(aval) for aval in sample.avals]
    builder.bind(row, sample.params, inputs)


def rounded(plan: Narrowing, x: NDArray) -> NDArray:
    """An array as a narrow one, if it is ever."""
    with np.errstate(all="ignore"):
        return x.astype(numpy_dtype(plan.dtype_of(ShapedArray(x.shape, x.dtype))))


def outputs(engine: Engine, jaxpr: Jaxpr, case: Case) -> list[NDArray]:
    with np.errstate(all="ignore"):
        return engine.evaluate(jaxpr, list(case.values))


def same(x: NDArray, y: NDArray) -> bool:
    """Whether arrays have the same type and the same bits, but for those of NaN."""
    if x.dtype != y.dtype or x.shape != y.shape:
        return False
    return x.tobytes() == y.tobytes() or np.array_equal(x, y, equal_nan=True)


def bodies(jaxpr: Jaxpr) -> Iterator[Jaxpr]:
    """The program and all programs inside."""
    yield jaxpr
    for _, eqn in walk(jaxpr):
        yield from eqn.params.subjaxprs()


def casts(plan: Narrowing, jaxpr: Jaxpr) -> list[Eqn]:
    """The conversions of wide values to the narrow type."""
    return [
        eqn
        for eqn in jaxpr.eqns
        if eqn.primitive is convert_element_type_p
        and eqn.outvars[0].aval.dtype == plan.to
        and plan.narrows(eqn.invars[0].aval)
    ]


@some
@given(programs(MIXED), st.sampled_from(TYPES))
def test_products_have_rounded_operands_and_nothing_else_changes(
    case: Case, to: DType
) -> None:
    plan, wide = Narrowing(to), with_products(case.jaxpr)
    jaxpr = narrowed(plan, wide)
    check_jaxpr(jaxpr, inferred)
    assert jaxpr.in_avals == wide.in_avals
    assert jaxpr.out_avals == wide.out_avals
    expected = outputs(engine_of(plan), wide, case)
    actual = outputs(STANDARD, jaxpr, case)
    assert all(map(same, actual, expected))


@pytest.mark.slow
@some
@given(programs(MIXED))
def test_the_type_of_the_program_changes_nothing(case: Case) -> None:
    assert narrowed(Narrowing(float64), case.jaxpr) is case.jaxpr


@pytest.mark.slow
@some
@given(programs(MIXED), st.sampled_from(TYPES))
def test_values_are_rounded_once_and_not_to_and_fro(case: Case, to: DType) -> None:
    plan = Narrowing(to)
    for body in bodies(narrowed(plan, with_products(case.jaxpr))):
        made = casts(plan, body)
        strong = [eqn for eqn in made if not eqn.outvars[0].aval.weak_type]
        assert len({eqn.invars[0] for eqn in strong}) == len(strong)


@pytest.mark.slow
@some
@given(programs(MIXED), st.sampled_from(TYPES))
def test_what_is_narrow_stays_as_it_is(case: Case, to: DType) -> None:
    plan = Narrowing(to)
    once = narrowed(plan, with_products(case.jaxpr))
    assert all(
        map(
            same,
            outputs(STANDARD, narrowed(plan, once), case),
            outputs(STANDARD, once, case),
        )
    )


@some
@given(programs(MIXED), st.sampled_from(TYPES))
def test_a_call_computes_what_its_narrow_program_does(case: Case, to: DType) -> None:
    plan, jaxpr = Narrowing(to), case.jaxpr
    builder = Builder("a call")
    inputs = [builder.input(aval) for aval in jaxpr.in_avals]
    outs = builder.bind(narrow_p, NarrowParams("f", plan, jaxpr), inputs)
    call = builder.finish(outs)[0]
    check_jaxpr(call, inferred)
    expected = outputs(STANDARD, narrowed(plan, jaxpr), case)
    assert all(map(same, outputs(STANDARD, call, case), expected))


@pytest.mark.slow
@some
@given(
    programs(MIXED),
    st.sampled_from((bfloat16, float16)),
    st.booleans(),
    st.booleans(),
)
def test_other_plans_keep_types(
    case: Case, to: DType, elementwise: bool, sums: bool
) -> None:
    plan = Narrowing(to, elementwise=elementwise, sums=sums)
    jaxpr = narrowed(plan, case.jaxpr)
    check_jaxpr(jaxpr, inferred)
    assert jaxpr.in_avals == case.jaxpr.in_avals
    assert jaxpr.out_avals == case.jaxpr.out_avals


@pytest.mark.parametrize("row", MOVES, ids=lambda row: row.name)
@pytest.mark.parametrize("to", [bfloat16, float16, float8_e4m3fn], ids=str)
@few
@given(st.integers(0, 1 << 30))
def test_what_moves_elements_commutes_with_rounding(
    to: DType, row: Row[Any], seed: int
) -> None:
    """The trait that decides where casts stand says the truth of each row."""
    plan, random = Narrowing(to), Random(seed)
    assert row.draw is not None
    assert row.evaluate is not None
    sample = row.draw(random)
    xs = [random_array(random, a, REALS, i, False) for i, a in enumerate(sample.avals)]
    ys = [rounded(plan, x) for x in xs]
    builder = Builder("a move")
    eqn_of(builder, row, sample)
    if not (plan.moves(builder.eqns[0]) and any(map(plan.narrows, sample.avals))):
        return
    with np.errstate(all="ignore"):
        wide = row.evaluate(STANDARD, sample.params, xs)
        narrow = row.evaluate(STANDARD, sample.params, ys)
    for x, y in zip(map(np.asarray, wide), map(np.asarray, narrow), strict=True):
        if plan.narrows(ShapedArray(x.shape, x.dtype)):
            # As interpreters type what a rule returns.
            assert same(rounded(plan, x), y.astype(numpy_dtype(to)))


@pytest.mark.slow
@pytest.mark.parametrize("to", TYPES, ids=str)
def test_random_programs_have_products(to: DType) -> None:
    """The laws above are about something: some of the programs become narrow."""
    plan = Narrowing(to)
    first = settings(max_examples=400, phases=[Phase.generate], database=None)
    find(programs(MIXED), lambda case: plan.touches(case.jaxpr), settings=first)
