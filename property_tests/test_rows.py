"""Every law on every row of the standard table; a new row is here by being there."""

from typing import Any

import pytest
from hypothesis import settings

from verax.ops.table import ROWS
from verax.rules.row import Row
from verax.verify.check import check_law
from verax.verify.laws import EVERY, Law
from verax.verify.standard import COMPILED, ENGINE

SHARE = 0.4
"""The part of a profile's examples that one law has for one row: there are many."""

PAIRS = [
    pytest.param(row, law, id=f"{row.name}-{law.name}")
    for row in ROWS
    for law in (*EVERY, COMPILED)
    if law.applies(row) is None
]


@pytest.mark.parametrize(("row", "law"), PAIRS)
def test_row_keeps_law(row: Row[Any], law: Law) -> None:
    cases = max(5, int(SHARE * settings().max_examples))
    report = check_law(law, row, ENGINE, cases)
    assert report.verdict != "broken", f"\n{report}"


# Their operands are related to each other, or are far from singular: programs that
# draw them stand in the files named here.
ELSEWHERE = {
    "jit": "test_programs",
    "cond": "test_control_flow",
    "cond_lanes": "test_control_flow",
    "scan": "test_control_flow",
    "while": "test_control_flow",
    "custom_vjp_call": "test_custom",
    "custom_vjp_linear": "test_custom",
    "custom_vmap_call": "test_custom",
    "cholesky": "test_linalg",
    "eig": "test_linalg",
    "eigh": "test_linalg",
    "geqrf": "test_linalg",
    "hessenberg": "test_linalg",
    "householder_product": "test_linalg",
    "lu": "test_linalg",
    "lu_pivots_to_permutation": "test_linalg",
    "qr": "test_linalg",
    "schur": "test_linalg",
    "svd": "test_linalg",
    "tridiagonal": "test_linalg",
    "tridiagonal_solve": "test_linalg",
}


def test_rows_without_calls_are_few_and_known() -> None:
    undrawn = {row.name for row in ROWS if row.draw is None}
    assert undrawn <= set(ELSEWHERE), "these have no draw, so no law looks at them"
