"""Columns that rows leave out follow from others, and are held to the laws like these.

Rows of the table write all of their columns, so here some of them lose one.
"""

from collections.abc import Sequence
from typing import Any

import pytest
from attrs import evolve
from hypothesis import settings

from verax.ir.avals import ShapedArray
from verax.ir.dtypes import float32, float64
from verax.ir.jaxpr import NO_PARAMS
from verax.ops.control.scan import scan_p
from verax.ops.control.scan_params import ScanParams
from verax.ops.core import CORE
from verax.ops.elementwise.arith import add_p, mul
from verax.ops.elementwise.exp_log import square_p
from verax.ops.elementwise.select import select_n_p
from verax.ops.indexing.dynamic_slice import dynamic_slice_p
from verax.ops.sorting.sort import sort_p
from verax.ops.structure.joining import concatenate_p
from verax.rules.programs.derived import BY_HOST, IN_TURN, derived_columns
from verax.rules.rows.builder import Builder
from verax.rules.rows.row import Row
from verax.rules.values.state import STATE, interpreting, widths_of
from verax.verify.cases.case import double_precision
from verax.verify.checking.check import check_primitive

ROWS: Sequence[Row[Any]] = (
    add_p,
    select_n_p,
    dynamic_slice_p,
    concatenate_p,
    sort_p,
)


@pytest.mark.parametrize("row", [pytest.param(row, id=row.name) for row in ROWS])
def test_lanes_in_turn_and_the_host_stand_in_for_columns(row: Row[Any]) -> None:
    bare = evolve(row, batch=None, lower=None)
    cases = max(3, settings().max_examples // 10)
    laws = ("vmap", "vmap twice", "compiled")
    report = check_primitive(row, laws=laws, rules={row: bare}, cases=cases)
    report.raise_if_broken()
    assert [finding.verdict for finding in report] == ["holds"] * len(laws)


def test_lanes_in_turn_are_a_loop_that_says_what_it_is_linear_in() -> None:
    """In nothing, as far as is known; there is a flag for each operand."""
    vector = ShapedArray((3,), float32)
    one = Builder("a test")
    pair = [one.input(vector), one.input(vector)]
    body, _ = one.finish(one.bind(add_p, NO_PARAMS, pair))
    all_lanes = Builder("a test")
    xs = [all_lanes.input(vector), all_lanes.input(vector.with_shape((2, 3)))]
    with interpreting(all_lanes):
        outs = CORE.map_elements(body, 2, xs[:1], xs[1:])
    program, _ = all_lanes.finish(outs)
    (params,) = [eqn.params for eqn in program.eqns if eqn.primitive is scan_p]
    assert isinstance(params, ScanParams)
    assert params.linear == (False, False)


def test_widths_of_a_program_end_with_it() -> None:
    def own() -> tuple[bool, ...]:
        return tuple([value for name, value in vars(STATE).items() if "x64" in name])

    def on() -> bool:
        return STATE.enable_x64

    outside = own()
    for around in (True, False):
        with double_precision(around):
            before = own()
            with widths_of([float64]):
                assert on()
                with widths_of([float32]):
                    assert not on()
                assert on()
            assert own() == before
    with widths_of([float64]):
        assert on()
    assert own() == outside


def test_only_what_is_missing_is_derived() -> None:
    def means(**columns: Any) -> dict[str, str]:
        return dict(derived_columns(evolve(add_p, **columns)))

    assert means() == {}
    assert means(batch=None) == {"batch": IN_TURN}
    assert means(lower=None) == {"lower": BY_HOST}
    assert means(batch=None, lower=None) == {"batch": IN_TURN, "lower": BY_HOST}
    assert means(evaluate=None) == {}
    assert means(evaluate=None, lower=None) == {}
    assert means(evaluate=None, batch=None) == {"batch": IN_TURN}
    assert means(evaluate=None, batch=None, lower=None) == {}


def test_a_composition_stands_in_for_all_columns() -> None:
    def composition(p: object, x: Any) -> Any:
        return mul(x, x)

    row = square_p
    bare = Row(
        row.name,
        row.params,
        typing=row.typing,
        draw=row.draw,
        composition=composition,
    )
    check_primitive(row, rules={row: bare}, cases=5).raise_if_broken()
