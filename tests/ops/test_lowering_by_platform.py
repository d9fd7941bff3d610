"""Every row lowers for every platform but for what is listed here."""

from random import Random
from typing import Any

import pytest

from verax.api.tracing.apply import ENGINE
from verax.backend.lowering.lower import lower
from verax.backend.lowering.stablehlo_io import parsed
from verax.extend import MissingRule
from verax.ir.jaxpr import Jaxpr
from verax.ops.table import PRIMITIVES, ROWS
from verax.rules.rows.row import Row
from verax.verify.cases.case import traced
from verax.verify.cases.growing import pool_of
from verax.verify.random_programs import composable
from verax.verify.seeded_programs import seed_case

# What calls routines of LAPACK.
LAPACK = (
    *("cholesky", "eig", "eigh", "geqrf", "hessenberg", "householder_product", "lu"),
    *("qr", "schur", "svd", "triangular_solve", "tridiagonal", "tridiagonal_solve"),
)
CALLBACKS = ("debug_callback", "io_callback", "pure_callback")
LACKING = {
    "cpu": (),
    "cuda": LAPACK,
    "rocm": LAPACK,
    "tpu": (*LAPACK, *CALLBACKS),
}
POOL = pool_of(composable(ROWS, "jvp", "batch", "lower"))
DRAWN = tuple(name for name, row in PRIMITIVES.items() if row.draw is not None)


@pytest.mark.parametrize("platform", LACKING)
def test_rows_without_a_lowering(platform: str) -> None:
    found = []
    for name in PRIMITIVES:
        row = ENGINE.rules[PRIMITIVES[name]]
        try:
            row.lowering(platform)
        except MissingRule as error:
            assert f"{name} has no lowering for {platform}" in str(error)
            found.append(name)
    assert sorted(found) == sorted(LACKING[platform])


def check_module(jaxpr: Jaxpr, *platforms: str) -> None:
    """The module of a program is StableHLO for these platforms."""
    parsed(lower(ENGINE, jaxpr, "f", platforms=platforms).text)


@pytest.mark.parametrize("platform", ["cuda", "tpu"])
@pytest.mark.parametrize("name", DRAWN)
def test_modules_of_single_rows(name: str, platform: str) -> None:
    row: Row[Any] = PRIMITIVES[name]
    assert row.draw is not None
    for seed in range(3):
        jaxpr = traced(row, row.draw(Random(seed)))
        if name in LACKING[platform]:
            with pytest.raises(MissingRule, match=f"has no lowering for {platform}"):
                check_module(jaxpr, platform)
        else:
            check_module(jaxpr, platform)


@pytest.mark.parametrize("seed", range(12))
def test_modules_of_random_programs(seed: int) -> None:
    case = seed_case(POOL, seed)
    try:
        check_module(case.jaxpr, "cuda")
        check_module(case.jaxpr, "cpu", "cuda", "tpu")
    except MissingRule as error:
        lacking = [f"primitive {name} has" in str(error) for name in LACKING["tpu"]]
        assert any(lacking), error
