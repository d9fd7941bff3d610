"""Random programs under the laws, and under chains of transformations.

First programs of rows without bodies, which are cheap; then programs with loops,
choices and calls in each other. `property_tests/nightly.py` looks at many more.
"""

from contextlib import suppress

import pytest
from hypothesis import given, settings, strategies as st

from verax.ops.control.scan import scan_p
from verax.ops.table import ROWS
from verax.verify.cases.case import Case, Skipped, double_precision
from verax.verify.cases.nested import DRAWS
from verax.verify.checking.functions import COMPILED, ENGINE
from verax.verify.laws import EVERY, LOOPS, Law
from verax.verify.laws.compose import LINKS, chain
from verax.verify.random_programs import composable, programs

SMALL = 6
"""Equations of programs that are transformed three times: sizes multiply."""
TINY = 3
"""Equations of programs with bodies, which have equations too."""
DEPTH = 4
FULL = composable(ROWS, "jvp", "batch", "lower")
FLAT = tuple(row for row in FULL if row not in DRAWS)
CHAINS = st.lists(st.sampled_from(sorted(LINKS)), min_size=1, max_size=3)
PROGRAM_LAWS = [law for law in EVERY if not law.rows_only]
FLAT_LAWS = [law for law in PROGRAM_LAWS if "thread" not in law.columns]
"""Without the law of rows that hold programs."""
few = settings(max_examples=max(4, settings().max_examples // 10))


@pytest.mark.parametrize("law", FLAT_LAWS, ids=lambda law: law.name)
def test_programs_keep_law(law: Law) -> None:
    rows = [row for row in composable(ROWS, *law.columns) if row not in DRAWS]

    @given(programs(rows, depth=law.depth, wide=law.wide))
    def search(case: Case) -> None:
        with suppress(Skipped):
            law(ENGINE, case)

    search()


@given(programs(FLAT, depth=DEPTH, wide=True, most=SMALL), CHAINS)
def test_chains_of_transformations(case: Case, names: list[str]) -> None:
    chain(ENGINE, case, names)


@given(programs(FLAT))
def test_compiled_programs(case: Case) -> None:
    with suppress(Skipped):
        COMPILED(ENGINE, case)


@settings(max_examples=max(5, settings().max_examples // 2))
@given(programs(FLAT, depth=DEPTH, wide=True, most=SMALL), CHAINS)
def test_compiled_chains(case: Case, names: list[str]) -> None:
    derived = chain(ENGINE, case, names)
    with double_precision(), suppress(Skipped):
        COMPILED(ENGINE, derived)


@pytest.mark.parametrize(
    "law", [*PROGRAM_LAWS, COMPILED], ids=lambda law: f"nested-{law.name}"
)
def test_programs_with_control_flow_keep_law(law: Law) -> None:
    @few
    @given(programs(FULL, depth=law.depth, wide=law.wide, most=TINY))
    def search(case: Case) -> None:
        with suppress(Skipped):
            law(ENGINE, case)

    search()


@few
@given(programs((*FLAT, scan_p), wide=True, most=TINY))
def test_scan_is_unrolled_loop_is_while(case: Case) -> None:
    with suppress(Skipped):
        LOOPS(ENGINE, case)


@few
@given(programs(FULL, depth=DEPTH, wide=True, most=TINY), CHAINS)
def test_chains_with_control_flow(case: Case, names: list[str]) -> None:
    derived = chain(ENGINE, case, names)
    with double_precision(), suppress(Skipped):
        COMPILED(ENGINE, derived)
