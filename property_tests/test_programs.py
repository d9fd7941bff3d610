"""Random programs under the laws, and under chains of transformations."""

from contextlib import suppress

import pytest
from hypothesis import given, settings, strategies as st

from verax.ops.table import ROWS
from verax.verify.case import Case, Skipped
from verax.verify.compose import LINKS, chain
from verax.verify.laws import EVERY, Law
from verax.verify.precision import double_precision
from verax.verify.programs import composable, programs
from verax.verify.standard import COMPILED, ENGINE

SMALL = 6
"""Equations of programs that are transformed three times: sizes multiply."""
DEPTH = 4
FULL = composable(ROWS, "jvp", "batch", "lower")
CHAINS = st.lists(st.sampled_from(sorted(LINKS)), min_size=1, max_size=3)
PROGRAM_LAWS = [law for law in EVERY if not law.rows_only]


@pytest.mark.parametrize("law", PROGRAM_LAWS, ids=lambda law: law.name)
def test_programs_keep_law(law: Law) -> None:
    rows = composable(ROWS, *law.columns)

    @given(programs(rows, depth=law.depth, wide=law.wide))
    def search(case: Case) -> None:
        with suppress(Skipped):
            law(ENGINE, case)

    search()


@given(programs(FULL, depth=DEPTH, wide=True, most=SMALL), CHAINS)
def test_chains_of_transformations(case: Case, names: list[str]) -> None:
    chain(ENGINE, case, names)


@given(programs(FULL))
def test_compiled_programs(case: Case) -> None:
    with suppress(Skipped):
        COMPILED(ENGINE, case)


@settings(max_examples=max(5, settings().max_examples // 2))
@given(programs(FULL, depth=DEPTH, wide=True, most=SMALL), CHAINS)
def test_compiled_chains(case: Case, names: list[str]) -> None:
    derived = chain(ENGINE, case, names)
    with double_precision(), suppress(Skipped):
        COMPILED(ENGINE, derived)
