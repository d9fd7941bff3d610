"""Every law on every row of the standard table; a new row is here by being there."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from property_tests.profiles import PROFILES
from verax.ir.dtypes import float32
from verax.ops.control.scan import scan_p
from verax.ops.table import ROWS
from verax.rules.rows.row import Row
from verax.transforms.engine.engine import StandardEngine
from verax.verify.cases.case import Case, Skipped
from verax.verify.cases.edges import edge_cases
from verax.verify.cases.nested import DRAWS
from verax.verify.checking.check import check_law
from verax.verify.checking.functions import COMPILED, ENGINE
from verax.verify.checking.report import at_edges
from verax.verify.laws import EVERY, LOOPS, Law

SHARE = 0.4
"""The part of a profile's examples that a law has for one row: there are many rows."""

BODIES = 0.1
"""The same for rows with bodies: programs of them are in `test_programs`, too."""

CALLS: Mapping[str, Callable[[Law], bool]] = {
    "calls": lambda law: law.depth == 1 and not law.wide,
    "stacks": lambda law: law.depth > 1,
    "smooth": lambda law: law.wide and not law.tied,
    "tied": lambda law: law.tied,
}
"""Laws that ask for the same kind of calls, which cost more to draw than most laws."""


def together(name: str, laws: Sequence[Law]) -> Law:
    """All of `laws` on one case; the dear ones on a part of the cases."""

    def check(engine: StandardEngine, case: Case) -> None:
        skips = []
        for law in laws:
            if case.seed % law.cost == 0:
                try:
                    law(engine, case)
                except Skipped as skipped:
                    skips.append(f"{law.name}: {skipped}")
        if len(skips) == len(laws):
            raise Skipped("; ".join(skips))

    depth = max(law.depth for law in laws)
    return Law(name, check, laws[0].wide, depth, tied=laws[0].tied)


def laws_of(row: Row[Any]) -> list[Law]:
    """The laws that say something about a row, by the calls that they are tried on."""
    every = (*EVERY, COMPILED, *([LOOPS] if row is scan_p else []))
    said = [law for law in every if law.applies(row) is None]
    kinds = {name: [law for law in said if asks(law)] for name, asks in CALLS.items()}
    return [together(name, laws) for name, laws in kinds.items() if laws]


PAIRS = [
    pytest.param(row, law, id=f"{row.name}-{law.name}")
    for row in ROWS
    for law in laws_of(row)
]


@pytest.mark.parametrize(("row", "law"), PAIRS)
def test_row_keeps_laws(row: Row[Any], law: Law) -> None:
    share = BODIES if row in DRAWS else SHARE
    cases = max(3, int(share * settings().max_examples))
    report = check_law(law, row, ENGINE, cases)
    assert report.verdict != "broken", f"\n{report}"


AT_EDGES = [
    pytest.param(row, law, id=f"{row.name}-{law.name}")
    for row in ROWS
    for law in (*EVERY, COMPILED)
    if law.edges and law.applies(row) is None and row not in DRAWS
]


@pytest.mark.parametrize(("row", "law"), AT_EDGES)
def test_row_keeps_laws_at_edges(row: Row[Any], law: Law) -> None:
    """In single precision, or double for derivatives; nightly, in every one."""
    every = settings().max_examples >= PROFILES["nightly"].max_examples
    cases = [
        case
        for case in edge_cases(row, law.wide)
        if every or law.wide or float32 in {a.dtype for a in case.jaxpr.in_avals}
    ]
    report = at_edges(law, row.name, ENGINE, cases)
    assert report.verdict != "broken", f"\n{report}"


# Their operands are related to each other, or are far from singular, or they hold
# functions or foreign programs: programs that draw them stand in the files named here.
ELSEWHERE = {
    "call_exported": "test_export",
    "dce_sink": "test_sharded",
    # It has no value outside of an exported program: tests/ops/symbols/test_dims.py.
    "dim_as_value": "test_dims",
    "check": "test_checks",
    "backward_log": "test_backward_logs",
    # It means the function: tests/experimental/test_custom_partitioning.py.
    "custom_partitioning": "test_custom_partitioning",
    # They mean something only in a program around: test_references.py here.
    "get_ref": "test_references",
    "set_ref": "test_references",
    "new_ref": "test_references",
    "freeze": "test_references",
    "pure_callback": "test_callbacks",
    "io_callback": "test_effects",
    "debug_callback": "test_effects",
    # It tells of devices: tests/api/inspect/test_shardings.py.
    "inspect_sharding": "test_shardings",
    # Solutions need systems that have one: tests/lax/test_solving.py.
    "custom_linear_solve": "test_solving",
    "custom_root": "test_solving",
    # Under vmap one lane sees the others, on purpose: tests/lax/test_checkpointed.py.
    "any_lane": "test_checkpointed",
    "custom_vjp_linear": "test_custom",
    # They have no meaning without a map around: tests/lax/test_collectives.py.
    "psum": "test_collectives",
    "pcast": "test_collectives",
    "all_gather": "test_collectives",
    "reduce_scatter": "test_collectives",
    "all_to_all": "test_collectives",
    # They are collectives of a stack of parts: tests/placement/cases_parts.py.
    "gather_parts": "cases_parts",
    "permute_parts": "cases_parts",
    "scatter_parts": "cases_parts",
    "ppermute": "test_collectives",
    "axis_index": "test_collectives",
    # A stack of terms is one of many: tests/placement/cases_held.py.
    "spread": "cases_held",
    "collect": "cases_held",
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
    undrawn = {row.name for row in ROWS if row.draw is None and row not in DRAWS}
    advice = (
        "no law looks at these rows: give each draw=, or a draw in "
        "verax.verify.cases.nested if it holds jaxprs, or an entry in ELSEWHERE that "
        "names the tests which draw its calls"
    )
    assert sorted(undrawn - set(ELSEWHERE)) == [], advice
    assert sorted(set(ELSEWHERE) - undrawn) == [], "these have draws by now"


def test_entries_of_elsewhere_name_files() -> None:
    root = Path(__file__).parent.parent
    files = {
        path.stem
        for name in ("tests", "property_tests")
        for path in (root / name).rglob("*.py")
        if path.name.startswith(("test_", "cases_"))
    }
    assert set(ELSEWHERE.values()) <= files
