"""Laws of programs as values, on random programs over the rows of the library.

loads(dumps(j)) == j; fold, cse, dce, inline, outline and rewriting keep types, bits and
effects.
"""

from collections.abc import Sequence
from contextlib import suppress
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from verax import ir, transforms
from verax.ir.jaxpr import ClosedJaxpr, Jaxpr
from verax.ops.table import ROWS
from verax.rewrites import algebra, apply
from verax.transforms import STANDARD
from verax.verify.cases.case import Case, double_precision, traced
from verax.verify.random_programs import composable, programs

DRAWN = [row for row in ROWS if row.draw is not None]
PROGRAMS = programs(composable(ROWS), most=6)
FEW = settings(max_examples=max(5, settings().max_examples // 4))


@pytest.mark.parametrize("row", DRAWN, ids=lambda row: row.name)
def test_every_row_can_be_saved(row: object) -> None:
    assert row in DRAWN
    draw = getattr(row, "draw")  # noqa: B009  # rows of all params
    for seed in range(2):
        with double_precision(seed == 1), suppress(NotImplementedError):
            jaxpr = traced(row, draw(Random(seed)))
            keeps_value(ClosedJaxpr(jaxpr))


def keeps_value(closed: ClosedJaxpr) -> None:
    """Reading what was saved gives an equal program, and the same bytes again."""
    data = ir.dumps(closed)
    again = ir.loads(data)
    assert ir.dumps(again) == data
    assert ir.to_json(ir.from_json(ir.to_json(closed))) == ir.to_json(closed)
    if not closed.jaxpr.used_consts and not closed.consts:
        assert again == closed
        assert hash(again) == hash(closed)


def arguments(case: Case) -> list[np.ndarray]:
    """The first element of each stack of values."""
    return [stack[0] for stack in case.stacks]


def same_values(before: Jaxpr, after: Jaxpr, args: Sequence[np.ndarray]) -> None:
    """Both programs have the same types and give the same bits, NaN for NaN."""
    assert after.in_avals == before.in_avals
    assert after.out_avals == before.out_avals
    assert after.effects == before.effects
    expected = STANDARD.evaluate(before, args)
    for a, b in zip(expected, STANDARD.evaluate(after, args), strict=True):
        assert a.dtype == b.dtype
        if a.dtype.kind == "V":  # NumPy knows no NaN of bfloat16
            a, b = a.astype(np.float32), b.astype(np.float32)
        np.testing.assert_array_equal(a, b)


@FEW
@given(PROGRAMS)
def test_programs_can_be_saved(case: Case) -> None:
    names = {eqn.primitive.name for _, eqn in ir.walk(case.jaxpr)}
    try:
        keeps_value(ClosedJaxpr(case.jaxpr))
    except ir.Unsavable:
        assert "custom_vmap_call" in names, "it holds no function"


@FEW
@given(PROGRAMS, st.permutations(["fold", "cse", "dce", "inline", "outline"]))
def test_rewrites_keep_values(case: Case, names: list[str]) -> None:
    closed = ClosedJaxpr(case.jaxpr)
    for name in names:
        closed = getattr(transforms, name)(closed)
        transforms.check(closed)
    same_values(case.jaxpr, ir.close(closed), arguments(case))


@FEW
@given(PROGRAMS, st.data())
def test_fold_computes_a_program_on_constants(case: Case, data: st.DataObject) -> None:
    chosen = data.draw(st.sets(st.sampled_from(range(len(case.jaxpr.invars)))))
    args = arguments(case)
    consts = [
        ir.array_literal(x, v.aval) if v.aval.shape else ir.scalar_literal(x, v.aval)
        for x, v in zip(args, case.jaxpr.invars, strict=True)
    ]
    table = {case.jaxpr.invars[i]: consts[i] for i in chosen}
    fixed = ir.substitute(case.jaxpr, table)
    folded = ir.close(transforms.fold(fixed))
    transforms.check(folded)
    same_values(case.jaxpr, folded, args)
    if len(chosen) == len(args):
        assert len(folded.eqns) <= len(fixed.eqns)


@FEW
@given(PROGRAMS)
def test_exact_rules_keep_values(case: Case) -> None:
    closed = apply(algebra())(ClosedJaxpr(case.jaxpr))
    transforms.check(closed)
    same_values(case.jaxpr, ir.close(closed), arguments(case))
